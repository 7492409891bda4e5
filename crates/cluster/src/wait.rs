//! Watches with a deadline that name their blocker.

use std::time::Duration;

use kube::api::{DynamicObject, ObjectMeta, TypeMeta};
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout, timeout_at};

use crate::connect::Cluster;
use crate::error::Error;
use crate::object::describe;
use crate::watch::{ObjectWatch, Seen};

/// What a look at the object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There.
    Ready,
    /// Not yet, and why.
    Waiting(String),
    /// Never, and why.
    Hopeless(String),
}

/// What to wait for.
#[derive(Debug, Clone)]
pub struct WaitFor<'a> {
    /// In words: `Redis to be ready`.
    pub what: &'a str,
    /// `apps/v1`.
    pub api_version: &'a str,
    /// `StatefulSet`.
    pub kind: &'a str,
    /// Namespace, `None` for cluster-wide kinds.
    pub namespace: Option<&'a str>,
    /// Name. The object need not exist yet.
    pub name: &'a str,
    /// Pods to blame while waiting (label selector in the namespace); `None` blames nobody but the object itself.
    pub pods: Option<&'a str>,
    /// How long.
    pub deadline: Duration,
}

/// Called with the blocker each time it changes.
pub type SayBlocker<'a> = &'a (dyn Fn(String) + Send + Sync);

