//! What every installer needs: cluster, nodes, helm, cache, pins, references, settings, workspace.

use blueprint_charts::{ArtifactCache, Helm, Versions};
use blueprint_cluster::{Cluster, Nodes};

use crate::ambiguity::Way;
use crate::references::References;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// Made once per run, shared by all tasks.
#[derive(Clone)]
pub struct Context {
    /// The cluster.
    pub cluster: Cluster,
    /// helm; `None` when it was not found (pre-flight says so, with the other shortfalls).
    pub helm: Option<Helm>,
    /// The cache.
    pub cache: ArtifactCache,
    /// The pins.
    pub versions: Versions,
    /// The YAML.
    pub references: References,
    /// What the user chose.
    pub settings: Settings,
    /// Where files live.
    pub workspace: Workspace,
    /// The node containers; `None` when no engine answers (pre-flight says so).
    pub nodes: Option<Nodes>,
    /// Why `nodes` is `None`.
    pub no_engine: Option<String>,
    /// The ways out of ambiguous states that the user chose for this run.
    pub accepted: Vec<Way>,
}

impl Context {
    /// helm, or the error that says it is missing.
    pub fn helm(&self) -> Result<&Helm, crate::Error> {
        self.helm.as_ref().ok_or_else(|| {
            blueprint_charts::HelmError::NotFound {
                tried: "PATH".to_owned(),
            }
            .into()
        })
    }

    /// The engine, or the error that says why there is none.
    pub fn nodes(&self) -> Result<&Nodes, crate::Error> {
        self.nodes.as_ref().ok_or_else(|| {
            blueprint_cluster::Error::NoEngine {
                socket: self.no_engine.clone().unwrap_or_default(),
                source: None,
            }
            .into()
        })
    }
}
