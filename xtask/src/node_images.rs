//! Images onto the nodes: as one archive that every node sees, imported without unpacking. containerd unpacks an image when its first container starts there, so
//! that only what runs on a node is unpacked on it; `kind load` unpacks everything everywhere and takes three times as long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::docker_engine::Engine;
use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::report::Reporter;

/// In a node: the lab's folder with the archive.
const IN_NODE: &str = "/var/lib/blueprint-lab";
const ARCHIVE: &str = "images.tar";
/// kind's own label on a node's container.
const CONTROL_PLANE: &str = "control-plane";
const ROLE: &str = r#"{{.Names}} {{.Label "io.x-k8s.kind.role"}}"#;
const ID: &str = "{{.Id}}";

fn folder(lab: &LabHome) -> PathBuf {
    lab.path().join("node-images")
}

/// Mounts the folder into every node of a cluster's configuration.
pub(crate) fn mount(config: &mut Value, lab: &LabHome) {
    let mount = json!({"hostPath": folder(lab).display().to_string(), "containerPath": IN_NODE, "readOnly": true});
    for node in config["nodes"].as_array_mut().into_iter().flatten() {
        match node["extraMounts"].as_array_mut() {
            Some(mounts) => mounts.push(mount.clone()),
            None => node["extraMounts"] = json!([mount.clone()]),
        }
    }
}

/// Loads what the nodes do not have. `label` selects the cluster's nodes.
pub(crate) fn load(
    lab: &LabHome,
    engine: &Engine,
    label: &str,
    images: &[String],
    report: &Reporter,
) -> Result<()> {
    let wanted = ids(engine, images)?;
    let mut lacking = BTreeMap::new();
    for node in that_run_pods(engine, label)? {
        let there = on_node(engine, &node)?;
        let missing: Vec<&str> = wanted
            .iter()
            .filter(|(_, id)| !there.contains(*id))
            .map(|(image, _)| image.as_str())
            .collect();
        if !missing.is_empty() {
            lacking.insert(node, missing);
        }
    }
    let missing: BTreeSet<&str> = lacking.values().flatten().copied().collect();
    if missing.is_empty() {
        report.say(format!("{} images, all on the nodes", images.len()));
        return Ok(());
    }
    let nodes: Vec<&String> = lacking.keys().collect();
    report.say(format!(
        "loading {} of {} images into {} nodes",
        missing.len(),
        images.len(),
        nodes.len()
    ));
    let folder = folder(lab);
    fs::create_dir_all(&folder).file("create", &folder)?;
    let archive = folder.join(ARCHIVE);
    engine
        .docker()
        .args(["save", "--output"])
        .arg(&archive)
        .args(missing)
        .output()?;
    let imported = import(engine, &nodes);
    fs::remove_file(&archive).file("remove", &archive)?;
    imported
}

fn import(engine: &Engine, nodes: &[&String]) -> Result<()> {
    thread::scope(|scope| {
        let running: Vec<_> = nodes
            .iter()
            .map(|node| {
                scope.spawn(|| {
                    engine
                        .docker()
                        .args([
                            "exec",
                            node,
                            "ctr",
                            "--namespace=k8s.io",
                            "images",
                            "import",
                        ])
                        .args(["--no-unpack", "--digests"])
                        .arg(format!("{IN_NODE}/{ARCHIVE}"))
                        .output()
                        .map(drop)
                })
            })
            .collect();
        running.into_iter().try_for_each(|import| {
            import
                .join()
                .map_err(|_| Error::content("an import of images", "its thread ended early"))?
        })
    })
}

/// Nodes without the control plane's taint; a cluster of one node runs its pods there.
fn that_run_pods(engine: &Engine, label: &str) -> Result<Vec<String>> {
    let text = engine
        .docker()
        .args(["ps", "--format", ROLE, "--filter", label])
        .output()?;
    Ok(workers(&text))
}

fn workers(nodes: &str) -> Vec<String> {
    let nodes: Vec<(&str, &str)> = nodes
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let all_plain = nodes.iter().all(|(_, role)| *role == CONTROL_PLANE);
    nodes
        .into_iter()
        .filter(|(_, role)| all_plain || *role != CONTROL_PLANE)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Image → its id, which is the digest of its configuration.
fn ids(engine: &Engine, images: &[String]) -> Result<BTreeMap<String, String>> {
    let text = engine
        .docker()
        .args(["image", "inspect", "--format", ID])
        .args(images)
        .output()?;
    Ok(images
        .iter()
        .cloned()
        .zip(text.lines().map(str::to_owned))
        .collect())
}

#[derive(Deserialize)]
struct Listed {
    images: Vec<OnNode>,
}

#[derive(Deserialize)]
struct OnNode {
    id: String,
}

/// The ids of the images that a node's kubelet sees.
fn on_node(engine: &Engine, node: &str) -> Result<BTreeSet<String>> {
    let text = engine
        .docker()
        .args(["exec", node, "crictl", "images", "--output", "json"])
        .output()?;
    let listed: Listed = serde_json::from_str(&text)
        .map_err(|error| Error::content(format!("the images of {node}"), error))?;
    Ok(listed.images.into_iter().map(|image| image.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_plane_gets_images_only_where_it_is_alone() {
        assert_eq!(
            workers("b-control-plane control-plane\nb-worker worker\nb-worker2 worker"),
            ["b-worker", "b-worker2"]
        );
        assert_eq!(
            workers("b-control-plane control-plane"),
            ["b-control-plane"]
        );
    }
}
