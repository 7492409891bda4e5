//! When GitLab is up: its workloads, the Gateway, and the data plane's `NodePorts`.

use std::time::Duration;

use blueprint_cluster::WaitFor;
use blueprint_cluster::wait::condition_true;
use futures::future::try_join_all;
use kube::api::DynamicObject;
use serde_json::Value;
use tokio::time::Instant;

use super::node_ports;
use crate::error::Error;
use crate::installer::{State, Work};
use crate::names;
use crate::workloads::Workload;

/// For everything together: a first start pulls gigabytes and migrates the database.
const DEADLINE: Duration = Duration::from_mins(20);

const fn workload(kind: &'static str, name: &'static str, pods: &'static str) -> Workload {
    Workload {
        kind,
        namespace: names::GITLAB,
        name,
        pods,
    }
}

/// Rails and Workhorse. Its pods wait for the migrations, so those are to blame as well.
pub(super) const WEBSERVICE: Workload = workload(
    "Deployment",
    "gitlab-webservice-default",
    "app in (webservice,migrations),release=gitlab",
);
/// Background jobs.
pub(super) const SIDEKIQ: Workload = workload(
    "Deployment",
    "gitlab-sidekiq-all-in-1-v2",
    "app=sidekiq,release=gitlab",
);
/// `gitlab-rails`, backups; formerly the task-runner.
pub(super) const TOOLBOX: Workload =
    workload("Deployment", "gitlab-toolbox", "app=toolbox,release=gitlab");
/// Kubernetes agent server.
pub(super) const KAS: Workload = workload("Deployment", "gitlab-kas", "app=kas,release=gitlab");
/// Container registry.
pub(super) const REGISTRY: Workload = workload(
    "Deployment",
    "gitlab-registry",
    "app=registry,release=gitlab",
);
/// Metrics.
pub(super) const EXPORTER: Workload = workload(
    "Deployment",
    "gitlab-gitlab-exporter",
    "app=gitlab-exporter,release=gitlab",
);
/// GitLab's own OpenBao.
pub(super) const BUNDLED_OPENBAO: Workload = workload(
    "Deployment",
    "gitlab-openbao",
    "app.kubernetes.io/name=openbao,app.kubernetes.io/instance=gitlab",
);

const WORKLOADS: [Workload; 11] = [
    WEBSERVICE,
    REGISTRY,
    KAS,
    SIDEKIQ,
    TOOLBOX,
    workload("StatefulSet", "gitlab-gitaly", "app=gitaly,release=gitlab"),
    BUNDLED_OPENBAO,
    EXPORTER,
    workload(
        "Deployment",
        "gitlab-gitlab-shell",
        "app=gitlab-shell,release=gitlab",
    ),
    workload(
        "Deployment",
        "gitlab-prometheus-server",
        "app.kubernetes.io/name=prometheus,app.kubernetes.io/instance=gitlab",
    ),
    workload("Deployment", "envoy-gateway", CONTROLLER_PODS),
];

/// Envoy Gateway's controller.
pub(super) const CONTROLLER_PODS: &str = "control-plane=envoy-gateway";
/// The Envoy pods that it runs for our Gateway, and their Service.
pub(super) const DATA_PLANE: &str = "gateway.envoyproxy.io/owning-gateway-name=gitlab-gw,gateway.envoyproxy.io/owning-gateway-namespace=gitlab";

/// Waits for all of it at once, within one deadline.
pub(super) async fn wait(work: Work<'_>) -> Result<(), Error> {
    let start = Instant::now();
    let workloads = async {
        try_join_all(
            WORKLOADS
                .iter()
                .map(|workload| workload.wait(work, DEADLINE)),
        )
        .await?;
        Ok::<(), Error>(())
    };
    let gateway = async {
        wait_programmed(work, DEADLINE).await?;
        node_ports::wait(
            work,
            DEADLINE
                .saturating_sub(start.elapsed())
                .max(Duration::from_secs(30)),
        )
        .await
    };
    tokio::try_join!(workloads, gateway)?;
    Ok(())
}

/// The same, without waiting.
pub(super) async fn state(work: Work<'_>) -> Result<State, Error> {
    for workload in WORKLOADS {
        match workload.state(work).await? {
            State::Ready => {}
            State::Missing => {
                return Ok(State::Broken(format!("{} is missing", workload.describe())));
            }
            other => return Ok(other),
        }
    }
    if let Err(why) = programmed(gateway(work).await?.as_ref()) {
        return Ok(State::Broken(format!("Gateway {}: {why}", names::GATEWAY)));
    }
    Ok(match node_ports::look(work).await? {
        Ok(_) => State::Ready,
        Err(why) => State::Broken(why),
    })
}

/// The Gateway as it is.
pub(super) async fn gateway(work: Work<'_>) -> Result<Option<DynamicObject>, Error> {
    Ok(work
        .context
        .cluster
        .get(
            "gateway.networking.k8s.io/v1",
            "Gateway",
            Some(names::GITLAB),
            names::GATEWAY,
        )
        .await?)
}

/// `Programmed` with how many listeners, or why not.
pub(super) fn programmed(gateway: Option<&DynamicObject>) -> Result<String, String> {
    let Some(gateway) = gateway else {
        return Err("it does not exist".to_owned());
    };
    let conditions = gateway
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Programmed");
    let listeners = gateway
        .data
        .pointer("/status/listeners")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    match condition {
        Some(condition) if condition["status"] == "True" => {
            Ok(format!("Programmed=True, {listeners} listeners"))
        }
        Some(condition) => {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            Err(format!(
                "Programmed={}, {}: {}",
                text("status"),
                text("reason"),
                text("message")
            ))
        }
        None => Err("no Programmed condition yet".to_owned()),
    }
}

async fn wait_programmed(work: Work<'_>, deadline: Duration) -> Result<(), Error> {
    let target = WaitFor {
        what: "Gateway gitlab/gitlab-gw to be Programmed",
        api_version: "gateway.networking.k8s.io/v1",
        kind: "Gateway",
        namespace: Some(names::GITLAB),
        name: names::GATEWAY,
        pods: Some(CONTROLLER_PODS),
        deadline,
    };
    work.context
        .cluster
        .wait(&target, &condition_true("Programmed"), &|blocker| {
            work.progress.waiting(blocker);
        })
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_unprogrammed_gateway_says_why() {
        let gateway = |status: &str| {
            object(
                json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "gitlab-gw"},
                "status": {"listeners": [{}, {}], "conditions": [
                    {"type": "Accepted", "status": "True"},
                    {"type": "Programmed", "status": status, "reason": "AddressNotAssigned", "message": "no address"}]}}),
            )
        };
        assert_eq!(
            programmed(Some(&gateway("True"))),
            Ok("Programmed=True, 2 listeners".to_owned())
        );
        let why = programmed(Some(&gateway("False"))).unwrap_err();
        assert!(
            why.contains("AddressNotAssigned") && why.contains("no address"),
            "{why}"
        );
        assert!(programmed(None).is_err());
    }
}
