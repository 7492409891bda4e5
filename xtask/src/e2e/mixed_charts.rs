//! Stand-in charts and real ones never meet: pins of the other kind are refused, whatever tells it, and nothing changes.

use std::fs;
use std::path::{Path, PathBuf};

use super::pipeline::Fingerprint;
use super::refusals::Place;
use super::{Evidence, Scene, expect};
use crate::charts;
use crate::charts_choice::PINS;
use crate::error::{FileContext as _, Result};
use crate::process::Process;

/// In the workspace: which charts it is made with.
const RECORD: &str = "infra/phase2/state/charts.json";

pub(super) fn never_mix(scene: &mut Scene) -> Result<Evidence> {
    let other = Other::of(scene)?;
    let before = Fingerprint::take(scene)?;

    // The workspace's own record speaks.
    let up = scene.platform.blueprint().args(["up", "--offline"]);
    let told = other.refused(up, 3, &["this workspace is made with", RECORD])?;
    expect(
        told.contains(other.way_out),
        &format!("the way out, `{}`", other.way_out),
        told,
    )?;

    // Without the record and the credentials, with the other charts in the cache: the cluster's release records speak.
    let place = Place::copy_of(scene)?;
    for lost in [RECORD, "infra/secrets"] {
        remove(&place.root.join(lost))?;
    }
    other.put_into(&place)?;
    let at = |args: &[&str]| {
        let run = scene
            .platform
            .blueprint()
            .arg("--workspace")
            .arg(&place.root);
        run.args(args)
    };
    other.refused(
        at(&["up", "--offline"]),
        3,
        &["in the cluster: release", "redis/redis", "gitlab/gitlab"],
    )?;

    // A run without pre-flight stops at its first release.
    other.refused(
        at(&["up", "--offline", "--only", "cnpg-operator"]),
        1,
        &["stand-in charts and upstream's charts would meet"],
    )?;

    let changes = before.differences(&Fingerprint::take(scene)?);
    expect(
        changes.is_empty(),
        "nothing changed by refused runs",
        changes.join("; "),
    )?;
    Ok(format!(
        "{} over what {} made: refused by the workspace's record → 3, by the cluster's release records → 3, without pre-flight → 1; \
         reason and way out told, nothing changed",
        other.name, other.present
    ))
}

/// The charts of the other kind than those that run.
struct Other {
    name: &'static str,
    present: &'static str,
    pins: PathBuf,
    /// Where files that they pin lie.
    folder: Option<PathBuf>,
    way_out: &'static str,
}

impl Other {
    fn of(scene: &Scene) -> Result<Self> {
        if scene.platform.charts().are_stand_ins() {
            return Ok(Self {
                name: "the real pins",
                present: "stand-ins",
                pins: scene.lab.checkout().join("VERSIONS.json"),
                folder: None,
                way_out: "to go on with the stand-ins: `blueprint --versions",
            });
        }
        let packed = charts::ensure(scene.lab, scene.report)?;
        Ok(Self {
            name: "stand-ins",
            present: "the real charts",
            pins: packed.versions(),
            folder: Some(packed.folder().to_owned()),
            way_out: "go on with the pins it is made with",
        })
    }

    /// Lays the charts into a workspace's cache, so that nothing but their kind is wrong. The real ones may not be at hand.
    fn put_into(&self, place: &Place) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let cache = place.root.join("infra/helm-charts");
        for entry in fs::read_dir(folder).file("list", folder)? {
            let path = entry.file("list", folder)?.path();
            let to = cache.join(path.file_name().unwrap_or_default());
            fs::copy(&path, &to).file("copy to", &to)?;
        }
        Ok(())
    }

    /// Runs with these pins; answers what was told.
    fn refused(&self, run: Process, code: i32, words: &[&str]) -> Result<String> {
        let (found, stdout, stderr) = run
            .args(["--output", "plain"])
            .env(PINS, &self.pins)
            .captured()?;
        let told = format!("{stdout}{stderr}");
        let absent: Vec<_> = words.iter().filter(|word| !told.contains(**word)).collect();
        let lines: Vec<&str> = told.lines().collect();
        let from = lines.len().saturating_sub(15);
        expect(
            found == Some(code) && absent.is_empty(),
            &format!("exit code {code} and the words {words:?}"),
            format!(
                "{found:?}, without {absent:?}: {}",
                lines[from..].join(" / ")
            ),
        )?;
        Ok(told)
    }
}

fn remove(path: &Path) -> Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path).file("remove", path)
    } else {
        fs::remove_file(path).file("remove", path)
    }
}
