//! CRDs larger than what client-side apply can carry, and kinds that come and are unknown.

use std::path::PathBuf;
use std::time::Duration;

use blueprint_cluster::wait::condition_true;
use blueprint_cluster::{Change, Error, WaitFor};
use serde_json::{Map, Value, json};

use crate::{cluster_with, nobody};

/// What `kubectl apply` can write into its annotation at most.
const CLIENT_SIDE_LIMIT: usize = 262_144;

fn established<'a>(name: &'a str, what: &'a str) -> WaitFor<'a> {
    WaitFor {
        what,
        api_version: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        namespace: None,
        name,
        pods: None,
        deadline: Duration::from_secs(30),
    }
}

fn crd(group: &str, kind: &str, properties: usize) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let fields = (0..properties)
        .map(|index| {
            (
                format!("field{index}"),
                json!({"type": "string", "description": "x".repeat(400)}),
            )
        })
        .collect::<Map<_, _>>();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": fields}}
            }}}]
        }
    })
}

/// The Gateway API's own CRDs, where the folders of artifacts are given.
fn gateway_crds() -> Vec<Value> {
    let Some(folders) = std::env::var_os("BLUEPRINT_TEST_ARTIFACTS") else {
        return Vec::new();
    };
    let is_standard = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("gateway-api") && name.contains("standard")
    };
    let file = std::env::split_paths(&folders)
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .find(is_standard)
        .expect("the Gateway API's standard manifest in a folder of BLUEPRINT_TEST_ARTIFACTS");
    let documents =
        serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(file).unwrap()).unwrap();
    documents
        .into_iter()
        .filter(|document| document["kind"] == "CustomResourceDefinition")
        .collect()
}

#[tokio::test]
async fn crds_too_large_for_client_side_apply_are_applied_and_established() {
    let cluster = cluster_with("crds-large").await;
    let large = crd("large.example.com", "Large", 700);
    assert!(large.to_string().len() > CLIENT_SIDE_LIMIT);
    let crds = gateway_crds()
        .into_iter()
        .chain([large])
        .collect::<Vec<_>>();
    for crd in &crds {
        assert!(matches!(
            cluster.apply(crd).await.unwrap(),
            Change::Created(_)
        ));
    }
    for crd in &crds {
        let name = crd["metadata"]["name"].as_str().unwrap();
        cluster
            .wait(
                &established(name, "the CRD"),
                &condition_true("Established"),
                &nobody,
            )
            .await
            .unwrap();
        assert!(
            matches!(cluster.apply(crd).await.unwrap(), Change::Unchanged(_)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_object_can_be_applied_right_after_its_crd() {
    let cluster = cluster_with("crds-fresh").await;
    let widget = json!({"apiVersion": "fresh.example.com/v1", "kind": "Widget", "metadata": {"namespace": "crds-fresh", "name": "a"}, "spec": {}});
    cluster
        .apply(&crd("fresh.example.com", "Widget", 1))
        .await
        .unwrap();
    assert!(matches!(
        cluster.apply(&widget).await.unwrap(),
        Change::Created(_)
    ));
    assert_eq!(
        cluster
            .list("fresh.example.com/v1", "Widget", Some("crds-fresh"), "")
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn an_unknown_kind_is_absent_for_reads_and_an_error_for_applies() {
    let cluster = cluster_with("crds-unknown").await;
    assert!(
        cluster
            .get("none.example.com/v1", "Nothing", Some("crds-unknown"), "a")
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        cluster
            .list("none.example.com/v1", "Nothing", None, "")
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        !cluster
            .delete(
                "none.example.com/v1",
                "Nothing",
                Some("crds-unknown"),
                "a",
                Duration::from_secs(1)
            )
            .await
            .unwrap()
    );
    let nothing = json!({"apiVersion": "none.example.com/v1", "kind": "Nothing", "metadata": {"namespace": "crds-unknown", "name": "a"}});
    assert!(
        matches!(cluster.apply(&nothing).await, Err(Error::UnknownKind { kind, .. }) if kind == "Nothing")
    );
}

#[tokio::test]
async fn a_wait_begins_before_the_kind_exists() {
    let cluster = cluster_with("crds-wait").await;
    let target = WaitFor {
        what: "the gadget",
        api_version: "late.example.com/v1",
        kind: "Gadget",
        namespace: Some("crds-wait"),
        name: "a",
        pods: None,
        deadline: Duration::from_secs(30),
    };
    let exists = |object: Option<&kube::api::DynamicObject>| match object {
        Some(_) => blueprint_cluster::Verdict::Ready,
        None => blueprint_cluster::Verdict::Waiting("absent".to_owned()),
    };
    let make = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster
            .apply(&crd("late.example.com", "Gadget", 1))
            .await
            .unwrap();
        let gadget = json!({"apiVersion": "late.example.com/v1", "kind": "Gadget", "metadata": {"namespace": "crds-wait", "name": "a"}, "spec": {}});
        cluster.apply(&gadget).await.unwrap();
    };
    let (found, ()) = tokio::join!(cluster.wait(&target, &exists, &nobody), make);
    assert_eq!(found.unwrap().metadata.name.as_deref(), Some("a"));
}

/// `down` deletes definitions in one task while another asks what lives in a namespace.
#[tokio::test]
async fn a_definition_that_went_meanwhile_failed_the_list_of_residents() {
    let cluster = cluster_with("crds-residents").await;
    let coming_and_going = async {
        for round in 0..8 {
            let definition = crd(&format!("fleeting{round}.example.com"), "Fleeting", 1);
            cluster.apply(&definition).await.unwrap();
            let name = definition["metadata"]["name"].as_str().unwrap();
            cluster
                .delete(
                    "apiextensions.k8s.io/v1",
                    "CustomResourceDefinition",
                    None,
                    name,
                    Duration::from_secs(20),
                )
                .await
                .unwrap();
        }
    };
    let looking = async {
        for _ in 0..40 {
            cluster.residents("crds-residents").await.unwrap();
        }
    };
    tokio::join!(coming_and_going, looking);
}
