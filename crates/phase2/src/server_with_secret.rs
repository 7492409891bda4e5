//! A release whose server reads a Secret of ours, and only when it starts.

use std::time::Duration;

use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;

use crate::error::Error;
use crate::helm_release::{self, ReleaseSpec};
use crate::installer::Work;
use crate::workloads::Workload;

/// Pulling its image is the longest part.
const READY_WITHIN: Duration = Duration::from_mins(5);

pub(crate) struct ServerWithSecret<'a> {
    pub(crate) release: &'a ReleaseSpec,
    pub(crate) workload: &'a Workload,
    pub(crate) secret: &'a SecretManifest,
    /// What a restart makes it take, for example `the new password`.
    pub(crate) what: &'static str,
}

impl ServerWithSecret<'_> {
    /// Applies the Secret and the release, and waits until the server runs with what the Secret holds. A run that was cut off after the Secret leaves a server
    /// with an older one: `refused` asks it, once it is Ready.
    ///
    /// # Errors
    ///
    /// What the API server, helm or the wait says.
    pub(crate) async fn ensure(
        &self,
        work: Work<'_>,
        outcome: &mut Outcome,
        refused: impl Future<Output = Result<bool, Error>> + Send,
    ) -> Result<(), Error> {
        let cluster = &work.context.cluster;
        let secret_change = cluster.apply_secret(self.secret).await?.phrase();
        let secret_changed = secret_change.is_some();
        outcome.changes.extend(secret_change);

        let ran_before = self.workload.exists(work).await?;
        helm_release::ensure(work, self.release, outcome).await?;
        if secret_changed && ran_before {
            self.restart(work, outcome).await?;
        }
        self.workload.wait(work, READY_WITHIN).await?;
        if refused.await? {
            self.restart(work, outcome).await?;
            self.workload.wait(work, READY_WITHIN).await?;
        }
        Ok(())
    }

    async fn restart(&self, work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        self.workload.restart(work).await?;
        outcome.changed(format!(
            "restarted {} to take {}",
            self.workload.describe(),
            self.what
        ));
        Ok(())
    }
}
