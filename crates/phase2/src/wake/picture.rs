//! What in the API's picture is older than the nodes' last start. Pure; each answers what is old, in words.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::Value;

use super::Starts;

/// A node that its kubelet has not reported on since the container started, at its present address. (The node controller takes 40 s to doubt an old report.)
pub(super) fn old_node(nodes: &[DynamicObject], starts: &Starts) -> Option<String> {
    nodes.iter().find_map(|node| {
        let name = name(node);
        let running = starts.get(name)?;
        let ready = list(node, "/status/conditions").find(|condition| condition["type"] == "Ready");
        let reported = ready
            .and_then(|ready| moment(&ready["lastHeartbeatTime"]))
            .is_some_and(|at| at >= running.started);
        if !reported {
            return Some(format!(
                "node {name}: its kubelet has not reported since the start"
            ));
        }
        if ready.is_none_or(|ready| ready["status"] != "True") {
            let why = ready
                .and_then(|ready| ready["message"].as_str())
                .unwrap_or("no reason given");
            return Some(format!("node {name} is not Ready: {why}"));
        }
        let address = running.address?.to_string();
        let known = list(node, "/status/addresses")
            .any(|known| known["type"] == "InternalIP" && known["address"] == address.as_str());
        (!known).then(|| format!("node {name} is still known by its former address"))
    })
}

/// A pod whose containers are said to run since before their node started.
pub(super) fn old_pod(pods: &[DynamicObject], starts: &Starts) -> Option<String> {
    pods.iter().find_map(|pod| {
        let running = starts.get(pod.data.pointer("/spec/nodeName")?.as_str()?)?;
        let old = list(pod, "/status/containerStatuses")
            .filter_map(|status| moment(&status["state"]["running"]["startedAt"]))
            .any(|at| at < running.started);
        (old && pod.metadata.deletion_timestamp.is_none()).then(|| {
            format!(
                "pod {}/{} has not been started again yet",
                pod.metadata.namespace.as_deref().unwrap_or_default(),
                name(pod)
            )
        })
    })
}

/// A `ReplicaSet` or StatefulSet that counts other ready pods than there are: its controller has not looked yet.
pub(super) fn old_count<'a>(
    owners: impl Iterator<Item = &'a DynamicObject>,
    pods: &[DynamicObject],
) -> Option<String> {
    let mut ready = BTreeMap::<&str, i64>::new();
    for pod in pods.iter().filter(|pod| is_ready(pod)) {
        for owner in pod.metadata.owner_references.iter().flatten() {
            *ready.entry(owner.uid.as_str()).or_default() += 1;
        }
    }
    owners.into_iter().find_map(|owner| {
        let counted = owner
            .data
            .pointer("/status/readyReplicas")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        let there = ready
            .get(owner.metadata.uid.as_deref()?)
            .copied()
            .unwrap_or(0);
        (counted != there).then(|| {
            format!(
                "the controllers still count {counted} ready pods of {}/{} where there are {there}",
                owner.metadata.namespace.as_deref().unwrap_or_default(),
                name(owner)
            )
        })
    })
}

fn is_ready(pod: &DynamicObject) -> bool {
    list(pod, "/status/conditions")
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn list<'a>(object: &'a DynamicObject, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object
        .data
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Running;
    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn starts() -> Starts {
        let running = Running {
            started: "2026-12-01T08:00:00.7Z".parse().unwrap(),
            address: Some([172, 18, 0, 3].into()),
        };
        Starts::from([("lab-worker".to_owned(), running)])
    }

    fn node(heartbeat: &str, status: &str, address: &str) -> DynamicObject {
        object(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lab-worker"}, "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": "lab-worker"}],
            "conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat, "message": "cni plugin not initialized"}]}}),
        )
    }

    fn pod(started: &str, ready: &str) -> DynamicObject {
        object(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "redis-master-0", "namespace": "redis", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "redis-master", "uid": "u1"}]},
            "spec": {"nodeName": "lab-worker"},
            "status": {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": [{"state": {"running": {"startedAt": started}}}]}}))
    }

    fn set(ready: i64) -> DynamicObject {
        object(
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "redis-master", "namespace": "redis", "uid": "u1"},
            "status": {"readyReplicas": ready}}),
        )
    }

    #[test]
    fn after_a_reboot_a_node_was_believed_ready_that_its_kubelet_had_not_reported_on() {
        let found = |node: DynamicObject| old_node(&[node], &starts());
        assert!(
            found(node("2026-12-01T07:59:58Z", "True", "172.18.0.3"))
                .unwrap()
                .contains("has not reported")
        );
        assert!(
            found(node("2026-12-01T08:00:09Z", "False", "172.18.0.3"))
                .unwrap()
                .contains("cni plugin")
        );
        assert_eq!(
            found(node("2026-12-01T08:00:09Z", "True", "172.18.0.3")),
            None
        );
    }

    #[test]
    fn nodes_that_swapped_their_addresses_are_waited_for() {
        let swapped = node("2026-12-01T08:00:09Z", "True", "172.18.0.4");
        assert!(
            old_node(&[swapped], &starts())
                .unwrap()
                .contains("former address")
        );
    }

    #[test]
    fn a_pod_that_ran_before_its_node_started_does_not_run() {
        assert!(
            old_pod(&[pod("2026-12-01T07:00:00Z", "True")], &starts())
                .unwrap()
                .contains("redis/redis-master-0")
        );
        assert_eq!(
            old_pod(&[pod("2026-12-01T08:00:12Z", "False")], &starts()),
            None
        );
        assert_eq!(
            old_pod(&[pod("2026-12-01T07:00:00Z", "True")], &Starts::new()),
            None
        );
    }

    #[test]
    fn a_set_that_counts_pods_of_before_the_reboot_is_not_believed() {
        let fresh = [pod("2026-12-01T08:00:12Z", "False")];
        assert!(
            old_count([set(1)].iter(), &fresh)
                .unwrap()
                .contains("count 1 ready pods of redis/redis-master where there are 0")
        );
        assert_eq!(old_count([set(0)].iter(), &fresh), None);
        assert_eq!(
            old_count([set(1)].iter(), &[pod("2026-12-01T08:00:12Z", "True")]),
            None
        );
    }
}
