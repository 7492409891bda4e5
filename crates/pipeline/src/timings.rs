//! `last_timings.json` and a short history; which task slowed down.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use blueprint_failpoint::failpoint;
use serde::{Deserialize, Serialize};

use crate::execute::RunReport;

/// The newest run's times.
pub const LAST: &str = "last_timings.json";
/// The newest runs' times, oldest first.
pub const HISTORY: &str = "timings_history.json";
/// How many runs the history keeps.
const KEPT_RUNS: usize = 20;
/// A task is slower when it takes over this many times the usual …
const SLOWER_TIMES: f64 = 1.5;
/// … and over this many seconds more than the usual.
const SLOWER_SECONDS: f64 = 2.0;
/// The longest bar, in characters; with the columns beside it a line stays within 80.
const BAR_WIDTH: usize = 24;

/// One run's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// RFC 3339.
    pub started: String,
    /// Seconds, whole run.
    pub total_seconds: f64,
    /// In table order.
    pub tasks: Vec<TaskTiming>,
}

/// One task's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskTiming {
    /// Its id.
    pub task: String,
    /// Its step.
    pub step: u8,
    /// Seconds.
    pub seconds: f64,
    /// Whether it changed anything (runs that change nothing are compared with their like only).
    pub changed: bool,
}

/// Timings could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TimingsError {
    /// I/O.
    #[error("failed to {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not JSON of this shape.
    #[error("{path} is not a timings file: {found}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
}

impl TimingsError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Io { .. } => "check the folder's owner, its mode and the space left".to_owned(),
            Self::Malformed { path, .. } => {
                format!(
                    "only past times stand in it: delete {} and run again",
                    path.display()
                )
            }
        }
    }
}

/// A task that took longer than its like before.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// Its id.
    pub task: String,
    /// Median seconds of the earlier comparable runs.
    pub before: f64,
    /// Seconds now.
    pub now: f64,
}

impl Timings {
    /// From a report. Failed tasks are left out: how long a task takes to fail says nothing about how long it takes.
    pub fn of(report: &RunReport, table: &crate::Table, started: jiff::Timestamp) -> Self {
        let tasks = table
            .tasks
            .iter()
            .filter_map(|task| {
                let (elapsed, outcome) = report.finished.get(task.id)?;
                Some(TaskTiming {
                    task: task.id.to_owned(),
                    step: task.step,
                    seconds: milliseconds(elapsed.as_secs_f64()),
                    changed: !outcome.changes.is_empty(),
                })
            })
            .collect();
        Self {
            started: started.to_string(),
            total_seconds: milliseconds(report.elapsed.as_secs_f64()),
            tasks,
        }
    }
}

/// Finer figures would only make the files harder to read.
fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Writes `folder/last_timings.json` and appends to `folder/timings_history.json` (the last 20 runs), atomically.
pub fn record(folder: &Path, timings: &Timings) -> Result<(), TimingsError> {
    std::fs::create_dir_all(folder).map_err(io("create", folder))?;
    write(&folder.join(LAST), timings)?;
    let mut runs = history(folder)?;
    runs.push(timings.clone());
    let surplus = runs.len().saturating_sub(KEPT_RUNS);
    write(&folder.join(HISTORY), &&runs[surplus..])
}

/// The history, oldest first; empty when there is none.
pub fn history(folder: &Path) -> Result<Vec<Timings>, TimingsError> {
    let path = folder.join(HISTORY);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("read", &path)(error)),
    };
    serde_json::from_str(&text).map_err(|error| TimingsError::Malformed {
        path,
        found: error.to_string(),
    })
}

fn write(path: &Path, content: &impl Serialize) -> Result<(), TimingsError> {
    let malformed = |error: serde_json::Error| TimingsError::Malformed {
        path: path.to_owned(),
        found: error.to_string(),
    };
    let text = serde_json::to_string_pretty(content).map_err(malformed)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".timings")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(io("write", path))?;
    writeln!(file, "{text}").map_err(io("write", path))?;
    failpoint!(under_way, "write", "timings");
    file.persist(path)
        .map_err(|error| io("write", path)(error.error))?;
    failpoint!(after, "write", "timings");
    Ok(())
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> TimingsError {
    let path = path.to_owned();
    move |source| TimingsError::Io {
        action,
        path,
        source,
    }
}

