//! `infra/helm-charts`: artifacts by file name, each checked against its pin whenever it is used.

use std::path::{Path, PathBuf};

use crate::artifact::{Artifact, VerifiedArtifact};

/// The cache folder.
#[derive(Debug, Clone)]
pub struct ArtifactCache {
    folder: PathBuf,
}

/// Where a fetched artifact came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// It was there.
    Cached,
    /// Copied from a folder given.
    Folder(PathBuf),
    /// Downloaded.
    Upstream(String),
}

/// Why an artifact cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Not there.
    #[error("{label} is not in the cache ({path})")]
    Missing {
        /// The artifact.
        label: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// There, but other bytes.
    #[error("{path} does not match its pin: expected sha256 {expected}, found {found}")]
    DigestMismatch {
        /// The file.
        path: PathBuf,
        /// Pinned.
        expected: String,
        /// Of the file.
        found: String,
    },
    /// No place has it.
    #[error("{label} could not be had: {}", .tried.join("; "))]
    NotFound {
        /// The artifact.
        label: String,
        /// Each place with its answer.
        tried: Vec<String>,
    },
    /// I/O.
    #[error("failed to {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl CacheError {
    /// The command that mends it (`blueprint charts fetch …`).
    pub fn hint(&self) -> String {
        todo!()
    }
}

impl ArtifactCache {
    /// A cache in `folder` (made when first written).
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The artifact's path, after its digest was checked.
    pub fn verified(&self, artifact: &Artifact) -> Result<VerifiedArtifact, CacheError> {
        todo!()
    }

    /// Makes sure the cache has it: cache, then `folders` (searched by file name, also in their direct subfolders), then upstream unless `offline`.
    /// Every byte is checked before it gets its final name. A wrong file in the cache is replaced only by a right one.
    pub async fn fetch(&self, artifact: &Artifact, folders: &[PathBuf], offline: bool) -> Result<Fetched, CacheError> {
        todo!()
    }
}
