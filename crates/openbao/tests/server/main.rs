//! The client against a real OpenBao that keeps everything in memory. It needs `bao` in the folder that `BLUEPRINT_TEST_BIN` names:
//! `cargo test -p blueprint-openbao --test server -- --ignored`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod rotation;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blueprint_openbao::{Client, Given, Health, InitFile, Journal, JournalState};
use secrecy::{ExposeSecret as _, SecretString};

/// A server of the test's own, killed with it.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Either fails only when the server has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), "storage \"inmem\" {}\n").await
    }

    /// Ends it and starts it again with other words in its configuration, on what it stored.
    async fn restarted(mut self, config: &str) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Self::start_in(folder, config).await
    }

    async fn start_in(folder: tempfile::TempDir, config_text: &str) -> Self {
        let binaries = std::env::var_os("BLUEPRINT_TEST_BIN")
            .unwrap_or_else(|| panic!("BLUEPRINT_TEST_BIN does not name a folder with bao"));
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let config = folder.path().join("server.hcl");
        let text = format!(
            "{config_text}listener \"tcp\" {{ address = \"{address}\" tls_disable = true }}\napi_addr = \"http://{address}\"\n"
        );
        std::fs::write(&config, text).unwrap();
        let process = Command::new(PathBuf::from(binaries).join("bao"))
            .arg("server")
            .arg(format!("-config={}", config.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            process,
            folder,
            address,
        };
        let client = server.client();
        let answers = async {
            while client.health().await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), answers)
            .await
            .unwrap();
        server
    }

    fn client(&self) -> Client {
        // Another test may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::new(self.address)
    }
}

fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, SecretString> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), SecretString::from(*value)))
        .collect()
}

#[tokio::test]
#[ignore = "needs bao in the folder that BLUEPRINT_TEST_BIN names: `make e2e` runs it"]
async fn from_an_empty_server_to_a_secret_and_back() {
    let server = Server::start().await;
    let client = server.client();
    let init_file = server.folder.path().join("secrets/openbao-init.json");
    let journal = Journal::beside(&init_file);

    assert_eq!(client.health().await.unwrap(), Health::Uninitialised);
    let status = client.seal_status().await.unwrap();
    assert!(!status.initialized && status.sealed);
    assert_eq!(status.storage_type, "inmem");
    assert!(!status.version.is_empty());

    journal.intend("7413").unwrap();
    let raw = client.init(5, 3).await.unwrap();
    journal.answered(&raw).unwrap();
    let init = InitFile::from_init_answer(&raw, 5, 3, &init_file).unwrap();
    init.write(&init_file).unwrap();
    journal.done().unwrap();
    assert_eq!(journal.state().unwrap(), JournalState::Done);

    assert_eq!(client.init(5, 3).await.unwrap_err().status(), Some(400));
    assert_eq!(client.health().await.unwrap(), Health::Sealed);
    let foreign = SecretString::from("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let init = InitFile::read(&init_file).unwrap().unwrap();
    client.unseal(&init.unseal_keys[0]).await.unwrap();
    client.unseal(&init.unseal_keys[1]).await.unwrap();
    assert_eq!(
        client.unseal(&foreign).await.unwrap_err().status(),
        Some(400)
    );
    for key in init.unseal_keys.iter().take(3) {
        client.unseal(key).await.unwrap();
    }
    assert!(
        !client.unseal(&init.unseal_keys[0]).await.unwrap().sealed,
        "unsealing again is no error"
    );
    assert_eq!(client.health().await.unwrap(), Health::Active);

    secrets_round_trip(&client, init.root_token).await;
}

/// Gives keys until the new ones come.
async fn new_keys(
    client: &Client,
    keys: &[SecretString],
) -> Result<(Vec<SecretString>, String), blueprint_openbao::Error> {
    let nonce = client.rotation_begin(5, 3).await.unwrap();
    for key in keys.iter().take(3) {
        if let Given::Keys { keys, nonce } = client.rotation_give(&nonce, key).await? {
            return Ok((keys, nonce));
        }
    }
    panic!("three keys were not enough");
}

#[tokio::test]
#[ignore = "needs bao in the folder that BLUEPRINT_TEST_BIN names: `make e2e` runs it"]
async fn unseal_keys_are_in_force_only_once_they_were_given_back() {
    let server = Server::start().await;
    let client = server.client();
    let raw = client.init(5, 3).await.unwrap();
    let init = InitFile::from_init_answer(&raw, 5, 3, &server.folder.path().join("x")).unwrap();
    for key in init.unseal_keys.iter().take(3) {
        client.unseal(key).await.unwrap();
    }
    assert_eq!(
        client.rotation_cancel().await.unwrap_err().status(),
        Some(403)
    );
    let client = client.with_token(init.root_token.clone());

    let foreign: Vec<SecretString> = (0..3)
        .map(|n| {
            SecretString::from(format!(
                "{}AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA{n}",
                n + 1
            ))
        })
        .collect();
    let Err(error) = new_keys(&client, &foreign).await else {
        panic!("foreign keys were taken");
    };
    assert_eq!(error.status(), Some(400));

    // An answer that was lost: the keys that came with it never count.
    let (lost, _) = new_keys(&client, &init.unseal_keys).await.unwrap();
    let (keys, nonce) = new_keys(&client, &init.unseal_keys).await.unwrap();
    assert_eq!(keys.len(), 5);
    assert_ne!(lost[0].expose_secret(), keys[0].expose_secret());
    let mut verified = Vec::new();
    for key in keys.iter().take(3) {
        verified.push(client.rotation_verify(&nonce, key).await.unwrap());
    }
    assert_eq!(verified, [false, false, true]);

    let Err(error) = new_keys(&client, &init.unseal_keys).await else {
        panic!("the former keys were taken");
    };
    assert_eq!(error.status(), Some(400));
    new_keys(&client, &keys).await.unwrap();
    client.rotation_cancel().await.unwrap();
    client.rotation_cancel().await.unwrap();
}

async fn secrets_round_trip(client: &Client, root_token: SecretString) {
    assert!(
        !client
            .with_token(SecretString::from("s.wrong"))
            .token_works()
            .await
            .unwrap()
    );
    let client = client.with_token(root_token);
    assert!(client.token_works().await.unwrap());

    assert_eq!(
        client
            .kv_read("secret", "gitlab/runner")
            .await
            .unwrap_err()
            .status(),
        Some(404),
        "nothing is mounted yet"
    );
    assert!(client.ensure_kv2("secret").await.unwrap());
    assert!(!client.ensure_kv2("secret").await.unwrap());
    let cubbyhole = client.ensure_kv2("cubbyhole").await.unwrap_err();
    assert!(
        cubbyhole
            .to_string()
            .contains("cubbyhole mounted at cubbyhole/"),
        "{cubbyhole}"
    );

    assert!(
        client
            .kv_read("secret", "gitlab/runner")
            .await
            .unwrap()
            .is_none()
    );
    client
        .kv_write(
            "secret",
            "gitlab/runner",
            &data(&[("registration_token", "glrt-x"), ("other", "y")]),
        )
        .await
        .unwrap();
    client
        .kv_write(
            "secret",
            "gitlab/runner",
            &data(&[("registration_token", "\"quoted\" \\ é\n")]),
        )
        .await
        .unwrap();
    let read = client
        .kv_read("secret", "gitlab/runner")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(read.len(), 1, "a write replaces all keys");
    assert_eq!(
        read["registration_token"].expose_secret(),
        "\"quoted\" \\ é\n"
    );

    let nobody = client
        .with_token(SecretString::from("s.wrong"))
        .kv_read("secret", "gitlab/runner")
        .await
        .unwrap_err();
    assert_eq!(nobody.status(), Some(403));
}

/// What survives a restart needs a storage that does; this one needs no other server, and its own address to stay the same.
fn raft(folder: &std::path::Path, cluster: SocketAddr, stanza: &str) -> String {
    let folder = folder.display();
    format!(
        "storage \"raft\" {{\npath = \"{folder}\"\nnode_id = \"one\"\n}}\ncluster_addr = \"http://{cluster}\"\n{stanza}"
    )
}

async fn active(client: &Client) {
    let active = async {
        while client.health().await.ok() != Some(Health::Active) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), active)
        .await
        .unwrap();
}

