//! The initialisation itself: each step is on disk before the next one begins, so that a crash or a full disk anywhere leaves a state that can be gone on from.

use crate::client::{self, Client};
use crate::init_file::InitFile;
use crate::journal::Journal;
use blueprint_safekeeping::private_file;

/// Into how many shares the key is split, and how many of them unseal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Shares.
    pub shares: u32,
    /// How many it takes.
    pub threshold: u32,
}

/// Why an initialisation did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum InitialiseError {
    /// The server.
    #[error(transparent)]
    Server(#[from] client::Error),
    /// A file of the journal, or the init file.
    #[error(transparent)]
    File(#[from] private_file::Error),
}

impl Journal {
    /// Notes the intention, initialises, stores the raw answer, writes the init file. To be called only on a server that was seen uninitialised with empty
    /// storage; `system_identifier` is that of its PostgreSQL.
    pub async fn initialise(
        &self,
        client: &Client,
        system_identifier: &str,
        split: Split,
    ) -> Result<(), InitialiseError> {
        self.intend(system_identifier)?;
        let raw = match client.init(split.shares, split.threshold).await {
            Ok(raw) => raw,
            Err(error) => {
                // A plain no means that this call stored nothing; any other end leaves the intention standing, and the next look decides.
                if error.status() == Some(400) {
                    self.forget()?;
                }
                return Err(error.into());
            }
        };
        self.answered(&raw)?;
        self.finish(split)?;
        Ok(())
    }

    /// From the stored answer to the init file; the journal goes only when that file is on disk.
    pub fn finish(&self, split: Split) -> Result<(), private_file::Error> {
        let path = self.init_file();
        let raw = self
            .answer()?
            .ok_or_else(|| private_file::Error::Malformed {
                path: path.to_owned(),
                expected: "OpenBao init file",
                found: "neither it nor a stored answer beside it is there".to_owned(),
            })?;
        InitFile::from_init_answer(&raw, split.shares, split.threshold, path)?.write(path)?;
        self.done()
    }
}
