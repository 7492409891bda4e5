//! One run at a time on one cluster: a Lease that the run renews while it lives. The file lock of a workspace cannot see a second machine.
//!
//! The Lease stands in kube-system, which is there before anything is installed and which nothing of ours removes. A run that ends takes it away; one that was
//! killed leaves it behind, and the next run sees that: at once on the same machine (its process is gone), after watching it stand still on another one.
//! Clocks of two machines may differ, so a Lease that looks expired is only taken when it is not renewed before our eyes.

mod holder;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use blueprint_failpoint::failpoint;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::connect::Cluster;
use crate::error::Error;
use crate::watch::{ObjectWatch, Seen};

pub use holder::Holder;

/// Where it stands.
pub const NAMESPACE: &str = "kube-system";
/// Its name.
pub const NAME: &str = "blueprint-run";

const API_VERSION: &str = "coordination.k8s.io/v1";
/// A run that has not renewed for this long no longer counts.
const DURATION_SECONDS: i32 = 30;
/// Three tries fit into the duration.
const RENEW_EVERY: Duration = Duration::from_secs(8);
/// After a try that got no answer.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// A living holder renews within this time, whatever its clock says.
const WATCH_FOR: Duration = Duration::from_secs(12);
/// One question to the API server. A server that does not answer is for pre-flight to tell, with everything else that is wanting.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Somebody else may take or free it between two questions.
const ROUNDS: usize = 5;

/// The right to change the cluster, as long as it lives.
#[derive(Debug)]
pub struct RunLease {
    api: Api<Lease>,
    uid: String,
    took_over: Option<String>,
    lost: CancellationToken,
    lost_to: Arc<OnceLock<String>>,
    renewing: JoinHandle<()>,
}

/// Why the cluster could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another live run holds it.
    #[error("another run holds the cluster: {holder}")]
    Held {
        /// Who.
        holder: Box<Holder>,
        /// Seconds since it last said that it lives, by our clock; `None` when it never did.
        renewed: Option<i64>,
    },
    /// The API server does not answer.
    #[error("the API server does not answer")]
    Unreachable(#[source] Box<Error>),
    /// It refused.
    #[error(transparent)]
    Refused(Box<Error>),
}

impl LeaseError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Held { holder, renewed } => {
                let seen = renewed.map_or_else(String::new, |seconds| {
                    format!(" (it last gave a sign {seconds} s ago)")
                });
                Some(format!(
                    "wait for that run to end, or stop it on {} with `kill -INT {}`{seen}; a run that is gone is noticed {DURATION_SECONDS} s after its last \
                     sign, and then `blueprint` goes on by itself",
                    holder.host, holder.pid
                ))
            }
            Self::Unreachable(error) | Self::Refused(error) => error.hint(),
        }
    }
}

/// What is to be done about a Lease that is there.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// Its holder lives.
    Held,
    /// Its holder is gone for certain; why.
    Gone(String),
    /// It looks expired; only watching it tells.
    Quiet,
}

fn judge(lease: &Lease, here: &Holder, now: Timestamp) -> Standing {
    let holder = Holder::of(lease);
    if holder.is_gone(here) {
        return Standing::Gone(format!("{holder}, which was cut off"));
    }
    let duration = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_duration_seconds)
        .unwrap_or(DURATION_SECONDS);
    match renewed(lease, now) {
        Some(seconds) if seconds <= i64::from(duration) => Standing::Held,
        _ => Standing::Quiet,
    }
}

/// Seconds since the last renewal.
fn renewed(lease: &Lease, now: Timestamp) -> Option<i64> {
    let spec = lease.spec.as_ref()?;
    let at = spec.renew_time.as_ref().or(spec.acquire_time.as_ref())?;
    Some(now.as_second() - at.0.as_second())
}

