//! Gathers what decides: private files, volumes through a node, servers through the API. Changes nothing. What cannot be looked at is said and decides nothing.

use std::time::Duration;

use blueprint_openbao::{Health, Journal, JournalState};
use blueprint_safekeeping::private_file;
use futures::future::BoxFuture;

use super::seen::{Clash, Gitlab, OpenBao, Places, Seen};
use crate::error::Error;
use crate::installer::Work;
use crate::stable_storage::{folders, stable_volumes};
use crate::{cloudnative_pg, installation, minio, names, openbao, persistent_secrets, redis};

/// A server that does not answer must not hold pre-flight up.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

pub(super) struct Looked {
    pub(super) seen: Seen,
    /// What could not be told, and why.
    pub(super) unknown: Vec<String>,
    /// What is wrong in a way that no `--accept` settles.
    pub(super) refused: Vec<Error>,
}

impl Looked {
    /// A part's answer; where there is none, what stands for not knowing.
    fn take<T>(&mut self, what: &str, answer: Result<T, Error>, otherwise: T) -> T {
        match answer {
            Ok(answer) => answer,
            Err(error @ Error::Refused { .. }) => {
                self.refused.push(error);
                otherwise
            }
            Err(error) => {
                self.unknown
                    .push(format!("{what} could not be looked at: {error}"));
                otherwise
            }
        }
    }
}

/// Boxed: it asks many things at once, and would make every caller's future large.
pub(super) fn look(work: Work<'_>) -> BoxFuture<'_, Looked> {
    Box::pin(gather(work))
}

async fn gather(work: Work<'_>) -> Looked {
    let mut looked = Looked {
        seen: nothing(work),
        unknown: Vec::new(),
        refused: Vec::new(),
    };
    if let Err(error) = work.context.cluster.server_version().await {
        looked
            .unknown
            .push(format!("nothing was looked at: {error}"));
        return looked;
    }
    let (postgresql, storage, gitlab, clashes, in_use) = tokio::join!(
        postgresql(work),
        storage(work),
        gitlab(work),
        clashes(work),
        in_use(work),
    );
    let places = places(work);
    let postgresql = looked.take("the PostgreSQL volume", postgresql, None);
    let (marker, data) = looked.take("the storage root", storage, (None, Vec::new()));
    let journal = looked.take(
        "OpenBao's journal",
        journal(work),
        (JournalState::Done, None),
    );
    let server = server(work, postgresql.as_ref()).await;
    let seen = Seen {
        installation: looked.take(
            "the installation's id",
            installation::id(&work.context.workspace),
            None,
        ),
        marker,
        data,
        in_use: looked.take("the volumes", in_use, true),
        recorded: looked.take(
            "the record",
            cloudnative_pg::volume_probe::recorded(work),
            None,
        ),
        openbao: OpenBao {
            journal: journal.0,
            intended_on: journal.1,
            server,
        },
        gitlab: looked.take("GitLab's keys", gitlab, nothing(work).gitlab),
        clashes: looked.take("the passwords", clashes, Vec::new()),
        postgresql,
        places,
    };
    looked.seen = seen;
    looked
}

/// Not knowing anything: no state can be read out of it.
fn nothing(work: Work<'_>) -> Seen {
    Seen {
        installation: None,
        marker: None,
        data: Vec::new(),
        in_use: true,
        postgresql: None,
        recorded: None,
        openbao: OpenBao {
            journal: JournalState::Clean,
            intended_on: None,
            server: None,
        },
        gitlab: Gitlab {
            snapshot: false,
            keys_in_cluster: true,
            repositories: false,
        },
        clashes: Vec::new(),
        places: places(work),
    }
}

fn places(work: Work<'_>) -> Places {
    let workspace = &work.context.workspace;
    let shown = |path: std::path::PathBuf| path.display().to_string();
    Places {
        storage_root: work.context.settings.storage_root.clone(),
        marker: installation::marker_path(work),
        installation: shown(workspace.installation()),
        record: shown(workspace.system_identifier()),
        init_file: shown(workspace.openbao_init()),
        snapshot: shown(workspace.gitlab_snapshot()),
        gitaly: stable_volumes(work)
            .ok()
            .and_then(|volumes| {
                volumes
                    .into_iter()
                    .find(|volume| volume.name == "pv-gitaly")
            })
            .map(|volume| volume.path)
            .unwrap_or_default(),
    }
}

async fn bounded<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(ANSWER_WITHIN, answer)
        .await
        .unwrap_or_else(|_| {
            Err(Error::Failed {
                action: "get an answer".to_owned(),
                found: format!("none within {} s", ANSWER_WITHIN.as_secs()),
                hint: "run again".to_owned(),
            })
        })
}

