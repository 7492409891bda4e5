//! A fresh installation that is killed in steps 5, 8 and 12, and whose step 7 cannot be done at first: it converges, and nothing is made twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::identity::digest;
use super::observer::items;
use super::pipeline::run_blueprint;
use super::recreation::delete_cluster;
use super::{Evidence, Scene, expect};
use crate::error::{Error, FileContext as _, Result};
use crate::lab;

/// Folders of the checkout that make an installation; moved aside for a fresh one.
const INSTALLATION: [&str; 3] = ["infra/storage", "infra/secrets", "infra/tls"];
/// Tasks of the steps before the seventh.
const BEFORE_7: [&str; 6] = [
    "gateway-crds",
    "local-path",
    "stable-storage",
    "cnpg-operator",
    "cnpg-cluster",
    "redis",
];
/// The longest that a task may take to begin.
const BEGIN: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(100);

/// The kills: the task, and how long it may work before.
const KILLS: [(&str, Duration); 4] = [
    ("cnpg-cluster", Duration::from_secs(6)),
    ("openbao", Duration::from_millis(1500)),
    ("gitlab", Duration::from_secs(4)),
    ("gitlab", Duration::from_secs(20)),
];

/// The checkout's installation while a fresh one is tried; put back when dropped. Its cluster is gone by then.
struct Aside {
    pairs: Vec<(PathBuf, PathBuf)>,
}

impl Aside {
    fn put(scene: &Scene) -> Result<Self> {
        let mut aside = Self { pairs: Vec::new() };
        for folder in INSTALLATION {
            let from = scene.lab.checkout().join(folder);
            let to = scene.lab.checkout().join(format!("{folder}-aside"));
            if from.exists() {
                fs::rename(&from, &to).file("move aside", &from)?;
                aside.pairs.push((from, to));
            }
        }
        Ok(aside)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        for (home, away) in &self.pairs {
            // What was tried is thrown away; where that fails the former one still stands beside it, under its other name.
            let _ = fs::remove_dir_all(home);
            let _ = fs::rename(away, home);
        }
    }
}

/// Leaves no cluster behind.
pub(super) fn killed_and_resumed(scene: &mut Scene) -> Result<Evidence> {
    delete_cluster(scene)?;
    let aside = Aside::put(scene)?;
    let result = on_a_fresh_cluster(scene);
    delete_cluster(scene)?;
    drop(aside);
    result
}

fn on_a_fresh_cluster(scene: &Scene) -> Result<Evidence> {
    lab::up(scene.lab, Some(scene.platform.program()), scene.report)?;
    let mut kept = Vec::new();
    let mut kill = |(task, work): (&str, Duration)| -> Result<()> {
        kill_in(scene, task, work)?;
        kept.push(private(scene)?);
        Ok(())
    };
    let [in_step_5, later @ ..] = KILLS;
    bar_step_7(scene)?;
    kill(in_step_5)?;
    let failed = step_7_fails(scene)?;
    for each in later {
        kill(each)?;
    }
    run_blueprint(scene, &["up", "--output", "plain"])?;
    run_blueprint(scene, &["smoke"])?;
    let last = private(scene)?;
    for (file, digest) in kept.iter().flatten() {
        let now = last.iter().find(|(name, _)| name == file);
        expect(
            now.is_some_and(|(_, now)| now == digest),
            "every private file as at the kill",
            format!("{file} differs"),
        )?;
    }
    let runners = scene.sql("gitlabhq_production", "select count(*) from ci_runners")?;
    expect(runners == "1", "one runner", runners)?;
    let history = history(scene)?;
    expect(
        history
            .iter()
            .all(|revision| !revision.contains("uninstall"))
            && history.last().is_some_and(|last| last.contains("deployed")),
        "a release that was never purged",
        history.join(", "),
    )?;
    Ok(format!(
        "{failed}; killed in {}; then green: {} private files never changed, 1 runner, gitlab's history {}",
        KILLS
            .map(|(task, work)| format!("{task} after {:.1} s", work.as_secs_f64()))
            .join(", "),
        last.len(),
        history.join(", ")
    ))
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

/// Starts `up`, waits until `task` has begun and worked for a while, and kills it with SIGKILL.
fn kill_in(scene: &Scene, task: &str, work: Duration) -> Result<()> {
    let log = scene.lab.log(&format!("e2e-killed-{task}"));
    let mut child = scene
        .platform
        .blueprint()
        .args(["up", "--output", "json"])
        .detached(&log)?;
    let begun = Instant::now();
    let started = format!("\"event\":\"task-started\",\"task\":\"{task}\"");
    while !fs::read_to_string(&log)
        .unwrap_or_default()
        .contains(&started)
    {
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || begun.elapsed() > BEGIN {
            let _ = child.kill();
            return Err(Error::unmet(
                format!("{task} never began"),
                format!("see {}", log.display()),
            ));
        }
        thread::sleep(POLL);
    }
    thread::sleep(work);
    child.kill().file("kill", Path::new("blueprint"))?;
    child.wait().file("wait for", Path::new("blueprint"))?;
    Ok(())
}

/// The private files there are, with digests; the journal's own come and go.
fn private(scene: &Scene) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for folder in ["infra/secrets", "infra/tls/wildcard"] {
        let folder = scene.lab.checkout().join(folder);
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.file("list", &folder)?.path();
            let name = path.display().to_string();
            if !name.contains("openbao-init.json.") && !name.contains("snapshot") {
                let bytes = fs::read(&path).file("read", &path)?;
                found.push((name, digest(&bytes)));
            }
        }
    }
    Ok(found)
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