impl RunLease {
    /// Takes the cluster or says who holds it. `command` is what the other one is told: name the subcommand, never an argument's value.
    pub async fn acquire(cluster: &Cluster, command: &str) -> Result<Self, LeaseError> {
        let here = Holder::this_process(command);
        let api = Api::<Lease>::namespaced(cluster.client(), NAMESPACE);
        let mut took_over = None;
        for _ in 0..ROUNDS {
            failpoint!(before, "take", "Lease {NAMESPACE}/{NAME}");
            let made = asked("take the cluster's lock", async {
                match api.create(&PostParams::default(), &lease(&here)).await {
                    Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
                    other => other.map(Some),
                }
            })
            .await?;
            if let Some(made) = made {
                failpoint!(after, "take", "Lease {NAMESPACE}/{NAME}");
                return Ok(Self::held(api, here, &made, took_over));
            }
            let there = asked("read the cluster's lock", async {
                Answer::optional(api.get(NAME).await)
            })
            .await?;
            let Some(there) = there else { continue };
            let why = match judge(&there, &here, Timestamp::now()) {
                Standing::Held => return Err(held_by(&there)),
                Standing::Gone(why) => why,
                Standing::Quiet => {
                    if moves(cluster, &there).await? {
                        return Err(held_by(&there));
                    }
                    format!("{}, which has gone silent", Holder::of(&there))
                }
            };
            // A new object has a new uid: the former holder, should it still live, can neither renew nor remove it.
            remove(&api, &there.metadata).await?;
            took_over = Some(why);
        }
        let there = asked("read the cluster's lock", api.get(NAME)).await?;
        Err(held_by(&there))
    }

    fn held(api: Api<Lease>, here: Holder, made: &Lease, took_over: Option<String>) -> Self {
        let lost = CancellationToken::new();
        let lost_to = Arc::new(OnceLock::new());
        let uid = made.metadata.uid.clone().unwrap_or_default();
        let renewing = tokio::spawn(renew(
            api.clone(),
            here,
            uid.clone(),
            lost.clone(),
            Arc::clone(&lost_to),
        ));
        Self {
            api,
            uid,
            took_over,
            lost,
            lost_to,
            renewing,
        }
    }

    /// The run whose Lease was taken over because it was gone.
    pub fn took_over(&self) -> Option<&str> {
        self.took_over.as_deref()
    }

    /// Cancelled when another run has taken the cluster, or somebody removed the Lease.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Who has it now, once it is lost.
    pub fn lost_to(&self) -> Option<&str> {
        self.lost_to.get().map(String::as_str)
    }

    /// Gives the cluster free. What cannot be removed is noticed by the next run.
    pub async fn release(self) {
        self.renewing.abort();
        let meta = ObjectMeta {
            uid: Some(self.uid.clone()),
            ..ObjectMeta::default()
        };
        if let Err(error) = remove(&self.api, &meta).await {
            tracing::debug!(%error, "the cluster's lock could not be removed");
        }
    }
}

impl Drop for RunLease {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

fn lease(here: &Holder) -> Lease {
    let now = MicroTime(Timestamp::now());
    Lease {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            labels: Some(
                [(
                    "app.kubernetes.io/managed-by".to_owned(),
                    "blueprint".to_owned(),
                )]
                .into(),
            ),
            annotations: Some(here.annotations()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(here.identity()),
            lease_duration_seconds: Some(DURATION_SECONDS),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    }
}

fn held_by(lease: &Lease) -> LeaseError {
    LeaseError::Held {
        holder: Box::new(Holder::of(lease)),
        renewed: renewed(lease, Timestamp::now()).map(|seconds| seconds.max(0)),
    }
}

/// One question, bounded in time.
async fn asked<T>(
    action: &str,
    question: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, LeaseError> {
    let error = match timeout(ANSWER_WITHIN, question).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => Error::api(action, error),
        Err(elapsed) => {
            let error = Error::api(action, kube::Error::Service(Box::new(elapsed)));
            return Err(LeaseError::Unreachable(Box::new(error)));
        }
    };
    Err(if error.is_transient() {
        LeaseError::Unreachable(Box::new(error))
    } else {
        LeaseError::Refused(Box::new(error))
    })
}

/// Whether the Lease is renewed, or exchanged, while we look.
async fn moves(cluster: &Cluster, before: &Lease) -> Result<bool, LeaseError> {
    let ends = Instant::now() + WATCH_FOR;
    let mut watch = ObjectWatch::new(cluster, API_VERSION, "Lease", Some(NAMESPACE), NAME);
    loop {
        match timeout_at(ends, watch.next()).await {
            Err(_) | Ok(Ok(Seen::Absent)) => return Ok(false),
            Ok(Ok(Seen::Present(object)))
                if object.metadata.resource_version != before.metadata.resource_version =>
            {
                return Ok(true);
            }
            Ok(Ok(Seen::Present(_) | Seen::Broken(_))) => {}
            Ok(Err(error)) => return Err(LeaseError::Refused(Box::new(error))),
        }
    }
}

/// Removes the object that is meant and no other one of the name.
async fn remove(api: &Api<Lease>, meant: &ObjectMeta) -> Result<(), LeaseError> {
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: meant.uid.clone(),
            resource_version: meant.resource_version.clone(),
        }),
        ..DeleteParams::default()
    };
    failpoint!(before, "free", "Lease {NAMESPACE}/{NAME}");
    asked("free the cluster's lock", async {
        match api.delete(NAME, &parameters).await {
            // Gone, or another one by now: the next look tells.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            other => other.map(drop),
        }
    })
    .await?;
    failpoint!(after, "free", "Lease {NAMESPACE}/{NAME}");
    Ok(())
}

