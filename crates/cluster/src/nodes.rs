//! The node containers of a kind cluster, over the container engine's API (labels `io.x-k8s.kind.cluster` and `io.x-k8s.kind.role`).

use std::collections::HashMap;
use std::net::IpAddr;

use blueprint_failpoint::failpoint;
use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::ListContainersOptions;

use crate::engine;
use crate::error::Error;
use crate::exec::ExecOutput;
use crate::node_exec::{self, RawOutput};

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

/// kind's labels (kind pkg/cluster/constants).
const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";
const ROLE_LABEL: &str = "io.x-k8s.kind.role";
/// kind's network (kind pkg/cluster/internal/providers/docker/network.go).
const NETWORK: &str = "kind";

/// What a script answers when there is no such file; cat's own exit code is 1 for every fault.
const NO_SUCH_FILE: i64 = 44;
/// `$1` is the path.
const READ: &str = r#"test -e "$1" || exit 44; exec cat -- "$1""#;
/// `$1` is the path, `$2` the mode, `$3` the length. All of the input is there before the file is touched: a run that is killed meanwhile cuts the input off,
/// and what stood in the file is somebody else's as well. In place, because /etc/hosts is a mount.
const WRITE: &str = r#"set -e
umask 077
new=$(mktemp)
trap 'rm -f -- "$new"' EXIT
cat > "$new"
given=$(wc -c < "$new")
test "$given" -eq "$3" || { echo "got $given of $3 bytes" >&2; exit 1; }
mkdir -p -- "$(dirname -- "$1")"
cat "$new" > "$1"
chmod "$2" "$1""#;

impl Nodes {
    /// Connects to the engine's socket: `DOCKER_HOST` if it is `unix://`, else the engine's usual sockets (Docker, rootless Docker, Podman), and pings it.
    pub async fn connect(cluster: &str) -> Result<Self, Error> {
        Ok(Self {
            docker: engine::connect().await?,
            cluster: cluster.to_owned(),
        })
    }

    /// The engine's name and version, for the pre-flight row.
    pub async fn engine(&self) -> Result<String, Error> {
        let version = self
            .docker
            .version()
            .await
            .map_err(|error| refused("ask the engine for its version", error))?;
        let name = version
            .platform
            .map(|platform| platform.name)
            .filter(|name| !name.is_empty());
        let name = name.or_else(|| {
            version
                .components
                .and_then(|components| components.into_iter().next())
                .map(|component| component.name)
        });
        Ok(format!(
            "{} {}",
            name.unwrap_or_else(|| "engine".to_owned()),
            version.version.unwrap_or_default()
        )
        .trim()
        .to_owned())
    }

    /// All nodes, sorted by name; those that are stopped too.
    pub async fn list(&self) -> Result<Vec<Node>, Error> {
        let label = format!("{CLUSTER_LABEL}={}", self.cluster);
        let filters = HashMap::from([("label".to_owned(), vec![label])]);
        let options = ListContainersOptions {
            all: true,
            filters: Some(filters),
            ..ListContainersOptions::default()
        };
        let containers = self
            .docker
            .list_containers(Some(options))
            .await
            .map_err(|error| refused("list the node containers", error))?;
        let mut nodes = containers.into_iter().filter_map(node).collect::<Vec<_>>();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }

