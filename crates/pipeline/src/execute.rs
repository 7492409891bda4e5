//! Runs a graph: a task starts the moment its needs are met.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::event::{Event, EventSink};
use crate::graph::Graph;
use crate::outcome::{Failure, Outcome};
use crate::schedule::Schedule;
use crate::table::Task;

/// A task's handle to say what it is doing. Cheap to clone.
#[derive(Clone)]
pub struct Progress {
    task: String,
    step: u8,
    events: UnboundedSender<Event>,
    last_blocker: Arc<Mutex<Option<String>>>,
}

impl Progress {
    /// A handle that drops everything, for tests and for commands that report otherwise.
    pub fn silent() -> Self {
        let (events, _) = unbounded_channel();
        Self::new(String::new(), 0, events)
    }

    /// A handle that tells what happens and who blocks it to `events`, for a command that works outside a run.
    pub fn telling(events: UnboundedSender<Event>) -> Self {
        Self::new(String::new(), 0, events)
    }

    fn new(task: String, step: u8, events: UnboundedSender<Event>) -> Self {
        Self {
            task,
            step,
            events,
            last_blocker: Arc::default(),
        }
    }

    /// Something happened that is worth a line.
    pub fn say(&self, message: impl Into<String>) {
        let message = message.into();
        self.send(Event::Progress {
            task: self.task.clone(),
            step: self.step,
            message,
        });
    }

    /// The task waits; called again with the same words it says nothing new.
    pub fn waiting(&self, blocker: impl Into<String>) {
        let blocker = blocker.into();
        {
            let mut last = self
                .last_blocker
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if last.as_deref() == Some(blocker.as_str()) {
                return;
            }
            *last = Some(blocker.clone());
        }
        self.send(Event::Waiting {
            task: self.task.clone(),
            step: self.step,
            blocker,
        });
    }

    /// Nobody listens any more once the run is over, or when the handle is silent: then there is nothing to tell.
    fn send(&self, event: Event) {
        self.events.send(event).ok();
    }
}

/// What does the tasks' work.
#[async_trait]
pub trait TaskRunner: Send + Sync + 'static {
    /// Runs one task. A cancelled token means: reach a safe point and return.
    async fn run(
        &self,
        task: &str,
        progress: Progress,
        cancel: CancellationToken,
    ) -> Result<Outcome, Failure>;
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

impl Execution {
    fn places(&self) -> usize {
        if self.sequential { 1 } else { self.jobs.max(1) }
    }

    fn mode(&self) -> &'static str {
        if self.sequential {
            "sequential"
        } else {
            "parallel"
        }
    }
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
/// running ones get to their safe point. The rule is the same in sequential mode, so that both modes end in the same place.
pub async fn run(
    graph: &Graph,
    execution: Execution,
    runner: Arc<dyn TaskRunner>,
    sink: Box<dyn EventSink>,
    cancel: CancellationToken,
) -> RunReport {
    let (events, receiver) = unbounded_channel();
    let dispatcher = tokio::spawn(dispatch(receiver, sink));
    let report = Run::new(graph, &execution, runner, events, cancel)
        .drive(&execution)
        .await;
    if let Err(error) = dispatcher.await {
        tracing::error!(%error, "the reporter of the run's events gave up");
    }
    report
}

/// The one place from which a sink is called. It ends with the run's last event: a task may have left a handle behind that keeps the channel open.
async fn dispatch(mut events: UnboundedReceiver<Event>, mut sink: Box<dyn EventSink>) {
    while let Some(event) = events.recv().await {
        sink.take(&event);
        if matches!(event, Event::RunFinished { .. }) {
            return;
        }
    }
}

/// One task's end.
struct Ended {
    place: usize,
    elapsed: Duration,
    result: Result<Outcome, Failure>,
}

struct Run<'a> {
    graph: &'a Graph,
    schedule: Schedule<'a>,
    runner: Arc<dyn TaskRunner>,
    events: UnboundedSender<Event>,
    cancel: CancellationToken,
    running: JoinSet<Ended>,
    report: RunReport,
}

impl<'a> Run<'a> {
    fn new(
        graph: &'a Graph,
        execution: &Execution,
        runner: Arc<dyn TaskRunner>,
        events: UnboundedSender<Event>,
        cancel: CancellationToken,
    ) -> Self {
        let report = RunReport {
            finished: BTreeMap::new(),
            failed: BTreeMap::new(),
            skipped: BTreeMap::new(),
            elapsed: Duration::ZERO,
            interrupted: false,
        };
        let schedule = Schedule::new(graph, &execution.tasks);
        Self {
            graph,
            schedule,
            runner,
            events,
            cancel,
            running: JoinSet::new(),
            report,
        }
    }

