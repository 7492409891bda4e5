//! Changing calls against a real API server.

use std::path::Path;
use std::time::Duration;

use blueprint_charts::{Helm, HelmError};
use blueprint_cluster::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::{Bench, helm_binary};

const CONFIG_MAP: &str =
    "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata: {a: {{ .Values.a | quote }}}\n";
/// Nothing runs Jobs here, so it never ends.
const HOOK: &str = "kind: Job
apiVersion: batch/v1
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: x, image: x}]}}}
";

impl Bench {
    /// The bench with the tests' API server behind it.
    fn on(control_plane: &ControlPlane) -> Self {
        let mut bench = Self::new();
        let state = bench.folder.path().join("state");
        bench.helm = Helm::locate(
            Some(&helm_binary()),
            Some(&control_plane.kubeconfig()),
            None,
            &state,
        )
        .unwrap();
        bench
    }
}

/// Makes a namespace; its name, for a release in it.
async fn namespace(control_plane: &ControlPlane, name: &str) -> String {
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let cluster = control_plane.cluster().await;
    cluster.apply(&manifest).await.unwrap();
    name.to_owned()
}

/// Revision, status and our label of each release record.
async fn records(client: kube::Client, namespace: &str) -> Vec<String> {
    let found = Api::<Secret>::namespaced(client, namespace)
        .list(&ListParams::default().labels("owner=helm"))
        .await
        .unwrap();
    let mut records: Vec<String> = found
        .items
        .into_iter()
        .map(|secret| {
            let labels = secret.metadata.labels.unwrap_or_default();
            let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
            format!(
                "{} {} {}",
                label("version"),
                label("status"),
                label("blueprint-inputs")
            )
        })
        .collect();
    records.sort();
    records
}

#[tokio::test]
async fn a_release_is_installed_upgraded_rolled_back_and_removed() {
    let control_plane = ControlPlane::shared();
    let client = control_plane.cluster().await.client();
    let bench = Bench::on(control_plane);
    bench.chart_file("templates/x.yaml", CONFIG_MAP);
    let mut release = bench.release(json!({"a": "1"}));
    release.namespace = namespace(control_plane, "release-life").await;
    bench.helm.upgrade_install(&release).await.unwrap();
    release.values = json!({"a": "2"});
    release.labels = vec![("blueprint-inputs".to_owned(), "fedcba9876543210".to_owned())];
    bench.helm.upgrade_install(&release).await.unwrap();
    assert_eq!(
        records(client.clone(), "release-life").await,
        [
            "1 superseded 0123456789abcdef",
            "2 deployed fedcba9876543210"
        ]
    );
    bench
        .helm
        .rollback("release-life", "tiny", 1)
        .await
        .unwrap();
    let after = records(client.clone(), "release-life").await;
    assert_eq!(after[2], "3 deployed 0123456789abcdef");
    bench
        .helm
        .uninstall("release-life", "tiny", false)
        .await
        .unwrap();
    assert!(records(client, "release-life").await.is_empty());
    bench
        .helm
        .uninstall("release-life", "tiny", false)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_hook_that_does_not_end_is_timed_out() {
    let control_plane = ControlPlane::shared();
    control_plane.cluster().await;
    let bench = Bench::on(control_plane);
    bench.chart_file("templates/hook.yaml", HOOK);
    let mut release = bench.release(json!({}));
    release.namespace = namespace(control_plane, "hook-hangs").await;
    release.timeout = Duration::from_secs(2);
    let error = bench.helm.upgrade_install(&release).await.unwrap_err();
    assert!(matches!(error, HelmError::TimedOut { .. }), "{error:?}");
}

/// Regression: a helm killed half-way leaves `pending-install`, and the next upgrade refuses.
#[tokio::test]
async fn helm_killed_mid_install_is_seen_as_pending_and_can_be_removed() {
    let control_plane = ControlPlane::shared();
    let client = control_plane.cluster().await.client();
    let bench = Bench::on(control_plane);
    bench.chart_file("templates/hook.yaml", HOOK);
    let mut release = bench.release(json!({}));
    release.namespace = namespace(control_plane, "helm-killed").await;
    release.timeout = Duration::from_mins(5);
    let install = bench.helm.upgrade_install(&release);
    let killing = async {
        let pid_file = bench.folder.path().join("state/helm-tiny.pid");
        while records(client.clone(), "helm-killed").await != ["1 pending-install 0123456789abcdef"]
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        kill(&pid_file);
    };
    let killed = tokio::time::timeout(Duration::from_mins(1), async {
        tokio::join!(install, killing).0
    })
    .await
    .unwrap();
    assert!(
        matches!(killed, Err(HelmError::Failed { .. })),
        "{killed:?}"
    );
    let error = bench.helm.upgrade_install(&release).await.unwrap_err();
    assert!(matches!(error, HelmError::Pending { .. }), "{error:?}");
    bench
        .helm
        .uninstall("helm-killed", "tiny", true)
        .await
        .unwrap();
    assert!(records(client, "helm-killed").await.is_empty());
}

fn kill(pid_file: &Path) {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let status = std::process::Command::new("kill")
        .args(["-KILL", pid.trim()])
        .status()
        .unwrap();
    assert!(status.success());
}
