//! Secrets stay where they belong, and blueprint stays small.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::needles::{self, Needle};
use super::observer::items;
use super::pipeline::run_blueprint;
use super::sampler::{Sampler, Seen};
use super::{Evidence, Scene, expect};
use crate::error::{Error, FileContext as _, Result};

/// The most resident memory that `blueprint up` may take, in KiB: 60 MB.
const MOST_MEMORY: u64 = 60 * 1000 * 1000 / 1024;

/// Runs blueprint while every process of the machine is looked at; what was seen is added to the scene's.
pub(super) fn watched(scene: &mut Scene, args: &[&str]) -> Result<String> {
    let sampler = Sampler::start();
    let told = run_blueprint(scene, args);
    let seen = sampler.finish()?;
    let all = scene.seen.get_or_insert_with(Seen::default);
    all.command_lines.extend(seen.command_lines);
    all.blueprint_peak = all.blueprint_peak.max(seen.blueprint_peak);
    all.samples += seen.samples;
    let told = told?;
    all.told.push(told.clone());
    Ok(told)
}

/// A place that was searched, and what it holds.
struct Place {
    name: &'static str,
    texts: Vec<(String, String)>,
}

pub(super) fn secrets_stay_secret(scene: &mut Scene) -> Result<Evidence> {
    if scene.seen.is_none() {
        watched(scene, &["up", "--output", "plain"])?;
    }
    watched(scene, &["up", "--output", "json", "-vv"])?;
    let needles = needles::gather(scene)?;
    expect(
        needles.len() >= 40,
        "40 secrets or more to look for",
        needles.len().to_string(),
    )?;
    let watching = argument_lists(scene);
    expect(
        ["blueprint up", "helm "]
            .iter()
            .all(|part| watching.texts.iter().any(|(line, _)| line.contains(part))),
        "blueprint and helm among the watched processes",
        format!("{} argument lists", watching.texts.len()),
    )?;
    let places = [
        watching,
        output(scene),
        world_readable(scene)?,
        objects(scene, "events", &["events", "--all-namespaces"])?,
        objects(scene, "ConfigMaps", &["configmaps", "--all-namespaces"])?,
        objects(scene, "pods", &["pods", "--all-namespaces"])?,
        objects(
            scene,
            "workloads",
            &[
                "deployments,statefulsets,daemonsets,jobs,clusters.postgresql.cnpg.io",
                "--all-namespaces",
            ],
        )?,
        helm_releases(scene)?,
    ];
    let (mut leaks, mut allowed, mut searched) = (Vec::new(), Vec::new(), Vec::new());
    for place in &places {
        searched.push(format!("{} {}", place.texts.len(), place.name));
        for (name, text) in &place.texts {
            for needle in needles.iter().filter(|needle| needle.is_in(text)) {
                let leak = format!(
                    "{} in {}: {}",
                    needle.label,
                    place.name,
                    shown(name, needle)
                );
                match script_of_a_chart(place, name) {
                    Some(said) => allowed.push(said),
                    None => leaks.push(leak),
                }
            }
        }
    }
    expect(
        leaks.is_empty(),
        "no secret outside its Secret or private file",
        leaks.join("; "),
    )?;
    let modes = private_modes(scene)?;
    allowed.sort_unstable();
    allowed.dedup();
    let allowed = if allowed.is_empty() {
        String::new()
    } else {
        format!(
            "; allowed, as arguments inside their pods: {}",
            allowed.join(", ")
        )
    };
    Ok(format!(
        "none of {} secrets in {}; {modes}{allowed}",
        needles.len(),
        searched.join(", ")
    ))
}

pub(super) fn memory(scene: &mut Scene) -> Result<Evidence> {
    if scene.seen.is_none() {
        watched(scene, &["up", "--output", "plain"])?;
    }
    let seen = scene.seen.as_ref();
    let peak = seen.map_or(0, |seen| seen.blueprint_peak);
    expect(
        peak > 0 && peak < MOST_MEMORY,
        "a peak of resident memory under 60 MB",
        format!(
            "{:.1} MB at most, {} looks",
            mega_bytes(peak),
            seen.map_or(0, |seen| seen.samples)
        ),
    )
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a size for people, far below 2^53"
)]
fn mega_bytes(kibibytes: u64) -> f64 {
    (kibibytes * 1024) as f64 / 1e6
}

fn argument_lists(scene: &Scene) -> Place {
    let lines = scene.seen.iter().flat_map(|seen| &seen.command_lines);
    Place {
        name: "argument lists",
        texts: lines.map(|line| (line.clone(), line.clone())).collect(),
    }
}

/// Scripts of charts, not of blueprint, that give a secret as an argument; only root on the node and the pod itself see it. Each by its words,
/// and what is said of it.
const SCRIPTS_OF_CHARTS: [([&str; 2], &str); 2] = [
    (
        ["redis-server", "--requirepass"],
        "the redis chart's start script gives Redis' own server its password",
    ),
    // gitlab's charts/registry/values.yaml, init.script. It runs for a moment: most runs do not see it.
    (
        ["sed", "s@HTTP_SECRET@"],
        "the gitlab chart's registry init script gives sed the HTTP secret",
    ),
];

