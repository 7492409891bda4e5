//! `blueprint secrets rotate NAME`: one credential changed everywhere it lives.

use blueprint_phase2::Work;
use blueprint_phase2::rotation::{self, Target};
use clap::builder::PossibleValue;

use super::locked;
use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::ClusterArgs;

/// Change one credential everywhere it lives, and prove the new one before the former one goes
///
/// Who uses it is restarted where that is how it learns. Interrupted, the same command goes on; `up` works in between as well. Take a copy of the private
/// files (`secrets export`) before and after.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which one
    #[arg(value_enum, value_name = "NAME")]
    name: Name,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A [`Target`] on the command line.
#[derive(Debug, Clone, Copy)]
struct Name(Target);

impl clap::ValueEnum for Name {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Name; Target::ALL.len()] = {
            let mut all = [Name(Target::Redis); Target::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = Name(Target::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.what()))
    }
}

pub(super) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let Name(target) = args.name;
    let command = format!("blueprint secrets rotate {}", target.name());
    locked::run(app, &args.cluster, &command, async |phase2, progress| {
        let context = &phase2.context;
        rotation::rotate(Work { context, progress }, &phase2.catalog, target).await
    })
    .await
}
