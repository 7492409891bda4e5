//! Takes the accepted ways, each after it was written down. Nothing is deleted.

use std::path::PathBuf;

use blueprint_cluster::{Node, Nodes};
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::private_file;
use jiff::Timestamp;
use serde::Serialize;

use super::judge::{Plan, State, plan};
use super::look::{folders_with_data, look};
use super::seen::Seen;
use super::way::Way;
use crate::cloudnative_pg::volume_decision;
use crate::error::Error;
use crate::installer::Work;
use crate::stable_storage::folders;
use crate::{cloudnative_pg, credentials, installation};

/// One line of infra/secrets/accepted.jsonl.
#[derive(Serialize)]
struct Entry<'a> {
    at: String,
    way: &'a str,
    state: &'a str,
    found: &'a str,
}

/// Takes them all. To be called when pre-flight has found nothing else wanting.
pub(crate) async fn take(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let seen = look(work).await.seen;
    let Plan { take, left, .. } = plan(&seen, &work.context.accepted);
    if let Some(undecided) = left.into_iter().next() {
        return Err(undecided.into_error());
    }
    let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut standing = seen;
    for (way, state) in take {
        write_down(work, &standing, way, state)?;
        take_one(work, way, &standing, &time, outcome).await?;
        standing = standing.after(way);
    }
    Ok(())
}

/// The journal of decisions: written before anything is done.
fn write_down(work: Work<'_>, seen: &Seen, way: Way, state: State) -> Result<(), Error> {
    let found = super::judge(seen)
        .into_iter()
        .find(|ambiguity| ambiguity.state == state)
        .map_or_else(String::new, |ambiguity| ambiguity.found);
    let entry = Entry {
        at: Timestamp::now().to_string(),
        way: way.id(),
        state: state.name(),
        found: &found,
    };
    let path = work.context.workspace.accepted();
    let line = serde_json::to_string(&entry).map_err(|error| Error::Failed {
        action: format!("write {}", path.display()),
        found: error.to_string(),
        hint: "report this: a decision always is JSON".to_owned(),
    })?;
    let mut text = private_file::read_text(&path)?
        .map_or_else(String::new, |text| format!("{}\n", text.trim_end()));
    text.push_str(&line);
    text.push('\n');
    private_file::write(&path, text.as_bytes())?;
    Ok(())
}

async fn take_one(
    work: Work<'_>,
    way: Way,
    seen: &Seen,
    time: &str,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let workspace = &work.context.workspace;
    match way {
        Way::PgdataAside => {
            let Some(cloudnative_pg::Seen::Volume(volume)) = &seen.postgresql else {
                return Ok(());
            };
            let aside = format!("{}{time}", volume_decision::ASIDE);
            let (from, to) = (
                format!("{}/pgdata", volume.folder),
                format!("{}/{aside}", volume.folder),
            );
            let (nodes, node) = node(work).await?;
            move_folder(nodes, &node, &from, &to, outcome).await?;
        }
        Way::AdoptDatabase => {
            if let Some(identifier) = seen.database() {
                let path = workspace.system_identifier();
                credentials::keep_former(&path)?;
                private_file::write(&path, format!("{identifier}\n").as_bytes())?;
                outcome.changed(format!(
                    "recorded system identifier {identifier} in {}",
                    path.display()
                ));
            }
        }
        Way::SecretsAside => {
            let snapshots =
                (1..=5).map(|number| suffixed(workspace.gitlab_snapshot(), &format!(".{number}")));
            let files = openbao_files(work)
                .into_iter()
                .chain([workspace.system_identifier(), workspace.gitlab_snapshot()])
                .chain(snapshots)
                .collect();
            set_aside(work, files, time, outcome)?;
        }
        Way::OpenbaoKeysAside => set_aside(work, openbao_files(work), time, outcome)?,
        Way::VolumesAside => volumes_aside(work, time, outcome).await?,
        Way::AdoptVolumes => {
            if let Some(marker) = &seen.marker {
                let path = workspace.installation();
                credentials::keep_former(&path)?;
                private_file::write(&path, format!("{}\n", marker.installation).as_bytes())?;
                outcome.changed(format!(
                    "this workspace is installation {} now",
                    marker.installation
                ));
            }
        }
        Way::OpenbaoDataAside => outcome.note("accepted: step 8 moves OpenBao's tables aside"),
        Way::NewGitlabKeys => outcome.note("accepted: step 12 lets GitLab mint new keys"),
        Way::FilePassword | Way::ClusterPassword => {
            outcome.note(format!(
                "accepted {}: the service's own step sets it",
                way.id()
            ));
        }
    }
    Ok(())
}

fn openbao_files(work: Work<'_>) -> Vec<PathBuf> {
    let init_file = work.context.workspace.openbao_init();
    ["", ".intended", ".answer"]
        .into_iter()
        .map(|end| suffixed(init_file.clone(), end))
        .chain([work.context.workspace.openbao_seal_key()])
        .collect()
}

fn suffixed(path: PathBuf, end: &str) -> PathBuf {
    let mut name = path.into_os_string();
    name.push(end);
    name.into()
}

fn set_aside(
    work: Work<'_>,
    files: Vec<PathBuf>,
    time: &str,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let folder = work
        .context
        .workspace
        .secrets()
        .join(format!("aside_{time}"));
    for file in files {
        if private_file::set_aside(&file, &folder)? {
            outcome.changed(format!("moved {} to {}", file.display(), folder.display()));
        }
    }
    Ok(())
}

async fn volumes_aside(work: Work<'_>, time: &str, outcome: &mut Outcome) -> Result<(), Error> {
    let (nodes, node) = node(work).await?;
    let aside = format!("{}/aside_{time}", work.context.settings.storage_root);
    nodes
        .run(&node, &["mkdir", "--mode", "0700", &aside], None)
        .await?;
    for folder in folders_with_data(work).await? {
        let name = folder.rsplit('/').next().unwrap_or_default();
        move_folder(nodes, &node, &folder, &format!("{aside}/{name}"), outcome).await?;
    }
    let marker = installation::marker_path(work);
    if nodes.read_file(&node, &marker).await?.is_some() {
        let to = format!("{aside}/{}", installation::MARKER);
        move_folder(nodes, &node, &marker, &to, outcome).await?;
    }
    Ok(())
}

async fn node(work: Work<'_>) -> Result<(&Nodes, Node), Error> {
    let nodes = work.context.nodes()?;
    let running = folders::running(nodes).await?;
    let first = running.into_iter().next();
    let node = first.ok_or_else(|| Error::Failed {
        action: "reach a node".to_owned(),
        found: "none runs".to_owned(),
        hint: "start the cluster".to_owned(),
    })?;
    Ok((nodes, node))
}

/// A rename within one file system, onto a name that is free.
async fn move_folder(
    nodes: &Nodes,
    node: &Node,
    from: &str,
    to: &str,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    nodes
        .run(
            node,
            &["mv", "--no-clobber", "--no-target-directory", from, to],
            None,
        )
        .await?;
    if nodes.exec(node, &["test", "-e", from], None).await?.code == 0 {
        return Err(Error::Failed {
            action: format!("move {from} to {to}"),
            found: format!("{from} is still there"),
            hint: format!("move {from} away on the host and run again"),
        });
    }
    outcome.changed(format!("moved {from} to {to}"));
    Ok(())
}
