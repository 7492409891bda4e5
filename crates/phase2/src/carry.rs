//! An installation carried to another machine: which of the workspace's files go into the archive, and how they come out of one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use blueprint_safekeeping::archive::Archive;
use blueprint_safekeeping::{Written, private_file};

use crate::error::Error;
use crate::installation;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// The folders whose files are carried.
const FOLDERS: [&str; 2] = ["infra/secrets", "infra/tls"];
/// Beside them: without the settings the same data would be served under other names, and the record says which kind of charts the data is made with.
const FILES: [&str; 2] = ["blueprint.yaml", "infra/phase2/state/charts.json"];

/// Of [`Archive::about`].
const ID: &str = "installation";
const DOMAIN: &str = "domain";
const MADE_AT: &str = "made-at";
const MADE_WITH: &str = "made-with";

/// Gathers what makes the installation: every private file, and blueprint.yaml where there is one.
pub fn collect(workspace: &Workspace, settings: &Settings) -> Result<Archive, Error> {
    let mut files = BTreeMap::new();
    for path in present(workspace)? {
        let name = relative(workspace, &path)?;
        if let Some(bytes) = private_file::read(&path)? {
            files.insert(name, bytes);
        }
    }
    if files.is_empty() {
        return Err(Error::Refused {
            summary: "there is nothing to export".to_owned(),
            expected: format!("private files in {}", workspace.secrets().display()),
            found: "none".to_owned(),
            hint: "run this in the workspace of the installation (or name it by --workspace)"
                .to_owned(),
        });
    }
    for name in FILES {
        if let Some(bytes) = private_file::read(&workspace.root().join(name))? {
            files.insert(name.to_owned(), bytes);
        }
    }
    let mut about = BTreeMap::from([
        (DOMAIN.to_owned(), settings.domain.clone()),
        (MADE_AT.to_owned(), jiff::Timestamp::now().to_string()),
        (
            MADE_WITH.to_owned(),
            format!("blueprint {}", env!("CARGO_PKG_VERSION")),
        ),
    ]);
    if let Some(id) = installation::id(workspace)? {
        about.insert(ID.to_owned(), id);
    }
    Ok(Archive { about, files })
}

/// `installation abc of local.example.net, made …`, for people.
pub fn describe(archive: &Archive) -> String {
    let field = |name| archive.about.get(name).map_or("unknown", String::as_str);
    format!(
        "installation {} of {}, exported {} by {}",
        field(ID),
        field(DOMAIN),
        field(MADE_AT),
        field(MADE_WITH)
    )
}

/// Writes the archive's files into the workspace; answers how many were new. Before the first one is written it is made sure that nothing else is there: a
/// workspace that has private files of its own is another installation. One that a cut-off import left behind is completed.
pub fn unpack(workspace: &Workspace, archive: &Archive) -> Result<usize, Error> {
    if let Some(stray) = archive.files.keys().find(|path| !belongs(path)) {
        return Err(Error::Refused {
            summary: "the archive is not one of an installation".to_owned(),
            expected: format!(
                "files below {}, and {}",
                FOLDERS.join(", "),
                FILES.join(", ")
            ),
            found: stray.clone(),
            hint: "nothing was written; use an archive that `blueprint secrets export` made"
                .to_owned(),
        });
    }
    refuse_another_installation(workspace, archive)?;
    private_file::write(&unfinished(workspace), note(archive).as_bytes())?;
    let mut new = 0;
    for (path, bytes) in &archive.files {
        if private_file::write(&workspace.root().join(path), bytes)? != Written::Unchanged {
            new += 1;
        }
    }
    private_file::remove(&unfinished(workspace))?;
    Ok(new)
}

/// Refuses to work in a workspace where an import was cut off: half of an installation would be completed with new credentials.
pub fn refuse_unfinished(workspace: &Workspace) -> Result<(), Error> {
    match private_file::read_text(&unfinished(workspace))? {
        None => Ok(()),
        Some(note) => Err(Error::Refused {
            summary: "an import into this workspace was cut off".to_owned(),
            expected: "all files of the archive".to_owned(),
            found: format!("some of them ({})", note.as_str()),
            hint: "run `blueprint secrets import` with the same archive again: it completes what is missing".to_owned(),
        }),
    }
}

