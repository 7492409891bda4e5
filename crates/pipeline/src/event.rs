//! What the executor tells: one stream of events, consumed by reporters.

use serde::Serialize;

use crate::outcome::{Failure, Outcome};

/// One thing that happened. Serialised, it is one line of `--output json`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// Ids of the tasks that will run, in table order.
        tasks: Vec<String>,
        /// `parallel` or `sequential`.
        mode: &'static str,
    },
    /// Something that bounds what the run's result means.
    Attention {
        /// What people must know.
        message: String,
    },
    /// A task begins.
    TaskStarted {
        /// Its id.
        task: String,
        /// Its step's number.
        step: u8,
        /// Its title.
        title: String,
    },
    /// Something worth a line happened inside a task.
    Progress {
        /// The task.
        task: String,
        /// The step's number.
        step: u8,
        /// What happened.
        message: String,
    },
    /// The task waits, and who blocks it.
    Waiting {
        /// The task.
        task: String,
        /// The step's number.
        step: u8,
        /// For example `pod redis-master-0: ImagePullBackOff docker.io/bitnami/redis`.
        blocker: String,
    },
    /// A task succeeded.
    TaskFinished {
        /// Its id.
        task: String,
        /// Its step's number.
        step: u8,
        /// Seconds it took.
        seconds: f64,
        /// What it did.
        outcome: Outcome,
    },
    /// A task failed.
    TaskFailed {
        /// Its id.
        task: String,
        /// Its step's number.
        step: u8,
        /// Seconds it took.
        seconds: f64,
        /// Why.
        failure: Failure,
    },
    /// A task did not run.
    TaskSkipped {
        /// Its id.
        task: String,
        /// Its step's number.
        step: u8,
        /// For example `needs redis, which failed`.
        reason: String,
    },
    /// The run is over.
    RunFinished {
        /// Seconds it took.
        seconds: f64,
        /// Counts.
        succeeded: usize,
        /// Counts.
        failed: usize,
        /// Counts.
        skipped: usize,
        /// Whether it was stopped by a signal.
        interrupted: bool,
    },
}

/// Where events go. Called in order, from one place.
pub trait EventSink: Send {
    /// Takes one event.
    fn take(&mut self, event: &Event);
}
