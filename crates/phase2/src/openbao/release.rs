//! The chart on PostgreSQL: the Secret with the connection URL, the release, and a pod that runs with both.

use std::collections::BTreeMap;
use std::time::Duration;

use blueprint_cluster::secret::SecretManifest;
use blueprint_cluster::{Verdict, WaitFor};
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use secrecy::SecretString;
use serde_json::json;
use zeroize::Zeroizing;

use super::connection_url::connection_url;
use super::seal;
use super::session::POD;
use super::storage::ROLE;
use crate::error::Error;
use crate::helm_release::{self, ReleaseSpec};
use crate::installer::{State, Work};
use crate::removal::Piece;
use crate::role_passwords::role_password;
use crate::{names, secret_readers};

pub(crate) const SECRET: &str = "openbao-pg";
const STATEFUL_SET: &str = "openbao";
const PODS: &str = "app.kubernetes.io/instance=openbao,component=server";

const RELEASE: ReleaseSpec = ReleaseSpec {
    key: "openbao",
    namespace: names::OPENBAO,
    skip_crds: false,
    skip_schema_validation: false,
    timeout: Duration::from_mins(5),
};

/// The release's state; whether the server is unsealed is looked at elsewhere.
pub(super) async fn state(work: Work<'_>) -> Result<State, Error> {
    let state = helm_release::inspect_with(work, &RELEASE, seal::overlay(work)?).await?;
    if state != State::Ready {
        return Ok(state);
    }
    let pod = pod(work).await?;
    Ok(match runs(pod.as_ref()) {
        Verdict::Ready => State::Ready,
        Verdict::Waiting(why) | Verdict::Hopeless(why) => {
            State::Broken(format!("pod {}/{POD}: {why}", names::OPENBAO))
        }
    })
}

/// All that it has in the cluster; what it knows is in PostgreSQL.
pub(super) fn pieces() -> [Piece; 4] {
    [
        Piece::Release(RELEASE),
        Piece::Pods {
            namespace: names::OPENBAO,
            selector: PODS,
        },
        Piece::secret(names::OPENBAO, SECRET),
        Piece::Namespace(names::OPENBAO),
    ]
}

pub(super) async fn check_ours(work: Work<'_>) -> Result<(), Error> {
    helm_release::uninstall::check_ours(work, &RELEASE).await
}

pub(super) async fn is_there(work: Work<'_>) -> Result<bool, Error> {
    Ok(helm_release::uninstall::there(work, &RELEASE)
        .await?
        .is_some())
}

/// Namespace, Secret, release, and a running pod that has read the newest of them.
pub(super) async fn ensure(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    outcome
        .changes
        .extend(names::ensure_namespace(cluster, names::OPENBAO).await?);
    let password = role_password(&work.context.workspace, ROLE)?;
    outcome
        .changes
        .extend(cluster.apply_secret(&manifest(&password)).await?.phrase());
    seal::ensure_secret(work, outcome).await?;
    helm_release::ensure_with(work, &RELEASE, seal::overlay(work)?, outcome).await?;
    if scale(work, 1).await? {
        outcome.changed("scaled StatefulSet openbao/openbao back to 1");
    }
    if let Some(why) = outdated(work).await? {
        replace_pod(work).await?;
        outcome.changed(format!("replaced pod {POD}: {why}"));
    }
    wait_running(work).await
}

/// The StatefulSet is `OnDelete`: nothing but us gives the pod a new template or a new Secret.
async fn outdated(work: Work<'_>) -> Result<Option<String>, Error> {
    let cluster = &work.context.cluster;
    if !secret_readers::outdated_pods(cluster, names::OPENBAO, PODS, &[SECRET, seal::SECRET])
        .await?
        .is_empty()
    {
        return Ok(Some(
            "it started before a Secret that it reads was last changed".to_owned(),
        ));
    }
    let Some(pod) = pod(work).await? else {
        return Ok(None);
    };
    let target = WaitFor {
        what: "the StatefulSet controller to take openbao's newest template",
        api_version: "apps/v1",
        kind: "StatefulSet",
        namespace: Some(names::OPENBAO),
        name: STATEFUL_SET,
        pods: None,
        deadline: Duration::from_mins(1),
    };
    let set = cluster
        .wait(&target, &observed, &|blocker| {
            work.progress.waiting(blocker);
        })
        .await?;
    let wanted = set
        .data
        .pointer("/status/updateRevision")
        .and_then(serde_json::Value::as_str);
    let has = pod
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get("controller-revision-hash"))
        .map(String::as_str);
    Ok((wanted.is_some() && wanted != has).then(|| "its template changed".to_owned()))
}

fn observed(set: Option<&DynamicObject>) -> Verdict {
    let Some(set) = set else {
        return Verdict::Waiting("it does not exist yet".to_owned());
    };
    let seen = set
        .data
        .pointer("/status/observedGeneration")
        .and_then(serde_json::Value::as_i64);
    if seen >= set.metadata.generation {
        Verdict::Ready
    } else {
        Verdict::Waiting("its newest generation is not observed yet".to_owned())
    }
}

