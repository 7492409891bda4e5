//! `blueprint secrets list`: which credentials there are, where, and whether the copies agree. Never a value.

use blueprint_phase2::inventory::{self, Agreement, Copy, CopyState, Found};
use jiff::Timestamp;
use serde::Serialize;

use crate::app::App;
use crate::cli::DataOutput;
use crate::columns;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::ClusterArgs;

/// List all credentials: where each copy lives, its mode and age, whether the copies agree
///
/// No value is printed. Without a cluster only the files are looked at.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A table or JSON
    #[arg(long, value_enum, default_value_t)]
    output: DataOutput,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// One credential, as JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    name: &'a str,
    what: &'a str,
    copies_agree: &'static str,
    rotates: bool,
    rotation_under_way: bool,
    copies: Vec<CopyRow<'a>>,
}

/// One copy, as JSON.
#[derive(Debug, Serialize)]
struct CopyRow<'a> {
    kind: &'static str,
    place: &'a str,
    state: &'static str,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    /// Of a file: `0600`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<String>,
}

pub(super) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let reach = super::reach(app, &args.cluster).await?;
    let found = inventory::survey(&reach.context, reach.offline.as_deref()).await?;
    match args.output {
        DataOutput::Text => app.printer.out(&table(&found, Timestamp::now())),
        DataOutput::Json => {
            let rows: Vec<Row> = found.iter().map(row).collect();
            let text = serde_json::to_string_pretty(&rows).map_err(|error| {
                Problem::failed("failed to write the list as JSON").caused_by(&error)
            })?;
            app.printer.out(&text);
        }
    }
    Ok(ExitCode::Done)
}

fn row(found: &Found) -> Row<'_> {
    Row {
        name: &found.known.name,
        what: &found.known.what,
        copies_agree: agreement(found.agreement()),
        rotates: found.known.rotates(),
        rotation_under_way: found.rotating,
        copies: found.copies.iter().map(copy_row).collect(),
    }
}

fn copy_row(copy: &Copy) -> CopyRow<'_> {
    let (state, note) = state(&copy.state);
    CopyRow {
        kind: copy.kind,
        place: &copy.place,
        state,
        note,
        mode: copy.mode.map(mode),
        changed: copy.changed.map(|time| time.to_string()),
    }
}

fn state(state: &CopyState) -> (&'static str, Option<&str>) {
    match state {
        CopyState::Present(_) => ("present", None),
        CopyState::Missing => ("missing", None),
        CopyState::Unknown(why) => ("unknown", Some(why)),
    }
}

fn agreement(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Agree => "agree",
        Agreement::Differ => "differ",
        Agreement::Single => "single",
        Agreement::Missing => "missing",
        Agreement::Unknown => "unknown",
    }
}

fn mode(bits: u32) -> String {
    format!("{bits:04o}")
}

fn table(found: &[Found], now: Timestamp) -> String {
    let rows: Vec<Vec<String>> = found.iter().flat_map(|found| lines(found, now)).collect();
    columns::table(&["NAME", "COPIES", "MODE", "AGE", "PLACE"], &rows)
}

/// One line a copy; the name stands on the first.
fn lines(found: &Found, now: Timestamp) -> Vec<Vec<String>> {
    let mut word = agreement(found.agreement()).to_owned();
    if found.rotating {
        word.push_str(", rotating");
    }
    let mut first = Some((found.known.name.clone(), word));
    found
        .copies
        .iter()
        .map(|copy| {
            let (name, word) = first.take().unwrap_or_default();
            let note = match state(&copy.state) {
                ("present", _) => String::new(),
                (word, None) => format!(" ({word})"),
                (word, Some(why)) => format!(" ({word}: {why})"),
            };
            vec![
                name,
                word,
                copy.mode.map(mode).unwrap_or_default(),
                copy.changed.map(|time| age(time, now)).unwrap_or_default(),
                format!("{}{note}", copy.place),
            ]
        })
        .collect()
}

/// `5 min`, `3 h`, `12 d`.
fn age(time: Timestamp, now: Timestamp) -> String {
    let minutes = (now.as_second() - time.as_second()).max(0) / 60;
    match minutes {
        0..120 => format!("{minutes} min"),
        120..2880 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_at_a_glance() {
        let then: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let after = |text: &str| age(then, text.parse().unwrap());
        assert_eq!(after("2026-11-30T10:00:59Z"), "0 min");
        assert_eq!(after("2026-11-30T11:59:00Z"), "119 min");
        assert_eq!(after("2026-11-30T12:00:00Z"), "2 h");
        assert_eq!(after("2026-12-12T10:00:00Z"), "12 d");
        assert_eq!(
            after("2026-11-30T09:00:00Z"),
            "0 min",
            "a clock that was set back"
        );
    }
}
