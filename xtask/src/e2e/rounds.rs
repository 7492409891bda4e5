//! What people do to a cluster in a week, in random order: after each round every marker and every identity is the same.

use std::thread;
use std::time::{Duration, Instant};

use super::chance::{self, Random, SEED_VARIABLE};
use super::identity::{self, Identity};
use super::killed_run::Run;
use super::pipeline::run_blueprint;
use super::recreation::delete_cluster;
use super::{Evidence, Scene, expect, fresh, nodes, reboot};
use crate::error::{Error, Result};
use crate::report::seconds;

/// How many, unless the variable says otherwise.
const ROUNDS: u64 = 2;
/// The same rounds unless the variable draws others: first a reboot, then a new cluster whose first run is killed.
const SEED: u64 = 12;
const ROUNDS_VARIABLE: &str = "BLUEPRINT_E2E_ROUNDS";
/// A run on an empty cluster has work to do for longer.
const KILLED_BEFORE: Duration = Duration::from_secs(90);
/// A run that has nothing to do is over soon after.
const RESTARTED_BEFORE: Duration = Duration::from_secs(5);
const ANSWERS_WITHIN: Duration = Duration::from_mins(2);

/// One thing that happens, up to the `up` that mends it.
struct Kind {
    name: &'static str,
    happen: fn(&Scene, &mut Random) -> Result<()>,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "cluster deleted and created",
        happen: recreated,
    },
    Kind {
        name: "taken down",
        happen: taken_down,
    },
    Kind {
        name: "killed in the middle",
        happen: killed,
    },
    Kind {
        name: "rebooted",
        happen: rebooted,
    },
    Kind {
        name: "a node restarted",
        happen: node_restarted,
    },
    Kind {
        name: "API server restarted during a run",
        happen: api_server_restarted,
    },
];

pub(super) fn rounds(scene: &mut Scene) -> Result<Evidence> {
    let rounds = chance::number(ROUNDS_VARIABLE).unwrap_or(ROUNDS);
    let seed = chance::number(SEED_VARIABLE).unwrap_or(SEED);
    scene.report.say(format!(
        "{rounds} rounds, seed {seed} ({ROUNDS_VARIABLE}, {SEED_VARIABLE})"
    ));
    identity::mark(scene)?;
    let before = Identity::take(scene)?;
    let mut random = Random::new(seed);
    let mut told = Vec::new();
    let mut left = Vec::new();
    for round in 1..=rounds {
        let kind = draw(&mut left, &mut random);
        scene
            .report
            .say(format!("round {round} of {rounds}: {}", kind.name));
        let begun = Instant::now();
        (kind.happen)(scene, &mut random)?;
        run_blueprint(scene, &["up", "--output", "plain"])?;
        run_blueprint(scene, &["smoke"])?;
        let lost = before.differences(&Identity::take(scene)?);
        expect(
            lost.is_empty(),
            &format!("every marker and identity as before, after `{}`", kind.name),
            lost.join("; "),
        )?;
        told.push(format!("{} {}", kind.name, seconds(begun.elapsed())));
    }
    Ok(format!(
        "seed {seed}: {}; 5 markers and {} identities the same after each, smoke green",
        told.join(", "),
        before.len() - 5
    ))
}

/// Each kind once before any comes again.
fn draw(left: &mut Vec<&'static Kind>, random: &mut Random) -> &'static Kind {
    if left.is_empty() {
        left.extend(KINDS);
    }
    let at = random.below(left.len() as u64);
    left.swap_remove(usize::try_from(at).unwrap_or_default())
}

fn recreated(scene: &Scene, _: &mut Random) -> Result<()> {
    delete_cluster(scene)?;
    fresh::cluster(scene)
}

fn taken_down(scene: &Scene, _: &mut Random) -> Result<()> {
    run_blueprint(scene, &["down", "--output", "plain"]).map(drop)
}

/// In a run that installs everything.
fn killed(scene: &Scene, random: &mut Random) -> Result<()> {
    recreated(scene, random)?;
    let moment = moment(KILLED_BEFORE, random);
    let mut run = Run::start(scene, "round")?;
    if run.still_runs_after(moment)? {
        scene
            .report
            .say(format!("killed after {}", seconds(moment)));
        run.kill()?;
    }
    Ok(())
}

fn rebooted(scene: &Scene, _: &mut Random) -> Result<()> {
    let names = nodes::names(scene)?;
    reboot::in_another_order(scene, &names)?;
    nodes::api_answers(scene, ANSWERS_WITHIN).map(drop)
}

fn node_restarted(scene: &Scene, random: &mut Random) -> Result<()> {
    let names = nodes::names(scene)?;
    let at = usize::try_from(random.below(names.len() as u64)).unwrap_or_default();
    nodes::docker(scene, &["restart"], &names[at..=at])?;
    nodes::api_answers(scene, ANSWERS_WITHIN).map(drop)
}

/// That run bears it.
fn api_server_restarted(scene: &Scene, random: &mut Random) -> Result<()> {
    let moment = moment(RESTARTED_BEFORE, random);
    thread::scope(|scope| {
        let restart = scope.spawn(|| {
            thread::sleep(moment);
            nodes::restart_api_server(scene)
        });
        let up = run_blueprint(scene, &["up", "--output", "plain"]);
        restart
            .join()
            .map_err(|_| Error::content("the API server's restart", "its thread ended early"))??;
        up.map(drop)
    })?;
    nodes::api_answers(scene, ANSWERS_WITHIN).map(drop)
}

fn moment(limit: Duration, random: &mut Random) -> Duration {
    Duration::from_millis(random.below(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kind_comes_twice_before_all_came_once() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut left = Vec::new();
            let mut names: Vec<_> = (0..KINDS.len())
                .map(|_| draw(&mut left, &mut random).name)
                .collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), KINDS.len());
        }
    }
}
