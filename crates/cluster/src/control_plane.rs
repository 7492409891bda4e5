//! A control plane without nodes for tests: a real etcd and a real kube-apiserver, ready in about a second, gone with the test process.
//!
//! The binaries come from the folder that `BLUEPRINT_TEST_BIN` names (`make test` sets it). There are no controllers: nothing schedules pods, binds
//! claims or collects garbage, so a test plays those parts itself, through the status subresources.
//!
//! Each server is the child of a small shell that reads from a pipe held by the test process. The pipe closes however that process ends (also by a
//! panic, an abort or a kill), and then the shell kills its server and removes the files. The shell has a process group of its own, so that a
//! Ctrl-C reaches only the test process.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use tokio::time::Instant;

use crate::connect::{Cluster, ConnectOptions};

/// The folder with `etcd` and `kube-apiserver`.
pub const BIN_VARIABLE: &str = "BLUEPRINT_TEST_BIN";

/// The context's name in the kubeconfig.
pub const CONTEXT: &str = "kind-test";

/// A busy machine with two cores takes seconds, not the usual one.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// `$LOG` takes the server's output; `$DOOMED`, if set, is removed at the end.
const KEEPER: &str = r#"
"$@" >>"$LOG" 2>&1 </dev/null &
server=$!
cat >/dev/null
kill -KILL "$server"
wait "$server"
[ -z "$DOOMED" ] || rm -rf -- "$DOOMED"
"#;

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The binaries are missing.
    #[error(
        "expected etcd and kube-apiserver in the folder that {BIN_VARIABLE} names, found {found}; run `make test`, which provides them"
    )]
    NoBinaries {
        /// What was found.
        found: String,
    },
    /// A file or a process could not be made.
    #[error("failed to start the control plane")]
    Io(#[from] io::Error),
    /// A key or certificate could not be made.
    #[error("failed to make the control plane's certificate")]
    Certificate(#[from] rcgen::Error),
}

/// A running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields are dropped in this order: the API server first, then etcd, whose keeper removes the folder.
    api_server: Mutex<Option<Kept>>,
    _etcd: Kept,
    folder: PathBuf,
    binaries: PathBuf,
    ports: Ports,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    etcd: u16,
    api: u16,
}

impl ControlPlane {
    /// The one that all tests of a process share. Use a namespace of your own in it.
    ///
    /// # Panics
    /// When it cannot be started: a test without it proves nothing.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
        match SHARED.get_or_init(|| Self::start().map_err(|error| crate::wait::with_causes(&error)))
        {
            Ok(control_plane) => control_plane,
            Err(why) => panic!("{why}"),
        }
    }

    /// One of your own, for a test that restarts it.
    pub fn start() -> Result<Self, StartError> {
        let binaries = binaries()?;
        let folder = tempfile::Builder::new()
            .prefix("blueprint-control-plane-")
            .tempdir()?
            .keep();
        let [client, peer, api] = free_ports()?;
        write_credentials(&folder, api)?;
        let etcd = Kept::start(
            etcd(&binaries, &folder, client, peer),
            &folder,
            "etcd.log",
            Some(&folder),
        )?;
        let ports = Ports { etcd: client, api };
        let control_plane = Self {
            api_server: Mutex::new(None),
            _etcd: etcd,
            folder,
            binaries,
            ports,
        };
        control_plane.start_api_server()?;
        Ok(control_plane)
    }

    /// Starts the API server (again), on the same port.
    pub fn start_api_server(&self) -> Result<(), StartError> {
        let command = api_server(&self.binaries, &self.folder, self.ports);
        let kept = Kept::start(command, &self.folder, "kube-apiserver.log", None)?;
        *self
            .api_server
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(())
    }

    /// Kills the API server; etcd keeps the data.
    pub fn stop_api_server(&self) {
        self.api_server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// A kubeconfig whose current context is [`CONTEXT`], with the rights of a cluster administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// A connection of the calling test's own (clients cannot be shared between runtimes), once the API server is ready.
    ///
    /// # Panics
    /// When it does not get ready within a minute.
    pub async fn cluster(&self) -> Cluster {
        let options = ConnectOptions {
            kubeconfig: Some(self.kubeconfig()),
            ..ConnectOptions::default()
        };
        let cluster = match Cluster::connect(&options).await {
            Ok(cluster) => cluster,
            Err(error) => panic!("{error}"),
        };
        let namespaces = Api::<Namespace>::all(cluster.client());
        let ends = Instant::now() + READY_WITHIN;
        // The API server makes this namespace in its last post-start hooks.
        while let Err(error) = namespaces.get("default").await {
            assert!(
                Instant::now() < ends,
                "the API server is not ready: {error}\n{}",
                self.last_log_lines()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        cluster
    }

    fn last_log_lines(&self) -> String {
        let tail = |name: &str| {
            let text = std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
            let lines = text.lines().collect::<Vec<_>>();
            lines[lines.len().saturating_sub(10)..].join("\n")
        };
        format!(
            "etcd:\n{}\nkube-apiserver:\n{}",
            tail("etcd.log"),
            tail("kube-apiserver.log")
        )
    }
}

/// A server and the shell that ends it.
#[derive(Debug)]
struct Kept {
    keeper: Child,
}

impl Kept {
    fn start(
        server: Vec<String>,
        folder: &Path,
        log: &str,
        doomed: Option<&Path>,
    ) -> io::Result<Self> {
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .args(server)
            .env("LOG", folder.join(log))
            .env("DOOMED", doomed.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { keeper })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // The keeper kills its server first, so its end means that the port is free.
        let _ = self.keeper.wait();
    }
}

fn binaries() -> Result<PathBuf, StartError> {
    let Some(folder) = std::env::var_os(BIN_VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
    else {
        return Err(StartError::NoBinaries {
            found: "the variable unset".to_owned(),
        });
    };
    let missing = ["etcd", "kube-apiserver"]
        .into_iter()
        .find(|name| !folder.join(name).is_file());
    match missing {
        Some(name) => Err(StartError::NoBinaries {
            found: format!("no {name} in {}", folder.display()),
        }),
        None => Ok(folder),
    }
}

/// Ports that are free now. All are held until the last is found, so that they differ.
fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn write_credentials(folder: &Path, port: u16) -> Result<(), StartError> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?
        .self_signed(&key)?
        .pem();
    // The folder's random name serves as token: who can read it there may use it.
    let token = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    write_private(&folder.join("tls.crt"), &certificate)?;
    write_private(&folder.join("tls.key"), &key.serialize_pem())?;
    write_private(&folder.join("accounts.pub"), &key.public_key_pem())?;
    write_private(
        &folder.join("tokens.csv"),
        &format!("{token},admin,admin,system:masters\n"),
    )?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority": folder.join("tls.crt"),
        }}],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
    });
    write_private(&folder.join("kubeconfig"), &kubeconfig.to_string())?;
    Ok(())
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(text.as_bytes())
}

fn etcd(binaries: &Path, folder: &Path, client: u16, peer: u16) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client}");
    let peer = format!("http://127.0.0.1:{peer}");
    vec![
        binaries.join("etcd").display().to_string(),
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

/// The `ServiceAccount` admission is off: it wants a controller that makes the account `default` in each namespace.
fn api_server(binaries: &Path, folder: &Path, ports: Ports) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        binaries.join("kube-apiserver").display().to_string(),
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.api),
        format!("--cert-dir={}", file("certs")),
        format!("--tls-cert-file={}", file("tls.crt")),
        format!("--tls-private-key-file={}", file("tls.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("tls.key")),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
    ]
}
