//! `minio.<domain>`: a listener of our own on the chart's Gateway, a route, and the grant that lets it cross namespaces.

use blueprint_cluster::object::describe;
use blueprint_pipeline::Outcome;
use serde_json::Value;

use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::removal;

const REFERENCE: &str = "gitlab-minio-route.yaml";
/// A field manager of its own owns one listener of the list (`listType: map` by name): the chart's upgrades leave it, its uninstall takes it along.
const MANAGER: &str = "blueprint-minio-listener";
const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

/// Applies them.
pub(super) async fn ensure(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    for document in work.context.references.documents(REFERENCE)? {
        let change = if is_gateway(&document) {
            gateway_must_exist(work).await?;
            cluster.apply_as(MANAGER, &document).await?
        } else {
            cluster.apply(&document).await?
        };
        outcome.changes.extend(change.phrase());
    }
    Ok(())
}

/// What of it is missing.
pub(super) async fn differences(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut differs = Vec::new();
    for document in work.context.references.documents(REFERENCE)? {
        let Some((api_version, kind, namespace, name)) = identity(&document) else {
            continue;
        };
        let found = work
            .context
            .cluster
            .get(api_version, kind, namespace, name)
            .await?;
        let there = found.is_some_and(|found| {
            !is_gateway(&document) || has_listeners_of(&found.data, &document)
        });
        if !there {
            differs.push(format!(
                "{kind} {name} is missing or has no listener minio-web"
            ));
        }
    }
    Ok(differs)
}

/// The route and the grant; the listener goes with the Gateway.
fn beside_the_gateway(work: Work<'_>) -> Result<Vec<Value>, Error> {
    let mut documents = work.context.references.documents(REFERENCE)?;
    documents.retain(|document| !is_gateway(document));
    Ok(documents)
}

fn identity(document: &Value) -> Option<(&str, &str, Option<&str>, &str)> {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    Some((
        text("/apiVersion")?,
        text("/kind")?,
        text("/metadata/namespace"),
        text("/metadata/name")?,
    ))
}

/// What is there of the route and the grant.
pub(super) async fn remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for document in beside_the_gateway(work)? {
        if let Some((api_version, kind, namespace, name)) = identity(&document) {
            let cluster = &work.context.cluster;
            let there = cluster.get(api_version, kind, namespace, name).await?;
            found.extend(there.map(|_| describe(kind, namespace, name)));
        }
    }
    Ok(found)
}

/// Takes the route and the grant away.
pub(super) async fn remove(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    for document in beside_the_gateway(work)? {
        if let Some((api_version, kind, namespace, name)) = identity(&document) {
            removal::delete(work, api_version, kind, namespace, name, outcome).await?;
        }
    }
    Ok(())
}

/// Server-side apply would make a Gateway out of nothing, with our one listener and nobody behind it.
async fn gateway_must_exist(work: Work<'_>) -> Result<(), Error> {
    if work
        .context
        .cluster
        .get(GATEWAY_API, "Gateway", Some(names::GITLAB), names::GATEWAY)
        .await?
        .is_some()
    {
        return Ok(());
    }
    Err(Error::Failed {
        action: "add the listener for MinIO".to_owned(),
        found: format!(
            "Gateway {}/{} does not exist although GitLab's release is deployed",
            names::GITLAB,
            names::GATEWAY
        ),
        hint: "see that `global.gatewayApi.enabled` is true in the values, then run again"
            .to_owned(),
    })
}

fn is_gateway(document: &Value) -> bool {
    document.pointer("/kind").and_then(Value::as_str) == Some("Gateway")
}

fn has_listeners_of(found: &Value, wanted: &Value) -> bool {
    let names = |object: &Value| -> Vec<String> {
        let listeners = object.pointer("/spec/listeners").and_then(Value::as_array);
        listeners
            .into_iter()
            .flatten()
            .filter_map(|listener| Some(listener.get("name")?.as_str()?.to_owned()))
            .collect()
    };
    let found = names(found);
    names(wanted).iter().all(|name| found.contains(name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn documents() -> Vec<Value> {
        let text = include_str!("../../../../infra/phase2/references/gitlab-minio-route.yaml");
        blueprint_charts::yaml::documents(text, Path::new(REFERENCE)).unwrap()
    }

    #[test]
    fn the_gateway_we_apply_holds_nothing_but_its_class_and_our_listener() {
        let all = documents();
        let gateway = all.iter().find(|document| is_gateway(document)).unwrap();
        let spec = gateway["spec"].as_object().unwrap();
        assert_eq!(
            spec.keys().collect::<Vec<_>>(),
            ["gatewayClassName", "listeners"]
        );
        assert_eq!(gateway["spec"]["listeners"].as_array().unwrap().len(), 1);
        assert_eq!(gateway["metadata"]["name"], json!(names::GATEWAY));
    }

    #[test]
    fn the_route_hangs_on_our_listener_and_the_grant_lets_it_reach_minio() {
        let all = documents();
        let of = |kind: &str| {
            all.iter()
                .find(|document| document["kind"] == json!(kind))
                .unwrap()
        };
        let route = of("HTTPRoute");
        assert_eq!(
            route["spec"]["parentRefs"][0]["sectionName"],
            of("Gateway")["spec"]["listeners"][0]["name"]
        );
        let backend = &route["spec"]["rules"][0]["backendRefs"][0];
        let grant = of("ReferenceGrant");
        assert_eq!(backend["namespace"], grant["metadata"]["namespace"]);
        assert_eq!(backend["name"], grant["spec"]["to"][0]["name"]);
        assert_eq!(
            route["metadata"]["namespace"],
            grant["spec"]["from"][0]["namespace"]
        );
    }

    #[test]
    fn a_gateway_that_lost_our_listener_differs() {
        let all = documents();
        let wanted = all.iter().find(|document| is_gateway(document)).unwrap();
        let with = json!({"spec": {"listeners": [{"name": "gitlab-web"}, {"name": "minio-web"}]}});
        let without = json!({"spec": {"listeners": [{"name": "gitlab-web"}]}});
        assert!(has_listeners_of(&with, wanted));
        assert!(!has_listeners_of(&without, wanted));
    }
}
