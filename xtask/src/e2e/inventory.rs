//! Everything in a cluster and in its nodes' files, to tell whether something was left behind.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Scene;
use super::objects;
use super::observer::items;
use crate::error::Result;

/// Kinds of the moment: what happened, and measurements.
const OF_THE_MOMENT: [&str; 5] = [
    "events",
    "events.events.k8s.io",
    "componentstatuses",
    "pods.metrics.k8s.io",
    "nodes.metrics.k8s.io",
];
/// Kinds whose content follows from other objects or from the clock; their names count.
const BY_NAME: [&str; 4] = ["Lease", "Endpoints", "EndpointSlice", "Pod"];
/// Regular files with their digests, folders by their names. /etc/mtab and the like are links and not followed.
const FILES: &str = "find /etc /kind /opt /usr/local -xdev -type d -printf '%p/\\n' && \
find /etc /kind /opt /usr/local -xdev -type f -exec sha256sum {} + && sha256sum /etc/hosts";

/// `Kind namespace/name`, or a node's file, with its content.
pub(super) struct Inventory(BTreeMap<String, String>);

impl Inventory {
    pub(super) fn take(scene: &Scene) -> Result<Self> {
        let mut all = BTreeMap::new();
        objects_of(scene, &mut all)?;
        let nodes = scene.objects(&["nodes"])?;
        for node in items(&nodes) {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            files_of(scene, name, &mut all)?;
        }
        Ok(Self(all))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn differences(&self, after: &Self) -> Vec<String> {
        objects::differences(&self.0, &after.0)
    }

    /// Those whose name starts with one of these words.
    pub(super) fn with(&self, beginnings: &[String]) -> Vec<&str> {
        self.0
            .keys()
            .filter(|name| {
                beginnings
                    .iter()
                    .any(|word| name.starts_with(word.as_str()))
            })
            .map(String::as_str)
            .collect()
    }
}

fn objects_of(scene: &Scene, all: &mut BTreeMap<String, String>) -> Result<()> {
    let listed = scene
        .kubectl(["api-resources", "--verbs=list", "--output=name"])
        .output()?;
    let kinds: Vec<&str> = listed
        .lines()
        .map(str::trim)
        .filter(|kind| !kind.is_empty() && !OF_THE_MOMENT.contains(kind))
        .collect();
    let list = scene.objects(&[&kinds.join(","), "--all-namespaces"])?;
    for object in items(&list) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let content = if BY_NAME.contains(&kind) {
            "{}".to_owned()
        } else {
            objects::scrubbed(object)
        };
        all.insert(name_of(object), content);
    }
    Ok(())
}

/// A pod of a set has a name of chance: its owner's stands for it.
fn name_of(object: &Value) -> String {
    let metadata = &object["metadata"];
    let owner = metadata["ownerReferences"][0]["name"].as_str();
    match (object["kind"].as_str(), owner) {
        (Some("Pod"), Some(owner)) => format!(
            "Pod {}/{owner} (a pod of it)",
            metadata["namespace"].as_str().unwrap_or_default()
        ),
        _ => objects::name(object),
    }
}

fn files_of(scene: &Scene, node: &str, all: &mut BTreeMap<String, String>) -> Result<()> {
    let text = scene
        .platform
        .engine()
        .docker()
        .args(["exec", node, "sh", "-c", FILES])
        .output()?;
    for line in text.lines() {
        let (path, digest) = match line.split_once("  ") {
            Some((digest, path)) => (path, digest),
            None => (line, "folder"),
        };
        all.insert(format!("{node}:{path}"), format!("\"{digest}\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_of_one_set_are_one_whatever_their_names() {
        let pod = |name: &str| json!({"kind": "Pod", "metadata": {"namespace": "n", "name": name, "ownerReferences": [{"name": "dns-5f"}]}});
        assert_eq!(name_of(&pod("dns-5f-a")), name_of(&pod("dns-5f-b")));
        let alone = json!({"kind": "Pod", "metadata": {"namespace": "n", "name": "etcd"}});
        assert_eq!(name_of(&alone), "Pod n/etcd");
    }

    #[test]
    fn a_file_that_is_left_behind_is_told() {
        let of = |pairs: &[(&str, &str)]| {
            Inventory(
                pairs
                    .iter()
                    .map(|(name, content)| ((*name).to_owned(), (*content).to_owned()))
                    .collect(),
            )
        };
        let before = of(&[("lab:/etc/hosts", "\"a\"")]);
        let after = of(&[("lab:/etc/hosts", "\"b\""), ("lab:/etc/x", "\"c\"")]);
        assert_eq!(
            before.differences(&after),
            ["lab:/etc/hosts differs at ", "lab:/etc/x is new"]
        );
        assert_eq!(after.with(&["lab:/etc/x".to_owned()]), ["lab:/etc/x"]);
    }
}