/// Which tasks of the newest run are over 1.5 times, and over 2 s more than, the median of the earlier comparable ones.
pub fn slowdowns(history: &[Timings]) -> Vec<Slowdown> {
    let Some((newest, earlier)) = history.split_last() else {
        return Vec::new();
    };
    newest
        .tasks
        .iter()
        .filter_map(|timing| {
            let before = usual(timing, earlier)?;
            let now = timing.seconds;
            let slower = now > before * SLOWER_TIMES && now > before + SLOWER_SECONDS;
            slower.then(|| Slowdown {
                task: timing.task.clone(),
                before,
                now,
            })
        })
        .collect()
}

/// The median of a task's earlier times, out of those runs in which it changed something as well, or nothing as well.
fn usual(timing: &TaskTiming, earlier: &[Timings]) -> Option<f64> {
    let like = |other: &&TaskTiming| other.task == timing.task && other.changed == timing.changed;
    let mut seconds: Vec<f64> = earlier
        .iter()
        .flat_map(|run| &run.tasks)
        .filter(like)
        .map(|other| other.seconds)
        .collect();
    seconds.sort_unstable_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    let upper = *seconds.get(middle)?;
    if seconds.len() % 2 == 1 {
        Some(upper)
    } else {
        Some(f64::midpoint(seconds[middle - 1], upper))
    }
}

