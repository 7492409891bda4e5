//! Taking down: what we made goes, what was there before is as it was, and what somebody else made or uses stays. Each test has a control plane of its own,
//! because what it removes has no namespace.

mod coredns;
mod definitions;
mod gitlab;
mod namespaces;
mod provisioner;

use std::time::Duration;

use blueprint_cluster::Cluster;
use blueprint_phase2::{Context, Error, Installer, Removal, Work};
use blueprint_pipeline::{Outcome, Progress};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};

async fn uninstall(
    context: &Context,
    installer: &dyn Installer,
    removal: Removal,
) -> Result<Outcome, Error> {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    installer.uninstall(work, removal).await
}

async fn remains(context: &Context, installer: &dyn Installer) -> Vec<String> {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    installer.remains(work, Removal::Keep).await.unwrap()
}

/// Plays the namespace controller: what is being deleted is let go of.
async fn play_namespace_controller(cluster: Cluster) {
    let api: Api<Namespace> = Api::all(cluster.client());
    loop {
        let list = api.list(&ListParams::default()).await;
        for mut namespace in list.into_iter().flatten() {
            if namespace.metadata.deletion_timestamp.is_none() {
                continue;
            }
            let name = namespace.metadata.name.clone().unwrap();
            namespace.spec.get_or_insert_default().finalizers = None;
            let _ = api
                .replace_subresource("finalize", &name, &PostParams::default(), &namespace)
                .await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// An object without what a server sets: what its maker sees of it.
async fn seen(
    cluster: &Cluster,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<Value> {
    let found = cluster
        .get(api_version, kind, namespace, name)
        .await
        .unwrap()?;
    let mut object = serde_json::to_value(found).unwrap();
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
    ] {
        metadata.remove(field);
    }
    Some(object)
}

async fn namespace_by_another(cluster: &Cluster, name: &str) {
    let api: Api<Namespace> = Api::all(cluster.client());
    let namespace =
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"team": "shop"}}}))
            .unwrap();
    let parameters = PostParams {
        field_manager: Some("kubectl-create".to_owned()),
        ..PostParams::default()
    };
    api.create(&parameters, &namespace).await.unwrap();
}
