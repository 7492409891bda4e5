//! `last_timings.json` and a short history; which task slowed down.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::execute::RunReport;

/// One run's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// RFC 3339.
    pub started: String,
    /// Seconds, whole run.
    pub total_seconds: f64,
    /// In table order.
    pub tasks: Vec<TaskTiming>,
}

/// One task's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskTiming {
    /// Its id.
    pub task: String,
    /// Its step.
    pub step: u8,
    /// Seconds.
    pub seconds: f64,
    /// Whether it changed anything (runs that change nothing are compared with their like only).
    pub changed: bool,
}

/// Timings could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TimingsError {
    /// I/O.
    #[error("failed to {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not JSON of this shape.
    #[error("{path} is not a timings file: {found}")]
    Malformed {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        found: String,
    },
}

/// A task that took longer than its like before.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// Its id.
    pub task: String,
    /// Median seconds of the earlier comparable runs.
    pub before: f64,
    /// Seconds now.
    pub now: f64,
}

impl Timings {
    /// From a report.
    pub fn of(report: &RunReport, table: &crate::Table, started: jiff::Timestamp) -> Self {
        todo!()
    }
}

/// Writes `folder/last_timings.json` and appends to `folder/timings_history.json` (the last 20 runs), atomically.
pub fn record(folder: &Path, timings: &Timings) -> Result<(), TimingsError> {
    todo!()
}

/// The history, oldest first; empty when there is none.
pub fn history(folder: &Path) -> Result<Vec<Timings>, TimingsError> {
    todo!()
}

/// Which tasks of the newest run are over 1.5 times, and over 2 s more than, the median of the earlier comparable ones.
pub fn slowdowns(history: &[Timings]) -> Vec<Slowdown> {
    todo!()
}

/// Bars, one a task, for `blueprint timings`.
pub fn chart(history: &[Timings]) -> String {
    todo!()
}
