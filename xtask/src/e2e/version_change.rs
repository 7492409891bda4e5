//! One `chart_version` edited: that release changes and nothing else, there and back.

use std::fs;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::pipeline::{Fingerprint, run_blueprint};
use super::{Evidence, Scene, expect};
use crate::error::{Error, FileContext as _, Result};

/// A part of every name that belongs to the release, its pod and its tarball.
const RELEASE: &str = "gitlab-runner";

/// The edited pin; the file and the cache are put back however the check ends.
struct Edited {
    versions: PathBuf,
    before: String,
    tarball: PathBuf,
    digest: String,
    version: String,
    old: String,
}

impl Drop for Edited {
    fn drop(&mut self) {
        // Nothing better can be done here than to try both.
        let _ = replace(&self.versions, &self.before);
        let _ = fs::remove_file(&self.tarball);
    }
}

pub(super) fn one_release_changes(scene: &mut Scene) -> Result<Evidence> {
    let edited = prepare(scene)?;
    let begun = Fingerprint::take(scene)?;

    edited.pin(&edited.digest)?;
    let missing = refused(scene, &edited, "is not in the cache")?;
    let bytes = changed_chart(scene, &edited)?;
    fs::write(&edited.tarball, &bytes).file("write", &edited.tarball)?;
    edited.pin(&"0".repeat(64))?;
    let mismatched = refused(scene, &edited, "does not match its pin")?;
    untouched(&begun, &Fingerprint::take(scene)?)?;

    edited.pin(&digest(&bytes))?;
    let forth = up(scene, &edited.version);
    // Back also when the way forth failed.
    replace(&edited.versions, &edited.before)?;
    let back = up(scene, &edited.old);
    let (forth, back) = (forth?, back?);
    Ok(format!(
        "tarball missing → {missing}, other digest → {mismatched}, each naming `blueprint charts fetch`, nothing changed; \
         {} → {}: {forth}; back: {back}",
        edited.old, edited.version
    ))
}

fn prepare(scene: &Scene) -> Result<Edited> {
    let versions = scene.platform.versions();
    let before = fs::read_to_string(&versions).file("read", &versions)?;
    let pins: Value = serde_json::from_str(&before)
        .map_err(|error| Error::content(versions.display().to_string(), error))?;
    let pin = &pins["helm_repositories"]["runner"];
    let (Some(old), Some(_)) = (pin["chart_version"].as_str(), pin["sha256"].as_str()) else {
        return Err(Error::content(
            versions.display().to_string(),
            "no chart_version and sha256 of `runner`",
        ));
    };
    let version = next_patch(old)?;
    Ok(Edited {
        tarball: tarball(scene, &version),
        old: old.to_owned(),
        // Of no file yet: it is pinned before the chart is made.
        digest: digest(version.as_bytes()),
        version,
        versions,
        before,
    })
}

impl Edited {
    /// Writes the new version with this digest; the rest of the file stays as it is.
    fn pin(&self, digest: &str) -> Result<()> {
        let mut pins: Value = serde_json::from_str(&self.before)
            .map_err(|error| Error::content(self.versions.display().to_string(), error))?;
        let pin = &mut pins["helm_repositories"]["runner"];
        pin["chart_version"] = self.version.clone().into();
        pin["sha256"] = digest.into();
        replace(&self.versions, &format!("{pins:#}\n"))
    }
}

/// `0.71.1` of `0.71.0`; build metadata stays.
fn next_patch(version: &str) -> Result<String> {
    let (numbers, build) = match version.split_once('+') {
        Some((numbers, build)) => (numbers, format!("+{build}")),
        None => (version, String::new()),
    };
    numbers
        .rsplit_once('.')
        .and_then(|(before, patch)| {
            Some(format!(
                "{before}.{}{build}",
                patch.parse::<u32>().ok()? + 1
            ))
        })
        .ok_or_else(|| Error::content("the version of the runner's chart", version))
}

fn tarball(scene: &Scene, version: &str) -> PathBuf {
    scene
        .lab
        .checkout()
        .join(format!("infra/helm-charts/{RELEASE}-{version}.tgz"))
}

/// The cached chart with another version in its Chart.yaml.
fn changed_chart(scene: &Scene, edited: &Edited) -> Result<Vec<u8>> {
    let path = tarball(scene, &edited.old);
    let bytes = fs::read(&path).file("read", &path)?;
    repacked(&bytes, &edited.old, &edited.version).file("repack", &path)
}

fn repacked(chart: &[u8], old: &str, new: &str) -> std::io::Result<Vec<u8>> {
    let mut from = tar::Archive::new(GzDecoder::new(chart));
    let mut to = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for entry in from.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let mut header = entry.header().clone();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content)?;
        if path.file_name().is_some_and(|name| name == "Chart.yaml")
            && path.components().count() == 2
        {
            let text = String::from_utf8_lossy(&content)
                .replace(&format!("version: {old}\n"), &format!("version: {new}\n"));
            content = text.into_bytes();
        }
        header.set_size(content.len() as u64);
        to.append_data(&mut header, path, content.as_slice())?;
    }
    to.into_inner()?.finish()
}