/// Renews until the Lease is somebody else's. An API server that does not answer is asked again: whoever took the Lease meanwhile is seen when it does.
async fn renew(
    api: Api<Lease>,
    here: Holder,
    uid: String,
    lost: CancellationToken,
    lost_to: Arc<OnceLock<String>>,
) {
    let mut pause = RENEW_EVERY;
    loop {
        tokio::time::sleep(pause).await;
        // The uid in a patch is a precondition: a conflict means that it is another object.
        let patch =
            json!({"metadata": {"uid": uid}, "spec": {"renewTime": MicroTime(Timestamp::now())}});
        let parameters = PatchParams::default();
        let renewed = timeout(
            ANSWER_WITHIN,
            api.patch_metadata(NAME, &parameters, &Patch::Merge(&patch)),
        )
        .await;
        pause = match renewed {
            Ok(Ok(_)) => RENEW_EVERY,
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409 | 422) => {
                match api.get_opt(NAME).await {
                    Ok(Some(there)) if there.metadata.uid.as_ref() == Some(&uid) => TRY_AGAIN_AFTER,
                    Ok(there) => {
                        let words = there.map_or_else(
                            || format!("nobody: Lease {NAMESPACE}/{NAME} was removed"),
                            |there| Holder::of(&there).to_string(),
                        );
                        tracing::debug!(holder = %here, now = words, "the cluster's lock is lost");
                        lost_to.set(words).ok();
                        lost.cancel();
                        return;
                    }
                    Err(_) => TRY_AGAIN_AFTER,
                }
            }
            _ => TRY_AGAIN_AFTER,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_of(renewed_ago: i64, holder: &Holder) -> Lease {
        let mut lease = lease(holder);
        let at = Timestamp::from_second(Timestamp::now().as_second() - renewed_ago).unwrap();
        lease.spec.as_mut().unwrap().renew_time = Some(MicroTime(at));
        lease
    }

    fn elsewhere() -> Holder {
        Holder {
            host: "laptop".to_owned(),
            place: "another kernel".to_owned(),
            ..Holder::this_process("blueprint up")
        }
    }

    #[test]
    fn a_live_holder_keeps_it_and_a_silent_one_is_watched_first() {
        let here = Holder::this_process("blueprint up");
        let judged = |ago, holder: &Holder| judge(&lease_of(ago, holder), &here, Timestamp::now());
        assert_eq!(judged(5, &elsewhere()), Standing::Held);
        assert_eq!(judged(31, &elsewhere()), Standing::Quiet);
        // This very process lives, however old the sign.
        assert_eq!(judged(5, &here), Standing::Held);
    }

    #[test]
    fn a_killed_run_of_this_machine_is_known_at_once() {
        let here = Holder::this_process("blueprint up");
        let killed = Holder {
            pid: 4_194_305,
            ..here.clone()
        };
        assert!(matches!(
            judge(&lease_of(1, &killed), &here, Timestamp::now()),
            Standing::Gone(_)
        ));
        // The number of the killed one, given to another process since.
        let reused = Holder {
            started: here.started.map(|ticks| ticks + 1),
            ..here.clone()
        };
        assert!(matches!(
            judge(&lease_of(1, &reused), &here, Timestamp::now()),
            Standing::Gone(_)
        ));
    }

    #[test]
    fn the_message_says_who_where_and_since_when() {
        let error = held_by(&lease_of(5, &elsewhere()));
        let text = format!("{error} {}", error.hint().unwrap());
        let pid = std::process::id();
        assert!(text.contains(&format!("process {pid} on laptop")), "{text}");
        assert!(
            text.contains("since 20") && text.contains("5 s ago"),
            "{text}"
        );
    }
}
