//! Server-side apply.

use blueprint_cluster::{Change, Error};
use serde_json::json;

use crate::{cluster_with, config_map};

#[tokio::test]
async fn an_apply_tells_created_configured_and_unchanged() {
    let cluster = cluster_with("apply-tells").await;
    let map = |value: &str| config_map("apply-tells", "a", &json!({"key": value}));
    let what = "ConfigMap apply-tells/a".to_owned();
    assert_eq!(
        cluster.apply(&map("1")).await.unwrap(),
        Change::Created(what.clone())
    );
    let version = async || {
        let found = cluster
            .get("v1", "ConfigMap", Some("apply-tells"), "a")
            .await
            .unwrap()
            .unwrap();
        found.metadata.resource_version.unwrap()
    };
    let first = version().await;
    assert_eq!(
        cluster.apply(&map("1")).await.unwrap(),
        Change::Unchanged(what.clone())
    );
    assert_eq!(
        version().await,
        first,
        "an apply without a change must not make a new resourceVersion"
    );
    assert_eq!(
        cluster.apply(&map("2")).await.unwrap(),
        Change::Configured(what)
    );
    assert_ne!(version().await, first);
}

#[tokio::test]
async fn a_field_of_another_manager_is_taken_over_and_its_other_fields_stay() {
    let cluster = cluster_with("apply-force").await;
    let theirs = config_map(
        "apply-force",
        "a",
        &json!({"shared": "theirs", "foreign": "stays"}),
    );
    cluster.apply_as("someone-else", &theirs).await.unwrap();
    cluster
        .apply(&config_map("apply-force", "a", &json!({"shared": "ours"})))
        .await
        .unwrap();
    let found = cluster
        .get("v1", "ConfigMap", Some("apply-force"), "a")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        found.data["data"],
        json!({"shared": "ours", "foreign": "stays"})
    );
}

#[tokio::test]
async fn apply_all_gives_phrases_for_changes_only() {
    let cluster = cluster_with("apply-all").await;
    let first = config_map("apply-all", "a", &json!({"k": "v"}));
    cluster.apply(&first).await.unwrap();
    let second = config_map("apply-all", "b", &json!({"k": "v"}));
    assert_eq!(
        cluster.apply_all([&first, &second]).await.unwrap(),
        ["created ConfigMap apply-all/b"]
    );
}

#[tokio::test]
async fn a_merge_patch_tells_whether_it_changed_anything() {
    let cluster = cluster_with("apply-merge").await;
    cluster
        .apply(&config_map("apply-merge", "a", &json!({"k": "v"})))
        .await
        .unwrap();
    let patch = json!({"metadata": {"annotations": {"mark": "true"}}});
    let apply = async || {
        cluster
            .merge_patch("v1", "ConfigMap", Some("apply-merge"), "a", &patch)
            .await
            .unwrap()
    };
    assert!(apply().await);
    assert!(!apply().await);
}

#[tokio::test]
async fn a_refusal_for_good_is_told_at_once_and_names_the_object() {
    let cluster = cluster_with("apply-refused").await;
    let started = std::time::Instant::now();
    let error = cluster
        .apply(&config_map("apply-no-such-namespace", "a", &json!({})))
        .await
        .unwrap_err();
    assert!(
        started.elapsed().as_secs() < 5,
        "a missing namespace does not come by waiting"
    );
    assert_eq!(
        error.to_string(),
        "failed to apply ConfigMap apply-no-such-namespace/a"
    );
    assert!(
        error.hint().unwrap().contains("namespace does not exist"),
        "{:?}",
        error.hint()
    );
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert!(
        matches!(cluster.apply(&nameless).await, Err(Error::Malformed(why)) if why.contains("no namespace"))
    );
}
