//! A look at /proc every 50 ms while something runs: every argument list seen, and the most memory blueprint took.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};

const EVERY: Duration = Duration::from_millis(50);

/// What was seen while it ran.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Distinct argument lists, their words joined by blanks.
    pub(crate) command_lines: BTreeSet<String>,
    /// The largest `VmHWM` of a process called `blueprint`, in KiB; the kernel keeps the peak, so a sample late in
    /// the run tells the whole run's.
    pub(crate) blueprint_peak: u64,
    pub(crate) samples: u64,
    /// What blueprint said meanwhile.
    pub(crate) told: Vec<String>,
}

pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Sampler {
    pub(super) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut seen = Seen::default();
            while !until.load(Ordering::Relaxed) {
                look(&mut seen);
                thread::sleep(EVERY);
            }
            seen
        });
        Self { stop, thread }
    }

    pub(super) fn finish(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| Error::content("/proc", "the sampler ended early"))
    }
}

fn look(seen: &mut Seen) {
    seen.samples += 1;
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let folder = process.path();
        // A process may be gone by now, and kernel threads have no arguments.
        let Ok(bytes) = fs::read(folder.join("cmdline")) else {
            continue;
        };
        if bytes.is_empty() {
            continue;
        }
        let line = joined(&bytes);
        let program = line.split(' ').next().unwrap_or_default();
        if program.rsplit('/').next() == Some("blueprint")
            && let Ok(status) = fs::read_to_string(folder.join("status"))
        {
            seen.blueprint_peak = seen.blueprint_peak.max(peak(&status).unwrap_or(0));
        }
        seen.command_lines.insert(line);
    }
}

fn joined(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end_matches('\0')
        .replace('\0', " ")
}

/// `VmHWM` of /proc/PID/status, in KiB (proc(5)).
fn peak(status: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_seen_with_its_arguments() {
        let sampler = Sampler::start();
        crate::process::Process::new("sleep")
            .arg("0.3217")
            .output()
            .unwrap();
        let seen = sampler.finish().unwrap();
        assert!(seen.samples >= 2);
        assert!(seen.command_lines.contains("sleep 0.3217"));
    }

    #[test]
    fn the_peak_is_read_in_kibibytes() {
        assert_eq!(
            peak("Name:\tx\nVmHWM:\t   33700 kB\nVmRSS:\t 1 kB\n"),
            Some(33_700)
        );
        assert_eq!(peak("Name:\tx\n"), None);
    }
}
