//! Reporters: each consumes the run's events and tells them its way.

mod human;
mod json;
mod plain;
mod tally;

use blueprint_pipeline::{EventSink, Table};

use crate::cli::RunOutput;
use crate::printer::Printer;

/// In whose name a run speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Voice {
    /// At the start of each plain line.
    pub(crate) prefix: &'static str,
    /// What goes on from where a run stopped.
    pub(crate) command: &'static str,
}

impl Voice {
    pub(crate) const UP: Self = Self {
        prefix: "[bootstrap]",
        command: "blueprint up",
    };
    pub(crate) const DOWN: Self = Self {
        prefix: "[down]",
        command: "blueprint down",
    };

    /// The last line of a run that stopped early.
    fn goes_on(self) -> String {
        format!("What is done stays; `{}` goes on from here.", self.command)
    }
}

/// The reporter that was asked for, else the one that fits: the live tree on a terminal, lines elsewhere and in CI.
pub(crate) fn choose(
    asked: Option<RunOutput>,
    printer: &Printer,
    table: Table,
    voice: Voice,
) -> Box<dyn EventSink> {
    match asked {
        Some(RunOutput::Json) => Box::new(json::Json::new(printer.clone())),
        Some(RunOutput::Human) | None if printer.is_live() => {
            Box::new(human::Human::new(printer.clone(), table, voice))
        }
        _ => Box::new(plain::Plain::new(printer.clone(), table, voice)),
    }
}
