//! The process dies at every point of an initialisation, one after the other.

use std::collections::BTreeSet;
use std::path::Path;

use blueprint_openbao::{Client, InitFile, Journal, JournalState, Split};
use secrecy::ExposeSecret as _;

use crate::child;
use crate::fake_server::{self, Storage};

const SPLIT: Split = Split {
    shares: 5,
    threshold: 3,
};
const ADDRESS: &str = "BLUEPRINT_TEST_ADDRESS";
const INITIALISED: &str = "BLUEPRINT_TEST_INITIALISED";

/// The end state: keys and nothing beside them.
fn files(folder: &Path) -> BTreeSet<String> {
    let secrets = folder.join("secrets");
    let entries = std::fs::read_dir(secrets).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn journal(folder: &Path) -> (std::path::PathBuf, Journal) {
    let path = folder.join("secrets/openbao-init.json");
    let journal = Journal::beside(&path);
    (path, journal)
}

#[test]
fn every_death_during_an_initialisation_can_be_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let died_at = folder.path().join("died-at");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let storage = Storage::default();
    let (_server, address) = runtime.block_on(fake_server::start(&storage));
    let (path, journal) = journal(folder.path());
    let mut lost = 0;
    loop {
        let state = journal.state().unwrap();
        match storage.root_token() {
            None => assert!(
                matches!(state, JournalState::Clean | JournalState::Intended),
                "{state:?} without a server"
            ),
            // Somebody's keys, nobody's: only an intention may stand beside them, or they could not be told from a stranger's.
            Some(_) if state == JournalState::Intended => {
                storage.empty();
                lost += 1;
            }
            Some(token) => {
                assert_ne!(
                    state,
                    JournalState::Clean,
                    "an initialised server that the journal knows nothing of"
                );
                let kept = if state == JournalState::Done {
                    InitFile::read(&path)
                } else {
                    InitFile::read(&folder.path().join("secrets/openbao-init.json.answer"))
                };
                assert_eq!(
                    kept.unwrap().unwrap().root_token.expose_secret(),
                    token,
                    "keys of another server"
                );
            }
        }
        let output = child::command(&[], "sweep::a_run_that_may_die", folder.path())
            .env(ADDRESS, address.to_string())
            .env(INITIALISED, storage.root_token().is_some().to_string())
            .env("BLUEPRINT_FAILPOINT", format!("new:{}", died_at.display()))
            .output()
            .unwrap();
        if output.status.success() {
            break;
        }
        assert_eq!(
            output.status.code(),
            None,
            "it should die of a signal: {}",
            child::said(&output)
        );
    }
    let died_at = std::fs::read_to_string(died_at).unwrap();
    for point in [
        "before ask OpenBao sys/init",
        "after ask OpenBao sys/init",
        "under way write openbao-init.json",
        "after write openbao-init.json.answer",
        "after remove openbao-init.json.intended",
    ] {
        assert!(
            died_at.lines().any(|line| line == point),
            "never died {point}:\n{died_at}"
        );
    }
    assert_eq!(
        lost, 3,
        "the answer is lost until its file has its name: after the call, before the write, before the rename"
    );
    assert_eq!(
        files(folder.path()),
        BTreeSet::from(["openbao-init.json".to_owned()]),
        "what a killed run left is gone"
    );
    assert_eq!(
        InitFile::read(&path)
            .unwrap()
            .unwrap()
            .root_token
            .expose_secret(),
        storage.root_token().unwrap()
    );
}

#[test]
fn an_answer_lost_in_transit_leaves_the_intention() {
    let folder = tempfile::tempdir().unwrap();
    let (path, journal) = journal(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let storage = Storage::default();
        let (_server, address) = fake_server::start(&storage).await;
        let client = Client::new(address);
        storage.lose_answers(true);
        journal
            .initialise(&client, "7413", SPLIT)
            .await
            .unwrap_err();
        assert!(storage.root_token().is_some());
        assert_eq!(journal.state().unwrap(), JournalState::Intended);
        assert_eq!(journal.intended_on().unwrap().as_deref(), Some("7413"));
        // A second init is refused, and by that the intention is known to be worth nothing as a proof: it goes.
        storage.lose_answers(false);
        storage.empty();
        journal.initialise(&client, "7413", SPLIT).await.unwrap();
        assert_eq!(journal.state().unwrap(), JournalState::Done);
        assert_eq!(
            InitFile::read(&path)
                .unwrap()
                .unwrap()
                .root_token
                .expose_secret(),
            storage.root_token().unwrap()
        );
    });
}

/// What `up` does in this state, without the cluster around it.
#[test]
fn a_run_that_may_die() {
    let Some(folder) = child::folder() else {
        return;
    };
    let Ok(address) = std::env::var(ADDRESS) else {
        return;
    };
    let initialised = std::env::var(INITIALISED).is_ok_and(|text| text == "true");
    let (_, journal) = journal(&folder);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let _ = rustls::crypto::ring::default_provider().install_default();
        match journal.state().unwrap() {
            JournalState::Done => journal.done().unwrap(),
            JournalState::Answered => journal.finish(SPLIT).unwrap(),
            JournalState::Clean | JournalState::Intended => {
                assert!(!initialised);
                journal
                    .initialise(&Client::new(address.parse().unwrap()), "7413", SPLIT)
                    .await
                    .unwrap();
            }
        }
    });
}
