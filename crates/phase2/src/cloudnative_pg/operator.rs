//! Task `cnpg-operator`: the operator's release and its Deployment.

use std::time::Duration;

use async_trait::async_trait;
use blueprint_pipeline::Outcome;

use super::removal;
use crate::error::Error;
use crate::helm_release::{self, ReleaseSpec};
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::removal::Removal;
use crate::smoke::CheckResult;
use crate::workloads::{Workload, release_and_workloads};

pub(super) const RELEASE: ReleaseSpec = ReleaseSpec {
    key: "cnpg",
    namespace: names::CNPG_SYSTEM,
    skip_crds: false,
    skip_schema_validation: false,
    timeout: Duration::from_mins(5),
};
pub(super) const CONTROLLER: Workload = Workload {
    kind: "Deployment",
    namespace: names::CNPG_SYSTEM,
    name: "cnpg-controller-manager",
    pods: "app.kubernetes.io/name=cloudnative-pg",
};
const READY_WITHIN: Duration = Duration::from_mins(5);

/// The installer of task `cnpg-operator`.
#[derive(Debug)]
pub struct CnpgOperator;

#[async_trait]
impl Installer for CnpgOperator {
    fn id(&self) -> &'static str {
        "cnpg-operator"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        release_and_workloads(
            helm_release::inspect(work, &RELEASE).await?,
            &[CONTROLLER],
            work,
        )
        .await
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        outcome
            .changes
            .extend(names::ensure_namespace(&work.context.cluster, names::CNPG_SYSTEM).await?);
        helm_release::ensure(work, &RELEASE, &mut outcome).await?;
        CONTROLLER.wait(work, READY_WITHIN).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::operator_remains(work).await
    }

    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::operator_run(work).await
    }

    async fn smoke(&self, _work: Work<'_>) -> Vec<CheckResult> {
        // The Cluster's rows prove the operator: without it no status moves.
        Vec::new()
    }
}
