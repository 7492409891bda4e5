//! A run of `blueprint up` or `down` that is followed by its events and killed with SIGKILL at a chosen moment.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Scene;
use crate::error::{Error, FileContext as _, Result};
use crate::process::Process;

/// The longest that a moment may be waited for.
const DEADLINE: Duration = Duration::from_mins(5);
/// Short: OpenBao's initialisation takes 0.3 s.
const POLL: Duration = Duration::from_millis(10);

pub(super) struct Run {
    child: Child,
    /// Its events, one a line.
    log: PathBuf,
}

impl Run {
    /// Starts `up`; `name` is its log's.
    pub(super) fn start(scene: &Scene, name: &str) -> Result<Self> {
        Self::of(scene, name, "up")
    }

    /// The same with another command.
    pub(super) fn of(scene: &Scene, name: &str, command: &str) -> Result<Self> {
        Self::with(scene, name, [command])
    }

    /// The same with these arguments.
    pub(super) fn with<A: AsRef<OsStr>>(
        scene: &Scene,
        name: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        let log = scene.lab.log(&format!("e2e-killed-in-{name}"));
        let child = scene
            .platform
            .blueprint()
            .args(args)
            .args(["--output", "json"])
            .detached(&log)?;
        Ok(Self { child, log })
    }

    /// Whether the run has told these words about the task.
    pub(super) fn told(&self, task: &str, words: &str) -> bool {
        told(&self.events(), task, words)
    }

    /// The tasks that have begun so far, in that order.
    pub(super) fn begun(&self) -> Vec<String> {
        begun(&self.events())
    }

    pub(super) fn until_begun(&mut self, task: &str) -> Result<()> {
        self.until(&format!("the start of {task}"), |run| {
            Ok(run.begun().iter().any(|begun| begun == task))
        })
    }

    /// Waits for a moment. A run that ends before has missed it.
    pub(super) fn until(
        &mut self,
        moment: &str,
        mut come: impl FnMut(&Self) -> Result<bool>,
    ) -> Result<()> {
        let begun = Instant::now();
        while !come(self)? {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || begun.elapsed() > DEADLINE {
                return Err(Error::unmet(
                    format!("{moment} did not come while blueprint ran"),
                    format!("its events are in {}", self.log.display()),
                ));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits, and tells whether the run has not come to an end of its own by then. One that failed is a fault.
    pub(super) fn still_runs_after(&mut self, moment: Duration) -> Result<bool> {
        let begun = Instant::now();
        while begun.elapsed() < moment {
            let ended = self
                .child
                .try_wait()
                .file("wait for", Path::new("blueprint"))?;
            match ended.map(|status| status.code()) {
                None => thread::sleep(POLL),
                Some(Some(0)) => return Ok(false),
                Some(code) => {
                    return Err(Error::unmet(
                        format!("`up` ended with {code:?} instead of going on"),
                        format!("its events are in {}", self.log.display()),
                    ));
                }
            }
        }
        Ok(true)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ctrl-C.
    pub(super) fn interrupt(&self) -> Result<()> {
        signal("-INT", &self.pid().to_string())
    }

    /// Its exit code, once it has ended.
    pub(super) fn ended(&mut self, within: Duration) -> Result<Option<i32>> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self
                .child
                .try_wait()
                .file("wait for", Path::new("blueprint"))?
            {
                return Ok(status.code());
            }
            if begun.elapsed() > within {
                return Err(Error::unmet(
                    format!("`up` had not ended after {} s", within.as_secs()),
                    format!("its events are in {}", self.log.display()),
                ));
            }
            thread::sleep(POLL);
        }
    }

    /// All it told so far.
    pub(super) fn events(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(super) fn kill(mut self) -> Result<()> {
        let ended = self.child.try_wait().ok().flatten();
        if ended.is_some() {
            return Err(Error::unmet(
                "blueprint ended before it was killed",
                format!("its events are in {}", self.log.display()),
            ));
        }
        self.child.kill().file("kill", Path::new("blueprint"))?;
        self.child
            .wait()
            .map(drop)
            .file("wait for", Path::new("blueprint"))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Nothing to do for a run that was killed; one that is left early must not work on.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn signal(name: &str, pid: &str) -> Result<()> {
    Process::new("kill").args([name, pid]).output().map(drop)
}

/// Each event beside its line. The last line may be half-written, and is none then.
fn parsed(events: &str) -> impl Iterator<Item = (&str, Value)> {
    events
        .lines()
        .filter_map(|line| Some((line, serde_json::from_str(line).ok()?)))
}

fn told(events: &str, task: &str, words: &str) -> bool {
    parsed(events).any(|(line, event)| event["task"] == task && line.contains(words))
}

fn begun(events: &str) -> Vec<String> {
    parsed(events)
        .filter(|(_, event)| event["event"] == "task-started")
        .filter_map(|(_, event)| event["task"].as_str().map(str::to_owned))
        .collect()
}

/// The helm of a killed run, stopped where it was. It works on when this is dropped.
pub(super) struct FrozenHelm {
    pid: String,
}

impl FrozenHelm {
    pub(super) fn of(scene: &Scene, release: &str) -> Result<Self> {
        let path = scene
            .lab
            .checkout()
            .join(format!("infra/phase2/state/helm-{release}.pid"));
        let text = fs::read_to_string(&path).file("read", &path)?;
        let helm = Self {
            pid: text.trim().to_owned(),
        };
        signal("-STOP", &helm.pid)?;
        Ok(helm)
    }

    pub(super) fn pid(&self) -> &str {
        &self.pid
    }
}

impl Drop for FrozenHelm {
    fn drop(&mut self) {
        // A helm that is gone has nothing to go on with.
        let _ = Process::new("kill").args(["-CONT", &self.pid]).output();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_another_task_are_no_words_about_this_one() {
        let events = r#"{"event":"task-started","task":"openbao","step":8}
{"event":"waiting","task":"gitlab","blocker":"helm of an earlier run (process 7)"}"#;
        assert!(told(events, "gitlab", "process 7)"));
        assert!(!told(events, "openbao", "process 7)"));
        assert!(!told(events, "open", "task-started"));
    }

    #[test]
    fn only_what_has_begun_is_named_and_a_half_written_line_is_none() {
        let events = "{\"event\":\"task-started\",\"task\":\"redis\"}\n{\"event\":\"waiting\",\"task\":\"minio\"}\n{\"event\":\"task-sta";
        assert_eq!(begun(events), ["redis"]);
    }
}
