//! How a helm call fails.

use std::path::{Path, PathBuf};

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
    /// The run is being stopped, and nothing new is begun.
    #[error("helm was not started for release {release}: the run is being stopped")]
    Stopping {
        /// The release.
        release: String,
    },
    /// A webhook or the API server refused for a moment.
    #[error(
        "failed to {action} release {release}: the API server or a webhook refused for the moment"
    )]
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
        match self {
            Self::NotFound { .. } => {
                "install helm 4 (https://helm.sh/docs/intro/install/) and put it on PATH, or name it with `--helm`".to_owned()
            }
            Self::Unusable { binary, .. } => {
                format!("run `{} version` to see what it is; blueprint needs helm 4 (https://helm.sh/docs/intro/install/)", binary.display())
            }
            Self::Pending { release, .. } => {
                format!("run the command again: it waits for a helm that still runs and mends {release} if one was cut off")
            }
            Self::Stopping { .. } => "run `blueprint up` again: it goes on from here".to_owned(),
            Self::Transient { .. } => "run the command again; if it stays so, look at the API server and at the operator behind the webhook".to_owned(),
            Self::TimedOut { release, .. } => format!(
                "a hook did not finish: look at the newest Jobs and Pods of {release}'s namespace (`kubectl get jobs,pods`), mend what blocks them, run the command again"
            ),
            Self::Failed { release, .. } => {
                format!("mend what helm names; values of {release} come from VERSIONS.json (values_overrides) and infra/phase2/references")
            }
            Self::Io { binary, .. } => format!("check that {} can be run and that the state folder can be written", binary.display()),
        }
    }

    pub(super) fn io(binary: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let binary = binary.to_owned();
        move |source| Self::Io { binary, source }
    }
}
