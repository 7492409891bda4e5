//! `blueprint up`: the 13 steps.

use std::sync::Arc;

use blueprint_charts::ArtifactCache;
use blueprint_phase2::catalog::Phase2;
use blueprint_phase2::made_with;
use blueprint_phase2::table::TABLE;
use blueprint_phase2::{Settings, Way, Work, ambiguity};
use blueprint_pipeline::timings::{self, Timings};
use blueprint_pipeline::{Event, Execution, Graph, Progress, RunReport, Selection};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::charts::{fetch_all, folders_of_environment};
use super::check;
use super::timings::sentence;
use crate::app::App;
use crate::cli::RunOutput;
use crate::cluster_lock::ClusterLock;
use crate::exit_code::ExitCode;
use crate::private_modes;
use crate::problem::Problem;
use crate::reporters::{self, Voice};
use crate::setup::{self, ClusterArgs, Pins};
use crate::waking;

/// Install everything, or bring what is there to what is wanted
///
/// Runs the 13 steps; a task starts as soon as its needs are met. Each inspects first and changes only what differs, so running it again is always right: after
/// a failure it goes on from there. `blueprint graph` shows the tasks.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub(crate) struct Args {
    #[command(flatten)]
    what: SelectionArgs,
    /// Strictly one task after the other, in the order of the steps
    #[arg(long)]
    sequential: bool,
    /// At most this many tasks at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one, conflicts_with = "sequential")]
    jobs: usize,
    /// Change nothing; say what would be done (exit code 5 if there is something)
    #[arg(long)]
    check: bool,
    /// Like --check, but only name the current step and the next three
    #[arg(long)]
    summary: bool,
    /// A way out of an ambiguous state that pre-flight named; can be given several times. None deletes anything
    #[arg(long, value_name = "WAY", value_parser = ways(), conflicts_with_all = ["check", "summary"])]
    accept: Vec<Way>,
    /// Download nothing
    #[arg(long)]
    offline: bool,
    /// How the run is told [default: human on a terminal, else plain]
    #[arg(long, value_enum, value_name = "HOW")]
    output: Option<RunOutput>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Which tasks.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Selection")]
struct SelectionArgs {
    /// Just these tasks or steps, without their needs; can be given several times, or with commas
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    only: Vec<String>,
    /// From this task or step on
    #[arg(long, value_name = "TASK")]
    from: Option<String>,
    /// Up to and with this task or step
    #[arg(long, value_name = "TASK")]
    until: Option<String>,
    /// Without these tasks or steps; can be given several times, or with commas
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    skip: Vec<String>,
}

impl From<SelectionArgs> for Selection {
    fn from(args: SelectionArgs) -> Self {
        Self {
            only: args.only,
            from: args.from,
            until: args.until,
            skip: args.skip,
        }
    }
}

