//! The node containers as the engine shows them: addresses, files, routes.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::observer::items;
use super::{Scene, expect};
use crate::error::{Error, Result};

const ADDRESS: &str = "{{.Name}} {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
/// Between two looks at an API server that is just starting.
const POLL: Duration = Duration::from_millis(200);
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";
/// On the same file system, outside the folder that kubelet reads.
const MANIFEST_BESIDE: &str = "/etc/kubernetes/kube-apiserver.yaml.new";
const RESTARTS_WITHIN: Duration = Duration::from_mins(2);
pub(super) const REGISTRY: &str = "registry.local.example.net";

/// Names of the cluster's nodes.
pub(super) fn names(scene: &Scene) -> Result<Vec<String>> {
    let nodes = scene.objects(&["nodes"])?;
    Ok(items(&nodes)
        .into_iter()
        .filter_map(|node| node["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

/// Name to address.
pub(super) fn addresses(scene: &Scene, names: &[String]) -> Result<BTreeMap<String, String>> {
    let text = docker(scene, &["inspect", "--format", ADDRESS], names)?;
    Ok(text
        .lines()
        .filter_map(|line| line.trim_start_matches('/').split_once(' '))
        .map(|(name, address)| (name.to_owned(), address.to_owned()))
        .collect())
}

/// A docker command over nodes.
pub(super) fn docker(scene: &Scene, words: &[&str], names: &[String]) -> Result<String> {
    scene
        .platform
        .engine()
        .docker()
        .args(words)
        .args(names)
        .output()
}

/// A command in a node; its output.
pub(super) fn run(scene: &Scene, node: &str, command: &[&str]) -> Result<String> {
    scene
        .platform
        .engine()
        .docker()
        .args(["exec", node])
        .args(command)
        .output()
}

/// Restarts the API server by a change of its static pod's manifest: a container that is stopped comes back later each time (kubelet's back-off).
pub(super) fn restart_api_server(scene: &Scene) -> Result<()> {
    let names = names(scene)?;
    let control_plane = names
        .iter()
        .find(|name| name.ends_with("-control-plane"))
        .ok_or_else(|| Error::content("the nodes", "none is called …-control-plane"))?;
    let moment = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let script = format!(
        "sed -e '\\|e2e/restarted|d' -e 's|^  annotations:$|&\\n    e2e/restarted: \"{}\"|' {MANIFEST} > {MANIFEST_BESIDE} && mv {MANIFEST_BESIDE} {MANIFEST}",
        moment.as_millis()
    );
    let before = api_server_id(scene, control_plane)?;
    run(scene, control_plane, &["sh", "-c", &script])?;
    let begun = Instant::now();
    while begun.elapsed() < RESTARTS_WITHIN {
        if api_server_id(scene, control_plane)? != before {
            return Ok(());
        }
        thread::sleep(POLL);
    }
    Err(Error::Deadline {
        what: "kubelet to restart the API server".to_owned(),
        after: RESTARTS_WITHIN,
        seen: before,
    })
}

/// The running container of it; empty while there is none.
fn api_server_id(scene: &Scene, control_plane: &str) -> Result<String> {
    let ids = ["crictl", "ps", "--quiet", "--name", "^kube-apiserver$"];
    run(scene, control_plane, &ids)
}

/// The address that a node itself finds for the registry; empty where it finds none.
pub(super) fn registry_on(scene: &Scene, node: &str) -> String {
    let found = run(scene, node, &["getent", "hosts", REGISTRY]).unwrap_or_default();
    found
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Every node resolves the registry to the Gateway's Service.
pub(super) fn must_resolve_the_registry(scene: &Scene, names: &[String]) -> Result<String> {
    let service = scene.objects(&["service", "--namespace", "gitlab", "gitlab-gateway"])?;
    let wanted = service["spec"]["clusterIP"].as_str().unwrap_or_default();
    let wrong: Vec<String> = names
        .iter()
        .map(|node| (node, registry_on(scene, node)))
        .filter(|(_, found)| found != wanted)
        .map(|(node, found)| format!("{node} finds {found:?}"))
        .collect();
    expect(
        !wanted.is_empty() && wrong.is_empty(),
        &format!("{REGISTRY} at {wanted} on every node"),
        if wrong.is_empty() {
            format!("{REGISTRY} at {wanted} on {} nodes", names.len())
        } else {
            wrong.join("; ")
        },
    )
}

/// Every node has a route to the pods of every other one, by its present address. Only the lab's network is made of routes.
pub(super) fn must_be_routed(scene: &Scene, addresses: &BTreeMap<String, String>) -> Result<()> {
    if !scene.platform.engine().is_lab() {
        return Ok(());
    }
    let nodes = scene.objects(&["nodes"])?;
    let mut missing = Vec::new();
    for here in addresses.keys() {
        for other in items(&nodes) {
            let name = other["metadata"]["name"].as_str().unwrap_or_default();
            let (Some(via), Some(pods)) = (addresses.get(name), other["spec"]["podCIDR"].as_str())
            else {
                continue;
            };
            if name != here
                && run(scene, here, &["ip", "route", "show", pods, "via", via])?.is_empty()
            {
                missing.push(format!("{here} has no route to {pods} via {via}"));
            }
        }
    }
    expect(
        missing.is_empty(),
        "a route from every node to every other one's pods",
        missing.join("; "),
    )
    .map(drop)
}

/// Pods of ours that are not Ready, by kubectl.
pub(super) fn unready_pods(scene: &Scene) -> Result<Vec<String>> {
    let pods = scene.objects(&["pods", "--all-namespaces"])?;
    let unready = |pod: &serde_json::Value| {
        let lasting = pod["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|owner| owner["kind"] != "Job");
        lasting
            && pod["status"]["phase"] != "Succeeded"
            && super::observer::condition(pod, "Ready") != "True"
    };
    Ok(items(&pods)
        .into_iter()
        .filter(|pod| unready(pod))
        .map(|pod| {
            format!(
                "{}/{}",
                pod["metadata"]["namespace"].as_str().unwrap_or("?"),
                pod["metadata"]["name"].as_str().unwrap_or("?")
            )
        })
        .collect())
}

/// Waits until the API server calls itself ready; answers when that was.
pub(super) fn api_answers(scene: &Scene, within: Duration) -> Result<Instant> {
    let begun = Instant::now();
    while begun.elapsed() < within {
        if scene.kubectl(["get", "--raw", "/readyz"]).succeeds() {
            return Ok(Instant::now());
        }
        thread::sleep(POLL);
    }
    Err(Error::Deadline {
        what: "an answer from the API server".to_owned(),
        after: within,
        seen: String::new(),
    })
}
