//! All objects that an installation consists of, without what every cluster sets anew: compared between two installations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Scene;
use super::identity::digest;
use super::observer::items;
use crate::error::Result;

/// Kinds whose objects are compared. Pods, `ReplicaSet`s and endpoints follow from these and bear random names.
const KINDS: &str = "namespaces,configmaps,secrets,services,serviceaccounts,persistentvolumes,persistentvolumeclaims,storageclasses,\
deployments,statefulsets,daemonsets,cronjobs,horizontalpodautoscalers,poddisruptionbudgets,networkpolicies,\
roles,rolebindings,clusterroles,clusterrolebindings,customresourcedefinitions,\
validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,\
gatewayclasses,gateways,httproutes,tcproutes,referencegrants,envoyproxies,clienttrafficpolicies,\
clusters.postgresql.cnpg.io,databases.postgresql.cnpg.io";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields that a server, a controller or the moment sets.
const SET_ANEW: &[&str] = &[
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "ownerReferences",
    "status",
    "clusterIP",
    "clusterIPs",
    "healthCheckNodePort",
    "caBundle",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "kubectl.kubernetes.io/restartedAt",
    "blueprint.dev/restarted-for",
    // The binding's history: who bound first.
    "pv.kubernetes.io/bound-by-controller",
    "pv.kubernetes.io/bind-completed",
];

/// `Kind namespace/name` → the object's digest, and its text for telling differences.
pub(super) fn take(scene: &Scene) -> Result<BTreeMap<String, String>> {
    let list = scene.objects(&[KINDS, "--all-namespaces"])?;
    Ok(items(&list)
        .into_iter()
        .filter(|object| !left_out(object))
        .map(|object| (name(object), scrubbed(object)))
        .collect())
}

/// The same between two installations: of a Secret only its keys, and nothing that is computed from secrets.
pub(super) fn shapes(scene: &Scene) -> Result<BTreeMap<String, String>> {
    let list = scene.objects(&[KINDS, "--all-namespaces"])?;
    let objects = items(&list).into_iter().filter(|object| !left_out(object));
    Ok(objects
        .map(|object| (name(object), shape(object)))
        .collect())
}

fn shape(object: &Value) -> String {
    let mut object = object.clone();
    if object["kind"] == "Secret" {
        for value in object["data"]
            .as_object_mut()
            .into_iter()
            .flat_map(|fields| fields.values_mut())
        {
            *value = "a value".into();
        }
        // The chart's job applies its Secrets with kubectl, which keeps the values there too.
        if let Some(applied) = object["metadata"]["annotations"].get_mut(LAST_APPLIED) {
            *applied = "values".into();
        }
    }
    scrub(&mut object);
    scrub_digests(&mut object);
    object.to_string()
}

/// Charts put digests of rendered secrets into annotations of pod templates, so that pods roll with them.
fn scrub_digests(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name.starts_with("checksum/") {
                    *value = "a digest".into();
                }
                scrub_digests(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(scrub_digests),
        _ => {}
    }
}

/// The names that differ, each with the JSON pointer of its first difference.
pub(super) fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in before {
        match after.get(name) {
            None => found.push(format!("{name} is gone")),
            Some(now) if now != text => {
                let at = first_difference(&parsed(text), &parsed(now)).unwrap_or_default();
                found.push(format!("{name} differs at {at}"));
            }
            Some(_) => {}
        }
    }
    found.extend(
        after
            .keys()
            .filter(|name| !before.contains_key(*name))
            .map(|name| format!("{name} is new")),
    );
    found
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// `Kind namespace/name`.
pub(super) fn name(object: &Value) -> String {
    let meta = &object["metadata"];
    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!(
        "{} {}/{}",
        field(&object["kind"]),
        field(&meta["namespace"]),
        field(&meta["name"])
    )
}