/// The ways by their ids, with what each does.
fn ways() -> impl TypedValueParser<Value = Way> {
    let ids = Way::ALL.map(|way| PossibleValue::new(way.id()).help(way.meaning()));
    PossibleValuesParser::new(ids).try_map(|id| Way::by_id(&id).ok_or("not one of the ways"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("a number from 1 on is expected".to_owned()),
    }
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let graph = Graph::new(TABLE)?;
    let tasks = Selection::from(args.what)
        .resolve(&TABLE)
        .map_err(|error| Problem::usage(error.to_string()).hint(error.hint(&TABLE)))?;
    let pins = setup::pins(&app.workspace, args.cluster.profile)?;
    if args.check || args.summary {
        let phase2 = setup::phase2(app, &args.cluster, pins).await?;
        return check::run(app, &phase2, &tasks, args.summary, args.output).await;
    }
    private_modes::mend(app);
    let _lock = app.lock("blueprint up")?;
    let missing = Missing::of(&pins);
    let phase2 = setup::accepting(app, &args.cluster, pins, args.accept).await?;
    missing
        .fetch(app, &phase2.context.cache, args.offline)
        .await;
    waking::wake(app, &phase2.context).await;
    let told_later = tasks.contains(&"preflight");
    let lock = ClusterLock::take(app, &phase2.context.cluster, "blueprint up", told_later).await?;
    if let Err(problem) = check_accepted(&phase2, &tasks).await {
        lock.release().await?;
        return Err(problem);
    }
    let execution = Execution {
        tasks,
        sequential: args.sequential,
        jobs: args.jobs,
    };
    let started = jiff::Timestamp::now();
    let mut sink = reporters::choose(args.output, &app.printer, TABLE, Voice::UP);
    let attention = made_with::attention(&phase2.context.versions);
    if let Some(message) = attention.clone() {
        sink.take(&Event::Attention { message });
    }
    let runner = Arc::clone(&phase2);
    let report =
        blueprint_pipeline::execute::run(&graph, execution, runner, sink, lock.stop()).await;
    let released = lock.release().await;
    record(app, &report, started);
    released?;
    if report.succeeded() && report.finished.contains_key("gitlab") {
        addresses(app, &phase2);
    }
    if let Some(message) = &attention {
        app.printer.attention(message);
    }
    Ok(code(&report))
}

/// A way that fits nothing is a mistake of whoever typed it, and nothing is touched.
async fn check_accepted(phase2: &Phase2, tasks: &[&str]) -> Result<(), Problem> {
    let context = &phase2.context;
    if context.accepted.is_empty() {
        return Ok(());
    }
    if !tasks.contains(&"preflight") {
        return Err(Problem::usage(
            "`--accept` needs the pre-flight, which is not among the tasks of this run",
        )
        .hint("run without --only and --from, or name preflight as well"));
    }
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    let (unfit, allowed) = ambiguity::unfit(work).await;
    let Some(way) = unfit.first() else {
        return Ok(());
    };
    let problem = Problem::usage(format!(
        "`--accept {}` fits nothing that was found",
        way.id()
    ));
    let allowed: Vec<String> = allowed
        .iter()
        .filter(|way| !context.accepted.contains(way))
        .map(|way| format!("`--accept {}`", way.id()))
        .collect();
    Err(if allowed.is_empty() {
        problem.hint(format!(
            "run without it; a way that was taken before stands in {}",
            context.workspace.accepted().display()
        ))
    } else {
        problem.hint(format!("did you mean {}?", allowed.join(" or ")))
    })
}

/// Artifacts that the cache does not have. A file that is there but differs from its pin is left alone: pre-flight refuses it, people decide.
struct Missing(Vec<blueprint_charts::Artifact>);

impl Missing {
    fn of(pins: &Pins) -> Self {
        let there = |artifact: &blueprint_charts::Artifact| {
            pins.cache.folder().join(&artifact.file_name).exists()
        };
        Self(
            pins.versions
                .artifacts()
                .into_iter()
                .filter(|artifact| !there(artifact))
                .collect(),
        )
    }

    /// Fetches what can be had. What cannot is only said: pre-flight names it, with everything else that is missing.
    async fn fetch(self, app: &App, cache: &ArtifactCache, offline: bool) {
        let folders = folders_of_environment();
        if offline && folders.is_empty() {
            return;
        }
        fetch_all(app, cache, &self.0, &folders, offline, |error| {
            app.printer.warn(&error.to_string());
        })
        .await;
    }
}

/// Full and partial runs alike; times that cannot be kept do not make a run fail.
fn record(app: &App, report: &RunReport, started: jiff::Timestamp) {
    if report.finished.is_empty() {
        return;
    }
    let folder = app.workspace.timings();
    let kept = timings::record(&folder, &Timings::of(report, &TABLE, started))
        .and_then(|()| timings::history(&folder));
    match kept {
        Ok(history) => {
            for slowdown in timings::slowdowns(&history) {
                app.printer.say(&sentence(&slowdown));
            }
        }
        Err(error) => app.printer.warn(&format!("{error}; {}", error.hint())),
    }
}

/// Where it is, and where the credentials are.
fn addresses(app: &App, phase2: &Phase2) {
    let settings: &Settings = &phase2.context.settings;
    let line = |label: &str, words: String| app.printer.say(&format!("  {label:<13} {words}"));
    line(
        "GitLab",
        format!("https://{} (user root)", settings.host("gitlab")),
    );
    line("Registry", settings.host("registry"));
    line("MinIO", format!("https://{}", settings.host("minio")));
    line(
        "CA to trust",
        app.workspace
            .wildcard()
            .join("ca.pem")
            .display()
            .to_string(),
    );
    line("Credentials", app.workspace.secrets().display().to_string());
    line(
        "root password",
        "in OpenBao at secret/gitlab/initial_root_password".to_owned(),
    );
}

/// How a run's end is told to the shell.
pub(super) fn code(report: &RunReport) -> ExitCode {
    if report.interrupted {
        ExitCode::Interrupted
    } else if report.failed.values().any(|(_, failure)| failure.preflight) {
        ExitCode::Preflight
    } else if report.succeeded() {
        ExitCode::Done
    } else {
        ExitCode::TaskFailed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use blueprint_pipeline::Failure;

    use super::*;

    fn report(preflight: Option<bool>, interrupted: bool) -> RunReport {
        let failed = preflight.map(|preflight| {
            (
                "task".to_owned(),
                (
                    Duration::ZERO,
                    Failure {
                        preflight,
                        ..Failure::default()
                    },
                ),
            )
        });
        RunReport {
            finished: BTreeMap::new(),
            failed: failed.into_iter().collect(),
            skipped: BTreeMap::new(),
            elapsed: Duration::ZERO,
            interrupted,
        }
    }

    #[test]
    fn the_exit_code_says_how_the_run_ended() {
        assert_eq!(code(&report(None, false)), ExitCode::Done);
        assert_eq!(code(&report(Some(false), false)), ExitCode::TaskFailed);
        assert_eq!(code(&report(Some(true), false)), ExitCode::Preflight);
        assert_eq!(code(&report(Some(false), true)), ExitCode::Interrupted);
    }

    #[test]
    fn no_jobs_at_all_is_refused() {
        assert_eq!(at_least_one("3"), Ok(3));
        assert!(at_least_one("0").is_err());
        assert!(at_least_one("many").is_err());
    }
}
