//! A Released volume is freed by clearing what binds it to a claim that is gone, and nothing else.

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::cluster_with;

#[tokio::test]
async fn the_claim_reference_of_a_released_volume_is_cleared_but_for_its_name() {
    let cluster = cluster_with("volumes").await;
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-volumes"},
        "spec": {
            "capacity": {"storage": "8Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/var/local/shared/redis", "type": "Directory"},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "volumes", "name": "data"}
        }
    });
    cluster.apply(&volume).await.unwrap();
    // The part of the volume controller: bound, then released.
    let volumes = Api::<PersistentVolume>::all(cluster.client());
    let bound = json!({"spec": {"claimRef": {"uid": "6f3ad4d0-0000-0000-0000-000000000000", "resourceVersion": "7"}}});
    volumes
        .patch("pv-volumes", &PatchParams::default(), &Patch::Merge(bound))
        .await
        .unwrap();
    volumes
        .patch_status(
            "pv-volumes",
            &PatchParams::default(),
            &Patch::Merge(json!({"status": {"phase": "Released"}})),
        )
        .await
        .unwrap();
    let free = json!({"spec": {"claimRef": {"uid": null, "resourceVersion": null}}});
    assert!(
        cluster
            .merge_patch("v1", "PersistentVolume", None, "pv-volumes", &free)
            .await
            .unwrap()
    );
    let found = cluster
        .get("v1", "PersistentVolume", None, "pv-volumes")
        .await
        .unwrap()
        .unwrap();
    let reference = &found.data["spec"]["claimRef"];
    assert_eq!(
        (reference["namespace"].as_str(), reference["name"].as_str()),
        (Some("volumes"), Some("data"))
    );
    assert!(reference["uid"].is_null() && reference["resourceVersion"].is_null());
    assert!(
        !cluster
            .merge_patch("v1", "PersistentVolume", None, "pv-volumes", &free)
            .await
            .unwrap()
    );
}
