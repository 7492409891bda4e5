//! `VERSIONS.json`: every pin, once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::artifact::{Artifact, Source};

mod checks;

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

/// Among the build metadata of a chart's version it says that the chart is a stand-in: not upstream's, only like it (`10.1.1+standin`).
pub const STAND_IN: &str = "standin";

/// Whether a version's build metadata (<https://semver.org>, item 10) calls the chart a stand-in.
pub fn is_stand_in(version: &str) -> bool {
    version
        .split_once('+')
        .is_some_and(|(_, build)| build.split('.').any(|word| word == STAND_IN))
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
        match self {
            Self::Io { path, .. } => {
                format!("check that {} is there and can be read", path.display())
            }
            Self::Malformed { path, .. } => format!(
                "mend {} at the place named; `blueprint init` in an empty folder writes an intact one to compare with",
                path.display()
            ),
            Self::Missing { section, key } => format!(
                "add `{key}` to `{section}` in VERSIONS.json; `blueprint init` in an empty folder writes one with every entry"
            ),
        }
    }
}

impl ChartPin {
    /// The tarball's name in the cache and at upstream.
    pub fn file_name(&self) -> String {
        format!("{}-{}.tgz", self.chart, self.chart_version)
    }
}

impl std::fmt::Display for ChartPin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.chart, self.chart_version)
    }
}

impl ImagePin {
    /// `repository:tag`, with `@digest` where one is pinned.
    pub fn reference(&self) -> String {
        let digest = self
            .digest
            .as_ref()
            .map(|digest| format!("@{digest}"))
            .unwrap_or_default();
        format!("{}:{}{digest}", self.repository, self.tag)
    }
}

impl Versions {
    /// Parses and checks (digests are 64 hex digits, versions and names have no path separators).
    pub fn parse(text: &str, origin: &Path) -> Result<Self, VersionsError> {
        let malformed = |found: String| VersionsError::Malformed {
            path: origin.to_owned(),
            found,
        };
        let versions: Self =
            serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        checks::check(&versions).map_err(malformed)?;
        Ok(versions)
    }

    /// A chart by key.
    pub fn chart(&self, key: &str) -> Result<&ChartPin, VersionsError> {
        entry(&self.helm_repositories, "helm_repositories", key)
    }

    /// The charts that are stand-ins.
    pub fn stand_ins(&self) -> Vec<&ChartPin> {
        self.helm_repositories
            .values()
            .filter(|pin| is_stand_in(&pin.chart_version))
            .collect()
    }

    /// A manifest by key.
    pub fn manifest(&self, key: &str) -> Result<&ManifestPin, VersionsError> {
        entry(&self.manifests, "manifests", key)
    }

    /// An image by key.
    pub fn image(&self, key: &str) -> Result<&ImagePin, VersionsError> {
        entry(&self.images, "images", key)
    }

    /// A tool by name.
    pub fn tool(&self, name: &str) -> Result<&ToolPin, VersionsError> {
        entry(&self.tools, "tools", name)
    }

    /// The cached artifact of a chart.
    pub fn chart_artifact(&self, key: &str) -> Result<Artifact, VersionsError> {
        self.chart(key).map(|pin| chart_artifact(key, pin))
    }

    /// The cached artifact of a manifest.
    pub fn manifest_artifact(&self, key: &str) -> Result<Artifact, VersionsError> {
        self.manifest(key).map(|pin| manifest_artifact(key, pin))
    }

    /// Every cached artifact these pins ask for.
    pub fn artifacts(&self) -> Vec<Artifact> {
        let charts = self
            .helm_repositories
            .iter()
            .map(|(key, pin)| chart_artifact(key, pin));
        let manifests = self
            .manifests
            .iter()
            .map(|(key, pin)| manifest_artifact(key, pin));
        charts.chain(manifests).collect()
    }
}

fn entry<'a, T>(
    entries: &'a BTreeMap<String, T>,
    section: &'static str,
    key: &str,
) -> Result<&'a T, VersionsError> {
    entries.get(key).ok_or_else(|| VersionsError::Missing {
        section,
        key: key.to_owned(),
    })
}

fn chart_artifact(key: &str, pin: &ChartPin) -> Artifact {
    Artifact {
        label: format!("chart {} {}", pin.chart, pin.chart_version),
        key: key.to_owned(),
        file_name: pin.file_name(),
        source: Source::ChartRepository {
            url: pin.url.clone(),
            chart: pin.chart.clone(),
            version: pin.chart_version.clone(),
        },
        sha256: pin.sha256.to_ascii_lowercase(),
    }
}

fn manifest_artifact(key: &str, pin: &ManifestPin) -> Artifact {
    Artifact {
        label: format!("manifest {key} {}", pin.version),
        key: key.to_owned(),
        file_name: pin.file.clone(),
        source: Source::File {
            url: pin.url.clone(),
        },
        sha256: pin.sha256.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests;
