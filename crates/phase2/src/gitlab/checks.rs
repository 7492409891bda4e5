//! GitLab's rows of the smoke table.

use k8s_openapi::api::core::v1::Pod;

use super::node_ports;
use super::readiness::{self, CONTROLLER_PODS, DATA_PLANE};
use super::{TASK, through_gateway};
use crate::error::Error;
use crate::installer::Work;
use crate::minio::release::keys_in_cluster;
use crate::minio::s3::S3;
use crate::names;
use crate::smoke::{CheckResult, row};
use crate::smoke_row::{row as checked, unexpected};

const AGAIN: &str = "run `blueprint up --only gitlab`";

/// All of them, at the same time.
pub(super) async fn run(work: Work<'_>) -> Vec<CheckResult> {
    let (envoy, gateway, port, ui, pods, minio) = tokio::join!(
        envoy_pods(work),
        gateway_programmed(work),
        node_port(work),
        ui(work),
        gitlab_pods(work),
        minio_by_name(work)
    );
    vec![
        checked(row::ENVOY_PODS, TASK, envoy),
        checked(row::GATEWAY_PROGRAMMED, TASK, gateway),
        checked(row::GITLAB_UI, TASK, ui),
        checked(row::GITLAB_PODS, TASK, pods),
        checked("Data plane on its NodePort", TASK, port),
        checked("MinIO through its route", TASK, minio),
    ]
}

/// The specification counts five, those of its full profile; here it is one controller and one Envoy at least.
async fn envoy_pods(work: Work<'_>) -> Result<String, Error> {
    let controllers = running(
        &work
            .context
            .cluster
            .pods(names::GITLAB, CONTROLLER_PODS)
            .await?,
    );
    let envoys = running(&work.context.cluster.pods(names::GITLAB, DATA_PLANE).await?);
    let seen = format!("{controllers} controller, {envoys} data plane");
    if controllers == 0 || envoys == 0 {
        return Err(unexpected("find Envoy Gateway's pods running", seen, AGAIN));
    }
    Ok(seen)
}

async fn gateway_programmed(work: Work<'_>) -> Result<String, Error> {
    let gateway = readiness::gateway(work).await?;
    readiness::programmed(gateway.as_ref())
        .map_err(|why| unexpected("find Gateway gitlab-gw Programmed", why, AGAIN))
}

async fn node_port(work: Work<'_>) -> Result<String, Error> {
    node_ports::look(work)
        .await?
        .map_err(|why| unexpected("find the data plane's NodePort", why, AGAIN))
}

async fn ui(work: Work<'_>) -> Result<String, Error> {
    let host = work.context.settings.host("gitlab");
    let url = format!("https://{host}/-/health");
    let status = through_gateway::open(work, &host)
        .await?
        .status(&url)
        .await?;
    if status != 200 {
        return Err(unexpected(
            &format!("get {url}"),
            format!("status {status} instead of 200"),
            AGAIN,
        ));
    }
    Ok(format!("{url} answered 200, only our CA trusted"))
}

/// A signed `ListBuckets` by public name: proves certificate, listener, route, grant and keys at once.
async fn minio_by_name(work: Work<'_>) -> Result<String, Error> {
    let host = work.context.settings.host("minio");
    let keys = keys_in_cluster(work)
        .await?
        .ok_or_else(|| unexpected("read MinIO's keys", "no Secret minio/minio-root", AGAIN))?;
    let way = through_gateway::open(work, &host).await?;
    let s3 = S3::with_client(way.http.clone(), &format!("https://{host}/"), &keys)?;
    let buckets = s3.list_buckets().await.map_err(|error| {
        unexpected(
            &format!("list the buckets at {host}"),
            error.to_string(),
            AGAIN,
        )
    })?;
    Ok(format!("https://{host} lists {} buckets", buckets.len()))
}

async fn gitlab_pods(work: Work<'_>) -> Result<String, Error> {
    judge_pods(&work.context.cluster.pods(names::GITLAB, "").await?)
        .map_err(|why| unexpected("find every GitLab pod running", why, AGAIN))
}

/// Pods of workloads: those of Jobs (hooks, migrations, CI jobs) come and go.
fn judge_pods(pods: &[Pod]) -> Result<String, String> {
    let lasting: Vec<&Pod> = pods
        .iter()
        .filter(|pod| belongs_to_a_workload(pod) && pod.metadata.deletion_timestamp.is_none())
        .collect();
    let named = |pods: &[&Pod]| {
        pods.iter()
            .filter_map(|pod| pod.metadata.name.clone())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (ready, unready): (Vec<&Pod>, Vec<&Pod>) =
        lasting.iter().copied().partition(|pod| is_ready(pod));
    if !unready.is_empty() {
        return Err(format!(
            "{} of {} pods are not ready: {}",
            unready.len(),
            lasting.len(),
            named(&unready)
        ));
    }
    if ready.is_empty() {
        return Err("there are no pods".to_owned());
    }
    Ok(format!("{} pods: {}", ready.len(), named(&ready)))
}

fn belongs_to_a_workload(pod: &Pod) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        matches!(
            owner.kind.as_str(),
            "ReplicaSet" | "StatefulSet" | "DaemonSet"
        )
    })
}

fn is_ready(pod: &Pod) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    status.phase.as_deref() == Some("Running")
        && status
            .conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn running(pods: &[Pod]) -> usize {
    pods.iter().filter(|pod| is_ready(pod)).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, owner: &str, phase: &str, ready: bool) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u"}]},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        }))
        .unwrap()
    }

    #[test]
    fn one_unready_pod_fails_the_row_and_is_named() {
        let pods = [
            pod("web", "ReplicaSet", "Running", true),
            pod("gitaly", "StatefulSet", "Running", false),
        ];
        assert_eq!(
            judge_pods(&pods),
            Err("1 of 2 pods are not ready: gitaly".to_owned())
        );
    }

    #[test]
    fn pods_of_jobs_are_not_counted() {
        let pods = [
            pod("web", "ReplicaSet", "Running", true),
            pod("migrations", "Job", "Succeeded", false),
        ];
        assert_eq!(judge_pods(&pods), Ok("1 pods: web".to_owned()));
    }

    #[test]
    fn an_empty_namespace_is_no_success() {
        assert!(judge_pods(&[]).is_err());
        assert!(judge_pods(&[pod("job", "Job", "Running", true)]).is_err());
    }
}
