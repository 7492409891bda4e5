//! `blueprint secrets unseal`: OpenBao after a restart of its pod.

use blueprint_phase2::{Work, openbao};
use blueprint_pipeline::Progress;
use clap::Subcommand;

use crate::app::App;
use crate::cluster_lock::ClusterLock;
use crate::exit_code::ExitCode;
use crate::private_modes;
use crate::problem::Problem;
use crate::setup::{self, ClusterArgs};

/// Work with OpenBao's seal
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Unseal OpenBao with the keys in infra/secrets/openbao-init.json
    Unseal(ClusterArgs),
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let Action::Unseal(cluster) = args.action;
    private_modes::mend(app);
    let pins = setup::pins(&app.workspace, cluster.profile)?;
    let _lock = app.lock("blueprint secrets unseal")?;
    let phase2 = setup::phase2(app, &cluster, pins).await?;
    let lock = ClusterLock::take(
        app,
        &phase2.context.cluster,
        "blueprint secrets unseal",
        false,
    )
    .await?;
    let progress = Progress::silent();
    let work = Work {
        context: &phase2.context,
        progress: &progress,
    };
    let unsealed = openbao::unseal(work).await;
    lock.release().await?;
    let outcome = unsealed.map_err(|error| Problem::of(error.into_failure("openbao")))?;
    for line in outcome.changes.iter().chain(&outcome.notes) {
        app.printer.say(line);
    }
    if outcome.changes.is_empty() {
        app.printer.say("unchanged");
    }
    Ok(ExitCode::Done)
}
