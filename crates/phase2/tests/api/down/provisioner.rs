//! Step 3 taken down: kind's provisioner, which bears the same names, is what it was.

use blueprint_cluster::Cluster;
use blueprint_cluster::control_plane::ControlPlane;
use blueprint_phase2::local_path_provisioner::LocalPathProvisioner;
use blueprint_phase2::{Context, Installer, Removal, Work};
use blueprint_pipeline::{Outcome, Progress};
use serde_json::{Value, json};

use super::{play_namespace_controller, remains, seen, uninstall};
use crate::local_path::{MANIFEST, play_deployment_controller};
use crate::support::Fixture;

const NAMESPACE: &str = "local-path-storage";
const STORAGE: &str = "storage.k8s.io/v1";

/// Objects as kind leaves them, some under our names.
fn before() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "local-path-config", "namespace": NAMESPACE},
            "data": {"config.json": "{\"nodePathMap\": []}", "teardown": "rm"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "local-path-provisioner", "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": "local-path-provisioner"}}, "template": {
                "metadata": {"labels": {"app": "local-path-provisioner"}},
                "spec": {"containers": [{"name": "local-path-provisioner", "image": "kind:old", "env": [{"name": "THEIRS", "value": "1"}]}]}}}}),
        json!({"apiVersion": STORAGE, "kind": "StorageClass", "provisioner": "rancher.io/local-path",
            "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}),
    ]
}

async fn install(context: &Context) {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    LocalPathProvisioner.install(work).await.unwrap();
}

async fn look(cluster: &Cluster) -> Vec<Option<Value>> {
    let mut all = Vec::new();
    for object in before() {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (api, kind) = (text("/apiVersion").unwrap(), text("/kind").unwrap());
        let name = text("/metadata/name").unwrap();
        all.push(seen(cluster, api, kind, text("/metadata/namespace"), name).await);
    }
    all
}

async fn has_our_class(cluster: &Cluster) -> bool {
    let found = cluster
        .get(STORAGE, "StorageClass", None, "local-path")
        .await;
    found.unwrap().is_some()
}

#[tokio::test]
async fn kinds_provisioner_and_default_class_are_what_they_were() {
    let plane = ControlPlane::start().unwrap();
    let mut fixture = Fixture::new();
    fixture.manifest("local-path", MANIFEST);
    let context = fixture.context_on(&plane).await;
    let cluster = &context.cluster;
    let controller = tokio::spawn(play_deployment_controller(cluster.clone()));
    for object in before() {
        cluster.apply_as("kind", &object).await.unwrap();
    }
    let former = look(cluster).await;

    install(&context).await;
    assert!(has_our_class(cluster).await);
    assert_ne!(look(cluster).await, former);
    // Twice: the second run must not take the first one's work for what was there before.
    install(&context).await;

    uninstall(&context, &LocalPathProvisioner, Removal::Keep)
        .await
        .unwrap();
    assert_eq!(look(cluster).await, former);
    assert!(!has_our_class(cluster).await);
    assert_eq!(remains(&context, &LocalPathProvisioner).await, [""; 0]);
    let again = uninstall(&context, &LocalPathProvisioner, Removal::Keep)
        .await
        .unwrap();
    assert_eq!(again, Outcome::default());
    controller.abort();
}

#[tokio::test]
async fn without_anything_before_nothing_is_left_and_a_used_class_stays() {
    let plane = ControlPlane::start().unwrap();
    let mut fixture = Fixture::new();
    fixture.manifest("local-path", MANIFEST);
    let context = fixture.context_on(&plane).await;
    let cluster = &context.cluster;
    let controller = tokio::spawn(play_deployment_controller(cluster.clone()));
    let namespaces = tokio::spawn(play_namespace_controller(cluster.clone()));
    install(&context).await;
    // Twice: an object of the manifest without a field of ours counted as somebody else's from the second run on.
    install(&context).await;
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "pvc-1", "annotations": {"pv.kubernetes.io/provisioned-by": "rancher.io/local-path"}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local-path",
            "hostPath": {"path": "/s/x"}, "claimRef": {"namespace": "shop", "name": "data"}}});
    cluster.apply_as("provisioner", &volume).await.unwrap();

    let outcome = uninstall(&context, &LocalPathProvisioner, Removal::Keep)
        .await
        .unwrap();
    assert!(outcome.changes.is_empty(), "{:?}", outcome.changes);
    assert!(
        outcome.notes[0].contains("shop/data"),
        "{:?}",
        outcome.notes
    );
    assert!(has_our_class(cluster).await);

    let patch = json!({"spec": {"storageClassName": "other"}});
    cluster
        .merge_patch("v1", "PersistentVolume", None, "pvc-1", &patch)
        .await
        .unwrap();
    uninstall(&context, &LocalPathProvisioner, Removal::Keep)
        .await
        .unwrap();
    assert!(!has_our_class(cluster).await);
    let namespace = cluster.get("v1", "Namespace", None, NAMESPACE).await;
    assert!(namespace.unwrap().is_none());
    assert_eq!(remains(&context, &LocalPathProvisioner).await, [""; 0]);
    controller.abort();
    namespaces.abort();
}
