//! The node containers of a kind cluster, over the container engine's API (labels `io.x-k8s.kind.cluster` and `io.x-k8s.kind.role`).

use std::net::IpAddr;

use crate::error::Error;
use crate::exec::ExecOutput;

/// One node container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Container and node name, `lab-worker`.
    pub name: String,
    /// `control-plane`, `worker`.
    pub role: String,
    /// Its address on the kind network, when it runs.
    pub address: Option<IpAddr>,
    /// Whether it runs.
    pub running: bool,
}

/// The engine, looking at one kind cluster.
#[derive(Clone)]
pub struct Nodes {
    pub(crate) docker: bollard::Docker,
    pub(crate) cluster: String,
}

impl Nodes {
    /// Connects to the engine's socket: DOCKER_HOST if it is `unix://`, else the engine's usual sockets (Docker, rootless Docker, Podman), and pings it.
    pub async fn connect(cluster: &str) -> Result<Self, Error> {
        todo!()
    }

    /// The engine's name and version, for the pre-flight row.
    pub async fn engine(&self) -> Result<String, Error> {
        todo!()
    }

    /// All nodes, sorted by name.
    pub async fn list(&self) -> Result<Vec<Node>, Error> {
        todo!()
    }

    /// Runs a command as root in a node.
    pub async fn exec(&self, node: &Node, command: &[&str], stdin: Option<&[u8]>) -> Result<ExecOutput, Error> {
        todo!()
    }

    /// The same, where any other exit code than 0 is an error.
    pub async fn run(&self, node: &Node, command: &[&str], stdin: Option<&[u8]>) -> Result<String, Error> {
        todo!()
    }

    /// A file's bytes; `None` if there is none.
    pub async fn read_file(&self, node: &Node, path: &str) -> Result<Option<Vec<u8>>, Error> {
        todo!()
    }

    /// Writes a file (folders made) unless it holds these bytes already; in place, because /etc/hosts is a mount. Answers whether it changed.
    pub async fn write_file(&self, node: &Node, path: &str, bytes: &[u8], mode: u32) -> Result<bool, Error> {
        todo!()
    }
}
