//! The API server, its nodes, and pods that wait for images in vain.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::DynamicObject;
use serde_json::Value;

use super::measure::{gib, version};
use super::{Check, machine};
use crate::context::Context;
use crate::names;
use crate::quantity::bytes;
use crate::settings::Profile;

/// The first check; without it most others have no answer.
pub(crate) const SERVER: &str = "API server";
const NODES: &str = "nodes are Ready";
const MEMORY: &str = "memory";
const IMAGES: &str = "images can be had";
/// The oldest Kubernetes with everything that is used here (`ValidatingAdmissionPolicy` v1, which the Gateway API bundle carries).
const OLDEST: (u64, u64, u64) = (1, 30, 0);
/// What GitLab and its neighbours take at rest; measured on a small profile, and GitLab's own reference sizes.
const SMALL: u64 = 6 << 30;
const FULL: u64 = 16 << 30;
/// The namespaces whose pods are ours.
const NAMESPACES: [&str; 6] = [
    names::POSTGRESQL,
    names::CNPG_SYSTEM,
    names::REDIS,
    names::MINIO,
    names::OPENBAO,
    names::GITLAB,
];
/// Words that mean that trying again will not help.
const FINAL: [&str; 6] = [
    "not found",
    "manifest unknown",
    "denied",
    "unauthorized",
    "does not exist",
    "invalid reference",
];

pub(super) async fn checks(
    context: &Context,
    server: Result<String, blueprint_cluster::Error>,
) -> Vec<Check> {
    let server = match server {
        Ok(found) => found,
        Err(error) => {
            // Without a server the other questions have no answer, and each would only repeat this one.
            let hint = error.hint().unwrap_or_else(|| {
                "is the cluster running? `docker ps`, `kind get clusters`".to_owned()
            });
            return vec![Check::short(
                SERVER,
                format!("an answer from context {}", context.cluster.context()),
                chain(&error),
                hint,
            )];
        }
    };
    let mut all = vec![judge_version(&server)];
    match context.cluster.list("v1", "Node", None, "").await {
        Ok(nodes) => {
            all.push(judge_nodes(&nodes));
            all.push(judge_memory(&nodes, context.settings.profile));
        }
        Err(error) => all.push(Check::short(
            NODES,
            "the list of nodes",
            chain(&error),
            "check that your kubeconfig's user may list nodes",
        )),
    }
    all.extend(images(context).await);
    all
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn judge_version(server: &str) -> Check {
    match version(server) {
        Some(found) if found >= OLDEST => Check::passed(SERVER, server),
        _ => Check::short(
            SERVER,
            format!("Kubernetes {}.{} or newer", OLDEST.0, OLDEST.1),
            server,
            "recreate the cluster with the node image that VERSIONS.json pins",
        ),
    }
}

fn text<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a str> {
    object.data.pointer(pointer).and_then(Value::as_str)
}

fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

fn judge_nodes(nodes: &[DynamicObject]) -> Check {
    let unready: Vec<String> = nodes
        .iter()
        .filter_map(|node| unready(node).map(|why| format!("{}: {why}", name(node))))
        .collect();
    if nodes.is_empty() {
        return Check::short(
            NODES,
            "at least one node",
            "none",
            "recreate the cluster: `blueprint cluster create`",
        );
    }
    if unready.is_empty() {
        return Check::passed(NODES, format!("{} nodes", nodes.len()));
    }
    Check::short(
        NODES,
        "every node Ready and open for pods",
        unready.join("; "),
        "`kubectl describe node NAME` says why; after a reboot give the nodes a minute, `docker start NAME` starts a stopped one",
    )
}

fn unready(node: &DynamicObject) -> Option<String> {
    if node.data.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        return Some("cordoned (`kubectl uncordon` opens it)".to_owned());
    }
    let conditions = node
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array)?;
    let ready = conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"));
    match ready
        .and_then(|condition| condition.get("status"))
        .and_then(Value::as_str)
    {
        Some("True") => None,
        _ => Some(
            ready
                .and_then(|condition| condition.get("message"))
                .and_then(Value::as_str)
                .unwrap_or("not Ready")
                .to_owned(),
        ),
    }
}

/// Every kind node reports the whole machine's memory, so the largest node counts and not the sum.
fn judge_memory(nodes: &[DynamicObject], profile: Profile) -> Check {
    let wanted = match profile {
        Profile::Small => SMALL,
        Profile::Full => FULL,
    };
    let largest = nodes
        .iter()
        .filter_map(|node| text(node, "/status/allocatable/memory").and_then(bytes))
        .max();
    match largest {
        None => Check::noted(MEMORY, "no node says how much it has"),
        Some(found) if found >= wanted => Check::passed(MEMORY, gib(found)),
        Some(found) => Check::short(
            MEMORY,
            format!("{} for profile {}", gib(wanted), profile.name()),
            gib(found),
            "give the machine (or Docker Desktop's VM) more memory, or choose `profile: small` in blueprint.yaml",
        ),
    }
}

