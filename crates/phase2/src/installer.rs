//! What every installer can do.

use async_trait::async_trait;
use blueprint_pipeline::{Outcome, Progress};

use crate::context::Context;
use crate::error::Error;
use crate::removal::Removal;
use crate::smoke::CheckResult;

/// How a component stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing of it is there.
    Missing,
    /// There, but not as wanted; what differs.
    Outdated(Vec<String>),
    /// As wanted.
    Ready,
    /// There and not working; why.
    Broken(String),
}

/// A task's surroundings: the context and the handle to report with.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Cluster, pins, settings, workspace.
    pub context: &'a Context,
    /// Where to report.
    pub progress: &'a Progress,
}

/// One task's component. It owns its names and nothing else.
#[async_trait]
pub trait Installer: Send + Sync {
    /// The task's id in the table.
    fn id(&self) -> &'static str;

    /// Looks, changes nothing.
    async fn inspect(&self, work: Work<'_>) -> Result<State, Error>;

    /// Brings it to what is wanted: inspects first, changes only what differs, says what it changed.
    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error>;

    /// What [`Self::uninstall`] would remove as things stand, a phrase each. Looks, changes nothing.
    async fn remains(&self, work: Work<'_>, removal: Removal) -> Result<Vec<String>, Error>;

    /// Removes its component and nothing else; what is gone already is no error, so a cut-off uninstall is run again. Whatever only the cluster knew and a later
    /// install needs is saved first, unless all is to be wiped.
    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error>;

    /// Its rows of the smoke table.
    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult>;
}
