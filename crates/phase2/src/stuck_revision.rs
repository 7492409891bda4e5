//! Pods of a `StatefulSet` that hold up a roll-out: of an older version, and never ready.
//!
//! The controller updates a set only while its pods are healthy: a set whose pod could not start (a wrong image, too much memory asked for) stays with that pod
//! also when its template is right again, until somebody deletes it (Kubernetes documentation, `StatefulSet`, "Forced rollback").

use std::convert::Infallible;
use std::time::Duration;

use blueprint_cluster::is_ready;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::error::Error;
use crate::installer::Work;
use crate::workloads::Workload;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// A pod is deleted with its own grace period; one that never ran goes at once.
const GONE_WITHIN: Duration = Duration::from_mins(1);

/// Deletes such pods as long as it is polled: beside the wait for the set, whose deadline is the only end.
pub(crate) async fn free(workload: &Workload, work: Work<'_>) -> Infallible {
    loop {
        if let Err(error) = look(workload, work).await {
            // The wait beside it has its own patience and words for an API server that is away.
            tracing::debug!(%error, "looking for stuck pods of {}", workload.describe());
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn look(workload: &Workload, work: Work<'_>) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    let namespace = Some(workload.namespace);
    let set = cluster
        .get("apps/v1", workload.kind, namespace, workload.name)
        .await?;
    let Some(newest) = set.as_ref().and_then(newest_revision) else {
        return Ok(());
    };
    let pods = cluster.pods(workload.namespace, workload.pods).await?;
    for pod in pods {
        if !is_stuck(&pod, workload.name, newest) {
            continue;
        }
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        work.progress.say(format!(
            "deleting pod {}/{name}: it is of an older version and not ready, and its StatefulSet does not replace such a pod",
            workload.namespace
        ));
        cluster
            .delete("v1", "Pod", namespace, name, GONE_WITHIN)
            .await?;
    }
    Ok(())
}

/// The revision that the set's pods should have, once the controller has seen the newest template; `None` where pods are deleted by somebody else anyway.
fn newest_revision(set: &DynamicObject) -> Option<&str> {
    let text = |pointer: &str| set.data.pointer(pointer).and_then(Value::as_str);
    let observed = set.data.pointer("/status/observedGeneration")?.as_i64()?;
    (observed >= set.metadata.generation? && text("/spec/updateStrategy/type") != Some("OnDelete"))
        .then(|| text("/status/updateRevision"))?
}

fn is_stuck(pod: &Pod, set: &str, newest: &str) -> bool {
    let metadata = &pod.metadata;
    let of_the_set = metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.kind == "StatefulSet" && owner.name == set);
    let revision = metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get("controller-revision-hash"));
    of_the_set
        && metadata.deletion_timestamp.is_none()
        && revision.is_some_and(|revision| revision != newest)
        && !is_ready(pod)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(revision: &str, ready: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "redis-master-0", "labels": {"controller-revision-hash": revision},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "redis-master", "uid": "u"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_that_could_not_start_kept_its_set_from_the_right_version() {
        assert!(is_stuck(&pod("old", "False"), "redis-master", "new"));
        assert!(!is_stuck(&pod("new", "False"), "redis-master", "new"));
        // The controller itself replaces a healthy one.
        assert!(!is_stuck(&pod("old", "True"), "redis-master", "new"));
        assert!(!is_stuck(&pod("old", "False"), "other", "new"));
    }

    #[test]
    fn a_set_that_was_not_looked_at_yet_and_one_updated_by_hand_have_no_newest_revision() {
        let set = |observed: u8, strategy: &str| -> DynamicObject {
            serde_json::from_value(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "generation": 2},
                "spec": {"updateStrategy": {"type": strategy}}, "status": {"observedGeneration": observed, "updateRevision": "s-1"}}))
            .unwrap()
        };
        assert_eq!(newest_revision(&set(2, "RollingUpdate")), Some("s-1"));
        assert_eq!(newest_revision(&set(1, "RollingUpdate")), None);
        assert_eq!(newest_revision(&set(2, "OnDelete")), None);
    }
}
