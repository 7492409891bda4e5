//! The unseal keys on disk: those of the init file and, while a rotation is not over, the new ones beside them.
//!
//! The new keys are in their own file before the server is told to take them; only then do they replace those of the init file. Cut off in between, which of the two
//! sets is in force is found by trying: on a sealed server by unsealing it, on an unsealed one by asking for yet another set, which changes nothing.

use std::path::{Path, PathBuf};

use blueprint_safekeeping::private_file;
use secrecy::SecretString;

use crate::client::{self, Client, Given};
use crate::init_file::InitFile;
use crate::initialise::Split;

/// The two files.
#[derive(Debug, Clone)]
pub struct UnsealKeys {
    init_file: PathBuf,
    staged: PathBuf,
}

/// Why the keys were of no use. Holds none of them.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The server.
    #[error(transparent)]
    Server(#[from] client::Error),
    /// One of the files.
    #[error(transparent)]
    File(#[from] private_file::Error),
    /// There is no init file.
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
    /// The server refuses the keys of every file: they are of another server, or of another time.
    #[error("OpenBao refuses the unseal keys: {0}")]
    Refused(client::Error),
    /// It took all and wants more.
    #[error("OpenBao took all {given} keys and wants more")]
    NotEnough {
        /// How many there were.
        given: usize,
    },
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysInForce {
    /// Those of the init file, as it was.
    AsKept,
    /// Those of a rotation that was cut off; the init file has them now.
    Finished,
    /// New ones; the init file has them now.
    New,
}

/// Keys that are not in force yet, and the nonce to verify them with.
struct NewKeys {
    keys: Vec<SecretString>,
    nonce: String,
}

impl UnsealKeys {
    /// `staged` is where a rotation keeps the new ones.
    pub fn new(init_file: &Path, staged: &Path) -> Self {
        Self {
            init_file: init_file.to_owned(),
            staged: staged.to_owned(),
        }
    }

    /// Opens a sealed server; `migrating`: its keys move it from one seal to the other.
    pub async fn unseal(&self, client: &Client, migrating: bool) -> Result<KeysInForce, KeysError> {
        let kept = self.kept()?;
        let refused = match open(client, &kept, migrating).await {
            Ok(()) => return Ok(KeysInForce::AsKept),
            Err(KeysError::Server(error)) if error.status() == Some(400) => error,
            Err(error) => return Err(error),
        };
        let Some(staged) = InitFile::read(&self.staged)? else {
            return Err(KeysError::Refused(refused));
        };
        match open(client, &staged, migrating).await {
            Ok(()) => self.adopt(&staged).map(|()| KeysInForce::Finished),
            Err(KeysError::Server(error)) if error.status() == Some(400) => {
                Err(KeysError::Refused(error))
            }
            Err(error) => Err(error),
        }
    }

    /// New keys for an unsealed server, or the end of a rotation that was cut off. `client` needs the root token.
    pub async fn rotate(&self, client: &Client, split: Split) -> Result<KeysInForce, KeysError> {
        let kept = self.kept()?;
        let refused = match ask(client, split, &kept.unseal_keys).await {
            Ok(new) => {
                self.put_in_force(client, split, &kept, new).await?;
                return Ok(KeysInForce::New);
            }
            Err(KeysError::Refused(error)) => error,
            Err(error) => return Err(error),
        };
        let staged = InitFile::read(&self.staged)?;
        let Some(staged) = staged else {
            client.rotation_cancel().await?;
            return Err(KeysError::Refused(refused));
        };
        let asked = ask(client, split, &staged.unseal_keys).await;
        client.rotation_cancel().await?;
        asked?;
        self.adopt(&staged)?;
        Ok(KeysInForce::Finished)
    }

    fn kept(&self) -> Result<InitFile, KeysError> {
        InitFile::read(&self.init_file)?.ok_or_else(|| KeysError::Missing(self.init_file.clone()))
    }

    /// To disk, to the server, into the init file: in this order.
    async fn put_in_force(
        &self,
        client: &Client,
        split: Split,
        kept: &InitFile,
        new: NewKeys,
    ) -> Result<(), KeysError> {
        let file = InitFile {
            unseal_keys: new.keys,
            threshold: split.threshold,
            root_token: kept.root_token.clone(),
        };
        file.write(&self.staged)?;
        for key in &file.unseal_keys {
            if client.rotation_verify(&new.nonce, key).await? {
                return self.adopt(&file);
            }
        }
        client.rotation_cancel().await?;
        Err(KeysError::NotEnough {
            given: file.unseal_keys.len(),
        })
    }

    /// The staged keys are the ones in force: they become the init file's.
    fn adopt(&self, staged: &InitFile) -> Result<(), KeysError> {
        staged.write(&self.init_file)?;
        private_file::remove(&self.staged)?;
        Ok(())
    }
}

async fn open(client: &Client, keys: &InitFile, migrating: bool) -> Result<(), KeysError> {
    for key in &keys.unseal_keys {
        let status = if migrating {
            client.migrate_seal(key).await?
        } else {
            client.unseal(key).await?
        };
        if !status.sealed {
            return Ok(());
        }
    }
    Err(KeysError::NotEnough {
        given: keys.unseal_keys.len(),
    })
}

/// Gives `keys` and gets new ones; refused when they are not the ones in force. Nothing changes by this.
async fn ask(client: &Client, split: Split, keys: &[SecretString]) -> Result<NewKeys, KeysError> {
    let begun = client.rotation_begin(split.shares, split.threshold).await?;
    for key in keys {
        match client.rotation_give(&begun, key).await {
            Ok(Given::More) => {}
            Ok(Given::Keys { keys, nonce }) => return Ok(NewKeys { keys, nonce }),
            Err(error) if error.status() == Some(400) => return Err(KeysError::Refused(error)),
            Err(error) => return Err(error.into()),
        }
    }
    Err(KeysError::NotEnough { given: keys.len() })
}
