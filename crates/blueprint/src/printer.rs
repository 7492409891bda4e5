//! The one place that writes to stdout and stderr: stdout is data, stderr is talk.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use blueprint_pipeline::Failure;
use indicatif::MultiProgress;

use crate::cli::{ColorWhen, GlobalArgs};
use crate::problem::Problem;

/// How a piece of text looks where colours are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Good,
    Bad,
    Warning,
    Accent,
    Faint,
    Strong,
}

/// Gives text a look, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// With or without colours.
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// ECMA-48 "select graphic rendition".
    pub(crate) fn apply(self, look: Look, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let code = match look {
            Look::Good => "32",
            Look::Bad => "1;31",
            Look::Warning => "33",
            Look::Accent => "36",
            Look::Faint => "2",
            Look::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Cheap to clone; all clones share one live display.
#[derive(Clone)]
pub(crate) struct Printer {
    quiet: bool,
    verbose: u8,
    live: bool,
    out_paint: Paint,
    talk_paint: Paint,
    bars: MultiProgress,
}

impl Printer {
    pub(crate) fn new(global: &GlobalArgs) -> Self {
        Self {
            quiet: global.quiet,
            verbose: global.verbose,
            live: !global.no_progress && !global.quiet && io::stderr().is_terminal() && !set("CI"),
            out_paint: Paint::new(colours(global.color, io::stdout().is_terminal())),
            talk_paint: Paint::new(colours(global.color, io::stderr().is_terminal())),
            bars: MultiProgress::new(),
        }
    }

    /// Whether a live display can be shown.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose > 0
    }

    /// The live display; lines said meanwhile go above it.
    pub(crate) fn bars(&self) -> &MultiProgress {
        &self.bars
    }

    /// Looks for data on stdout.
    pub(crate) fn out_paint(&self) -> Paint {
        self.out_paint
    }

    /// Looks for talk on stderr.
    pub(crate) fn talk_paint(&self) -> Paint {
        self.talk_paint
    }

    /// Data, a line or several. A reader that has gone away (`| head`) is no error of ours.
    pub(crate) fn out(&self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.bars
            .suspend(|| write!(io::stdout().lock(), "{text}{end}").ok());
    }

    /// Talk: one line, unless quiet.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            self.talk(line);
        }
    }

    /// Talk that only matters with `-v`.
    pub(crate) fn detail(&self, line: &str) {
        if self.is_verbose() {
            self.talk(line);
        }
    }

    /// Something that went on but should be known.
    pub(crate) fn warn(&self, line: &str) {
        self.say(&format!(
            "{} {line}",
            self.talk_paint.apply(Look::Warning, "warning:")
        ));
    }

    /// What bounds the meaning of a result, also when quiet.
    pub(crate) fn attention(&self, line: &str) {
        let label = self.talk_paint.apply(Look::Warning, "ATTENTION:");
        self.talk(&format!("{label} {line}"));
    }

    /// A question, also when quiet.
    pub(crate) fn ask(&self, question: &str) {
        self.talk(question);
    }

    /// An error, also when quiet.
    pub(crate) fn problem(&self, problem: &Problem) {
        self.failure(None, problem.failure());
    }

    /// A task's failure, also when quiet.
    pub(crate) fn failure(&self, task: Option<&str>, failure: &Failure) {
        self.talk(failure_text(task, failure, self.talk_paint).trim_end());
    }

    /// A fault of our own, also when quiet: where it happened belongs into the report.
    pub(crate) fn fault(&self, panic: &str) {
        let label = self.talk_paint.apply(Look::Bad, "error:");
        self.talk(&format!("{label} a fault in blueprint: {panic}"));
    }

    fn talk(&self, line: &str) {
        self.bars
            .suspend(|| writeln!(io::stderr().lock(), "{line}").ok());
    }
}

fn colours(when: ColorWhen, terminal: bool) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => {
            terminal
                && !set("NO_COLOR")
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// Set to anything but nothing, as <https://no-color.org> has it.
fn set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// What, expected, found, causes, evidence, hint.
fn failure_text(task: Option<&str>, failure: &Failure, paint: Paint) -> String {
    let mut text = paint.apply(Look::Bad, "error:");
    if let Some(task) = task {
        write!(text, " {}:", paint.apply(Look::Strong, task)).ok();
    }
    writeln!(text, " {}", failure.summary).ok();
    let mut line = |label: &str, words: &str| {
        let mut words = words.lines();
        let first = words.next().unwrap_or_default();
        writeln!(text, "  {} {first}", paint.apply(Look::Faint, label)).ok();
        for more in words {
            writeln!(text, "    {more}").ok();
        }
    };
    if let Some(expected) = &failure.expected {
        line("expected:", expected);
    }
    if let Some(found) = &failure.found {
        line("found:", found);
    }
    for cause in &failure.causes {
        line("caused by:", cause);
    }
    for evidence in &failure.evidence {
        line("|", evidence);
    }
    if let Some(hint) = &failure.hint {
        writeln!(text, "{} {hint}", paint.apply(Look::Accent, "hint:")).ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Failure {
        Failure {
            summary: "failed to install release minio".to_owned(),
            expected: Some("a deployed release".to_owned()),
            found: Some("two lines\nof words".to_owned()),
            causes: vec!["timed out".to_owned()],
            hint: Some("look at the pods".to_owned()),
            evidence: vec!["pod minio/minio-0: ImagePullBackOff".to_owned()],
            preflight: false,
        }
    }

    #[test]
    fn an_error_says_what_expected_found_causes_and_the_next_move() {
        insta::assert_snapshot!(failure_text(Some("minio"), &failure(), Paint::new(false)));
    }

    #[test]
    fn without_colours_there_is_no_escape() {
        assert!(!failure_text(Some("minio"), &failure(), Paint::new(false)).contains('\u{1b}'));
        assert!(failure_text(Some("minio"), &failure(), Paint::new(true)).contains('\u{1b}'));
    }
}
