//! What `up` shows while the cluster comes back from a reboot.

use std::sync::Once;
use std::time::Duration;

use blueprint_phase2::{Context, wake};
use indicatif::{ProgressBar, ProgressStyle};

use crate::app::App;

const TICK: Duration = Duration::from_millis(120);
const FIRST: &str =
    "the nodes were started a short while ago: waiting until the cluster has caught up";

/// Starts stopped nodes, waits for what was just started, and says both. Whatever does not come back is pre-flight's to tell.
pub(crate) async fn wake(app: &App, context: &Context) {
    let spinner = app.printer.is_live().then(|| spinner(app));
    let first = Once::new();
    let say = |blocker: String| {
        if let Some(spinner) = &spinner {
            spinner.set_message(format!("waiting: {blocker}"));
        } else {
            first.call_once(|| app.printer.say(FIRST));
            app.printer.detail(&format!("waiting: {blocker}"));
        }
    };
    let woken = wake::wake(context, &say).await;
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
    match woken {
        Ok(outcome) => {
            for line in outcome.changes.iter().chain(&outcome.notes) {
                app.printer.say(line);
            }
        }
        Err(error) => {
            let failure = error.into_failure("preflight");
            let words: Vec<String> = std::iter::once(failure.summary)
                .chain(failure.causes)
                .collect();
            app.printer.warn(&words.join(": "));
        }
    }
}

fn spinner(app: &App) -> ProgressBar {
    let spinner = app.printer.bars().add(ProgressBar::new_spinner());
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    spinner.set_style(style);
    spinner.enable_steady_tick(TICK);
    spinner
}
