//! Step 12 taken down: nothing of GitLab goes before its Secrets are safe, and the Gateway's class is let go of also when its controller is gone.

use blueprint_cluster::Cluster;
use blueprint_cluster::control_plane::ControlPlane;
use blueprint_phase2::gitlab::Gitlab;
use blueprint_phase2::persistent_secrets::SecretsSnapshot;
use blueprint_phase2::{Error, Removal};
use blueprint_safekeeping::snapshot::Snapshot;
use serde_json::{Value, json};

use super::{seen, uninstall};
use crate::support::Fixture;

const NAMESPACE: &str = "gitlab";
const RAILS: &str = "gitlab-rails-secret";
const FINALIZER: &str = "gateway-exists-finalizer.gateway.networking.k8s.io";
const API: &str = "gateway.networking.k8s.io/v1";

fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    let group = "gateway.networking.k8s.io";
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "https://example.net/approved"}},
        "spec": {
            "group": group, "scope": scope, "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]
        }
    })
}

async fn secret(cluster: &Cluster, name: &str, value: &str) {
    let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"release": "gitlab"}},
        "stringData": {"key": value}});
    cluster.apply_as("kubectl", &manifest).await.unwrap();
}

async fn gateway_and_class(cluster: &Cluster, namespace: &str) {
    let objects = [
        definition("gatewayclasses", "GatewayClass", "Cluster"),
        definition("gateways", "Gateway", "Namespaced"),
        json!({"apiVersion": API, "kind": "GatewayClass", "metadata": {"name": "gitlab-gw", "finalizers": [FINALIZER, "theirs.example.net/x"]}}),
        json!({"apiVersion": API, "kind": "Gateway", "metadata": {"name": "gitlab-gw", "namespace": namespace}, "spec": {"gatewayClassName": "gitlab-gw"}}),
    ];
    for object in objects {
        cluster.apply_as("Helm", &object).await.unwrap();
    }
}

async fn namespace(cluster: &Cluster, name: &str) {
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    cluster.apply_as("Helm", &manifest).await.unwrap();
}

#[tokio::test]
async fn an_orphaned_class_is_freed_and_the_jobs_secrets_go_once_they_are_on_disk() {
    let plane = ControlPlane::start().unwrap();
    let fixture = Fixture::new();
    let context = fixture.context_on(&plane).await;
    let cluster = &context.cluster;
    namespace(cluster, NAMESPACE).await;
    gateway_and_class(cluster, NAMESPACE).await;
    secret(cluster, RAILS, "keys").await;
    secret(cluster, "gitlab-made-by-a-newer-job", "more").await;

    uninstall(&context, &Gitlab, Removal::Keep).await.unwrap();

    let class = seen(cluster, API, "GatewayClass", None, "gitlab-gw").await;
    assert_eq!(
        class.unwrap()["metadata"]["finalizers"],
        json!(["theirs.example.net/x"])
    );
    assert!(
        seen(cluster, API, "Gateway", Some(NAMESPACE), "gitlab-gw")
            .await
            .is_none()
    );
    for name in [RAILS, "gitlab-made-by-a-newer-job"] {
        assert!(
            seen(cluster, "v1", "Secret", Some(NAMESPACE), name)
                .await
                .is_none(),
            "{name}"
        );
    }
    let kept = Snapshot::read(&fixture.workspace().gitlab_snapshot())
        .unwrap()
        .unwrap();
    assert_eq!(kept.secrets.len(), 2);
    assert_eq!(kept.secrets[RAILS].data["key"].as_slice(), b"keys");
    // Cut off here and run again: there is nothing new to save, and that is no obstacle.
    uninstall(&context, &SecretsSnapshot, Removal::Keep)
        .await
        .unwrap();
    uninstall(&context, &Gitlab, Removal::Keep).await.unwrap();
}

#[tokio::test]
async fn secrets_that_cannot_be_saved_stay_and_so_does_everything() {
    let plane = ControlPlane::start().unwrap();
    let fixture = Fixture::new();
    let context = fixture.context_on(&plane).await;
    let cluster = &context.cluster;
    namespace(cluster, NAMESPACE).await;
    gateway_and_class(cluster, NAMESPACE).await;
    secret(cluster, RAILS, "keys").await;
    uninstall(&context, &SecretsSnapshot, Removal::Keep)
        .await
        .unwrap();
    // The chart's job has minted others behind our back: which of the two the database was written with is a person's to say.
    secret(cluster, RAILS, "minted anew").await;
    let before = seen(cluster, "v1", "Secret", Some(NAMESPACE), RAILS).await;

    for installer in [
        &SecretsSnapshot as &dyn blueprint_phase2::Installer,
        &Gitlab,
    ] {
        let error = uninstall(&context, installer, Removal::Keep)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
    }
    assert_eq!(
        seen(cluster, "v1", "Secret", Some(NAMESPACE), RAILS).await,
        before
    );
    assert!(
        seen(cluster, API, "Gateway", Some(NAMESPACE), "gitlab-gw")
            .await
            .is_some()
    );
    let kept = Snapshot::read(&fixture.workspace().gitlab_snapshot())
        .unwrap()
        .unwrap();
    assert_eq!(kept.secrets[RAILS].data["key"].as_slice(), b"keys");
}

#[tokio::test]
async fn somebody_elses_gateway_of_our_class_stops_it_before_anything_goes() {
    let plane = ControlPlane::start().unwrap();
    let fixture = Fixture::new();
    let context = fixture.context_on(&plane).await;
    namespace(&context.cluster, NAMESPACE).await;
    namespace(&context.cluster, "shop").await;
    gateway_and_class(&context.cluster, "shop").await;
    secret(&context.cluster, RAILS, "keys").await;
    let error = uninstall(&context, &Gitlab, Removal::Wipe)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Refused { found, .. } if found.contains("shop/gitlab-gw")),
        "{error}"
    );
    assert!(
        seen(&context.cluster, "v1", "Secret", Some(NAMESPACE), RAILS)
            .await
            .is_some()
    );
}
