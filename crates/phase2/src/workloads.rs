//! Workloads: waited for with their blockers said, or judged without waiting.

use std::time::Duration;

use blueprint_cluster::wait::workload_ready;
use blueprint_cluster::{Verdict, WaitFor};

use crate::error::Error;
use crate::installer::{State, Work};
use crate::stuck_revision;

/// One Deployment or StatefulSet and the pods to blame for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload {
    /// `Deployment`, `StatefulSet`.
    pub(crate) kind: &'static str,
    /// Namespace.
    pub(crate) namespace: &'static str,
    /// Name.
    pub(crate) name: &'static str,
    /// Label selector of its pods.
    pub(crate) pods: &'static str,
}

impl Workload {
    /// `StatefulSet redis/redis-master`.
    pub(crate) fn describe(&self) -> String {
        blueprint_cluster::object::describe(self.kind, Some(self.namespace), self.name)
    }

    /// Waits until the newest generation is rolled out and ready.
    pub(crate) async fn wait(&self, work: Work<'_>, deadline: Duration) -> Result<(), Error> {
        let what = self.describe();
        let target = WaitFor {
            what: &what,
            api_version: "apps/v1",
            kind: self.kind,
            namespace: Some(self.namespace),
            name: self.name,
            pods: Some(self.pods),
            deadline,
        };
        let say = |blocker| work.progress.waiting(blocker);
        // On the heap: many tasks hold such a wait.
        let rolled_out = Box::pin(work.context.cluster.wait(&target, &workload_ready, &say));
        if self.kind == "StatefulSet" {
            tokio::select! {
                done = rolled_out => { done?; }
                never = Box::pin(stuck_revision::free(self, work)) => match never {},
            }
        } else {
            rolled_out.await?;
        }
        Ok(())
    }

    /// How it stands now.
    pub(crate) async fn state(&self, work: Work<'_>) -> Result<State, Error> {
        let object = work
            .context
            .cluster
            .get("apps/v1", self.kind, Some(self.namespace), self.name)
            .await?;
        if object.is_none() {
            return Ok(State::Missing);
        }
        Ok(match workload_ready(object.as_ref()) {
            Verdict::Ready => State::Ready,
            Verdict::Waiting(why) | Verdict::Hopeless(why) => {
                State::Broken(format!("{}: {why}", self.describe()))
            }
        })
    }

    /// Whether it exists at all.
    pub(crate) async fn exists(&self, work: Work<'_>) -> Result<bool, Error> {
        Ok(work
            .context
            .cluster
            .get("apps/v1", self.kind, Some(self.namespace), self.name)
            .await?
            .is_some())
    }

    /// Restarts its pods, as `kubectl rollout restart` does.
    pub(crate) async fn restart(&self, work: Work<'_>) -> Result<(), Error> {
        work.context
            .cluster
            .rollout_restart(self.kind, self.namespace, self.name)
            .await?;
        Ok(())
    }
}

/// The release's state, and when that is as wanted, the workloads'.
pub(crate) async fn release_and_workloads(
    release: State,
    workloads: &[Workload],
    work: Work<'_>,
) -> Result<State, Error> {
    if release != State::Ready {
        return Ok(release);
    }
    for workload in workloads {
        match workload.state(work).await? {
            State::Ready => {}
            State::Missing => {
                return Ok(State::Broken(format!(
                    "{} is missing although its release is deployed",
                    workload.describe()
                )));
            }
            other => return Ok(other),
        }
    }
    Ok(State::Ready)
}
