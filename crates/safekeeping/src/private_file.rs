//! One private file: read, written, its mode mended.

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The file did not exist before.
    Created,
    /// The content differed and was replaced.
    Replaced,
    /// The same bytes were there already; nothing was touched.
    Unchanged,
}

/// A file or folder whose mode was looser than 0600 or 0700 and was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// The file or folder.
    pub path: PathBuf,
    /// The permission bits found, for example `0o644`.
    pub found: u32,
}

/// Why a private file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("failed to {action} {path}")]
    Io {
        /// What was tried ("read", "write", …).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// The file's content is not what it should be.
    #[error("{path} is not a valid {expected}: {found}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What is wrong with it; never contains a value of the file.
        found: String,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        todo!()
    }
}

/// Writes `bytes` to `path` with mode 0600: temporary file beside it, fsync, rename, fsync of the folder. Missing parent folders are made 0700.
/// The same bytes already there leave the file untouched (its mode is mended).
pub fn write(path: &Path, bytes: &[u8]) -> Result<Written, Error> {
    todo!()
}

/// Reads a private file; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    todo!()
}

/// Reads a private file as UTF-8 text without its last line end; `None` if there is none.
pub fn read_text(path: &Path) -> Result<Option<Zeroizing<String>>, Error> {
    todo!()
}

/// Walks `folder` and brings every file to 0600 and every folder to 0700; answers what was looser. A missing folder is no error.
pub fn mend_modes(folder: &Path) -> Result<Vec<Mended>, Error> {
    todo!()
}