    /// Runs a command as root in a node.
    pub async fn exec(
        &self,
        node: &Node,
        command: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<ExecOutput, Error> {
        let raw = self.exec_raw(node, command, stdin).await?;
        Ok(ExecOutput {
            code: raw.code,
            stdout: String::from_utf8_lossy(&raw.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&raw.stderr).into_owned(),
        })
    }

    /// The same, where any other exit code than 0 is an error.
    pub async fn run(
        &self,
        node: &Node,
        command: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<String, Error> {
        let raw = self.exec_raw(node, command, stdin).await?;
        if raw.code != 0 {
            return Err(failed(node, command, &raw));
        }
        Ok(String::from_utf8_lossy(&raw.stdout).into_owned())
    }

    /// [`Self::run`] for a command that changes the node; `command` holds no secret and nothing that differs between runs.
    pub async fn change(&self, node: &Node, command: &[&str]) -> Result<String, Error> {
        failpoint!(before, "run", "{} on {}", command.join(" "), node.name);
        let said = self.run(node, command, None).await?;
        failpoint!(after, "run", "{} on {}", command.join(" "), node.name);
        Ok(said)
    }

    /// A file's bytes; `None` if there is none.
    pub async fn read_file(&self, node: &Node, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let raw = self
            .exec_raw(node, &["sh", "-c", READ, "sh", path], None)
            .await?;
        match raw.code {
            0 => Ok(Some(raw.stdout)),
            NO_SUCH_FILE => Ok(None),
            _ => Err(failed(node, &["cat", path], &raw)),
        }
    }

    /// Writes a file (folders made) unless it holds these bytes and has this mode already; in place, because /etc/hosts is a mount.
    /// Answers whether it changed.
    pub async fn write_file(
        &self,
        node: &Node,
        path: &str,
        bytes: &[u8],
        mode: u32,
    ) -> Result<bool, Error> {
        let mode = format!("{mode:o}");
        if self.read_file(node, path).await?.as_deref() == Some(bytes) {
            let found = self
                .run(node, &["stat", "-c", "%a", "--", path], None)
                .await?;
            if found.trim() == mode {
                return Ok(false);
            }
        }
        let length = bytes.len().to_string();
        failpoint!(before, "write", "{path} on {}", node.name);
        let raw = self
            .exec_raw(
                node,
                &["sh", "-c", WRITE, "sh", path, &mode, &length],
                Some(bytes),
            )
            .await?;
        if raw.code != 0 {
            return Err(failed(node, &["write", path], &raw));
        }
        failpoint!(after, "write", "{path} on {}", node.name);
        Ok(true)
    }

    async fn exec_raw(
        &self,
        node: &Node,
        command: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<RawOutput, Error> {
        if !node.running {
            return Err(refused(
                &format!(
                    "run {} in node {}",
                    command.first().unwrap_or(&""),
                    node.name
                ),
                "the node container is stopped",
            ));
        }
        node_exec::run(&self.docker, &node.name, command, stdin)
            .await
            .map_err(|error| {
                refused(
                    &format!(
                        "run {} in node {}",
                        command.first().unwrap_or(&""),
                        node.name
                    ),
                    error,
                )
            })
    }
}

/// The engine's no to `action`.
pub(crate) fn refused(
    action: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::Engine {
        action: action.to_owned(),
        source: source.into(),
    }
}

fn failed(node: &Node, command: &[&str], raw: &RawOutput) -> Error {
    const LINES: usize = 5;
    let said = String::from_utf8_lossy(&raw.stderr);
    let lines = said.trim().lines().collect::<Vec<_>>();
    Error::Command {
        command: command.join(" "),
        place: format!("node {}", node.name),
        code: raw.code,
        stderr: lines[lines.len().saturating_sub(LINES)..].join("\n"),
    }
}

/// A load balancer in front of several control planes bears the cluster's label too, and is no node.
fn node(container: ContainerSummary) -> Option<Node> {
    let role = container.labels.as_ref()?.get(ROLE_LABEL)?.clone();
    if role != "control-plane" && role != "worker" {
        return None;
    }
    let name = container
        .names
        .as_ref()?
        .first()?
        .trim_start_matches('/')
        .to_owned();
    let networks = container
        .network_settings
        .and_then(|settings| settings.networks)
        .unwrap_or_default();
    let address = networks
        .get(NETWORK)
        .or_else(|| networks.values().next())
        .and_then(|endpoint| endpoint.ip_address.as_deref()?.parse().ok());
    Some(Node {
        name,
        role,
        address,
        running: container.state == Some(ContainerSummaryStateEnum::RUNNING),
    })
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