/// Runs `up`, which must end in pre-flight with the command that mends it; its exit code.
fn refused(scene: &Scene, edited: &Edited, why: &str) -> Result<i32> {
    let (code, stdout, stderr) = scene
        .platform
        .blueprint()
        .args(["up", "--output", "plain"])
        .captured()?;
    let told = format!("{stdout}{stderr}");
    let parts = [why, RELEASE, &edited.version, "blueprint charts fetch"];
    let absent: Vec<_> = parts.iter().filter(|part| !told.contains(**part)).collect();
    expect(
        code == Some(3) && absent.is_empty(),
        &format!("exit code 3 and the words {parts:?}"),
        format!("{code:?}, without {absent:?}"),
    )?;
    Ok(3)
}

fn untouched(before: &Fingerprint, after: &Fingerprint) -> Result<()> {
    let changes: Vec<_> = before
        .differences(after)
        .into_iter()
        // The chart that this check laid into the cache.
        .filter(|change| !change.contains("helm-charts"))
        .collect();
    expect(
        changes.is_empty(),
        "nothing changed by a refused run",
        changes.join("; "),
    )?;
    Ok(())
}

/// Runs `up`; only what is the release's may have changed, and it must run the version now.
fn up(scene: &Scene, version: &str) -> Result<String> {
    let before = Fingerprint::take(scene)?;
    run_blueprint(scene, &["up", "--output", "plain"])?;
    let changes = before.differences(&Fingerprint::take(scene)?);
    let (own, others): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .partition(|change| change.contains(RELEASE));
    expect(
        others.is_empty(),
        &format!("no change but {RELEASE}'s"),
        others.join("; "),
    )?;
    let listing = scene
        .platform
        .command("helm")
        .args([
            "list",
            "--all-namespaces",
            "--filter",
            RELEASE,
            "--output",
            "json",
        ])
        .output()?;
    let releases: Value =
        serde_json::from_str(&listing).map_err(|error| Error::content("helm list", error))?;
    let release = &releases[0];
    expect(
        release["chart"] == format!("{RELEASE}-{version}") && release["status"] == "deployed",
        &format!("{RELEASE}-{version} deployed"),
        format!(
            "{} {} revision {}, {} changes, all of them {RELEASE}'s",
            release["chart"],
            release["status"],
            release["revision"],
            own.len()
        ),
    )
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            // A String takes everything.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Whole or not at all.
fn replace(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("json.new");
    fs::write(&beside, text).file("write", &beside)?;
    fs::rename(&beside, path).file("replace", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_gets_another_version_and_keeps_the_rest() {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, text) in [
            (
                "x/Chart.yaml",
                "name: x\nversion: 1.0.0\nappVersion: 1.0.0\n",
            ),
            ("x/values.yaml", "version: 1.0.0\n"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive
                .append_data(&mut header, name, text.as_bytes())
                .unwrap();
        }
        let chart = archive.into_inner().unwrap().finish().unwrap();
        let changed = repacked(&chart, "1.0.0", "1.0.1").unwrap();
        let mut found = Vec::new();
        let mut archive = tar::Archive::new(GzDecoder::new(changed.as_slice()));
        for entry in archive.entries().unwrap() {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut entry.unwrap(), &mut text).unwrap();
            found.push(text);
        }
        assert_eq!(
            found,
            [
                "name: x\nversion: 1.0.1\nappVersion: 1.0.0\n",
                "version: 1.0.0\n"
            ]
        );
    }

    #[test]
    fn the_next_patch_is_a_semantic_version() {
        assert_eq!(next_patch("0.71.9").unwrap(), "0.71.10");
        assert_eq!(next_patch("0.71.9+standin").unwrap(), "0.71.10+standin");
        assert!(next_patch("1.0.x").is_err());
    }

    #[test]
    fn however_it_ends_the_pins_are_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let versions = folder.path().join("VERSIONS.json");
        let tarball = folder.path().join("new.tgz");
        fs::write(&tarball, "x").unwrap();
        let edited = Edited {
            versions: versions.clone(),
            before: r#"{"helm_repositories":{"runner":{"chart_version":"1"}}}"#.to_owned(),
            tarball: tarball.clone(),
            digest: String::new(),
            version: "2".to_owned(),
            old: "1".to_owned(),
        };
        edited.pin("abc").unwrap();
        let text = fs::read_to_string(&versions).unwrap();
        assert!(text.contains("\"chart_version\": \"2\"") && text.contains("abc"));
        drop(edited);
        let text = fs::read_to_string(&versions).unwrap();
        assert_eq!(
            text,
            r#"{"helm_repositories":{"runner":{"chart_version":"1"}}}"#
        );
        assert!(!tarball.exists());
    }
}
