//! kill -9 at random moments of full runs, as a power cut or an impatient person does it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::chance::{self, Random, SEED_VARIABLE};
use super::killed_run::Run;
use super::{Evidence, Scene, end_state, fresh};
use crate::error::Result;
use crate::report::seconds;

/// How many, unless the variable says otherwise.
const KILLS: u64 = 3;
const KILLS_VARIABLE: &str = "BLUEPRINT_E2E_KILLS";
/// A full run on an empty cluster takes about this long.
const FULL_RUN: Duration = Duration::from_secs(110);

pub(super) fn random_kills(scene: &mut Scene) -> Result<Evidence> {
    let kills = chance::number(KILLS_VARIABLE).unwrap_or(KILLS);
    let seed = chance::seed();
    let full = scene.first_up.unwrap_or(FULL_RUN);
    scene.report.say(format!(
        "{kills} kills, seed {seed} ({KILLS_VARIABLE}, {SEED_VARIABLE})"
    ));
    let undisturbed = end_state::undisturbed(scene)?;
    fresh::installation(scene, |scene| {
        let mut random = Random::new(seed);
        let mut kept = BTreeMap::new();
        let (mut killed, mut recreated, mut moments) = (0, 0, Vec::new());
        while killed < kills {
            let moment = Duration::from_millis(
                random.below(u64::try_from(full.as_millis()).unwrap_or(u64::MAX)),
            );
            let mut run = Run::start(scene, "random-kills")?;
            if run.still_runs_after(moment)? {
                run.kill()?;
                killed += 1;
                moments.push(seconds(moment));
                scene
                    .report
                    .say(format!("killed after {}", seconds(moment)));
            } else {
                // All is installed: a full run needs a new cluster.
                recreated += 1;
                super::recreation::delete_cluster(scene)?;
                fresh::cluster(scene)?;
            }
            fresh::all_kept(scene, &kept)?;
            kept.extend(fresh::private_files(scene)?);
        }
        let ends = end_state::same_end(scene, &undisturbed)?;
        fresh::all_kept(scene, &kept)?;
        Ok(format!(
            "seed {seed}: killed after {}; {recreated} times a new cluster in between; {} private files kept; {ends}",
            moments.join(", "),
            kept.len()
        ))
    })
}
