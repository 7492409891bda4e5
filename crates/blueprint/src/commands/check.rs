//! `blueprint up --check`: looks at every component, changes nothing, says what `up` would do.

use std::fmt::Write as _;

use blueprint_phase2::catalog::Phase2;
use blueprint_phase2::made_with;
use blueprint_phase2::table::TABLE;
use blueprint_phase2::{State, Work};
use blueprint_pipeline::{Progress, Task};
use futures::StreamExt as _;
use serde::Serialize;

use crate::app::App;
use crate::cli::RunOutput;
use crate::columns;
use crate::exit_code::ExitCode;
use crate::problem::Problem;

/// How many components are looked at at once.
const AT_ONCE: usize = 6;
/// How many of the steps that come are named by `--summary`.
const NEXT_STEPS: usize = 3;

/// One component as it stands.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    pub(crate) task: &'static str,
    pub(crate) step: u8,
    /// `ready`, `missing`, `outdated`, `broken`, `unknown`.
    pub(crate) state: &'static str,
    /// What differs, or why it is broken or unknown.
    pub(crate) notes: Vec<String>,
}

impl Finding {
    pub(crate) fn is_ready(&self) -> bool {
        self.state == "ready"
    }

    fn of(task: &Task, state: State) -> Self {
        let (state, notes) = match state {
            State::Ready => ("ready", Vec::new()),
            State::Missing => ("missing", Vec::new()),
            State::Outdated(differs) => ("outdated", differs),
            State::Broken(why) => ("broken", vec![why]),
        };
        Self {
            task: task.id,
            step: task.step,
            state,
            notes,
        }
    }

    fn unknown(task: &Task, why: String) -> Self {
        Self {
            task: task.id,
            step: task.step,
            state: "unknown",
            notes: vec![why],
        }
    }

    fn would_do(&self) -> String {
        let word = match self.state {
            "ready" => return String::new(),
            "missing" => "install",
            "outdated" => "change",
            "broken" => "mend",
            _ => "find out",
        };
        if self.notes.is_empty() {
            word.to_owned()
        } else {
            format!("{word}: {}", self.notes.join("; "))
        }
    }
}

/// `--check` and `--summary` over the selected tasks.
pub(super) async fn run(
    app: &App,
    phase2: &Phase2,
    tasks: &[&'static str],
    summary: bool,
    output: Option<RunOutput>,
) -> Result<ExitCode, Problem> {
    // The first thing that is asked of the server: without an answer there is nothing to look at.
    phase2
        .context
        .cluster
        .server_version()
        .await
        .map_err(|error| Problem::from(error).with_code(ExitCode::Preflight))?;
    if tasks.contains(&"preflight") {
        preflight(phase2).await?;
    }
    let findings = look(phase2, tasks).await;
    if output == Some(RunOutput::Json) {
        for finding in &findings {
            let line = serde_json::to_string(finding).map_err(|error| {
                Problem::failed("failed to write a finding as JSON").caused_by(&error)
            })?;
            app.printer.out(&line);
        }
    } else if summary {
        app.printer.out(&summarised(&findings));
    } else {
        app.printer.out(&table(&findings));
    }
    if let Some(message) = made_with::attention(&phase2.context.versions) {
        app.printer.attention(&message);
    }
    let open = findings
        .iter()
        .filter(|finding| !finding.is_ready())
        .count();
    if open == 0 {
        app.printer
            .say("Everything is as wanted: `blueprint up` would change nothing.");
        return Ok(ExitCode::Done);
    }
    app.printer.say(&format!(
        "`blueprint up` would work on {open} of {} task(s).",
        findings.len()
    ));
    Ok(ExitCode::ChangesFound)
}

/// Pre-flight's shortfalls end a check as they end a run.
async fn preflight(phase2: &Phase2) -> Result<(), Problem> {
    let Some(installer) = phase2.catalog.get("preflight") else {
        return Ok(());
    };
    let progress = Progress::silent();
    installer
        .install(Work {
            context: &phase2.context,
            progress: &progress,
        })
        .await?;
    Ok(())
}

/// Looks at the components of `tasks`, several at once; answers in their order.
pub(super) async fn look(phase2: &Phase2, tasks: &[&'static str]) -> Vec<Finding> {
    let progress = Progress::silent();
    let work = Work {
        context: &phase2.context,
        progress: &progress,
    };
    let looks = tasks
        .iter()
        .filter_map(|id| TABLE.task(id))
        .map(|task| async move {
            let Some(installer) = phase2.catalog.get(task.id) else {
                return Finding::unknown(task, "no installer has this name".to_owned());
            };
            match installer.inspect(work).await {
                Ok(state) => Finding::of(task, state),
                Err(error) => {
                    let failure = error.into_failure(task.id);
                    Finding::unknown(
                        task,
                        std::iter::once(failure.summary)
                            .chain(failure.causes)
                            .collect::<Vec<_>>()
                            .join(": "),
                    )
                }
            }
        });
    futures::stream::iter(looks)
        .buffered(AT_ONCE)
        .collect()
        .await
}

fn table(findings: &[Finding]) -> String {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            vec![
                format!("{:>4}", finding.step),
                finding.task.to_owned(),
                finding.state.to_owned(),
                finding.would_do(),
            ]
        })
        .collect();
    columns::table(&["STEP", "TASK", "STATE", "WOULD"], &rows)
}

