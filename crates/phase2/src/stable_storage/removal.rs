//! The volumes taken away again. The folders are the data: they stay, or, when all is wiped, they go with what is in them.

use std::path::{Component, Path};

use blueprint_cluster::{Node, Nodes};
use blueprint_pipeline::Outcome;
use serde_json::{Value, json};

use super::volume::StableVolume;
use super::{Documents, documents, folders};
use crate::error::Error;
use crate::installation;
use crate::installer::Work;
use crate::removal::{self, Piece, Removal};

/// The claims that step 4 made, then the volumes: one whose claim is still there is held by it.
fn pieces(documents: &Documents) -> Vec<Piece> {
    let named = |document: &Value, kind: &str| {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
        (document["kind"] == json!(kind)).then(|| {
            (
                text("/metadata/namespace").unwrap_or_default().to_owned(),
                text("/metadata/name").unwrap_or_default().to_owned(),
            )
        })
    };
    let claims = documents
        .others
        .iter()
        .filter_map(|document| named(document, "PersistentVolumeClaim"))
        .map(|(namespace, name)| Piece::claim(&namespace, name));
    let volumes = documents
        .volumes
        .iter()
        .map(|volume| Piece::object("v1", "PersistentVolume", None, volume.name.clone()));
    claims
        .chain(volumes)
        .chain([Piece::Namespace(crate::names::MINIO)])
        .collect()
}

pub(super) async fn remains(work: Work<'_>, removal: Removal) -> Result<Vec<String>, Error> {
    let documents = documents(work)?;
    let mut found = removal::there(work, &pieces(&documents)).await?;
    if removal == Removal::Wipe {
        let (nodes, node) = a_node(work).await?;
        for volume in &documents.volumes {
            if exists(nodes, &node, &volume.path).await? {
                found.push(format!("folder {} with all data in it", volume.path));
            }
        }
        let marker = installation::marker_path(work);
        if exists(nodes, &node, &marker).await? {
            found.push(marker);
        }
    }
    Ok(found)
}

pub(super) async fn run(work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    let documents = documents(work)?;
    check_all(work, &documents, removal).await?;
    removal::remove(work, &pieces(&documents), &mut outcome).await?;
    if removal == Removal::Wipe {
        wipe(work, &documents.volumes, &mut outcome).await?;
    }
    Ok(outcome)
}

/// All are looked at before one is touched: a volume that leads elsewhere or belongs to another claim is not ours, one that is not retained would take its data
/// along, and neither a folder outside of the storage root nor another installation's data is ours to wipe.
pub(super) async fn check_all(
    work: Work<'_>,
    documents: &Documents,
    removal: Removal,
) -> Result<(), Error> {
    for volume in &documents.volumes {
        check(work, volume, removal).await?;
    }
    if removal == Removal::Wipe {
        check_whose(work).await?;
    }
    Ok(())
}

async fn check_whose(work: Work<'_>) -> Result<(), Error> {
    let Some(marker) = installation::marker(work).await? else {
        return Ok(());
    };
    let ours = installation::id(&work.context.workspace)?;
    if ours.as_deref() == Some(marker.installation.as_str()) {
        return Ok(());
    }
    let path = work.context.workspace.installation();
    Err(Error::Refused {
        summary: "the data on the storage root is another installation's".to_owned(),
        expected: match &ours {
            Some(id) => format!("installation {id}, this workspace's ({})", path.display()),
            None => format!("an id in {}, which is not there", path.display()),
        },
        found: format!(
            "{} says {}",
            installation::marker_path(work),
            marker.installation
        ),
        hint: "run the wipe from the workspace that the data belongs to; `blueprint up --accept adopt-volumes` makes it this one's. Nothing was changed".to_owned(),
    })
}

async fn check(work: Work<'_>, volume: &StableVolume, removal: Removal) -> Result<(), Error> {
    if let Some(there) = volume.read(work).await? {
        volume.check(&there)?;
        let policy = there.data["spec"]["persistentVolumeReclaimPolicy"]
            .as_str()
            .unwrap_or_default();
        if removal == Removal::Keep && policy != "Retain" {
            return Err(Error::Refused {
                summary: format!("PersistentVolume {} would take its data along", volume.name),
                expected: "persistentVolumeReclaimPolicy Retain".to_owned(),
                found: policy.to_owned(),
                hint: "run `blueprint up --only stable-storage`, which sets it, and then `blueprint down` again".to_owned(),
            });
        }
    }
    let root = &work.context.settings.storage_root;
    if removal == Removal::Wipe && !is_below(&volume.path, root) {
        return Err(Error::Refused {
            summary: format!("the folder of PersistentVolume {} will not be emptied", volume.name),
            expected: format!("a folder below the storage root {root}"),
            found: volume.path.clone(),
            hint: "correct the path in references/persistent-volumes.yaml, or storage_root in blueprint.yaml".to_owned(),
        });
    }
    Ok(())
}

/// A folder strictly below `root`, said plainly.
fn is_below(path: &str, root: &str) -> bool {
    let path = Path::new(path);
    let plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    plain && path.starts_with(root) && path != Path::new(root)
}

/// All nodes see one and the same root (checked when it was prepared, and again here), so one of them is enough.
async fn a_node(work: Work<'_>) -> Result<(&Nodes, Node), Error> {
    let nodes = work.context.nodes()?;
    let running = folders::running(nodes).await?;
    folders::check_shared(nodes, &running, &work.context.settings.storage_root).await?;
    let first = running.into_iter().next();
    first.map(|node| (nodes, node)).ok_or_else(|| {
        crate::smoke_row::unexpected("reach a node", "none runs", "start the cluster")
    })
}

async fn exists(nodes: &Nodes, node: &Node, path: &str) -> Result<bool, Error> {
    Ok(nodes.exec(node, &["test", "-e", path], None).await?.code == 0)
}

async fn wipe(
    work: Work<'_>,
    volumes: &[StableVolume],
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let (nodes, node) = a_node(work).await?;
    for volume in volumes {
        let path = volume.path.as_str();
        if exists(nodes, &node, path).await? {
            nodes
                .change(&node, &["rm", "-rf", "--one-file-system", "--", path])
                .await?;
            outcome.changed(format!("removed folder {path} with all data in it"));
        }
    }
    // Last: as long as there is data, it says whose.
    let marker = installation::marker_path(work);
    if exists(nodes, &node, &marker).await? {
        nodes.change(&node, &["rm", "-f", "--", &marker]).await?;
        outcome.changed(format!("removed {marker}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_below_the_storage_root_are_ever_emptied() {
        let root = "/var/local/shared";
        assert!(is_below("/var/local/shared/redis", root));
        for outside in [
            "/var/local/shared",
            "/var/local/shared/",
            "/var/local/sharedother/x",
            "/var/local/shared/../../etc",
            "/etc",
            "/",
            "",
            "redis",
        ] {
            assert!(!is_below(outside, root), "{outside}");
        }
    }
}
