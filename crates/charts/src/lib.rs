//! Pins (VERSIONS.json), the cache of verified artifacts, the helm driver, the layers of values and their schemas.
//!
//! Knows nothing of what is installed or in which order.

pub mod artifact;
pub mod cache;
pub mod chart_files;
pub mod dangling;
pub mod helm;
pub mod schema;
pub mod values;
pub mod versions;
pub mod yaml;

pub use artifact::{Artifact, VerifiedArtifact};
pub use cache::{ArtifactCache, CacheError, Fetched};
pub use helm::{Helm, HelmError, ReleaseInstall};
pub use versions::{
    ChartPin, ImagePin, ImageTarget, ManifestPin, ToolPin, Versions, VersionsError, is_stand_in,
};
