//! `blueprint secrets unseal`: OpenBao after a restart of its pod.

use blueprint_phase2::{Work, openbao};

use super::locked;
use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::ClusterArgs;

/// Unseal OpenBao with the keys in infra/secrets/openbao-init.json
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let command = "blueprint secrets unseal";
    locked::run(app, &args.cluster, command, async |phase2, progress| {
        let context = &phase2.context;
        openbao::unseal(Work { context, progress }).await
    })
    .await
}