/// A container that waits for an image, in a pod of ours.
struct Waiting {
    image: String,
    pod: String,
    node: Option<String>,
    message: String,
}

/// Only what is certain: an image that VERSIONS.json still pins, that the registry has refused for good, and that is not on the node by now.
async fn images(context: &Context) -> Vec<Check> {
    let lists = join_all(
        NAMESPACES
            .iter()
            .map(|namespace| context.cluster.pods(namespace, "")),
    )
    .await;
    let waiting: Vec<Waiting> = lists
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|pod| waiting(&pod))
        .collect();
    if waiting.is_empty() {
        return vec![Check::passed(IMAGES, "no pod waits for an image")];
    }
    let mut all = Vec::new();
    for found in waiting {
        let pinned = context.versions.images.values().any(|pin| {
            found
                .image
                .starts_with(&format!("{}:{}", pin.repository, pin.tag))
        });
        let final_word = FINAL
            .iter()
            .any(|word| found.message.to_lowercase().contains(word));
        let told = format!("{} waits for {}: {}", found.pod, found.image, found.message);
        if pinned
            && final_word
            && !machine::has_image(context, found.node.as_deref(), &found.image).await
        {
            all.push(Check::short(
                IMAGES,
                format!("{} from its registry or on the nodes", found.image),
                told,
                "set another repository or tag under `images` in VERSIONS.json, or load the image with `kind load docker-image`",
            ));
        } else {
            all.push(Check::noted(IMAGES, told));
        }
    }
    all
}

fn waiting(pod: &Pod) -> Vec<Waiting> {
    let Some(status) = &pod.status else {
        return Vec::new();
    };
    let label = format!(
        "pod {}/{}",
        pod.metadata.namespace.as_deref().unwrap_or_default(),
        pod.metadata.name.as_deref().unwrap_or_default()
    );
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let containers = status
        .init_container_statuses
        .iter()
        .chain(&status.container_statuses)
        .flatten();
    containers
        .filter_map(|container| {
            back_off(container).map(|message| Waiting {
                image: container.image.clone(),
                pod: label.clone(),
                node: node.clone(),
                message,
            })
        })
        .collect()
}

fn back_off(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    matches!(
        reason,
        "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName"
    )
    .then(|| waiting.message.clone().unwrap_or_else(|| reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(ready: &str, memory: &str) -> DynamicObject {
        blueprint_cluster::object::from_value(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "lab-worker"},
            "status": {"allocatable": {"memory": memory}, "conditions": [{"type": "Ready", "status": ready, "message": "kubelet stopped posting"}]},
        }))
        .expect("a node")
    }

    fn found(check: &Check) -> &str {
        match check {
            Check::Short(short) => &short.found,
            other => panic!("expected a shortfall, got {other:?}"),
        }
    }

    #[test]
    fn an_old_server_is_named() {
        assert_eq!(found(&judge_version("v1.29.9")), "v1.29.9");
        assert!(matches!(judge_version("v1.35.4"), Check::Passed { .. }));
    }

    #[test]
    fn a_node_that_is_not_ready_is_named_with_its_reason() {
        assert!(
            found(&judge_nodes(&[node("True", "8Gi"), node("Unknown", "8Gi")]))
                .contains("lab-worker: kubelet stopped posting")
        );
        assert!(matches!(
            judge_nodes(&[node("True", "8Gi")]),
            Check::Passed { .. }
        ));
        assert_eq!(found(&judge_nodes(&[])), "none");
    }

    #[test]
    fn memory_is_the_machines_and_not_the_sum_over_kind_nodes() {
        let three = [
            node("True", "4Gi"),
            node("True", "4Gi"),
            node("True", "4Gi"),
        ];
        assert_eq!(found(&judge_memory(&three, Profile::Small)), "4.0 GiB");
        assert!(matches!(
            judge_memory(&[node("True", "8Gi")], Profile::Small),
            Check::Passed { .. }
        ));
        assert!(matches!(
            judge_memory(&[node("True", "8Gi")], Profile::Full),
            Check::Short(_)
        ));
    }

    #[test]
    fn an_image_that_no_longer_exists_is_found_in_a_waiting_container() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "redis-master-0", "namespace": "redis"},
            "spec": {"nodeName": "lab-worker", "containers": []},
            "status": {"containerStatuses": [{
                "name": "redis", "image": "docker.io/bitnami/redis:7", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image: ErrImagePull: docker.io/bitnami/redis:7: not found"}},
            }]},
        }))
        .expect("a pod");
        let found = waiting(&pod);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].pod.as_str(), found[0].image.as_str()),
            ("pod redis/redis-master-0", "docker.io/bitnami/redis:7")
        );
    }
}
