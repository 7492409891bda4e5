//! The run itself: the cluster, a green `up`, and a second one that changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

use serde_json::Value;

use super::observer::{condition, items};
use super::{Evidence, Scene, expect, secrecy};
use crate::error::{Error, FileContext as _, Result};
use crate::report::seconds;

const STEPS: usize = 13;

pub(super) fn cluster_up(scene: &mut Scene) -> Result<Evidence> {
    let nodes = scene.objects(&["nodes"])?;
    let states: Vec<_> = items(&nodes)
        .into_iter()
        .map(|node| {
            format!(
                "{} Ready={}",
                node["metadata"]["name"].as_str().unwrap_or("?"),
                condition(node, "Ready")
            )
        })
        .collect();
    expect(
        states.len() == 3 && states.iter().all(|state| state.ends_with("=True")),
        "three Ready nodes",
        states.join(", "),
    )
}

pub(super) fn up_is_green(scene: &mut Scene) -> Result<Evidence> {
    let begun = Instant::now();
    let told = secrecy::watched(scene, &["up", "--output", "plain"])?;
    let took = begun.elapsed();
    scene.first_up = Some(took);
    let missing: Vec<_> = (1..=STEPS)
        .filter(|step| !told.contains(&format!("Step {step}/{STEPS}")))
        .map(|step| step.to_string())
        .collect();
    if !missing.is_empty() {
        return expect(
            false,
            "13 of 13 steps told",
            format!("no line for step {}", missing.join(", ")),
        );
    }
    run_blueprint(scene, &["smoke"])?;
    let pods = scene.objects(&["pods", "--namespace", "gitlab"])?;
    let (running, others): (Vec<_>, Vec<_>) = items(&pods)
        .into_iter()
        .filter(|pod| pod["status"]["phase"] != "Succeeded")
        .partition(|pod| condition(pod, "Ready") == "True");
    let others: Vec<_> = others
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str())
        .collect();
    expect(
        others.is_empty(),
        "every pod of GitLab's Ready",
        if others.is_empty() {
            format!(
                "{STEPS} steps in {}, smoke green, {} pods of GitLab Ready",
                seconds(took),
                running.len()
            )
        } else {
            format!("not Ready: {}", others.join(", "))
        },
    )
}

pub(super) fn second_up_changes_nothing(scene: &mut Scene) -> Result<Evidence> {
    let before = Fingerprint::take(scene)?;
    let begun = Instant::now();
    run_blueprint(scene, &["up", "--output", "plain"])?;
    let took = begun.elapsed();
    let after = Fingerprint::take(scene)?;
    let changes = before.differences(&after);
    expect(
        changes.is_empty(),
        "no new Helm revision, no new or restarted pod, no rewritten file",
        changes.join("; "),
    )?;
    let Some(first) = scene.first_up else {
        return Ok(format!("nothing changed in {}", seconds(took)));
    };
    expect(
        took * 10 <= first,
        "at most a tenth of the first run's time",
        format!(
            "nothing changed; {} after {}",
            seconds(took),
            seconds(first)
        ),
    )
}

/// Runs blueprint; what it told goes into a log and comes back.
pub(super) fn run_blueprint(scene: &Scene, args: &[&str]) -> Result<String> {
    let (code, stdout, stderr) = scene.platform.blueprint().args(args).captured()?;
    let told = format!("{stdout}{stderr}");
    let log = scene.lab.log(&format!("e2e-{}", args[0]));
    fs::write(&log, &told).file("write", &log)?;
    if code == Some(0) {
        return Ok(told);
    }
    let lines: Vec<&str> = told.lines().collect();
    let from = lines.len().saturating_sub(20);
    Err(Error::unmet(
        format!(
            "`blueprint {}` ended with {code:?}\n    {}",
            args.join(" "),
            lines[from..].join("\n    ")
        ),
        format!("all of it is in {}", log.display()),
    ))
}

/// Everything a run without changes must leave alone, each under a name.
pub(super) struct Fingerprint(BTreeMap<String, String>);

