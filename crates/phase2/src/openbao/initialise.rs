//! From a running pod to an unsealed server: look, decide, act, look again.

use std::time::Duration;

use blueprint_openbao::{Client, Health, Journal, Split};
use blueprint_pipeline::Outcome;

use super::decide::{Decision, Reason, Rows, Seen, decide};
use super::session::{Session, open_when_answering};
use super::{recover, refusal, rotate_keys, storage};
use crate::ambiguity::Way;
use crate::error::Error;
use crate::installation;
use crate::installer::Work;

/// What `bao operator init` does when nothing else is said.
const SPLIT: Split = Split {
    shares: 5,
    threshold: 3,
};
/// The longest way there is: start over, init, unseal, and a last look.
const ROUNDS: usize = 6;

/// Initialises when that is safe, unseals when it is sealed. Ends with a session to an active server.
pub(super) async fn bring_up(work: Work<'_>, outcome: &mut Outcome) -> Result<Session, Error> {
    let path = work.context.workspace.openbao_init();
    let journal = Journal::beside(&path);
    let mut set_aside = false;
    for _ in 0..ROUNDS {
        let session = open_when_answering(work).await?;
        let identifier = storage::system_identifier(work).await?;
        let seen = look(work, &session.client, &journal, &identifier).await?;
        match decide(seen) {
            Decision::Nothing => {
                journal.done()?;
                return Ok(session);
            }
            Decision::Unseal => unseal(work, &session.client, outcome).await?,
            Decision::Init => init(work, &session.client, &journal, &identifier, outcome).await?,
            Decision::FinishAnswered => {
                journal.finish(SPLIT)?;
                outcome.changed(format!(
                    "wrote {} from the answer that an earlier run had stored",
                    path.display()
                ));
            }
            Decision::RecoverLostInit => {
                drop(session);
                recover::start_over(work, outcome).await?;
            }
            Decision::Refuse(Reason::ServerWithoutKeys | Reason::RowsWithoutInit)
                if work.context.accepted.contains(&Way::OpenbaoDataAside) && !set_aside =>
            {
                drop(session);
                recover::set_data_aside(work, outcome).await?;
                set_aside = true;
            }
            Decision::Refuse(reason) => {
                return Err(refusal::refusal(
                    reason,
                    &work.context.workspace,
                    &identifier,
                ));
            }
        }
    }
    Err(Error::Failed {
        action: "bring OpenBao up".to_owned(),
        found: format!("it was not active after {ROUNDS} rounds of looking and acting"),
        hint: "look at its log: `kubectl -n openbao logs openbao-0`".to_owned(),
    })
}

async fn look(
    work: Work<'_>,
    client: &Client,
    journal: &Journal,
    identifier: &str,
) -> Result<Seen, Error> {
    let health = client.health().await?;
    let journal_state = journal.state()?;
    // The storage is looked into only where it decides: an active server with its keys on disk needs no second opinion.
    let settled =
        journal_state == blueprint_openbao::JournalState::Done && health != Health::Uninitialised;
    let rows = if settled {
        Rows::Some
    } else {
        storage::rows(work).await?
    };
    let same_database = journal
        .intended_on()?
        .is_some_and(|noted| noted == identifier);
    Ok(Seen {
        journal: journal_state,
        health,
        rows,
        same_database,
    })
}

async fn init(
    work: Work<'_>,
    client: &Client,
    journal: &Journal,
    identifier: &str,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    journal.initialise(client, identifier, SPLIT).await?;
    installation::remember(work).await;
    let Split { shares, threshold } = SPLIT;
    outcome.changed(format!(
        "initialised OpenBao ({shares} key shares, {threshold} unseal it); keys and root token in {}",
        work.context.workspace.openbao_init().display()
    ));
    Ok(())
}

/// Gives as many keys as it takes and waits until the server is active.
pub(super) async fn unseal(
    work: Work<'_>,
    client: &Client,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let status = client.seal_status().await?;
    if status.kind == "static" && !status.migration {
        return open_by_itself(work, client).await;
    }
    rotate_keys::unseal(work, client, status.migration, outcome).await?;
    wait_active(work, client).await?;
    outcome.changed(match (status.migration, status.kind.as_str()) {
        (false, _) => "unsealed OpenBao",
        (true, "static") => {
            "unsealed OpenBao and moved it to the static seal: it opens itself from now on"
        }
        (true, _) => "unsealed OpenBao and moved it back to key shares",
    });
    Ok(())
}

/// A server with the static seal needs nobody, only its key.
async fn open_by_itself(work: Work<'_>, client: &Client) -> Result<(), Error> {
    if let Err(error) = wait_active(work, client).await {
        if client.health().await? != Health::Sealed {
            return Err(error);
        }
        let path = work.context.workspace.openbao_seal_key();
        return Err(Error::Refused {
            summary: "OpenBao's seal key does not open it".to_owned(),
            expected: format!(
                "the key in {} to belong to the data in database openbao",
                path.display()
            ),
            found: "a server with the static seal that stays sealed".to_owned(),
            hint: format!(
                "put the right {} back from a copy and run again; the server's log says more: `kubectl -n openbao logs openbao-0`",
                path.display()
            ),
        });
    }
    Ok(())
}

async fn wait_active(work: Work<'_>, client: &Client) -> Result<(), Error> {
    let say = |blocker| work.progress.waiting(blocker);
    let attempt = || async move {
        Ok(match client.health().await {
            Ok(Health::Active) => Ok(()),
            Ok(other) => Err(format!("OpenBao is {other:?}").to_lowercase()),
            Err(error) => Err(error.to_string()),
        })
    };
    let cluster = &work.context.cluster;
    cluster
        .wait_until(
            "OpenBao to be active",
            Duration::from_mins(1),
            Duration::from_millis(250),
            &say,
            attempt,
        )
        .await?;
    Ok(())
}
