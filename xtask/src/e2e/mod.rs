//! `cargo xtask e2e`: what must be true of a real cluster, judged by kubectl, curl and psql, not by blueprint.

mod ambiguous;
mod api_restarts;
mod auto_unseal;
mod chance;
mod crashes;
mod crates;
mod data;
mod doctor;
mod down;
mod end_state;
mod failpoints;
mod fresh;
mod identity;
mod interrupted;
mod inventory;
mod killed_run;
mod mixed_charts;
mod moved;
mod needles;
mod network;
mod node_added;
mod nodes;
mod objects;
mod observer;
mod pipeline;
mod pod_security;
mod random_kills;
mod reboot;
mod recreation;
mod refusals;
mod registry;
mod restarts;
mod rotated;
mod rounds;
mod sampler;
mod secrecy;
mod stuck_pods;
mod surroundings;
mod version_change;

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::docker_engine::Engine;
use crate::error::{Error, Result};
use crate::go_binaries::GoBinaries;
use crate::lab_home::LabHome;
use crate::report::{Reporter, seconds};
use crate::up::{self, Platform};

/// What a check saw that made it pass.
type Evidence = String;

struct Check {
    name: &'static str,
    run: fn(&mut Scene) -> Result<Evidence>,
    /// Too long for every run, or not yet seen to hold on a cluster: it runs when it is named.
    by_hand: bool,
    /// Without it the later ones can only fail: the run ends here.
    vital: bool,
}

/// All checks, in the order they run: later ones use what earlier ones made.
const CHECKS: &[Check] = &[
    vital("cluster-up", pipeline::cluster_up),
    check("half-written-pgdata", refusals::half_written_pgdata),
    by_hand("ambiguous-states", ambiguous::before_the_first_up),
    vital("up-green", pipeline::up_is_green),
    check(
        "up-again-changes-nothing",
        pipeline::second_up_changes_nothing,
    ),
    check("postgresql", data::postgresql),
    check("buckets", data::buckets),
    check("openbao", data::openbao),
    check("runner-online-once", data::runner),
    check("gateway", network::gateway),
    check("https-from-a-pod", network::https_from_a_pod),
    check("https-from-a-node", network::https_from_a_node),
    check("https-from-the-host", network::https_from_the_host),
    check(
        "image-pushed-and-run-on-every-worker",
        registry::pushed_and_run_on_every_worker,
    ),
    check("crates-on-the-cluster", crates::ignored_tests),
    check("secrets-stay-secret", secrecy::secrets_stay_secret),
    check("memory", secrecy::memory),
    check("release-records-fit", surroundings::release_records_fit),
    check("pod-security", pod_security::pod_security),
    check("proxied", surroundings::proxied),
    check(
        "refused-before-anything-changes",
        refusals::refused_before_anything_changes,
    ),
    by_hand("ambiguous-states-running", ambiguous::while_it_runs),
    check("two-runs-at-once", interrupted::two_runs_at_once),
    by_hand("interrupted", interrupted::interrupted),
    check(
        "stand-ins-and-real-charts-never-mix",
        mixed_charts::never_mix,
    ),
    check("one-release-changes", version_change::one_release_changes),
    check("openbao-resealed", restarts::openbao_resealed),
    by_hand("node-restarted", restarts::node_restarted),
    by_hand("node-added", node_added::node_added),
    by_hand("reboot", reboot::reboot),
    check(
        "identity-survives-recreation",
        recreation::identity_survives_and_sequential_is_the_same,
    ),
    // After the comparisons of objects: these leave later revisions behind.
    check("node-ports-reverted", surroundings::node_ports_reverted),
    check("stuck-pods", stuck_pods::named_within_half_a_minute),
    check("auto-unseal", auto_unseal::auto_unseal),
    by_hand("down-up", down::down_up),
    by_hand("secrets-rotated", rotated::secrets_rotated),
    by_hand("moved", moved::moved),
    check("rounds", rounds::rounds),
    // The last ones: they leave no cluster behind.
    by_hand("wipe", down::wipe),
    by_hand("failpoints-of-each-kind", failpoints::one_of_each_kind),
    by_hand("api-server-restarts", api_restarts::in_every_step),
    by_hand("random-kills", random_kills::random_kills),
    check("killed-and-resumed", crashes::killed_and_resumed),
    by_hand("failpoint-sweep", failpoints::sweep),
];

const fn check(name: &'static str, run: fn(&mut Scene) -> Result<Evidence>) -> Check {
    Check {
        name,
        run,
        by_hand: false,
        vital: false,
    }
}

