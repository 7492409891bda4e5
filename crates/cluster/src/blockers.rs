//! Who blocks: pods that are not ready, each with its reason and last event.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams};
use tracing::debug;

use crate::connect::Cluster;
use crate::diagnose;
use crate::error::Error;
use crate::events::Warnings;
use crate::object::describe;
use crate::retry::once;

/// One blocker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// `pod redis/redis-master-0`, `PersistentVolumeClaim …`, `Job …`.
    pub object: String,
    /// `ImagePullBackOff docker.io/bitnami/redis:x`, `Pending: 0/3 nodes are available: …`, `CrashLoopBackOff (exit 1)`, `starting`.
    pub reason: String,
    /// Its last warning event.
    pub last_event: Option<String>,
    /// Whether it looks like more than just starting.
    pub serious: bool,
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.object, self.reason)?;
        if let Some(event) = &self.last_event {
            write!(f, " ({event})")?;
        }
        Ok(())
    }
}

/// How many events and pods evidence is made of, and how many log lines of each pod.
const EVIDENCE_EVENTS: usize = 5;
const EVIDENCE_PODS: usize = 3;
const EVIDENCE_LINES: i64 = 10;

impl Cluster {
    /// All blockers among the pods (and their claims) that match, the serious ones first.
    /// Asked once, without retries: whoever waits looks again.
    pub async fn blockers(&self, namespace: &str, selector: &str) -> Result<Vec<Blocker>, Error> {
        let pods = self.pods_now(namespace, selector).await?;
        let jobs = self.jobs_now(namespace, selector, &pods).await?;
        let warnings = Warnings::of(self, namespace).await?;
        let now = Timestamp::now();
        let mut blockers = jobs
            .iter()
            .filter_map(|job| failed_job(job, namespace, &warnings))
            .collect::<Vec<_>>();
        for pod in &pods {
            if of_a_settled_job(pod, &jobs) {
                continue;
            }
            let Some(finding) = diagnose::pod(pod, now) else {
                continue;
            };
            for claim in self.unbound_claims(namespace, pod, &warnings).await? {
                // Pods may share a claim.
                if !blockers.contains(&claim) {
                    blockers.push(claim);
                }
            }
            blockers.push(pod_blocker(pod, namespace, finding, &warnings));
        }
        if pods.is_empty()
            && let Some(refusal) = warnings.refused_pod()
        {
            blockers.push(refusal);
        }
        blockers.sort_by_key(|blocker| !blocker.serious);
        Ok(blockers)
    }

    /// Evidence for a deadline: last warning events of the namespace and the last log lines of the unready pods.
    pub async fn evidence(&self, namespace: &str, selector: &str) -> Vec<String> {
        let mut evidence = match Warnings::of(self, namespace).await {
            Ok(warnings) => warnings.newest(EVIDENCE_EVENTS),
            Err(error) => vec![format!(
                "the events of {namespace} could not be read: {}",
                crate::wait::with_causes(&error)
            )],
        };
        let now = Timestamp::now();
        let pods = self.pods_now(namespace, selector).await.unwrap_or_default();
        let mut unready = pods
            .iter()
            .filter_map(|pod| Some((pod, diagnose::pod(pod, now)?)))
            .collect::<Vec<_>>();
        unready.sort_by_key(|(_, finding)| !finding.serious);
        let logs = unready.iter().filter_map(|(pod, finding)| {
            Some((pod.metadata.name.as_deref()?, finding.log.as_ref()?))
        });
        for (pod, (container, previous)) in logs.take(EVIDENCE_PODS) {
            evidence.extend(self.last_words(namespace, pod, container, *previous).await);
        }
        evidence
    }

    async fn last_words(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
    ) -> Vec<String> {
        let api = Api::<Pod>::namespaced(self.client(), namespace);
        let parameters = LogParams {
            container: Some(container.to_owned()),
            previous,
            tail_lines: Some(EVIDENCE_LINES),
            ..LogParams::default()
        };
        match once(
            &format!("read the log of pod {namespace}/{pod}"),
            api.logs(pod, &parameters),
        )
        .await
        {
            Ok(text) => text
                .lines()
                .map(|line| format!("log of {namespace}/{pod} {container}: {line}"))
                .collect(),
            Err(error) => {
                debug!(?error, pod, "no log for the evidence");
                Vec::new()
            }
        }
    }

    async fn pods_now(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        let api = Api::<Pod>::namespaced(self.client(), namespace);
        Ok(once(
            &format!("list pods of {namespace}"),
            api.list(&ListParams::default().labels(selector)),
        )
        .await?
        .items)
    }

