//! Runs a graph: a task starts the moment its needs are met.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, EventSink};
use crate::graph::Graph;
use crate::outcome::{Failure, Outcome};

/// A task's handle to say what it is doing. Cheap to clone.
#[derive(Clone)]
pub struct Progress {
    task: String,
    step: u8,
    events: tokio::sync::mpsc::UnboundedSender<Event>,
}

impl Progress {
    /// A handle that drops everything, for tests and for commands that report otherwise.
    pub fn silent() -> Self {
        todo!()
    }

    /// Something happened that is worth a line.
    pub fn say(&self, message: impl Into<String>) {
        todo!()
    }

    /// The task waits; called again with the same words it says nothing new.
    pub fn waiting(&self, blocker: impl Into<String>) {
        todo!()
    }
}

/// What does the tasks' work.
#[async_trait]
pub trait TaskRunner: Send + Sync + 'static {
    /// Runs one task. A cancelled token means: reach a safe point and return.
    async fn run(&self, task: &str, progress: Progress, cancel: CancellationToken) -> Result<Outcome, Failure>;
}

/// How to run.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The ids to run ([`crate::Selection::resolve`]); needs outside this list count as met.
    pub tasks: Vec<&'static str>,
    /// Strictly in table order, one at a time.
    pub sequential: bool,
    /// Most tasks at once (at least 1).
    pub jobs: usize,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// By id, for those that ran.
    pub finished: BTreeMap<String, (Duration, Outcome)>,
    /// By id.
    pub failed: BTreeMap<String, (Duration, Failure)>,
    /// By id, with the reason.
    pub skipped: BTreeMap<String, String>,
    /// From first to last.
    pub elapsed: Duration,
    /// The token was cancelled.
    pub interrupted: bool,
}

impl RunReport {
    /// Every task that should run succeeded.
    pub fn succeeded(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty() && !self.interrupted
    }
}

/// Runs the tasks. A failed task stops those that need it; the rest finishes. A panicking task is a failed task. After `cancel` no new task starts;
/// running ones get to their safe point.
pub async fn run(
    graph: &Graph,
    execution: Execution,
    runner: Arc<dyn TaskRunner>,
    sink: Box<dyn EventSink>,
    cancel: CancellationToken,
) -> RunReport {
    todo!()
}
