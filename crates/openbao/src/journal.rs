//! The init journal: what was intended before the one call whose answer cannot be had twice.

use std::path::{Path, PathBuf};

use blueprint_safekeeping::private_file;

/// Where an initialisation stands, judged by what is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalState {
    /// Nothing was ever begun here.
    Clean,
    /// Init was intended and no answer reached the disk: whoever holds a key, it is not us.
    Intended,
    /// The raw answer is on disk, the init file not yet.
    Answered,
    /// The init file is there.
    Done,
}

/// The journal's files beside `openbao-init.json`.
#[derive(Debug, Clone)]
pub struct Journal {
    init_file: PathBuf,
}

impl Journal {
    /// For the given `openbao-init.json`.
    pub fn beside(init_file: &Path) -> Self {
        Self { init_file: init_file.to_owned() }
    }

    /// What is on disk.
    pub fn state(&self) -> Result<JournalState, private_file::Error> {
        todo!()
    }

    /// Notes, fsynced, that init is about to be called on a server that was seen uninitialised with empty storage; `system_identifier` is PostgreSQL's.
    pub fn intend(&self, system_identifier: &str) -> Result<(), private_file::Error> {
        todo!()
    }

    /// The system identifier noted by [`Self::intend`].
    pub fn intended_on(&self) -> Result<Option<String>, private_file::Error> {
        todo!()
    }

    /// Stores the raw answer before anything looks into it.
    pub fn answered(&self, raw: &[u8]) -> Result<(), private_file::Error> {
        todo!()
    }

    /// The stored raw answer.
    pub fn answer(&self) -> Result<Option<zeroize::Zeroizing<Vec<u8>>>, private_file::Error> {
        todo!()
    }

    /// Removes the journal's own files once the init file is on disk.
    pub fn done(&self) -> Result<(), private_file::Error> {
        todo!()
    }

    /// Drops an intention that is known to have come to nothing.
    pub fn forget(&self) -> Result<(), private_file::Error> {
        todo!()
    }
}
