//! Which cluster is meant, and a client for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use kube::Client;
use kube::api::GetParams;
use kube::core::Request;

use crate::error::Error;
use crate::kubeconfig;
use crate::object::Kind;
use crate::retry::once;

/// What the user said about the cluster.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// `--kubeconfig`; else KUBECONFIG, else `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`; a context that is not `kind-…` is taken only when given here.
    pub context: Option<String>,
    /// The context wanted by blueprint.yaml's cluster name (`kind-<name>`): another current context is refused unless `context` names it.
    pub expected_context: Option<String>,
}

/// Kinds learned from the server, by (apiVersion, kind).
pub(crate) type KnownKinds = Arc<RwLock<HashMap<(String, String), Kind>>>;

/// A connected cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    pub(crate) context: String,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) kinds: KnownKinds,
    server: Arc<str>,
}

impl Cluster {
    /// Reads the kubeconfig, decides the context and makes a client. Nothing is asked of the server yet. Installs rustls' ring provider if none is.
    /// Proxies from the environment are not used for loopback or private addresses.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, Error> {
        install_crypto();
        let chosen = kubeconfig::choose(options)?;
        let mut config = chosen.config().await?;
        let server = config.cluster_url.to_string();
        // Our own retries are bounded in time (`retry`); kube's go on for minutes.
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(5));
        let client =
            Client::try_from(config).map_err(|error| kubeconfig::unusable(&chosen, &error))?;
        Ok(Self {
            client,
            context: chosen.context,
            kubeconfig: chosen.file,
            kinds: KnownKinds::default(),
            server: server.into(),
        })
    }

    /// A cluster around a ready client (tests).
    pub fn from_client(client: Client, context: &str) -> Self {
        Self {
            client,
            context: context.to_owned(),
            kubeconfig: None,
            kinds: KnownKinds::default(),
            server: "".into(),
        }
    }

    /// kube's client, for typed access.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The context's name.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// The kubeconfig file used, for helm. `None` when the context is spread over several files of KUBECONFIG: helm reads that variable itself.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// `v1.35.4`. This is the first call to the server: a refused connection is explained here. It is asked once, without patience.
    pub async fn server_version(&self) -> Result<String, Error> {
        let place = if self.server.is_empty() {
            String::new()
        } else {
            format!(" at {}", self.server)
        };
        let action = format!("reach the API server of context {}{place}", self.context);
        let version = once(&action, self.client.apiserver_version()).await?;
        Ok(version.git_version)
    }

    /// Whether the API server calls itself ready, asked once, without patience. One that has just started answers before it knows its roles, and refuses
    /// everybody until then.
    pub async fn ready(&self) -> Result<(), Error> {
        let action = format!("find the API server of context {} ready", self.context);
        let request = Request::new("")
            .get("readyz", &GetParams::default())
            .map_err(|error| Error::api(&action, kube::Error::BuildRequest(error)))?;
        once(&action, self.client.request_text(request)).await?;
        Ok(())
    }
}

/// Only one provider can be installed per process; another thread may have been faster, and that is fine.
pub(crate) fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
