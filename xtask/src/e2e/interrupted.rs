//! Ctrl-C, once and twice, while helm works on GitLab; and two runs at once, the first of them stopped where it stands.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::killed_run::{Run, signal};
use super::pipeline::run_blueprint;
use super::refusals::Place;
use super::{Evidence, Scene, expect};
use crate::error::{Error, FileContext as _, Result};

/// helm's upgrade of GitLab took 22 s; a gentle stop waits for it.
const GENTLY: Duration = Duration::from_mins(3);
const AT_ONCE: Duration = Duration::from_secs(3);
/// A word for people, on standard error, beside the events.
const STOPPING: &str = "stopping: running tasks get to a safe point";

/// VERSIONS.json with a value of GitLab's changed; put back when dropped.
struct Edited {
    path: PathBuf,
    before: String,
}

impl Edited {
    fn new(scene: &Scene) -> Result<Self> {
        let path = scene.lab.checkout().join("VERSIONS.json");
        let before = fs::read_to_string(&path).file("read", &path)?;
        Ok(Self { path, before })
    }

    /// An annotation on one pod: helm has something to do, and nothing depends on it.
    fn annotate(&self, value: &str) -> Result<()> {
        let mut pins: Value = serde_json::from_str(&self.before)
            .map_err(|error| Error::content(self.path.display().to_string(), error))?;
        pins["helm_repositories"]["gitlab"]["values_overrides"] =
            json!({"gitlab": {"toolbox": {"annotations": {"blueprint.dev/e2e": value}}}});
        fs::write(&self.path, format!("{pins:#}\n")).file("write", &self.path)
    }
}

impl Drop for Edited {
    fn drop(&mut self) {
        // Nothing better can be done here than to try.
        let _ = fs::write(&self.path, &self.before);
    }
}

pub(super) fn interrupted(scene: &mut Scene) -> Result<Evidence> {
    let edited = Edited::new(scene)?;
    let once = once(scene, &edited)?;
    let twice = twice(scene, &edited)?;
    drop(edited);
    run_blueprint(scene, &["up", "--output", "plain"])?;
    run_blueprint(scene, &["smoke"])?;
    let status = newest_status(scene)?;
    expect(
        status == "deployed" && !lease_is_there(scene)?,
        "the release deployed and no Lease left",
        format!("{once}; {twice}; then green with release gitlab {status} and no Lease left"),
    )
}

fn in_helm(scene: &Scene, name: &str) -> Result<Run> {
    let mut run = Run::start(scene, name)?;
    let pid = helm_pid_file(scene);
    run.until("helm at work on release gitlab", |run| {
        Ok(run.told("gitlab", "helm: upgrading release gitlab") && pid.exists())
    })?;
    Ok(run)
}

fn once(scene: &Scene, edited: &Edited) -> Result<Evidence> {
    edited.annotate("once")?;
    let mut run = in_helm(scene, "interrupted-once")?;
    let begun = Instant::now();
    run.interrupt()?;
    let code = run.ended(GENTLY)?;
    let took = begun.elapsed().as_secs();
    let events = run.events();
    let after = events.split_once(STOPPING).map(|(_, after)| after);
    let status = newest_status(scene)?;
    expect(
        code == Some(130)
            && after.is_some_and(|after| !after.contains("\"event\":\"task-started\""))
            && after.is_some_and(|after| after.contains("is not cut off"))
            && events.contains("\"interrupted\":true")
            && status == "deployed"
            && !helm_pid_file(scene).exists()
            && !lease_is_there(scene)?,
        "code 130, helm waited for, nothing begun after Ctrl-C, the release deployed, no Lease left",
        format!("one Ctrl-C in helm → {code:?} after {took} s, release gitlab {status}"),
    )
}

