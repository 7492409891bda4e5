//! How a call fails.

/// What went wrong in a call. Never contains a token, key or value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer.
    #[error("failed to reach OpenBao for {operation}")]
    Transport {
        /// For example `sys/init`.
        operation: String,
        /// Why (URL removed).
        #[source]
        source: reqwest::Error,
    },
    /// An answer that says no.
    #[error("OpenBao answered {status} to {operation}: {}", .messages.join("; "))]
    Refused {
        /// For example `sys/unseal`.
        operation: String,
        /// HTTP status.
        status: u16,
        /// `errors` of the body.
        messages: Vec<String>,
    },
    /// An answer of another shape than documented.
    #[error("OpenBao's answer to {operation} could not be read: {found}")]
    Malformed {
        /// The call.
        operation: String,
        /// What is wrong, without its content.
        found: String,
    },
    /// Something else is mounted where KV version 2 is wanted.
    #[error("OpenBao has {found} mounted at {path}, expected kv version 2")]
    ForeignMount {
        /// `secret/`.
        path: String,
        /// `kv version 1`, `transit`, …
        found: String,
    },
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Transport { .. } => {
                "look whether pod openbao-0 runs (`kubectl -n openbao get pods`) and at its log; it is silent while PostgreSQL is away".to_owned()
            }
            Self::Refused { operation, status: 400, .. } if operation == "sys/unseal" => {
                "the keys are not this server's: put back the openbao-init.json that belongs to the database OpenBao runs on".to_owned()
            }
            Self::Refused { operation, status: 400, .. } if operation == "sys/init" => {
                "the server was initialised before: put back the openbao-init.json of that time".to_owned()
            }
            Self::Refused { status: 403, .. } => {
                "the token is not accepted: put back the openbao-init.json that belongs to this server".to_owned()
            }
            Self::Refused { status: 503, .. } => "OpenBao is sealed: run `blueprint secrets unseal`".to_owned(),
            Self::Refused { status: 500.., .. } => {
                "look at the log of pod openbao-0: it most often cannot reach PostgreSQL or its password there has changed (then delete the pod)".to_owned()
            }
            Self::Refused { .. } | Self::Malformed { .. } => {
                "check that the server is OpenBao of the version that VERSIONS.json pins".to_owned()
            }
            Self::ForeignMount { path, .. } => {
                format!("move what is mounted at {path} elsewhere (`bao secrets move`), then run the command again; nothing was changed")
            }
        }
    }

    /// HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Transport { .. } | Self::Malformed { .. } | Self::ForeignMount { .. } => None,
        }
    }
}
