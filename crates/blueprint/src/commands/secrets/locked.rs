//! An action that changes the cluster or the private files: under both locks, told line by line.

use blueprint_phase2::Error;
use blueprint_phase2::catalog::Phase2;
use blueprint_pipeline::{Event, Outcome, Progress};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::app::App;
use crate::cluster_lock::ClusterLock;
use crate::exit_code::ExitCode;
use crate::printer::Printer;
use crate::problem::Problem;
use crate::setup::{self, ClusterArgs};

/// Connects, takes the locks, runs `action` and says what it changed. `command` is what another run is told.
pub(super) async fn run<F>(
    app: &App,
    cluster: &ClusterArgs,
    command: &str,
    action: F,
) -> Result<ExitCode, Problem>
where
    F: AsyncFnOnce(&Phase2, &Progress) -> Result<Outcome, Error>,
{
    let pins = setup::pins(&app.workspace, cluster.profile)?;
    let _lock = app.lock(command)?;
    let phase2 = setup::phase2(app, cluster, pins).await?;
    let lock = ClusterLock::take(app, &phase2.context.cluster, command, false).await?;
    let (events, heard) = unbounded_channel();
    let telling = tokio::spawn(tell(heard, app.printer.clone()));
    let progress = Progress::telling(events);
    let ended = action(&phase2, &progress).await;
    drop(progress);
    // It ends with the last event.
    telling.await.ok();
    lock.release().await?;
    let outcome = ended.map_err(|error| Problem::of(error.into_failure("")))?;
    for line in outcome.changes.iter().chain(&outcome.notes) {
        app.printer.say(line);
    }
    if outcome.changes.is_empty() {
        app.printer.say("unchanged");
    }
    Ok(ExitCode::Done)
}

async fn tell(mut events: UnboundedReceiver<Event>, printer: Printer) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Progress { message, .. } => printer.say(&message),
            Event::Waiting { blocker, .. } => printer.detail(&format!("waiting: {blocker}")),
            _ => {}
        }
    }
}
