//! A fresh installation beside the checkout's own, which is moved aside meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::identity::{self, digest};
use super::recreation::delete_cluster;
use super::{Evidence, Scene, expect};
use crate::error::{FileContext as _, Result};
use crate::lab;

/// Folders of the checkout that make an installation.
const INSTALLATION: [&str; 3] = ["infra/storage", "infra/secrets", "infra/tls"];

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

/// Tries something on a new cluster with neither data nor credentials. Leaves no cluster behind.
pub(super) fn installation(
    scene: &Scene,
    attempt: impl FnOnce(&Scene) -> Result<Evidence>,
) -> Result<Evidence> {
    delete_cluster(scene)?;
    let aside = Aside::put(scene)?;
    let result = cluster(scene).and_then(|()| attempt(scene));
    delete_cluster(scene)?;
    drop(aside);
    result
}

/// Drops the fresh installation's own data and credentials. Its cluster must be gone.
pub(super) fn forget(scene: &Scene) -> Result<()> {
    for folder in INSTALLATION {
        let folder = scene.lab.checkout().join(folder);
        if folder.exists() {
            fs::remove_dir_all(&folder).file("remove", &folder)?;
        }
    }
    Ok(())
}

/// A new cluster on the data and the credentials that are there.
pub(super) fn cluster(scene: &Scene) -> Result<()> {
    lab::up(scene.lab, Some(scene.platform.program()), scene.report).map(drop)
}

/// The private files there are, with digests; the journal's own come and go.
pub(super) fn private_files(scene: &Scene) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for folder in ["infra/secrets", "infra/tls/wildcard"] {
        let folder = scene.lab.checkout().join(folder);
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.file("list", &folder)?.path();
            let name = path.display().to_string();
            let unfinished = path.extension().is_some_and(|end| end == "new");
            if !unfinished && !name.contains("openbao-init.json.") && !name.contains("snapshot") {
                let bytes = fs::read(&path).file("read", &path)?;
                found.insert(name, digest(&bytes));
            }
        }
    }
    Ok(found)
}

/// Every private file that once was there still is, with the same bytes.
pub(super) fn all_kept(scene: &Scene, kept: &BTreeMap<String, String>) -> Result<Evidence> {
    let mut lost = identity::differences(kept, &private_files(scene)?);
    lost.retain(|difference| !difference.ends_with(" is new"));
    expect(
        lost.is_empty(),
        "every private file as at the kill",
        lost.join("; "),
    )
}
