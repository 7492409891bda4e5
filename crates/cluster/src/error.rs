//! What can go wrong with a cluster.

use std::time::Duration;

use crate::answer::Answer;

/// An error with its hint ([`Error::hint`]).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No kubeconfig, no such context, or one that is not meant.
    #[error("{summary}")]
    Context {
        /// What is wrong.
        summary: String,
        /// What to do.
        hint: String,
    },
    /// The API server said no or nothing.
    #[error("failed to {action}")]
    Api {
        /// For example `apply Namespace redis`.
        action: String,
        /// Its answer.
        #[source]
        source: Box<Answer>,
    },
    /// The server does not know the kind.
    #[error("the cluster does not know {kind} of {api_version}")]
    UnknownKind {
        /// apiVersion.
        api_version: String,
        /// kind.
        kind: String,
    },
    /// A manifest that is no Kubernetes object.
    #[error("not a Kubernetes object: {0}")]
    Malformed(String),
    /// A wait's deadline passed.
    #[error("{what} was not reached within {}s: {blocker}", .deadline.as_secs())]
    Deadline {
        /// What was waited for.
        what: String,
        /// How long.
        deadline: Duration,
        /// Who blocks.
        blocker: String,
        /// Last events and log lines.
        evidence: Vec<String>,
    },
    /// A wait met a state that cannot get better.
    #[error("{what} cannot be reached: {found}")]
    Hopeless {
        /// What was waited for.
        what: String,
        /// Why not.
        found: String,
        /// Last events and log lines.
        evidence: Vec<String>,
    },
    /// A command in a pod or node failed.
    #[error("`{command}` in {place} ended with {code}: {stderr}")]
    Command {
        /// Its words (never a secret).
        command: String,
        /// Pod or node.
        place: String,
        /// Exit code.
        code: i64,
        /// Last lines.
        stderr: String,
    },
    /// No container engine.
    #[error("no container engine answers at {socket}")]
    NoEngine {
        /// The socket tried.
        socket: String,
        /// Why.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The engine said no.
    #[error("failed to {action}")]
    Engine {
        /// What was tried.
        action: String,
        /// Its answer.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A connection to a pod broke.
    #[error("failed to {action}")]
    Stream {
        /// What was tried.
        action: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// The API server's answer to `action` (`apply Namespace redis`), from kube's error.
    pub fn api(action: impl Into<String>, source: kube::Error) -> Self {
        Self::Api {
            action: action.into(),
            source: Box::new(Answer::from(source)),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Context { hint, .. } => hint.clone(),
            Self::Api { source, .. } => return source.hint(),
            Self::UnknownKind { api_version, kind } => format!(
                "expected the CustomResourceDefinition of {kind} to be installed and to serve {api_version}; the step that installs it has to run first"
            ),
            Self::Malformed(_) => {
                "expected a mapping with apiVersion, kind and metadata.name (and metadata.namespace for a namespaced kind)".to_owned()
            }
            Self::Deadline { .. } | Self::Hopeless { .. } => {
                "mend what blocks it and run the same command again: it goes on from here".to_owned()
            }
            Self::Command { place, .. } => format!("the lines above are the command's own; look into {place}, then run the same command again"),
            Self::NoEngine { .. } => crate::engine::HINT.to_owned(),
            Self::Engine { .. } => "check that the engine answers (`docker version` or `podman version`) and that this user may use its socket".to_owned(),
            Self::Stream { .. } => "the pod may have been restarted while it was talked to; run the same command again".to_owned(),
        })
    }

    /// Supporting lines of a wait.
    pub fn evidence(&self) -> &[String] {
        match self {
            Self::Deadline { evidence, .. } | Self::Hopeless { evidence, .. } => evidence,
            _ => &[],
        }
    }

    /// Whether the same call may succeed a moment later (connection refused, 429, 500 from a webhook, 503, conflict).
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Api { source, .. } => source.is_transient(),
            Self::Stream { .. } => true,
            _ => false,
        }
    }
}
