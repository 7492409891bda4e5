//! The one place that writes to the terminal: progress on stderr, asked-for data on stdout.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the reporter is where all output of xtask goes through"
)]

use std::error::Error as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

pub(crate) struct Reporter {
    started: Instant,
    stages: Mutex<Vec<(String, Duration)>>,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            stages: Mutex::new(Vec::new()),
        }
    }

    /// A progress line with the time since the program's start.
    pub(crate) fn say(&self, line: impl AsRef<str>) {
        eprintln!("[{}] {}", clock(self.started.elapsed()), line.as_ref());
    }

    /// A line of data on stdout.
    #[expect(clippy::unused_self, reason = "all output goes through a reporter")]
    pub(crate) fn data(&self, line: impl AsRef<str>) {
        println!("{}", line.as_ref());
    }

    /// Runs a stage and remembers how long it took, for [`Self::summary`].
    pub(crate) fn stage<T>(&self, name: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        self.say(format!("{name} …"));
        let result = run();
        let took = begun.elapsed();
        if let Ok(mut stages) = self.stages.lock() {
            stages.push((name.to_owned(), took));
        }
        match &result {
            Ok(_) => self.say(format!("{name}: done in {}", seconds(took))),
            Err(_) => self.say(format!("{name}: failed after {}", seconds(took))),
        }
        result
    }

    /// The table of stages and their times.
    pub(crate) fn summary(&self) {
        let Ok(stages) = self.stages.lock() else {
            return;
        };
        let width = stages
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        for (name, took) in stages.iter() {
            self.say(format!("  {name:width$}  {}", seconds(*took)));
        }
        self.say(format!(
            "  {:width$}  {}",
            "in all",
            seconds(self.started.elapsed())
        ));
    }

    #[expect(clippy::unused_self, reason = "all output goes through a reporter")]
    pub(crate) fn failure(&self, error: &Error) {
        eprintln!("error: {error}");
        let mut cause = error.source();
        while let Some(source) = cause {
            eprintln!("  caused by: {source}");
            cause = source.source();
        }
    }
}

/// `12.3 s`, or `4 min 05 s` from a minute on.
pub(crate) fn seconds(time: Duration) -> String {
    if time.as_secs() < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

fn clock(time: Duration) -> String {
    format!("{:3}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_in_the_unit_people_use() {
        assert_eq!(seconds(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(245)), "4 min 05 s");
    }
}