/// Bars, one a task, for `blueprint timings`.
pub fn chart(history: &[Timings]) -> String {
    let Some((newest, earlier)) = history.split_last() else {
        return String::new();
    };
    let longest = newest
        .tasks
        .iter()
        .map(|timing| timing.seconds)
        .fold(0.0, f64::max);
    let width = newest
        .tasks
        .iter()
        .map(|timing| timing.task.len())
        .max()
        .unwrap_or(0);
    let slower: Vec<_> = slowdowns(history)
        .into_iter()
        .map(|slowdown| slowdown.task)
        .collect();
    let mut text = format!(
        "{}: {} task(s) in {:.1} s, {} earlier run(s) to compare with\n",
        newest.started,
        newest.tasks.len(),
        newest.total_seconds,
        earlier.len()
    );
    for timing in &newest.tasks {
        let bar = bar(timing.seconds, longest);
        let mut line = format!(
            "{:>2}  {:<width$}  {:>6.1} s  {bar:<BAR_WIDTH$}",
            timing.step, timing.task, timing.seconds
        );
        if let Some(before) = usual(timing, earlier) {
            write!(line, "  usually {before:.1} s").ok();
        }
        if slower.contains(&timing.task) {
            line.push_str("  slower");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Eighths of a character: `▏` to `█`.
fn bar(seconds: f64, longest: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if longest <= 0.0 {
        return String::new();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share between 0 and 1 of a few dozen characters"
    )]
    let eighths = (seconds / longest * (BAR_WIDTH * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(PARTS[eighths % 8]);
    bar
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::outcome::{Failure, Outcome};
    use crate::testing::HOUSE;

    fn timing(task: &str, seconds: f64, changed: bool) -> TaskTiming {
        TaskTiming {
            task: task.to_owned(),
            step: 1,
            seconds,
            changed,
        }
    }

    fn run_of(tasks: Vec<TaskTiming>) -> Timings {
        Timings {
            started: "2026-11-30T12:00:00Z".to_owned(),
            total_seconds: 50.0,
            tasks,
        }
    }

    fn runs(task: &str, seconds: &[f64]) -> Vec<Timings> {
        seconds
            .iter()
            .map(|&seconds| run_of(vec![timing(task, seconds, true)]))
            .collect()
    }

    #[test]
    fn a_report_becomes_timings_in_table_order_without_the_failed() {
        let outcome = Outcome {
            changes: vec!["made".into()],
            notes: vec![],
        };
        let report = RunReport {
            finished: BTreeMap::from([
                ("walls".into(), (Duration::from_millis(1500), outcome)),
                (
                    "ground".into(),
                    (Duration::from_micros(250_400), Outcome::unchanged()),
                ),
            ]),
            failed: BTreeMap::from([(
                "pipes".into(),
                (Duration::from_secs(9), Failure::default()),
            )]),
            skipped: BTreeMap::new(),
            elapsed: Duration::from_secs(11),
            interrupted: false,
        };
        let timings = Timings::of(&report, &HOUSE, "2026-11-30T12:00:00Z".parse().unwrap());
        assert_eq!(timings.started, "2026-11-30T12:00:00Z");
        let short: Vec<_> = timings
            .tasks
            .iter()
            .map(|t| (t.task.as_str(), t.step, t.seconds, t.changed))
            .collect();
        assert_eq!(short, [("ground", 1, 0.25, false), ("walls", 2, 1.5, true)]);
    }

    #[test]
    fn what_is_recorded_is_read_back_and_only_the_last_twenty_stay() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(history(folder.path()).unwrap(), []);
        for number in 0..25 {
            record(
                folder.path(),
                &run_of(vec![timing("redis", f64::from(number), true)]),
            )
            .unwrap();
        }
        let kept = history(folder.path()).unwrap();
        assert_eq!(kept.len(), KEPT_RUNS);
        assert!(
            (kept[0].tasks[0].seconds - 5.0).abs() < f64::EPSILON,
            "the oldest went first"
        );
        let last: Timings =
            serde_json::from_str(&std::fs::read_to_string(folder.path().join(LAST)).unwrap())
                .unwrap();
        assert_eq!(Some(&last), kept.last());
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 2, "no temporary file is left");
    }

    #[test]
    fn a_damaged_history_is_said_and_kept_but_the_last_times_are_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(HISTORY), "[{\"started\"").unwrap();
        let error = record(folder.path(), &run_of(vec![])).unwrap_err();
        assert!(error.hint().contains(HISTORY), "{}", error.hint());
        assert!(folder.path().join(LAST).exists());
        assert_eq!(
            std::fs::read_to_string(folder.path().join(HISTORY)).unwrap(),
            "[{\"started\""
        );
    }

    #[test]
    fn slower_is_one_and_a_half_times_and_two_seconds_more_than_the_median() {
        let found = slowdowns(&runs("redis", &[9.0, 100.0, 10.0, 11.0, 10.5, 18.0]));
        assert_eq!(
            found,
            [Slowdown {
                task: "redis".into(),
                before: 10.5,
                now: 18.0
            }]
        );
        assert_eq!(
            slowdowns(&runs("redis", &[10.0, 14.9])),
            [],
            "less than one and a half times"
        );
        assert_eq!(
            slowdowns(&runs("redis", &[1.0, 2.9])),
            [],
            "less than two seconds more"
        );
        assert_eq!(
            slowdowns(&runs("redis", &[99.0])),
            [],
            "nothing to compare with"
        );
    }

    #[test]
    fn a_run_that_changes_is_not_compared_with_one_that_does_not() {
        let mut history: Vec<_> = (0..3)
            .map(|_| run_of(vec![timing("gitlab", 1.0, false)]))
            .collect();
        history.push(run_of(vec![timing("gitlab", 50.0, true)]));
        assert_eq!(slowdowns(&history), []);
        history.push(run_of(vec![timing("gitlab", 9.0, false)]));
        assert_eq!(slowdowns(&history).len(), 1);
    }

    #[test]
    fn the_chart_draws_bars_to_scale_and_marks_what_slowed_down() {
        let mut history = runs("redis", &[10.0, 10.0]);
        history.push(run_of(vec![
            timing("redis", 24.0, true),
            timing("minio", 12.0, true),
        ]));
        insta::assert_snapshot!(chart(&history));
        assert_eq!(chart(&[]), "");
    }
}
