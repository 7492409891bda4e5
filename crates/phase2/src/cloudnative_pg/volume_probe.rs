//! Looks at the PostgreSQL volume through a node and decides.

use blueprint_cluster::{Node, Nodes};
use blueprint_safekeeping::private_file;

use super::volume_decision::{self, ASIDE, Decision, Found, PgData, Places, Stop};
use crate::error::Error;
use crate::installer::Work;
use crate::smoke_row::unexpected;
use crate::stable_storage::{folders, stable_volume};

/// The PersistentVolume of the reference that PostgreSQL lives on.
pub(super) const VOLUME: &str = "pv-cnpg-data";

/// The volume as it was found, with what it is judged by.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    pub(crate) found: Found,
    /// Its folder on the nodes.
    pub(crate) folder: String,
    /// The file with the recorded identifier.
    record: String,
    major: Option<String>,
}

impl Volume {
    /// One for tests.
    #[cfg(test)]
    pub(crate) fn of(found: Found, folder: &str) -> Self {
        Self {
            found,
            folder: folder.to_owned(),
            record: "infra/secrets/cnpg-system-identifier.txt".to_owned(),
            major: Some("17".to_owned()),
        }
    }

    /// What is to be done with it.
    pub(crate) fn decide(&self, recorded: Option<u64>) -> Result<Decision, Stop> {
        let places = Places {
            folder: &self.folder,
            record: &self.record,
        };
        volume_decision::decide(&self.found, recorded, self.major.as_deref(), places)
    }
}

/// Probes and decides; a volume that needs a person is an error that says what was found and the ways out.
pub(super) async fn decide(work: Work<'_>) -> Result<Decision, Error> {
    look(work)
        .await?
        .decide(recorded(work)?)
        .map_err(into_error)
}

/// Looks at the volume through a node.
pub(crate) async fn look(work: Work<'_>) -> Result<Volume, Error> {
    let folder = stable_volume(work, VOLUME)?.path;
    let nodes = work.context.nodes()?;
    let running = folders::running(nodes).await?;
    // Every node sees the same folder: step 4 made sure.
    let node = running
        .first()
        .ok_or_else(|| unexpected("reach a node", "none runs", "start the cluster"))?;
    let found = probe(nodes, node, &folder).await?;
    let record = work.context.workspace.system_identifier();
    let image = work.context.versions.image("postgresql")?;
    Ok(Volume {
        found,
        folder,
        record: record.display().to_string(),
        major: major(&image.tag).map(str::to_owned),
    })
}

async fn probe(nodes: &Nodes, node: &Node, folder: &str) -> Result<Found, Error> {
    let pgdata = format!("{folder}/pgdata");
    let mut beside = folders::entries(nodes, node, folder).await?;
    beside.retain(|name| name != "pgdata" && !name.starts_with(ASIDE));
    if folders::entries(nodes, node, &pgdata).await?.is_empty() {
        return Ok(Found {
            beside,
            pgdata: None,
        });
    }
    let version = nodes
        .read_file(node, &format!("{pgdata}/PG_VERSION"))
        .await?;
    let control = nodes
        .read_file(node, &format!("{pgdata}/global/pg_control"))
        .await?;
    let template0 = nodes
        .read_file(node, &format!("{pgdata}/base/4/PG_VERSION"))
        .await?
        .is_some();
    let version = version.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Found {
        beside,
        pgdata: Some(PgData {
            version,
            control,
            template0,
        }),
    })
}

/// The identifier recorded after the last Ready.
pub(crate) fn recorded(work: Work<'_>) -> Result<Option<u64>, Error> {
    let path = work.context.workspace.system_identifier();
    let Some(text) = private_file::read_text(&path)? else {
        return Ok(None);
    };
    match text.trim().parse() {
        Ok(identifier) => Ok(Some(identifier)),
        Err(_) => Err(Error::Refused {
            summary: format!("{} is not readable", path.display()),
            expected: "the system identifier of the PostgreSQL cluster, a number".to_owned(),
            found: "something else".to_owned(),
            hint:
                "restore the file from a copy, or remove it to take the identifier from the volume"
                    .to_owned(),
        }),
    }
}

/// `17` of `17.6` or `17.6-standard-trixie`.
fn major(tag: &str) -> Option<&str> {
    let digits = tag
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(tag.len());
    tag.get(..digits).filter(|major| !major.is_empty())
}

fn into_error(stop: Stop) -> Error {
    Error::Refused {
        summary: stop.summary.to_owned(),
        expected: stop.expected,
        found: stop.found,
        hint: stop.hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_leads_the_tag() {
        assert_eq!(major("17.6"), Some("17"));
        assert_eq!(major("17-minimal-trixie"), Some("17"));
        assert_eq!(major("latest"), None);
    }
}
