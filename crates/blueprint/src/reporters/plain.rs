//! Lines, for CI and everything that is not a terminal: `[bootstrap] Step 7/13  Install MinIO + 11 buckets`.

use std::collections::{BTreeMap, BTreeSet};

use blueprint_pipeline::{Event, EventSink, Outcome, Table};

use super::Voice;
use super::tally::Tally;
use crate::columns::wrapped;
use crate::printer::{Look, Paint, Printer};
use crate::words::duration;

/// Lists of tasks are broken here.
const WIDTH: usize = 80;

/// The reporter.
pub(super) struct Plain {
    printer: Printer,
    lines: Lines,
}

impl Plain {
    pub(super) fn new(printer: Printer, table: Table, voice: Voice) -> Self {
        let lines = Lines::new(table, voice, printer.talk_paint());
        Self { printer, lines }
    }
}

impl EventSink for Plain {
    fn take(&mut self, event: &Event) {
        for line in self.lines.of(event) {
            self.printer.say(&line);
        }
        match event {
            Event::TaskFailed { task, failure, .. } => self.printer.failure(Some(task), failure),
            Event::Attention { message } => self.printer.attention(message),
            _ => {}
        }
    }
}

/// Events into lines.
struct Lines {
    table: Table,
    voice: Voice,
    paint: Paint,
    announced: BTreeSet<u8>,
    width: usize,
    tally: Tally,
    /// What did not run, by the reason at the root of it.
    skipped: BTreeMap<String, Vec<String>>,
}

impl Lines {
    fn new(table: Table, voice: Voice, paint: Paint) -> Self {
        let width = table
            .tasks
            .iter()
            .map(|task| task.id.len())
            .max()
            .unwrap_or(0);
        Self {
            table,
            voice,
            paint,
            announced: BTreeSet::new(),
            width,
            tally: Tally::default(),
            skipped: BTreeMap::new(),
        }
    }

    fn of(&mut self, event: &Event) -> Vec<String> {
        self.tally.take(event);
        match event {
            Event::RunStarted { .. } | Event::Attention { .. } => Vec::new(),
            Event::TaskStarted { step, .. } => self.announce(*step),
            Event::Progress { task, message, .. } => self.task(task, message.lines()),
            Event::Waiting { task, blocker, .. } => {
                self.task(task, [format!("waits: {blocker}").as_str()])
            }
            Event::TaskFinished {
                task,
                seconds,
                outcome,
                ..
            } => self.finished(task, *seconds, outcome),
            Event::TaskFailed { task, seconds, .. } => {
                let words = format!("failed after {}", duration(*seconds));
                self.task(task, [self.paint.apply(Look::Bad, &words).as_str()])
            }
            Event::TaskSkipped { task, reason, .. } => {
                let root = root_of(reason);
                self.skipped.entry(root).or_default().push(task.clone());
                Vec::new()
            }
            Event::RunFinished { .. } => self.ended(event),
        }
    }

    /// A step is announced when its first task begins.
    fn announce(&mut self, number: u8) -> Vec<String> {
        if !self.announced.insert(number) {
            return Vec::new();
        }
        let title = self.table.step(number).map_or("", |step| step.title);
        let step = self.paint.apply(
            Look::Strong,
            &format!("Step {number}/{}", self.table.steps.len()),
        );
        vec![format!("{} {step}  {title}", self.voice.prefix)]
    }

