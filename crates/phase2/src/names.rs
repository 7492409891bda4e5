//! Names that more than one installer relies on.

/// Namespace of the PostgreSQL cluster.
pub const POSTGRESQL: &str = "postgresql";
/// Namespace of the CloudNativePG operator.
pub const CNPG_SYSTEM: &str = "cnpg-system";
/// The Cluster's name; its services are `postgresql-cnpg-rw`, …
pub const CNPG_CLUSTER: &str = "postgresql-cnpg";
/// Namespace of Redis.
pub const REDIS: &str = "redis";
/// Namespace of MinIO.
pub const MINIO: &str = "minio";
/// Namespace of OpenBao.
pub const OPENBAO: &str = "openbao";
/// Namespace of GitLab and its runner.
pub const GITLAB: &str = "gitlab";
/// The Gateway and its class, as the GitLab chart names them (`gateway.yaml` of its gatewayApiResources).
pub const GATEWAY: &str = "gitlab-gw";
/// Our Service in front of Envoy's pods: known before Envoy runs.
pub const GATEWAY_SERVICE: &str = "gitlab-gateway";
/// Object storage connection Secret (keys `connection`, `config`, `s3cfg`).
pub const RAILS_STORAGE: &str = "gitlab-rails-storage";

/// Applies one Namespace; answers the change phrase.
///
/// The label is more than decoration: a field manager that owns no field is dropped by the API server, and the next apply of the same manifest then counts
/// as the first one and moves the resourceVersion.
pub async fn ensure_namespace(
    cluster: &blueprint_cluster::Cluster,
    name: &str,
) -> Result<Option<String>, crate::Error> {
    let manifest = serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "blueprint"}}
    });
    Ok(cluster.apply(&manifest).await?.phrase())
}
