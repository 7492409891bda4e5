//! The Gateway taken away in the one order that works: it first, then its class's finalizer, which only Envoy Gateway's controller takes off, then the release
//! with the controller. The other way round helm hangs and Envoy's Deployment and Service stay behind for good.

use std::time::Duration;

use blueprint_cluster::object::describe;
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::json;

use super::readiness::DATA_PLANE;
use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::removal;

const API: &str = "gateway.networking.k8s.io/v1";
/// What Envoy Gateway sets on a class with Gateways (Gateway API, `GatewayClassFinalizerGatewaysExist`).
const FINALIZER: &str = "gateway-exists-finalizer.gateway.networking.k8s.io";
const CONTROLLER: &str = "envoy-gateway";
const LET_GO_WITHIN: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_secs(1);
/// What the controller makes for a Gateway.
const DATA_PLANE_KINDS: [(&str, &str); 6] = [
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "ServiceAccount"),
];

pub(super) async fn remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let there = work
        .context
        .cluster
        .get(API, "Gateway", Some(names::GITLAB), names::GATEWAY)
        .await?;
    let mut found: Vec<String> = there
        .map(|_| describe("Gateway", Some(names::GITLAB), names::GATEWAY))
        .into_iter()
        .collect();
    found.extend(
        data_plane(work)
            .await?
            .iter()
            .map(|(_, kind, name)| describe(kind, Some(names::GITLAB), name)),
    );
    Ok(found)
}

/// Refuses while a Gateway that is not ours uses our class: it would be left without a controller.
pub(super) async fn check_unshared(work: Work<'_>) -> Result<(), Error> {
    let others = others(&work.context.cluster.list(API, "Gateway", None, "").await?);
    if others.is_empty() {
        return Ok(());
    }
    Err(Error::Refused {
        summary: format!(
            "Gateways that are not blueprint's use GatewayClass {}",
            names::GATEWAY
        ),
        expected: format!("none but {}/{}", names::GITLAB, names::GATEWAY),
        found: others.join(", "),
        hint: "move them to another class or delete them, then run `blueprint down` again; nothing of GitLab was touched".to_owned(),
    })
}

fn others(gateways: &[DynamicObject]) -> Vec<String> {
    gateways
        .iter()
        .filter(|gateway| gateway.data["spec"]["gatewayClassName"] == json!(names::GATEWAY))
        .filter_map(|gateway| {
            let metadata = &gateway.metadata;
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref()?);
            let ours = (namespace, name) == (Some(names::GITLAB), names::GATEWAY);
            (!ours).then(|| describe("Gateway", namespace, name))
        })
        .collect()
}

pub(super) async fn run(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    removal::delete(
        work,
        API,
        "Gateway",
        Some(names::GITLAB),
        names::GATEWAY,
        outcome,
    )
    .await?;
    if has_controller(work).await? {
        wait_let_go(work).await
    } else {
        // A run that was cut off after the controller had gone: nobody is left to do its part.
        stand_in(work, outcome).await
    }
}

async fn has_controller(work: Work<'_>) -> Result<bool, Error> {
    Ok(work
        .context
        .cluster
        .get("apps/v1", "Deployment", Some(names::GITLAB), CONTROLLER)
        .await?
        .is_some())
}

async fn class(work: Work<'_>) -> Result<Option<DynamicObject>, blueprint_cluster::Error> {
    let cluster = &work.context.cluster;
    cluster.get(API, "GatewayClass", None, names::GATEWAY).await
}

fn holds(class: &DynamicObject) -> bool {
    let finalizers = class.metadata.finalizers.as_ref();
    finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == FINALIZER))
}

/// Until the class is free and the data plane is gone.
async fn wait_let_go(work: Work<'_>) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    cluster
        .wait_until(
            "Envoy Gateway to let go of the Gateway",
            LET_GO_WITHIN,
            PAUSE,
            &|blocker| work.progress.waiting(blocker),
            || async {
                if class(work).await?.as_ref().is_some_and(holds) {
                    return Ok(Err(format!(
                        "GatewayClass {} still has the finalizer {FINALIZER}",
                        names::GATEWAY
                    )));
                }
                let left = data_plane_of(work).await?;
                Ok(left.first().map_or(Ok(()), |(_, kind, name)| {
                    let what = describe(kind, Some(names::GITLAB), name);
                    Err(format!("{what} is still there"))
                }))
            },
        )
        .await?;
    Ok(())
}

/// The controller's part: the finalizer means "Gateways of this class exist", and [`check_unshared`] has seen that none does.
async fn stand_in(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    if let Some(found) = class(work).await?.filter(holds) {
        let mut finalizers = found.metadata.finalizers.unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": found.metadata.resource_version}});
        cluster
            .merge_patch(API, "GatewayClass", None, names::GATEWAY, &patch)
            .await?;
        outcome.changed(format!(
            "freed GatewayClass {}, whose controller is gone",
            names::GATEWAY
        ));
    }
    for (api_version, kind, name) in data_plane(work).await? {
        let namespace = Some(names::GITLAB);
        removal::delete(work, api_version, kind, namespace, &name, outcome).await?;
    }
    Ok(())
}

async fn data_plane(work: Work<'_>) -> Result<Vec<(&'static str, &'static str, String)>, Error> {
    Ok(data_plane_of(work).await?)
}

async fn data_plane_of(
    work: Work<'_>,
) -> Result<Vec<(&'static str, &'static str, String)>, blueprint_cluster::Error> {
    let mut found = Vec::new();
    for (api_version, kind) in DATA_PLANE_KINDS {
        let objects = work
            .context
            .cluster
            .list(api_version, kind, Some(names::GITLAB), DATA_PLANE)
            .await?;
        found.extend(
            objects
                .into_iter()
                .filter_map(|object| object.metadata.name)
                .map(|name| (api_version, kind, name)),
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_elses_gateway_of_our_class_is_named() {
        let gateway = |namespace: &str, name: &str, class: &str| {
            serde_json::from_value(json!({"apiVersion": API, "kind": "Gateway",
                "metadata": {"namespace": namespace, "name": name}, "spec": {"gatewayClassName": class}}))
            .unwrap()
        };
        let all = [
            gateway(names::GITLAB, names::GATEWAY, names::GATEWAY),
            gateway("shop", "web", names::GATEWAY),
            gateway("shop", "other", "nginx"),
        ];
        assert_eq!(others(&all), ["Gateway shop/web"]);
    }
}
