//! Deleting, and waiting until it is gone.

use std::time::Duration;

use blueprint_failpoint::failpoint;
use jiff::Timestamp;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::answer::Answer;
use crate::connect::Cluster;
use crate::error::Error;
use crate::object::describe;
use crate::retry::patiently;
use crate::watch::{ObjectWatch, Seen};

impl Cluster {
    /// Deletes an object (background propagation) and waits until it is gone. Answers whether it was there.
    pub async fn delete(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        deadline: Duration,
    ) -> Result<bool, Error> {
        let ends = Instant::now() + deadline;
        let known = match self.kind(api_version, kind).await {
            Err(Error::UnknownKind { .. }) => return Ok(false),
            known => known?,
        };
        let api = self.api_for_one(&known, namespace, name)?;
        let what = describe(kind, namespace, name);
        let Some(before) = patiently(&format!("read {what}"), || async {
            Answer::optional(api.get_metadata(name).await)
        })
        .await?
        else {
            return Ok(false);
        };
        failpoint!(before, "delete", "{what}");
        patiently(&format!("delete {what}"), || async {
            Answer::optional(api.delete(name, &DeleteParams::background()).await)
        })
        .await?;
        failpoint!(after, "delete", "{what}");
        let mut watch = ObjectWatch::new(self, api_version, kind, namespace, name);
        let mut blocker = "it is still there".to_owned();
        loop {
            match timeout_at(ends, watch.next()).await {
                Ok(Ok(Seen::Absent)) => return Ok(true),
                // Made anew by somebody else: the one that was meant is gone.
                Ok(Ok(Seen::Present(object))) if object.metadata.uid != before.metadata.uid => {
                    return Ok(true);
                }
                Ok(Ok(Seen::Present(object))) => blocker = holder(&object),
                Ok(Ok(Seen::Broken(why))) => {
                    blocker = format!("the API server does not answer: {why}");
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    return Err(Error::Deadline {
                        what: format!("the deletion of {what}"),
                        deadline,
                        blocker: format!("{what}: {blocker}"),
                        evidence: Vec::new(),
                    });
                }
            }
        }
    }

    /// Restarts a Deployment, StatefulSet or DaemonSet as `kubectl rollout restart` does.
    pub async fn rollout_restart(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Error> {
        let known = self.kind("apps/v1", kind).await?;
        let api = self.api_for_one(&known, Some(namespace), name)?;
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": Timestamp::now().to_string()}}}}});
        let what = describe(kind, Some(namespace), name);
        let patch = Patch::Merge(patch);
        let parameters = PatchParams::default();
        failpoint!(before, "restart", "{what}");
        patiently(&format!("restart {what}"), || {
            api.patch_metadata(name, &parameters, &patch)
        })
        .await?;
        failpoint!(after, "restart", "{what}");
        Ok(())
    }
}

/// What keeps an object that is being deleted: its finalizers, or what a Namespace says remains in it.
fn holder(object: &DynamicObject) -> String {
    let remains = object
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|condition| {
            let text = |field: &str| {
                condition
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            text("type").starts_with("Namespace") && text("status") == "True"
        })
        .filter_map(|condition| condition.get("message").and_then(Value::as_str))
        .collect::<Vec<_>>();
    if !remains.is_empty() {
        return remains.join("; ");
    }
    match object.metadata.finalizers.as_deref() {
        Some(finalizers) if !finalizers.is_empty() => {
            format!("held by the finalizer {}", finalizers.join(", "))
        }
        _ if object.metadata.deletion_timestamp.is_some() => {
            "it is being deleted and not gone yet".to_owned()
        }
        _ => "it is still there".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_deleted_object_is_named() {
        let object = |value: Value| serde_json::from_value::<DynamicObject>(value).unwrap();
        let held = object(
            json!({"metadata": {"name": "a", "finalizers": ["kubernetes.io/pvc-protection"]}}),
        );
        assert_eq!(
            holder(&held),
            "held by the finalizer kubernetes.io/pvc-protection"
        );
        let namespace = object(json!({
            "metadata": {"name": "gitlab", "deletionTimestamp": "2026-11-30T00:00:00Z"},
            "status": {"conditions": [
                {"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources are remaining: gateways. has 1 resource instances"},
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all fine"}
            ]}
        }));
        assert_eq!(
            holder(&namespace),
            "Some resources are remaining: gateways. has 1 resource instances"
        );
    }
}
