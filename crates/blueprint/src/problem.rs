//! Why a command ended early: an exit code and the words for people. Printed once, by the printer.

use blueprint_phase2::Error;
use blueprint_pipeline::Failure;

use crate::exit_code::ExitCode;

/// A command's error.
#[derive(Debug)]
pub(crate) struct Problem {
    code: ExitCode,
    failure: Box<Failure>,
}

impl Problem {
    pub(crate) fn new(code: ExitCode, summary: impl Into<String>) -> Self {
        Self {
            code,
            failure: Box::new(Failure {
                summary: summary.into(),
                ..Failure::default()
            }),
        }
    }

    /// The user asked for something that cannot be.
    pub(crate) fn usage(summary: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, summary)
    }

    /// It was tried and did not work.
    pub(crate) fn failed(summary: impl Into<String>) -> Self {
        Self::new(ExitCode::TaskFailed, summary)
    }

    /// Of a task.
    pub(crate) fn of(failure: Failure) -> Self {
        let code = if failure.preflight {
            ExitCode::Preflight
        } else {
            ExitCode::TaskFailed
        };
        Self {
            code,
            failure: Box::new(failure),
        }
    }

    /// An error and its chain of sources.
    pub(crate) fn from_error(code: ExitCode, error: &(dyn std::error::Error + 'static)) -> Self {
        let problem = Self::new(code, error.to_string());
        match error.source() {
            Some(source) => problem.caused_by(source),
            None => problem,
        }
    }

    pub(crate) fn caused_by(mut self, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            self.failure.causes.push(cause.to_string());
            next = cause.source();
        }
        self
    }

    pub(crate) fn expected(mut self, what: impl Into<String>) -> Self {
        self.failure.expected = Some(what.into());
        self
    }

    pub(crate) fn found(mut self, what: impl Into<String>) -> Self {
        self.failure.found = Some(what.into());
        self
    }

    pub(crate) fn hint(mut self, what: impl Into<String>) -> Self {
        self.failure.hint = Some(what.into());
        self
    }

    /// For a list of problems whose hint is told once.
    pub(crate) fn without_hint(mut self) -> Self {
        self.failure.hint = None;
        self
    }

    pub(crate) fn with_code(mut self, code: ExitCode) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn code(&self) -> ExitCode {
        self.code
    }

    pub(crate) fn failure(&self) -> &Failure {
        &self.failure
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Versions(_)
            | Error::Yaml(_)
            | Error::Cluster(blueprint_cluster::Error::Context { .. }) => ExitCode::Usage,
            Error::Preflight { .. } => ExitCode::Preflight,
            _ => ExitCode::TaskFailed,
        };
        Self {
            code,
            failure: Box::new(error.into_failure("")),
        }
    }
}

impl From<blueprint_cluster::Error> for Problem {
    fn from(error: blueprint_cluster::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<blueprint_charts::VersionsError> for Problem {
    fn from(error: blueprint_charts::VersionsError) -> Self {
        Error::from(error).into()
    }
}

impl From<blueprint_safekeeping::Error> for Problem {
    fn from(error: blueprint_safekeeping::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<blueprint_safekeeping::LockError> for Problem {
    fn from(error: blueprint_safekeeping::LockError) -> Self {
        Self::from_error(ExitCode::TaskFailed, &error).hint(error.hint())
    }
}

impl From<blueprint_safekeeping::archive::Error> for Problem {
    fn from(error: blueprint_safekeeping::archive::Error) -> Self {
        Self::from_error(ExitCode::TaskFailed, &error).hint(error.hint())
    }
}

impl From<blueprint_cluster::LeaseError> for Problem {
    fn from(error: blueprint_cluster::LeaseError) -> Self {
        let problem = Self::from_error(ExitCode::TaskFailed, &error);
        match error.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

impl From<blueprint_pipeline::timings::TimingsError> for Problem {
    fn from(error: blueprint_pipeline::timings::TimingsError) -> Self {
        Self::from_error(ExitCode::TaskFailed, &error).hint(error.hint())
    }
}

impl From<blueprint_pipeline::GraphError> for Problem {
    fn from(error: blueprint_pipeline::GraphError) -> Self {
        Self::from_error(ExitCode::Usage, &error).hint(error.hint())
    }
}
