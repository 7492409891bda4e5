//! The chart's release.

use std::time::Duration;

use blueprint_pipeline::Outcome;

use super::kept_secrets::KeptSecrets;
use crate::error::Error;
use crate::helm_release::{self, ReleaseSpec};
use crate::installer::{State, Work};
use crate::names;

/// CRDs are step 2's (in the release they would take its record over 1 MiB); the chart's schema has a remote `$ref`, ours is checked instead. The
/// hooks pull images and migrate nothing, but on a slow line an image takes its time.
pub(super) const RELEASE: ReleaseSpec = ReleaseSpec {
    key: "gitlab",
    namespace: names::GITLAB,
    skip_crds: true,
    skip_schema_validation: true,
    timeout: Duration::from_mins(20),
};

/// Whether it is deployed with the wanted values.
pub(super) async fn state(work: Work<'_>) -> Result<State, Error> {
    helm_release::inspect(work, &RELEASE).await
}

/// Brings it there. The kept Secrets are looked at also when helm failed: its hook may have run before.
pub(super) async fn ensure(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let kept = KeptSecrets::read(work).await?;
    let result = helm_release::ensure(work, &RELEASE, outcome).await;
    if !matches!(result, Ok(false)) {
        kept.put_back(work, outcome).await?;
    }
    result.map(|_| ())
}
