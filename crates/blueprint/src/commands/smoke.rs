//! `blueprint smoke`: is everything up? Asks only, changes nothing.

use blueprint_phase2::smoke::{self, CheckResult, CheckVerdict};

use crate::app::App;
use crate::cli::DataOutput;
use crate::columns;
use crate::exit_code::ExitCode;
use crate::printer::{Look, Paint};
use crate::private_modes;
use crate::problem::Problem;
use crate::setup::{self, ClusterArgs};
use crate::words::count;

/// Check that everything works; exit code 4 when a check fails
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A table or JSON
    #[arg(long, value_enum, default_value_t)]
    output: DataOutput,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    private_modes::mend(app);
    let pins = setup::pins(&app.workspace, args.cluster.profile)?;
    let phase2 = setup::phase2(app, &args.cluster, pins).await?;
    let results = smoke::run(&phase2.context).await;
    let of = |verdict| {
        results
            .iter()
            .filter(|result| result.verdict == verdict)
            .count()
    };
    let failed = of(CheckVerdict::Failed);
    match args.output {
        DataOutput::Text => {
            app.printer.out(&table(&results, app.printer.out_paint()));
            for result in results
                .iter()
                .filter(|result| result.verdict == CheckVerdict::Failed)
            {
                if let Some(hint) = &result.hint {
                    let label = app.printer.talk_paint().apply(Look::Accent, "hint:");
                    app.printer
                        .say(&format!("{label} {}: {hint}", result.check));
                }
            }
        }
        DataOutput::Json => {
            let text = serde_json::to_string_pretty(&results).map_err(|error| {
                Problem::failed("failed to write the results as JSON").caused_by(&error)
            })?;
            app.printer.out(&text);
        }
    }
    for result in &results {
        if result.verdict == CheckVerdict::Attention {
            app.printer.attention(&result.evidence);
        }
    }
    let passed = count(of(CheckVerdict::Passed), "check");
    if failed > 0 {
        app.printer
            .say(&format!("{passed} passed, {failed} failed"));
        return Ok(ExitCode::SmokeFailed);
    }
    app.printer.say(&format!("{passed} passed"));
    Ok(ExitCode::Done)
}

fn table(results: &[CheckResult], paint: Paint) -> String {
    let rows: Vec<Vec<String>> = results
        .iter()
        .map(|result| {
            let word = match result.verdict {
                CheckVerdict::Passed => "✔",
                CheckVerdict::Failed => "✘",
                CheckVerdict::Attention => "!",
            };
            vec![
                word.to_owned(),
                result.check.clone(),
                result.evidence.clone(),
            ]
        })
        .collect();
    // Marks are painted afterwards: an escape sequence would count as width.
    columns::table(&["", "CHECK", "SEEN"], &rows)
        .replace('✔', &paint.apply(Look::Good, "✔"))
        .replace('✘', &paint.apply(Look::Bad, "✘"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_as_a_table() {
        let results = [
            CheckResult::passed("Redis reachable", "PONG"),
            CheckResult::failed("OpenBao unsealed", "sealed: true"),
        ];
        let text = table(&results, Paint::new(false));
        assert_eq!(
            text,
            "   CHECK             SEEN\n✔  Redis reachable   PONG\n✘  OpenBao unsealed  sealed: true\n"
        );
    }
}
