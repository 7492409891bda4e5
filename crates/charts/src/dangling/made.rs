//! What a rendered object brings into being, under the names by which others refer to it.

use serde_json::Value;

use super::{Home, ObjectRef};

/// Kinds that others refer to and that are what they are called.
const NAMESPACED: &[&str] = &[
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "Service",
    "PersistentVolumeClaim",
    "Gateway",
];
const CLUSTER_WIDE: &[&str] = &[
    "StorageClass",
    "GatewayClass",
    "IngressClass",
    "PriorityClass",
];

/// The objects that `object` makes.
pub(super) fn by(object: &Value, default_namespace: &str) -> Vec<ObjectRef> {
    let Some(home) = Home::of(object, default_namespace) else {
        return Vec::new();
    };
    let mut made = Vec::new();
    if NAMESPACED.contains(&home.kind) {
        made.push(ObjectRef::new(home.kind, home.namespace, home.name));
    }
    if CLUSTER_WIDE.contains(&home.kind) {
        made.push(ObjectRef::new(home.kind, "", home.name));
    }
    match home.kind {
        "Gateway" | "ListenerSet" | "XListenerSet" => {
            let listeners = object["spec"]["listeners"].as_array();
            let sections = listeners
                .into_iter()
                .flatten()
                .filter_map(|listener| listener["name"].as_str());
            made.extend(sections.map(|section| {
                ObjectRef::new(
                    "Listener",
                    home.namespace,
                    &format!("{}/{section}", home.name),
                )
            }));
        }
        // cert-manager writes the Secret that a Certificate names.
        "Certificate" => {
            if let Some(secret) = object["spec"]["secretName"].as_str() {
                made.push(ObjectRef::new("Secret", home.namespace, secret));
            }
        }
        _ => {}
    }
    made
}

/// What Kubernetes makes by itself.
pub(super) fn everywhere(target: &ObjectRef) -> bool {
    matches!(
        (target.kind.as_str(), target.name.as_str()),
        ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt")
    ) || (target.kind == "Service" && target.namespace == "default" && target.name == "kubernetes")
        || (target.kind == "PriorityClass" && target.name.starts_with("system-"))
}
