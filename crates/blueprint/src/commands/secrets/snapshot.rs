//! `blueprint secrets snapshot`: the chart's Secrets into infra/secrets, now.

use blueprint_phase2::{Work, persistent_secrets};

use super::locked;
use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::ClusterArgs;

/// Save the Secrets that GitLab's chart manages in infra/secrets/gitlab-runtime-secrets.yaml
///
/// `up` does this too. The same Secrets give the same bytes; the five former snapshots are kept beside it as .1 to .5.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let command = "blueprint secrets snapshot";
    locked::run(app, &args.cluster, command, async |phase2, progress| {
        let context = &phase2.context;
        persistent_secrets::snapshot(Work { context, progress }).await
    })
    .await
}
