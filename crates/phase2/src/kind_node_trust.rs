//! Step 11: containerd on every node trusts the CA for the domain's four hosts.
//!
//! One folder a host under /etc/containerd/certs.d, which containerd reads at each pull: no restart is needed for a new host, also not for the first one.

mod containerd;
mod removal;

use async_trait::async_trait;
use blueprint_cluster::{Node, Nodes};
use blueprint_pipeline::Outcome;
use futures::future::try_join_all;

use crate::context::Context;
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::removal::Removal;
use crate::smoke::CheckResult;
use crate::wildcard_certs;

use containerd::{CERTS_D, Registry};

const CONFIG: &str = "/etc/containerd/config.toml";
const CANDIDATE: &str = "/etc/containerd/config.toml.blueprint";
/// There while the file has been changed and containerd has not been restarted since.
const RESTART_DUE: &str = "/etc/containerd/blueprint-restart-due";
/// What [`CONFIG`] was before we set its `config_path`.
const BEFORE: &str = "/etc/containerd/config.toml.before-blueprint";
/// The first line of every `hosts.toml` of ours.
const HEADER: &str = "# Written by blueprint: the domain's own CA.";
/// In a [`CERTS_D`] that was not there before us; containerd looks only for folders of hosts in it.
const MADE: &str = "/etc/containerd/certs.d/.made-by-blueprint";
const HOSTS: [&str; 4] = ["gitlab", "registry", "kas", "minio"];

/// The smoke row that the facts add to the table.
pub const ROW: &str = "Nodes trust the wildcard CA";

/// The installer of task `node-trust`.
#[derive(Debug, Clone, Copy, Default)]
pub struct KindNodeTrust;

#[async_trait]
impl Installer for KindNodeTrust {
    fn id(&self) -> &'static str {
        "node-trust"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let context = work.context;
        let nodes = context.nodes()?;
        let Ok(ca) = wildcard_certs::ca_pem(&context.workspace) else {
            return Ok(State::Missing);
        };
        let differs = differing(context, nodes, &ca).await?;
        Ok(if differs.is_empty() {
            State::Ready
        } else {
            State::Outdated(differs)
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let context = work.context;
        let nodes = context.nodes()?;
        let ca = wildcard_certs::ca_pem(&context.workspace)?;
        let files = files(context, &ca);
        let list = kubernetes_nodes(nodes).await?;
        let changes = try_join_all(list.iter().map(|node| trust(nodes, node, &files))).await?;
        Ok(Outcome {
            changes: changes.into_iter().flatten().collect(),
            notes: Vec::new(),
        })
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::remains(work).await
    }

    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::run(work).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        let result = match seen(work.context).await {
            Ok(seen) => seen,
            Err(error) => Err(error.to_string()),
        };
        vec![CheckResult::from_result(ROW, result)]
    }
}

/// The containers that are Kubernetes nodes (kind may add a load balancer), all running.
pub(crate) async fn kubernetes_nodes(nodes: &Nodes) -> Result<Vec<Node>, Error> {
    let list: Vec<Node> = nodes
        .list()
        .await?
        .into_iter()
        .filter(|node| matches!(node.role.as_str(), "control-plane" | "worker"))
        .collect();
    if let Some(stopped) = list.iter().find(|node| !node.running) {
        return Err(Error::Failed {
            action: format!("reach node {}", stopped.name),
            found: "its container is stopped".to_owned(),
            hint: format!(
                "start it with `docker start {}` and run `blueprint up` again",
                stopped.name
            ),
        });
    }
    if list.is_empty() {
        return Err(Error::Failed {
            action: "find the node containers".to_owned(),
            found: "the container engine knows none of this cluster".to_owned(),
            hint: "check `cluster:` in blueprint.yaml against `kind get clusters`, and DOCKER_HOST"
                .to_owned(),
        });
    }
    Ok(list)
}

/// Path and content, for every host.
fn files(context: &Context, ca: &str) -> Vec<(String, Vec<u8>)> {
    HOSTS
        .iter()
        .flat_map(|name| {
            let host = context.settings.host(name);
            let folder = format!("{CERTS_D}/{host}");
            [
                (format!("{folder}/ca.pem"), ca.as_bytes().to_vec()),
                (
                    format!("{folder}/hosts.toml"),
                    hosts_toml(&host).into_bytes(),
                ),
            ]
        })
        .collect()
}

/// The CA's path is absolute (containerd 1.x ignores a relative one), the host has a table (2.x refuses a file without one), and `push` is a capability (without it pushes
/// ignore the CA).
fn hosts_toml(host: &str) -> String {
    format!(
        "{HEADER}\nserver = \"https://{host}\"\n\n[host.\"https://{host}\"]\n  capabilities = [\"pull\", \"resolve\", \"push\"]\n  ca = \"{CERTS_D}/{host}/ca.pem\"\n"
    )
}

async fn trust(
    nodes: &Nodes,
    node: &Node,
    files: &[(String, Vec<u8>)],
) -> Result<Vec<String>, Error> {
    let mut changes = Vec::new();
    changes.extend(ensure_config_path(nodes, node).await?);
    let there = nodes.exec(node, &["test", "-d", CERTS_D], None).await?;
    if there.code != 0 {
        nodes.write_file(node, MADE, b"", 0o644).await?;
    }
    let mut written = 0;
    for (path, bytes) in files {
        if nodes.write_file(node, path, bytes, 0o644).await? {
            written += 1;
        }
    }
    if written > 0 {
        changes.push(format!(
            "wrote {written} files under {CERTS_D} on {}",
            node.name
        ));
    }
    Ok(changes)
}

