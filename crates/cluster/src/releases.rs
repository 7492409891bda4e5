//! Helm's release records, read from their Secrets' labels (type `helm.sh/release.v1`, labels `owner=helm`, `name`, `status`, `version`; helm pkg/storage).

use std::collections::BTreeMap;

use crate::connect::Cluster;
use crate::error::Error;

/// One revision's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRevision {
    /// Revision number.
    pub revision: u32,
    /// `deployed`, `failed`, `superseded`, `pending-install`, `pending-upgrade`, `pending-rollback`, `uninstalling`, `uninstalled`.
    pub status: String,
    /// Labels given with `--labels`.
    pub labels: BTreeMap<String, String>,
}

/// A release's history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// Oldest first.
    pub revisions: Vec<ReleaseRevision>,
}

impl Release {
    /// The newest.
    pub fn newest(&self) -> Option<&ReleaseRevision> {
        self.revisions.last()
    }

    /// The newest that is or was deployed (`deployed`, `superseded`).
    pub fn last_deployed(&self) -> Option<&ReleaseRevision> {
        self.revisions.iter().rev().find(|revision| matches!(revision.status.as_str(), "deployed" | "superseded"))
    }
}

impl Cluster {
    /// The history of a release; empty when there is none.
    pub async fn release(&self, namespace: &str, name: &str) -> Result<Release, Error> {
        todo!()
    }
}
