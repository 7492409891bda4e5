//! The YAML that is installed: embedded in the binary, written out by `blueprint init`; a file in the workspace wins.

use std::path::PathBuf;

use blueprint_charts::Versions;
use serde_json::Value;

use crate::error::Error;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// One embedded file.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// Path in a workspace, `infra/phase2/references/helm-values-redis.yaml`.
    pub path: &'static str,
    /// Text.
    pub text: &'static str,
}

/// Everything `init` writes.
pub fn embedded() -> &'static [Embedded] {
    todo!()
}

/// Reads references for one workspace and settings.
#[derive(Debug, Clone)]
pub struct References {
    workspace: Workspace,
    settings: Settings,
}

impl References {
    /// For this workspace.
    pub fn new(workspace: Workspace, settings: Settings) -> Self {
        Self { workspace, settings }
    }

    /// VERSIONS.json: the workspace's file or the embedded one.
    pub fn versions(&self) -> Result<Versions, Error> {
        todo!()
    }

    /// The documents of `name` (`cluster-postgresql.yaml`), with domain, storage root and ports put in place of the reference ones.
    pub fn documents(&self, name: &str) -> Result<Vec<Value>, Error> {
        todo!()
    }

    /// Values for a chart key: `helm-values-<key>.yaml`, then `profiles/<profile>/helm-values-<key>.yaml`, then the pin's `values_overrides`; localised.
    pub fn values(&self, key: &str, versions: &Versions) -> Result<Value, Error> {
        todo!()
    }

    /// Path in messages.
    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.references().join(name)
    }
}

/// Puts the settings' domain, storage root and NodePorts in place of the reference ones, in every string and in `nodePort` numbers.
pub fn localise(value: Value, settings: &Settings) -> Value {
    todo!()
}
