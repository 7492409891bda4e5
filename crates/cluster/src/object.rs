//! Objects by apiVersion and kind.

use kube::api::{ApiResource, DynamicObject};
use kube::discovery::Scope;
use serde_json::Value;

use crate::connect::Cluster;
use crate::error::Error;

/// A kind the server knows.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Its resource.
    pub resource: ApiResource,
    /// Namespaced or not.
    pub scope: Scope,
}

/// `Secret redis/redis-auth`, `Namespace redis`: how messages name an object.
pub fn describe(kind: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

impl Cluster {
    /// Looks a kind up (`apps/v1`, `Deployment`). Well-known kinds of core groups are answered without asking; others are asked each time they are
    /// unknown (a CRD may just have come) and remembered.
    pub async fn kind(&self, api_version: &str, kind: &str) -> Result<Kind, Error> {
        todo!()
    }
}

/// A JSON manifest as kube's object.
pub fn from_value(value: Value) -> Result<DynamicObject, Error> {
    todo!()
}
