//! What charts may name although they do not make it: made by an installer, by the GitLab chart's own job, or by an operator.

use std::collections::BTreeSet;

use blueprint_charts::dangling::ObjectRef;
use serde_json::Value;

use crate::{names, persistent_secrets, wildcard_certs};

/// kind, namespace, name; each with its maker.
const MADE: &[(&str, &str, &str)] = &[
    // local_path_provisioner.rs
    ("StorageClass", "", "local-path"),
    // redis.rs, minio.rs, openbao.rs: the charts' existingSecret
    ("Secret", names::REDIS, "redis-auth"),
    ("Secret", names::MINIO, "minio-root"),
    ("Secret", names::OPENBAO, "openbao-pg"),
    // stable_storage.rs
    ("PersistentVolumeClaim", names::MINIO, "minio"),
    (
        "PersistentVolumeClaim",
        names::REDIS,
        "redis-data-redis-master-0",
    ),
    // minio.rs, gitlab.rs: what points GitLab at PostgreSQL, Redis and object storage
    ("Secret", names::GITLAB, names::RAILS_STORAGE),
    ("Secret", names::GITLAB, "gitlab-psql"),
    ("Secret", names::GITLAB, "gitlab-openbao-psql"),
    ("Secret", names::GITLAB, "gitlab-redis"),
    // runner.rs
    ("Secret", names::GITLAB, "gitlab-runner-token"),
    // Envoy Gateway's certgen hook (gateway-helm, templates/certgen.yaml) makes its control plane's certificates.
    ("Secret", names::GITLAB, "envoy-gateway"),
    ("Secret", names::GITLAB, "envoy"),
    ("Secret", names::GITLAB, "envoy-rate-limit"),
    ("Secret", names::GITLAB, "envoy-oidc-hmac"),
    // The CloudNativePG operator makes its webhook's certificate at its first start.
    ("Secret", names::CNPG_SYSTEM, "cnpg-webhook-cert"),
];

/// All of it.
pub(super) fn all() -> BTreeSet<ObjectRef> {
    let made = MADE
        .iter()
        .map(|(kind, namespace, name)| ObjectRef::new(kind, namespace, name));
    // wildcard_certs.rs: every Secret that a listener may name; a listener with another one is dangling, and that is the point.
    let tls = wildcard_certs::SECRETS
        .iter()
        .map(|name| ObjectRef::new("Secret", names::GITLAB, name));
    // The chart's shared-secrets job.
    let generated = persistent_secrets::GENERATED
        .iter()
        .map(|name| ObjectRef::new("Secret", names::GITLAB, name));
    made.chain(tls).chain(generated).collect()
}

/// A rendered object's identity.
pub(super) fn identity(object: &Value, default_namespace: &str) -> Option<ObjectRef> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    Some(ObjectRef::new(
        text("/kind")?,
        text("/metadata/namespace").unwrap_or(default_namespace),
        text("/metadata/name")?,
    ))
}
