//! References of rendered objects that nobody fulfils: `Secret`, `ConfigMap`, classes, listeners, `Service`.

use std::collections::BTreeSet;

use serde_json::Value;

mod made;
mod references;

/// An object's identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// `Secret`, `ConfigMap`, `StorageClass`, `GatewayClass`, `Gateway`, `Listener` (name `gateway/section`), `ServiceAccount`, `Service`,
    /// `PersistentVolumeClaim`.
    pub kind: String,
    /// Namespace; empty for cluster-wide ones.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// One of these.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// A reference to something that nobody makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dangling {
    /// What is missing.
    pub target: ObjectRef,
    /// Who names it, `Deployment gitlab/gitlab-webservice-default`.
    pub by: String,
    /// JSON pointer inside it.
    pub at: String,
}

/// All references in `rendered` (namespace `default_namespace` where an object has none) that neither `rendered` itself nor `provided` fulfils.
/// References marked `optional: true` are not reported. Sorted by what is missing.
///
/// What Kubernetes makes by itself in each namespace (ServiceAccount `default`, ConfigMap `kube-root-ca.crt`) needs nobody.
pub fn find(
    rendered: &[Value],
    default_namespace: &str,
    provided: &BTreeSet<ObjectRef>,
) -> Vec<Dangling> {
    let mut made = provided.clone();
    made.extend(
        rendered
            .iter()
            .flat_map(|object| made::by(object, default_namespace)),
    );
    let mut dangling: Vec<Dangling> = rendered
        .iter()
        .flat_map(|object| references::of(object, default_namespace))
        .filter(|reference| {
            !made.contains(&reference.target) && !made::everywhere(&reference.target)
        })
        .collect();
    dangling.sort();
    dangling.dedup();
    dangling
}

/// An object's own place in the cluster.
struct Home<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Home<'a> {
    fn of(object: &'a Value, default_namespace: &'a str) -> Option<Self> {
        let metadata = &object["metadata"];
        Some(Self {
            kind: object["kind"].as_str()?,
            namespace: metadata["namespace"].as_str().unwrap_or(default_namespace),
            name: metadata["name"]
                .as_str()
                .or(metadata["generateName"].as_str())?,
        })
    }
}

#[cfg(test)]
mod tests;