    async fn drive(mut self, execution: &Execution) -> RunReport {
        let begun = Instant::now();
        self.send(Event::RunStarted {
            tasks: execution.tasks.iter().map(|&id| id.to_owned()).collect(),
            mode: execution.mode(),
        });
        loop {
            self.start_ready(execution.places());
            match self.running.join_next().await {
                None => break,
                Some(Ok(ended)) => self.end(ended),
                // A task's panic is caught where it runs, so this is the runtime going down: nothing further can be scheduled.
                Some(Err(error)) => tracing::error!(%error, "a task was torn down"),
            }
        }
        self.report.elapsed = begun.elapsed();
        self.report.interrupted = self.cancel.is_cancelled();
        self.send(Event::RunFinished {
            seconds: self.report.elapsed.as_secs_f64(),
            succeeded: self.report.finished.len(),
            failed: self.report.failed.len(),
            skipped: self.report.skipped.len(),
            interrupted: self.report.interrupted,
        });
        self.report
    }

    fn start_ready(&mut self, places: usize) {
        if self.cancel.is_cancelled() {
            let given_up = self.schedule.give_up("the run was interrupted");
            self.skip(given_up);
            return;
        }
        while self.running.len() < places {
            let Some(place) = self.schedule.start_next() else {
                return;
            };
            self.start(place);
        }
    }

    fn start(&mut self, place: usize) {
        let task = self.task(place);
        self.send(Event::TaskStarted {
            task: task.id.to_owned(),
            step: task.step,
            title: task.title.to_owned(),
        });
        let progress = Progress::new(task.id.to_owned(), task.step, self.events.clone());
        let runner = Arc::clone(&self.runner);
        let cancel = self.cancel.clone();
        let work = async move {
            let begun = Instant::now();
            let caught = AssertUnwindSafe(runner.run(task.id, progress, cancel))
                .catch_unwind()
                .await;
            let result = match caught {
                Ok(result) => result,
                Err(panic) => Err(panicked(task, panic.as_ref())),
            };
            Ended {
                place,
                elapsed: begun.elapsed(),
                result,
            }
        };
        self.running
            .spawn(work.instrument(tracing::info_span!("task", id = task.id)));
    }

    fn end(&mut self, ended: Ended) {
        let Task { id, step, .. } = *self.task(ended.place);
        let seconds = ended.elapsed.as_secs_f64();
        match ended.result {
            Ok(outcome) => {
                self.send(Event::TaskFinished {
                    task: id.to_owned(),
                    step,
                    seconds,
                    outcome: outcome.clone(),
                });
                self.report
                    .finished
                    .insert(id.to_owned(), (ended.elapsed, outcome));
                self.schedule.succeeded(ended.place);
            }
            Err(failure) => {
                self.send(Event::TaskFailed {
                    task: id.to_owned(),
                    step,
                    seconds,
                    failure: failure.clone(),
                });
                self.report
                    .failed
                    .insert(id.to_owned(), (ended.elapsed, failure));
                let skipped = self.schedule.failed(ended.place);
                self.skip(skipped);
            }
        }
    }

    fn skip(&mut self, skipped: Vec<(usize, String)>) {
        for (place, reason) in skipped {
            let Task { id, step, .. } = *self.task(place);
            self.send(Event::TaskSkipped {
                task: id.to_owned(),
                step,
                reason: reason.clone(),
            });
            self.report.skipped.insert(id.to_owned(), reason);
        }
    }

    fn task(&self, place: usize) -> &'static Task {
        &self.graph.table().tasks[place]
    }

    /// Only a sink that panicked is not there to take it, and [`run`] says so.
    fn send(&self, event: Event) {
        self.events.send(event).ok();
    }
}

fn panicked(task: &Task, panic: &(dyn std::any::Any + Send)) -> Failure {
    let words = panic
        .downcast_ref::<&str>()
        .map(|&words| words.to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Failure {
        summary: format!("task {} stopped at a fault in blueprint itself", task.id),
        found: words,
        hint: Some(
            "run again; if it stops at the same place, please report these lines".to_owned(),
        ),
        ..Failure::default()
    }
}

#[cfg(test)]
mod tests;
