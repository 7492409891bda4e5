//! The helm binary: argv vectors, `HELM_*` stripped from the environment, values in 0600 files, stderr classified.
//! A helm that changes something runs in a process group of its own, writes to a log file (a pipe would kill it with its reader) and is never killed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

/// How to call helm.
#[derive(Debug, Clone)]
pub struct Helm {
    binary: PathBuf,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    state_folder: PathBuf,
}

/// One `helm upgrade --install`.
#[derive(Debug, Clone)]
pub struct ReleaseInstall {
    /// Release name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The verified chart tarball.
    pub chart: PathBuf,
    /// Merged values.
    pub values: Value,
    /// `--skip-crds`.
    pub skip_crds: bool,
    /// `--skip-schema-validation` (the chart's schema has a remote `$ref`).
    pub skip_schema_validation: bool,
    /// `--timeout`, for hooks.
    pub timeout: Duration,
    /// `--labels`, kept on the release record: [`Self::inputs_digest`] under `blueprint-inputs`.
    pub labels: Vec<(String, String)>,
}

/// What helm said, sorted.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// No helm.
    #[error("helm was not found ({tried})")]
    NotFound {
        /// Where it was looked for.
        tried: String,
    },
    /// Too old or not helm.
    #[error("{binary} is not a usable helm: {found}")]
    Unusable {
        /// The binary.
        binary: PathBuf,
        /// Why.
        found: String,
    },
    /// Another helm operation is in progress or was cut off.
    #[error("release {release} is in the state {state}")]
    Pending {
        /// The release.
        release: String,
        /// `pending-install`, …
        state: String,
    },
    /// A webhook or the API server refused for a moment.
    #[error("failed to {action} release {release}: the API server or a webhook refused for the moment")]
    Transient {
        /// `install or upgrade`, …
        action: String,
        /// The release.
        release: String,
        /// helm's last lines.
        stderr: String,
    },
    /// Hooks did not finish in time.
    #[error("failed to {action} release {release}: timed out")]
    TimedOut {
        /// What was done.
        action: String,
        /// The release.
        release: String,
        /// helm's last lines.
        stderr: String,
    },
    /// Anything else.
    #[error("failed to {action} release {release}: {stderr}")]
    Failed {
        /// What was done.
        action: String,
        /// The release.
        release: String,
        /// helm's last lines.
        stderr: String,
    },
    /// The process could not be run.
    #[error("failed to run {binary}")]
    Io {
        /// The binary.
        binary: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl HelmError {
    /// What to do next.
    pub fn hint(&self) -> String {
        todo!()
    }
}

impl ReleaseInstall {
    /// 16 hex digits over chart digest and values: equal means the release is as wanted. `chart_sha256` is the verified artifact's.
    pub fn inputs_digest(chart_sha256: &str, values: &Value) -> String {
        todo!()
    }
}

impl Helm {
    /// Finds helm on PATH (or takes `binary`). `state_folder` holds its logs, pid files and value files (all 0600), and its empty config and cache homes.
    pub fn locate(
        binary: Option<&Path>,
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        state_folder: &Path,
    ) -> Result<Self, HelmError> {
        todo!()
    }

    /// `helm version`, as `4.3.1`.
    pub async fn version(&self) -> Result<String, HelmError> {
        todo!()
    }

    /// Waits for a mutating helm that an earlier, killed run of ours left running for this release (pid file with start time); `waiting` is called once
    /// with its pid when there is one.
    pub async fn wait_for_orphan(&self, release: &str, waiting: &(dyn Fn(u32) + Send + Sync)) -> Result<(), HelmError> {
        todo!()
    }

    /// `helm upgrade --install` (no `--wait`: readiness is ours to watch). Never killed, also when the future is dropped.
    pub async fn upgrade_install(&self, release: &ReleaseInstall) -> Result<(), HelmError> {
        todo!()
    }

    /// `helm rollback NAME REVISION`.
    pub async fn rollback(&self, namespace: &str, release: &str, revision: u32) -> Result<(), HelmError> {
        todo!()
    }

    /// `helm uninstall`; `no_hooks` for the remains of a first install that was cut off.
    pub async fn uninstall(&self, namespace: &str, release: &str, no_hooks: bool) -> Result<(), HelmError> {
        todo!()
    }

    /// `helm template` with the cluster's Kubernetes version given (no cluster is asked): all documents.
    pub async fn template(&self, release: &ReleaseInstall, kube_version: &str) -> Result<Vec<Value>, HelmError> {
        todo!()
    }
}
