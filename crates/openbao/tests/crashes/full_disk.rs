//! A disk that is full, by a real file system of a few pages.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use blueprint_openbao::{Client, InitFile, InitialiseError, Journal, JournalState, Split};
use blueprint_safekeeping::private_file;
use blueprint_safekeeping::snapshot::{Snapshot, SnapshotSecret};
use secrecy::ExposeSecret as _;

use crate::child;
use crate::fake_server::{self, Storage};

const PAGE: usize = 4096;
const PAGES: usize = 24;
const SPLIT: Split = Split {
    shares: 5,
    threshold: 3,
};

/// Runs one of the tests below on a file system of [`PAGES`] pages; says loudly where none can be had.
fn on_a_small_disk(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    // Root in a namespace of its own: the mount is gone with the process.
    let Some(unshare) = ["--mount", "--map-root-user --mount"]
        .into_iter()
        .find(|ways| {
            let mut words = ways.split(' ').collect::<Vec<_>>();
            words.extend(["sh", "-c", "mount -t tmpfs none \"$0\""]);
            let tried = Command::new("unshare")
                .args(words)
                .arg(folder.path())
                .output();
            tried.is_ok_and(|output| output.status.success())
        })
    else {
        #[expect(
            clippy::print_stderr,
            reason = "a test that proves nothing here must say so"
        )]
        {
            eprintln!(
                "SKIPPED {test}: neither root nor a user namespace may mount a tmpfs here, so no disk can be full"
            );
        }
        return;
    };
    let mount = format!(
        "mount -t tmpfs -o size={}k none \"$BLUEPRINT_TEST_CHILD_FOLDER\" && exec \"$@\"",
        PAGES * PAGE / 1024
    );
    let mut prefix = vec!["unshare"];
    prefix.extend(unshare.split(' '));
    prefix.extend(["sh", "-c", &mount, "sh"]);
    let output = child::command(&prefix, test, folder.path())
        .output()
        .unwrap();
    let said = child::said(&output);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[test]
fn disk_full_during_an_initialisation() {
    on_a_small_disk("full_disk::initialises_with_ever_more_room");
}

#[test]
fn disk_full_while_a_snapshot_is_written() {
    on_a_small_disk("full_disk::writes_a_snapshot_with_ever_more_room");
}

/// Fills the disk but for some pages.
fn fill(folder: &Path, free: usize) -> std::path::PathBuf {
    let path = folder.join("filler");
    let mut file = File::create(&path).unwrap();
    while file.write_all(&[1; PAGE]).is_ok() {}
    let length = fs::metadata(&path).unwrap().len();
    file.set_len(length.saturating_sub((free * PAGE) as u64))
        .unwrap();
    path
}

fn is_full(error: &private_file::Error) -> bool {
    let full = matches!(error, private_file::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull);
    full && error.hint().contains("free some space")
}

#[test]
fn initialises_with_ever_more_room() {
    let Some(folder) = child::folder() else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut seen = Vec::new();
    for free in 0.. {
        assert!(free < PAGES, "it never succeeded: {seen:?}");
        let secrets = folder.join("secrets");
        fs::remove_dir_all(&secrets).ok();
        fs::create_dir(&secrets).unwrap();
        let path = secrets.join("openbao-init.json");
        let journal = Journal::beside(&path);
        let filler = fill(&folder, free);
        let storage = Storage::default();
        let (_server, address) = runtime.block_on(fake_server::start(&storage));
        let client = Client::new(address);
        let result = runtime.block_on(journal.initialise(&client, "7413", SPLIT));
        fs::remove_file(filler).unwrap();
        let state = journal.state().unwrap();
        seen.push(state);
        match (&result, storage.root_token()) {
            (Ok(()), Some(_)) => {}
            // Nothing happened, or what happened is known to be lost, or the answer is there: each can be gone on from once there is room.
            (Err(InitialiseError::File(error)), None) => assert!(
                is_full(error) && state == JournalState::Clean,
                "{error:?} {state:?}"
            ),
            (Err(InitialiseError::File(error)), Some(_)) if state == JournalState::Intended => {
                assert!(is_full(error));
                storage.empty();
            }
            (Err(InitialiseError::File(error)), Some(_)) => assert!(
                is_full(error) && state == JournalState::Answered,
                "{error:?} {state:?}"
            ),
            other => unreachable!("{other:?}"),
        }
        match state {
            JournalState::Done => {}
            JournalState::Answered => journal.finish(SPLIT).unwrap(),
            JournalState::Clean | JournalState::Intended => runtime
                .block_on(journal.initialise(&client, "7413", SPLIT))
                .unwrap(),
        }
        let kept = InitFile::read(&path).unwrap().unwrap();
        assert_eq!(
            kept.root_token.expose_secret(),
            storage.root_token().unwrap()
        );
        assert_eq!(
            fs::read_dir(&secrets).unwrap().count(),
            1,
            "the journal's files are gone, and no half of a file is left"
        );
        if result.is_ok() {
            break;
        }
    }
    assert!(
        seen.contains(&JournalState::Clean) && seen.contains(&JournalState::Intended),
        "the disk was never full at the right moment: {seen:?}"
    );
}

#[test]
fn writes_a_snapshot_with_ever_more_room() {
    let Some(folder) = child::folder() else {
        return;
    };
    let path = folder.join("secrets/gitlab-runtime-secrets.yaml");
    let snapshot = |version: u8| {
        let secret = SnapshotSecret {
            name: "gitlab-rails-secret".to_owned(),
            kind: "Opaque".to_owned(),
            data: [("secrets.yml".to_owned(), vec![version; PAGE].into())].into(),
        };
        Snapshot {
            namespace: "gitlab".to_owned(),
            secrets: [(secret.name.clone(), secret)].into(),
        }
    };
    let mut failures = 0;
    for free in 0.. {
        assert!(free < PAGES, "it never succeeded");
        fs::remove_dir_all(folder.join("secrets")).ok();
        snapshot(1).write(&path).unwrap();
        snapshot(2).write(&path).unwrap();
        let filler = fill(&folder, free);
        let result = snapshot(3).write(&path);
        fs::remove_file(filler).unwrap();
        let newest = Snapshot::read(&path).unwrap().unwrap();
        if result.is_ok() {
            assert!(newest == snapshot(3));
            break;
        }
        failures += 1;
        assert!(is_full(&result.unwrap_err()));
        assert!(newest == snapshot(2), "the former snapshot is gone");
        snapshot(3).write(&path).unwrap();
        assert!(Snapshot::read(&path).unwrap().unwrap() == snapshot(3));
    }
    assert!(failures > 0, "the disk was never full");
}
