//! Every installer, by task id; the pipeline's [`TaskRunner`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blueprint_pipeline::{Failure, Outcome, Progress, TaskRunner};
use tokio_util::sync::CancellationToken;

use crate::cloudnative_pg::{CnpgCluster, CnpgOperator};
use crate::context::Context;
use crate::coredns_patch::CoreDnsPatch;
use crate::error::Error;
use crate::gateway::GatewayCrds;
use crate::gitlab::Gitlab;
use crate::installer::{Installer, Work};
use crate::kind_node_trust::KindNodeTrust;
use crate::local_path_provisioner::LocalPathProvisioner;
use crate::made_with;
use crate::minio::{Buckets, Minio};
use crate::openbao::OpenBao;
use crate::persistent_secrets::{SecretsRestore, SecretsSnapshot};
use crate::preflight::Preflight;
use crate::redis::Redis;
use crate::registry_dns_pin::RegistryDnsPin;
use crate::runner::Runner;
use crate::stable_storage::StableStorage;
use crate::wildcard_certs::WildcardCerts;

/// How long a task may go on after Ctrl-C to reach a safe point: an answer that must not be lost (OpenBao's keys) is on disk well within it.
const GRACE: Duration = Duration::from_secs(10);
/// After the helms under way have ended: time to note what they did (the snapshot of GitLab's Secrets).
const AFTER_HELM: Duration = Duration::from_secs(5);

/// All installers.
pub struct Catalog {
    installers: Vec<Arc<dyn Installer>>,
}

impl Catalog {
    /// Every installer, in the table's order.
    pub fn new() -> Self {
        let installers: Vec<Arc<dyn Installer>> = vec![
            Arc::new(Preflight),
            Arc::new(GatewayCrds),
            Arc::new(LocalPathProvisioner),
            Arc::new(StableStorage),
            Arc::new(CnpgOperator),
            Arc::new(CnpgCluster),
            Arc::new(Redis),
            Arc::new(Minio),
            Arc::new(Buckets),
            Arc::new(OpenBao),
            Arc::new(WildcardCerts),
            Arc::new(CoreDnsPatch),
            Arc::new(KindNodeTrust),
            Arc::new(SecretsRestore),
            Arc::new(Gitlab),
            Arc::new(SecretsSnapshot),
            Arc::new(RegistryDnsPin),
            Arc::new(Runner),
        ];
        Self { installers }
    }

    /// The installer of a task.
    pub fn get(&self, task: &str) -> Option<&Arc<dyn Installer>> {
        self.installers
            .iter()
            .find(|installer| installer.id() == task)
    }

    /// All of them, in the table's order.
    pub fn installers(&self) -> &[Arc<dyn Installer>] {
        &self.installers
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs tasks by their installer.
pub struct Phase2 {
    /// Shared by all tasks.
    pub context: Arc<Context>,
    /// All installers.
    pub catalog: Catalog,
}

#[async_trait]
impl TaskRunner for Phase2 {
    async fn run(
        &self,
        task: &str,
        progress: Progress,
        cancel: CancellationToken,
    ) -> Result<Outcome, Failure> {
        let installer = self
            .installer(task)
            .map_err(|error| error.into_failure(task))?;
        // Pre-flight itself only looks, and tells this with everything else that is wanting.
        if installer.id() != Preflight.id() {
            made_with::enter(&self.context).map_err(|error| error.into_failure(task))?;
        }
        let work = Work {
            context: &self.context,
            progress: &progress,
        };
        to_safe_point(task, "blueprint up", work, installer.install(work), cancel).await
    }
}

impl Phase2 {
    /// The installer of a task of the table.
    pub(crate) fn installer(&self, task: &str) -> Result<&Arc<dyn Installer>, Error> {
        self.catalog.get(task).ok_or_else(|| Error::Failed {
            action: format!("find the installer of `{task}`"),
            found: "there is none of this name".to_owned(),
            hint: "please report this: table and catalog do not fit".to_owned(),
        })
    }
}

/// A task's work until it ends, or, once the run is cancelled, until it had the time to reach a safe point. `command` goes on from there.
pub(crate) async fn to_safe_point(
    task: &str,
    command: &str,
    within: Work<'_>,
    work: impl Future<Output = Result<Outcome, Error>>,
    cancel: CancellationToken,
) -> Result<Outcome, Failure> {
    tokio::select! {
        answer = work => answer.map_err(|error| error.into_failure(task)),
        () = stopped(within.context, within.progress, &cancel) => Err(Failure {
            summary: format!("{task} was interrupted"),
            hint: Some(format!("run `{command}` again: it goes on from here")),
            ..Failure::default()
        }),
    }
}

/// Resolves when a stopped run's task must give up: at its safe point, and never before a helm under way has ended (one that is cut off leaves a release that
/// must be mended).
async fn stopped(context: &Context, progress: &Progress, cancel: &CancellationToken) {
    cancel.cancelled().await;
    let Some(helm) = &context.helm else {
        return tokio::time::sleep(GRACE).await;
    };
    helm.start_no_more();
    tokio::time::sleep(GRACE).await;
    let waited = AtomicBool::new(false);
    helm.until_idle(&|releases| {
        waited.store(true, Ordering::Relaxed);
        progress.waiting(format!(
            "helm, which works on {releases} and is not cut off (Ctrl-C again to stop at once)"
        ));
    })
    .await;
    if waited.into_inner() {
        tokio::time::sleep(AFTER_HELM).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TABLE;

    #[test]
    fn every_task_of_the_table_has_its_installer_in_the_same_order() {
        let catalog: Vec<&str> = Catalog::new()
            .installers()
            .iter()
            .map(|installer| installer.id())
            .collect();
        let table: Vec<&str> = TABLE.tasks.iter().map(|task| task.id).collect();
        assert_eq!(catalog, table);
    }
}
