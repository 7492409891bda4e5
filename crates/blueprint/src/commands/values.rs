//! `blueprint values validate`: the references against their schemas, and what rendered charts name and nobody makes.

use blueprint_phase2::validate;
use clap::Subcommand;

use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::{self, ProfileName};
use crate::words::count;

/// Check the values and references before anything is installed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check them against their schemas, and for Secrets, classes and listeners that nobody makes
    Validate(ValidateArgs),
}

#[derive(Debug, clap::Args)]
struct ValidateArgs {
    /// The profile to check; wins over blueprint.yaml
    #[arg(long, value_enum)]
    profile: Option<ProfileName>,
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let Action::Validate(args) = args.action;
    let pins = setup::pins(&app.workspace, args.profile)?;
    let context = setup::without_cluster(app, pins).await?;
    let validation = validate::validate(&context).await?;
    for line in &validation.checked {
        app.printer.detail(line);
    }
    for problem in &validation.problems {
        app.printer.out(problem);
    }
    let checked = count(validation.checked.len(), "check");
    if validation.problems.is_empty() {
        app.printer.say(&format!("{checked} passed"));
        return Ok(ExitCode::Done);
    }
    app.printer.say(&format!(
        "{checked}, {}",
        count(validation.problems.len(), "problem")
    ));
    Ok(ExitCode::TaskFailed)
}
