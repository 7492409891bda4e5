//! Who blocks, told from pods, claims, jobs and events; the test plays kubelet, scheduler and controllers.

use std::time::Duration;

use blueprint_cluster::wait::workload_ready;
use blueprint_cluster::{Cluster, Error, WaitFor};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{cluster_with, nobody};

async fn pod(cluster: &Cluster, namespace: &str, name: &str, status: &Value) {
    let manifest = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": "redis"}},
        "spec": {
            "containers": [{"name": "redis", "image": "docker.io/bitnami/redis:8"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "redis-data"}}]
        }
    });
    cluster.apply(&manifest).await.unwrap();
    let pods = Api::<Pod>::namespaced(cluster.client(), namespace);
    pods.patch_status(
        name,
        &PatchParams::default(),
        &Patch::Merge(json!({"status": status})),
    )
    .await
    .unwrap();
}

async fn warn(
    cluster: &Cluster,
    namespace: &str,
    kind: &str,
    name: &str,
    reason: &str,
    message: &str,
) {
    let event = json!({
        "metadata": {"namespace": namespace, "generateName": "e-"}, "type": "Warning", "reason": reason, "message": message,
        "lastTimestamp": jiff::Timestamp::now().to_string(),
        "involvedObject": {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}
    });
    let events = Api::<Event>::namespaced(cluster.client(), namespace);
    events
        .create(
            &PostParams::default(),
            &serde_json::from_value(event).unwrap(),
        )
        .await
        .unwrap();
}

fn image_pull() -> Value {
    json!({
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{
            "name": "redis", "image": "docker.io/bitnami/redis:8", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
        }]
    })
}

#[tokio::test]
async fn a_deadline_names_the_image_that_cannot_be_pulled() {
    let cluster = cluster_with("blockers-image").await;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "blockers-image", "name": "redis-master"},
        "spec": {
            "serviceName": "redis", "selector": {"matchLabels": {"app": "redis"}},
            "template": {"metadata": {"labels": {"app": "redis"}}, "spec": {"containers": [{"name": "redis", "image": "r"}]}}
        }
    });
    cluster.apply(&set).await.unwrap();
    pod(&cluster, "blockers-image", "redis-master-0", &image_pull()).await;
    warn(
        &cluster,
        "blockers-image",
        "Pod",
        "redis-master-0",
        "Failed",
        "Failed to pull image: not found",
    )
    .await;
    let target = WaitFor {
        what: "Redis",
        api_version: "apps/v1",
        kind: "StatefulSet",
        namespace: Some("blockers-image"),
        name: "redis-master",
        pods: Some("app=redis"),
        deadline: Duration::from_secs(1),
    };
    let error = cluster
        .wait(&target, &workload_ready, &nobody)
        .await
        .unwrap_err();
    let Error::Deadline {
        blocker, evidence, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        blocker,
        "pod blockers-image/redis-master-0: ImagePullBackOff docker.io/bitnami/redis:8 (Failed: Failed to pull image: not found)"
    );
    assert!(
        evidence
            .iter()
            .any(|line| line.contains("event Pod blockers-image/redis-master-0: Failed")),
        "{evidence:?}"
    );
    assert!(
        evidence[0].starts_with("StatefulSet blockers-image/redis-master:"),
        "{evidence:?}"
    );
}

#[tokio::test]
async fn an_unbound_claim_is_blamed_with_its_volumes_reason() {
    let cluster = cluster_with("blockers-claim").await;
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "blockers-claim-redis"},
        "spec": {
            "capacity": {"storage": "8Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/var/local/shared/redis"},
            "claimRef": {"namespace": "blockers-claim", "name": "redis-data"}
        }
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "blockers-claim", "name": "redis-data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local-path", "resources": {"requests": {"storage": "10Gi"}}}
    });
    cluster.apply_all([&volume, &claim]).await.unwrap();
    let unscheduled = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "pod has unbound immediate PersistentVolumeClaims"}]});
    pod(&cluster, "blockers-claim", "redis-master-0", &unscheduled).await;
    warn(
        &cluster,
        "blockers-claim",
        "PersistentVolumeClaim",
        "redis-data",
        "ProvisioningFailed",
        "storageclass not found",
    )
    .await;
    let blockers = cluster
        .blockers("blockers-claim", "app=redis")
        .await
        .unwrap();
    assert_eq!(
        blockers[0].to_string(),
        "PersistentVolumeClaim blockers-claim/redis-data: it asks for 10Gi, and its volume blockers-claim-redis holds 8Gi (ProvisioningFailed: storageclass not found)"
    );
    assert!(
        blockers[1].reason.starts_with("Pending: pod has unbound"),
        "{blockers:?}"
    );
}

#[tokio::test]
async fn a_failed_job_is_blamed_and_ready_pods_are_not() {
    let cluster = cluster_with("blockers-job").await;
    pod(
        &cluster,
        "blockers-job",
        "ready",
        &json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    )
    .await;
    assert_eq!(
        cluster
            .ready_pod("blockers-job", "app=redis")
            .await
            .unwrap()
            .as_deref(),
        Some("ready")
    );
    assert!(
        cluster
            .blockers("blockers-job", "app=redis")
            .await
            .unwrap()
            .is_empty()
    );
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "blockers-job", "name": "migrations", "labels": {"app": "redis"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "m"}]}}}
    });
    cluster.apply(&job).await.unwrap();
    let jobs = Api::<Job>::namespaced(cluster.client(), "blockers-job");
    let now = jiff::Timestamp::now().to_string();
    let failed = json!({"status": {"startTime": now, "conditions": [
        {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": now},
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too many", "lastTransitionTime": now}
    ]}});
    jobs.patch_status("migrations", &PatchParams::default(), &Patch::Merge(failed))
        .await
        .unwrap();
    let blockers = cluster.blockers("blockers-job", "app=redis").await.unwrap();
    assert_eq!(blockers.len(), 1, "{blockers:?}");
    assert_eq!(
        blockers[0].to_string(),
        "Job blockers-job/migrations: Failed (BackoffLimitExceeded: too many)"
    );
}

#[tokio::test]
async fn a_controller_that_may_not_make_its_pod_is_blamed() {
    let cluster = cluster_with("blockers-quota").await;
    warn(
        &cluster,
        "blockers-quota",
        "StatefulSet",
        "redis-master",
        "FailedCreate",
        "pods \"redis-master-0\" is forbidden: exceeded quota",
    )
    .await;
    let blockers = cluster
        .blockers("blockers-quota", "app=redis")
        .await
        .unwrap();
    assert_eq!(
        blockers[0].to_string(),
        "StatefulSet blockers-quota/redis-master: it has no pod: pods \"redis-master-0\" is forbidden: exceeded quota"
    );
}
