//! Deleting, and waiting until it is gone.

use std::time::Duration;

use crate::connect::Cluster;
use crate::error::Error;

impl Cluster {
    /// Deletes an object (background propagation) and waits until it is gone. Answers whether it was there.
    pub async fn delete(&self, api_version: &str, kind: &str, namespace: Option<&str>, name: &str, deadline: Duration) -> Result<bool, Error> {
        todo!()
    }

    /// Restarts a Deployment, StatefulSet or DaemonSet as `kubectl rollout restart` does.
    pub async fn rollout_restart(&self, kind: &str, namespace: &str, name: &str) -> Result<(), Error> {
        todo!()
    }
}
