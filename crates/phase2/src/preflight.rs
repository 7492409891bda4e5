//! Step 1: everything the run needs, all shortfalls at once.
//!
//! Each check looks and changes nothing. All run at the same time; only when all have answered does the task fail, once, with everything that is wanting.
//! When nothing is, the ways that `--accept` chose are taken.

mod api;
mod artifacts;
mod credentials;
mod machine;
mod measure;
mod workspace;

use async_trait::async_trait;
use blueprint_pipeline::Outcome;
use serde::Serialize;

use crate::ambiguity;
use crate::context::Context;
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::private_files;
use crate::removal::Removal;
use crate::smoke::{CheckResult, row};

pub(crate) use api::SERVER as API_SERVER;
pub(crate) use workspace::PRIVATE;

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortfall {
    /// What was checked.
    pub check: String,
    /// What must be.
    pub expected: String,
    /// What is.
    pub found: String,
    /// What to do.
    pub hint: String,
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Check {
    /// As it must be; what was seen.
    Passed {
        /// The check.
        check: String,
        /// What was seen.
        found: String,
    },
    /// It could not be told, or it is worth knowing; nothing stops for it.
    Noted {
        /// The check.
        check: String,
        /// What people should know.
        note: String,
    },
    /// Not as it must be.
    Short(Shortfall),
}

impl Check {
    pub(crate) fn passed(check: &str, found: impl Into<String>) -> Self {
        Self::Passed {
            check: check.to_owned(),
            found: found.into(),
        }
    }

    pub(crate) fn noted(check: &str, note: impl Into<String>) -> Self {
        Self::Noted {
            check: check.to_owned(),
            note: note.into(),
        }
    }

    pub(crate) fn short(
        check: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Short(Shortfall {
            check: check.to_owned(),
            expected: expected.into(),
            found: found.into(),
            hint: hint.into(),
        })
    }
}

/// Every check, for the task and for whoever else wants to know how things stand.
pub async fn checks(work: Work<'_>) -> Vec<Check> {
    let context = work.context;
    // Asked first: where nothing answers, the others do not each wait in vain.
    let server = context.cluster.server_version().await;
    let answers = server.is_ok();
    let (api, helm, machine, ambiguous, artifacts, kind) = tokio::join!(
        api::checks(context, server),
        artifacts::helm(context),
        machine::checks(context, answers),
        Box::pin(ambiguity::checks(work, answers)),
        artifacts::cached(context),
        artifacts::kind(context, answers)
    );
    let mut all = api;
    all.push(helm);
    all.extend(machine);
    all.extend(ambiguous);
    all.extend(workspace::checks(context));
    all.push(credentials::check(&context.workspace));
    all.push(credentials::certificates(
        &context.workspace,
        &context.settings.domain,
    ));
    all.extend(artifacts);
    all.push(kind);
    all
}

/// The installer of task `preflight` (it installs nothing).
#[derive(Debug, Clone, Copy, Default)]
pub struct Preflight;

#[async_trait]
impl Installer for Preflight {
    fn id(&self) -> &'static str {
        "preflight"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let short: Vec<String> = shortfalls(checks(work).await)
            .0
            .into_iter()
            .map(|short| format!("{}: {}", short.check, short.found))
            .collect();
        Ok(if short.is_empty() {
            State::Ready
        } else {
            State::Broken(short.join("; "))
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let (shortfalls, notes) = shortfalls(checks(work).await);
        if !shortfalls.is_empty() {
            return Err(Error::Preflight { shortfalls });
        }
        let mut outcome = Outcome {
            changes: Vec::new(),
            notes,
        };
        if !work.context.accepted.is_empty() {
            ambiguity::take(work, &mut outcome).await?;
        }
        Ok(outcome)
    }

    /// It made nothing in the cluster; the workspace's private files, which are nobody's alone, go last, and it is the last of all to be taken down.
    async fn remains(&self, work: Work<'_>, removal: Removal) -> Result<Vec<String>, Error> {
        match removal {
            Removal::Keep => Ok(Vec::new()),
            Removal::Wipe => private_files::there(&work.context.workspace),
        }
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        let mut outcome = Outcome::unchanged();
        if removal == Removal::Wipe {
            private_files::remove(&work.context.workspace, &mut outcome)?;
        }
        Ok(outcome)
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![CheckResult::from_result(
            row::CLUSTER_AND_HELM,
            cluster_and_helm(work.context).await,
        )]
    }
}

fn shortfalls(checks: Vec<Check>) -> (Vec<Shortfall>, Vec<String>) {
    let (mut short, mut notes) = (Vec::new(), Vec::new());
    for check in checks {
        match check {
            Check::Passed { .. } => {}
            Check::Noted { check, note } => notes.push(format!("{check}: {note}")),
            Check::Short(found) => short.push(found),
        }
    }
    (short, notes)
}

async fn cluster_and_helm(context: &Context) -> Result<String, String> {
    let server = context
        .cluster
        .server_version()
        .await
        .map_err(|error| error.to_string())?;
    let helm = context
        .helm()
        .map_err(|error| error.to_string())?
        .version()
        .await
        .map_err(|error| error.to_string())?;
    Ok(format!(
        "{} runs Kubernetes {server}, helm {helm}",
        context.cluster.context()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shortfall_is_collected_and_notes_stop_nothing() {
        let (short, notes) = shortfalls(vec![
            Check::passed("a", "fine"),
            Check::short("b", "x", "y", "z"),
            Check::noted("c", "could not be told"),
            Check::short("d", "x", "y", "z"),
        ]);
        assert_eq!(
            short
                .iter()
                .map(|short| short.check.as_str())
                .collect::<Vec<_>>(),
            ["b", "d"]
        );
        assert_eq!(notes, ["c: could not be told"]);
    }
}
