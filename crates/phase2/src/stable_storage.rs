//! Installer: stable_storage.

use async_trait::async_trait;
use blueprint_pipeline::Outcome;

use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::smoke::CheckResult;

/// The installer of task `stable-storage`.
#[derive(Debug)]
pub struct StableStorage;

#[async_trait]
impl Installer for StableStorage {
    fn id(&self) -> &'static str {
        "stable-storage"
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
