//! The machine under the nodes: container engine, node containers, inotify limits, disk, clock.

use std::collections::BTreeSet;

use blueprint_cluster::{Node, Nodes};
use futures::future::join_all;

use super::Check;
use super::measure::{df_free, gib, skew};
use crate::context::Context;
use crate::wildcard_certs;

const ENGINE: &str = "container engine";
const CONTAINERS: &str = "node containers";
const INOTIFY: &str = "inotify limits";
const DISK: &str = "disk under the storage root";
const CLOCK: &str = "clock";
const CERTIFICATE: &str = "clock against the certificate";
/// Defaults of 128 and 8192 run out with three nodes (kind.sigs.k8s.io, known issues: too many open files).
const LIMITS: [(&str, u64); 2] = [("max_user_instances", 512), ("max_user_watches", 524_288)];
const FREE: u64 = 5 << 30;
const SKEW_SECONDS: i64 = 60;

/// `answers`: whether the API server can be asked which nodes it knows.
pub(super) async fn checks(context: &Context, answers: bool) -> Vec<Check> {
    let mut all = vec![certificate(context)];
    let nodes = match context.nodes() {
        Ok(nodes) => nodes,
        Err(error) => {
            let hint = match &error {
                crate::Error::Cluster(error) => error.hint(),
                _ => None,
            };
            let hint = hint.unwrap_or_else(|| {
                "start Docker (or Podman) or set DOCKER_HOST to its unix socket".to_owned()
            });
            all.push(Check::short(
                ENGINE,
                "an engine that answers, for the node steps 4, 11 and 13",
                error.to_string(),
                hint,
            ));
            return all;
        }
    };
    match nodes.engine().await {
        Ok(found) => all.push(Check::passed(ENGINE, found)),
        Err(error) => {
            all.push(Check::short(
                ENGINE,
                "an engine that answers",
                error.to_string(),
                error.hint().unwrap_or_default(),
            ));
            return all;
        }
    }
    match nodes.list().await {
        Ok(list) => {
            let known: Vec<Node> = list
                .into_iter()
                .filter(|node| node.role != "external-load-balancer")
                .collect();
            let expected = if answers {
                kubernetes_names(context).await
            } else {
                BTreeSet::new()
            };
            all.push(judge_containers(
                &known,
                &expected,
                &context.settings.cluster,
            ));
            let running: Vec<Node> = known.into_iter().filter(|node| node.running).collect();
            if !running.is_empty() {
                all.extend(on_nodes(context, nodes, &running).await);
            }
        }
        Err(error) => all.push(Check::short(
            CONTAINERS,
            "the list of node containers",
            error.to_string(),
            error.hint().unwrap_or_default(),
        )),
    }
    all
}

/// Whether an image is on a node by now.
pub(super) async fn has_image(context: &Context, node: Option<&str>, image: &str) -> bool {
    let (Some(nodes), Some(name)) = (&context.nodes, node) else {
        return false;
    };
    let Ok(list) = nodes.list().await else {
        return false;
    };
    let Some(node) = list.iter().find(|node| node.name == name && node.running) else {
        return false;
    };
    nodes
        .exec(node, &["crictl", "inspecti", "-q", image], None)
        .await
        .is_ok_and(|output| output.code == 0)
}

async fn kubernetes_names(context: &Context) -> BTreeSet<String> {
    let nodes = context
        .cluster
        .list("v1", "Node", None, "")
        .await
        .unwrap_or_default();
    nodes
        .into_iter()
        .filter_map(|node| node.metadata.name)
        .collect()
}

