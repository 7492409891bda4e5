//! The smoke table: the spec's 13 rows and what the facts add.

use serde::Serialize;

use crate::context::Context;

/// One row's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The row: `Redis reachable`.
    pub check: String,
    /// How it stands.
    pub verdict: CheckVerdict,
    /// What was seen (`PONG`).
    pub evidence: String,
    /// From the failure map, when it failed.
    pub hint: Option<String>,
}

/// Passed or failed; skipped only with a reason in the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// As it should be.
    Passed,
    /// Not.
    Failed,
}

/// Runs every row, in the spec's order. Rows run concurrently and never change anything.
pub async fn run(context: &Context) -> Vec<CheckResult> {
    todo!()
}
