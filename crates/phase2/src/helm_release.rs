//! A release brought to what is wanted: nothing when its inputs are the same, an upgrade when they differ, mended first when a helm was cut off.

use std::time::Duration;

use blueprint_pipeline::Outcome;

use crate::error::Error;
use crate::installer::{State, Work};

/// What an installer says about its release; name, chart and version come from VERSIONS.json.
#[derive(Debug, Clone)]
pub struct ReleaseSpec {
    /// Key in `helm_repositories`.
    pub key: &'static str,
    /// Namespace.
    pub namespace: &'static str,
    /// `--skip-crds`.
    pub skip_crds: bool,
    /// `--skip-schema-validation`.
    pub skip_schema_validation: bool,
    /// For hooks.
    pub timeout: Duration,
}

/// Whether the newest deployed revision has the wanted inputs (label `blueprint-inputs`).
pub async fn inspect(work: Work<'_>, spec: &ReleaseSpec) -> Result<State, Error> {
    todo!()
}

/// Ensures the release. Cut-off installs are mended as facts say: rolled back to the last deployed revision; uninstalled only when none ever was.
/// While helm runs, blockers of the namespace (hook pods) are reported. Adds what it did to `outcome`; answers whether helm changed anything.
pub async fn ensure(work: Work<'_>, spec: &ReleaseSpec, outcome: &mut Outcome) -> Result<bool, Error> {
    todo!()
}
