//! After a reboot: what must be true again before a look at the cluster can be believed.
//!
//! An API server that has just started serves what its store held when the machine went down: nodes that are Ready, pods that run, counts that fit. Nothing of it
//! need be so. The kubelets and the controllers put it right piece by piece, the controllers only when the lease of their former selves has run out (15 s). A run
//! that believed the old picture would be green in a cluster that is still starting, or talk to pods that are gone.

mod picture;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blueprint_cluster::{Node, Nodes};
use blueprint_pipeline::Outcome;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};

use crate::context::Context;
use crate::error::Error;

/// Nodes that run for longer than this have caught up, whatever happened.
const RECENT: SignedDuration = SignedDuration::from_mins(10);
/// On a slow machine: from the containers' start to kubelets that have looked at every pod, about 45 s were measured.
const DEADLINE: Duration = Duration::from_mins(3);
const PAUSE: Duration = Duration::from_millis(500);
/// The API server's own probes are as patient.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A running node container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Running {
    /// Since when.
    pub(crate) started: Timestamp,
    /// Its address now; it may have been another node's before.
    pub(crate) address: Option<IpAddr>,
}

/// Node name to what the engine says of its container.
pub(crate) type Starts = BTreeMap<String, Running>;

/// Starts node containers that stand still and, when any of them has started a short while ago, waits until the cluster knows. `say` gets what is being
/// waited for. What does not come back is pre-flight's to tell, with everything else that is wanting, so the wait's end is no error.
pub async fn wake(
    context: &Context,
    say: &(dyn Fn(String) + Send + Sync),
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    let Some(nodes) = &context.nodes else {
        return Ok(outcome);
    };
    let stopped: Vec<Node> = nodes
        .list()
        .await?
        .into_iter()
        .filter(|node| !node.running)
        .collect();
    for node in &stopped {
        nodes.start(node).await?;
        outcome.changed(format!("started node container {}", node.name));
    }
    let starts = starts(nodes).await;
    let Some(newest) = newest(&starts, Timestamp::now()) else {
        return Ok(outcome);
    };
    let began = Timestamp::now();
    let waited = AtomicBool::new(false);
    let tell = |blocker: String| {
        waited.store(true, Ordering::Relaxed);
        say(blocker);
    };
    let starts = &starts;
    let caught_up = context
        .cluster
        .wait_until(
            "the cluster to catch up with its nodes' start",
            DEADLINE,
            PAUSE,
            &tell,
            || async move { Ok(lag(context, starts).await.map_or(Ok(()), Err)) },
        )
        .await;
    if waited.into_inner() {
        let took = seconds(Timestamp::now().duration_since(began));
        let since = seconds(began.duration_since(newest));
        outcome.note(match caught_up {
            Ok(()) => format!(
                "the nodes were started {since} s ago; waited {took} s until the cluster had caught up"
            ),
            Err(error) => error.to_string(),
        });
    }
    Ok(outcome)
}

/// What of the API's picture is older than the nodes' last start; `None` when it can be believed, or when the engine cannot be asked.
pub(crate) async fn lagging(context: &Context) -> Option<String> {
    let starts = starts(context.nodes.as_ref()?).await;
    newest(&starts, Timestamp::now())?;
    lag(context, &starts).await
}

/// Of every node that runs. A container that cannot be looked at has no say.
pub(crate) async fn starts(nodes: &Nodes) -> Starts {
    let list = nodes.list().await.unwrap_or_default();
    let asked = join_all(list.iter().map(|node| nodes.started(node))).await;
    list.iter()
        .zip(asked)
        .filter(|(node, _)| node.running)
        .filter_map(|(node, started)| {
            let started = started.ok().flatten()?;
            let address = node.address;
            Some((node.name.clone(), Running { started, address }))
        })
        .collect()
}

/// The newest start, if it is recent.
fn newest(starts: &Starts, now: Timestamp) -> Option<Timestamp> {
    let newest = starts.values().map(|running| running.started).max()?;
    (now.duration_since(newest) < RECENT).then_some(newest)
}

async fn lag(context: &Context, starts: &Starts) -> Option<String> {
    let said = |error: blueprint_cluster::Error| {
        let cause = std::error::Error::source(&error)
            .map_or_else(String::new, |cause| format!(": {cause}"));
        format!("{error}{cause}")
    };
    let cluster = &context.cluster;
    match tokio::time::timeout(ANSWER_WITHIN, cluster.ready()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Some(said(error)),
        Err(_) => return Some("the API server does not answer".to_owned()),
    }
    let lists = Box::pin(async {
        tokio::try_join!(
            cluster.list("v1", "Node", None, ""),
            cluster.list("v1", "Pod", None, ""),
            cluster.list("apps/v1", "ReplicaSet", None, ""),
            cluster.list("apps/v1", "StatefulSet", None, ""),
        )
    })
    .await;
    match lists {
        Err(error) => Some(said(error)),
        Ok((nodes, pods, replica_sets, stateful_sets)) => picture::old_node(&nodes, starts)
            .or_else(|| picture::old_pod(&pods, starts))
            .or_else(|| picture::old_count(replica_sets.iter().chain(&stateful_sets), &pods)),
    }
}

fn seconds(duration: SignedDuration) -> i64 {
    duration.as_secs().max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(since: &str) -> Running {
        Running {
            started: since.parse().unwrap(),
            address: None,
        }
    }

    #[test]
    fn one_node_that_was_started_a_moment_ago_is_reason_enough() {
        let now: Timestamp = "2026-12-01T08:00:00Z".parse().unwrap();
        let mut starts = Starts::from([("cp".to_owned(), running("2026-11-30T08:00:00Z"))]);
        assert_eq!(newest(&starts, now), None);
        starts.insert("w".to_owned(), running("2026-12-01T07:55:00Z"));
        assert_eq!(
            newest(&starts, now),
            Some("2026-12-01T07:55:00Z".parse().unwrap())
        );
        assert_eq!(newest(&Starts::new(), now), None);
    }
}