/// Names the archive whose import is under way.
const UNFINISHED: &str = "import-unfinished.txt";

fn unfinished(workspace: &Workspace) -> PathBuf {
    workspace.secrets().join(UNFINISHED)
}

fn note(archive: &Archive) -> String {
    format!("{}\n", describe(archive))
}

fn belongs(path: &str) -> bool {
    FILES.contains(&path)
        || FOLDERS.iter().any(|folder| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        })
}

fn refuse_another_installation(workspace: &Workspace, archive: &Archive) -> Result<(), Error> {
    let mut other = Vec::new();
    let mut there = present(workspace)?;
    let files = FILES.map(|name| workspace.root().join(name));
    there.extend(files.into_iter().filter(|path| path.exists()));
    for path in there {
        let name = relative(workspace, &path)?;
        let same = match archive.files.get(&name) {
            Some(bytes) => private_file::read(&path)?.is_none_or(|there| there == *bytes),
            None => false,
        };
        if !same {
            other.push(name);
        }
    }
    if other.is_empty() {
        return Ok(());
    }
    Err(Error::Refused {
        summary: format!(
            "{} is not empty: it holds files of its own",
            workspace.root().display()
        ),
        expected: "a workspace without private files and blueprint.yaml, or one with just the archive's".to_owned(),
        found: format!("{} that differ or are not in the archive: {}", other.len(), other.join(", ")),
        hint: "nothing was written; import into a new folder (`blueprint init` makes one), or move those files away if their installation is no longer wanted".to_owned(),
    })
}

