//! A control plane, a workspace and the controllers that the steps wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use blueprint_cluster::Cluster;
use blueprint_cluster::control_plane::ControlPlane;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{end_state, lines};
use crate::support::Fixture;
use crate::{gateway, local_path};

/// The child's workspace and kubeconfig.
pub(super) const FOLDER: &str = "BLUEPRINT_TEST_SWEEP_FOLDER";
pub(super) const KUBECONFIG: &str = "BLUEPRINT_TEST_SWEEP_KUBECONFIG";
/// What the last run that came to its end changed, one a line.
pub(super) const CHANGES: &str = "changes";

/// How a child ended. Anything else than these two is a fault.
pub(super) enum Ended {
    /// At a failpoint.
    Died,
    /// With its changes.
    Well(usize),
}

impl Ended {
    pub(super) fn changes(&self) -> usize {
        match self {
            Self::Died => panic!("it died"),
            Self::Well(changes) => *changes,
        }
    }
}

pub(super) struct Stage {
    fixture: Fixture,
    control_plane: ControlPlane,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    pub(super) fn new() -> Self {
        let mut fixture = gateway::fixture("sweep");
        fixture.manifest("local-path", local_path::MANIFEST);
        fixture.write_versions();
        let stage = Self {
            fixture,
            control_plane: ControlPlane::start().unwrap(),
            runtime: tokio::runtime::Runtime::new().unwrap(),
        };
        stage.runtime.block_on(async {
            let cluster = stage.control_plane.cluster().await;
            for manifest in kinds_own() {
                cluster.apply_as("kind", &manifest).await.unwrap();
            }
            tokio::spawn(play_controllers(cluster));
        });
        stage
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.fixture.path().join(name)
    }

    pub(super) fn wildcard(&self) -> PathBuf {
        blueprint_phase2::Workspace::at(self.fixture.path()).wildcard()
    }

    /// One run, with this order to die.
    pub(super) fn run(&self, order: &str) -> Ended {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "sweep::a_run_that_may_die",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(FOLDER, self.fixture.path())
            .env(KUBECONFIG, self.control_plane.kubeconfig())
            .env("BLUEPRINT_FAILPOINT", order)
            .env("BLUEPRINT_FAILPOINT_LOG", self.file("points"))
            .output()
            .unwrap();
        if output.status.success() {
            return Ended::Well(lines(&self.file(CHANGES)).len());
        }
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            output.status.code(),
            None,
            "a run failed instead of going on: {said}"
        );
        Ended::Died
    }

    /// Lets it come to its end and answers its points.
    pub(super) fn points(&self) -> BTreeSet<String> {
        assert!(matches!(self.run(""), Ended::Well(_)));
        lines(&self.file("points"))
    }

    pub(super) fn certificates(&self) -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(self.wildcard())
            .unwrap()
            .map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| {
                (
                    entry.file_name().into_string().unwrap(),
                    std::fs::read(entry.path()).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    }

    /// Objects and private files, without what differs between two installations.
    pub(super) fn end_state(&self) -> BTreeMap<String, String> {
        let mut seen = self
            .runtime
            .block_on(async { end_state::objects(&self.control_plane.cluster().await).await });
        end_state::files(&self.file("infra"), &mut seen);
        seen
    }
}

/// What a kind cluster has before anything of ours.
fn kinds_own() -> Vec<Value> {
    let pod = json!({"metadata": {"labels": {"k8s-app": "kube-dns"}}, "spec": {"containers": [{"name": "coredns", "image": "coredns:test"}]}});
    vec![
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "rancher.io/local-path",
            "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "coredns"},
            "data": {"Corefile": ".:53 {\n    errors\n    kubernetes cluster.local in-addr.arpa {\n       ttl 30\n    }\n    forward . /etc/resolv.conf\n}\n"}
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "coredns"},
            "spec": {"selector": {"matchLabels": {"k8s-app": "kube-dns"}}, "template": pod}
        }),
    ]
}

/// Deployments become ready and pods succeed, until the stage is left.
async fn play_controllers(cluster: Cluster) {
    let (deployments, pods) = (
        Api::<Deployment>::all(cluster.client()),
        Api::<Pod>::all(cluster.client()),
    );
    loop {
        for found in deployments
            .list(&ListParams::default())
            .await
            .into_iter()
            .flatten()
        {
            let (namespace, name) = place(&found.metadata);
            let status = json!({"status": {"observedGeneration": found.metadata.generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
            let api: Api<Deployment> = Api::namespaced(cluster.client(), &namespace);
            // An object that is gone by now needs no status.
            let _ = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                .await;
        }
        for found in pods
            .list(&ListParams::default())
            .await
            .into_iter()
            .flatten()
        {
            let (namespace, name) = place(&found.metadata);
            let api: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
            let _ = api
                .patch_status(
                    &name,
                    &PatchParams::default(),
                    &Patch::Merge(json!({"status": {"phase": "Succeeded"}})),
                )
                .await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn place(meta: &kube::api::ObjectMeta) -> (String, String) {
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}
