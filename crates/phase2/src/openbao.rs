//! Step 8: OpenBao for the platform's own secrets, stored in PostgreSQL; initialised once, unsealed whenever it is sealed.

mod connection_url;
mod contents;
mod decide;
mod initialise;
mod recover;
mod refusal;
mod release;
mod rotate_keys;
mod seal;
mod session;
mod standing;
mod still_openable;
mod storage;

use async_trait::async_trait;
use blueprint_cluster::LocalForward;
use blueprint_openbao::{Client, Health, InitFile};
use blueprint_pipeline::Outcome;

use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::removal::{self, Removal};
use crate::smoke::{CheckResult, row};
use crate::smoke_row;

pub(crate) use connection_url::password_in_url;
pub(crate) use contents::{BUNDLED_PATH, MOUNT};
pub(crate) use decide::{Decision, Reason, Rows, Seen, decide};
pub(crate) use release::SECRET as PG_SECRET;
pub(crate) use rotate_keys::rotate as rotate_keys;
pub(crate) use seal::{KEY as SEAL_KEY, SECRET as SEAL_SECRET};
pub(crate) use standing::standing;

const TASK: &str = "openbao";
/// To another seal it takes one start, to finish the way back one more.
const STARTS_FOR_A_SEAL: usize = 3;
/// What a look at a sealed server says.
pub(crate) const SEALED: &str = "OpenBao is sealed";

/// OpenBao.
#[derive(Debug, Clone, Copy)]
pub struct OpenBao;

#[async_trait]
impl Installer for OpenBao {
    fn id(&self) -> &'static str {
        TASK
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        match release::state(work).await? {
            State::Ready => {}
            other => return Ok(other),
        }
        let session = session::open(work).await?;
        Ok(match session.client.health().await? {
            Health::Uninitialised => State::Missing,
            Health::Sealed => State::Broken(SEALED.to_owned()),
            Health::Active | Health::Standby => {
                contents::state(work, &session.with_root_token(work)?).await?
            }
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        release::ensure(work, &mut outcome).await?;
        let mut session = initialise::bring_up(work, &mut outcome).await?;
        for _ in 0..STARTS_FOR_A_SEAL {
            if !seal::goes_on(work, &session.client, &mut outcome).await? {
                break;
            }
            drop(session);
            release::ensure(work, &mut outcome).await?;
            session = initialise::bring_up(work, &mut outcome).await?;
        }
        seal::remove_secret(work, &mut outcome).await?;
        match contents::ensure(work, &session.with_root_token(work)?, &mut outcome).await {
            // A server that lost PostgreSQL, or runs with a password of yesterday, still calls itself healthy; a new pod reads the Secret again.
            Err(Error::OpenBao(error)) if error.status() == Some(500) => {
                drop(session);
                release::replace_pod(work).await?;
                outcome.changed("replaced pod openbao-0, which could not reach its storage");
                let session = initialise::bring_up(work, &mut outcome).await?;
                contents::ensure(work, &session.with_root_token(work)?, &mut outcome).await?;
            }
            other => other?,
        }
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::there(work, &release::pieces()).await
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        let mut outcome = Outcome::unchanged();
        release::check_ours(work).await?;
        if removal == Removal::Keep && release::is_there(work).await? {
            still_openable::check(work).await?;
        }
        removal::remove(work, &release::pieces(), &mut outcome).await?;
        Ok(outcome)
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![smoke_row::row(row::OPENBAO, TASK, unsealed(work).await)]
    }
}

/// `blueprint secrets unseal`: unseals a server that a restart left sealed, and nothing else.
pub async fn unseal(work: Work<'_>) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    let session = session::open(work).await?;
    match session.client.health().await? {
        Health::Active | Health::Standby => outcome.note("OpenBao is unsealed already"),
        Health::Sealed => initialise::unseal(work, &session.client, &mut outcome).await?,
        Health::Uninitialised => {
            return Err(Error::Refused {
                summary: "OpenBao has never been initialised".to_owned(),
                expected: "an initialised, sealed server".to_owned(),
                found: "an uninitialised one".to_owned(),
                hint: "run `blueprint up --only openbao`: it decides whether initialising is safe"
                    .to_owned(),
            });
        }
    }
    Ok(outcome)
}

/// A client with the root token, for the installers that keep secrets in OpenBao. It works as long as the forward lives.
pub async fn client(work: Work<'_>) -> Result<(LocalForward, Client), Error> {
    let session = session::open(work).await?;
    let client = session.with_root_token(work)?;
    Ok((session.forward, client))
}

/// The init file, which must be there.
fn init_file(work: Work<'_>) -> Result<InitFile, Error> {
    let path = work.context.workspace.openbao_init();
    InitFile::read(&path)?.ok_or_else(|| no_keys(work))
}

fn no_keys(work: Work<'_>) -> Error {
    let path = work.context.workspace.openbao_init();
    Error::Refused {
        summary: "OpenBao's keys are not on disk".to_owned(),
        expected: format!("unseal keys and root token in {}", path.display()),
        found: "no such file".to_owned(),
        hint: format!(
            "put {} back from a copy, or run `blueprint up --only openbao` if OpenBao was never initialised",
            path.display()
        ),
    }
}

async fn unsealed(work: Work<'_>) -> Result<String, Error> {
    let session = session::open(work).await?;
    let status = session.client.seal_status().await?;
    let seen = format!(
        "sealed: {}, storage: {}, version {}",
        status.sealed, status.storage_type, status.version
    );
    if !status.initialized || status.sealed || status.storage_type != "postgresql" {
        let found = format!("initialized: {}, {seen}", status.initialized);
        return Err(smoke_row::unexpected(
            "find OpenBao unsealed on PostgreSQL",
            found,
            "run `blueprint secrets unseal`",
        ));
    }
    // Health stays 200 while PostgreSQL is gone; only the storage itself tells.
    contents::read_marker(&session.with_root_token(work)?).await?;
    Ok(seen)
}
