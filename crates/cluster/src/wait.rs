//! Watches with a deadline that name their blocker.

use std::time::Duration;

use kube::api::DynamicObject;

use crate::connect::Cluster;
use crate::error::Error;

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

impl Cluster {
    /// Watches the object until `judge` says Ready; `judge` gets `None` while it does not exist. A watch that breaks (API server restart) is begun again
    /// within the deadline. The blockers are looked at when the object changes and every 5 s.
    pub async fn wait(
        &self,
        target: &WaitFor<'_>,
        judge: &(dyn Fn(Option<&DynamicObject>) -> Verdict + Send + Sync),
        say: SayBlocker<'_>,
    ) -> Result<DynamicObject, Error> {
        todo!()
    }

    /// Polls something that cannot be watched (a port, a name), with a pause between tries and the same words at the deadline.
    pub async fn wait_until<T, F, Fut>(&self, what: &str, deadline: Duration, pause: Duration, say: SayBlocker<'_>, attempt: F) -> Result<T, Error>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<Result<T, String>, Error>> + Send,
        T: Send,
    {
        todo!()
    }
}

/// Judges a workload: Deployment, StatefulSet, DaemonSet: the newest generation observed, all replicas updated and ready.
pub fn workload_ready(object: Option<&DynamicObject>) -> Verdict {
    todo!()
}

/// Judges `status.conditions[type].status == "True"`.
pub fn condition_true(condition: &'static str) -> impl Fn(Option<&DynamicObject>) -> Verdict + Send + Sync {
    move |_| todo!()
}
