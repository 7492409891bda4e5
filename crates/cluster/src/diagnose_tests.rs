//! Tests of the findings.

use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-11-30T12:00:00Z";

fn found(status: &Value) -> Option<Finding> {
    let value = json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [], "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "configure"}]},
        "status": status
    });
    pod(
        &serde_json::from_value(value).unwrap(),
        NOW.parse().unwrap(),
    )
}

fn container(state: &Value) -> Value {
    json!({"name": "redis", "image": "docker.io/bitnami/redis:8", "imageID": "", "ready": false, "restartCount": 3, "state": state})
}

fn running_pod(container: &Value) -> Value {
    json!({"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}], "containerStatuses": [container]})
}

#[test]
fn an_image_that_cannot_be_pulled_is_named() {
    let finding = found(&running_pod(&container(
        &json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}),
    )))
    .unwrap();
    assert_eq!(
        finding,
        Finding {
            reason: "ImagePullBackOff docker.io/bitnami/redis:8".to_owned(),
            serious: true,
            log: None
        }
    );
}

#[test]
fn a_crash_loop_tells_how_the_last_run_ended() {
    let mut crashing = container(&json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    crashing["lastState"] = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let finding = found(&running_pod(&crashing)).unwrap();
    assert_eq!(finding.reason, "CrashLoopBackOff (exit 137, OOMKilled)");
    assert_eq!(finding.log, Some(("redis".to_owned(), true)));
}

#[test]
fn a_missing_secret_is_named() {
    let finding = found(&running_pod(&container(&json!({"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"redis-auth\" not found"}})))).unwrap();
    assert_eq!(
        finding.reason,
        "CreateContainerConfigError: secret \"redis-auth\" not found"
    );
    assert!(finding.serious);
}

#[test]
fn an_init_container_is_named_and_a_running_sidecar_is_not_blamed() {
    let sidecar = json!({"name": "proxy", "image": "p", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let failing = json!({"name": "configure", "image": "c", "imageID": "", "ready": false, "restartCount": 1, "state": {"terminated": {"exitCode": 2, "reason": "Error", "message": "no such file\nconfigure failed\n"}}});
    let status = |inits: Value| json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}], "initContainerStatuses": inits});
    assert_eq!(
        found(&status(json!([sidecar, failing]))).unwrap().reason,
        "init container configure: exit 2: configure failed"
    );
    assert_eq!(found(&status(json!([sidecar]))).unwrap().reason, "starting");
}

#[test]
fn an_unschedulable_pod_is_serious_after_a_grace() {
    let pending = |since: &str| {
        found(&json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu.", "lastTransitionTime": since}]})).unwrap()
    };
    let fresh = pending("2026-11-30T11:59:55Z");
    assert_eq!(
        (fresh.reason.as_str(), fresh.serious),
        (
            "Pending: 0/3 nodes are available: 3 Insufficient cpu.",
            false
        )
    );
    assert!(pending("2026-11-30T11:59:00Z").serious);
}

#[test]
fn ready_finished_and_deleted_pods_block_nobody() {
    assert_eq!(found(&json!({"phase": "Succeeded"})), None);
    assert_eq!(
        found(&json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})),
        None
    );
    let deleted = json!({"metadata": {"name": "a", "deletionTimestamp": NOW}, "status": {"phase": "Running"}});
    assert_eq!(
        pod(
            &serde_json::from_value(deleted).unwrap(),
            NOW.parse().unwrap()
        ),
        None
    );
}

#[test]
fn a_container_that_starts_is_blamed_only_when_it_is_slow() {
    let started = |at: &str| {
        found(&running_pod(&container(
            &json!({"running": {"startedAt": at}}),
        )))
        .unwrap()
    };
    assert_eq!(
        started("2026-11-30T11:59:50Z"),
        Finding {
            reason: "redis runs and is not ready".to_owned(),
            serious: false,
            log: Some(("redis".to_owned(), false))
        }
    );
    assert!(started("2026-11-30T11:50:00Z").serious);
    assert_eq!(
        found(&running_pod(&container(
            &json!({"waiting": {"reason": "ContainerCreating"}})
        )))
        .unwrap()
        .reason,
        "starting"
    );
}

#[test]
fn an_evicted_pod_says_why() {
    let finding = found(&json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."})).unwrap();
    assert_eq!(
        finding.reason,
        "Failed: Evicted: The node was low on resource: ephemeral-storage."
    );
}
