//! kill -9 at random moments of full runs, as a power cut or an impatient person does it.

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, SystemTime};

use super::killed_run::Run;
use super::{Evidence, Scene, end_state, fresh};
use crate::error::Result;
use crate::report::seconds;

/// How many, unless the variable says otherwise.
const KILLS: u64 = 3;
const KILLS_VARIABLE: &str = "BLUEPRINT_E2E_KILLS";
const SEED_VARIABLE: &str = "BLUEPRINT_E2E_SEED";
/// A full run on an empty cluster takes about this long.
const FULL_RUN: Duration = Duration::from_secs(110);

pub(super) fn random_kills(scene: &mut Scene) -> Result<Evidence> {
    let kills = number(KILLS_VARIABLE).unwrap_or(KILLS);
    let seed = number(SEED_VARIABLE).unwrap_or_else(fresh_seed);
    let full = scene.first_up.unwrap_or(FULL_RUN);
    scene.report.say(format!(
        "{kills} kills, seed {seed} ({KILLS_VARIABLE}, {SEED_VARIABLE})"
    ));
    let undisturbed = end_state::undisturbed(scene)?;
    fresh::installation(scene, |scene| {
        let mut random = Random(seed);
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

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(1, |since| u64::from(since.subsec_nanos()))
}

/// `SplitMix64` (Steele, Lea, Flood 2014): a few kills need no better one.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_moments_again() {
        let moments = |seed| {
            let mut random = Random(seed);
            (0..9).map(|_| random.below(110_000)).collect::<Vec<_>>()
        };
        assert_eq!(moments(7), moments(7));
        assert_ne!(moments(7), moments(8));
        assert!(moments(7).iter().all(|moment| *moment < 110_000));
    }
}
