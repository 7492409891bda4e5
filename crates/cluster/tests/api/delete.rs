//! Deletions.

use std::time::Duration;

use blueprint_cluster::Error;
use serde_json::json;

use crate::{cluster_with, config_map};

#[tokio::test]
async fn a_deletion_waits_until_the_object_is_gone() {
    let cluster = cluster_with("delete-gone").await;
    let mut held = config_map("delete-gone", "a", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.apply(&held).await.unwrap();
    let error = cluster
        .delete(
            "v1",
            "ConfigMap",
            Some("delete-gone"),
            "a",
            Duration::from_secs(1),
        )
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Deadline { blocker, .. } if blocker.contains("example.com/hold")),
        "{error}"
    );
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let free = json!({"metadata": {"finalizers": null}});
        cluster
            .merge_patch("v1", "ConfigMap", Some("delete-gone"), "a", &free)
            .await
            .unwrap();
    };
    let (deleted, ()) = tokio::join!(
        cluster.delete(
            "v1",
            "ConfigMap",
            Some("delete-gone"),
            "a",
            Duration::from_secs(20)
        ),
        release
    );
    assert!(deleted.unwrap());
    assert!(
        !cluster
            .delete(
                "v1",
                "ConfigMap",
                Some("delete-gone"),
                "a",
                Duration::from_secs(20)
            )
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn a_rollout_restart_changes_the_pod_template() {
    let cluster = cluster_with("delete-restart").await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "delete-restart", "name": "coredns"},
        "spec": {
            "selector": {"matchLabels": {"app": "coredns"}},
            "template": {"metadata": {"labels": {"app": "coredns"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
        }
    });
    cluster.apply(&deployment).await.unwrap();
    cluster
        .rollout_restart("Deployment", "delete-restart", "coredns")
        .await
        .unwrap();
    let found = cluster
        .get("apps/v1", "Deployment", Some("delete-restart"), "coredns")
        .await
        .unwrap()
        .unwrap();
    assert!(found.data["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].is_string());
    assert_eq!(found.metadata.generation, Some(2));
    cluster.apply(&deployment).await.unwrap();
    let after = cluster
        .get("apps/v1", "Deployment", Some("delete-restart"), "coredns")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        after.metadata.generation,
        Some(2),
        "the next apply must not roll the pods again"
    );
}
