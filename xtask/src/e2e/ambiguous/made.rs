//! A made-up workspace on the checkout's storage folder, which is emptied for it and put back afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::Scene;
use super::super::identity::digest;
use super::super::refusals::Place;
use crate::error::{FileContext as _, Result};

/// System identifier of the databases made up here.
const DATABASE: u64 = 42;
/// In the storage root.
pub(super) const MARKER: &str = ".blueprint-installation.json";

/// A workspace without secrets and an empty storage root; the checkout's own content is put back when dropped.
pub(super) struct Made {
    pub(super) place: Place,
    pub(super) storage: PathBuf,
    aside: PathBuf,
}

impl Made {
    pub(super) fn new(scene: &Scene) -> Result<Self> {
        let place = Place::copy_of(scene)?;
        for folder in ["infra/secrets", "infra/tls"] {
            let folder = place.root.join(folder);
            if folder.exists() {
                fs::remove_dir_all(&folder).file("remove", &folder)?;
            }
        }
        let storage = scene.lab.checkout().join("infra/storage");
        let aside = scene.lab.checkout().join("infra/storage-aside");
        fs::create_dir_all(&storage).file("create", &storage)?;
        fs::create_dir_all(&aside).file("create", &aside)?;
        let made = Self {
            place,
            storage,
            aside,
        };
        // The folder itself is mounted into the nodes and must stay.
        move_content(&made.storage, &made.aside)?;
        Ok(made)
    }

    pub(super) fn on_storage(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write(&self.storage.join(name), bytes)
    }

    pub(super) fn secret(&self, name: &str, text: &str) -> Result<()> {
        write(
            &self.place.root.join("infra/secrets").join(name),
            text.as_bytes(),
        )
    }

    /// What makes a PGDATA whole.
    pub(super) fn whole_database(&self) -> Result<()> {
        let mut control = vec![0; 8192];
        control[..8].copy_from_slice(&DATABASE.to_le_bytes());
        self.on_storage("cnpg/pgdata/PG_VERSION", b"17\n")?;
        self.on_storage("cnpg/pgdata/global/pg_control", &control)?;
        self.on_storage("cnpg/pgdata/base/4/PG_VERSION", b"17\n")
    }

    /// The marker of an installation, and the id of this workspace.
    pub(super) fn marked(&self, installation: &str, remembered: &[&str]) -> Result<()> {
        let mut marker = json!({"installation": installation, "since": "2026-11-30T10:00:00Z"});
        for fact in remembered {
            marker[*fact] = DATABASE.to_string().into();
        }
        self.on_storage(MARKER, marker.to_string().as_bytes())?;
        self.secret("installation-id.txt", "ours\n")
    }

    /// Names in a folder of the storage root.
    pub(super) fn folders(&self, name: &str) -> Result<Vec<String>> {
        let folder = self.storage.join(name);
        Ok(fs::read_dir(&folder)
            .file("list", &folder)?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect())
    }

    /// Every file of the storage and of the workspace, but for helm's and the lock's.
    pub(super) fn digests(&self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        for root in [&self.storage, &self.place.root] {
            collect(root, &mut found)?;
        }
        found.retain(|name, _| !name.contains("/infra/phase2/"));
        Ok(found)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // What cannot be put back stays beside it, and the next `up` refuses what does not fit.
        if let Ok(entries) = fs::read_dir(&self.storage) {
            for entry in entries.flatten() {
                let path = entry.path();
                let _ = if path.is_dir() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                };
            }
        }
        let _ = move_content(&self.aside, &self.storage);
        let _ = fs::remove_dir(&self.aside);
    }
}

fn move_content(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).file("list", from)? {
        let entry = entry.file("list", from)?;
        fs::rename(entry.path(), to.join(entry.file_name())).file("move", entry.path())?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .file("create", folder)?;
    }
    let mut file = fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .file("write", path)?;
    std::io::Write::write_all(&mut file, bytes).file("write", path)
}

fn collect(folder: &Path, found: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(folder).file("list", folder)? {
        let path = entry.file("list", folder)?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else {
            let bytes = fs::read(&path).file("read", &path)?;
            found.insert(path.display().to_string(), digest(&bytes));
        }
    }
    Ok(())
}

/// Whole, and of no server.
pub(super) fn init_file() -> String {
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    json!({"unseal_keys_b64": [key, key, key], "unseal_shares": 3, "unseal_threshold": 3, "root_token": "s.none"}).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::super::identity::differences;
    use super::*;

    #[test]
    fn a_changed_and_a_lost_file_show_in_the_digests() {
        let home = tempfile::tempdir().unwrap();
        write(&home.path().join("a/x"), b"1").unwrap();
        write(&home.path().join("y"), b"1").unwrap();
        let take = || {
            let mut found = BTreeMap::new();
            collect(home.path(), &mut found).unwrap();
            found
        };
        let before = take();
        write(&home.path().join("a/x"), b"2").unwrap();
        fs::remove_file(home.path().join("y")).unwrap();
        assert_eq!(differences(&before, &take()).len(), 2);
    }
}
