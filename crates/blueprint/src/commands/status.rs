//! `blueprint status`: how every component stands.

use blueprint_charts::{Versions, is_stand_in};
use blueprint_phase2::made_with;
use blueprint_phase2::table::TABLE;
use serde::Serialize;

use super::check::{Finding, look};
use crate::app::App;
use crate::cli::DataOutput;
use crate::columns;
use crate::exit_code::ExitCode;
use crate::private_modes;
use crate::problem::Problem;
use crate::setup::{self, ClusterArgs};

/// Show how every component stands: state, pinned version, what differs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A table or JSON
    #[arg(long, value_enum, default_value_t)]
    output: DataOutput,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One component.
#[derive(Debug, Serialize)]
struct Row {
    component: &'static str,
    state: &'static str,
    version: Option<String>,
    /// Whether the chart is a stand-in.
    stand_in: bool,
    note: String,
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    private_modes::mend(app);
    let pins = setup::pins(&app.workspace, args.cluster.profile)?;
    let phase2 = setup::phase2(app, &args.cluster, pins).await?;
    phase2.context.cluster.server_version().await?;
    let tasks: Vec<&'static str> = TABLE.tasks.iter().map(|task| task.id).collect();
    let findings = look(&phase2, &tasks).await;
    let rows: Vec<Row> = findings
        .iter()
        .map(|finding| row(finding, &phase2.context.versions))
        .collect();
    match args.output {
        DataOutput::Text => app.printer.out(&table(&rows)),
        DataOutput::Json => {
            let text = serde_json::to_string_pretty(&rows).map_err(|error| {
                Problem::failed("failed to write the status as JSON").caused_by(&error)
            })?;
            app.printer.out(&text);
        }
    }
    if let Some(message) = made_with::attention(&phase2.context.versions) {
        app.printer.attention(&message);
    }
    Ok(ExitCode::Done)
}

fn row(finding: &Finding, versions: &Versions) -> Row {
    let version = version(finding.task, versions);
    Row {
        component: finding.task,
        state: finding.state,
        stand_in: version.as_deref().is_some_and(is_stand_in),
        version,
        note: finding.notes.join("; "),
    }
}

/// The pin that a task installs: a chart or a manifest.
fn version(task: &str, versions: &Versions) -> Option<String> {
    let chart = |key: &str| {
        versions
            .chart(key)
            .ok()
            .map(|pin| pin.chart_version.clone())
    };
    let manifest = |key: &str| versions.manifest(key).ok().map(|pin| pin.version.clone());
    match task {
        "gateway-crds" => manifest("gateway-api-standard"),
        "local-path" => manifest("local-path"),
        "cnpg-operator" => chart("cnpg"),
        "redis" | "minio" | "openbao" | "gitlab" | "runner" => chart(task),
        _ => None,
    }
}

fn table(rows: &[Row]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let version = row.version.clone().unwrap_or_else(|| "–".to_owned());
            vec![
                row.component.to_owned(),
                row.state.to_owned(),
                version,
                row.note.clone(),
            ]
        })
        .collect();
    columns::table(&["COMPONENT", "STATE", "VERSION", "NOTE"], &rows)
}

#[cfg(test)]
mod tests {
    use blueprint_phase2::references::embedded_text;

    use super::*;

    #[test]
    fn every_pinned_chart_shows_up_beside_its_component() {
        let text = embedded_text("VERSIONS.json").unwrap();
        let versions = Versions::parse(text, std::path::Path::new("VERSIONS.json")).unwrap();
        let mut shown: Vec<String> = TABLE
            .tasks
            .iter()
            .filter_map(|task| version(task.id, &versions))
            .collect();
        for pin in versions.helm_repositories.values() {
            let place = shown
                .iter()
                .position(|version| *version == pin.chart_version);
            shown.remove(
                place.unwrap_or_else(|| panic!("{} {} is not shown", pin.chart, pin.chart_version)),
            );
        }
    }
}
