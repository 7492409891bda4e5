//! What only a real API server can answer, asked of a real one (see `blueprint_cluster::control_plane`).

mod apply;
mod blockers;
mod crds;
mod delete;
mod releases;
mod run_lease;
mod secrets;
mod volumes;
mod wait;

use blueprint_cluster::Cluster;
use blueprint_cluster::control_plane::ControlPlane;
use serde_json::{Value, json};

/// A connection, and a fresh namespace of that name.
async fn cluster_with(namespace: &str) -> Cluster {
    let cluster = ControlPlane::shared().cluster().await;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
        .await
        .unwrap();
    cluster
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": data})
}

fn nobody(_: String) {}
