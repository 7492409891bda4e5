//! Installer: local_path_provisioner.

use async_trait::async_trait;
use blueprint_pipeline::Outcome;

use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::smoke::CheckResult;

/// The installer of task `local-path`.
#[derive(Debug)]
pub struct LocalPathProvisioner;

#[async_trait]
impl Installer for LocalPathProvisioner {
    fn id(&self) -> &'static str {
        "local-path"
    }
    async fn inspect(&self, _work: Work<'_>) -> Result<State, Error> {
        todo!()
    }
    async fn install(&self, _work: Work<'_>) -> Result<Outcome, Error> {
        todo!()
    }
    async fn smoke(&self, _work: Work<'_>) -> Vec<CheckResult> {
        todo!()
    }
}
