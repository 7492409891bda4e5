//! `blueprint timings`: how long each task took, and which one slowed down.

use blueprint_pipeline::timings::{Slowdown, chart, history, slowdowns};

use crate::app::App;
use crate::cli::DataOutput;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::words::duration;

/// Show how long each task of the last run took, and what slowed down
///
/// Read from `infra/phase2/timings_history.json`, the last 20 runs. A task is compared with earlier runs in which it changed something as well, or nothing as well.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A chart, or the whole history as JSON
    #[arg(long, value_enum, default_value_t)]
    output: DataOutput,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<ExitCode, Problem> {
    let runs = history(&app.workspace.timings())?;
    if args.output == DataOutput::Json {
        let text = serde_json::to_string_pretty(&runs).map_err(|error| {
            Problem::failed("failed to write the history as JSON").caused_by(&error)
        })?;
        app.printer.out(&text);
        return Ok(ExitCode::Done);
    }
    if runs.is_empty() {
        app.printer
            .say("no run has been recorded yet: `blueprint up` records each");
        return Ok(ExitCode::Done);
    }
    app.printer.out(&chart(&runs));
    for slowdown in slowdowns(&runs) {
        app.printer.say(&sentence(&slowdown));
    }
    Ok(ExitCode::Done)
}

/// `slower than usual: redis took 24.0 s, usually 10.0 s`.
pub(crate) fn sentence(slowdown: &Slowdown) -> String {
    format!(
        "slower than usual: {} took {}, usually {}",
        slowdown.task,
        duration(slowdown.now),
        duration(slowdown.before)
    )
}
