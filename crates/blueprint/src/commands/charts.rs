//! `blueprint charts fetch|verify`: the cache of verified charts and manifests.

use std::path::PathBuf;

use blueprint_charts::{Artifact, ArtifactCache, CacheError, Fetched};
use clap::Subcommand;
use futures::StreamExt as _;

use crate::app::App;
use crate::columns;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup;
use crate::words::count;

/// Folders to look into besides those given, separated like PATH.
pub(crate) const FOLDERS_VARIABLE: &str = "BLUEPRINT_CHARTS";

/// How many artifacts are fetched at once.
const AT_ONCE: usize = 4;

/// Fetch and verify the pinned charts and manifests (infra/helm-charts)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Bring what is missing into the cache: from folders, then from upstream
    ///
    /// The variable `BLUEPRINT_CHARTS` (folders, separated like PATH) adds to --from.
    Fetch(FetchArgs),
    /// Compare every file in the cache with its digest in VERSIONS.json
    Verify,
}

#[derive(Debug, clap::Args)]
struct FetchArgs {
    /// A folder that may hold the files; can be given several times
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Do not download anything
    #[arg(long)]
    offline: bool,
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    match args.action {
        Action::Fetch(args) => fetch(args, app).await,
        Action::Verify => verify(app),
    }
}

/// The folders of [`FOLDERS_VARIABLE`].
pub(crate) fn folders_of_environment() -> Vec<PathBuf> {
    let value = std::env::var_os(FOLDERS_VARIABLE).unwrap_or_default();
    std::env::split_paths(&value)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect()
}

async fn fetch(args: FetchArgs, app: &App) -> Result<ExitCode, Problem> {
    let pins = setup::pins(&app.workspace, None)?;
    let mut folders = args.from;
    folders.extend(folders_of_environment());
    let mut failed = Vec::new();
    let artifacts = pins.versions.artifacts();
    fetch_all(
        app,
        &pins.cache,
        &artifacts,
        &folders,
        args.offline,
        |error| {
            failed.push(Problem::from(blueprint_phase2::Error::from(error)));
        },
    )
    .await;
    if failed.is_empty() {
        app.printer.say(&format!(
            "{} in {}",
            count(artifacts.len(), "artifact"),
            pins.cache.folder().display()
        ));
        return Ok(ExitCode::Done);
    }
    for problem in hinted_once(failed) {
        app.printer.problem(&problem);
    }
    Ok(ExitCode::TaskFailed)
}

/// Nine artifacts that nobody has need the same next move: it is told after the last of them.
fn hinted_once(failed: Vec<Problem>) -> Vec<Problem> {
    let hints: Vec<_> = failed
        .iter()
        .map(|problem| problem.failure().hint.clone())
        .collect();
    failed
        .into_iter()
        .enumerate()
        .map(|(number, problem)| {
            if hints[number + 1..].contains(&hints[number]) {
                problem.without_hint()
            } else {
                problem
            }
        })
        .collect()
}

/// Several at once; says where each came from, hands over what could not be had.
pub(crate) async fn fetch_all(
    app: &App,
    cache: &ArtifactCache,
    artifacts: &[Artifact],
    folders: &[PathBuf],
    offline: bool,
    mut failed: impl FnMut(CacheError),
) {
    let tries = artifacts
        .iter()
        .map(async |artifact| (artifact, cache.fetch(artifact, folders, offline).await));
    let mut answers = futures::stream::iter(tries).buffered(AT_ONCE);
    while let Some((artifact, fetched)) = answers.next().await {
        match fetched {
            Ok(fetched) => app
                .printer
                .say(&format!("{}: {}", artifact.label, origin(&fetched))),
            Err(error) => failed(error),
        }
    }
}

/// Where an artifact came from, in words.
fn origin(fetched: &Fetched) -> String {
    match fetched {
        Fetched::Cached => "in the cache".to_owned(),
        Fetched::Folder(folder) => format!("copied from {}", folder.display()),
        Fetched::Upstream(url) => format!("downloaded from {url}"),
    }
}

fn verify(app: &App) -> Result<ExitCode, Problem> {
    let pins = setup::pins(&app.workspace, None)?;
    let (rows, problems) = compare(&pins.versions, &pins.cache);
    app.printer
        .out(&columns::table(&["ARTIFACT", "DIGEST", "FILE"], &rows));
    for problem in &problems {
        app.printer.problem(problem);
    }
    Ok(if problems.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::TaskFailed
    })
}

fn compare(
    versions: &blueprint_charts::Versions,
    cache: &ArtifactCache,
) -> (Vec<Vec<String>>, Vec<Problem>) {
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    for artifact in versions.artifacts() {
        let word = match cache.verified(&artifact) {
            Ok(_) => "as pinned",
            Err(error) => {
                let word = match &error {
                    blueprint_charts::CacheError::Missing { .. } => "missing",
                    blueprint_charts::CacheError::DigestMismatch { .. } => "differs",
                    _ => "unreadable",
                };
                problems.push(Problem::from(blueprint_phase2::Error::from(error)));
                word
            }
        };
        rows.push(vec![artifact.label, word.to_owned(), artifact.file_name]);
    }
    (rows, problems)
}
