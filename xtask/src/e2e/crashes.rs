//! A fresh installation that is killed in steps 5, 8 and 12, and whose step 7 cannot be done at first: it converges, and nothing is made twice.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::fresh;
use super::killed_run::{FrozenHelm, Run};
use super::observer::items;
use super::pipeline::run_blueprint;
use super::{Evidence, Scene, expect, objects};
use crate::error::{FileContext as _, Result};

/// Tasks of the steps before the seventh.
const BEFORE_7: [&str; 6] = [
    "gateway-crds",
    "local-path",
    "stable-storage",
    "cnpg-operator",
    "cnpg-cluster",
    "redis",
];
/// What steps 1 to 6 make, by kind.
const FOUNDATIONS: &str = "namespaces,customresourcedefinitions,storageclasses,persistentvolumes,deployments,statefulsets,clusters.postgresql.cnpg.io";
/// Helm still installs OpenBao then: a later kill might come after its initialisation, which is to be met by the next one.
const EARLY: Duration = Duration::from_millis(500);
/// Helm's record of GitLab's first revision.
const FIRST_REVISION: &str = "sh.helm.release.v1.gitlab.v1";

/// Leaves no cluster behind.
pub(super) fn killed_and_resumed(scene: &mut Scene) -> Result<Evidence> {
    fresh::installation(scene, killed_in_steps_5_7_8_and_12)
}

fn killed_in_steps_5_7_8_and_12(scene: &Scene) -> Result<Evidence> {
    let mut kept = BTreeMap::new();
    bar_step_7(scene)?;
    in_step_5(scene)?;
    kept.extend(fresh::private_files(scene)?);
    let failed = step_7_fails(scene)?;
    let foundations = uids(scene, FOUNDATIONS)?;
    in_step_8(scene)?;
    let init = between_init_and_its_answer(scene)?;
    kept.extend(fresh::private_files(scene)?);
    let (helm, first_revision) = in_step_12(scene)?;
    kept.extend(fresh::private_files(scene)?);
    waiting_for_helm(scene, helm)?;
    run_blueprint(scene, &["up", "--output", "plain"])?;
    run_blueprint(scene, &["smoke"])?;

    fresh::all_kept(scene, &kept)?;
    let now = uids(scene, FOUNDATIONS)?;
    let replaced: Vec<_> = foundations
        .iter()
        .filter(|(name, uid)| now.get(*name) != Some(uid))
        .map(|(name, _)| name.as_str())
        .collect();
    expect(
        replaced.is_empty(),
        "what steps 1 to 6 had made when step 7 failed",
        format!("gone or made anew: {}", replaced.join(", ")),
    )?;
    let runners = scene.sql("gitlabhq_production", "select count(*) from ci_runners")?;
    expect(runners == "1", "one runner", runners)?;
    let history = history(scene)?;
    // A purge would take the record along, and a new install would bring another one of the same name.
    expect(
        record(scene)?.as_deref() == Some(first_revision.as_str())
            && history.last().is_some_and(|last| last.contains("deployed")),
        "the release that helm was working on at the kill, never purged",
        history.join(", "),
    )?;
    Ok(format!(
        "{failed}; killed in cnpg-cluster, in openbao (once at its start, once {init}), in gitlab while helm worked and again while that helm was waited for; then \
         green: {} private files as at the kills, {} objects of steps 1 to 6 the same, 1 runner, the same release gitlab with history {}",
        kept.len(),
        foundations.len(),
        history.join(", ")
    ))
}

fn in_step_5(scene: &Scene) -> Result<()> {
    let mut run = Run::start(scene, "step-5")?;
    run.until_begun("cnpg-cluster")?;
    // initdb is under way by then.
    thread::sleep(Duration::from_secs(6));
    run.kill()
}

fn in_step_8(scene: &Scene) -> Result<()> {
    let mut run = Run::start(scene, "step-8")?;
    run.until_begun("openbao")?;
    thread::sleep(EARLY);
    run.kill()
}

/// Killed as soon as the intention is on the disk: the one call whose answer cannot be had twice is under way.
fn between_init_and_its_answer(scene: &Scene) -> Result<&'static str> {
    let there = |suffix: &str| {
        let file = format!("infra/secrets/openbao-init.json{suffix}");
        scene.lab.checkout().join(file).exists()
    };
    let mut run = Run::start(scene, "step-8-init")?;
    run.until("the intention of OpenBao's initialisation", |_| {
        Ok(there(".intended"))
    })?;
    run.kill()?;
    Ok(if there("") {
        "with its keys on the disk"
    } else if there(".answer") {
        "with init's answer stored"
    } else {
        "between init's intention and its answer"
    })
}

