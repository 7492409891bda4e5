//! `blueprint secrets restore`: the chart's Secrets from a snapshot.

use std::path::PathBuf;

use blueprint_phase2::Work;
use blueprint_phase2::persistent_secrets::{self, InUse};

use super::locked;
use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::ClusterArgs;

/// Put the Secrets of a snapshot back into the cluster
///
/// `up` does this too, before it installs GitLab. Where GitLab runs already with other values, nothing is changed unless one of the two options says
/// what is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Another snapshot than infra/secrets/gitlab-runtime-secrets.yaml, for example one of its copies .1 to .5
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Make what is missing, leave what a running GitLab uses
    #[arg(long, conflicts_with = "replace_in_use")]
    missing_only: bool,
    /// Also replace values that a running GitLab and its data depend on
    #[arg(long)]
    replace_in_use: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let in_use = if args.replace_in_use {
        InUse::Replace
    } else if args.missing_only {
        InUse::Keep
    } else {
        InUse::Refuse
    };
    let file = args.from.unwrap_or_else(|| app.workspace.gitlab_snapshot());
    let command = "blueprint secrets restore";
    locked::run(app, &args.cluster, command, async |phase2, progress| {
        let context = &phase2.context;
        persistent_secrets::restore(Work { context, progress }, &file, in_use).await
    })
    .await
}
