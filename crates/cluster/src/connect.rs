//! Which cluster is meant, and a client for it.

use std::path::PathBuf;

use crate::error::Error;

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

/// A connected cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) client: kube::Client,
    pub(crate) context: String,
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl Cluster {
    /// Reads the kubeconfig, decides the context and makes a client. Nothing is asked of the server yet. Installs rustls' ring provider if none is.
    /// Proxies from the environment are not used for loopback or private addresses.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, Error> {
        todo!()
    }

    /// A cluster around a ready client (tests).
    pub fn from_client(client: kube::Client, context: &str) -> Self {
        Self { client, context: context.to_owned(), kubeconfig: None }
    }

    /// kube's client, for typed access.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The context's name.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// The kubeconfig file used, for helm.
    pub fn kubeconfig(&self) -> Option<&std::path::Path> {
        self.kubeconfig.as_deref()
    }

    /// `v1.35.4`. This is the first call to the server: a refused connection is explained here.
    pub async fn server_version(&self) -> Result<String, Error> {
        todo!()
    }
}
