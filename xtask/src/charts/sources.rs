//! Files out of the folders of Go modules, whose versions must be the pinned ones.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext as _, Result};
use crate::go_binaries::{GoBinaries, required_version};
use crate::lab_home::LabHome;

use super::pins_file::PinsFile;
use super::recipe::{Manifest, Recipe};

pub(super) struct Sources<'a> {
    lab: &'a LabHome,
    go: &'a GoBinaries,
}

/// The version that `lab/go/<module>/go.mod` requires of a module, such as `v1.5.0`.
fn version(lab: &LabHome, module: &str, source: &str) -> Result<String> {
    let path = lab.recipes().join("go").join(module).join("go.mod");
    let text = fs::read_to_string(&path).file("read", &path)?;
    match required_version(&text, source) {
        version if version.is_empty() => Err(Error::content(
            path.display().to_string(),
            format!("it does not require {source}"),
        )),
        version => Ok(version),
    }
}

/// A version that stands in two places must be the same in both.
pub(super) fn check_versions(lab: &LabHome, recipe: &Recipe, pins: &PinsFile) -> Result<()> {
    for (name, manifest) in &recipe.manifests {
        let module = version(lab, &manifest.module, &manifest.source)?;
        let pinned = pins.manifest(name)?.version;
        agree(
            &manifest.module,
            &manifest.source,
            &module,
            &format!("manifests.{name}.version"),
            &pinned,
        )?;
    }
    for part in recipe.charts.values().flatten() {
        let module = version(lab, &part.module, &part.source)?;
        let pinned = pins.image(&part.image)?.tag;
        agree(
            &part.module,
            &part.source,
            &module,
            &format!("images.{}.tag", part.image),
            &pinned,
        )?;
    }
    Ok(())
}

/// Go writes `v1.30.0` where an image's tag may be `1.30.0`.
fn agree(module: &str, source: &str, version: &str, place: &str, pinned: &str) -> Result<()> {
    let bare = |text: &str| text.trim_start_matches('v').to_owned();
    if bare(version) == bare(pinned) {
        return Ok(());
    }
    Err(Error::unmet(
        format!(
            "lab/go/{module}/go.mod requires {source} {version}, VERSIONS.json has {pinned} in {place}"
        ),
        format!(
            "bring both to one version: `go get {source}@VERSION` in lab/go/{module}, or the pin in VERSIONS.json"
        ),
    ))
}

impl<'a> Sources<'a> {
    pub(super) fn new(lab: &'a LabHome, go: &'a GoBinaries) -> Self {
        Self { lab, go }
    }

    /// The module's version without its v.
    pub(super) fn version(&self, module: &str, source: &str) -> Result<String> {
        let version = version(self.lab, module, source)?;
        Ok(version.trim_start_matches('v').to_owned())
    }

    /// The module's folder, fetched when it is not there.
    pub(super) fn folder(&self, module: &str, source: &str) -> Result<PathBuf> {
        self.go.source(module, source)
    }

    /// A manifest put together as upstream does it.
    pub(super) fn manifest(&self, manifest: &Manifest) -> Result<Vec<u8>> {
        let folder = self
            .folder(&manifest.module, &manifest.source)?
            .join(&manifest.folder);
        let mut names = match &manifest.only {
            Some(name) => vec![folder.join(name)],
            None => yaml_files(&folder)?,
        };
        names.sort();
        let mut text = Vec::new();
        for name in names {
            if manifest.separated {
                text.extend_from_slice(b"---\n");
            }
            text.extend(fs::read(&name).file("read", &name)?);
        }
        Ok(text)
    }
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)
        .file("list", folder)?
        .collect::<std::io::Result<Vec<_>>>()
        .file("list", folder)?;
    Ok(entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_differs_from_its_pin_is_named_in_both_places() {
        agree(
            "cnpg",
            "x/cnpg",
            "v1.30.0",
            "images.cnpg-operator.tag",
            "1.30.0",
        )
        .unwrap();
        let error = agree(
            "gateway-api",
            "x/y",
            "v1.5.1",
            "manifests.a.version",
            "v1.5.0",
        )
        .unwrap_err()
        .to_string();
        for part in [
            "lab/go/gateway-api/go.mod",
            "v1.5.1",
            "v1.5.0",
            "manifests.a.version",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
}
