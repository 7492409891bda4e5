//! Whose data it is: the workspace's id, and a marker on the storage root that says which installation its volumes belong to.
//!
//! The marker also remembers on which database OpenBao was initialised and GitLab's keys were used, so that lost keys are noticed before a new cluster has been
//! touched. It holds no secret. A storage folder without a marker is an older one: it gets its marker when it is used.

use blueprint_openbao::InitFile;
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::{password, private_file};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use crate::ambiguity;
use crate::cloudnative_pg::volume_probe;
use crate::error::Error;
use crate::installer::Work;
use crate::stable_storage::folders;
use crate::workspace::Workspace;

/// The marker's name in the storage root.
pub const MARKER: &str = ".blueprint-installation.json";
const MODE: u32 = 0o644;
const LENGTH: usize = 20;

/// What stands on the storage root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// The installation's id.
    pub(crate) installation: String,
    /// When it was first used (RFC 3339).
    pub(crate) since: String,
    /// System identifier of the database that OpenBao was initialised on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) openbao_on: Option<String>,
    /// System identifier of the database that GitLab's kept keys were used on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gitlab_on: Option<String>,
}

/// The workspace's id; `None` before its first run.
pub(crate) fn id(workspace: &Workspace) -> Result<Option<String>, Error> {
    let text = private_file::read_text(&workspace.installation())?;
    Ok(text
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty()))
}

/// Where the marker is, on every node.
pub(crate) fn marker_path(work: Work<'_>) -> String {
    format!("{}/{MARKER}", work.context.settings.storage_root)
}

/// The marker, read through a node; `None` where there is none, or no node to ask.
pub(crate) async fn marker(work: Work<'_>) -> Result<Option<Marker>, Error> {
    let Some(nodes) = &work.context.nodes else {
        return Ok(None);
    };
    let running = folders::running(nodes).await?;
    let Some(node) = running.first() else {
        return Ok(None);
    };
    let path = marker_path(work);
    let Some(bytes) = nodes.read_file(node, &path).await? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Error::Refused {
            summary: format!("{path} cannot be read"),
            expected: "the marker of the installation that the volumes belong to".to_owned(),
            found: error.to_string(),
            hint: "put it back from a copy; or remove it, if you know that the volumes are this workspace's: it is then written anew".to_owned(),
        })
}

/// What would be written now: `None` when the marker is as it should be.
pub(crate) async fn outdated(work: Work<'_>) -> Result<Option<&'static str>, Error> {
    if work.context.nodes.is_none() {
        return Ok(None);
    }
    let there = marker(work).await?;
    let Some(id) = id(&work.context.workspace)? else {
        return Ok(Some("the workspace has no installation id yet"));
    };
    let wanted = wanted(work, there.as_ref(), &id)?;
    Ok((there.as_ref() != Some(&wanted)).then_some("the storage root's marker is not up to date"))
}

/// Gives the workspace its id and the storage root its marker, and brings both up to date. Refuses the data of another installation.
pub(crate) async fn mark(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let workspace = &work.context.workspace;
    let there = marker(work).await?;
    let mut ours = id(workspace)?;
    if there
        .as_ref()
        .is_some_and(|there| ours.as_ref() != Some(&there.installation))
    {
        ambiguity::refuse_foreign_volumes(work).await?;
    }
    if ours.is_none() {
        let id = there.as_ref().map_or_else(
            || password::generate(LENGTH).expose_secret().to_lowercase(),
            |there| there.installation.clone(),
        );
        let path = workspace.installation();
        private_file::write(&path, format!("{id}\n").as_bytes())?;
        outcome.changed(format!("wrote the installation's id to {}", path.display()));
        ours = Some(id);
    }
    let Some(id) = ours else { return Ok(()) };
    let wanted = wanted(work, there.as_ref(), &id)?;
    if there.as_ref() == Some(&wanted) {
        return Ok(());
    }
    write(work, &wanted).await?;
    outcome.changed(format!(
        "marked {} as installation {id}'s",
        work.context.settings.storage_root
    ));
    Ok(())
}

/// Brings the marker up to date after something worth remembering. The next run would do it too, so a node that cannot be asked is no reason to fail.
pub(crate) async fn remember(work: Work<'_>) {
    if let Err(error) = mark(work, &mut Outcome::default()).await {
        tracing::debug!(%error, "the storage root's marker was not brought up to date");
    }
}

async fn write(work: Work<'_>, marker: &Marker) -> Result<(), Error> {
    let nodes = work.context.nodes()?;
    let running = folders::running(nodes).await?;
    let path = marker_path(work);
    let text = serde_json::to_string_pretty(marker).map_err(|error| Error::Failed {
        action: format!("write {path}"),
        found: error.to_string(),
        hint: "report this: the marker always is JSON".to_owned(),
    })?;
    if let Some(node) = running.first() {
        nodes
            .write_file(node, &path, format!("{text}\n").as_bytes(), MODE)
            .await?;
    }
    Ok(())
}

fn wanted(work: Work<'_>, there: Option<&Marker>, id: &str) -> Result<Marker, Error> {
    let workspace = &work.context.workspace;
    let database = volume_probe::recorded(work)?.map(|identifier| identifier.to_string());
    let keys = InitFile::read(&workspace.openbao_init())?.is_some();
    let snapshot = private_file::read(&workspace.gitlab_snapshot())?.is_some();
    Ok(updated(there, id, database.as_deref(), keys, snapshot))
}

/// What is remembered stays as long as nothing newer is known.
fn updated(
    there: Option<&Marker>,
    id: &str,
    database: Option<&str>,
    keys: bool,
    snapshot: bool,
) -> Marker {
    let there = there.filter(|there| there.installation == id);
    let on = |used: bool| database.filter(|_| used).map(str::to_owned);
    Marker {
        installation: id.to_owned(),
        since: there.map_or_else(
            || jiff::Timestamp::now().to_string(),
            |there| there.since.clone(),
        ),
        openbao_on: on(keys).or_else(|| there?.openbao_on.clone()),
        gitlab_on: on(snapshot).or_else(|| there?.gitlab_on.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_remembered_stays_when_the_files_are_lost() {
        let first = updated(None, "a", Some("42"), true, true);
        assert_eq!(
            (first.openbao_on.as_deref(), first.gitlab_on.as_deref()),
            (Some("42"), Some("42"))
        );
        assert_eq!(updated(Some(&first), "a", Some("42"), false, false), first);
        assert_eq!(updated(Some(&first), "a", Some("42"), true, true), first);
    }

    #[test]
    fn a_new_database_is_remembered_and_another_installations_memory_is_not_ours() {
        let first = updated(None, "a", Some("42"), true, true);
        let next = updated(Some(&first), "a", Some("7"), true, false);
        assert_eq!(
            (next.openbao_on.as_deref(), next.gitlab_on.as_deref()),
            (Some("7"), Some("42"))
        );
        let foreign = updated(Some(&first), "b", None, false, false);
        assert_eq!((foreign.openbao_on, foreign.gitlab_on), (None, None));
    }
}
