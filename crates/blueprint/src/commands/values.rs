//! `blueprint values validate`: the references against their schemas, and what rendered charts name and nobody makes. `render`: what helm would install.

use blueprint_charts::yaml;
use blueprint_phase2::{made_with, validate};
use clap::Subcommand;

use crate::app::App;
use crate::cli::DataOutput;
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
    /// Print a chart's objects as helm would install them, with the values of reference, profile and pins
    Render(RenderArgs),
}

#[derive(Debug, clap::Args)]
struct RenderArgs {
    /// The chart, by its key in VERSIONS.json (`redis`)
    chart: String,
    /// YAML documents, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    output: DataOutput,
    /// The profile to render; wins over blueprint.yaml
    #[arg(long, value_enum)]
    profile: Option<ProfileName>,
}

#[derive(Debug, clap::Args)]
struct ValidateArgs {
    /// The profile to check; wins over blueprint.yaml
    #[arg(long, value_enum)]
    profile: Option<ProfileName>,
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    match args.action {
        Action::Validate(args) => validate(args, app).await,
        Action::Render(args) => render(args, app).await,
    }
}

async fn render(args: RenderArgs, app: &App) -> Result<ExitCode, Problem> {
    let pins = setup::pins(&app.workspace, args.profile)?;
    let context = setup::without_cluster(app, pins).await?;
    let objects = validate::rendered(&context, &args.chart).await?;
    for object in &objects {
        app.printer.out(&match args.output {
            DataOutput::Text => format!("---\n{}", yaml::to_text(object)),
            DataOutput::Json => object.to_string(),
        });
    }
    if let Some(message) = made_with::attention(&context.versions) {
        app.printer.attention(&message);
    }
    Ok(ExitCode::Done)
}

async fn validate(args: ValidateArgs, app: &App) -> Result<ExitCode, Problem> {
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
