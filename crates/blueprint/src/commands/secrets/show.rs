//! `blueprint secrets show NAME`: a value, to a person.

use std::io::{self, IsTerminal as _};

use blueprint_phase2::inventory::{self, Agreement};

use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::ClusterArgs;

/// Print one credential; `blueprint secrets list` names them
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its name, as `blueprint secrets list` has it
    name: String,
    /// Print it although stdout is no terminal
    #[arg(long)]
    reveal: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    if !args.reveal && !io::stdout().is_terminal() {
        return Err(
            Problem::usage(format!("{} is shown on a terminal only", args.name))
                .expected("a terminal on stdout, or --reveal")
                .found("a file or a pipe")
                .hint("add --reveal if the value may go there"),
        );
    }
    let reach = super::reach(app, &args.cluster).await?;
    let offline = reach.offline.as_deref();
    let Some(found) = inventory::look(&reach.context, offline, &args.name).await? else {
        return Err(
            Problem::usage(format!("no credential is called `{}`", args.name))
                .hint("`blueprint secrets list` names them all"),
        );
    };
    let Some(value) = found.reveal() else {
        let places: Vec<&str> = found
            .copies
            .iter()
            .map(|copy| copy.place.as_str())
            .collect();
        return Err(
            Problem::failed(format!("{} is nowhere to be found", args.name))
                .expected(format!("a copy in {}", places.join(", ")))
                .found("none that can be read")
                .hint("`blueprint secrets list` says why each copy cannot be read"),
        );
    };
    if found.agreement() == Agreement::Differ {
        app.printer.warn(&format!(
            "the copies of {} differ; this is the one in {}",
            args.name,
            found.shown_from().unwrap_or_default()
        ));
    }
    app.printer.out(&value.lines());
    Ok(ExitCode::Done)
}
