//! Objects by apiVersion and kind.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::error::DiscoveryError;
use serde_json::Value;

use crate::answer::Answer;
use crate::connect::Cluster;
use crate::error::Error;
use crate::retry::patiently;

/// A kind the server knows.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Its resource.
    pub resource: ApiResource,
    /// Namespaced or not.
    pub scope: Scope,
}

/// Kinds that every cluster has: apiVersion, kind, plural, namespaced.
const WELL_KNOWN: [(&str, &str, &str, bool); 38] = [
    ("v1", "Namespace", "namespaces", false),
    ("v1", "Node", "nodes", false),
    ("v1", "PersistentVolume", "persistentvolumes", false),
    (
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        true,
    ),
    ("v1", "Pod", "pods", true),
    ("v1", "Service", "services", true),
    ("v1", "Endpoints", "endpoints", true),
    ("v1", "ConfigMap", "configmaps", true),
    ("v1", "Secret", "secrets", true),
    ("v1", "ServiceAccount", "serviceaccounts", true),
    ("v1", "Event", "events", true),
    ("v1", "LimitRange", "limitranges", true),
    ("v1", "ResourceQuota", "resourcequotas", true),
    ("apps/v1", "Deployment", "deployments", true),
    ("apps/v1", "StatefulSet", "statefulsets", true),
    ("apps/v1", "DaemonSet", "daemonsets", true),
    ("apps/v1", "ReplicaSet", "replicasets", true),
    ("batch/v1", "Job", "jobs", true),
    ("batch/v1", "CronJob", "cronjobs", true),
    ("rbac.authorization.k8s.io/v1", "Role", "roles", true),
    (
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
        true,
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
        false,
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        false,
    ),
    ("storage.k8s.io/v1", "StorageClass", "storageclasses", false),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        false,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        false,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
    ),
    (
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        true,
    ),
    ("networking.k8s.io/v1", "Ingress", "ingresses", true),
    (
        "networking.k8s.io/v1",
        "IngressClass",
        "ingressclasses",
        false,
    ),
    (
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        true,
    ),
    (
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        true,
    ),
    (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        true,
    ),
    ("coordination.k8s.io/v1", "Lease", "leases", true),
    (
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses",
        false,
    ),
    (
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiservices",
        false,
    ),
];

/// `Secret redis/redis-auth`, `Namespace redis`: how messages name an object.
pub fn describe(kind: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

impl Cluster {
    /// Looks a kind up (`apps/v1`, `Deployment`). Well-known kinds of core groups are answered without asking; others are asked each time they are
    /// unknown (a CRD may just have come) and remembered.
    pub async fn kind(&self, api_version: &str, kind: &str) -> Result<Kind, Error> {
        if let Some(known) = self.known_kind(api_version, kind) {
            return Ok(known);
        }
        let gvk = group_version_kind(api_version, kind);
        let action = format!("look up {kind} of {api_version}");
        let found = patiently(&action, || async {
            absent_as_none(pinned_kind(&self.client, &gvk).await)
        })
        .await?;
        self.remember(api_version, kind, found)
    }

    /// The same with a single question, for loops that have a patience of their own.
    pub(crate) async fn kind_now(&self, api_version: &str, kind: &str) -> Result<Kind, Error> {
        if let Some(known) = self.known_kind(api_version, kind) {
            return Ok(known);
        }
        let gvk = group_version_kind(api_version, kind);
        let found = crate::retry::once(&format!("look up {kind} of {api_version}"), async {
            absent_as_none(pinned_kind(&self.client, &gvk).await)
        })
        .await?;
        self.remember(api_version, kind, found)
    }

    fn known_kind(&self, api_version: &str, kind: &str) -> Option<Kind> {
        if let Some((_, _, plural, namespaced)) = WELL_KNOWN
            .iter()
            .find(|known| known.0 == api_version && known.1 == kind)
        {
            return Some(Kind {
                resource: ApiResource::from_gvk_with_plural(
                    &group_version_kind(api_version, kind),
                    plural,
                ),
                scope: if *namespaced {
                    Scope::Namespaced
                } else {
                    Scope::Cluster
                },
            });
        }
        let kinds = self
            .kinds
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        kinds
            .get(&(api_version.to_owned(), kind.to_owned()))
            .cloned()
    }

    fn remember(&self, api_version: &str, kind: &str, found: Option<Kind>) -> Result<Kind, Error> {
        let found = found.ok_or_else(|| Error::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })?;
        let mut kinds = self
            .kinds
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        kinds.insert((api_version.to_owned(), kind.to_owned()), found.clone());
        Ok(found)
    }

    /// Forgets a kind whose CRD went away.
    pub(crate) fn forget_kind(&self, api_version: &str, kind: &str) {
        let mut kinds = self
            .kinds
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        kinds.remove(&(api_version.to_owned(), kind.to_owned()));
    }

    /// kube's access to a kind. A namespaced kind without namespace means all namespaces (for lists).
    pub(crate) fn api_of(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        match (&kind.scope, namespace) {
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(self.client(), namespace, &kind.resource)
            }
            _ => Api::all_with(self.client(), &kind.resource),
        }
    }

    /// kube's access to one named object; its namespace must be given exactly when the kind is namespaced.
    pub(crate) fn api_for_one(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Api<DynamicObject>, Error> {
        if kind.scope == Scope::Namespaced && namespace.is_none() {
            return Err(Error::Malformed(format!(
                "{} has no namespace, but the kind is namespaced",
                describe(&kind.resource.kind, None, name)
            )));
        }
        Ok(self.api_of(kind, namespace))
    }
}