fn twice(scene: &Scene, edited: &Edited) -> Result<Evidence> {
    edited.annotate("twice")?;
    let mut run = in_helm(scene, "interrupted-twice")?;
    run.interrupt()?;
    run.until("the answer to the first Ctrl-C", |run| {
        Ok(run.events().contains(STOPPING))
    })?;
    let begun = Instant::now();
    run.interrupt()?;
    let code = run.ended(AT_ONCE)?;
    let took = begun.elapsed().as_millis();
    let works_on = helm_pid_file(scene).exists();
    let told = run_blueprint(scene, &["up", "--output", "plain"])?;
    let status = newest_status(scene)?;
    expect(
        code == Some(130)
            && works_on
            && told.contains("took the cluster's lock over from process")
            && told.contains("helm of an earlier run")
            && status == "deployed",
        "code 130 at once, helm left to itself; the next run takes the lock over, waits for that helm and is green",
        format!(
            "two → {code:?} after {took} ms, helm worked on; the next run waited for it and was green, release gitlab {status}"
        ),
    )
}

/// A run that holds both locks and stands still; then one that was killed with them.
pub(super) fn two_runs_at_once(scene: &mut Scene) -> Result<Evidence> {
    let place = Place::copy_of(scene)?;
    let mut first = Run::start(scene, "two-runs")?;
    first.until_begun("preflight")?;
    let pid = first.pid().to_string();
    signal("-STOP", &pid)?;
    let here = second(scene, &[])?;
    let elsewhere = second(scene, &["--workspace", &place.root.to_string_lossy()]);
    signal("-CONT", &pid)?;
    let elsewhere = elsewhere?;
    let code = first.ended(GENTLY)?;
    let left = lease_is_there(scene)?;
    let names = |told: &str, what: &str| {
        told.contains(&format!("another run holds {what}"))
            && told.contains(&format!("process {pid} on "))
            && told.contains("blueprint up, since 20")
            && told.contains("hint:")
    };
    expect(
        here.0 == Some(1)
            && names(&here.1, "/")
            && elsewhere.0 == Some(1)
            && names(&elsewhere.1, "the cluster")
            && code == Some(0)
            && !left,
        "code 1 with pid, machine and time, in the same workspace and in another one; the first run undisturbed, no Lease left",
        format!(
            "the second: {:?} in the same workspace, {:?} in another one, each naming process, machine and time; the first: {code:?}; Lease left: {left}{}",
            here.0,
            elsewhere.0,
            if names(&elsewhere.1, "the cluster") {
                String::new()
            } else {
                format!("; told: {}", elsewhere.1)
            }
        ),
    )?;
    let mut killed = Run::start(scene, "two-runs-killed")?;
    killed.until_begun("preflight")?;
    thread::sleep(Duration::from_millis(300));
    let pid = killed.pid();
    killed.kill()?;
    let told = run_blueprint(scene, &["up", "--output", "plain"])?;
    expect(
        told.contains(&format!(
            "took the cluster's lock over from process {pid} on "
        )) && !lease_is_there(scene)?,
        "the killed run's Lease taken over at once, and none left",
        "a second run → 1 in the same workspace and in another one, naming process, machine and time; a killed run's Lease is taken over, none is left",
    )
}

fn second(scene: &Scene, args: &[&str]) -> Result<(Option<i32>, String)> {
    let (code, stdout, stderr) = scene
        .platform
        .blueprint()
        .args(args)
        .args(["up", "--output", "plain"])
        .captured()?;
    Ok((code, format!("{stdout}{stderr}")))
}

fn helm_pid_file(scene: &Scene) -> PathBuf {
    scene
        .lab
        .checkout()
        .join("infra/phase2/state/helm-gitlab.pid")
}

fn lease_is_there(scene: &Scene) -> Result<bool> {
    let found = scene
        .kubectl([
            "get",
            "lease",
            "blueprint-run",
            "--namespace",
            "kube-system",
        ])
        .args(["--ignore-not-found", "--output", "name"])
        .output()?;
    Ok(!found.is_empty())
}

/// Of the newest revision of release gitlab.
fn newest_status(scene: &Scene) -> Result<String> {
    let list = scene.objects(&[
        "secrets",
        "--namespace",
        "gitlab",
        "--selector",
        "owner=helm,name=gitlab",
    ])?;
    let newest = super::observer::items(&list)
        .into_iter()
        .map(|record| &record["metadata"]["labels"])
        .max_by_key(|labels| {
            labels["version"]
                .as_str()
                .and_then(|number| number.parse::<u32>().ok())
        })
        .and_then(|labels| labels["status"].as_str());
    Ok(newest.unwrap_or("without a revision").to_owned())
}
