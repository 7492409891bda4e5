//! Pods that still run with what a Secret held before it was last changed. A Secret's new content reaches neither an environment variable nor a file that
//! was read at start, and nothing restarts the pod. The comparison of times needs no memory of our own, so a run that was cut off between the change
//! and the restart is made up for by the next.

use blueprint_cluster::Cluster;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use crate::error::Error;

/// When the Secret was last changed; `None` when there is none. An apply that changes nothing leaves the time as it was.
pub(crate) async fn last_changed(
    cluster: &Cluster,
    namespace: &str,
    secret: &str,
) -> Result<Option<Timestamp>, Error> {
    let object = cluster.get("v1", "Secret", Some(namespace), secret).await?;
    Ok(object.and_then(|object| newest_write(&object.metadata)))
}

/// Names of the pods behind `selector` that started before any of `secrets` was last changed.
pub(crate) async fn outdated_pods(
    cluster: &Cluster,
    namespace: &str,
    selector: &str,
    secrets: &[&str],
) -> Result<Vec<String>, Error> {
    let mut newest = None;
    for secret in secrets {
        newest = newest.max(last_changed(cluster, namespace, secret).await?);
    }
    let Some(newest) = newest else {
        return Ok(Vec::new());
    };
    let pods = cluster.pods(namespace, selector).await?;
    Ok(pods
        .iter()
        .filter(|pod| started_before(pod, newest))
        .filter_map(|pod| pod.metadata.name.clone())
        .collect())
}

fn newest_write(metadata: &ObjectMeta) -> Option<Timestamp> {
    let writes = metadata
        .managed_fields
        .iter()
        .flatten()
        .filter_map(|entry| entry.time.as_ref().map(|time| time.0))
        .max();
    writes.or_else(|| metadata.creation_timestamp.as_ref().map(|time| time.0))
}

fn started_before(pod: &Pod, moment: Timestamp) -> bool {
    let being_deleted = pod.metadata.deletion_timestamp.is_some();
    let started = pod
        .status
        .as_ref()
        .and_then(|status| status.start_time.as_ref());
    !being_deleted && started.is_some_and(|time| time.0 < moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn pod(start: Option<&str>) -> Pod {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p"},
            "status": start.map_or_else(|| serde_json::json!({}), |start| serde_json::json!({"startTime": start})),
        }))
        .unwrap()
    }

    #[test]
    fn the_newest_write_counts_not_the_creation() {
        let metadata: ObjectMeta = serde_json::from_value(serde_json::json!({
            "creationTimestamp": "2026-11-30T10:00:00Z",
            "managedFields": [
                {"manager": "blueprint", "operation": "Apply", "time": "2026-11-30T12:00:00Z"},
                {"manager": "kubectl", "operation": "Update", "time": "2026-11-30T11:00:00Z"},
            ],
        }))
        .unwrap();
        assert_eq!(
            newest_write(&metadata),
            Some(moment("2026-11-30T12:00:00Z"))
        );
    }

    #[test]
    fn a_pod_that_started_before_the_change_is_outdated() {
        let changed = moment("2026-11-30T12:00:00Z");
        assert!(started_before(&pod(Some("2026-11-30T11:59:59Z")), changed));
        assert!(!started_before(&pod(Some("2026-11-30T12:00:00Z")), changed));
    }

    #[test]
    fn a_pod_that_has_not_started_will_read_the_new_content() {
        assert!(!started_before(&pod(None), moment("2026-11-30T12:00:00Z")));
    }
}