async fn ensure_config_path(nodes: &Nodes, node: &Node) -> Result<Option<String>, Error> {
    let dump = nodes
        .run(node, &["containerd", "config", "dump"], None)
        .await?;
    match containerd::judge(&dump) {
        Registry::Ready => finish_restart(nodes, node).await,
        Registry::Missing => add_config_path(nodes, node).await.map(Some),
        Registry::Elsewhere(path) => Err(refusal(node, &format!("it is {path}"))),
        Registry::Mirrors(table) => Err(refusal(
            node,
            &format!("there is a table {table}, and containerd refuses to load with both"),
        )),
    }
}

/// Adds the setting to a file that has no registry table, after containerd itself has read the candidate. This is the one case in which containerd is restarted.
async fn add_config_path(nodes: &Nodes, node: &Node) -> Result<String, Error> {
    let bytes = nodes.read_file(node, CONFIG).await?.unwrap_or_default();
    let candidate = std::str::from_utf8(&bytes)
        .ok()
        .and_then(containerd::with_config_path);
    let Some(candidate) = candidate else {
        return Err(refusal(
            node,
            &format!("{CONFIG} has a registry table without it"),
        ));
    };
    nodes
        .write_file(node, CANDIDATE, candidate.as_bytes(), 0o644)
        .await?;
    let dump = nodes
        .exec(
            node,
            &["containerd", "--config", CANDIDATE, "config", "dump"],
            None,
        )
        .await;
    nodes.change(node, &["rm", "-f", CANDIDATE]).await?;
    if containerd::judge(&dump?.stdout) != Registry::Ready {
        return Err(refusal(
            node,
            "containerd does not take it when it is added",
        ));
    }
    // A run that is cut off between the two would leave a containerd that has not read what its file says by now.
    nodes.write_file(node, RESTART_DUE, b"\n", 0o644).await?;
    nodes.write_file(node, BEFORE, &bytes, 0o644).await?;
    nodes
        .write_file(node, CONFIG, candidate.as_bytes(), 0o644)
        .await?;
    restart(nodes, node).await?;
    Ok(format!(
        "set config_path in {CONFIG} on {} and restarted containerd",
        node.name
    ))
}

/// The restart that a run which was cut off still owes.
async fn finish_restart(nodes: &Nodes, node: &Node) -> Result<Option<String>, Error> {
    if nodes.read_file(node, RESTART_DUE).await?.is_none() {
        return Ok(None);
    }
    restart(nodes, node).await?;
    Ok(Some(format!(
        "restarted containerd on {}, which an earlier run was kept from",
        node.name
    )))
}

async fn restart(nodes: &Nodes, node: &Node) -> Result<(), Error> {
    nodes
        .change(node, &["systemctl", "restart", "containerd"])
        .await?;
    nodes.change(node, &["rm", "-f", RESTART_DUE]).await?;
    Ok(())
}

fn refusal(node: &Node, found: &str) -> Error {
    Error::Refused {
        summary: format!("containerd on {} does not read {CERTS_D}", node.name),
        expected: format!(
            "`config_path = \"{CERTS_D}\"` in the CRI plugin's registry table, and no mirrors or configs tables beside it"
        ),
        found: found.to_owned(),
        hint: format!(
            "move mirrors into {CERTS_D}/<host>/hosts.toml and set config_path in kind's containerdConfigPatches (infra/kind/cluster.yaml), then recreate the cluster \
             (`blueprint cluster delete`, `blueprint cluster create`, `blueprint up`; data outlives it)"
        ),
    }
}

async fn differing(context: &Context, nodes: &Nodes, ca: &str) -> Result<Vec<String>, Error> {
    let files = files(context, ca);
    let list = kubernetes_nodes(nodes).await?;
    let files = &files;
    let found = try_join_all(list.iter().map(|node| async move {
        for (path, wanted) in files {
            if nodes.read_file(node, path).await?.as_deref() != Some(wanted.as_slice()) {
                return Ok::<_, Error>(Some(format!(
                    "{}: {path} is missing or different",
                    node.name
                )));
            }
        }
        Ok(None)
    }))
    .await?;
    Ok(found.into_iter().flatten().collect())
}

async fn seen(context: &Context) -> Result<Result<String, String>, Error> {
    let nodes = context.nodes()?;
    let ca = wildcard_certs::ca_pem(&context.workspace)?;
    let differs = differing(context, nodes, &ca).await?;
    Ok(if differs.is_empty() {
        Ok(format!("{} hosts on every node", HOSTS.len()))
    } else {
        Err(differs.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_toml_says_what_every_containerd_needs() {
        let text = hosts_toml("registry.local.example.net");
        assert!(text.contains("server = \"https://registry.local.example.net\"\n"));
        assert!(text.contains("\n[host.\"https://registry.local.example.net\"]\n"));
        assert!(text.contains("capabilities = [\"pull\", \"resolve\", \"push\"]"));
        assert!(
            text.contains("ca = \"/etc/containerd/certs.d/registry.local.example.net/ca.pem\"")
        );
    }
}
