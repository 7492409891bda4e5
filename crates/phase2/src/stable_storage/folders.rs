//! The volumes' folders on the nodes: made, owned and closed as their users need it, because hostPath volumes get no fsGroup.
//!
//! Only the top folder is ever touched; what is in it belongs to the component.

use std::collections::BTreeMap;
use std::path::Path;

use blueprint_cluster::{Node, Nodes};
use blueprint_pipeline::Outcome;

use super::volume::StableVolume;
use crate::error::Error;
use crate::installer::Work;
use crate::smoke_row::unexpected;

/// One folder as `stat` sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    owner: String,
    mode: String,
    kind: String,
}

/// Prepares every folder on every running node, after making sure that all nodes see one and the same storage root.
pub(crate) async fn prepare(
    work: Work<'_>,
    volumes: &[StableVolume],
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let nodes = work.context.nodes()?;
    let running = running(nodes).await?;
    check_shared(nodes, &running, &work.context.settings.storage_root).await?;
    for node in &running {
        let mut command = vec!["stat", "--format", "%n|%u:%g|%a|%F"];
        command.extend(volumes.iter().map(|volume| volume.path.as_str()));
        // Folders that are not there make `stat` fail; what it printed about the others counts.
        let seen = nodes.exec(node, &command, None).await?.stdout;
        let found = parse(&seen);
        for volume in volumes {
            prepare_one(
                nodes,
                node,
                volume,
                found.get(volume.path.as_str()),
                outcome,
            )
            .await?;
        }
    }
    Ok(())
}

/// The nodes that can be asked; none at all is an error.
pub(crate) async fn running(nodes: &Nodes) -> Result<Vec<Node>, Error> {
    let running: Vec<Node> = nodes
        .list()
        .await?
        .into_iter()
        .filter(|node| node.running)
        .collect();
    if running.is_empty() {
        return Err(unexpected(
            "reach the cluster's nodes",
            "the container engine runs no node of this kind cluster",
            "check `cluster` in blueprint.yaml and that DOCKER_HOST points at the engine that runs the cluster",
        ));
    }
    Ok(running)
}

/// Names in a folder, without `lost+found`; none when it does not exist. Any other trouble is an error: what can't be read must not count as empty.
pub(crate) async fn entries(
    nodes: &Nodes,
    node: &Node,
    folder: &str,
) -> Result<Vec<String>, Error> {
    if nodes.exec(node, &["test", "-e", folder], None).await?.code != 0 {
        return Ok(Vec::new());
    }
    let listed = nodes.run(node, &["ls", "-1A", folder], None).await?;
    Ok(listed
        .lines()
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !line.is_empty() && line != "lost+found")
        .collect())
}

async fn prepare_one(
    nodes: &Nodes,
    node: &Node,
    volume: &StableVolume,
    found: Option<&Folder>,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let path = volume.path.as_str();
    match found {
        None => {
            nodes.change(node, &["mkdir", "--parents", path]).await?;
            nodes.change(node, &["chown", &volume.owner, path]).await?;
            nodes.change(node, &["chmod", &volume.mode, path]).await?;
            outcome.changed(format!(
                "made folder {path} ({}, mode {}) on {}",
                volume.owner, volume.mode, node.name
            ));
        }
        Some(folder) if folder.kind != "directory" => {
            return Err(Error::Refused {
                summary: format!("{path} on {} is no folder", node.name),
                expected: "a folder, or nothing".to_owned(),
                found: folder.kind.clone(),
                hint: "move it away and run again".to_owned(),
            });
        }
        Some(folder) => {
            if folder.owner != volume.owner {
                nodes.change(node, &["chown", &volume.owner, path]).await?;
                outcome.changed(format!(
                    "gave folder {path} to {} (it was {}'s; its content is untouched) on {}",
                    volume.owner, folder.owner, node.name
                ));
            }
            // PostgreSQL and others tighten or widen their own folder: only what keeps the owner out is wrong.
            if !owner_may_use(&folder.mode) {
                nodes.change(node, &["chmod", &volume.mode, path]).await?;
                outcome.changed(format!(
                    "set mode {} on folder {path} (it was {}) on {}",
                    volume.mode, folder.mode, node.name
                ));
            }
        }
    }
    Ok(())
}

/// Read, write and enter for the owner.
fn owner_may_use(mode: &str) -> bool {
    u32::from_str_radix(mode, 8).is_ok_and(|bits| bits & 0o700 == 0o700)
}

