//! `blueprint secrets …`: the credentials of the installation, one file an action.

mod export;
mod import;
mod list;
mod locked;
mod passphrase;
mod restore;
mod rotate;
mod show;
mod snapshot;
mod unseal;

use blueprint_phase2::Context;
use clap::Subcommand;

use crate::app::App;
use crate::exit_code::ExitCode;
use crate::private_modes;
use crate::problem::Problem;
use crate::setup::{self, ClusterArgs};

/// Work with the installation's credentials
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::Args),
    Show(show::Args),
    Snapshot(snapshot::Args),
    Restore(restore::Args),
    Unseal(unseal::Args),
    Rotate(rotate::Args),
    Export(export::Args),
    Import(import::Args),
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    // An import that is refused leaves the folder as it was.
    if !matches!(args.action, Action::Import(_)) {
        private_modes::mend(app);
    }
    match args.action {
        Action::List(args) => list::run(args, app).await,
        Action::Show(args) => show::run(args, app).await,
        Action::Snapshot(args) => snapshot::run(args, app).await,
        Action::Restore(args) => restore::run(args, app).await,
        Action::Unseal(args) => unseal::run(args, app).await,
        Action::Rotate(args) => rotate::run(args, app).await,
        Action::Export(args) => export::run(&args, app),
        Action::Import(args) => import::run(&args, app),
    }
}

/// A context, and why its cluster is not asked: without a cluster the files are still there to look at.
struct Reach {
    context: Context,
    offline: Option<String>,
}

async fn reach(app: &App, args: &ClusterArgs) -> Result<Reach, Problem> {
    let pins = || setup::pins(&app.workspace, args.profile);
    let offline = match setup::phase2(app, args, pins()?).await {
        Ok(phase2) => match phase2.context.cluster.server_version().await {
            Ok(_) => {
                return Ok(Reach {
                    context: Context::clone(&phase2.context),
                    offline: None,
                });
            }
            Err(error) => error.to_string(),
        },
        Err(problem) => problem.failure().summary.clone(),
    };
    app.printer
        .warn(&format!("only files are looked at: {offline}"));
    Ok(Reach {
        context: setup::without_cluster(app, pins()?).await?,
        offline: Some(offline),
    })
}