    fn task<'a>(&self, task: &str, words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let (width, prefix) = (self.width, self.voice.prefix);
        words
            .into_iter()
            .map(|line| format!("{prefix}   {task:<width$}  {line}"))
            .collect()
    }

    fn finished(&self, task: &str, seconds: f64, outcome: &Outcome) -> Vec<String> {
        let mut lines = self.task(task, outcome.changes.iter().map(String::as_str));
        lines.extend(
            outcome
                .notes
                .iter()
                .flat_map(|note| self.task(task, [format!("note: {note}").as_str()])),
        );
        let end = if outcome.changes.is_empty() {
            format!("unchanged ({})", duration(seconds))
        } else {
            self.paint
                .apply(Look::Good, &format!("done in {}", duration(seconds)))
        };
        lines.extend(self.task(task, [end.as_str()]));
        lines
    }

    /// One paragraph for each root: after a failed pre-flight that is every other task.
    fn not_run(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (root, tasks) in &self.skipped {
            let words = format!("not run, because {root}: {}", tasks.join(", "));
            let parts = wrapped(&words, WIDTH);
            lines.extend(parts.iter().map(|part| {
                format!(
                    "{}   {}",
                    self.voice.prefix,
                    self.paint.apply(Look::Warning, part)
                )
            }));
        }
        lines
    }

    fn ended(&self, event: &Event) -> Vec<String> {
        let Some((well, line)) = self.tally.last_line(event) else {
            return Vec::new();
        };
        let (look, word) = if well {
            (Look::Good, "Done")
        } else {
            (Look::Bad, "Stopped")
        };
        let mut lines = self.not_run();
        lines.push(format!(
            "{} {} {line}",
            self.voice.prefix,
            self.paint.apply(look, &format!("{word}:"))
        ));
        if !well {
            lines.push(format!("{} {}", self.voice.prefix, self.voice.goes_on()));
        }
        lines
    }
}

/// `needs gitlab, which needs redis, which failed` → `redis failed`.
fn root_of(reason: &str) -> String {
    let last = reason.rsplit("needs ").next().unwrap_or(reason);
    last.replacen(", which failed", " failed", 1)
}

#[cfg(test)]
mod tests {
    use blueprint_phase2::table::TABLE;
    use blueprint_pipeline::Failure;

    use super::*;

    fn outcome(changes: &[&str], notes: &[&str]) -> Outcome {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Outcome {
            changes: owned(changes),
            notes: owned(notes),
        }
    }

    fn started(task: &str, step: u8) -> Event {
        Event::TaskStarted {
            task: task.into(),
            step,
            title: String::new(),
        }
    }

    #[test]
    fn the_root_of_a_chain_is_what_failed() {
        assert_eq!(
            root_of("needs gitlab, which needs redis, which failed"),
            "redis failed"
        );
        assert_eq!(
            root_of("the run was interrupted"),
            "the run was interrupted"
        );
    }

    #[test]
    fn a_run_as_lines() {
        let events = [
            Event::RunStarted {
                tasks: vec!["minio".into(), "buckets".into(), "openbao".into()],
                mode: "parallel",
            },
            started("minio", 7),
            Event::Waiting {
                task: "minio".into(),
                step: 7,
                blocker: "pod minio/minio-0: starting".into(),
            },
            Event::TaskFinished {
                task: "minio".into(),
                step: 7,
                seconds: 12.34,
                outcome: outcome(
                    &["created Namespace minio", "installed release minio"],
                    &["kept the password of the file"],
                ),
            },
            started("buckets", 7),
            Event::Progress {
                task: "buckets".into(),
                step: 7,
                message: "S3 answers".into(),
            },
            Event::TaskFinished {
                task: "buckets".into(),
                step: 7,
                seconds: 0.4,
                outcome: outcome(&[], &[]),
            },
            started("openbao", 8),
            Event::TaskFailed {
                task: "openbao".into(),
                step: 8,
                seconds: 61.0,
                failure: Failure::default(),
            },
            Event::TaskSkipped {
                task: "gitlab".into(),
                step: 12,
                reason: "needs openbao, which failed".into(),
            },
            Event::RunFinished {
                seconds: 73.9,
                succeeded: 2,
                failed: 1,
                skipped: 1,
                interrupted: false,
            },
        ];
        let mut lines = Lines::new(TABLE, Voice::UP, Paint::new(false));
        let text: Vec<String> = events.iter().flat_map(|event| lines.of(event)).collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}