/// Blockers are looked at this often, and not more often than [`SETTLE`] when the object changes fast.
const LOOK: Duration = Duration::from_secs(5);
const SETTLE: Duration = Duration::from_secs(1);
/// A look at blockers or a gathering of evidence must not outlive the wait by much when the API server hangs.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Watches the object until `judge` says Ready; `judge` gets `None` while it does not exist. A watch that breaks (API server restart) is begun again
    /// within the deadline. The blockers are looked at when the object changes and every 5 s.
    pub async fn wait(
        &self,
        target: &WaitFor<'_>,
        judge: &(dyn Fn(Option<&DynamicObject>) -> Verdict + Send + Sync),
        say: SayBlocker<'_>,
    ) -> Result<DynamicObject, Error> {
        let ends = Instant::now() + target.deadline;
        let mut watch = ObjectWatch::new(
            self,
            target.api_version,
            target.kind,
            target.namespace,
            target.name,
        );
        let mut looks = interval_at(Instant::now() + LOOK, LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut speaker = Speaker {
            say,
            last: String::new(),
        };
        let mut waiting = "the API server has not answered yet".to_owned();
        let mut looked = None::<Instant>;
        loop {
            let seen = tokio::select! {
                biased;
                () = sleep_until(ends) => return Err(self.overdue(target, waiting).await),
                seen = watch.next() => Some(seen?),
                _ = looks.tick() => None,
            };
            let changed = seen.is_some();
            match seen {
                None => {}
                Some(Seen::Broken(why)) => {
                    waiting = format!("the API server does not answer: {why}");
                    speaker.tell(&waiting);
                    continue;
                }
                Some(Seen::Absent) => match judge(None) {
                    Verdict::Ready => return Ok(nothing(target)),
                    Verdict::Waiting(why) => waiting = why,
                    Verdict::Hopeless(found) => return Err(self.hopeless(target, found).await),
                },
                Some(Seen::Present(object)) => match judge(Some(&object)) {
                    Verdict::Ready => return Ok(*object),
                    Verdict::Waiting(why) => waiting = why,
                    Verdict::Hopeless(found) => return Err(self.hopeless(target, found).await),
                },
            }
            if changed && looked.is_some_and(|at| at.elapsed() < SETTLE) {
                continue;
            }
            let blocker = tokio::select! {
                () = sleep_until(ends) => return Err(self.overdue(target, waiting).await),
                blocker = self.worst_blocker(target) => blocker,
            };
            looked = Some(Instant::now());
            speaker.tell(blocker.as_ref().unwrap_or(&waiting));
        }
    }

    /// Polls something that cannot be watched (a port, a name), with a pause between tries and the same words at the deadline.
    pub async fn wait_until<T, F, Fut>(
        &self,
        what: &str,
        deadline: Duration,
        pause: Duration,
        say: SayBlocker<'_>,
        attempt: F,
    ) -> Result<T, Error>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<Result<T, String>, Error>> + Send,
        T: Send,
    {
        let mut attempt = attempt;
        let ends = Instant::now() + deadline;
        let mut speaker = Speaker {
            say,
            last: String::new(),
        };
        let mut blocker = "the first try has not ended".to_owned();
        loop {
            match timeout_at(ends, attempt()).await {
                Ok(Ok(Ok(found))) => return Ok(found),
                Ok(Ok(Err(why))) => blocker = why,
                Ok(Err(error)) if error.is_transient() => blocker = with_causes(&error),
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
            speaker.tell(&blocker);
            if Instant::now() + pause >= ends {
                return Err(Error::Deadline {
                    what: what.to_owned(),
                    deadline,
                    blocker,
                    evidence: Vec::new(),
                });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// The first blocker's text, if pods are to be blamed and one blocks.
    async fn worst_blocker(&self, target: &WaitFor<'_>) -> Option<String> {
        let (Some(namespace), Some(pods)) = (target.namespace, target.pods) else {
            return None;
        };
        let blockers = timeout(LOOK_LIMIT, self.blockers(namespace, pods))
            .await
            .ok()?
            .ok()?;
        blockers.first().map(ToString::to_string)
    }

    async fn overdue(&self, target: &WaitFor<'_>, waiting: String) -> Error {
        let object = format!(
            "{}: {waiting}",
            describe(target.kind, target.namespace, target.name)
        );
        let mut evidence = Vec::new();
        let blocker = match self.worst_blocker(target).await {
            Some(blocker) => {
                evidence.push(object);
                blocker
            }
            None => object,
        };
        evidence.extend(self.evidence_for(target).await);
        Error::Deadline {
            what: target.what.to_owned(),
            deadline: target.deadline,
            blocker,
            evidence,
        }
    }

    async fn hopeless(&self, target: &WaitFor<'_>, found: String) -> Error {
        Error::Hopeless {
            what: target.what.to_owned(),
            found,
            evidence: self.evidence_for(target).await,
        }
    }

    async fn evidence_for(&self, target: &WaitFor<'_>) -> Vec<String> {
        let (Some(namespace), Some(pods)) = (target.namespace, target.pods) else {
            return Vec::new();
        };
        timeout(LOOK_LIMIT, self.evidence(namespace, pods))
            .await
            .unwrap_or_default()
    }
}

/// Says a blocker once.
struct Speaker<'a> {
    say: SayBlocker<'a>,
    last: String,
}

impl Speaker<'_> {
    fn tell(&mut self, blocker: &str) {
        if self.last != blocker {
            blocker.clone_into(&mut self.last);
            (self.say)(blocker.to_owned());
        }
    }
}

/// An error and its causes in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// What a wait for absence returns.
fn nothing(target: &WaitFor<'_>) -> DynamicObject {
    DynamicObject {
        types: Some(TypeMeta {
            api_version: target.api_version.to_owned(),
            kind: target.kind.to_owned(),
        }),
        metadata: ObjectMeta {
            name: Some(target.name.to_owned()),
            namespace: target.namespace.map(str::to_owned),
            ..ObjectMeta::default()
        },
        data: Value::Null,
    }
}

/// Judges a workload: Deployment, StatefulSet, DaemonSet: the newest generation observed, all replicas updated and ready.
/// A StatefulSet that is updated `OnDelete` keeps its old pods until they are deleted, so there only readiness counts.
pub fn workload_ready(object: Option<&DynamicObject>) -> Verdict {
    let Some(object) = object else {
        return absent();
    };
    let number = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_i64);
    let text = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_str);
    if number("/status/observedGeneration").unwrap_or(0) < object.metadata.generation.unwrap_or(0) {
        return Verdict::Waiting(
            "its newest version was not yet taken up by the controller".to_owned(),
        );
    }
    let status = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
    let kind = object
        .types
        .as_ref()
        .map_or("", |types| types.kind.as_str());
    let (wanted, updated, ready, leftover) = match kind {
        "DaemonSet" => (
            status("desiredNumberScheduled"),
            status("updatedNumberScheduled"),
            status("numberAvailable"),
            0,
        ),
        "StatefulSet" => {
            let wanted = number("/spec/replicas").unwrap_or(1);
            let kept = match text("/spec/updateStrategy/type") {
                Some("OnDelete") => wanted,
                _ => number("/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0),
            };
            (
                wanted,
                status("updatedReplicas") + kept,
                status("readyReplicas"),
                status("replicas") - wanted,
            )
        }
        _ => {
            let updated = status("updatedReplicas");
            (
                number("/spec/replicas").unwrap_or(1),
                updated,
                status("availableReplicas"),
                status("replicas") - updated,
            )
        }
    };
    if updated < wanted {
        return Verdict::Waiting(format!("{updated} of {wanted} replicas updated"));
    }
    if leftover > 0 {
        return Verdict::Waiting(format!("{leftover} old replicas still there"));
    }
    if ready < wanted {
        return Verdict::Waiting(format!("{ready} of {wanted} replicas ready"));
    }
    Verdict::Ready
}

/// Judges `status.conditions[type].status == "True"`. A condition that tells which generation it is about must be about the newest.
pub fn condition_true(
    condition: &'static str,
) -> impl Fn(Option<&DynamicObject>) -> Verdict + Send + Sync {
    move |object| {
        let Some(object) = object else {
            return absent();
        };
        let conditions = object
            .data
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let found = conditions
            .into_iter()
            .flatten()
            .find(|found| found.get("type").and_then(Value::as_str) == Some(condition));
        let Some(found) = found else {
            return Verdict::Waiting(format!("it has no condition {condition} yet"));
        };
        let text = |field: &str| found.get(field).and_then(Value::as_str).unwrap_or_default();
        if found
            .get("observedGeneration")
            .and_then(Value::as_i64)
            .is_some_and(|seen| seen < object.metadata.generation.unwrap_or(0))
        {
            return Verdict::Waiting(format!("{condition} is about an older version of it"));
        }
        if text("status") == "True" {
            return Verdict::Ready;
        }
        let why = [text("reason"), text("message")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": ");
        Verdict::Waiting(format!(
            "{condition} is {}{}",
            text("status"),
            if why.is_empty() {
                String::new()
            } else {
                format!(" ({why})")
            }
        ))
    }
}

fn absent() -> Verdict {
    Verdict::Waiting("it does not exist yet".to_owned())
}

#[cfg(test)]
#[path = "wait_tests.rs"]
mod tests;