/// `expected` are the Kubernetes nodes' names; empty when the API server did not say (another check does).
fn judge_containers(found: &[Node], expected: &BTreeSet<String>, cluster: &str) -> Check {
    let names: BTreeSet<String> = found.iter().map(|node| node.name.clone()).collect();
    let stopped: Vec<&str> = found
        .iter()
        .filter(|node| !node.running)
        .map(|node| node.name.as_str())
        .collect();
    if !stopped.is_empty() {
        return Check::short(
            CONTAINERS,
            "every node container running",
            format!("stopped: {}", stopped.join(", ")),
            format!("`docker start {}`", stopped.join(" ")),
        );
    }
    if names.is_empty() || (!expected.is_empty() && names != *expected) {
        let list = |names: &BTreeSet<String>| {
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.iter().cloned().collect::<Vec<_>>().join(", ")
            }
        };
        return Check::short(
            CONTAINERS,
            format!(
                "one container for each Kubernetes node ({})",
                list(expected)
            ),
            format!("containers of kind cluster {cluster}: {}", list(&names)),
            "the context and the engine must belong together: check `cluster:` in blueprint.yaml, `--context` and DOCKER_HOST",
        );
    }
    Check::passed(CONTAINERS, format!("{} containers", names.len()))
}

async fn on_nodes(context: &Context, nodes: &Nodes, running: &[Node]) -> Vec<Check> {
    let (limits, disk, clock) = tokio::join!(
        inotify(nodes, running),
        disk(context, nodes, running),
        clock(nodes, running)
    );
    vec![limits, disk, clock]
}

async fn inotify(nodes: &Nodes, running: &[Node]) -> Check {
    let paths = LIMITS.map(|(name, _)| format!("/proc/sys/fs/inotify/{name}"));
    let command = ["cat", paths[0].as_str(), paths[1].as_str()];
    let answers = join_all(running.iter().map(|node| nodes.run(node, &command, None))).await;
    let mut lowest: Option<[u64; 2]> = None;
    for answer in answers {
        let Ok(text) = answer else {
            return Check::noted(INOTIFY, "could not be read in the nodes");
        };
        let numbers: Vec<u64> = text
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        let [instances, watches] = numbers[..] else {
            return Check::noted(INOTIFY, "could not be read in the nodes");
        };
        lowest = Some(lowest.map_or([instances, watches], |low| {
            [low[0].min(instances), low[1].min(watches)]
        }));
    }
    judge_inotify(lowest.unwrap_or_default())
}

fn judge_inotify(found: [u64; 2]) -> Check {
    let told = LIMITS
        .iter()
        .zip(found)
        .map(|((name, _), found)| format!("{name} {found}"))
        .collect::<Vec<_>>()
        .join(", ");
    if LIMITS
        .iter()
        .zip(found)
        .all(|((_, wanted), found)| found >= *wanted)
    {
        return Check::passed(INOTIFY, told);
    }
    Check::short(
        INOTIFY,
        LIMITS
            .map(|(name, wanted)| format!("{name} {wanted} or more"))
            .join(", "),
        told,
        "on the host: `sysctl -w fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=1048576` (and in /etc/sysctl.d to keep it)",
    )
}

async fn disk(context: &Context, nodes: &Nodes, running: &[Node]) -> Check {
    let root = context.settings.storage_root.as_str();
    let command = ["df", "-Pk", root];
    let answers = join_all(running.iter().map(|node| nodes.exec(node, &command, None))).await;
    let mut least: Option<u64> = None;
    for (node, answer) in running.iter().zip(answers) {
        match answer {
            Ok(output) if output.code == 0 => {
                let Some(free) = df_free(&output.stdout) else {
                    return Check::noted(DISK, format!("{} gave no figure", node.name));
                };
                least = Some(least.map_or(free, |low| low.min(free)));
            }
            Ok(output) if output.stderr.contains("No such file") => {
                return Check::short(
                    DISK,
                    format!("{root} mounted in every node"),
                    format!("{} has no such folder", node.name),
                    "`extraMounts` of every node in infra/kind/cluster.yaml must mount it; the cluster must be recreated for that (`blueprint cluster create`)",
                );
            }
            Ok(_) | Err(_) => {
                return Check::noted(DISK, format!("could not be measured on {}", node.name));
            }
        }
    }
    judge_disk(least.unwrap_or_default())
}