/// The current step, that is the first that is not ready, and the next three.
fn summarised(findings: &[Finding]) -> String {
    let total = TABLE.steps.len();
    let Some(current) = findings.iter().find(|finding| !finding.is_ready()) else {
        return format!("Step {total}/{total}  all in place\n");
    };
    let title = |number: u8| TABLE.step(number).map_or("", |step| step.title);
    let open: Vec<String> = findings
        .iter()
        .filter(|finding| finding.step == current.step && !finding.is_ready())
        .map(|finding| format!("{} {}", finding.task, finding.state))
        .collect();
    let mut text = format!(
        "Step {}/{total}  {} ({})\n",
        current.step,
        title(current.step),
        open.join(", ")
    );
    let mut next: Vec<u8> = findings
        .iter()
        .map(|finding| finding.step)
        .filter(|&step| step > current.step)
        .collect();
    next.dedup();
    for step in next.into_iter().take(NEXT_STEPS) {
        writeln!(text, "next: {step}/{total}  {}", title(step)).ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(open_from: u8) -> Vec<Finding> {
        let state = |task: &Task| {
            if task.step >= open_from {
                State::Missing
            } else {
                State::Ready
            }
        };
        TABLE
            .tasks
            .iter()
            .map(|task| Finding::of(task, state(task)))
            .collect()
    }

    #[test]
    fn the_summary_names_the_current_step_and_the_next_three() {
        assert_eq!(
            summarised(&findings(7)),
            "Step 7/13  Install MinIO + 11 buckets (minio missing, buckets missing)\n\
             next: 8/13  Install OpenBao + init + unseal\n\
             next: 9/13  Mint wildcard TLS + listener Secrets\n\
             next: 10/13  Patch CoreDNS\n"
        );
    }

    #[test]
    fn the_summary_of_the_last_step_has_nothing_next() {
        let text = summarised(&findings(13));
        assert!(
            text.starts_with("Step 13/13") && !text.contains("next:"),
            "{text}"
        );
    }

    #[test]
    fn the_summary_of_a_finished_installation_says_so() {
        assert_eq!(summarised(&findings(14)), "Step 13/13  all in place\n");
    }

    #[test]
    fn the_table_says_what_would_be_done() {
        let task = TABLE.task("redis").unwrap();
        let found = [
            Finding::of(task, State::Ready),
            Finding::of(
                task,
                State::Outdated(vec!["chart 1 → 2".into(), "values".into()]),
            ),
            Finding::of(task, State::Broken("CrashLoopBackOff".into())),
            Finding::unknown(task, "failed to read".into()),
        ];
        insta::assert_snapshot!(table(&found));
    }
}
