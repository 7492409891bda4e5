//! `blueprint secrets rotate openbao-keys`: new unseal keys for the same data.
//!
//! The new keys are on disk, in a file of their own, before the server is told to take them; only then do they replace those of the init file. Cut off in
//! between, which of the two sets is in force is found by trying: here on an unsealed server, in [`super::initialise`] on a sealed one.

use std::path::PathBuf;

use blueprint_openbao::{Client, Given, Health, InitFile};
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::private_file;
use secrecy::SecretString;

use super::{init_file, initialise, session};
use crate::error::Error;
use crate::installer::Work;
use crate::rotation::{Target, pending_file};

/// Rotates, or ends what an earlier run began.
pub(crate) async fn rotate(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let session = session::open(work).await?;
    if session.client.health().await? == Health::Sealed {
        initialise::unseal(work, &session.client, outcome).await?;
    }
    let status = session.client.seal_status().await?;
    if status.kind != "shamir" {
        return Err(Error::Refused {
            summary: "OpenBao has no unseal keys to rotate".to_owned(),
            expected: "a server that is unsealed by key shares (seal type shamir)".to_owned(),
            found: format!("seal type {}", status.kind),
            hint: "its key is kept by the seal: rotate it there".to_owned(),
        });
    }
    let client = session.with_root_token(work)?;
    let present = init_file(work)?;
    let (shares, threshold) = (status.n, status.t);
    if let Some(new) = ask(&client, shares, threshold, &present.unseal_keys).await? {
        return put_in_force(work, &client, present.root_token, new, threshold, outcome).await;
    }
    // The init file's keys are refused: an earlier run got as far as telling the server, and no further.
    if let Some(staged) = staged(work)?
        && ask(&client, shares, threshold, &staged.unseal_keys)
            .await?
            .is_some()
    {
        client.rotation_cancel().await?;
        return adopt(work, &staged, outcome);
    }
    client.rotation_cancel().await?;
    let path = work.context.workspace.openbao_init();
    Err(Error::Refused {
        summary: "OpenBao refuses the unseal keys".to_owned(),
        expected: format!("the keys in {} to be the ones in force", path.display()),
        found: "keys of another time or of another server; nothing was changed".to_owned(),
        hint: format!(
            "put back the {} that belongs to the data in database openbao; while the server is unsealed, it can still be read with its root token",
            path.display()
        ),
    })
}

/// Keys of a rotation that was cut off.
pub(super) fn staged(work: Work<'_>) -> Result<Option<InitFile>, Error> {
    Ok(InitFile::read(&path(work))?)
}

/// The staged keys are the ones in force: they become the init file's.
pub(super) fn adopt(work: Work<'_>, staged: &InitFile, outcome: &mut Outcome) -> Result<(), Error> {
    let path_of_all = work.context.workspace.openbao_init();
    staged.write(&path_of_all)?;
    private_file::remove(&path(work))?;
    outcome.changed(format!(
        "wrote the unseal keys that are in force to {}; the former ones open nothing any more",
        path_of_all.display()
    ));
    Ok(())
}

fn path(work: Work<'_>) -> PathBuf {
    pending_file(&work.context.workspace, Target::OpenbaoKeys)
}

/// New keys that are not in force yet, and the nonce to verify them with.
struct NewKeys {
    keys: Vec<SecretString>,
    nonce: String,
}

/// Gives `keys` and gets new ones; `None` when they are not the ones in force. Nothing changes by this.
async fn ask(
    client: &Client,
    shares: u32,
    threshold: u32,
    keys: &[SecretString],
) -> Result<Option<NewKeys>, Error> {
    let begun = client.rotation_begin(shares, threshold).await?;
    for key in keys {
        match client.rotation_give(&begun, key).await {
            Ok(Given::More) => {}
            Ok(Given::Keys { keys, nonce }) => return Ok(Some(NewKeys { keys, nonce })),
            Err(error) if error.status() == Some(400) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// To disk, to the server, into the init file: in this order.
async fn put_in_force(
    work: Work<'_>,
    client: &Client,
    root_token: SecretString,
    new: NewKeys,
    threshold: u32,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let file = InitFile {
        unseal_keys: new.keys,
        threshold,
        root_token,
    };
    file.write(&path(work))?;
    let mut complete = false;
    for key in &file.unseal_keys {
        complete = client.rotation_verify(&new.nonce, key).await?;
        if complete {
            break;
        }
    }
    if !complete {
        client.rotation_cancel().await?;
        return Err(Error::Failed {
            action: "put OpenBao's new unseal keys in force".to_owned(),
            found: "it took every one of them and asks for more; the former keys stay in force"
                .to_owned(),
            hint: "run again".to_owned(),
        });
    }
    adopt(work, &file, outcome)
}
