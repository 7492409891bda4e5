//! Who blocks: pods that are not ready, each with its reason and last event.

use crate::connect::Cluster;
use crate::error::Error;

/// One blocker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// `pod redis/redis-master-0`, `PersistentVolumeClaim …`, `Job …`.
    pub object: String,
    /// `ImagePullBackOff docker.io/bitnami/redis:x`, `Pending: 0/3 nodes are available: …`, `CrashLoopBackOff (exit 1)`, `starting`.
    pub reason: String,
    /// Its last warning event.
    pub last_event: Option<String>,
    /// Whether it looks like more than just starting.
    pub serious: bool,
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.object, self.reason)?;
        if let Some(event) = &self.last_event {
            write!(f, " ({event})")?;
        }
        Ok(())
    }
}

impl Cluster {
    /// All blockers among the pods (and their claims) that match, the serious ones first.
    pub async fn blockers(&self, namespace: &str, selector: &str) -> Result<Vec<Blocker>, Error> {
        todo!()
    }

    /// Evidence for a deadline: last warning events of the namespace and the last log lines of the unready pods.
    pub async fn evidence(&self, namespace: &str, selector: &str) -> Vec<String> {
        todo!()
    }
}