impl Fingerprint {
    pub(super) fn take(scene: &Scene) -> Result<Self> {
        let mut seen = BTreeMap::new();
        let releases =
            scene.objects(&["secrets", "--all-namespaces", "--selector", "owner=helm"])?;
        for release in items(&releases) {
            let labels = &release["metadata"]["labels"];
            let name = format!("release {} revision {}", labels["name"], labels["version"]);
            seen.insert(name, labels["status"].to_string());
        }
        let pods = scene.objects(&["pods", "--all-namespaces"])?;
        for pod in items(&pods) {
            let restarts: u64 = pod["status"]["containerStatuses"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|container| container["restartCount"].as_u64())
                .sum();
            let meta = &pod["metadata"];
            seen.insert(
                format!("pod {}/{} {}", meta["namespace"], meta["name"], meta["uid"]),
                format!("{restarts} restarts"),
            );
        }
        objects(scene, &mut seen)?;
        let infra = scene.lab.checkout().join("infra");
        files(&infra, &infra, &mut seen)?;
        Ok(Self(seen))
    }

    /// Of a workspace's files alone.
    pub(super) fn of_files(workspace: &Path) -> Result<Self> {
        let mut seen = BTreeMap::new();
        files(&workspace.join("infra"), workspace, &mut seen)?;
        Ok(Self(seen))
    }

    pub(super) fn differences(&self, after: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, state) in &self.0 {
            match after.0.get(name) {
                None => found.push(format!("{name} is gone")),
                Some(now) if now != state => found.push(format!("{name}: {state} → {now}")),
                Some(_) => {}
            }
        }
        let new = after.0.keys().filter(|name| !self.0.contains_key(*name));
        found.extend(new.map(|name| format!("{name} is new")));
        found
    }
}

/// What blueprint writes into the cluster: every write of content shows in the first group's resourceVersion; the
/// second group's status moves by itself, its generation only with its content.
fn objects(scene: &Scene, seen: &mut BTreeMap<String, String>) -> Result<()> {
    let groups: [(&[&str], &str); 2] = [
        (
            &[
                "secrets",
                "configmaps",
                "services",
                "persistentvolumes",
                "storageclasses.storage.k8s.io",
            ],
            "/metadata/resourceVersion",
        ),
        (
            &[
                "deployments.apps",
                "statefulsets.apps",
                "persistentvolumeclaims",
                "customresourcedefinitions.apiextensions.k8s.io",
                "clusters.postgresql.cnpg.io",
                "databases.postgresql.cnpg.io",
                "gateways.gateway.networking.k8s.io",
                "httproutes.gateway.networking.k8s.io",
            ],
            "/metadata/generation",
        ),
    ];
    // A cluster before its first `up` does not know all of them.
    let known = scene
        .kubectl(["api-resources", "--output", "name"])
        .output()?;
    for (kinds, mark) in groups {
        let kinds: Vec<_> = kinds
            .iter()
            .copied()
            .filter(|kind| known.lines().any(|line| line == *kind))
            .collect();
        let list = scene.objects(&[&kinds.join(","), "--all-namespaces"])?;
        for object in items(&list) {
            let meta = &object["metadata"];
            seen.insert(
                format!("{} {}/{}", object["kind"], meta["namespace"], meta["name"]),
                format!(
                    "{} {}",
                    meta["uid"],
                    object.pointer(mark).unwrap_or(&Value::Null)
                ),
            );
        }
    }
    Ok(())
}

/// Modification times below `infra`, but for what is not blueprint's: the databases' own files.
fn files(root: &Path, folder: &Path, seen: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(folder).file("list", folder)? {
        let entry = entry.file("list", folder)?;
        let path = entry.path();
        if path == root.join("storage") || path == root.join("phase2") {
            continue;
        }
        let meta = entry.metadata().file("read", &path)?;
        if meta.is_dir() {
            files(root, &path, seen)?;
        } else {
            let time = meta
                .modified()
                .ok()
                .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok())
                .unwrap_or_default();
            seen.insert(
                format!("file {}", path.display()),
                format!("{} bytes of {} ms", meta.len(), time.as_millis()),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_revision_a_restart_and_a_lost_file_are_told() {
        let print = |pairs: &[(&str, &str)]| {
            Fingerprint(
                pairs
                    .iter()
                    .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                    .collect(),
            )
        };
        let before = print(&[
            ("r 1", "deployed"),
            ("pod a", "0 restarts"),
            ("file f", "1"),
        ]);
        let after = print(&[
            ("r 1", "superseded"),
            ("r 2", "deployed"),
            ("pod a", "1 restarts"),
        ]);
        let found = before.differences(&after).join("\n");
        assert!(found.contains("r 1: deployed → superseded"));
        assert!(found.contains("r 2 is new"));
        assert!(found.contains("pod a: 0 restarts → 1 restarts"));
        assert!(found.contains("file f is gone"));
        assert!(before.differences(&before).is_empty());
    }
}
