//! Step 13a: the registry's name and its token realm's in every node's /etc/hosts.
//!
//! The kubelet's image pulls do not ask CoreDNS: containerd resolves names with the node's own resolver. A restarted node has lost the line (the engine rewrites
//! the file); the next `up` puts it back.

mod hosts_file;
mod pull;

use std::time::Duration;

use async_trait::async_trait;
use blueprint_cluster::{Node, Nodes};
use blueprint_pipeline::Outcome;
use futures::future::{join_all, try_join_all};

use crate::context::Context;
use crate::coredns_patch::gateway_address;
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::kind_node_trust::kubernetes_nodes;
use crate::marked_block::{self, MarkerError};
use crate::removal::Removal;
use crate::smoke::CheckResult;

use pull::Answer;

const HOSTS: &str = "/etc/hosts";

/// The smoke row that the facts add to the table.
pub const ROW: &str = "Registry reachable from every node";

/// The installer of task `registry-pin`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RegistryDnsPin;

#[async_trait]
impl Installer for RegistryDnsPin {
    fn id(&self) -> &'static str {
        "registry-pin"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let context = work.context;
        let nodes = context.nodes()?;
        let Ok(address) = gateway_address(context).await else {
            return Ok(State::Missing);
        };
        let mut differs = Vec::new();
        for node in kubernetes_nodes(nodes).await? {
            let (current, wanted) = edit(context, nodes, &node, &address).await?;
            if current != wanted {
                differs.push(format!("{}'s /etc/hosts lacks the registry", node.name));
            }
        }
        Ok(if differs.is_empty() {
            State::Ready
        } else {
            State::Outdated(differs)
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let context = work.context;
        let nodes = context.nodes()?;
        let address = gateway_address(context).await?;
        let list = kubernetes_nodes(nodes).await?;
        let address = &address;
        let pinned = try_join_all(list.iter().map(|node| async move {
            let (current, wanted) = edit(context, nodes, node, address).await?;
            if current == wanted {
                return Ok::<_, Error>(None);
            }
            let changed = nodes
                .write_file(node, HOSTS, wanted.as_bytes(), 0o644)
                .await?;
            Ok(changed.then(|| {
                format!(
                    "pinned {} to {address} in {}'s /etc/hosts",
                    context.settings.host("registry"),
                    node.name
                )
            }))
        }))
        .await?;
        let mut outcome = Outcome::unchanged();
        outcome.changes.extend(pinned.into_iter().flatten());
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        let nodes = work.context.nodes()?;
        let mut found = Vec::new();
        for node in kubernetes_nodes(nodes).await? {
            let (current, without) = unpinned(nodes, &node).await?;
            if current != without {
                found.push(format!("our line in {}'s {HOSTS}", node.name));
            }
        }
        Ok(found)
    }

    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        let nodes = work.context.nodes()?;
        let mut outcome = Outcome::unchanged();
        for node in kubernetes_nodes(nodes).await? {
            let (current, without) = unpinned(nodes, &node).await?;
            if current != without {
                nodes
                    .write_file(&node, HOSTS, without.as_bytes(), 0o644)
                    .await?;
                outcome.changed(format!("took our line out of {}'s {HOSTS}", node.name));
            }
        }
        Ok(outcome)
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        let result = match reach(work.context).await {
            Ok(reached) => reached,
            Err(error) => Err(error.to_string()),
        };
        vec![CheckResult::from_result(ROW, result)]
    }
}

/// Waits until every node's containerd gets a registry's answer through the Gateway. Just after a rollout a ClusterIP may be unreachable for a few seconds, and
/// Go's resolver remembers a lost name for five.
pub(crate) async fn wait_reachable(work: Work<'_>, deadline: Duration) -> Result<String, Error> {
    let context = work.context;
    let seen = context
        .cluster
        .wait_until(
            "every node to reach the registry",
            deadline,
            Duration::from_secs(3),
            &|blocker| work.progress.waiting(blocker),
            || async { reach(context).await.map_err(into_cluster_error) },
        )
        .await?;
    Ok(seen)
}

/// An error that ends the wait; its hint is kept for the failure map by its words.
fn into_cluster_error(error: Error) -> blueprint_cluster::Error {
    match error {
        Error::Cluster(error) => error,
        other => blueprint_cluster::Error::Engine {
            action: "pull from the registry".to_owned(),
            source: Box::new(other),
        },
    }
}

/// Pulls on every node at once; `Ok(Err(…))` names the nodes that got no registry's answer.
async fn reach(context: &Context) -> Result<Result<String, String>, Error> {
    let nodes = context.nodes()?;
    let list = kubernetes_nodes(nodes).await?;
    let registry = context.settings.host("registry");
    let answers = join_all(list.iter().map(|node| pull::probe(nodes, node, &registry))).await;
    let mut wrong = Vec::new();
    let mut words = Vec::new();
    for (node, answer) in list.iter().zip(answers) {
        match answer? {
            Answer::Registry(word) => words.push(word),
            Answer::Broken(found) => wrong.push(format!("{}: {found}", node.name)),
        }
    }
    words.sort_unstable();
    words.dedup();
    Ok(if wrong.is_empty() {
        Ok(format!(
            "{} nodes, the registry answers a pull with: {}",
            list.len(),
            words.join(", ")
        ))
    } else {
        Err(wrong.join("; "))
    })
}

/// The file as it is, and as it was before us.
async fn unpinned(nodes: &Nodes, node: &Node) -> Result<(String, String), Error> {
    let current = hosts(nodes, node).await?;
    let without = marked_block::without(&current)
        .map_err(|found: MarkerError| torn(node, &found.to_string()))?;
    Ok((current, without))
}

async fn hosts(nodes: &Nodes, node: &Node) -> Result<String, Error> {
    let bytes = nodes.read_file(node, HOSTS).await?.unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| torn(node, "it is not text"))
}

async fn edit(
    context: &Context,
    nodes: &Nodes,
    node: &Node,
    address: &str,
) -> Result<(String, String), Error> {
    let current = hosts(nodes, node).await?;
    let names = [
        context.settings.host("registry"),
        context.settings.host("gitlab"),
    ];
    let wanted = hosts_file::with_pin(&current, address, &names)
        .map_err(|found: MarkerError| torn(node, &found.to_string()))?;
    Ok((current, wanted))
}

fn torn(node: &Node, found: &str) -> Error {
    Error::Refused {
        summary: format!("/etc/hosts of {} will not be edited", node.name),
        expected: "a text file whose `# blueprint:` markers pair up".to_owned(),
        found: found.to_owned(),
        hint: format!(
            "look at it with `docker exec -it {0} vi /etc/hosts`, or restart the node (`docker restart {0}`), which writes the file anew",
            node.name
        ),
    }
}