/// Objects of kind and Kubernetes itself that are each cluster's own, and Helm's records (their number is the history's).
fn left_out(object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    object["type"] == "helm.sh/release.v1"
        || object["type"] == "bootstrap.kubernetes.io/token"
        // What a hook of Helm's left behind is no part of the release: the upgrade check's ConfigMap comes with the first upgrade.
        || object["metadata"]["annotations"]["helm.sh/hook"].is_string()
        || name == "kube-root-ca.crt"
        || name.starts_with("kubeadm:")
        // kubeadm's and the API server's: tokens, certificates, the cluster's own id.
        || matches!(namespace, "kube-public" | "kube-node-lease")
        || matches!((namespace, name), ("kube-system", "extension-apiserver-authentication" | "kube-apiserver-legacy-service-account-token-tracking"))
}

/// The object without what is set anew; a Secret's values as digests.
pub(super) fn scrubbed(object: &Value) -> String {
    let mut object = object.clone();
    if object["kind"] == "Secret" {
        let digested = digest(object["data"].to_string().as_bytes());
        object["data"] = if made_per_cluster(&object) {
            "made per cluster".into()
        } else {
            digested.into()
        };
    }
    scrub(&mut object);
    object.to_string()
}

/// As in the comparison of identities: CloudNativePG's and Envoy Gateway's own certificates.
fn made_per_cluster(secret: &Value) -> bool {
    let name = secret["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = secret["metadata"]["namespace"].as_str().unwrap_or_default();
    name.starts_with("postgresql-cnpg-")
        || name.starts_with("envoy")
        || name.starts_with("cnpg-")
        || namespace == "cnpg-system"
}

/// What an object was before blueprint took it over, as JSON in an annotation: with fields that kind's own run of the day has set.
const BEFORE: &str = "blueprint.dev/before";

fn scrub(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !SET_ANEW.contains(&name.as_str()));
            if let Some(before) = fields.get_mut(BEFORE)
                && let Some(parsed) = before
                    .as_str()
                    .and_then(|text| serde_json::from_str(text).ok())
            {
                *before = parsed;
            }
            fields.values_mut().for_each(scrub);
        }
        Value::Array(values) => values.iter_mut().for_each(scrub),
        _ => {}
    }
}

/// JSON pointer of the first place where two values differ.
fn first_difference(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let names = x.keys().chain(y.keys());
            names.into_iter().find_map(|name| {
                let (left, right) = (
                    x.get(name).unwrap_or(&Value::Null),
                    y.get(name).unwrap_or(&Value::Null),
                );
                first_difference(left, right).map(|rest| format!("/{name}{rest}"))
            })
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => x
            .iter()
            .zip(y)
            .enumerate()
            .find_map(|(index, (left, right))| {
                first_difference(left, right).map(|rest| format!("/{index}{rest}"))
            }),
        _ => (a != b).then(String::new),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_installations_have_the_same_shape_and_a_missing_key_shows() {
        let secret = |value: &str, key: &str| json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {key: value}});
        assert_eq!(shape(&secret("a", "token")), shape(&secret("b", "token")));
        assert_ne!(shape(&secret("a", "token")), shape(&secret("a", "other")));
    }

    #[test]
    fn the_record_of_a_former_object_is_compared_without_its_times() {
        let object = |time: &str, label: &str| {
            let before =
                json!({"metadata": {"labels": {"a": label}, "managedFields": [{"time": time}]}});
            json!({"kind": "ServiceAccount", "metadata": {"annotations": {BEFORE: before.to_string()}}})
        };
        assert_eq!(scrubbed(&object("1", "x")), scrubbed(&object("2", "x")));
        assert_ne!(scrubbed(&object("1", "x")), scrubbed(&object("1", "y")));
    }

    #[test]
    fn what_a_server_sets_is_no_difference_and_a_changed_port_is() {
        let object = |uid: &str, port: u16| json!({"kind": "Service", "metadata": {"name": "s", "namespace": "n", "uid": uid}, "spec": {"clusterIP": uid, "ports": [{"port": port}]}});
        let take = |object: Value| BTreeMap::from([(name(&object), scrubbed(&object))]);
        assert!(differences(&take(object("a", 1)), &take(object("b", 1))).is_empty());
        assert_eq!(
            differences(&take(object("a", 1)), &take(object("b", 2))),
            ["Service n/s differs at /spec/ports/0/port"]
        );
    }
}
