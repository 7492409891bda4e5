//! Two runs at once on one cluster, and what a killed one leaves. A control plane each: there is one Lease a cluster.

use std::time::Duration;

use blueprint_cluster::control_plane::ControlPlane;
use blueprint_cluster::run_lease::{NAME, NAMESPACE};
use blueprint_cluster::{Cluster, LeaseError, RunLease};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

fn api(cluster: &Cluster) -> Api<Lease> {
    Api::namespaced(cluster.client(), NAMESPACE)
}

async fn change(cluster: &Cluster, patch: &Value) {
    api(cluster)
        .patch(NAME, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

/// kube-system is made by the API server itself, a moment after it answers.
async fn cluster(plane: &ControlPlane) -> Cluster {
    let cluster = plane.cluster().await;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
        .await
        .unwrap();
    cluster
}

#[tokio::test]
async fn two_runs_at_once_the_second_is_told_who_holds_the_cluster_and_nothing_stays_behind() {
    let plane = ControlPlane::start().unwrap();
    let cluster = cluster(&plane).await;
    let first = RunLease::acquire(&cluster, "blueprint up").await.unwrap();
    assert_eq!(first.took_over(), None);
    let second = RunLease::acquire(&cluster, "blueprint down").await;
    let Err(error @ LeaseError::Held { .. }) = second else {
        panic!("{second:?}");
    };
    let text = format!("{error} {}", error.hint().unwrap());
    let pid = format!("process {} on ", std::process::id());
    assert!(
        text.contains(&pid) && text.contains("blueprint up, since 20"),
        "{text}"
    );
    first.release().await;
    assert!(api(&cluster).get_opt(NAME).await.unwrap().is_none());
    let third = RunLease::acquire(&cluster, "blueprint up").await.unwrap();
    third.release().await;
}

#[tokio::test]
async fn what_a_killed_run_left_is_taken_over() {
    let plane = ControlPlane::start().unwrap();
    let cluster = cluster(&plane).await;
    // Dropped, not released: as a killed process leaves it.
    drop(RunLease::acquire(&cluster, "blueprint up").await.unwrap());
    change(
        &cluster,
        &json!({"metadata": {"annotations": {"blueprint.dev/pid": "4194305"}}}),
    )
    .await;
    let next = RunLease::acquire(&cluster, "blueprint up").await.unwrap();
    assert!(next.took_over().unwrap().contains("process 4194305 on "));
    next.release().await;
}

#[tokio::test]
async fn a_silent_lease_of_another_machine_is_taken_only_when_it_stands_still() {
    let plane = ControlPlane::start().unwrap();
    let cluster = cluster(&plane).await;
    drop(RunLease::acquire(&cluster, "blueprint up").await.unwrap());
    let elsewhere = json!({
        "metadata": {"annotations": {"blueprint.dev/place": "another boot", "blueprint.dev/host": "laptop"}},
        "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"},
    });
    change(&cluster, &elsewhere).await;
    // Its clock is a year behind, but it lives.
    let sign = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        change(
            &cluster,
            &json!({"spec": {"renewTime": "2026-01-01T00:00:08.000000Z"}}),
        )
        .await;
    };
    let (second, ()) = tokio::join!(RunLease::acquire(&cluster, "blueprint up"), sign);
    assert!(
        matches!(&second, Err(LeaseError::Held { holder, .. }) if holder.host == "laptop"),
        "{second:?}"
    );
    // Now it does not move any more.
    let third = RunLease::acquire(&cluster, "blueprint up").await.unwrap();
    assert!(third.took_over().unwrap().contains("on laptop"));
    third.release().await;
}

#[tokio::test]
async fn a_run_that_lost_the_cluster_is_told_and_does_not_remove_the_others_lease() {
    let plane = ControlPlane::start().unwrap();
    let cluster = cluster(&plane).await;
    let first = RunLease::acquire(&cluster, "blueprint up").await.unwrap();
    api(&cluster)
        .delete(NAME, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let second = RunLease::acquire(&cluster, "blueprint down").await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), first.lost().cancelled())
        .await
        .expect("the next renewal shows it");
    assert!(first.lost_to().unwrap().contains("blueprint down"));
    first.release().await;
    assert!(api(&cluster).get_opt(NAME).await.unwrap().is_some());
    assert!(second.lost_to().is_none());
    second.release().await;
}

#[tokio::test]
async fn a_restart_of_the_api_server_does_not_lose_the_cluster() {
    let plane = ControlPlane::start().unwrap();
    let cluster = cluster(&plane).await;
    let run = RunLease::acquire(&cluster, "blueprint up").await.unwrap();
    let before = api(&cluster)
        .get(NAME)
        .await
        .unwrap()
        .metadata
        .resource_version;
    plane.stop_api_server();
    tokio::time::sleep(Duration::from_secs(9)).await;
    plane.start_api_server().unwrap();
    let renewed = async {
        while api(&cluster)
            .get(NAME)
            .await
            .ok()
            .and_then(|lease| lease.metadata.resource_version)
            .is_none_or(|version| Some(version) == before)
        {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), renewed)
        .await
        .expect("it is renewed again");
    assert!(run.lost_to().is_none());
    run.release().await;
}
