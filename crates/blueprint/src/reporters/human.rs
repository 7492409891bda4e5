//! A live tree on a terminal: every step a line, its running tasks below it with what they do or wait for.

use std::collections::BTreeMap;
use std::time::Duration;

use blueprint_pipeline::{Event, EventSink, Outcome, Table};
use indicatif::{ProgressBar, ProgressStyle};

use super::Voice;
use super::tally::Tally;
use crate::printer::{Look, Paint, Printer};
use crate::words::{count, duration};

/// How often spinners turn and elapsed times move on.
const TICK: Duration = Duration::from_millis(120);
const SPINNER: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ";

/// The reporter.
pub(super) struct Human {
    printer: Printer,
    table: Table,
    voice: Voice,
    paint: Paint,
    steps: BTreeMap<u8, StepLine>,
    tasks: BTreeMap<String, ProgressBar>,
    notes: Vec<String>,
    tally: Tally,
}

/// One step's line and how its tasks stand.
struct StepLine {
    bar: ProgressBar,
    /// Tasks of the run that have not ended.
    open: usize,
    changes: usize,
    failed: bool,
    skipped: bool,
    started: bool,
}

impl Human {
    pub(super) fn new(printer: Printer, table: Table, voice: Voice) -> Self {
        let paint = printer.talk_paint();
        Self {
            printer,
            table,
            voice,
            paint,
            steps: BTreeMap::new(),
            tasks: BTreeMap::new(),
            notes: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn begin(&mut self, tasks: &[String]) {
        for step in self.table.steps {
            let open = self
                .table
                .tasks_of(step.number)
                .filter(|task| tasks.iter().any(|id| id == task.id))
                .count();
            if open == 0 {
                continue;
            }
            let bar = self
                .printer
                .bars()
                .add(ProgressBar::new_spinner().with_style(style("{wide_msg}")));
            bar.set_message(self.step_text(
                step.number,
                &self.paint.apply(Look::Faint, "·"),
                Some(Look::Faint),
                "",
            ));
            let line = StepLine {
                bar,
                open,
                changes: 0,
                failed: false,
                skipped: false,
                started: false,
            };
            self.steps.insert(step.number, line);
        }
    }

    /// `✔  7 Install MinIO + 11 buckets  3 changes`.
    fn step_text(&self, number: u8, mark: &str, look: Option<Look>, tail: &str) -> String {
        let title = self.table.step(number).map_or("", |step| step.title);
        let words = format!("{number:>2} {title}");
        let words = look.map_or_else(|| words.clone(), |look| self.paint.apply(look, &words));
        let tail = if tail.is_empty() {
            String::new()
        } else {
            format!("  {tail}")
        };
        format!("{mark} {words}{tail}")
    }

    fn task_started(&mut self, task: &str, number: u8, title: &str) {
        let text = self.step_text(number, "", Some(Look::Strong), "");
        let spinner = if self.paint.is_on() {
            "{spinner:.cyan}"
        } else {
            "{spinner}"
        };
        let Some(line) = self.steps.get_mut(&number) else {
            return;
        };
        if !line.started {
            line.started = true;
            line.bar
                .set_style(style(&format!("{spinner}{{wide_msg}} {{elapsed:>4}}")));
            line.bar.reset_elapsed();
            line.bar.set_message(text);
            line.bar.enable_steady_tick(TICK);
        }
        let bar =
            ProgressBar::new_spinner().with_style(style("     {prefix}  {wide_msg} {elapsed:>4}"));
        let bar = self.printer.bars().insert_after(&line.bar, bar);
        bar.set_prefix(self.paint.apply(Look::Accent, task));
        bar.set_message(title.to_owned());
        bar.enable_steady_tick(TICK);
        self.tasks.insert(task.to_owned(), bar);
    }

    fn tell(&self, task: &str, words: &str) {
        if let Some(bar) = self.tasks.get(task) {
            bar.set_message(words.lines().next().unwrap_or_default().to_owned());
        }
    }

    fn task_finished(&mut self, task: &str, number: u8, outcome: &Outcome) {
        for change in &outcome.changes {
            self.printer.detail(&format!("{task}: {change}"));
        }
        self.notes
            .extend(outcome.notes.iter().map(|note| format!("{task}: {note}")));
        if let Some(line) = self.steps.get_mut(&number) {
            line.changes += outcome.changes.len();
        }
        self.task_ended(task, number);
    }

    fn task_ended(&mut self, task: &str, number: u8) {
        if let Some(bar) = self.tasks.remove(task) {
            bar.finish_and_clear();
            self.printer.bars().remove(&bar);
        }
        let Some(line) = self.steps.get_mut(&number) else {
            return;
        };
        line.open = line.open.saturating_sub(1);
        if line.open == 0 {
            self.step_ended(number);
        }
    }

    fn step_ended(&self, number: u8) {
        let Some(line) = self.steps.get(&number) else {
            return;
        };
        let (mark, tail) = if line.failed {
            (
                self.paint.apply(Look::Bad, "✘"),
                self.paint.apply(Look::Bad, "failed"),
            )
        } else if line.skipped {
            (
                self.paint.apply(Look::Warning, "–"),
                self.paint.apply(Look::Warning, "not run"),
            )
        } else if line.changes == 0 {
            (
                self.paint.apply(Look::Good, "✔"),
                self.paint.apply(Look::Faint, "unchanged"),
            )
        } else {
            (
                self.paint.apply(Look::Good, "✔"),
                count(line.changes, "change"),
            )
        };
        let elapsed = if line.started {
            duration(line.bar.elapsed().as_secs_f64())
        } else {
            String::new()
        };
        line.bar.disable_steady_tick();
        line.bar.set_style(style("{wide_msg} {prefix}"));
        line.bar.set_prefix(self.paint.apply(Look::Faint, &elapsed));
        line.bar
            .finish_with_message(self.step_text(number, &mark, None, &tail));
    }

    fn mark(&mut self, number: u8, mark: impl FnOnce(&mut StepLine)) {
        if let Some(line) = self.steps.get_mut(&number) {
            mark(line);
        }
    }

    /// The tree is printed once more, for good: bars would stay below whatever is said from now on.
    fn leave_tree(&self) {
        let bars = self.printer.bars();
        for line in self.steps.values() {
            bars.remove(&line.bar);
        }
        bars.clear().ok();
        let in_order = self.table.steps.iter();
        for line in in_order.filter_map(|step| self.steps.get(&step.number)) {
            self.printer
                .say(&format!("{}  {}", line.bar.message(), line.bar.prefix()));
        }
    }

    fn ended(&self, event: &Event) {
        self.leave_tree();
        for note in &self.notes {
            self.printer.say(&format!(
                "{} {note}",
                self.paint.apply(Look::Accent, "note:")
            ));
        }
        let Some((well, line)) = self.tally.last_line(event) else {
            return;
        };
        let (look, word) = if well {
            (Look::Good, "Done:")
        } else {
            (Look::Bad, "Stopped:")
        };
        self.printer
            .say(&format!("{} {line}", self.paint.apply(look, word)));
        if !well {
            self.printer.say(&self.voice.goes_on());
        }
    }
}

impl EventSink for Human {
    fn take(&mut self, event: &Event) {
        self.tally.take(event);
        match event {
            Event::RunStarted { tasks, .. } => self.begin(tasks),
            Event::Attention { message } => self.printer.attention(message),
            Event::TaskStarted { task, step, title } => self.task_started(task, *step, title),
            Event::Progress { task, message, .. } => self.tell(task, message),
            Event::Waiting { task, blocker, .. } => self.tell(task, &format!("waits: {blocker}")),
            Event::TaskFinished {
                task,
                step,
                outcome,
                ..
            } => self.task_finished(task, *step, outcome),
            Event::TaskFailed {
                task,
                step,
                failure,
                ..
            } => {
                self.mark(*step, |line| line.failed = true);
                self.task_ended(task, *step);
                self.printer.failure(Some(task), failure);
            }
            Event::TaskSkipped { task, step, reason } => {
                self.mark(*step, |line| line.skipped = true);
                self.task_ended(task, *step);
                self.printer.detail(&format!("{task}: not run: {reason}"));
            }
            Event::RunFinished { .. } => self.ended(event),
        }
    }
}

/// The templates are constants of this file; a mistyped one shows as indicatif's own style.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .tick_chars(SPINNER)
}

#[cfg(test)]
mod tests;
