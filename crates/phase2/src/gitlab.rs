//! Step 12: GitLab, wired to what the steps before it made.

mod checks;
mod gateway_listener;
mod gateway_removal;
mod kept_secrets;
mod node_ports;
mod outside_secrets;
mod readiness;
mod release;
mod removal;
mod root_password;
mod through_gateway;
mod tokens;

use async_trait::async_trait;
use blueprint_pipeline::Outcome;

use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::removal::Removal;
use crate::smoke::CheckResult;
use crate::{names, persistent_secrets};

pub(crate) use outside_secrets::{OPENBAO_PSQL, PSQL, REDIS};
pub(crate) use root_password::{PATH as ROOT_PATH, SECRET as ROOT_PASSWORD};
pub(crate) use through_gateway::{served_certificate, serves};

const TASK: &str = "gitlab";

/// GitLab.
#[derive(Debug, Clone, Copy)]
pub struct Gitlab;

#[async_trait]
impl Installer for Gitlab {
    fn id(&self) -> &'static str {
        TASK
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        match release::state(work).await? {
            State::Ready => {}
            other => return Ok(other),
        }
        let mut differs = outside_secrets::differences(work).await?;
        differs.extend(gateway_listener::differences(work).await?);
        if !differs.is_empty() {
            return Ok(State::Outdated(differs));
        }
        readiness::state(work).await
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        outcome
            .changes
            .extend(names::ensure_namespace(&work.context.cluster, names::GITLAB).await?);
        outside_secrets::ensure(work, &mut outcome).await?;
        root_password::ensure(work, &mut outcome).await?;
        tokens::ensure(work, &mut outcome).await?;
        release::ensure(work, &mut outcome).await?;
        // Before the wait: a run that is cut off while GitLab starts must not lose the keys with the cluster.
        persistent_secrets::save(work, &mut outcome).await?;
        gateway_listener::ensure(work, &mut outcome).await?;
        outside_secrets::restart_readers(work, &mut outcome).await?;
        node_ports::put_back(work, &mut outcome).await?;
        readiness::wait(work).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::remains(work).await
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        Box::pin(removal::run(work, removal)).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        Box::pin(checks::run(work)).await
    }
}
