//! Everything that lives in a namespace, by its metadata.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};

use crate::connect::Cluster;
use crate::error::Error;
use crate::object::describe;
use crate::retry::patiently;

/// How many kinds are listed at once.
const AT_ONCE: usize = 8;
/// Kinds that follow from other objects or from time alone: they keep nobody in a namespace.
const DERIVED: [&str; 4] = ["Event", "Endpoints", "EndpointSlice", "Lease"];
/// What the control plane keeps in every namespace.
const EVERYWHERE: [(&str, &str); 2] = [
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
];

/// One object of a namespace.
#[derive(Debug, Clone)]
pub struct Resident {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

impl Resident {
    /// `Secret redis/redis-auth`.
    pub fn describe(&self) -> String {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        describe(&self.kind, self.metadata.namespace.as_deref(), name)
    }
}

impl Cluster {
    /// What somebody put into a namespace: without what the control plane keeps in each, without events, leases and endpoints, without objects that belong to
    /// another one (they go with it), and without what is being deleted. Kinds are asked of the server, custom ones too.
    pub async fn residents(&self, namespace: &str) -> Result<Vec<Resident>, Error> {
        let discovery = patiently("list the server's kinds", || {
            Discovery::new(self.client()).run_aggregated()
        })
        .await?;
        let kinds = discovery
            .groups()
            .flat_map(kube::discovery::ApiGroup::recommended_resources)
            .filter(|(resource, capabilities)| {
                capabilities.scope == Scope::Namespaced
                    && capabilities.supports_operation(verbs::LIST)
                    && capabilities.supports_operation(verbs::DELETE)
                    && !DERIVED.contains(&resource.kind.as_str())
            })
            .map(|(resource, _)| self.residents_of(resource, namespace));
        let found: Vec<Vec<Resident>> = futures::stream::iter(kinds.collect::<Vec<_>>())
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().filter(stays).collect())
    }

    async fn residents_of(
        &self,
        resource: ApiResource,
        namespace: &str,
    ) -> Result<Vec<Resident>, Error> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), namespace, &resource);
        let action = format!("list {} objects of {namespace}", resource.kind);
        let parameters = ListParams::default();
        let list = match patiently(&action, || api.list_metadata(&parameters)).await {
            // A custom kind whose definition has gone since.
            Err(Error::Api { source, .. }) if source.is_not_found() => return Ok(Vec::new()),
            list => list?,
        };
        Ok(list
            .items
            .into_iter()
            .map(|object| Resident {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
                metadata: object.metadata,
            })
            .collect())
    }
}

fn stays(resident: &Resident) -> bool {
    let metadata = &resident.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let owned = metadata
        .owner_references
        .as_ref()
        .is_some_and(|owners| !owners.is_empty());
    !owned
        && metadata.deletion_timestamp.is_none()
        && !EVERYWHERE.contains(&(resident.kind.as_str(), name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resident(kind: &str, metadata: Value) -> Resident {
        Resident {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            metadata: serde_json::from_value(metadata).unwrap(),
        }
    }

    #[test]
    fn what_goes_by_itself_keeps_nobody() {
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}]);
        assert!(!stays(&resident(
            "Pod",
            json!({"name": "p", "ownerReferences": owner})
        )));
        assert!(!stays(&resident(
            "ConfigMap",
            json!({"name": "kube-root-ca.crt"})
        )));
        assert!(!stays(&resident(
            "Pod",
            json!({"name": "p", "deletionTimestamp": "2026-11-30T00:00:00Z"})
        )));
        assert!(stays(&resident("ConfigMap", json!({"name": "mine"}))));
        assert!(stays(&resident("ServiceAccount", json!({"name": "mine"}))));
    }
}
