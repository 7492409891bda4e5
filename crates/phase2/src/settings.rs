//! `blueprint.yaml`: the few things people choose.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How much the installation asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// One replica each, small requests: fits a laptop.
    #[default]
    Small,
    /// The charts' own sizes.
    Full,
}

/// NodePorts of the Gateway's data plane and the host ports of kind's mappings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ports {
    /// HTTPS NodePort.
    pub https: u16,
    /// HTTP NodePort.
    pub http: u16,
    /// SSH NodePort.
    pub ssh: u16,
}

impl Default for Ports {
    fn default() -> Self {
        Self { https: 30443, http: 30080, ssh: 30022 }
    }
}

/// The file's content; every field has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `local.example.net`: hosts are `gitlab.<domain>`, `registry.<domain>`, `kas.<domain>`, `minio.<domain>`.
    pub domain: String,
    /// kind cluster name; the context is `kind-<cluster>`.
    pub cluster: String,
    /// Where kind mounts the stable storage in every node.
    pub storage_root: String,
    /// Profile.
    pub profile: Profile,
    /// Ports.
    pub ports: Ports,
}

/// The domain that the references are written with.
pub const REFERENCE_DOMAIN: &str = "local.example.net";
/// The storage root that the references are written with.
pub const REFERENCE_STORAGE_ROOT: &str = "/var/local/shared";

impl Default for Settings {
    fn default() -> Self {
        Self {
            domain: REFERENCE_DOMAIN.to_owned(),
            cluster: "blueprint".to_owned(),
            storage_root: REFERENCE_STORAGE_ROOT.to_owned(),
            profile: Profile::default(),
            ports: Ports::default(),
        }
    }
}

impl Settings {
    /// Parses and checks the file's text (domain is a DNS name of two labels or more, cluster a DNS label, ports within 30000–32767 and distinct, storage
    /// root absolute).
    pub fn parse(text: &str, origin: &Path) -> Result<Self, Error> {
        todo!()
    }

    /// Reads the file; defaults when there is none.
    pub fn read(path: &Path) -> Result<Self, Error> {
        todo!()
    }

    /// `gitlab.<domain>` and so on.
    pub fn host(&self, name: &str) -> String {
        format!("{name}.{}", self.domain)
    }

    /// `kind-<cluster>`.
    pub fn kube_context(&self) -> String {
        format!("kind-{}", self.cluster)
    }
}

/// The JSON Schema of blueprint.yaml, as published in `docs/blueprint.schema.json`.
pub fn json_schema() -> serde_json::Value {
    todo!()
}