fn judge_disk(free: u64) -> Check {
    if free >= FREE {
        return Check::passed(DISK, format!("{} free", gib(free)));
    }
    Check::short(
        DISK,
        format!("{} free", gib(FREE)),
        format!("{} free", gib(free)),
        "free space on the host's disk (`docker system prune` gives back unused images)",
    )
}

async fn clock(nodes: &Nodes, running: &[Node]) -> Check {
    let Some(node) = running.first() else {
        return Check::noted(CLOCK, "no node runs");
    };
    let before = jiff::Timestamp::now().as_second();
    let answer = nodes.run(node, &["date", "+%s"], None).await;
    let after = jiff::Timestamp::now().as_second();
    match answer.ok().and_then(|text| text.trim().parse::<i64>().ok()) {
        Some(theirs) => judge_clock(&node.name, skew(after, theirs, after - before)),
        None => Check::noted(CLOCK, format!("{} did not say its time", node.name)),
    }
}

fn judge_clock(node: &str, apart: i64) -> Check {
    if apart <= SKEW_SECONDS {
        return Check::passed(CLOCK, format!("{apart}s apart from {node}"));
    }
    Check::short(
        CLOCK,
        format!("this machine and the nodes within {SKEW_SECONDS}s"),
        format!("{apart}s apart from {node}"),
        "certificates made by the one are not valid yet, or not any more, for the other: set the clock (NTP), restart Docker Desktop's VM",
    )
}

fn certificate(context: &Context) -> Check {
    match wildcard_certs::starts_in(&context.workspace) {
        Some(seconds) if seconds > 0 => Check::short(
            CERTIFICATE,
            "the wildcard certificate to be valid already",
            format!("it starts in {seconds}s by this machine's clock"),
            "the clock is wrong: set it (NTP) before anything is made with it",
        ),
        Some(_) => Check::passed(CERTIFICATE, "valid already"),
        None => Check::passed(CERTIFICATE, "there is none yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, running: bool) -> Node {
        Node {
            name: name.to_owned(),
            role: "worker".to_owned(),
            address: None,
            running,
        }
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn is_short(check: &Check) -> bool {
        matches!(check, Check::Short(_))
    }

    #[test]
    fn the_engine_of_another_cluster_is_seen_by_the_names() {
        let here = [node("a-control-plane", true)];
        assert!(!is_short(&judge_containers(
            &here,
            &names(&["a-control-plane"]),
            "a"
        )));
        assert!(is_short(&judge_containers(
            &here,
            &names(&["b-control-plane"]),
            "a"
        )));
        assert!(is_short(&judge_containers(
            &[],
            &names(&["b-control-plane"]),
            "a"
        )));
        assert!(
            !is_short(&judge_containers(&here, &names(&[]), "a")),
            "an API server that did not answer is another check's matter"
        );
    }

    #[test]
    fn a_stopped_node_is_named_with_the_command_that_starts_it() {
        let Check::Short(short) =
            judge_containers(&[node("a-worker", false)], &names(&["a-worker"]), "a")
        else {
            panic!("must be found")
        };
        assert_eq!(short.hint, "`docker start a-worker`");
    }

    #[test]
    fn default_inotify_limits_are_too_low() {
        assert!(is_short(&judge_inotify([128, 1_048_576])));
        assert!(is_short(&judge_inotify([1024, 8192])));
        assert!(!is_short(&judge_inotify([512, 524_288])));
    }

    #[test]
    fn a_nearly_full_disk_and_a_wrong_clock_are_shortfalls() {
        assert!(is_short(&judge_disk(4 << 30)));
        assert!(!is_short(&judge_disk(6 << 30)));
        assert!(is_short(&judge_clock("a-worker", 61)));
        assert!(!is_short(&judge_clock("a-worker", 60)));
    }
}
