//! `blueprint secrets rotate openbao-keys`, and the keys that a sealed server opens with.

use blueprint_openbao::{Client, KeysError, KeysInForce, Split, UnsealKeys};
use blueprint_pipeline::Outcome;

use super::{initialise, no_keys, session};
use crate::error::Error;
use crate::installer::Work;
use crate::rotation::{Target, pending_file};

/// New unseal keys for the same data, or the end of a rotation that was cut off.
pub(crate) async fn rotate(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let session = session::open(work).await?;
    let status = session.client.seal_status().await?;
    if status.sealed && status.initialized {
        initialise::unseal(work, &session.client, outcome).await?;
    }
    if status.kind != "shamir" {
        return Err(Error::Refused {
            summary: "OpenBao has no unseal keys to rotate".to_owned(),
            expected: "a server that is unsealed by key shares (seal type shamir)".to_owned(),
            found: format!("seal type {}", status.kind),
            hint: "set `openbao.autoUnseal: false` and run `blueprint up`, which moves it back to key shares".to_owned(),
        });
    }
    let client = session.with_root_token(work)?;
    let split = Split {
        shares: status.n,
        threshold: status.t,
    };
    let done = keys(work).rotate(&client, split).await;
    told(work, done.map_err(|error| explained(work, error))?, outcome);
    Ok(())
}

/// Opens a sealed server; `migrating`: its keys move it from one seal to the other.
pub(super) async fn unseal(
    work: Work<'_>,
    client: &Client,
    migrating: bool,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let done = keys(work).unseal(client, migrating).await;
    told(work, done.map_err(|error| explained(work, error))?, outcome);
    Ok(())
}

fn keys(work: Work<'_>) -> UnsealKeys {
    let workspace = &work.context.workspace;
    UnsealKeys::new(
        &workspace.openbao_init(),
        &pending_file(workspace, Target::OpenbaoKeys),
    )
}

fn told(work: Work<'_>, done: KeysInForce, outcome: &mut Outcome) {
    let path = work.context.workspace.openbao_init();
    let path = path.display();
    match done {
        KeysInForce::AsKept => {}
        KeysInForce::New => outcome.changed(format!(
            "wrote new unseal keys to {path}; they are in force, the former ones open nothing any more"
        )),
        KeysInForce::Finished => outcome.changed(format!(
            "wrote the unseal keys of a rotation that was cut off to {path}: they are the ones in force"
        )),
    }
}

/// The server's own answer to foreign keys (400, "message authentication failed") would not tell people what to look at.
fn explained(work: Work<'_>, error: KeysError) -> Error {
    let path = work.context.workspace.openbao_init();
    match error {
        KeysError::Server(error) => error.into(),
        KeysError::File(error) => error.into(),
        KeysError::Missing(_) => no_keys(work),
        KeysError::Refused(error) => Error::Refused {
            summary: "OpenBao refuses the unseal keys".to_owned(),
            expected: format!(
                "the keys in {} to belong to the data in database openbao",
                path.display()
            ),
            found: error.to_string(),
            hint: format!(
                "either {} or the PostgreSQL volume is from another installation or of another time: bring back the one that belongs to the other",
                path.display()
            ),
        },
        KeysError::NotEnough { given } => Error::Refused {
            summary: "OpenBao took every key and wants more".to_owned(),
            expected: "the keys to be enough".to_owned(),
            found: format!("{given} keys in {}", path.display()),
            hint: "put the complete file back from a copy".to_owned(),
        },
    }
}
