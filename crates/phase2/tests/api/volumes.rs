//! Step 4: reserved volumes, and what happens to them between two clusters. There are no controllers here: the tests play the binder.

use blueprint_cluster::Cluster;
use blueprint_phase2::stable_storage::{StableStorage, ensure_volumes};
use blueprint_phase2::{Context, Error, Installer, Work};
use blueprint_pipeline::{Outcome, Progress};
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{Fixture, versions_of};

/// A volume of the test's own, reserved for claim `data` of namespace `test`.
fn volume(test: &str, path: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": format!("pv-{test}"), "annotations": {"blueprint.dev/owner": "1:1", "blueprint.dev/mode": "0700"}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "local-path",
            "hostPath": {"path": path, "type": "Directory"}, "claimRef": {"namespace": test, "name": claim}
        }
    })
}

/// The references are read at each use: the fixture's folder must stay as long as its context.
async fn context(test: &str) -> (Fixture, Context) {
    let fixture = Fixture::new();
    fixture.reference(
        "persistent-volumes.yaml",
        &volume(test, "/s/data", "data").to_string(),
    );
    let context = fixture.context().await;
    (fixture, context)
}

async fn ensure(context: &Context) -> Result<Outcome, Error> {
    let progress = Progress::silent();
    let mut outcome = Outcome::default();
    ensure_volumes(
        Work {
            context,
            progress: &progress,
        },
        &mut outcome,
    )
    .await?;
    Ok(outcome)
}

/// What the binder does when it binds, and when the claim goes.
async fn bind(cluster: &Cluster, name: &str, uid: &str, phase: &str) {
    let api: Api<PersistentVolume> = Api::all(cluster.client());
    let bound = json!({"spec": {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid, "resourceVersion": "1"}}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(bound))
        .await
        .unwrap();
    api.patch_status(
        name,
        &PatchParams::default(),
        &Patch::Merge(json!({"status": {"phase": phase}})),
    )
    .await
    .unwrap();
}

async fn claim_ref(cluster: &Cluster, name: &str) -> Value {
    cluster
        .get("v1", "PersistentVolume", None, name)
        .await
        .unwrap()
        .unwrap()
        .data["spec"]["claimRef"]
        .clone()
}

#[tokio::test]
async fn a_second_run_moves_no_resource_version_also_after_binding() {
    let (_fixture, context) = context("again").await;
    assert_eq!(ensure(&context).await.unwrap().changes.len(), 1);
    bind(&context.cluster, "pv-again", "uid-1", "Bound").await;
    let before = versions_of(&context.cluster, "v1", "PersistentVolume").await["pv-again"].clone();
    let again = ensure(&context).await.unwrap();
    assert!(again.changes.is_empty(), "{:?}", again.changes);
    assert_eq!(
        versions_of(&context.cluster, "v1", "PersistentVolume").await["pv-again"],
        before
    );
    assert_eq!(
        claim_ref(&context.cluster, "pv-again").await["uid"],
        json!("uid-1")
    );
}

#[tokio::test]
async fn a_released_volume_is_freed_for_the_same_claim_and_only_then() {
    let (_fixture, context) = context("released").await;
    ensure(&context).await.unwrap();
    bind(&context.cluster, "pv-released", "uid-1", "Released").await;
    let outcome = ensure(&context).await.unwrap();
    assert!(
        outcome
            .changes
            .iter()
            .any(|change| change.contains("Released")),
        "{:?}",
        outcome.changes
    );
    let reserved = claim_ref(&context.cluster, "pv-released").await;
    assert_eq!(reserved["name"], json!("data"));
    assert_eq!(reserved["namespace"], json!("released"));
    assert!(
        reserved["uid"].is_null() && reserved["resourceVersion"].is_null(),
        "{reserved}"
    );
}

#[tokio::test]
async fn a_volume_with_another_folder_or_claim_is_refused_and_untouched() {
    for (test, there) in [
        ("folder", volume("folder", "/elsewhere", "data")),
        ("claim", volume("claim", "/s/data", "other")),
    ] {
        let (_fixture, context) = context(test).await;
        context
            .cluster
            .apply_as("someone-else", &there)
            .await
            .unwrap();
        let name = format!("pv-{test}");
        let before = versions_of(&context.cluster, "v1", "PersistentVolume").await[&name].clone();
        assert!(
            matches!(ensure(&context).await, Err(Error::Refused { .. })),
            "{test}"
        );
        assert_eq!(
            versions_of(&context.cluster, "v1", "PersistentVolume").await[&name],
            before
        );
    }
}

/// Regression: a claim larger than its volume stays Pending and its event names only the storage class.
#[tokio::test]
async fn a_pending_claim_that_asks_for_more_is_named() {
    let (_fixture, context) = context("large").await;
    ensure(&context).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}});
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "large"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local-path", "resources": {"requests": {"storage": "2Gi"}}}
    });
    context
        .cluster
        .apply_all([&namespace, &claim])
        .await
        .unwrap();
    let error = ensure(&context).await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { found, expected, .. } if found == "2Gi" && expected.contains("1Gi")),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_embedded_volumes_are_taken_by_the_server_and_stay_as_they_are() {
    let fixture = Fixture::new();
    let context = fixture.context().await;
    assert!(ensure(&context).await.unwrap().changes.len() >= 7);
    // The server writes a claim once more by itself at the next apply, and from then on no more; on a real cluster the binder's writes come before that.
    ensure(&context).await.unwrap();
    let again = ensure(&context).await.unwrap();
    assert!(again.changes.is_empty(), "{:?}", again.changes);
    let progress = Progress::silent();
    let state = StableStorage
        .inspect(Work {
            context: &context,
            progress: &progress,
        })
        .await
        .unwrap();
    assert_eq!(state, blueprint_phase2::State::Ready);
}
