//! References of rendered objects that nobody fulfils: Secrets, ConfigMaps, classes, listeners, Services.

use std::collections::BTreeSet;

use serde_json::Value;

/// An object's identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// `Secret`, `ConfigMap`, `StorageClass`, `GatewayClass`, `Listener` (name `gateway/section`), `ServiceAccount`, `Service`.
    pub kind: String,
    /// Namespace; empty for cluster-wide ones.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A reference to something that nobody makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dangling {
    /// What is missing.
    pub target: ObjectRef,
    /// Who names it, `Deployment gitlab/gitlab-webservice-default`.
    pub by: String,
    /// JSON pointer inside it.
    pub at: String,
}

/// All references in `rendered` (namespace `default_namespace` where an object has none) that neither `rendered` itself nor `provided` fulfils.
/// References marked `optional: true` are not reported.
pub fn find(rendered: &[Value], default_namespace: &str, provided: &BTreeSet<ObjectRef>) -> Vec<Dangling> {
    todo!()
}
