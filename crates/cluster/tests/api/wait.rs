//! Waits.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use blueprint_cluster::control_plane::ControlPlane;
use blueprint_cluster::{Error, Verdict, WaitFor};
use kube::api::DynamicObject;
use serde_json::json;

use crate::{cluster_with, config_map, nobody};

fn for_map(namespace: &str, deadline: Duration) -> WaitFor<'_> {
    WaitFor {
        what: "the map",
        api_version: "v1",
        kind: "ConfigMap",
        namespace: Some(namespace),
        name: "a",
        pods: None,
        deadline,
    }
}

/// Ready when `data.ready` is there.
fn judge(object: Option<&DynamicObject>) -> Verdict {
    match object {
        None => Verdict::Waiting("it does not exist yet".to_owned()),
        Some(object) if object.data.pointer("/data/broken").is_some() => {
            Verdict::Hopeless("data.broken is set".to_owned())
        }
        Some(object) if object.data.pointer("/data/ready").is_some() => Verdict::Ready,
        Some(_) => Verdict::Waiting("data.ready is missing".to_owned()),
    }
}

#[tokio::test]
async fn an_object_that_is_not_there_yet_is_waited_for_and_its_states_are_said() {
    let cluster = cluster_with("wait-absent").await;
    let said = Mutex::new(Vec::new());
    let say = |text: String| said.lock().unwrap().push(text);
    let make = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster
            .apply(&config_map("wait-absent", "a", &json!({})))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(1200)).await;
        cluster
            .apply(&config_map("wait-absent", "a", &json!({"ready": "yes"})))
            .await
            .unwrap();
    };
    let target = for_map("wait-absent", Duration::from_secs(30));
    let (found, ()) = tokio::join!(cluster.wait(&target, &judge, &say), make);
    let found = found.unwrap();
    assert_eq!(found.data["data"]["ready"], "yes");
    assert_eq!(found.types.unwrap().kind, "ConfigMap");
    assert_eq!(
        said.lock().unwrap().first().map(String::as_str),
        Some("it does not exist yet")
    );
}

#[tokio::test]
async fn a_wait_outlives_a_restart_of_the_api_server() {
    let control_plane = ControlPlane::start().unwrap();
    let cluster = control_plane.cluster().await;
    cluster
        .apply(&config_map("default", "a", &json!({})))
        .await
        .unwrap();
    let said = Mutex::new(Vec::new());
    let say = |text: String| said.lock().unwrap().push(text);
    let restart = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        control_plane.stop_api_server();
        tokio::time::sleep(Duration::from_secs(2)).await;
        control_plane.start_api_server().unwrap();
        // A call made while it starts is retried as well.
        cluster
            .apply(&config_map("default", "a", &json!({"ready": "yes"})))
            .await
            .unwrap();
    };
    let target = for_map("default", Duration::from_mins(1));
    let (found, ()) = tokio::join!(cluster.wait(&target, &judge, &say), restart);
    assert_eq!(found.unwrap().data["data"]["ready"], "yes");
    let said = said.lock().unwrap();
    assert!(
        said.iter()
            .any(|text| text.contains("the API server does not answer")),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_deadline_tells_the_object_and_its_state() {
    let cluster = cluster_with("wait-deadline").await;
    cluster
        .apply(&config_map("wait-deadline", "a", &json!({})))
        .await
        .unwrap();
    let started = Instant::now();
    let error = cluster
        .wait(
            &for_map("wait-deadline", Duration::from_secs(1)),
            &judge,
            &nobody,
        )
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the map was not reached within 1s: ConfigMap wait-deadline/a: data.ready is missing"
    );
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_hopeless_state_ends_the_wait_at_once() {
    let cluster = cluster_with("wait-hopeless").await;
    cluster
        .apply(&config_map("wait-hopeless", "a", &json!({"broken": "yes"})))
        .await
        .unwrap();
    let started = Instant::now();
    let error = cluster
        .wait(
            &for_map("wait-hopeless", Duration::from_mins(1)),
            &judge,
            &nobody,
        )
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Hopeless { found, .. } if found == "data.broken is set"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn absence_can_be_waited_for() {
    let cluster = cluster_with("wait-gone").await;
    let gone = |object: Option<&DynamicObject>| {
        if object.is_none() {
            Verdict::Ready
        } else {
            Verdict::Waiting("still there".to_owned())
        }
    };
    let found = cluster
        .wait(
            &for_map("wait-gone", Duration::from_secs(10)),
            &gone,
            &nobody,
        )
        .await
        .unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("a"));
}
