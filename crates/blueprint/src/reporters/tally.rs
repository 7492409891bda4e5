//! The counts of a run, and its last lines.

use std::fmt::Write as _;

use blueprint_pipeline::Event;

use crate::words::{count, duration};

/// Counts while the events pass.
#[derive(Debug, Default)]
pub(super) struct Tally {
    tasks: usize,
    changed: usize,
    changes: usize,
}

impl Tally {
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::RunStarted { tasks, .. } => self.tasks = tasks.len(),
            Event::TaskFinished { outcome, .. } if !outcome.changes.is_empty() => {
                self.changed += 1;
                self.changes += outcome.changes.len();
            }
            _ => {}
        }
    }

    /// `18 of 18 tasks in 2 min 12 s: 14 changed something (61 changes), 4 unchanged`; also answers whether all is well.
    pub(super) fn last_line(&self, event: &Event) -> Option<(bool, String)> {
        let Event::RunFinished {
            seconds,
            succeeded,
            failed,
            skipped,
            interrupted,
        } = event
        else {
            return None;
        };
        let mut line = format!(
            "{succeeded} of {} in {}",
            count(self.tasks, "task"),
            duration(*seconds)
        );
        if self.changed == 0 {
            line.push_str(": nothing changed");
        } else {
            write!(
                line,
                ": {} changed something ({}), {} unchanged",
                self.changed,
                count(self.changes, "change"),
                succeeded - self.changed
            )
            .ok();
        }
        if *failed > 0 {
            write!(line, ", {failed} failed").ok();
        }
        if *skipped > 0 {
            write!(line, ", {skipped} not run").ok();
        }
        if *interrupted {
            line.push_str(", interrupted");
        }
        Some((*failed == 0 && *skipped == 0 && !interrupted, line))
    }
}

#[cfg(test)]
mod tests {
    use blueprint_pipeline::Outcome;

    use super::*;

    fn finished(changes: &[&str]) -> Event {
        let changes = changes.iter().map(|&change| change.to_owned()).collect();
        Event::TaskFinished {
            task: "t".into(),
            step: 1,
            seconds: 1.0,
            outcome: Outcome {
                changes,
                notes: vec![],
            },
        }
    }

    fn ended(succeeded: usize, failed: usize, skipped: usize) -> Event {
        Event::RunFinished {
            seconds: 4.2,
            succeeded,
            failed,
            skipped,
            interrupted: false,
        }
    }

    #[test]
    fn the_last_line_counts() {
        let mut tally = Tally::default();
        tally.take(&Event::RunStarted {
            tasks: vec!["a".into(), "b".into(), "c".into(), "d".into()],
            mode: "parallel",
        });
        tally.take(&finished(&["made x", "made y"]));
        tally.take(&finished(&[]));
        let (well, line) = tally.last_line(&ended(2, 1, 1)).unwrap();
        assert!(!well);
        assert_eq!(
            line,
            "2 of 4 tasks in 4.2 s: 1 changed something (2 changes), 1 unchanged, 1 failed, 1 not run"
        );
    }

    #[test]
    fn nothing_changed_is_said() {
        let mut tally = Tally::default();
        tally.take(&Event::RunStarted {
            tasks: vec!["a".into()],
            mode: "parallel",
        });
        tally.take(&finished(&[]));
        assert_eq!(
            tally.last_line(&ended(1, 0, 0)),
            Some((true, "1 of 1 task in 4.2 s: nothing changed".into()))
        );
    }
}
