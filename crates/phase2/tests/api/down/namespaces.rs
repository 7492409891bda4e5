//! A namespace goes with the last of ours, and never with somebody else in it.

use std::time::Duration;

use blueprint_cluster::Cluster;
use blueprint_cluster::control_plane::ControlPlane;
use blueprint_phase2::Removal;
use blueprint_phase2::wildcard_certs::{SECRETS, WildcardCerts};
use serde_json::json;

use super::{namespace_by_another, play_namespace_controller, remains, seen, uninstall};
use crate::support::Fixture;

const NAMESPACE: &str = "gitlab";

async fn our_secrets(cluster: &Cluster) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "blueprint"}}});
    cluster.apply(&namespace).await.unwrap();
    for name in SECRETS {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": {"tls.crt": "", "tls.key": ""}});
        cluster.apply(&secret).await.unwrap();
    }
}

fn map(manager_is: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": NAMESPACE}, "data": {"of": manager_is}})
}

#[tokio::test]
async fn it_stays_for_others_of_ours_and_for_strangers_and_goes_when_empty() {
    let plane = ControlPlane::start().unwrap();
    let fixture = Fixture::new();
    let context = fixture.context_on(&plane).await;
    let cluster = &context.cluster;
    let controller = tokio::spawn(play_namespace_controller(cluster.clone()));
    let second = Duration::from_secs(20);
    let there = || async {
        seen(cluster, "v1", "Namespace", None, NAMESPACE)
            .await
            .is_some()
    };

    our_secrets(cluster).await;
    assert_eq!(remains(&context, &WildcardCerts).await.len(), SECRETS.len());
    cluster.apply(&map("another component")).await.unwrap();
    let outcome = uninstall(&context, &WildcardCerts, Removal::Wipe)
        .await
        .unwrap();
    assert_eq!(
        (outcome.changes.len(), outcome.notes.len()),
        (SECRETS.len(), 0)
    );
    assert!(there().await, "another component of ours is in it");

    cluster
        .delete("v1", "ConfigMap", Some(NAMESPACE), "other", second)
        .await
        .unwrap();
    cluster
        .apply_as("kubectl", &map("a stranger"))
        .await
        .unwrap();
    let outcome = uninstall(&context, &WildcardCerts, Removal::Wipe)
        .await
        .unwrap();
    assert!(outcome.changes.is_empty(), "{:?}", outcome.changes);
    assert!(
        outcome.notes[0].contains("ConfigMap gitlab/other"),
        "{:?}",
        outcome.notes
    );
    assert!(there().await);

    cluster
        .delete("v1", "ConfigMap", Some(NAMESPACE), "other", second)
        .await
        .unwrap();
    let outcome = uninstall(&context, &WildcardCerts, Removal::Wipe)
        .await
        .unwrap();
    assert_eq!(outcome.changes, ["deleted Namespace gitlab"]);
    assert!(!there().await);
    controller.abort();
}

#[tokio::test]
async fn one_that_was_there_before_us_only_loses_our_label() {
    let plane = ControlPlane::start().unwrap();
    let fixture = Fixture::new();
    let context = fixture.context_on(&plane).await;
    namespace_by_another(&context.cluster, NAMESPACE).await;
    let before = seen(&context.cluster, "v1", "Namespace", None, NAMESPACE).await;
    our_secrets(&context.cluster).await;

    uninstall(&context, &WildcardCerts, Removal::Wipe)
        .await
        .unwrap();
    let after = seen(&context.cluster, "v1", "Namespace", None, NAMESPACE).await;
    assert_eq!(after, before);
}