    /// Jobs that match themselves, and those that own matching pods.
    async fn jobs_now(
        &self,
        namespace: &str,
        selector: &str,
        pods: &[Pod],
    ) -> Result<Vec<Job>, Error> {
        let api = Api::<Job>::namespaced(self.client(), namespace);
        let action = format!("list jobs of {namespace}");
        let mut jobs = once(&action, api.list(&ListParams::default().labels(selector)))
            .await?
            .items;
        for owner in pods.iter().filter_map(owning_job) {
            if jobs
                .iter()
                .all(|job| job.metadata.name.as_deref() != Some(owner))
            {
                jobs.extend(once(&action, api.get_opt(owner)).await?);
            }
        }
        Ok(jobs)
    }
}

fn pod_blocker(
    pod: &Pod,
    namespace: &str,
    finding: diagnose::Finding,
    warnings: &Warnings,
) -> Blocker {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let event = warnings.last_of("Pod", name);
    let mut blocker = Blocker {
        object: describe("pod", Some(namespace), name),
        reason: finding.reason,
        last_event: None,
        serious: finding.serious,
    };
    if let Some(event) = event {
        // A mount or sandbox that fails leaves the container in plain ContainerCreating.
        let keeps_it_from_starting = matches!(
            event.reason.as_str(),
            "FailedMount" | "FailedAttachVolume" | "FailedCreatePodSandBox"
        );
        blocker.serious |= keeps_it_from_starting && blocker.reason == "starting";
        // The scheduler's event says what the pod's condition says.
        if event.reason != "FailedScheduling" {
            blocker.last_event = Some(event.to_string());
        }
    }
    blocker
}

fn owning_job(pod: &Pod) -> Option<&str> {
    pod.metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.kind == "Job")
        .map(|owner| owner.name.as_str())
}

/// A pod of a Job that is complete, or that failed for good and is reported itself.
fn of_a_settled_job(pod: &Pod, jobs: &[Job]) -> bool {
    owning_job(pod).is_some_and(|owner| {
        jobs.iter()
            .filter(|job| job.metadata.name.as_deref() == Some(owner))
            .any(|job| has_condition(job, "Complete") || has_condition(job, "Failed"))
    })
}

fn has_condition(job: &Job, wanted: &str) -> bool {
    conditions(job).any(|condition| condition.type_ == wanted && condition.status == "True")
}

fn conditions(job: &Job) -> impl Iterator<Item = &k8s_openapi::api::batch::v1::JobCondition> {
    job.status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
}

fn failed_job(job: &Job, namespace: &str, warnings: &Warnings) -> Option<Blocker> {
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let failed = conditions(job)
        .find(|condition| condition.type_ == "Failed" && condition.status == "True")?;
    let words = [failed.reason.as_deref(), failed.message.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(": ");
    let name = job.metadata.name.as_deref().unwrap_or_default();
    Some(Blocker {
        object: describe("Job", Some(namespace), name),
        reason: format!("Failed ({words})"),
        // BackoffLimitExceeded is what the condition says already.
        last_event: warnings
            .last_of("Job", name)
            .filter(|event| Some(event.reason.as_str()) != failed.reason.as_deref())
            .map(ToString::to_string),
        serious: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(condition: &str) -> Job {
        let conditions = json!([{"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}]);
        serde_json::from_value(
            json!({"metadata": {"name": "migrations"}, "status": {"conditions": conditions}}),
        )
        .unwrap()
    }

    fn failed_pod() -> Pod {
        let owner =
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "migrations", "uid": "u"}]);
        serde_json::from_value(json!({"metadata": {"name": "migrations-x", "ownerReferences": owner}, "status": {"phase": "Failed"}})).unwrap()
    }

    #[test]
    fn a_failed_job_is_a_blocker_and_a_complete_one_hides_its_failed_pods() {
        let none = Warnings::default();
        let blocker = failed_job(&job("Failed"), "gitlab", &none).unwrap();
        assert_eq!(
            blocker.to_string(),
            "Job gitlab/migrations: Failed (BackoffLimitExceeded: Job has reached the specified backoff limit)"
        );
        assert_eq!(failed_job(&job("Complete"), "gitlab", &none), None);
        assert!(of_a_settled_job(&failed_pod(), &[job("Complete")]));
        assert!(of_a_settled_job(&failed_pod(), &[job("Failed")]));
        assert!(!of_a_settled_job(&failed_pod(), &[job("Suspended")]));
    }

    #[test]
    fn a_blocker_reads_as_one_line() {
        let blocker = Blocker {
            object: "pod redis/redis-master-0".into(),
            reason: "starting".into(),
            last_event: Some("FailedMount: secret \"a\" not found".into()),
            serious: true,
        };
        assert_eq!(
            blocker.to_string(),
            "pod redis/redis-master-0: starting (FailedMount: secret \"a\" not found)"
        );
    }
}
