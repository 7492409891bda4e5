//! Step 10 taken down: the Corefile byte for byte, the pod template without our mark, no `ReplicaSet` left of it.

use std::time::Duration;

use blueprint_cluster::Cluster;
use blueprint_cluster::control_plane::ControlPlane;
use blueprint_phase2::coredns_patch::CoreDnsPatch;
use blueprint_phase2::{Error, Removal};
use blueprint_pipeline::Outcome;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::{play_namespace_controller, remains, seen, uninstall};
use crate::support::Fixture;

const SYSTEM: &str = "kube-system";
const BEFORE: &str =
    ".:53 {\n    errors\n\tkubernetes cluster.local {\n    }\n  # mine, no line end";
const STANZA: &str = "    # blueprint:begin\n    rewrite stop {\n    }\n    # blueprint:end\n";

fn template(annotations: &Value) -> Value {
    json!({"metadata": {"labels": {"k8s-app": "kube-dns"}, "annotations": annotations},
        "spec": {"containers": [{"name": "coredns", "image": "coredns:test"}]}})
}

fn set(name: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": SYSTEM, "labels": {"k8s-app": "kube-dns"}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"k8s-app": "kube-dns"}}, "template": template(annotations)}})
}

async fn play_rollout(cluster: Cluster) {
    let api: Api<Deployment> = Api::namespaced(cluster.client(), SYSTEM);
    loop {
        if let Ok(Some(found)) = api.get_opt("coredns").await {
            let status = json!({"status": {"observedGeneration": found.metadata.generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
            let _ = api
                .patch_status("coredns", &PatchParams::default(), &Patch::Merge(status))
                .await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn apply(cluster: &Cluster, corefile: &str) {
    let mark = json!({"blueprint/corefile": "0123"});
    let objects = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": SYSTEM}, "data": {"Corefile": corefile}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "coredns", "namespace": SYSTEM},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"k8s-app": "kube-dns"}}, "template": template(&mark)}}),
        set("coredns-before", &json!({})),
        set("coredns-marked", &mark),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gitlab", "labels": {"app.kubernetes.io/managed-by": "blueprint"}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gitlab-gateway", "namespace": "gitlab"}, "spec": {"ports": [{"port": 443}]}}),
    ];
    for object in &objects[..4] {
        cluster.apply_as("kubeadm", object).await.unwrap();
    }
    for object in &objects[4..] {
        cluster.apply(object).await.unwrap();
    }
}

#[tokio::test]
async fn the_corefile_and_the_template_are_what_they_were() {
    let plane = ControlPlane::start().unwrap();
    let fixture = Fixture::new();
    let context = fixture.context_on(&plane).await;
    let cluster = &context.cluster;
    let rollout = tokio::spawn(play_rollout(cluster.clone()));
    let namespaces = tokio::spawn(play_namespace_controller(cluster.clone()));
    let patched = BEFORE.replacen(".:53 {\n", &format!(".:53 {{\n{STANZA}"), 1);
    apply(cluster, &patched).await;
    assert_eq!(remains(&context, &CoreDnsPatch).await.len(), 3);

    uninstall(&context, &CoreDnsPatch, Removal::Keep)
        .await
        .unwrap();

    let map = seen(cluster, "v1", "ConfigMap", Some(SYSTEM), "coredns").await;
    assert_eq!(map.unwrap()["data"], json!({"Corefile": BEFORE}));
    let workload = seen(cluster, "apps/v1", "Deployment", Some(SYSTEM), "coredns").await;
    let annotations = &workload.unwrap()["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations, &Value::Null);
    let there = |name: &'static str| async move {
        seen(cluster, "apps/v1", "ReplicaSet", Some(SYSTEM), name).await
    };
    assert!(there("coredns-before").await.is_some());
    assert!(there("coredns-marked").await.is_none());
    assert!(
        seen(cluster, "v1", "Namespace", None, "gitlab")
            .await
            .is_none()
    );
    let again = uninstall(&context, &CoreDnsPatch, Removal::Keep)
        .await
        .unwrap();
    assert_eq!(again, Outcome::default());
    rollout.abort();
    namespaces.abort();
}

#[tokio::test]
async fn a_corefile_with_a_torn_block_is_refused_and_stays() {
    let plane = ControlPlane::start().unwrap();
    let fixture = Fixture::new();
    let context = fixture.context_on(&plane).await;
    let torn = BEFORE.replacen(".:53 {\n", ".:53 {\n    # blueprint:begin\n", 1);
    apply(&context.cluster, &torn).await;
    let error = uninstall(&context, &CoreDnsPatch, Removal::Wipe)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    let map = seen(&context.cluster, "v1", "ConfigMap", Some(SYSTEM), "coredns").await;
    assert_eq!(map.unwrap()["data"]["Corefile"], json!(torn));
}
