//! Step 1: everything the run needs, all shortfalls at once.

use serde::Serialize;

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortfall {
    /// What was checked.
    pub check: String,
    /// What must be.
    pub expected: String,
    /// What is.
    pub found: String,
    /// What to do.
    pub hint: String,
}

/// The installer of task `preflight` (it installs nothing).
#[derive(Debug)]
pub struct Preflight;