fn group_version_kind(api_version: &str, kind: &str) -> GroupVersionKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionKind::gvk(group, version, kind)
}

fn absent_as_none(
    found: Result<(ApiResource, ApiCapabilities), kube::Error>,
) -> Result<Option<Kind>, kube::Error> {
    match found {
        Ok((resource, capabilities)) => Ok(Some(Kind {
            resource,
            scope: capabilities.scope,
        })),
        Err(kube::Error::Discovery(DiscoveryError::MissingKind(_))) => Ok(None),
        Err(error) if Answer::is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A JSON manifest as kube's object.
pub fn from_value(value: Value) -> Result<DynamicObject, Error> {
    Identity::of(&value)?;
    serde_json::from_value(value).map_err(|error| Error::Malformed(error.to_string()))
}

/// What names an object in a manifest.
pub(crate) struct Identity<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl<'a> Identity<'a> {
    pub(crate) fn of(manifest: &'a Value) -> Result<Self, Error> {
        let text = |pointer: &str| {
            manifest
                .pointer(pointer)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let missing = |what: &str| {
            let found = text("/kind").map_or("a mapping without kind".to_owned(), |kind| {
                describe(
                    kind,
                    None,
                    text("/metadata/name").unwrap_or("without a name"),
                )
            });
            Error::Malformed(format!("{what} is missing in {found}"))
        };
        Ok(Self {
            api_version: text("/apiVersion").ok_or_else(|| missing("apiVersion"))?,
            kind: text("/kind").ok_or_else(|| missing("kind"))?,
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").ok_or_else(|| missing("metadata.name"))?,
        })
    }

    pub(crate) fn describe(&self) -> String {
        describe(self.kind, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_without_a_name_is_refused_by_what_is_missing() {
        let error =
            from_value(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not a Kubernetes object: metadata.name is missing in Secret without a name"
        );
        assert!(from_value(json!(["a"])).is_err());
        assert!(
            from_value(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}))
                .is_ok()
        );
    }

    #[test]
    fn well_known_kinds_are_listed_once() {
        for (index, (api_version, kind, ..)) in WELL_KNOWN.iter().enumerate() {
            assert!(
                !WELL_KNOWN[..index]
                    .iter()
                    .any(|other| other.0 == *api_version && other.1 == *kind),
                "{kind}"
            );
        }
    }
}
