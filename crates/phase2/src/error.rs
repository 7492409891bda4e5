//! One error for all installers; each variant carries what its crate knows.

use std::error::Error as _;

use blueprint_pipeline::Failure;

use crate::failure_hints;

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// From the cluster.
    #[error(transparent)]
    Cluster(#[from] blueprint_cluster::Error),
    /// From helm.
    #[error(transparent)]
    Helm(#[from] blueprint_charts::HelmError),
    /// From helm, with what the namespace looked like when it gave up.
    #[error("{source}")]
    Release {
        /// helm's answer.
        source: blueprint_charts::HelmError,
        /// Last warning events and log lines of the namespace.
        evidence: Vec<String>,
    },
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

impl From<blueprint_openbao::InitialiseError> for Error {
    fn from(error: blueprint_openbao::InitialiseError) -> Self {
        match error {
            blueprint_openbao::InitialiseError::Server(error) => error.into(),
            blueprint_openbao::InitialiseError::File(error) => error.into(),
        }
    }
}

impl Error {
    /// In the pipeline's words: summary, causes (the source chain), hint (own one or the failure map's), evidence.
    pub fn into_failure(self, task: &str) -> Failure {
        let summary = self.to_string();
        let causes = self.causes();
        let evidence = self.evidence();
        let text = format!("{summary}\n{}\n{}", causes.join("\n"), evidence.join("\n"));
        let mapped = failure_hints::hint(task, &text);
        let hint = if self.own_hint_is_exact() {
            self.own_hint().or(mapped)
        } else {
            mapped.or_else(|| self.own_hint())
        };
        let preflight = matches!(self, Self::Preflight { .. });
        let (expected, found) = match self {
            Self::Refused {
                expected, found, ..
            } => (Some(expected), Some(found)),
            _ => (None, None),
        };
        Failure {
            summary,
            expected,
            found,
            causes,
            hint,
            evidence,
            preflight,
        }
    }

    /// The messages of the sources, outermost first, without one that only repeats the line before.
    fn causes(&self) -> Vec<String> {
        let mut causes: Vec<String> = Vec::new();
        let mut said = self.to_string();
        let mut next = self.source();
        while let Some(source) = next {
            let line = source.to_string();
            if line != said {
                causes.push(line.clone());
                said = line;
            }
            next = source.source();
        }
        causes
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Self::Cluster(error) => error.evidence().to_vec(),
            Self::Release { evidence, .. } => evidence.clone(),
            Self::Preflight { shortfalls } => shortfalls
                .iter()
                .map(|shortfall| {
                    format!(
                        "{}: expected {}, found {}; {}",
                        shortfall.check, shortfall.expected, shortfall.found, shortfall.hint
                    )
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Written for the very case; the hints of waits and of helm are general, and the failure map knows more there.
    fn own_hint_is_exact(&self) -> bool {
        !matches!(
            self,
            Self::Cluster(_) | Self::Helm(_) | Self::Release { .. } | Self::OpenBao(_)
        )
    }

    fn own_hint(&self) -> Option<String> {
        match self {
            Self::Cluster(error) => error.hint(),
            Self::Helm(error) | Self::Release { source: error, .. } => Some(error.hint()),
            Self::Cache(error) => Some(error.hint()),
            Self::Versions(error) => Some(error.hint()),
            Self::Yaml(error) => Some(format!(
                "correct {} at the place named",
                error.origin.display()
            )),
            Self::PrivateFile(error) => Some(error.hint()),
            Self::OpenBao(error) => Some(error.hint()),
            Self::Refused { hint, .. } | Self::Failed { hint, .. } => Some(hint.clone()),
            Self::Preflight { .. } => {
                Some("mend each of the above and run again; nothing was changed".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_expected_found_and_the_way_out() {
        let error = Error::Refused {
            summary: "the volume is half-written".to_owned(),
            expected: "a whole PGDATA or nothing".to_owned(),
            found: "pgdata without pg_control".to_owned(),
            hint: "restore the folder".to_owned(),
        };
        let failure = error.into_failure("cnpg-cluster");
        assert_eq!(failure.summary, "the volume is half-written");
        assert_eq!(failure.found.as_deref(), Some("pgdata without pg_control"));
        assert_eq!(failure.hint.as_deref(), Some("restore the folder"));
        assert!(!failure.preflight);
    }

    #[test]
    fn causes_are_the_chain_of_sources_each_once() {
        let io = std::io::Error::other("disk full");
        let error = Error::from(blueprint_safekeeping::Error::Io {
            action: "write",
            path: "x".into(),
            source: io,
        });
        let failure = error.into_failure("redis");
        assert_eq!(failure.summary, "failed to write x");
        assert_eq!(failure.causes, ["disk full"]);
    }

    #[test]
    fn evidence_of_a_wait_is_kept() {
        let error = Error::from(blueprint_cluster::Error::Deadline {
            what: "Redis".to_owned(),
            deadline: std::time::Duration::from_secs(1),
            blocker: "pod redis/x: starting".to_owned(),
            evidence: vec!["last line".to_owned()],
        });
        assert_eq!(error.into_failure("redis").evidence, ["last line"]);
    }
}
