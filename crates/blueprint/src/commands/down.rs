//! `blueprint down`: what `up` made, taken away again, last step first.

use std::io::IsTerminal as _;
use std::sync::Arc;

use blueprint_phase2::catalog::Phase2;
use blueprint_phase2::table::{TABLE, TEARDOWN};
use blueprint_phase2::teardown::{self, Remains, Teardown};
use blueprint_phase2::{Removal, made_with};
use blueprint_pipeline::{Event, Execution, Graph, RunReport, Selection};

use super::up::code;
use crate::app::App;
use crate::cli::RunOutput;
use crate::cluster_lock::ClusterLock;
use crate::columns;
use crate::exit_code::ExitCode;
use crate::private_modes;
use crate::problem::Problem;
use crate::reporters::{self, Voice};
use crate::setup::{self, ClusterArgs};

/// What another run is told.
const COMMAND: &str = "blueprint down";
/// How many components go at once.
const JOBS: usize = 8;

/// Remove what `up` made; data and credentials stay
///
/// The steps run backwards. What lies on the storage root, in infra/secrets and in infra/tls stays, and the next `up` brings the same installation back. What was
/// there before the first `up` (the Corefile, the nodes' files, the default StorageClass) is as it was. Objects that are not blueprint's stay, and are named.
/// Running it again is always right: after an interruption it goes on from there.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Just these tasks or steps; refused while something else that is installed needs them. Can be given several times, or with commas
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    only: Vec<String>,
    /// Data and credentials as well, for good; the installation's name has to be typed
    #[arg(long, conflicts_with = "only")]
    wipe: bool,
    /// The installation's name (its kind cluster's), instead of typing it
    #[arg(long, value_name = "NAME", requires = "wipe")]
    yes: Option<String>,
    /// Change nothing; list what would be removed (exit code 5 if there is something)
    #[arg(long)]
    check: bool,
    /// How the run is told [default: human on a terminal, else plain]
    #[arg(long, value_enum, value_name = "HOW")]
    output: Option<RunOutput>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Args {
    fn removal(&self) -> Removal {
        if self.wipe {
            Removal::Wipe
        } else {
            Removal::Keep
        }
    }
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let graph = Graph::new(*TEARDOWN)?;
    let selection = Selection {
        only: args.only.clone(),
        ..Selection::default()
    };
    let tasks = selection
        .resolve(&TEARDOWN)
        .map_err(|error| Problem::usage(error.to_string()).hint(error.hint(&TABLE)))?;
    let removal = args.removal();
    if !args.check {
        private_modes::mend(app);
    }
    let pins = setup::pins(&app.workspace, args.cluster.profile)?;
    let _lock = if args.check {
        None
    } else {
        Some(app.lock(COMMAND)?)
    };
    let phase2 = setup::phase2(app, &args.cluster, pins).await?;
    if args.wipe && !args.check {
        confirm(app, &phase2, args.yes.as_deref()).await?;
    }
    can_work(&phase2).await?;
    if !args.only.is_empty() {
        teardown::check_unneeded(&phase2, &tasks)
            .await
            .map_err(Problem::of)?;
    }
    if args.wipe {
        teardown::check_wipe(&phase2).await.map_err(Problem::of)?;
    }
    if args.check {
        return check(app, &phase2, &tasks, removal, args.output).await;
    }
    let lock = ClusterLock::take(app, &phase2.context.cluster, COMMAND, false).await?;
    let execution = Execution {
        tasks,
        sequential: false,
        jobs: JOBS,
    };
    let mut sink = reporters::choose(args.output, &app.printer, *TEARDOWN, Voice::DOWN);
    if let Some(message) = made_with::attention(&phase2.context.versions) {
        sink.take(&Event::Attention { message });
    }
    let runner = Arc::new(Teardown {
        phase2: Arc::clone(&phase2),
        removal,
    });
    let report =
        blueprint_pipeline::execute::run(&graph, execution, runner, sink, lock.stop()).await;
    lock.release().await?;
    if report.succeeded() {
        app.printer.say(&parting(&args, &phase2, &report));
    }
    Ok(code(&report))
}

/// The API server, helm and the engine: without one of them a part would be left, so nothing is begun.
async fn can_work(phase2: &Phase2) -> Result<(), Problem> {
    let context = &phase2.context;
    let preflight = |problem: Problem| problem.with_code(ExitCode::Preflight);
    context
        .cluster
        .server_version()
        .await
        .map_err(|error| preflight(error.into()))?;
    context.helm().map_err(|error| preflight(error.into()))?;
    context.nodes().map_err(|error| preflight(error.into()))?;
    Ok(())
}

/// The installation's name: its kind cluster's, or the whole context's where that is no kind cluster.
fn name(phase2: &Phase2) -> &str {
    let context = phase2.context.cluster.context();
    context.strip_prefix("kind-").unwrap_or(context)
}