/// Every private file that counts, in any order: not the leftovers of a write that was cut off, and not the note about an unfinished import.
fn present(workspace: &Workspace) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS
        .iter()
        .map(|folder| workspace.root().join(folder))
        .collect();
    let failed = |folder: &Path, error: &std::io::Error| Error::Failed {
        action: format!("list {}", folder.display()),
        found: error.to_string(),
        hint: "check the folder's owner and mode, then run again".to_owned(),
    };
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(&folder, &error)),
        };
        for entry in entries {
            let path = entry.map_err(|error| failed(&folder, &error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                folders.push(path);
            } else if name != UNFINISHED && !is_leftover(&name) {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// What `private_file::write` calls its temporary file.
fn is_leftover(name: &str) -> bool {
    name.strip_prefix('.')
        .is_some_and(|rest| rest.strip_suffix(".new").is_some())
}

fn relative(workspace: &Workspace, path: &Path) -> Result<String, Error> {
    path.strip_prefix(workspace.root())
        .ok()
        .and_then(Path::to_str)
        .map(str::to_owned)
        .ok_or_else(|| Error::Failed {
            action: format!("name {} in an archive", path.display()),
            found: "its name is not UTF-8".to_owned(),
            hint: "rename it or move it out of the private folders".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt as _;

    use zeroize::Zeroizing;

    use super::*;
    use crate::inventory::{Place, known};

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            private_file::write(&folder.path().join(path), text.as_bytes()).unwrap();
        }
        let workspace = Workspace::at(folder.path());
        (folder, workspace)
    }

    fn installation() -> (tempfile::TempDir, Workspace, Archive) {
        let (folder, old) = workspace(&[
            ("infra/secrets/installation-id.txt", "abc\n"),
            ("infra/secrets/rotations/redis", "next"),
            ("infra/tls/wildcard/key.pem", "hush"),
            ("infra/secrets/.redis.txt.x.new", "left over"),
            ("blueprint.yaml", "domain: gitlab.example\n"),
            ("infra/storage/big", "not private"),
            ("infra/phase2/state/charts.json", "{}"),
            ("infra/phase2/state/run.lock", "not carried"),
        ]);
        let archive = collect(&old, &Settings::default()).unwrap();
        (folder, old, archive)
    }

    #[test]
    fn the_private_files_and_the_settings_are_carried_and_nothing_else() {
        let (_folder, _, archive) = installation();
        assert_eq!(
            archive.files.keys().collect::<Vec<_>>(),
            [
                "blueprint.yaml",
                "infra/phase2/state/charts.json",
                "infra/secrets/installation-id.txt",
                "infra/secrets/rotations/redis",
                "infra/tls/wildcard/key.pem",
            ]
        );
        assert!(describe(&archive).starts_with("installation abc of "));
    }

    #[test]
    fn every_file_of_a_known_credential_is_carried() {
        let (_folder, workspace) = workspace(&[]);
        let files: Vec<_> = known(&workspace, &BTreeSet::new())
            .into_iter()
            .flat_map(|known| known.places)
            .filter_map(|place| match place {
                Place::File(path, _) => Some(path),
                _ => None,
            })
            .collect();
        assert!(files.len() > 5, "{files:?}");
        for path in files {
            private_file::write(&path, b"x").unwrap();
            let name = relative(&workspace, &path).unwrap();
            let archive = collect(&workspace, &Settings::default()).unwrap();
            assert!(archive.files.contains_key(&name), "{name}");
        }
    }

    #[test]
    fn an_empty_workspace_becomes_the_same_installation() {
        let (_old, _, archive) = installation();
        let (folder, new) = workspace(&[("VERSIONS.json", "{}")]);
        assert_eq!(unpack(&new, &archive).unwrap(), 5);
        let again = collect(&new, &Settings::default()).unwrap();
        assert!(again.files == archive.files);
        let key = folder.path().join("infra/tls/wildcard/key.pem");
        assert_eq!(
            fs::metadata(key).unwrap().permissions().mode() & 0o777,
            0o600
        );
        refuse_unfinished(&new).unwrap();
        assert_eq!(unpack(&new, &archive).unwrap(), 0, "twice is once");
    }

    #[test]
    fn a_workspace_with_files_of_its_own_is_refused_and_left_as_it_is() {
        let (_old, _, archive) = installation();
        for own in [
            "infra/secrets/installation-id.txt",
            "infra/tls/other.pem",
            "blueprint.yaml",
        ] {
            let (_folder, new) = workspace(&[(own, "mine")]);
            let error = unpack(&new, &archive).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{error}");
            assert_eq!(
                *private_file::read_text(&new.root().join(own))
                    .unwrap()
                    .unwrap(),
                "mine"
            );
            assert!(!new.secrets().join("rotations").exists(), "{own}");
        }
    }

    #[test]
    fn a_cut_off_import_is_completed_and_nothing_else_runs_before() {
        let (_old, _, archive) = installation();
        let (_folder, new) = workspace(&[("infra/secrets/installation-id.txt", "abc\n")]);
        private_file::write(&unfinished(&new), note(&archive).as_bytes()).unwrap();
        let error = refuse_unfinished(&new).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert_eq!(unpack(&new, &archive).unwrap(), 4);
        refuse_unfinished(&new).unwrap();
    }

    #[test]
    fn an_archive_with_a_file_for_another_place_is_refused() {
        let (_old, _, mut archive) = installation();
        for path in [
            "VERSIONS.json",
            "infra/secretsx/y",
            "infra/storage/x",
            "infra/secrets",
        ] {
            archive
                .files
                .insert(path.to_owned(), Zeroizing::new(Vec::new()));
            let (_folder, new) = workspace(&[]);
            assert!(
                matches!(unpack(&new, &archive), Err(Error::Refused { .. })),
                "{path}"
            );
            assert!(!new.secrets().exists());
            archive.files.remove(path);
        }
    }

    #[test]
    fn an_empty_workspace_has_nothing_to_export() {
        let (_folder, new) = workspace(&[("blueprint.yaml", "")]);
        assert!(matches!(
            collect(&new, &Settings::default()),
            Err(Error::Refused { .. })
        ));
    }
}
