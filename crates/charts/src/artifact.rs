//! One file that a pin names.

use std::path::PathBuf;

/// A file the cache must hold, as its pin describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// For messages: `chart redis 27.0.13`, `manifest gateway-api-standard v1.5.0`.
    pub label: String,
    /// The key in VERSIONS.json.
    pub key: String,
    /// `redis-27.0.13.tgz`.
    pub file_name: String,
    /// Where upstream keeps it. For charts the repository's address: the file's own address stands in its index.yaml.
    pub source: Source,
    /// Expected digest, lower-case hex.
    pub sha256: String,
}

/// Upstream of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A chart repository with an index.yaml.
    ChartRepository {
        /// The repository.
        url: String,
        /// The chart's name.
        chart: String,
        /// Its version.
        version: String,
    },
    /// A plain address.
    File {
        /// The address.
        url: String,
    },
}

/// A cached file whose digest was just checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedArtifact {
    /// Where it is.
    pub path: PathBuf,
    /// Its digest.
    pub sha256: String,
}
