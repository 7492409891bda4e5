//! `blueprint doctor`: what is wrong, why, and what to do about it.

mod text;

use blueprint_phase2::catalog::Phase2;
use blueprint_phase2::doctor::{self, Finding, Mended, Verdict};
use serde::Serialize;

use crate::app::App;
use crate::cli::DataOutput;
use crate::cluster_lock::ClusterLock;
use crate::exit_code::ExitCode;
use crate::private_modes;
use crate::problem::Problem;
use crate::setup::{self, ClusterArgs};

/// Say what is wrong, why, and what to do; exit code 4 when something does not work
///
/// Runs every check of pre-flight and looks at everything that is installed, worst first. Works without the API server as well, with what the container engine
/// and the files show. Changes nothing, unless --fix is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do the safe repairs: hosts pin, node trust, unsealing OpenBao, the default StorageClass, modes of private files
    #[arg(long)]
    fix: bool,
    /// A report or JSON
    #[arg(long, value_enum, default_value_t)]
    output: DataOutput,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// `--output json`.
#[derive(Serialize)]
struct Report<'a> {
    verdict: Verdict,
    mended: Vec<Repair<'a>>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct Repair<'a> {
    mend: doctor::Mend,
    changes: &'a [String],
    failure: Option<&'a str>,
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let pins = setup::pins(&app.workspace, args.cluster.profile)?;
    let phase2 = setup::phase2(app, &args.cluster, pins).await?;
    let mut findings = doctor::examine(&phase2.context, &phase2.catalog).await;
    let mut mended = Vec::new();
    if args.fix && findings.iter().any(|finding| finding.mend.is_some()) {
        let Some(done) = fix(app, &phase2, &findings).await? else {
            return Ok(ExitCode::Interrupted);
        };
        mended = done;
        findings = doctor::examine(&phase2.context, &phase2.catalog).await;
    }
    match args.output {
        DataOutput::Text => app.printer.out(&text::report(
            &findings,
            app.printer.out_paint(),
            app.printer.is_verbose(),
        )),
        DataOutput::Json => app.printer.out(&json(&findings, &mended)?),
    }
    app.printer.say(&text::sum(&findings, args.fix));
    Ok(if worst(&findings) == Verdict::Ill {
        ExitCode::SmokeFailed
    } else {
        ExitCode::Done
    })
}

/// `None` when it was stopped by a signal.
async fn fix(
    app: &App,
    phase2: &Phase2,
    findings: &[Finding],
) -> Result<Option<Vec<Mended>>, Problem> {
    private_modes::mend(app);
    let _lock = app.lock("blueprint doctor --fix")?;
    let lock =
        ClusterLock::take(app, &phase2.context.cluster, "blueprint doctor --fix", true).await?;
    let stop = lock.stop();
    let done = tokio::select! {
        done = doctor::mend(&phase2.context, findings) => Some(done),
        () = stop.cancelled() => None,
    };
    lock.release().await?;
    for Mended { mend, result } in done.iter().flatten() {
        match result {
            Ok(outcome) => {
                for line in outcome.changes.iter().chain(&outcome.notes) {
                    app.printer.say(line);
                }
            }
            Err(failure) => app.printer.failure(Some(mend.words()), failure),
        }
    }
    Ok(done)
}

fn worst(findings: &[Finding]) -> Verdict {
    findings
        .iter()
        .map(|finding| finding.verdict)
        .min()
        .unwrap_or(Verdict::Well)
}

fn json(findings: &[Finding], mended: &[Mended]) -> Result<String, Problem> {
    let mended = mended.iter().map(|Mended { mend, result }| Repair {
        mend: *mend,
        changes: result.as_ref().map_or(&[], |outcome| &outcome.changes),
        failure: result
            .as_ref()
            .err()
            .map(|failure| failure.summary.as_str()),
    });
    let report = Report {
        verdict: worst(findings),
        mended: mended.collect(),
        findings,
    };
    serde_json::to_string_pretty(&report)
        .map_err(|error| Problem::failed("failed to write the report as JSON").caused_by(&error))
}