fn parse(stdout: &str) -> BTreeMap<&str, Folder> {
    stdout
        .lines()
        .filter_map(|line| {
            let mut parts = line.trim_end().splitn(4, '|');
            let (name, owner, mode, kind) =
                (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            Some((
                name,
                Folder {
                    owner: owner.to_owned(),
                    mode: mode.to_owned(),
                    kind: kind.to_owned(),
                },
            ))
        })
        .collect()
}

/// The storage root must be one mount from outside on all nodes: in a node's own file system the data would go with the node, and a pod that moves to
/// another node would find nothing.
pub(super) async fn check_shared(nodes: &Nodes, running: &[Node], root: &str) -> Result<(), Error> {
    let mut seen: Option<(String, &Node)> = None;
    for node in running {
        let output = nodes
            .exec(node, &["stat", "--format", "%d:%i", root], None)
            .await?;
        // Not `stat %m`: it tells mounts apart by device, and a bind mount of the host may lie on the same one as the node's /var.
        let mounts = nodes
            .run(node, &["cat", "/proc/self/mountinfo"], None)
            .await?;
        if let Some(found) = inner_mount(output.code, mount_point(&mounts, root)) {
            return Err(refused(root, format!("on node {} {found}", node.name)));
        }
        let identity = output.stdout.trim();
        match &seen {
            Some((first, other)) if first != identity => {
                return Err(refused(
                    root,
                    format!(
                        "nodes {} and {} have different folders there",
                        other.name, node.name
                    ),
                ));
            }
            Some(_) => {}
            None => seen = Some((identity.to_owned(), node)),
        }
    }
    Ok(())
}

/// The mount point that `path` lies on: the longest one in mountinfo (its fifth field, proc(5)) that is a parent of it.
fn mount_point<'a>(mountinfo: &'a str, path: &str) -> &'a str {
    mountinfo
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|mount| Path::new(path).starts_with(mount))
        .max_by_key(|mount| mount.len())
        .unwrap_or("/")
}

/// What is wrong with the mount point that a path lies on. kind keeps /var of a node on an anonymous volume that goes with the node.
fn inner_mount(code: i64, mount: &str) -> Option<String> {
    match mount {
        _ if code != 0 => Some("there is no such folder".to_owned()),
        "/" | "/var" => Some("it is no mount: it would go with the node".to_owned()),
        _ => None,
    }
}

fn refused(root: &str, found: String) -> Error {
    Error::Refused {
        summary: "the storage root would not outlive the cluster".to_owned(),
        expected: format!("one folder of the host, mounted at {root} in every node (extraMounts in infra/kind/cluster.yaml)"),
        found,
        hint: "add the mount to every node in infra/kind/cluster.yaml and create the cluster with `blueprint cluster create`, or set storage_root in blueprint.yaml \
               to the folder that is mounted"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_read_and_missing_folders_are_simply_not_there() {
        let found = parse("/s/a|26:26|700|directory\n/s/b|0:0|755|regular empty file\n");
        assert_eq!(
            found["/s/a"],
            Folder {
                owner: "26:26".into(),
                mode: "700".into(),
                kind: "directory".into()
            }
        );
        assert_eq!(found["/s/b"].kind, "regular empty file");
        assert_eq!(found.get("/s/c"), None);
    }

    #[test]
    fn a_mode_is_wrong_only_when_it_keeps_the_owner_out() {
        for fine in ["700", "750", "777", "2770"] {
            assert!(owner_may_use(fine), "{fine}");
        }
        for wrong in ["500", "600", "0", ""] {
            assert!(!owner_may_use(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_bind_mount_on_the_device_of_var_is_told_from_var() {
        let mounts = "1 0 0:1 / / rw - overlay o rw\n2 1 254:0 /v /var rw - ext4 /dev/vda rw\n3 2 254:0 /s /var/local/shared rw - ext4 /dev/vda rw\n";
        assert_eq!(
            mount_point(mounts, "/var/local/shared"),
            "/var/local/shared"
        );
        assert_eq!(
            mount_point(mounts, "/var/local/shared/redis"),
            "/var/local/shared"
        );
        assert_eq!(mount_point(mounts, "/var/local/sharedother"), "/var");
        assert_eq!(mount_point(mounts, "/srv"), "/");
    }

    #[test]
    fn storage_inside_a_node_is_noticed() {
        assert!(inner_mount(0, "/").is_some());
        assert!(inner_mount(0, "/var").is_some());
        assert!(inner_mount(1, "").is_some());
        assert_eq!(inner_mount(0, "/var/local/shared"), None);
        assert_eq!(inner_mount(0, "/var/local"), None);
    }
}
