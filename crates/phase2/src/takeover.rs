//! Objects that were there before us under the names that we apply: what they were is kept on them, and put back when we leave.
//!
//! kind brings a local-path provisioner whose objects bear the names of upstream's manifest, which step 3 applies.

use blueprint_cluster::{Cluster, ownership};
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::error::Error;
use crate::smoke_row::unexpected;

/// Annotation with the whole former object, as JSON.
const BEFORE: &str = "blueprint.dev/before";
/// A field manager of its own: the next apply of the manifest, which does not name the annotation, must not drop it.
const MANAGER: &str = "blueprint-before";
/// What a server sets, and what a PUT must not bring. The former managers are brought: with them the object counts as theirs again, and no more as ours.
const SERVERS_OWN: [&str; 5] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
];

/// Called before `manifest` is applied: keeps what stands under its name, if somebody else made that and we have not touched it yet.
pub(crate) async fn remember(cluster: &Cluster, manifest: &Value) -> Result<(), Error> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let (Some(api_version), Some(kind), Some(name)) =
        (text("/apiVersion"), text("/kind"), text("/metadata/name"))
    else {
        return Ok(());
    };
    let namespace = text("/metadata/namespace");
    let Some(found) = cluster.get(api_version, kind, namespace, name).await? else {
        return Ok(());
    };
    if ownership::applied_by_us(&found.metadata) {
        return Ok(());
    }
    let before = former(&found, api_version, kind)?;
    let mut record = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "annotations": {BEFORE: before.to_string()}}
    });
    if let Some(namespace) = namespace {
        record["metadata"]["namespace"] = json!(namespace);
    }
    cluster.apply_as(MANAGER, &record).await?;
    Ok(())
}

/// The object as its maker left it.
fn former(found: &DynamicObject, api_version: &str, kind: &str) -> Result<Value, Error> {
    let mut object = serde_json::to_value(found).map_err(|error| {
        unexpected(
            &format!("keep what {kind} was"),
            error.to_string(),
            "run again",
        )
    })?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !SERVERS_OWN.contains(&field.as_str()));
    }
    Ok(object)
}

/// What is to be done with an object of ours when we leave.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Leaving {
    /// We made it.
    Delete,
    /// Somebody else did; it was this.
    PutBack(Value),
    /// Somebody else did, and what it was is not known: an earlier blueprint kept nothing.
    Leave,
}

pub(crate) fn leaving(found: &DynamicObject) -> Leaving {
    let annotations = found.metadata.annotations.as_ref();
    let before = annotations
        .and_then(|annotations| annotations.get(BEFORE))
        .and_then(|text| serde_json::from_str(text).ok());
    match before {
        Some(before) => Leaving::PutBack(before),
        None if ownership::other_manager(&found.metadata).is_some() => Leaving::Leave,
        None => Leaving::Delete,
    }
}

/// Puts a former object back.
pub(crate) async fn put_back(
    cluster: &Cluster,
    what: &str,
    before: &Value,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    if cluster.replace(before).await? {
        outcome.changed(format!("put {what} back to what it was before"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(metadata: &Value) -> DynamicObject {
        serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}, "status": {}}),
        )
        .unwrap()
    }

    #[test]
    fn what_is_kept_is_what_its_maker_wrote() {
        let found = object(
            &json!({"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"}}),
        );
        assert_eq!(
            former(&found, "v1", "ConfigMap").unwrap(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "labels": {"x": "y"}}, "data": {"a": "b"}})
        );
    }

    #[test]
    fn only_what_we_made_is_deleted() {
        let managed = |manager: &str| json!([{"manager": "blueprint", "operation": "Apply"}, {"manager": manager, "operation": "Update"}]);
        assert_eq!(
            leaving(&object(
                &json!({"name": "c", "managedFields": managed("kube-controller-manager")})
            )),
            Leaving::Delete
        );
        assert_eq!(
            leaving(&object(
                &json!({"name": "c", "managedFields": managed("kubectl-client-side-apply")})
            )),
            Leaving::Leave
        );
        let kept =
            object(&json!({"name": "c", "annotations": {BEFORE: "{\"kind\":\"ConfigMap\"}"}}));
        assert_eq!(
            leaving(&kept),
            Leaving::PutBack(json!({"kind": "ConfigMap"}))
        );
    }
}
