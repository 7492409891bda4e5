//! One event a line on stdout, with the time at which it was told.

use blueprint_pipeline::{Event, EventSink};
use serde::Serialize;

use crate::printer::Printer;

/// The reporter.
pub(super) struct Json {
    printer: Printer,
}

#[derive(Serialize)]
struct Line<'a> {
    at: jiff::Timestamp,
    #[serde(flatten)]
    event: &'a Event,
}

impl Json {
    pub(super) fn new(printer: Printer) -> Self {
        Self { printer }
    }
}

fn line(at: jiff::Timestamp, event: &Event) -> serde_json::Result<String> {
    serde_json::to_string(&Line { at, event })
}

impl EventSink for Json {
    fn take(&mut self, event: &Event) {
        match line(jiff::Timestamp::now(), event) {
            Ok(line) => self.printer.out(&line),
            Err(error) => self
                .printer
                .warn(&format!("an event could not be written: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object_on_one_line() {
        let event = Event::Waiting {
            task: "redis".into(),
            step: 6,
            blocker: "pod\nstarting".into(),
        };
        let line = line("2026-11-30T12:00:00Z".parse().unwrap(), &event).unwrap();
        assert_eq!(
            line,
            r#"{"at":"2026-11-30T12:00:00Z","event":"waiting","task":"redis","step":6,"blocker":"pod\nstarting"}"#
        );
    }
}
