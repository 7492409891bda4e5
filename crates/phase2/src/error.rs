//! One error for all installers; each variant carries what its crate knows.

use blueprint_pipeline::Failure;

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// From the cluster.
    #[error(transparent)]
    Cluster(#[from] blueprint_cluster::Error),
    /// From helm.
    #[error(transparent)]
    Helm(#[from] blueprint_charts::HelmError),
    /// From the cache.
    #[error(transparent)]
    Cache(#[from] blueprint_charts::CacheError),
    /// From VERSIONS.json.
    #[error(transparent)]
    Versions(#[from] blueprint_charts::VersionsError),
    /// From a YAML file.
    #[error(transparent)]
    Yaml(#[from] blueprint_charts::yaml::YamlError),
    /// From a private file.
    #[error(transparent)]
    PrivateFile(#[from] blueprint_safekeeping::Error),
    /// From OpenBao.
    #[error(transparent)]
    OpenBao(#[from] blueprint_openbao::Error),
    /// A state that blueprint will not decide about.
    #[error("{summary}")]
    Refused {
        /// One line.
        summary: String,
        /// What should be.
        expected: String,
        /// What is.
        found: String,
        /// The ways out.
        hint: String,
    },
    /// Something did not do what it should.
    #[error("failed to {action}: {found}")]
    Failed {
        /// What was tried.
        action: String,
        /// What came of it (never a secret).
        found: String,
        /// What to do next.
        hint: String,
    },
    /// Everything pre-flight found wanting.
    #[error("{} pre-flight check(s) failed", .shortfalls.len())]
    Preflight {
        /// Each: what was expected, what was found, what to do.
        shortfalls: Vec<crate::preflight::Shortfall>,
    },
}

impl Error {
    /// In the pipeline's words: summary, causes (the source chain), hint (own one or the failure map's), evidence.
    pub fn into_failure(self, task: &str) -> Failure {
        todo!()
    }
}