/// Says what will be lost, and goes on only with the installation's name.
async fn confirm(app: &App, phase2: &Phase2, given: Option<&str>) -> Result<(), Problem> {
    let name = name(phase2);
    if let Some(given) = given {
        return matches(name, given);
    }
    let asked = Problem::usage("a wipe has to be confirmed")
        .expected(format!("the installation's name `{name}`"))
        .hint(format!(
            "on a terminal it is asked for; elsewhere: `blueprint down --wipe --yes {name}`; `blueprint down --wipe --check` lists what would go"
        ));
    if !std::io::stdin().is_terminal() {
        return Err(asked.found("no terminal to type it on, and no --yes"));
    }
    let context = &phase2.context;
    app.printer.ask(&format!(
        "This removes the installation `{name}` with all its data below {} and the credentials in {} and {}: repositories, images, databases, logins. There is no way back.\n\
         Type its name to go on:",
        context.settings.storage_root,
        app.workspace.secrets().display(),
        app.workspace.wildcard().display()
    ));
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let typed = match line.await {
        Ok(Ok(line)) => line,
        Ok(Err(error)) => return Err(asked.caused_by(&error)),
        Err(error) => return Err(asked.caused_by(&error)),
    };
    matches(name, typed.trim())
}

fn matches(name: &str, given: &str) -> Result<(), Problem> {
    if name == given {
        return Ok(());
    }
    Err(Problem::usage("this is not the installation's name")
        .expected(name.to_owned())
        .found(format!("`{given}`"))
        .hint("the name is its kind cluster's (`cluster` in blueprint.yaml, or --context); nothing was changed"))
}

/// `--check`: the list, task by task.
async fn check(
    app: &App,
    phase2: &Phase2,
    tasks: &[&'static str],
    removal: Removal,
    output: Option<RunOutput>,
) -> Result<ExitCode, Problem> {
    let found = teardown::remains(phase2, tasks, removal)
        .await
        .map_err(Problem::of)?;
    if output == Some(RunOutput::Json) {
        for remains in &found {
            let line = serde_json::to_string(remains).map_err(|error| {
                Problem::failed("failed to write a line as JSON").caused_by(&error)
            })?;
            app.printer.out(&line);
        }
    } else if found.iter().any(|remains| !remains.would_remove.is_empty()) {
        app.printer.out(&table(&found));
    }
    let count: usize = found.iter().map(|remains| remains.would_remove.len()).sum();
    if count == 0 {
        app.printer.say(&nothing(phase2));
        return Ok(ExitCode::Done);
    }
    app.printer.say(&format!(
        "`blueprint down` would remove {count} of blueprint's things from the cluster `{}`.",
        name(phase2)
    ));
    Ok(ExitCode::ChangesFound)
}

fn table(found: &[Remains]) -> String {
    let rows: Vec<Vec<String>> = found
        .iter()
        .flat_map(|remains| {
            remains.would_remove.iter().map(|what| {
                vec![
                    format!("{:>4}", remains.step),
                    remains.task.to_owned(),
                    what.clone(),
                ]
            })
        })
        .collect();
    columns::table(&["STEP", "TASK", "WOULD REMOVE"], &rows)
}

fn nothing(phase2: &Phase2) -> String {
    format!(
        "Nothing to take down: nothing of blueprint's is in the cluster `{}`.",
        name(phase2)
    )
}

/// What is gone and what is not.
fn parting(args: &Args, phase2: &Phase2, report: &RunReport) -> String {
    let changed = report
        .finished
        .values()
        .any(|(_, outcome)| !outcome.changes.is_empty());
    if !changed {
        return if args.only.is_empty() {
            nothing(phase2)
        } else {
            format!(
                "Nothing to take down: {} is not there.",
                args.only.join(", ")
            )
        };
    }
    let workspace = &phase2.context.workspace;
    if args.wipe {
        format!(
            "The installation `{}` is gone, with its data and its credentials.",
            name(phase2)
        )
    } else {
        format!(
            "The data, {} and {} stay: `blueprint up` brings the same installation back.",
            workspace.secrets().display(),
            workspace.wildcard().display()
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        let line = Line::try_parse_from([&["down"], words].concat())?;
        Ok(line.args)
    }

    #[test]
    fn data_goes_only_when_that_is_asked_for_and_never_for_a_part() {
        assert_eq!(parse(&[]).unwrap().removal(), Removal::Keep);
        assert_eq!(parse(&["--wipe"]).unwrap().removal(), Removal::Wipe);
        assert!(parse(&["--wipe", "--only", "redis"]).is_err());
        assert!(
            parse(&["--yes", "lab"]).is_err(),
            "--yes alone confirms nothing"
        );
    }

    #[test]
    fn only_the_very_name_confirms() {
        assert!(matches("lab", "lab").is_ok());
        for wrong in ["", "Lab", "lab2", "yes", "kind-lab"] {
            let problem = matches("lab", wrong).unwrap_err();
            assert_eq!(problem.code(), ExitCode::Usage, "{wrong}");
        }
    }

    #[test]
    fn the_list_has_a_line_for_everything_that_would_go() {
        let found = [
            Remains {
                task: "runner",
                step: 13,
                would_remove: vec!["release gitlab-runner".into(), "Secret gitlab/x".into()],
            },
            Remains {
                task: "redis",
                step: 6,
                would_remove: vec![],
            },
        ];
        let text = table(&found);
        assert!(
            text.contains("Secret gitlab/x") && !text.contains("redis"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
