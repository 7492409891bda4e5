//! `blueprint down`: with the data kept the same installation comes back, and with everything wiped the cluster is as it was before the first `up`.

use std::time::Instant;

use super::identity::{self, Identity};
use super::inventory::Inventory;
use super::killed_run::Run;
use super::pipeline::run_blueprint;
use super::{Evidence, Scene, expect, fresh};
use crate::error::Result;
use crate::report::seconds;

/// Namespaces that an installation makes.
const NAMESPACES: [&str; 7] = [
    "cnpg-system",
    "gitlab",
    "local-path-storage",
    "minio",
    "openbao",
    "postgresql",
    "redis",
];
/// What the second of two runs in a row says.
const NOTHING: &str = "Nothing to take down";

/// Down (killed once on the way, and run again), down once more, up: the same markers and identities.
pub(super) fn down_up(scene: &mut Scene) -> Result<Evidence> {
    identity::mark(scene)?;
    let before = Identity::take(scene)?;
    expect(
        before.markers_hold(),
        "every marker as written",
        "another value",
    )?;
    kill_while_gitlab_goes(scene)?;
    let begun = Instant::now();
    run_blueprint(scene, &["down", "--output", "plain"])?;
    let down = begun.elapsed();
    let all = Inventory::take(scene)?;
    let left = left_behind(&all);
    expect(
        left.is_empty(),
        "no object of the installation left",
        left.join("; "),
    )?;
    nothing_more(scene)?;

    let begun = Instant::now();
    run_blueprint(scene, &["up", "--output", "plain"])?;
    let up = begun.elapsed();
    run_blueprint(scene, &["smoke"])?;
    let after = Identity::take(scene)?;
    let lost = before.differences(&after);
    expect(
        lost.is_empty(),
        "every marker and identity as before",
        if lost.is_empty() {
            format!(
                "killed while GitLab went, then down in {}, a second time nothing; up in {}: 5 markers and {} identities the same",
                seconds(down),
                seconds(up),
                after.len() - 5
            )
        } else {
            lost.join("; ")
        },
    )
}

/// SIGKILL while helm removes GitLab; that helm works on by itself.
fn kill_while_gitlab_goes(scene: &Scene) -> Result<()> {
    let mut run = Run::of(scene, "down-gitlab", "down")?;
    run.until("helm to remove GitLab", |run| {
        Ok(run.told("gitlab", "uninstalling release"))
    })?;
    run.kill()
}

fn left_behind(all: &Inventory) -> Vec<&str> {
    let mut words: Vec<String> = NAMESPACES
        .iter()
        .map(|name| format!("Namespace /{name}"))
        .collect();
    words.push("PersistentVolume /pv-".to_owned());
    words.push("StorageClass /local-path".to_owned());
    all.with(&words)
}

fn nothing_more(scene: &Scene) -> Result<()> {
    let told = run_blueprint(scene, &["down", "--output", "plain"])?;
    expect(
        told.contains(NOTHING),
        NOTHING,
        told.lines().next_back().unwrap_or_default(),
    )
    .map(drop)
}

/// On a new cluster without any installation. Leaves no cluster behind.
pub(super) fn wipe(scene: &mut Scene) -> Result<Evidence> {
    fresh::installation(scene, up_and_wiped)
}

fn up_and_wiped(scene: &Scene) -> Result<Evidence> {
    let before = Inventory::take(scene)?;
    run_blueprint(scene, &["up", "--output", "plain"])?;
    let installed = Inventory::take(scene)?;
    let context = scene.kubectl(["config", "current-context"]).output()?;
    let name = context.trim();
    let name = name.strip_prefix("kind-").unwrap_or(name);
    let begun = Instant::now();
    run_blueprint(
        scene,
        &["down", "--wipe", "--yes", name, "--output", "plain"],
    )?;
    let took = begun.elapsed();
    let after = Inventory::take(scene)?;
    let other = before.differences(&after);
    expect(
        other.is_empty(),
        "every object and every file of the nodes as before the first `up`",
        other.join("; "),
    )?;
    let files = files_left(scene);
    expect(
        files.is_empty(),
        "neither data nor credentials in the checkout",
        files.join(", "),
    )?;
    nothing_more(scene)?;
    Ok(format!(
        "{} objects and files, {} after `up`, the very same {} after `down --wipe` ({}); no data, no credentials",
        before.len(),
        installed.len(),
        after.len(),
        seconds(took)
    ))
}

/// What lies in the folders of data and credentials.
fn files_left(scene: &Scene) -> Vec<String> {
    ["infra/storage", "infra/secrets", "infra/tls"]
        .iter()
        .map(|folder| scene.lab.checkout().join(folder))
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().display().to_string()))
        .collect()
}
