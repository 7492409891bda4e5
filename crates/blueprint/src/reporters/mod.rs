//! Reporters: each consumes the run's events and tells them its way.

mod human;
mod json;
mod plain;
mod tally;

use blueprint_pipeline::{EventSink, Table};

use crate::cli::RunOutput;
use crate::printer::Printer;

/// The reporter that was asked for, else the one that fits: the live tree on a terminal, lines elsewhere and in CI.
pub(crate) fn choose(
    asked: Option<RunOutput>,
    printer: &Printer,
    table: Table,
) -> Box<dyn EventSink> {
    match asked {
        Some(RunOutput::Json) => Box::new(json::Json::new(printer.clone())),
        Some(RunOutput::Human) | None if printer.is_live() => {
            Box::new(human::Human::new(printer.clone(), table))
        }
        _ => Box::new(plain::Plain::new(printer.clone(), table)),
    }
}
