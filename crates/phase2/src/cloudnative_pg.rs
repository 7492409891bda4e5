//! Installer: cloudnative_pg.

use async_trait::async_trait;
use blueprint_pipeline::Outcome;

use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::smoke::CheckResult;

/// The installer of task `cnpg-operator`.
#[derive(Debug)]
pub struct CnpgOperator;
/// The installer of task `cnpg-cluster`.
#[derive(Debug)]
pub struct CnpgCluster;

#[async_trait]
impl Installer for CnpgOperator {
    fn id(&self) -> &'static str {
        "cnpg-operator"
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

#[async_trait]
impl Installer for CnpgCluster {
    fn id(&self) -> &'static str {
        "cnpg-cluster"
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