/// What is said of it, if a chart's own script is at work.
fn script_of_a_chart(place: &Place, line: &str) -> Option<&'static str> {
    SCRIPTS_OF_CHARTS
        .iter()
        .find(|(words, _)| {
            place.name == "argument lists" && words.iter().all(|word| line.contains(word))
        })
        .map(|(_, said)| *said)
}

/// What blueprint said as plain lines and as JSON.
fn output(scene: &Scene) -> Place {
    let told = scene.seen.iter().flat_map(|seen| &seen.told);
    Place {
        name: "outputs",
        texts: told
            .map(|text| ("what `up` told".to_owned(), text.clone()))
            .collect(),
    }
}

fn objects(scene: &Scene, name: &'static str, what: &[&str]) -> Result<Place> {
    let list = scene.objects(what)?;
    let texts = items(&list)
        .into_iter()
        .map(|object| {
            let meta = &object["metadata"];
            (
                format!("{}/{}", meta["namespace"], meta["name"]),
                object.to_string(),
            )
        })
        .collect();
    Ok(Place { name, texts })
}

/// Helm keeps values and manifests of every revision: base64 of the API, base64 of its own, gzip.
fn helm_releases(scene: &Scene) -> Result<Place> {
    let list = scene.objects(&["secrets", "--all-namespaces", "--selector", "owner=helm"])?;
    let mut texts = Vec::new();
    for release in items(&list) {
        let name = release["metadata"]["name"].to_string();
        let text = release_text(&release["data"]["release"])
            .map_err(|error| Error::content(format!("Secret {name}"), error))?;
        texts.push((name, text));
    }
    Ok(Place {
        name: "helm records",
        texts,
    })
}

fn release_text(data: &Value) -> Result<String, Box<dyn std::error::Error>> {
    let outer = STANDARD.decode(data.as_str().unwrap_or_default())?;
    let inner = STANDARD.decode(outer)?;
    let mut text = String::new();
    GzDecoder::new(inner.as_slice()).read_to_string(&mut text)?;
    Ok(text)
}

/// Blueprint's logs, and every file below `infra` that others may read; the databases' own files are theirs.
fn world_readable(scene: &Scene) -> Result<Place> {
    let infra = scene.lab.checkout().join("infra");
    let mut texts = Vec::new();
    walk(&infra, &infra.join("storage"), &mut |path, mode| {
        let log = path.extension().is_some_and(|ending| ending == "log");
        if mode & 0o004 != 0 || log {
            texts.push((path.display().to_string(), text_of(path)?));
        }
        Ok(())
    })?;
    Ok(Place {
        name: "logs and readable files",
        texts,
    })
}

fn text_of(path: &Path) -> Result<String> {
    let bytes = fs::read(path).file("read", path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Nobody else may even list what is private.
fn private_modes(scene: &Scene) -> Result<String> {
    let infra = scene.lab.checkout().join("infra");
    let (mut files, mut open) = (0, Vec::new());
    for name in ["secrets", "tls", "phase2/state"] {
        let folder = infra.join(name);
        let mode = fs::metadata(&folder)
            .file("read", &folder)?
            .permissions()
            .mode()
            & 0o777;
        if mode != 0o700 {
            open.push(format!("{} {mode:04o}", folder.display()));
        }
        walk(&folder, Path::new(""), &mut |path, mode| {
            files += 1;
            if mode & 0o077 != 0 {
                open.push(format!("{} {mode:04o}", path.display()));
            }
            Ok(())
        })?;
    }
    expect(
        open.is_empty(),
        "private files 0600 in folders 0700",
        if open.is_empty() {
            format!("{files} private files closed to others")
        } else {
            open.join(", ")
        },
    )
}

/// Every file below `folder` with its mode, but for `leave_out`.
fn walk(
    folder: &Path,
    leave_out: &Path,
    visit: &mut impl FnMut(&Path, u32) -> Result<()>,
) -> Result<()> {
    for entry in fs::read_dir(folder).file("list", folder)? {
        let path = entry.file("list", folder)?.path();
        let meta = fs::symlink_metadata(&path).file("read", &path)?;
        if path == leave_out {
            continue;
        }
        if meta.is_dir() {
            walk(&path, leave_out, visit)?;
        } else if meta.is_file() {
            visit(&path, meta.permissions().mode() & 0o777)?;
        }
    }
    Ok(())
}

/// Where something was found, without the secret: an argument list is cut before its arguments.
fn shown(name: &str, needle: &Needle) -> String {
    let name = if needle.is_in(name) {
        name.split(' ').next().unwrap_or_default()
    } else {
        name
    };
    name.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn a_helm_record_is_unpacked() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b"{\"config\":{}}").unwrap();
        let record = STANDARD.encode(STANDARD.encode(gzip.finish().unwrap()));
        assert_eq!(
            release_text(&Value::String(record)).unwrap(),
            "{\"config\":{}}"
        );
        assert!(release_text(&Value::Null).is_err());
    }
}
