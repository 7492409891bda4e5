//! What the engine shows of an API server that does not answer: the containers of etcd and the API server on the control-plane nodes.

use blueprint_cluster::{Node, Nodes};
use futures::future::join_all;
use serde_json::Value;

use super::findings::Finding;
use crate::context::Context;
use crate::preflight::API_SERVER;

const PARTS: [&str; 2] = ["etcd", "kube-apiserver"];

/// Adds it to the finding about the API server.
pub(super) async fn explain(context: &Context, all: &mut [Finding]) {
    let Some(nodes) = &context.nodes else { return };
    let Some(finding) = all.iter_mut().find(|finding| finding.subject == API_SERVER) else {
        return;
    };
    let list = nodes.list().await.unwrap_or_default();
    let planes: Vec<&Node> = list
        .iter()
        .filter(|node| node.role == "control-plane")
        .collect();
    if planes.is_empty() {
        finding.evidence.push(format!(
            "the engine has no node container of cluster {}",
            context.settings.cluster
        ));
        finding.remedy = Some("create the cluster: `blueprint cluster create`, then `blueprint up`; data outlives a cluster".to_owned());
        return;
    }
    for plane in &planes {
        if plane.running {
            finding
                .evidence
                .extend(join_all(PARTS.iter().map(|part| part_state(nodes, plane, part))).await);
        } else {
            finding
                .evidence
                .push(format!("node container {} is stopped", plane.name));
            finding.cause = Some(
                "the engine or the machine was restarted, or somebody stopped the container"
                    .to_owned(),
            );
            finding.remedy = Some("`blueprint up` starts it and waits for it".to_owned());
        }
    }
}

async fn part_state(nodes: &Nodes, node: &Node, part: &str) -> String {
    let command = ["crictl", "ps", "--all", "--name", part, "--output", "json"];
    match nodes.run(node, &command, None).await {
        Ok(text) => format!("{part} on {}: {}", node.name, newest(&text)),
        Err(error) => format!("{part} on {}: {error}", node.name),
    }
}

/// crictl lists the newest first.
fn newest(json: &str) -> String {
    let list: Value = serde_json::from_str(json).unwrap_or_default();
    let Some(container) = list.pointer("/containers/0") else {
        return "no container, its kubelet has not started it".to_owned();
    };
    let state = container["state"]
        .as_str()
        .unwrap_or("unknown")
        .trim_start_matches("CONTAINER_")
        .to_lowercase();
    match container
        .pointer("/metadata/attempt")
        .and_then(Value::as_u64)
    {
        Some(attempt) if attempt > 0 => format!("{state}, started {} times", attempt + 1),
        _ => state,
    }
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_state_of_the_newest_container_counts() {
        let json = r#"{"containers": [{"state": "CONTAINER_EXITED", "metadata": {"name": "etcd", "attempt": 4}}, {"state": "CONTAINER_RUNNING"}]}"#;
        assert_eq!(newest(json), "exited, started 5 times");
        assert_eq!(
            newest(
                r#"{"containers": [{"state": "CONTAINER_RUNNING", "metadata": {"attempt": 0}}]}"#
            ),
            "running"
        );
        assert!(newest(r#"{"containers": []}"#).contains("no container"));
    }
}
