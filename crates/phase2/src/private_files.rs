//! The private files of a workspace: the last to go when all is wiped, so that a wipe that is interrupted before the data is gone has lost nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use blueprint_pipeline::Outcome;
use blueprint_safekeeping::private_file;

use crate::error::Error;
use crate::smoke_row::unexpected;
use crate::workspace::Workspace;

/// Held by the run itself.
const LOCK: &str = "run.lock";

/// Every file of ours, by its name; files beside it whose name goes on after a dot (`.former`, `.1`, the journal's) belong to it.
fn names(workspace: &Workspace) -> Vec<PathBuf> {
    let tls = workspace.wildcard();
    let mut names = vec![
        workspace.installation(),
        workspace.accepted(),
        workspace.openbao_init(),
        workspace.openbao_seal_key(),
        workspace.role_passwords(),
        workspace.system_identifier(),
        workspace.redis_password(),
        workspace.minio_user(),
        workspace.minio_password(),
        workspace.gitlab_snapshot(),
        workspace.rotations(),
    ];
    names.extend(["ca.pem", "ca-key.pem", "cert.pem", "key.pem"].map(|name| tls.join(name)));
    names
}

/// Those that are there, sorted.
fn files(workspace: &Workspace) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for name in names(workspace) {
        let (Some(folder), Some(base)) = (name.parent(), name.file_name()) else {
            continue;
        };
        let base = base.to_string_lossy().into_owned();
        found.extend(listed(folder)?.into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == base || name.starts_with(&format!("{base}."))
        }));
    }
    found.extend(
        listed(&workspace.state())?
            .into_iter()
            .filter(|path| path.file_name().is_some_and(|name| name != LOCK)),
    );
    found.sort();
    Ok(found)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| {
        unexpected(
            &format!("list {}", folder.display()),
            error.to_string(),
            "check the folder's owner and mode",
        )
    };
    match std::fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()).map_err(failed))
            .collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

/// What would go.
pub(crate) fn there(workspace: &Workspace) -> Result<Vec<String>, Error> {
    Ok(files(workspace)?
        .iter()
        .map(|path| path.display().to_string())
        .collect())
}

/// Removes them, and the folders that are empty then. What somebody else put beside them stays.
pub(crate) fn remove(workspace: &Workspace, outcome: &mut Outcome) -> Result<(), Error> {
    for path in files(workspace)? {
        if path.is_dir() {
            std::fs::remove_dir_all(&path).map_err(|error| {
                unexpected(
                    &format!("remove {}", path.display()),
                    error.to_string(),
                    "check its owner and mode",
                )
            })?;
        } else {
            private_file::remove(&path)?;
        }
        outcome.changed(format!("removed {}", path.display()));
    }
    let tls = workspace.wildcard();
    let folders = [
        Some(tls.as_path()),
        tls.parent(),
        Some(&workspace.secrets()),
    ];
    for folder in folders.into_iter().flatten() {
        // One that is not empty holds files that are not ours.
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wipe_takes_our_files_and_their_copies_and_leaves_what_others_put_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        let write = |path: &Path| private_file::write(path, b"x").unwrap();
        let snapshot = workspace.gitlab_snapshot();
        write(&snapshot);
        write(&workspace.secrets().join("gitlab-runtime-secrets.yaml.1"));
        write(&workspace.secrets().join("openbao-init.json.intended"));
        write(&workspace.secrets().join("redis-password.txt.former"));
        write(&workspace.rotations().join("redis"));
        write(&workspace.secrets().join("mine.txt"));
        write(&workspace.wildcard().join("key.pem"));
        write(&workspace.state().join("helm-home/config/x"));
        write(&workspace.state().join(LOCK));
        assert_eq!(there(&workspace).unwrap().len(), 7);

        let mut outcome = Outcome::default();
        remove(&workspace, &mut outcome).unwrap();
        assert_eq!(outcome.changes.len(), 7);
        assert!(there(&workspace).unwrap().is_empty());
        assert!(workspace.secrets().join("mine.txt").is_file());
        assert!(workspace.state().join(LOCK).is_file());
        assert!(!folder.path().join("infra/tls").exists());
        remove(&workspace, &mut outcome).unwrap();
        assert_eq!(outcome.changes.len(), 7, "a second time there is nothing");
    }
}
