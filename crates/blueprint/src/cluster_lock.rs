//! The cluster's lock around a command that changes something: taken, watched, given back.

use blueprint_cluster::{Cluster, LeaseError, RunLease};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::problem::Problem;

/// Held while the cluster is changed.
pub(crate) struct ClusterLock {
    lease: Option<RunLease>,
    stop: CancellationToken,
    watching: Option<JoinHandle<()>>,
}

impl ClusterLock {
    /// Takes it, or says who holds it. An API server that does not answer is no reason to stop where pre-flight follows (`told_later`): that tells it with
    /// everything else that is wanting.
    pub(crate) async fn take(
        app: &App,
        cluster: &Cluster,
        command: &str,
        told_later: bool,
    ) -> Result<Self, Problem> {
        let stop = app.interrupts.gently().child_token();
        let lease = match RunLease::acquire(cluster, command).await {
            Ok(lease) => lease,
            Err(LeaseError::Unreachable(error)) if told_later => {
                app.printer
                    .detail(&format!("the cluster's lock was not taken: {error}"));
                return Ok(Self {
                    lease: None,
                    stop,
                    watching: None,
                });
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(former) = lease.took_over() {
            app.printer
                .say(&format!("took the cluster's lock over from {former}"));
        }
        let (lost, stopping, printer) = (lease.lost(), stop.clone(), app.printer.clone());
        let watching = tokio::spawn(async move {
            lost.cancelled().await;
            printer
                .warn("another run has taken the cluster's lock: running tasks get to a safe point, nothing new starts");
            stopping.cancel();
        });
        Ok(Self {
            lease: Some(lease),
            stop,
            watching: Some(watching),
        })
    }

    /// Cancelled by the first Ctrl-C, and when the lock is lost.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Gives it back; an error where somebody else had it in the end.
    pub(crate) async fn release(mut self) -> Result<(), Problem> {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
        let Some(lease) = self.lease.take() else {
            return Ok(());
        };
        let lost = lease.lost_to().map(str::to_owned);
        lease.release().await;
        match lost {
            None => Ok(()),
            Some(now) => Err(
                Problem::failed("the cluster's lock was lost during the run")
                    .expected("one run at a time")
                    .found(format!("held by {now}"))
                    .hint("wait for the other run to end, then run again: it goes on from here"),
            ),
        }
    }
}

impl Drop for ClusterLock {
    fn drop(&mut self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
    }
}
