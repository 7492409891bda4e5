//! `VERSIONS.json`: every pin, once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// The parsed file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// Editors' schema reference.
    #[serde(rename = "$schema", default)]
    pub schema: Option<String>,
    /// Charts, by key (`cnpg`, `redis`, `minio`, `openbao`, `gitlab`, `runner`).
    pub helm_repositories: BTreeMap<String, ChartPin>,
    /// Plain manifests, by key (`gateway-api-standard`, `gateway-api-tcproute`, `local-path`).
    pub manifests: BTreeMap<String, ManifestPin>,
    /// Images, by key.
    #[serde(default)]
    pub images: BTreeMap<String, ImagePin>,
    /// Programs that blueprint runs, by name (`helm`, `kind`).
    #[serde(default)]
    pub tools: BTreeMap<String, ToolPin>,
}

/// One chart.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartPin {
    /// The release's name.
    pub name: String,
    /// The chart repository.
    pub url: String,
    /// The chart's name in it.
    pub chart: String,
    /// Exact version.
    pub chart_version: String,
    /// Of the `.tgz`.
    pub sha256: String,
    /// The values layer that follows reference and profile.
    #[serde(default)]
    pub values_overrides: Value,
}

/// One manifest file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestPin {
    /// For people.
    pub version: String,
    /// Upstream address.
    pub url: String,
    /// File name in the cache.
    pub file: String,
    /// Of the file.
    pub sha256: String,
}

/// One image that the references set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagePin {
    /// Repository with registry, `docker.io/bitnamilegacy/redis`.
    pub repository: String,
    /// Tag.
    pub tag: String,
    /// `sha256:…` where upstream's digest is known.
    #[serde(default)]
    pub digest: Option<String>,
    /// Where a chart's values take this image from; images without it are named by the chart itself.
    #[serde(default)]
    pub sets: Option<ImageTarget>,
}

/// The place in a chart's values that an image pin fills.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageTarget {
    /// Key in `helm_repositories`.
    pub chart: String,
    /// Dotted path of the map that takes `registry`, `repository`, `tag` (and `digest`), for example `server.image`. MinIO's chart has no `registry` key: there the
    /// repository is written whole.
    pub at: String,
}

/// One program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPin {
    /// The version we test with.
    pub version: String,
    /// The oldest that will do.
    pub minimum: String,
    /// Where people get it.
    pub url: String,
}

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// Not readable.
    #[error("failed to read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not JSON, or a field missing, unknown or of the wrong form.
    #[error("{path} is not a valid VERSIONS.json: {found}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, column and what is wrong.
        found: String,
    },
    /// A key an installer asks for is not there.
    #[error("VERSIONS.json has no {section} entry `{key}`")]
    Missing {
        /// `helm_repositories`, …
        section: &'static str,
        /// The key.
        key: String,
    },
}

impl VersionsError {
    /// What to do next.
    pub fn hint(&self) -> String {
        todo!()
    }
}

impl Versions {
    /// Parses and checks (digests are 64 hex digits, versions and names have no path separators).
    pub fn parse(text: &str, origin: &Path) -> Result<Self, VersionsError> {
        todo!()
    }

    /// A chart by key.
    pub fn chart(&self, key: &str) -> Result<&ChartPin, VersionsError> {
        todo!()
    }

    /// A manifest by key.
    pub fn manifest(&self, key: &str) -> Result<&ManifestPin, VersionsError> {
        todo!()
    }

    /// An image by key.
    pub fn image(&self, key: &str) -> Result<&ImagePin, VersionsError> {
        todo!()
    }

    /// A tool by name.
    pub fn tool(&self, name: &str) -> Result<&ToolPin, VersionsError> {
        todo!()
    }

    /// Every cached artifact these pins ask for.
    pub fn artifacts(&self) -> Vec<crate::Artifact> {
        todo!()
    }
}
