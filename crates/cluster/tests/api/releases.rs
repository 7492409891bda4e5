//! Helm's records.

use serde_json::json;

use crate::cluster_with;

#[tokio::test]
async fn a_releases_history_is_read_from_labels() {
    let cluster = cluster_with("releases").await;
    for (name, version, status) in [
        ("redis", "2", "superseded"),
        ("redis", "10", "pending-upgrade"),
        ("redis", "9", "deployed"),
        ("other", "1", "deployed"),
    ] {
        let record = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {
                "namespace": "releases", "name": format!("sh.helm.release.v1.{name}.v{version}"),
                "labels": {"owner": "helm", "name": name, "version": version, "status": status, "blueprint-inputs": "0123456789abcdef"}
            },
            "data": {"release": "AAAA"}
        });
        cluster.apply(&record).await.unwrap();
    }
    let release = cluster.release("releases", "redis").await.unwrap();
    assert_eq!(
        release
            .revisions
            .iter()
            .map(|revision| revision.revision)
            .collect::<Vec<_>>(),
        [2, 9, 10]
    );
    assert_eq!(release.newest().unwrap().status, "pending-upgrade");
    let deployed = release.last_deployed().unwrap();
    assert_eq!(
        (
            deployed.revision,
            deployed.labels.get("blueprint-inputs").map(String::as_str)
        ),
        (9, Some("0123456789abcdef"))
    );
    assert!(
        cluster
            .release("releases", "none")
            .await
            .unwrap()
            .newest()
            .is_none()
    );
}
