//! `cargo xtask lab charts`: the charts and manifests of a lab that cannot have upstream's. What Go modules hold is real
//! and comes out of them at build time; the rest are the stand-in charts of `lab/charts`. A VERSIONS.json beside the
//! packed files pins them, so that blueprint takes them as it takes any other.

#[cfg(test)]
mod house_rules;
mod pack;
mod pins_file;
mod recipe;
mod sources;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::cache::Key;
use crate::error::{Error, FileContext as _, Result};
use crate::go_binaries::GoBinaries;
use crate::lab_home::LabHome;
use crate::report::Reporter;

use self::pack::Chart;
use self::pins_file::PinsFile;
use self::recipe::Recipe;
use self::sources::Sources;

/// Changed whenever the same inputs are packed into other bytes.
const FORM: &str = "1";

/// A folder with the packed files and their VERSIONS.json.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    folder: PathBuf,
}

impl Packed {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The archive of a chart.
    pub(crate) fn chart(&self, name: &str) -> Result<PathBuf> {
        let start = format!("{name}-");
        let archives = fs::read_dir(&self.folder).file("list", &self.folder)?;
        archives
            .flatten()
            .find(|entry| {
                let file = entry.file_name();
                let rest = file.to_str().and_then(|file| file.strip_prefix(&start));
                // `gitlab-` begins `gitlab-runner-…` as well; a version begins with a digit.
                rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            })
            .map(|entry| entry.path())
            .ok_or_else(|| {
                Error::content(
                    self.folder.display().to_string(),
                    format!("no {start}….tgz"),
                )
            })
    }

    /// The pins of what was packed.
    pub(crate) fn versions(&self) -> PathBuf {
        self.folder.join("VERSIONS.json")
    }
}

/// The packed charts, packed now when something they are made of changed.
pub(crate) fn ensure(lab: &LabHome, report: &Reporter) -> Result<Packed> {
    let recipe = Recipe::read(lab)?;
    let mut pins = PinsFile::read(lab)?;
    sources::check_versions(lab, &recipe, &pins)?;
    let folder = lab.path().join("charts").join(key(lab, &recipe, &pins)?);
    if folder.is_dir() {
        report.say(format!("charts are packed: {}", folder.display()));
        return Ok(Packed { folder });
    }
    let go = GoBinaries::open(lab)?;
    let sources = Sources::new(lab, &go);
    let scratch = lab.scratch()?;
    for (name, manifest) in &recipe.manifests {
        let text = sources.manifest(manifest)?;
        let pin = pins.manifest(name)?;
        let digest = digest(&text);
        let file = if digest == pin.sha256 {
            report.say(format!(
                "{name} {}: out of its Go module, byte for byte as pinned",
                pin.version
            ));
            pin.file
        } else {
            report.say(format!(
                "{name} {}: out of its Go module, but not the pinned bytes: a variant of the lab",
                pin.version
            ));
            pins.make_variant(name, &digest)?
        };
        write(&scratch.path().join(file), &text)?;
    }
    let images = pins.images();
    for (key, pin) in pins.charts()? {
        let chart = Chart::gather(lab, &recipe, &sources, &images, (&key, &pin))?;
        let bytes = tarball::of(&pin.chart, chart.files())?;
        let stand_in = pins.make_stand_in(&key, &digest(&bytes))?;
        write(&scratch.path().join(&stand_in.file), &bytes)?;
        report.say(format!(
            "chart {} {}: STAND-IN, {} files, {} KiB",
            pin.chart,
            stand_in.version,
            chart.files().len(),
            bytes.len().div_ceil(1024)
        ));
    }
    write(
        &scratch.path().join("VERSIONS.json"),
        pins.text().as_bytes(),
    )?;
    put_in_place(&scratch.keep(), &folder)?;
    report.say(format!("packed into {}", folder.display()));
    Ok(Packed { folder })
}

/// Of everything the packed files are made of.
fn key(lab: &LabHome, recipe: &Recipe, pins: &PinsFile) -> Result<String> {
    let mut key = Key::new("charts")
        .text(FORM)
        .text(pins.text())
        .file(&Recipe::path(lab))?
        .folder(&Chart::root(lab))?;
    for module in recipe.modules() {
        let folder = lab.recipes().join("go").join(module);
        key = key
            .file(&folder.join("go.mod"))?
            .file(&folder.join("go.sum"))?;
    }
    for (name, _) in pins.charts()? {
        let schema = Chart::reference_schema(lab, &name);
        if schema.is_file() {
            key = key.text(&name).file(&schema)?;
        }
    }
    Ok(key.finish())
}

fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).file("write", path)
}

/// Another run may have packed the same meanwhile: then its result, the same bytes, stays.
fn put_in_place(packed: &Path, folder: &Path) -> Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).file("create", parent)?;
    }
    match fs::rename(packed, folder) {
        Err(_) if folder.is_dir() => fs::remove_dir_all(packed).file("remove", packed),
        renamed => renamed.file("put in place", folder),
    }
}
