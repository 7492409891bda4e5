//! One file a command, each with its own arguments.

pub(crate) mod charts;
mod check;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod secrets;
pub(crate) mod smoke;
pub(crate) mod status;
pub(crate) mod timings;
pub(crate) mod up;
pub(crate) mod values;

use crate::app::App;
use crate::cli::Command;
use crate::exit_code::ExitCode;
use crate::problem::Problem;

/// Runs the command that was given.
pub(crate) async fn run(command: Command, app: &App) -> Result<ExitCode, Problem> {
    match command {
        Command::Init(args) => init::run(&args, app),
        Command::Cluster(args) => cluster::run(args, app).await,
        // The run's future holds every installer's: on the heap it does not weigh on the commands that do not need it.
        Command::Up(args) => Box::pin(up::run(args, app)).await,
        Command::Down(args) => Box::pin(down::run(args, app)).await,
        Command::Smoke(args) => Box::pin(smoke::run(args, app)).await,
        Command::Status(args) => Box::pin(status::run(args, app)).await,
        Command::Doctor(args) => Box::pin(doctor::run(args, app)).await,
        Command::Graph(args) => graph::run(&args, app),
        Command::Timings(args) => timings::run(&args, app),
        Command::Secrets(args) => Box::pin(secrets::run(args, app)).await,
        Command::Charts(args) => charts::run(args, app).await,
        Command::Values(args) => Box::pin(values::run(args, app)).await,
        Command::Completions(args) => {
            completions::run(&args, app);
            Ok(ExitCode::Done)
        }
        Command::Docs(args) => {
            docs::run(&args, app);
            Ok(ExitCode::Done)
        }
    }
}