/// Killed while helm installs GitLab; helm goes on, and is frozen so that the next run surely meets it. With the uid of helm's record.
fn in_step_12(scene: &Scene) -> Result<(FrozenHelm, String)> {
    let mut run = Run::start(scene, "step-12")?;
    let mut uid = None;
    run.until("helm's record of release gitlab", |run| {
        if run.told("gitlab", "helm: installing release gitlab") {
            uid = record(scene)?;
        }
        Ok(uid.is_some())
    })?;
    run.kill()?;
    let helm = FrozenHelm::of(scene, "gitlab")?;
    Ok((helm, uid.unwrap_or_default()))
}

/// The next run waits for the helm that works on; it is killed while it does.
fn waiting_for_helm(scene: &Scene, helm: FrozenHelm) -> Result<()> {
    let words = format!("helm of an earlier run (process {})", helm.pid());
    let mut run = Run::start(scene, "step-12-waiting")?;
    run.until("a word on the helm that works on", |run| {
        Ok(run.told("gitlab", &words))
    })?;
    run.kill()?;
    drop(helm);
    Ok(())
}

/// Somebody else's Service where MinIO's must stand.
fn bar_step_7(scene: &Scene) -> Result<()> {
    scene.kubectl(["create", "namespace", "minio"]).output()?;
    scene
        .kubectl([
            "create",
            "service",
            "clusterip",
            "minio",
            "--namespace",
            "minio",
            "--tcp=9000",
        ])
        .output()
        .map(drop)
}

/// Barred, step 7 fails and says so; what came before stays, and once the Service is gone the next run goes on there.
fn step_7_fails(scene: &Scene) -> Result<Evidence> {
    let begun = Instant::now();
    let (code, stdout, stderr) = scene
        .platform
        .blueprint()
        .args(["up", "--until", "7", "--output", "plain"])
        .captured()?;
    let took = begun.elapsed().as_secs();
    let told = format!("{stdout}{stderr}");
    let log = scene.lab.log("e2e-step-7");
    fs::write(&log, &told).file("write", &log)?;
    let done = |task: &&str| {
        told.lines()
            .filter(|line| line.contains(&format!(" {task} ")))
            .any(|line| line.contains("done in") || line.contains("unchanged ("))
    };
    expect(
        code == Some(1)
            && told.contains("invalid ownership metadata")
            && told.contains("hint:")
            && BEFORE_7.iter().all(done),
        "exit 1, steps 1 to 6 done, the cause and the next move named",
        format!("exit {code:?}, see {}", log.display()),
    )?;
    scene
        .kubectl(["delete", "service", "minio", "--namespace", "minio"])
        .output()?;
    Ok(format!(
        "step 7 barred by a foreign Service → 1 after {took} s, steps 1 to 6 stayed, cause and hint named"
    ))
}

/// `revision status` of the release gitlab.
fn history(scene: &Scene) -> Result<Vec<String>> {
    let list = scene.objects(&[
        "secrets",
        "--namespace",
        "gitlab",
        "--selector",
        "owner=helm,name=gitlab",
    ])?;
    let mut revisions: Vec<(u32, String)> = items(&list)
        .into_iter()
        .map(|record| {
            let labels = &record["metadata"]["labels"];
            let field = |name: &str| labels[name].as_str().unwrap_or_default().to_owned();
            (field("version").parse().unwrap_or(0), field("status"))
        })
        .collect();
    revisions.sort();
    Ok(revisions
        .into_iter()
        .map(|(number, status)| format!("{number} {status}"))
        .collect())
}

/// The uid of helm's record of GitLab's first revision, while there is one.
fn record(scene: &Scene) -> Result<Option<String>> {
    let found = scene
        .kubectl(["get", "secret", FIRST_REVISION, "--namespace", "gitlab"])
        .args(["--ignore-not-found", "--output", "jsonpath={.metadata.uid}"])
        .output()?;
    Ok(Some(found).filter(|uid| !uid.is_empty()))
}

/// `Kind namespace/name` → uid.
fn uids(scene: &Scene, kinds: &str) -> Result<BTreeMap<String, String>> {
    let list = scene.objects(&[kinds, "--all-namespaces"])?;
    Ok(items(&list)
        .into_iter()
        .map(|object| (objects::name(object), object["metadata"]["uid"].to_string()))
        .collect())
}
