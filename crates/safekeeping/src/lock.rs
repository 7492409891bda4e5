//! One run at a time in one workspace.

use std::path::{Path, PathBuf};

/// Held for as long as a run changes things; released by the operating system when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    _file: std::fs::File,
}

/// Why the lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another live process holds it.
    #[error("another run holds {path}: process {pid}, {command}, since {since}")]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Its holder.
        pid: u32,
        /// When it took the lock (RFC 3339).
        since: String,
        /// What it runs.
        command: String,
    },
    /// The lock file could not be used.
    #[error("failed to lock {path}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
}

impl RunLock {
    /// Takes the lock or says at once who holds it. `command` is written into the file for the other's message.
    pub fn acquire(path: &Path, command: &str) -> Result<Self, LockError> {
        todo!()
    }
}
