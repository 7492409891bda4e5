//! How a task ended.

use serde::{Deserialize, Serialize};

/// A task that succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was changed, a phrase each ("created Namespace redis"); empty when everything was in place.
    pub changes: Vec<String>,
    /// What people should know although it changed nothing.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Nothing had to be done.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// Adds a change.
    pub fn changed(&mut self, what: impl Into<String>) {
        self.changes.push(what.into());
    }

    /// Adds a note.
    pub fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }
}

/// A task that failed, in the words people read. Never contains a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// One line: "failed to …".
    pub summary: String,
    /// What was expected, if it can be said.
    pub expected: Option<String>,
    /// What was found instead.
    pub found: Option<String>,
    /// The chain of causes, outermost first.
    pub causes: Vec<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// Supporting lines: last events, last log lines.
    pub evidence: Vec<String>,
    /// Whether this is a pre-flight shortfall (exit code 3) rather than a failed task (1).
    pub preflight: bool,
}
