//! Reading objects.

use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;

use crate::connect::Cluster;
use crate::error::Error;

impl Cluster {
    /// One object; `None` when it (or its kind) is not there. Transient refusals are retried for up to 30 s, here and in the other reads.
    pub async fn get(&self, api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Result<Option<DynamicObject>, Error> {
        todo!()
    }

    /// All objects of a kind, in a namespace or everywhere, filtered by a label selector (`""` for all). Empty when the kind is unknown.
    pub async fn list(&self, api_version: &str, kind: &str, namespace: Option<&str>, selector: &str) -> Result<Vec<DynamicObject>, Error> {
        todo!()
    }

    /// Pods of a namespace.
    pub async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        todo!()
    }

    /// The name of a Running and Ready pod that matches; `None` when there is none.
    pub async fn ready_pod(&self, namespace: &str, selector: &str) -> Result<Option<String>, Error> {
        todo!()
    }

    /// The last `lines` log lines of a container.
    pub async fn log_tail(&self, namespace: &str, pod: &str, container: Option<&str>, lines: i64) -> Result<Vec<String>, Error> {
        todo!()
    }
}