/// Deletes the pod and waits until it is gone; its set makes a new one. Its shell ignores SIGTERM, so this takes about 12 s.
pub(super) async fn replace_pod(work: Work<'_>) -> Result<(), Error> {
    work.context
        .cluster
        .delete(
            "v1",
            "Pod",
            Some(names::OPENBAO),
            POD,
            Duration::from_mins(1),
        )
        .await?;
    wait_running(work).await
}

/// Sets the number of servers; answers whether that changed anything.
pub(super) async fn scale(work: Work<'_>, replicas: u32) -> Result<bool, Error> {
    let patch = json!({"spec": {"replicas": replicas}});
    Ok(work
        .context
        .cluster
        .merge_patch(
            "apps/v1",
            "StatefulSet",
            Some(names::OPENBAO),
            STATEFUL_SET,
            &patch,
        )
        .await?)
}

/// Waits until the set has taken the new number and no server is left: dropping tables under a live one would go unnoticed.
pub(super) async fn wait_stopped(work: Work<'_>) -> Result<(), Error> {
    let target = WaitFor {
        what: "OpenBao to stop",
        api_version: "apps/v1",
        kind: "StatefulSet",
        namespace: Some(names::OPENBAO),
        name: STATEFUL_SET,
        pods: None,
        deadline: Duration::from_mins(2),
    };
    work.context
        .cluster
        .wait(&target, &stopped, &|blocker| work.progress.waiting(blocker))
        .await?;
    Ok(())
}

fn stopped(set: Option<&DynamicObject>) -> Verdict {
    let waiting = match observed(set) {
        Verdict::Ready => Verdict::Waiting("its pod is still there".to_owned()),
        other => return other,
    };
    let replicas = set
        .and_then(|set| set.data.pointer("/status/replicas"))
        .and_then(serde_json::Value::as_i64);
    if replicas.unwrap_or(0) == 0 {
        Verdict::Ready
    } else {
        waiting
    }
}

/// Running is all: an uninitialised or sealed server is never Ready.
pub(super) async fn wait_running(work: Work<'_>) -> Result<(), Error> {
    let target = WaitFor {
        what: "OpenBao's pod to run",
        api_version: "v1",
        kind: "Pod",
        namespace: Some(names::OPENBAO),
        name: POD,
        pods: Some(PODS),
        deadline: Duration::from_mins(5),
    };
    work.context
        .cluster
        .wait(&target, &runs, &|blocker| work.progress.waiting(blocker))
        .await?;
    Ok(())
}

/// Whether its container runs at this moment.
pub(super) async fn runs_now(work: Work<'_>) -> Result<bool, Error> {
    Ok(runs(pod(work).await?.as_ref()) == Verdict::Ready)
}

async fn pod(work: Work<'_>) -> Result<Option<DynamicObject>, Error> {
    Ok(work
        .context
        .cluster
        .get("v1", "Pod", Some(names::OPENBAO), POD)
        .await?)
}

fn runs(pod: Option<&DynamicObject>) -> Verdict {
    let Some(pod) = pod else {
        return Verdict::Waiting("it does not exist yet".to_owned());
    };
    if pod.metadata.deletion_timestamp.is_some() {
        return Verdict::Waiting("it is being deleted".to_owned());
    }
    if pod
        .data
        .pointer("/status/containerStatuses/0/state/running")
        .is_some()
    {
        return Verdict::Ready;
    }
    let waiting = pod
        .data
        .pointer("/status/containerStatuses/0/state/waiting/reason")
        .and_then(serde_json::Value::as_str);
    Verdict::Waiting(
        waiting
            .unwrap_or("its container has not started")
            .to_owned(),
    )
}

fn manifest(password: &SecretString) -> SecretManifest {
    let url = connection_url(password);
    SecretManifest {
        namespace: names::OPENBAO.to_owned(),
        name: SECRET.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data: BTreeMap::from([("url".to_owned(), Zeroizing::new(url.as_bytes().to_vec()))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: serde_json::Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_running_pod_counts_although_it_is_not_ready() {
        let pod = object(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "openbao-0"},
            "status": {"containerStatuses": [{"ready": false, "state": {"running": {"startedAt": "2026-11-30T00:00:00Z"}}}]}}),
        );
        assert_eq!(runs(Some(&pod)), Verdict::Ready);
    }

    #[test]
    fn tables_are_not_dropped_while_the_set_still_counts_a_server() {
        let set = |observed: i64, replicas: i64| {
            object(
                json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "openbao", "generation": 4},
                "status": {"observedGeneration": observed, "replicas": replicas}}),
            )
        };
        assert!(matches!(stopped(Some(&set(3, 0))), Verdict::Waiting(_)));
        assert!(matches!(stopped(Some(&set(4, 1))), Verdict::Waiting(_)));
        assert_eq!(stopped(Some(&set(4, 0))), Verdict::Ready);
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_not_the_one_to_talk_to() {
        let pod = object(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "openbao-0", "deletionTimestamp": "2026-11-30T00:00:00Z"},
            "status": {"containerStatuses": [{"state": {"running": {}}}]}}));
        assert!(matches!(runs(Some(&pod)), Verdict::Waiting(_)));
    }

    #[test]
    fn a_pod_whose_image_cannot_be_pulled_says_so() {
        let pod = object(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "openbao-0"},
            "status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}}),
        );
        assert_eq!(
            runs(Some(&pod)),
            Verdict::Waiting("ImagePullBackOff".to_owned())
        );
    }
}