const fn by_hand(name: &'static str, run: fn(&mut Scene) -> Result<Evidence>) -> Check {
    Check {
        name,
        run,
        by_hand: true,
        vital: false,
    }
}

const fn vital(name: &'static str, run: fn(&mut Scene) -> Result<Evidence>) -> Check {
    Check {
        name,
        run,
        by_hand: false,
        vital: true,
    }
}

/// What the checks share.
pub(crate) struct Scene<'a> {
    pub(crate) lab: &'a LabHome,
    pub(crate) platform: &'a Platform,
    pub(crate) report: &'a Reporter,
    /// How long the first `up` took, where it ran in this run.
    pub(crate) first_up: Option<Duration>,
    /// What ran beside the watched runs of `up`, once there was one.
    pub(crate) seen: Option<sampler::Seen>,
}

/// Runs the named checks, or all of them.
pub(crate) fn run(lab: &LabHome, only: &[String], report: &Reporter) -> Result<()> {
    if let Some(unknown) = only
        .iter()
        .find(|name| !CHECKS.iter().any(|check| check.name == name.as_str()))
    {
        return Err(Error::unmet(
            format!("no check is called `{unknown}`"),
            format!("there are: {}", names().join(", ")),
        ));
    }
    leave_foreign_cluster(lab, report)?;
    let platform = up::prepare(lab, report)?;
    let mut scene = Scene {
        lab,
        platform: &platform,
        report,
        first_up: None,
        seen: None,
    };
    let (mut passed, mut failed) = (0, 0);
    for check in CHECKS {
        let named = only.iter().any(|name| name == check.name);
        if !named && (check.by_hand || !only.is_empty()) {
            continue;
        }
        report.say(format!("{} …", check.name));
        let begun = Instant::now();
        let result = (check.run)(&mut scene);
        let took = seconds(begun.elapsed());
        match &result {
            Ok(evidence) => {
                passed += 1;
                report.data(format!("ok      {} ({took}): {evidence}", check.name));
            }
            Err(error) => {
                failed += 1;
                report.data(format!("FAILED  {} ({took}): {error}", check.name));
            }
        }
        if result.is_err() && check.vital {
            report.data(format!(
                "the checks after {} need it and were not run",
                check.name
            ));
            break;
        }
    }
    if only.is_empty() {
        for check in CHECKS.iter().filter(|check| check.by_hand) {
            report.data(format!(
                "NOT RUN {0}: it takes long; `cargo xtask e2e {0}` runs it",
                check.name
            ));
        }
    }
    let charts = if platform.charts().are_stand_ins() {
        "; with STAND-IN charts, no result counts as one with the real charts"
    } else {
        ", with the real charts"
    };
    report.data(format!("{passed} passed, {failed} failed{charts}"));
    if failed == 0 {
        Ok(())
    } else {
        Err(Error::ChecksFailed { passed, failed })
    }
}

/// A lab cluster that an earlier checkout left behind is deleted; that checkout's data stays where it is.
fn leave_foreign_cluster(lab: &LabHome, report: &Reporter) -> Result<()> {
    let engine = match Engine::answering(lab) {
        Some(users) if !users.is_lab() => return Ok(()),
        // A stopped engine of the lab's may hold such a cluster, stopped as well.
        _ => Engine::ensure(lab, report)?,
    };
    let cluster = Cluster::open(lab, &engine)?;
    if let Some(storage) = cluster.foreign_storage()? {
        report.say(format!(
            "the cluster that runs keeps its data in {storage}, another checkout's"
        ));
        GoBinaries::open(lab)?.ensure("kind", report)?;
        cluster.delete(report)?;
    }
    Ok(())
}

pub(crate) fn names() -> Vec<&'static str> {
    CHECKS.iter().map(|check| check.name).collect()
}

/// A check's verdict: what was expected, or the evidence for it.
fn expect(holds: bool, expected: &str, found: impl Into<String>) -> Result<Evidence> {
    let found = found.into();
    if holds {
        Ok(found)
    } else {
        Err(Error::Judged {
            expected: expected.to_owned(),
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_name_of_its_own() {
        let mut names = names();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_verdict_keeps_what_was_found() {
        assert_eq!(expect(true, "x", "3 nodes").unwrap(), "3 nodes");
        let error = expect(false, "3 nodes", "2 nodes").unwrap_err().to_string();
        assert!(error.contains("expected 3 nodes") && error.contains("found 2 nodes"));
    }
}
