//! Step 3: the only default class.

use std::time::Duration;

use blueprint_cluster::Cluster;
use blueprint_phase2::local_path_provisioner::LocalPathProvisioner;
use blueprint_phase2::smoke::CheckVerdict;
use blueprint_phase2::{Installer, Work};
use blueprint_pipeline::Progress;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::support::{Fixture, versions_of};

/// What upstream's manifest has in common with this one is the names.
pub(crate) const MANIFEST: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: local-path-storage}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: local-path-provisioner-service-account, namespace: local-path-storage}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: local-path-provisioner, namespace: local-path-storage}
spec:
  selector: {matchLabels: {app: local-path-provisioner}}
  template:
    metadata: {labels: {app: local-path-provisioner}}
    spec:
      containers: [{name: local-path-provisioner, image: "provisioner:test"}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local-path}
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
---
apiVersion: v1
kind: ConfigMap
metadata: {name: local-path-config, namespace: local-path-storage}
data:
  config.json: '{"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": ["/opt/local-path-provisioner"]}]}'
  setup: mkdir
"#;

/// Plays the Deployment controller until it is stopped.
pub(crate) async fn play_deployment_controller(cluster: Cluster) {
    let api: Api<Deployment> = Api::namespaced(cluster.client(), "local-path-storage");
    loop {
        if let Ok(Some(found)) = api.get_opt("local-path-provisioner").await {
            let generation = found.metadata.generation;
            let status = json!({"status": {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
            let _ = api
                .patch_status(
                    "local-path-provisioner",
                    &PatchParams::default(),
                    &Patch::Merge(status),
                )
                .await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn kinds_class_loses_the_default_mark_and_a_second_run_changes_nothing() {
    let mut fixture = Fixture::new();
    fixture.manifest("local-path", MANIFEST);
    let context = fixture.context().await;
    let controller = tokio::spawn(play_deployment_controller(context.cluster.clone()));
    let standard = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "rancher.io/local-path",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    });
    context.cluster.apply_as("kind", &standard).await.unwrap();
    let progress = Progress::silent();
    let work = Work {
        context: &context,
        progress: &progress,
    };

    let outcome = LocalPathProvisioner.install(work).await.unwrap();
    assert!(
        outcome
            .changes
            .iter()
            .any(|change| change.contains("standard")),
        "{:?}",
        outcome.changes
    );
    let config = context
        .cluster
        .get(
            "v1",
            "ConfigMap",
            Some("local-path-storage"),
            "local-path-config",
        )
        .await
        .unwrap()
        .unwrap();
    assert!(
        config.data["data"]["config.json"]
            .as_str()
            .unwrap()
            .contains("/var/local/shared")
    );
    assert_eq!(config.data["data"]["setup"], json!("mkdir"));
    assert_eq!(
        LocalPathProvisioner.smoke(work).await[0].verdict,
        CheckVerdict::Passed
    );

    let before = versions_of(&context.cluster, "storage.k8s.io/v1", "StorageClass").await;
    let again = LocalPathProvisioner.install(work).await.unwrap();
    assert!(again.changes.is_empty(), "{:?}", again.changes);
    assert_eq!(
        versions_of(&context.cluster, "storage.k8s.io/v1", "StorageClass").await,
        before
    );
    controller.abort();
}
