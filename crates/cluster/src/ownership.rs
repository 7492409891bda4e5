//! Who made an object: read from the field managers that the API server keeps
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};

use crate::FIELD_MANAGER;

/// Managers that speak for the control plane itself: they fill in fields of objects that somebody else made.
const CONTROL_PLANE: [&str; 3] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

fn entries(metadata: &ObjectMeta) -> impl Iterator<Item = &ManagedFieldsEntry> {
    metadata.managed_fields.iter().flatten()
}

fn manager(entry: &ManagedFieldsEntry) -> &str {
    entry.manager.as_deref().unwrap_or_default()
}

/// One of our field managers (`blueprint`, `blueprint-minio-listener`, …).
fn is_ours(manager: &str) -> bool {
    manager
        .strip_prefix(FIELD_MANAGER)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether we have applied it. A patch alone (of a foreign object's mark, say) does not count.
pub fn applied_by_us(metadata: &ObjectMeta) -> bool {
    entries(metadata)
        .any(|entry| entry.operation.as_deref() == Some("Apply") && is_ours(manager(entry)))
}

/// Somebody else, outside the control plane, who set fields of the object itself (not only of its status): it was there before us or is used by them.
pub fn other_manager(metadata: &ObjectMeta) -> Option<&str> {
    entries(metadata)
        .filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty())
        .map(manager)
        .find(|manager| !is_ours(manager) && !CONTROL_PLANE.contains(manager))
}

/// Whether somebody else made this Namespace: another one who applied it, or whose creation brought the label that the API server gives to every Namespace.
/// Labels that people added later do not count.
pub fn namespace_of_another(metadata: &ObjectMeta) -> bool {
    entries(metadata)
        .filter(|entry| !is_ours(manager(entry)) && !CONTROL_PLANE.contains(&manager(entry)))
        .any(|entry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            let made = fields.is_some_and(|fields| {
                fields
                    .pointer("/f:metadata/f:labels/f:kubernetes.io~1metadata.name")
                    .is_some()
            });
            entry.operation.as_deref() == Some("Apply") || made
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn metadata(managed: &Value) -> ObjectMeta {
        serde_json::from_value(json!({"name": "x", "managedFields": managed})).unwrap()
    }

    #[test]
    fn a_patch_of_ours_does_not_make_an_object_ours() {
        let patched = metadata(&json!([
            {"manager": "kind", "operation": "Update"},
            {"manager": "blueprint", "operation": "Update"}
        ]));
        assert!(!applied_by_us(&patched));
        let applied =
            metadata(&json!([{"manager": "blueprint-minio-listener", "operation": "Apply"}]));
        assert!(applied_by_us(&applied));
        let alike = metadata(&json!([{"manager": "blueprinter", "operation": "Apply"}]));
        assert!(!applied_by_us(&alike));
    }

    #[test]
    fn a_status_and_the_control_plane_are_nobody_else() {
        let ours = metadata(&json!([
            {"manager": "blueprint", "operation": "Apply"},
            {"manager": "kube-apiserver", "operation": "Update", "subresource": "status"},
            {"manager": "envoy-gateway", "operation": "Update", "subresource": "status"}
        ]));
        assert_eq!(other_manager(&ours), None);
        let shared = metadata(&json!([
            {"manager": "blueprint", "operation": "Apply"},
            {"manager": "kubectl-client-side-apply", "operation": "Update"}
        ]));
        assert_eq!(other_manager(&shared), Some("kubectl-client-side-apply"));
    }

    #[test]
    fn a_label_that_people_added_does_not_make_a_namespace_theirs() {
        let label = |name: &str| json!({"f:metadata": {"f:labels": {".": {}, name: {}}}});
        let ours = metadata(&json!([
            {"manager": "blueprint", "operation": "Apply"},
            {"manager": "kubectl-label", "operation": "Update", "fieldsV1": label("f:pod-security.kubernetes.io/enforce")}
        ]));
        assert!(!namespace_of_another(&ours));
        let theirs = metadata(&json!([
            {"manager": "kubectl-create", "operation": "Update", "fieldsV1": label("f:kubernetes.io/metadata.name")},
            {"manager": "blueprint", "operation": "Apply"}
        ]));
        assert!(namespace_of_another(&theirs));
    }
}