#[tokio::test]
#[ignore = "needs bao in the folder that BLUEPRINT_TEST_BIN names: `make e2e` runs it"]
async fn the_seal_is_moved_to_a_static_key_and_back_with_the_same_shares() {
    let folder = tempfile::tempdir().unwrap();
    let storage = tempfile::tempdir().unwrap();
    let key = storage.path().join("key");
    std::fs::write(&key, "0123456789abcdef0123456789ABCDEF").unwrap();
    let stanza = |more: &str| {
        format!(
            "seal \"static\" {{\n{more}current_key_id = \"blueprint\"\ncurrent_key = \"file://{}\"\n}}\n",
            key.display()
        )
    };
    let cluster = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let config = |stanza: &str| raft(storage.path(), cluster, stanza);

    let server = Server::start_in(folder, &config("")).await;
    let raw = server.client().init(5, 3).await.unwrap();
    let init = InitFile::from_init_answer(&raw, 5, 3, &key).unwrap();
    for share in init.unseal_keys.iter().take(3) {
        server.client().unseal(share).await.unwrap();
    }
    active(&server.client()).await;
    let root = server.client().with_token(init.root_token.clone());
    root.ensure_kv2("secret").await.unwrap();
    root.kv_write("secret", "a", &data(&[("b", "c")]))
        .await
        .unwrap();

    let mut server = server;
    for (stanza, seal) in [
        (stanza(""), "static"),
        (stanza("disabled = \"true\"\n"), "shamir"),
    ] {
        server = server.restarted(&config(&stanza)).await;
        let client = server.client();
        let status = client.seal_status().await.unwrap();
        assert!(status.migration && status.sealed);
        assert_eq!(status.kind, seal);
        assert!(
            client.unseal(&init.unseal_keys[0]).await.is_err(),
            "a share without `migrate` is refused"
        );
        for share in init.unseal_keys.iter().take(3) {
            client.migrate_seal(share).await.unwrap();
        }
        active(&client).await;
        // Once more on the same configuration: the static seal opens itself, the shares do as before.
        server = server.restarted(&config(&stanza)).await;
        let client = server.client();
        if seal == "shamir" {
            for share in init.unseal_keys.iter().take(3) {
                client.unseal(share).await.unwrap();
            }
        }
        active(&client).await;
        assert!(!client.seal_status().await.unwrap().migration);
        let root = client.with_token(init.root_token.clone());
        let kept = root.kv_read("secret", "a").await.unwrap().unwrap();
        assert_eq!(kept["b"].expose_secret(), "c");
    }
}
