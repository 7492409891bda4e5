//! The process dies at every point of a rotation of the unseal keys, one after the other; after each death the server is sealed, and must open with what is on disk.

use std::path::Path;
use std::process::Command;

use blueprint_openbao::{Client, Health, InitFile, KeysInForce, Split, UnsealKeys};
use secrecy::{ExposeSecret as _, SecretString};

use crate::Server;

const FOLDER: &str = "BLUEPRINT_TEST_CHILD_FOLDER";
const ADDRESS: &str = "BLUEPRINT_TEST_ADDRESS";
const SPLIT: Split = Split {
    shares: 5,
    threshold: 3,
};

fn keys(folder: &Path) -> UnsealKeys {
    UnsealKeys::new(
        &folder.join("secrets/openbao-init.json"),
        &folder.join("secrets/rotations/openbao-keys"),
    )
}

fn init_file(folder: &Path) -> InitFile {
    InitFile::read(&folder.join("secrets/openbao-init.json"))
        .unwrap()
        .unwrap()
}

/// Initialised and open, its keys in the folder.
async fn opened(server: &Server) -> InitFile {
    let client = server.client();
    let folder = server.folder.path();
    let raw = client.init(SPLIT.shares, SPLIT.threshold).await.unwrap();
    let path = folder.join("secrets/openbao-init.json");
    InitFile::from_init_answer(&raw, SPLIT.shares, SPLIT.threshold, &path)
        .unwrap()
        .write(&path)
        .unwrap();
    let opened = keys(folder).unseal(&client, false).await.unwrap();
    assert_eq!(opened, KeysInForce::AsKept);
    init_file(folder)
}

fn seal(server: &Server, token: &SecretString) {
    let binaries = std::env::var_os("BLUEPRINT_TEST_BIN").unwrap();
    let sealed = Command::new(Path::new(&binaries).join("bao"))
        .args(["operator", "seal"])
        .env("BAO_ADDR", format!("http://{}", server.address))
        .env("BAO_TOKEN", token.expose_secret())
        .output()
        .unwrap();
    assert!(sealed.status.success());
}

/// This test once more, as a process that may die.
fn child(server: &Server, died_at: &Path) -> std::process::Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["rotation::a_run_that_may_die", "--exact", "--nocapture"])
        .env(FOLDER, server.folder.path())
        .env(ADDRESS, server.address.to_string())
        .env("BLUEPRINT_FAILPOINT", format!("new:{}", died_at.display()))
        .output()
        .unwrap()
}

#[tokio::test]
async fn a_run_that_may_die() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = Path::new(&folder);
    let address = std::env::var(ADDRESS).unwrap().parse().unwrap();
    let client = Client::new(address).with_token(init_file(folder).root_token);
    keys(folder).rotate(&client, SPLIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs bao in the folder that BLUEPRINT_TEST_BIN names: `make e2e` runs it"]
async fn every_death_during_a_rotation_leaves_keys_that_open_the_server() {
    let server = Server::start().await;
    let first = opened(&server).await;
    let folder = server.folder.path();
    let died_at = folder.join("died-at");
    let mut finished = 0;
    let mut deaths = 0;
    loop {
        let output = child(&server, &died_at);
        let done = output.status.success();
        assert!(
            done || output.status.code().is_none(),
            "it should die of a signal: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        seal(&server, &first.root_token);
        let client = server.client();
        assert_eq!(client.health().await.unwrap(), Health::Sealed);
        if keys(folder).unseal(&client, false).await.unwrap() == KeysInForce::Finished {
            finished += 1;
        }
        if done {
            break;
        }
        deaths += 1;
    }
    let died_at = std::fs::read_to_string(died_at).unwrap();
    for point in [
        "after ask OpenBao sys/rotate/root/update",
        "before write openbao-keys",
        "after ask OpenBao sys/rotate/root/verify",
        "after write openbao-init.json",
        "after remove openbao-keys",
    ] {
        assert!(
            died_at.lines().any(|line| line == point),
            "never died {point}:\n{died_at}"
        );
    }
    assert!(
        deaths >= 10 && finished > 0,
        "{deaths} deaths, {finished} finished"
    );
    assert!(!folder.join("secrets/rotations/openbao-keys").exists());

    seal(&server, &first.root_token);
    let client = server.client();
    let mut refused = false;
    for key in first.unseal_keys.iter().take(3) {
        refused |= client.unseal(key).await.is_err();
    }
    assert!(refused, "the first keys still open it");
    keys(folder).unseal(&client, false).await.unwrap();
}

#[tokio::test]
#[ignore = "needs bao in the folder that BLUEPRINT_TEST_BIN names: `make e2e` runs it"]
async fn a_rotation_that_was_cut_off_after_the_server_took_the_new_keys_is_ended_unsealed_as_well()
{
    let server = Server::start().await;
    let first = opened(&server).await;
    let folder = server.folder.path();
    let client = server.client().with_token(first.root_token.clone());
    assert_eq!(
        keys(folder).rotate(&client, SPLIT).await.unwrap(),
        KeysInForce::New
    );
    // As it was the moment before the init file was written.
    let new = init_file(folder);
    new.write(&folder.join("secrets/rotations/openbao-keys"))
        .unwrap();
    first
        .write(&folder.join("secrets/openbao-init.json"))
        .unwrap();

    assert_eq!(
        keys(folder).rotate(&client, SPLIT).await.unwrap(),
        KeysInForce::Finished
    );
    assert_eq!(
        init_file(folder).unseal_keys[0].expose_secret(),
        new.unseal_keys[0].expose_secret()
    );
    assert_eq!(
        keys(folder).rotate(&client, SPLIT).await.unwrap(),
        KeysInForce::New
    );

    first
        .write(&folder.join("secrets/openbao-init.json"))
        .unwrap();
    let error = keys(folder).rotate(&client, SPLIT).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("OpenBao refuses the unseal keys"),
        "{error}"
    );
}
