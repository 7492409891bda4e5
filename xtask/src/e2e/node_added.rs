//! A node that joins a cluster which is installed already. kind has no command for it, so this does what kind does when it creates one.

use super::doctor::Doctor;
use super::nodes;
use super::observer::{condition, items};
use super::pipeline::run_blueprint;
use super::{Evidence, Scene, expect};
use crate::error::{Error, Result};

const NAME: &str = "e2e-added-worker";
/// As kind runs a node (kind pkg/cluster/internal/providers/docker/provision.go), so far as it matters here.
const OPTIONS: [&str; 16] = [
    "--privileged",
    "--security-opt=seccomp=unconfined",
    "--security-opt=apparmor=unconfined",
    "--tmpfs=/tmp",
    "--tmpfs=/run",
    "--volume=/var",
    "--volume=/lib/modules:/lib/modules:ro",
    "--env=KIND_EXPERIMENTAL_CONTAINERD_SNAPSHOTTER",
    "--detach",
    "--tty",
    "--init=false",
    "--net=kind",
    "--cgroupns=private",
    "--label=io.x-k8s.kind.role=worker",
    "--hostname=e2e-added-worker",
    "--name=e2e-added-worker",
];

/// The container and the node, removed when dropped.
struct Added<'a, 'b>(&'a Scene<'b>);

impl Drop for Added<'_, '_> {
    fn drop(&mut self) {
        // What cannot be removed shows in the next check: a node that is not Ready.
        let _ = self
            .0
            .kubectl(["delete", "node", "--ignore-not-found", NAME])
            .output();
        let _ = nodes::docker(self.0, &["rm", "--force", "--volumes"], &[NAME.to_owned()]);
    }
}

pub(super) fn node_added(scene: &mut Scene) -> Result<Evidence> {
    let list = scene.objects(&[
        "nodes",
        "--selector",
        "node-role.kubernetes.io/control-plane",
    ])?;
    let plane = items(&list)
        .first()
        .and_then(|node| node["metadata"]["name"].as_str())
        .ok_or_else(|| Error::content("the list of nodes", "no control plane"))?
        .to_owned();
    let evidence = {
        let added = Added(scene);
        join(&added, &plane)?;
        Doctor::ask(scene, &[])?.must_blame("node-trust", &[NAME])?;
        let told = run_blueprint(scene, &["up", "--output", "plain"])?;
        let files = nodes::run(scene, NAME, &["ls", "/etc/containerd/certs.d"])?;
        expect(
            told.contains(NAME) && files.contains(nodes::REGISTRY),
            "trust on the new node, and said so",
            files,
        )?;
        let names = nodes::names(scene)?;
        let pinned = nodes::must_resolve_the_registry(scene, &names)?;
        Doctor::ask(scene, &[])?.must_be_clean()?;
        format!("{NAME} joined, blamed by doctor, trusted and pinned by `up`: {pinned}")
    };
    Doctor::ask(scene, &[])?.must_be_clean()?;
    Ok(evidence)
}

fn join(added: &Added, plane: &str) -> Result<()> {
    let scene = added.0;
    let shown =
        |format: &str| nodes::docker(scene, &["inspect", "--format", format], &[plane.to_owned()]);
    let image = shown("{{.Config.Image}}")?;
    let cluster = shown("{{index .Config.Labels \"io.x-k8s.kind.cluster\"}}")?;
    let storage = shown(
        r#"{{range .Mounts}}{{if eq .Destination "/var/local/shared"}}{{.Source}}{{end}}{{end}}"#,
    )?;
    scene
        .platform
        .engine()
        .docker()
        .arg("run")
        .args(OPTIONS)
        .arg(format!("--label=io.x-k8s.kind.cluster={cluster}"))
        .arg(format!("--volume={storage}:/var/local/shared"))
        .arg(image)
        .output()?;
    let command = nodes::run(
        scene,
        plane,
        &["kubeadm", "token", "create", "--print-join-command"],
    )?;
    // containerd may take a moment after the container's start; kubeadm asks it first.
    let script = format!(
        "until crictl version >/dev/null 2>&1; do sleep 0.2; done; {command} --ignore-preflight-errors=all"
    );
    nodes::run(scene, NAME, &["timeout", "120", "sh", "-c", &script])?;
    scene
        .kubectl([
            "wait",
            "node",
            NAME,
            "--for=condition=Ready",
            "--timeout=90s",
        ])
        .output()?;
    let node = scene.objects(&["node", NAME])?;
    expect(
        condition(&node, "Ready") == "True",
        "a Ready node",
        node["status"].to_string(),
    )
    .map(drop)
}
