//! Server-side apply.

use serde_json::Value;

use crate::connect::Cluster;
use crate::error::Error;

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Made. Holds the object's description.
    Created(String),
    /// Changed.
    Configured(String),
    /// As it was: same resourceVersion.
    Unchanged(String),
}

impl Change {
    /// `created Namespace redis`; `None` when nothing changed.
    pub fn phrase(&self) -> Option<String> {
        match self {
            Self::Created(what) => Some(format!("created {what}")),
            Self::Configured(what) => Some(format!("configured {what}")),
            Self::Unchanged(_) => None,
        }
    }
}

impl Cluster {
    /// Applies one manifest with our field manager, forcing conflicts (what we set is ours). Transient refusals are retried for up to 30 s.
    pub async fn apply(&self, manifest: &Value) -> Result<Change, Error> {
        self.apply_as(crate::FIELD_MANAGER, manifest).await
    }

    /// The same with another field manager.
    pub async fn apply_as(&self, manager: &str, manifest: &Value) -> Result<Change, Error> {
        todo!()
    }

    /// Applies in order; answers the phrases of what changed.
    pub async fn apply_all<'a>(&self, manifests: impl IntoIterator<Item = &'a Value>) -> Result<Vec<String>, Error> {
        todo!()
    }

    /// A JSON merge patch (for fields we must not own for good, like a foreign default-class mark or `claimRef.uid`). Answers whether anything changed.
    pub async fn merge_patch(&self, api_version: &str, kind: &str, namespace: Option<&str>, name: &str, patch: &Value) -> Result<bool, Error> {
        todo!()
    }
}
