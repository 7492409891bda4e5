//! What a run left: objects without what a server sets, Secrets and files by their shape.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use blueprint_cluster::Cluster;
use serde_json::Value;

const KINDS: [(&str, &str); 10] = [
    ("v1", "Namespace"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("apps/v1", "Deployment"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
];
const SET_ANEW: [&str; 9] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "status",
    "clusterIP",
    "clusterIPs",
    "selfLink",
];

/// Certificates and the port of an API server.
const EACH_SERVERS_OWN: [&str; 3] = [
    "ConfigMap kube-system/extension-apiserver-authentication",
    "ConfigMap kube-system/kube-apiserver-legacy-service-account-token-tracking",
    "Service default/kubernetes",
];

/// What is gone, new or different.
pub(super) fn differences(
    one: &BTreeMap<String, String>,
    other: &BTreeMap<String, String>,
) -> Vec<String> {
    let names = one.keys().chain(other.keys()).collect::<BTreeSet<_>>();
    names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name))
        .map(|name| format!("{name}: {:?} and {:?}", one.get(name), other.get(name)))
        .collect()
}

/// Of the whole cluster, by kind and name.
pub(super) async fn objects(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    for (api_version, kind) in KINDS {
        for object in cluster.list(api_version, kind, None, "").await.unwrap() {
            let name = format!(
                "{kind} {}/{}",
                object.metadata.namespace.as_deref().unwrap_or_default(),
                object.metadata.name.as_deref().unwrap_or_default()
            );
            let mut value = serde_json::to_value(&object).unwrap();
            if EACH_SERVERS_OWN.contains(&name.as_str()) {
                continue;
            }
            if kind == "Secret" {
                shape(&mut value["data"]);
            }
            scrub(&mut value);
            seen.insert(name, value.to_string());
        }
    }
    seen
}

/// Of the workspace: name and mode. Times and values differ between two installations.
pub(super) fn files(folder: &Path, seen: &mut BTreeMap<String, String>) {
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            seen.insert(format!("file {name}"), format!("{mode:o}"));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
}

fn shape(data: &mut Value) {
    for value in data
        .as_object_mut()
        .into_iter()
        .flat_map(|fields| fields.values_mut())
    {
        *value = "a value".into();
    }
}

fn scrub(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !SET_ANEW.contains(&name.as_str()));
            fields.values_mut().for_each(scrub);
        }
        Value::Array(values) => values.iter_mut().for_each(scrub),
        _ => {}
    }
}
