//! CRDs: those that we brought, and not those that somebody uses.

use blueprint_cluster::control_plane::ControlPlane;
use blueprint_phase2::gateway::GatewayCrds;
use blueprint_phase2::{Context, Installer, Removal, Work};
use blueprint_pipeline::Progress;
use serde_json::{Value, json};

use super::{remains, uninstall};
use crate::support::Fixture;

const CRD_API: &str = "apiextensions.k8s.io/v1";
const CRD: &str = "CustomResourceDefinition";
const GROUP: &str = "gateway.networking.k8s.io";
const GATEWAYS: &str = "gateways.gateway.networking.k8s.io";

fn definition(group: &str, plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": CRD_API, "kind": CRD,
        "metadata": {"name": format!("{plural}.{group}"), "annotations": {
            // The API server wants this of every group below k8s.io.
            "api-approved.kubernetes.io": "https://example.net/approved",
            "gateway.networking.k8s.io/bundle-version": "v1.5.0", "gateway.networking.k8s.io/channel": "standard"
        }},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]
        }
    })
}

fn policy() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "guard.test"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["customresourcedefinitions"]}]},
            "validations": [{"expression": "true"}]
        }
    })
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let standard = format!(
        "{}\n---\n{}",
        definition(GROUP, "gateways", "Gateway"),
        policy()
    );
    fixture.manifest("gateway-api-standard", &standard);
    fixture.manifest(
        "gateway-api-tcproute",
        &definition(GROUP, "tcproutes", "TCPRoute").to_string(),
    );
    let envoy = definition("gateway.envoyproxy.io", "envoyproxies", "EnvoyProxy").to_string();
    let path = "gitlab/charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io_envoyproxies.yaml";
    fixture.chart("gitlab", &[(path, envoy)]);
    fixture
}

async fn install(context: &Context) {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    GatewayCrds.install(work).await.unwrap();
}

async fn has(context: &Context, name: &str) -> bool {
    let found = context.cluster.get(CRD_API, CRD, None, name).await;
    found.unwrap().is_some()
}

#[tokio::test]
async fn a_definition_with_somebodys_object_stays_with_its_guard_and_goes_once_that_is_gone() {
    let plane = ControlPlane::start().unwrap();
    let fixture = fixture();
    let context = fixture.context_on(&plane).await;
    install(&context).await;
    assert_eq!(remains(&context, &GatewayCrds).await.len(), 4);
    let theirs = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"namespace": "default", "name": "shop"}, "spec": {"x": 1}});
    context.cluster.apply_as("kubectl", &theirs).await.unwrap();

    let outcome = uninstall(&context, &GatewayCrds, Removal::Keep)
        .await
        .unwrap();
    assert_eq!(outcome.changes.len(), 2, "{:?}", outcome.changes);
    assert_eq!(outcome.notes.len(), 1);
    assert!(
        outcome.notes[0].contains("Gateway default/shop"),
        "{:?}",
        outcome.notes
    );
    assert!(has(&context, GATEWAYS).await);
    assert!(!has(&context, "envoyproxies.gateway.envoyproxy.io").await);
    let api = "gateway.networking.k8s.io/v1";
    let still = context
        .cluster
        .get(api, "Gateway", Some("default"), "shop")
        .await;
    assert_eq!(still.unwrap().unwrap().data["spec"]["x"], 1);
    assert_eq!(
        remains(&context, &GatewayCrds).await.len(),
        2,
        "the definition and its guard"
    );

    let second = std::time::Duration::from_secs(20);
    context
        .cluster
        .delete(api, "Gateway", Some("default"), "shop", second)
        .await
        .unwrap();
    let outcome = uninstall(&context, &GatewayCrds, Removal::Keep)
        .await
        .unwrap();
    assert_eq!((outcome.changes.len(), outcome.notes.len()), (2, 0));
    assert!(remains(&context, &GatewayCrds).await.is_empty());
    let again = uninstall(&context, &GatewayCrds, Removal::Keep)
        .await
        .unwrap();
    assert_eq!(again, blueprint_pipeline::Outcome::default());
}

#[tokio::test]
async fn a_definition_that_was_there_before_us_stays() {
    let plane = ControlPlane::start().unwrap();
    let fixture = fixture();
    let context = fixture.context_on(&plane).await;
    let mut older = definition(GROUP, "gateways", "Gateway");
    older["metadata"]["annotations"]["gateway.networking.k8s.io/bundle-version"] = json!("v1.4.1");
    context
        .cluster
        .apply_as("their-installer", &older)
        .await
        .unwrap();
    install(&context).await;

    let outcome = uninstall(&context, &GatewayCrds, Removal::Wipe)
        .await
        .unwrap();
    assert!(has(&context, GATEWAYS).await);
    assert!(
        outcome.notes[0].contains("their-installer"),
        "{:?}",
        outcome.notes
    );
}