async fn postgresql(work: Work<'_>) -> Result<Option<cloudnative_pg::Seen>, Error> {
    if work.context.nodes.is_none() {
        // The check of the container engine says so.
        return Ok(None);
    }
    cloudnative_pg::look(work).await.map(Some)
}

/// The marker; and where it is not ours, which volumes hold anything.
async fn storage(work: Work<'_>) -> Result<(Option<installation::Marker>, Vec<String>), Error> {
    let Some(marker) = installation::marker(work).await? else {
        return Ok((None, Vec::new()));
    };
    if installation::id(&work.context.workspace)?.as_ref() == Some(&marker.installation) {
        return Ok((Some(marker), Vec::new()));
    }
    let data = folders_with_data(work).await?;
    Ok((Some(marker), data))
}

/// The folders of the stable volumes that are not empty.
pub(super) async fn folders_with_data(work: Work<'_>) -> Result<Vec<String>, Error> {
    let nodes = work.context.nodes()?;
    let running = folders::running(nodes).await?;
    let mut data = Vec::new();
    if let Some(node) = running.first() {
        for volume in stable_volumes(work)? {
            if !folders::entries(nodes, node, &volume.path)
                .await?
                .is_empty()
            {
                data.push(volume.path);
            }
        }
    }
    Ok(data)
}

async fn in_use(work: Work<'_>) -> Result<bool, Error> {
    for volume in stable_volumes(work)? {
        let bound = volume
            .read(work)
            .await?
            .is_some_and(|there| there.data["status"]["phase"].as_str() == Some("Bound"));
        if bound {
            return Ok(true);
        }
    }
    Ok(false)
}

fn journal(work: Work<'_>) -> Result<(JournalState, Option<String>), Error> {
    let journal = Journal::beside(&work.context.workspace.openbao_init());
    Ok((journal.state()?, journal.intended_on()?))
}

/// The server's own word, or its tables'. One that cannot be asked decides nothing: step 8 asks again.
async fn server(
    work: Work<'_>,
    postgresql: Option<&cloudnative_pg::Seen>,
) -> Option<(Health, openbao::Rows)> {
    if !matches!(postgresql, Some(cloudnative_pg::Seen::Running(Some(_)))) {
        return None;
    }
    match bounded(openbao::standing(work)).await {
        Ok(standing) => Some(standing),
        Err(error) => {
            tracing::debug!(%error, "OpenBao could not be asked");
            None
        }
    }
}

async fn gitlab(work: Work<'_>) -> Result<Gitlab, Error> {
    let snapshot = private_file::read(&work.context.workspace.gitlab_snapshot())?.is_some();
    if snapshot {
        return Ok(Gitlab {
            snapshot,
            keys_in_cluster: true,
            repositories: false,
        });
    }
    let keys_in_cluster = work
        .context
        .cluster
        .secret(names::GITLAB, persistent_secrets::RAILS)
        .await?
        .is_some();
    Ok(Gitlab {
        snapshot,
        keys_in_cluster,
        repositories: !keys_in_cluster && persistent_secrets::repositories(work.context).await?,
    })
}

/// Passwords of which there are two, and neither works.
async fn clashes(work: Work<'_>) -> Result<Vec<Clash>, Error> {
    let (redis, minio, roles) = tokio::join!(
        bounded(redis::try_passwords(work)),
        bounded(minio::try_passwords(work)),
        bounded(cloudnative_pg::try_passwords(work)),
    );
    let mut found = Vec::new();
    for answer in [redis, minio, roles] {
        match answer {
            Ok(()) => {}
            Err(Error::Refused {
                summary,
                expected,
                found: seen,
                hint,
            }) => found.push(Clash {
                what: summary,
                expected,
                found: seen,
                hint,
            }),
            // A service that cannot be asked refuses nothing; its own step asks again.
            Err(error) => tracing::debug!(%error, "a password could not be tried"),
        }
    }
    Ok(found)
}
