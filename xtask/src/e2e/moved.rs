//! An installation carried away: its private files through an encrypted archive into a workspace that has none, a new cluster on the old storage, and everybody is who
//! they were.

use std::fs;
use std::path::{Path, PathBuf};

use super::identity::{self, Identity};
use super::pipeline::run_blueprint;
use super::recreation::delete_cluster;
use super::{Evidence, Scene, expect};
use crate::error::{FileContext as _, Result};
use crate::lab;

/// What the archive carries.
const CARRIED: [&str; 3] = [
    "infra/secrets",
    "infra/tls",
    "infra/phase2/state/charts.json",
];
const PASSPHRASE: &str = "the lab's four random words";

pub(super) fn moved(scene: &mut Scene) -> Result<Evidence> {
    identity::mark(scene)?;
    let before = Identity::take(scene)?;
    let scratch = scene.lab.scratch()?;
    let passphrase = scratch.path().join("passphrase");
    fs::write(&passphrase, PASSPHRASE).file("write", &passphrase)?;
    let archive = scratch.path().join("carried.age");
    let with = |words: &[&str]| {
        let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        words.push(archive.display().to_string());
        words.push("--passphrase-file".to_owned());
        words.push(passphrase.display().to_string());
        words
    };
    blueprint(scene, &with(&["secrets", "export"]))?;
    let refused = import_elsewhere(
        scene,
        &scratch.path().join("other"),
        &with(&["secrets", "import"]),
    )?;
    expect(
        refused == Some(1),
        "a workspace with files of its own to be refused",
        format!("{refused:?}"),
    )?;
    delete_cluster(scene)?;

    // The checkout becomes the new, empty workspace: its storage stays, its private files go. They come back if the import fails.
    let aside = scratch.path().join("aside");
    let kept = set_aside(scene.lab.checkout(), &aside)?;
    if let Err(error) = blueprint(scene, &with(&["secrets", "import"])) {
        put_back(&kept)?;
        return Err(error);
    }
    let differing = differences(scene.lab.checkout(), &aside)?;
    if !differing.is_empty() {
        put_back(&kept)?;
        return expect(false, "every private file as it was", differing.join("; "));
    }

    lab::up(scene.lab, Some(scene.platform.program()), scene.report)?;
    run_blueprint(scene, &["up", "--output", "plain"])?;
    run_blueprint(scene, &["smoke"])?;
    let after = Identity::take(scene)?;
    let lost = before.differences(&after);
    expect(
        lost.is_empty() && after.markers_hold(),
        "every marker and identity as before",
        if lost.is_empty() {
            format!(
                "5 markers and {} identities the same after export, import and a new cluster on the old storage",
                after.len() - 5
            )
        } else {
            lost.join("; ")
        },
    )
}

fn blueprint(scene: &Scene, words: &[String]) -> Result<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run_blueprint(scene, &words)
}

/// The exit code of an import into another workspace that has a private file of its own.
fn import_elsewhere(scene: &Scene, folder: &Path, words: &[String]) -> Result<Option<i32>> {
    let secrets = folder.join("infra/secrets");
    fs::create_dir_all(&secrets).file("create", &secrets)?;
    let file = secrets.join("redis-password.txt");
    fs::write(&file, "another installation's").file("write", &file)?;
    let workspace = ["--workspace".to_owned(), folder.display().to_string()];
    let import = scene.platform.blueprint().args(words).args(&workspace);
    let (code, _, _) = import.captured()?;
    Ok(code)
}

/// Moves what is carried out of the checkout; answers from where to where.
fn set_aside(checkout: &Path, aside: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut moved = Vec::new();
    for name in CARRIED {
        let (from, to) = (checkout.join(name), aside.join(name));
        if from.exists() {
            let parent = to.parent().unwrap_or(aside);
            fs::create_dir_all(parent).file("create", parent)?;
            fs::rename(&from, &to).file("move away", &from)?;
            moved.push((from, to));
        }
    }
    Ok(moved)
}

fn put_back(moved: &[(PathBuf, PathBuf)]) -> Result<()> {
    for (home, aside) in moved {
        if home.is_dir() {
            fs::remove_dir_all(home).file("remove", home)?;
        }
        fs::rename(aside, home).file("move back", home)?;
    }
    Ok(())
}

/// Files that are not the same bytes in both, or only in one.
fn differences(now: &Path, then: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in CARRIED {
        let (here, there) = (files(now, &now.join(name))?, files(then, &then.join(name))?);
        found.extend(
            here.iter()
                .filter(|file| !there.contains(file))
                .chain(there.iter().filter(|file| !here.contains(file)))
                .map(|(path, _)| path.display().to_string()),
        );
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Paths below `root` with their bytes.
fn files(root: &Path, path: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    if path.is_dir() {
        let mut found = Vec::new();
        for entry in fs::read_dir(path).file("list", path)? {
            found.extend(files(root, &entry.file("list", path)?.path())?);
        }
        return Ok(found);
    }
    if !path.exists() {
        return Ok(Vec::new());
    }
    let name = path.strip_prefix(root).unwrap_or(path).to_owned();
    Ok(vec![(name, fs::read(path).file("read", path)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_and_a_changed_file_are_seen_and_what_was_moved_comes_back() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |root: &Path, name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["infra/secrets/a", "infra/secrets/b/c", "infra/tls/d"] {
            write(here.path(), name, "x");
        }
        let moved = set_aside(here.path(), there.path()).unwrap();
        assert!(!here.path().join("infra/secrets").exists());
        write(here.path(), "infra/secrets/a", "x");
        write(here.path(), "infra/tls/d", "y");
        assert_eq!(
            differences(here.path(), there.path()).unwrap(),
            ["infra/secrets/b/c", "infra/tls/d"]
        );
        put_back(&moved).unwrap();
        assert_eq!(
            files(here.path(), &here.path().join("infra"))
                .unwrap()
                .len(),
            3
        );
    }
}
