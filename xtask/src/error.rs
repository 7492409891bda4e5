//! What can go wrong while driving other programs, and what to do about it.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to start `{program}`")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("`{command}` ended with {status}{tail}")]
    Command {
        command: String,
        status: String,
        /// The last lines the program wrote, and the log file that holds the rest.
        tail: String,
    },
    #[error("failed to {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to read {what}: {found}")]
    Content { what: String, found: String },
    #[error("{what} did not happen within {} s{seen}", after.as_secs())]
    Deadline {
        what: String,
        after: Duration,
        seen: String,
    },
    #[error("{what}\n  hint: {hint}")]
    Unmet { what: String, hint: String },
    #[error("expected {expected}; found {found}")]
    Judged { expected: String, found: String },
    #[error("{passed} passed, {failed} failed")]
    ChecksFailed { passed: usize, failed: usize },
}

impl Error {
    pub(crate) fn unmet(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unmet {
            what: what.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn content(what: impl Into<String>, found: impl Display) -> Self {
        Self::Content {
            what: what.into(),
            found: found.to_string(),
        }
    }
}

/// Attaches the path and the intent to an I/O error.
pub(crate) trait FileContext<T> {
    fn file(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn file(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::File {
            action,
            path: path.into(),
            source,
        })
    }
}
