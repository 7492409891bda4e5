//! Tests of the verdicts and of polling.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::*;

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn deployment(generation: i64, status: &Value) -> DynamicObject {
    object(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "generation": generation}, "spec": {"replicas": 2}, "status": status}),
    )
}

#[test]
fn a_deployment_is_ready_only_when_its_newest_version_is() {
    let good = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    assert_eq!(workload_ready(Some(&deployment(2, &good))), Verdict::Ready);
    assert!(
        matches!(workload_ready(Some(&deployment(3, &good))), Verdict::Waiting(why) if why.contains("newest version"))
    );
    let rolling = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 3});
    assert_eq!(
        workload_ready(Some(&deployment(2, &rolling))),
        Verdict::Waiting("1 old replicas still there".to_owned())
    );
    let starting = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1});
    assert_eq!(
        workload_ready(Some(&deployment(2, &starting))),
        Verdict::Waiting("1 of 2 replicas ready".to_owned())
    );
    assert_eq!(
        workload_ready(None),
        Verdict::Waiting("it does not exist yet".to_owned())
    );
}

#[test]
fn a_workload_without_status_is_not_ready() {
    let fresh = object(
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a", "generation": 1}, "spec": {}}),
    );
    assert!(matches!(workload_ready(Some(&fresh)), Verdict::Waiting(_)));
}

#[test]
fn an_on_delete_stateful_set_counts_only_readiness() {
    let set = |strategy: &str, ready: i64| {
        object(json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "openbao", "generation": 2},
            "spec": {"replicas": 1, "updateStrategy": {"type": strategy}},
            "status": {"observedGeneration": 2, "replicas": 1, "readyReplicas": ready}
        }))
    };
    assert_eq!(workload_ready(Some(&set("OnDelete", 1))), Verdict::Ready);
    assert!(matches!(
        workload_ready(Some(&set("OnDelete", 0))),
        Verdict::Waiting(_)
    ));
    assert!(matches!(
        workload_ready(Some(&set("RollingUpdate", 1))),
        Verdict::Waiting(_)
    ));
}

#[test]
fn a_daemon_set_counts_nodes() {
    let set = object(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a", "generation": 1},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 2}
    }));
    assert_eq!(
        workload_ready(Some(&set)),
        Verdict::Waiting("2 of 3 replicas ready".to_owned())
    );
}

#[test]
fn a_condition_about_an_older_generation_does_not_count() {
    let gateway = |seen: i64, status: &str| {
        object(json!({
            "metadata": {"name": "gw", "generation": 2},
            "status": {"conditions": [{"type": "Programmed", "status": status, "reason": "AddressNotAssigned", "message": "no address", "observedGeneration": seen}]}
        }))
    };
    let judge = condition_true("Programmed");
    assert_eq!(judge(Some(&gateway(2, "True"))), Verdict::Ready);
    assert!(
        matches!(judge(Some(&gateway(1, "True"))), Verdict::Waiting(why) if why.contains("older version"))
    );
    assert_eq!(
        judge(Some(&gateway(2, "False"))),
        Verdict::Waiting("Programmed is False (AddressNotAssigned: no address)".to_owned())
    );
    assert!(
        matches!(condition_true("Ready")(Some(&gateway(2, "True"))), Verdict::Waiting(why) if why.contains("no condition Ready"))
    );
}

fn nowhere() -> Cluster {
    crate::connect::install_crypto();
    let config = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
    Cluster::from_client(kube::Client::try_from(config).unwrap(), "kind-test")
}

#[tokio::test]
async fn polling_says_each_blocker_once_and_gives_it_at_the_deadline() {
    let said = Mutex::new(Vec::new());
    let say = |text: String| said.lock().unwrap().push(text);
    let tries = AtomicU32::new(0);
    let result = nowhere()
        .wait_until(
            "the port to answer",
            Duration::from_secs(1),
            Duration::from_millis(20),
            &say,
            || {
                let early = tries.fetch_add(1, Ordering::Relaxed) < 2;
                async move {
                    Ok::<_, Error>(Err::<(), _>(if early {
                        "refused".to_owned()
                    } else {
                        "answers 503".to_owned()
                    }))
                }
            },
        )
        .await;
    let error = result.unwrap_err();
    assert!(
        matches!(&error, Error::Deadline { blocker, .. } if blocker == "answers 503"),
        "{error}"
    );
    assert_eq!(*said.lock().unwrap(), ["refused", "answers 503"]);
}

#[tokio::test]
async fn polling_ends_at_a_fault_that_stays() {
    let result = nowhere()
        .wait_until(
            "x",
            Duration::from_secs(5),
            Duration::from_millis(1),
            &|_| {},
            || async { Err::<Result<(), String>, _>(Error::Malformed("broken".to_owned())) },
        )
        .await;
    assert!(matches!(result, Err(Error::Malformed(_))));
}
