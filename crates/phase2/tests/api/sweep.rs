//! The process dies at every point of the steps that need the API server and the disk alone, one after the other; the end is that of a run nobody disturbed.
//!
//! Each run is this program as a child, so that a death is a real one. The test itself is the cluster's controllers.

mod end_state;
mod stage;

use std::collections::BTreeSet;
use std::path::PathBuf;

use blueprint_cluster::{Cluster, ConnectOptions};
use blueprint_phase2::coredns_patch::CoreDnsPatch;
use blueprint_phase2::gateway::GatewayCrds;
use blueprint_phase2::local_path_provisioner::LocalPathProvisioner;
use blueprint_phase2::stable_storage::ensure_volumes;
use blueprint_phase2::wildcard_certs::WildcardCerts;
use blueprint_phase2::{Installer, Work};
use blueprint_pipeline::{Outcome, Progress};

use crate::support::context_in;
use stage::{Ended, Stage};

/// Far more than there are points: a sweep that does not end is a fault.
const MOST: usize = 400;

#[test]
fn dying_at_every_point_ends_where_an_undisturbed_run_does() {
    let undisturbed = Stage::new();
    let points = undisturbed.points();
    let swept = Stage::new();
    let died_at = sweep(&swept);
    let never: Vec<_> = points.difference(&died_at).collect();
    assert!(never.is_empty(), "nobody died at {never:?}");
    assert!(died_at.len() >= 60, "{} points", died_at.len());
    let differences = end_state::differences(&undisturbed.end_state(), &swept.end_state());
    assert!(differences.is_empty(), "{differences:#?}");
    assert_eq!(
        swept.run("").changes(),
        0,
        "a run after the sweep still found something to do"
    );
}

#[test]
fn dying_while_lost_certificates_are_saved_from_the_cluster_ends_with_the_same_certificates() {
    let stage = Stage::new();
    assert!(matches!(stage.run(""), Ended::Well(_)));
    let kept = stage.certificates();
    std::fs::remove_dir_all(stage.wildcard()).unwrap();
    let died_at = sweep(&stage);
    assert!(died_at.contains("after write ca.pem"), "{died_at:?}");
    let mut saved = stage.certificates();
    // The CA's key never was in the cluster.
    let lost = kept.iter().find(|(name, _)| name == "ca-key.pem").cloned();
    saved.extend(lost);
    saved.sort();
    assert_eq!(
        saved.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        kept.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    assert!(saved == kept, "other certificates than before");
}

/// Runs until one gets to its end; answers the points that the others died at.
fn sweep(stage: &Stage) -> BTreeSet<String> {
    let list = stage.file("died-at");
    let order = format!("new:{}", list.display());
    for _ in 0..MOST {
        match stage.run(&order) {
            Ended::Died => {}
            Ended::Well(_) => return lines(&list),
        }
    }
    panic!("{MOST} runs died: {:?}", lines(&list));
}

fn lines(file: &std::path::Path) -> BTreeSet<String> {
    std::fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The child's part: the steps in the table's order, as `--sequential` does them.
#[test]
fn a_run_that_may_die() {
    let Some(folder) = std::env::var_os(stage::FOLDER).map(PathBuf::from) else {
        return;
    };
    let kubeconfig = std::env::var_os(stage::KUBECONFIG).map(PathBuf::from);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let options = ConnectOptions {
            kubeconfig,
            ..ConnectOptions::default()
        };
        let context = context_in(&folder, Cluster::connect(&options).await.unwrap());
        let progress = Progress::silent();
        let work = Work {
            context: &context,
            progress: &progress,
        };
        let mut changes = Vec::new();
        let installers: [&dyn Installer; 4] = [
            &GatewayCrds,
            &LocalPathProvisioner,
            &WildcardCerts,
            &CoreDnsPatch,
        ];
        for installer in installers {
            let outcome = installer.install(work).await;
            changes.extend(
                outcome
                    .unwrap_or_else(|error| panic!("{}: {error}", installer.id()))
                    .changes,
            );
        }
        let mut outcome = Outcome::default();
        ensure_volumes(work, &mut outcome).await.unwrap();
        changes.extend(outcome.changes);
        std::fs::write(folder.join(stage::CHANGES), changes.join("\n")).unwrap();
    });
}
