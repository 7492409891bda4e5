//! What can go wrong with a cluster.

use std::time::Duration;

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
        source: Box<kube::Error>,
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
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        todo!()
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
        todo!()
    }
}
