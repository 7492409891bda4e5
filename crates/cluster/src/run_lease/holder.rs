//! Who holds the Lease, and whether that process still lives.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

const HOST: &str = "blueprint.dev/host";
const PID: &str = "blueprint.dev/pid";
const SINCE: &str = "blueprint.dev/since";
const COMMAND: &str = "blueprint.dev/command";
const PLACE: &str = "blueprint.dev/place";
const STARTED: &str = "blueprint.dev/started";

/// A run, as it names itself on the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// When it took the Lease (RFC 3339).
    pub since: String,
    /// What it runs.
    pub command: String,
    /// Boot and process namespace: where `pid` means something. Empty where the system does not tell.
    pub(super) place: String,
    /// When the process began, in ticks since the boot: a number may be given to another process.
    pub(super) started: Option<u64>,
}

impl Holder {
    /// This process.
    pub(super) fn this_process(command: &str) -> Self {
        let pid = std::process::id();
        Self {
            host: host(),
            pid,
            since: Timestamp::now().to_string(),
            command: command.to_owned(),
            place: place(),
            started: started(pid),
        }
    }

    /// What a Lease says; words for what it does not.
    pub(super) fn of(lease: &Lease) -> Self {
        let notes = lease.metadata.annotations.as_ref();
        let text = |key: &str| notes.and_then(|notes| notes.get(key)).cloned();
        let holder = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.clone());
        Self {
            host: text(HOST)
                .or(holder)
                .unwrap_or_else(|| "an unknown machine".to_owned()),
            pid: text(PID).and_then(|pid| pid.parse().ok()).unwrap_or(0),
            since: text(SINCE).unwrap_or_else(|| "an unknown time".to_owned()),
            command: text(COMMAND).unwrap_or_else(|| "an unknown command".to_owned()),
            place: text(PLACE).unwrap_or_default(),
            started: text(STARTED).and_then(|ticks| ticks.parse().ok()),
        }
    }

    pub(super) fn identity(&self) -> String {
        format!("{}/{}/{}", self.host, self.pid, self.since)
    }

    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        let mut notes = BTreeMap::from([
            (HOST.to_owned(), self.host.clone()),
            (PID.to_owned(), self.pid.to_string()),
            (SINCE.to_owned(), self.since.clone()),
            (COMMAND.to_owned(), self.command.clone()),
            (PLACE.to_owned(), self.place.clone()),
        ]);
        if let Some(ticks) = self.started {
            notes.insert(STARTED.to_owned(), ticks.to_string());
        }
        notes
    }

    /// Whether it is certain that this process is no more. `here` is the one that asks: elsewhere nothing can be told.
    pub(super) fn is_gone(&self, here: &Self) -> bool {
        let same_place = !self.place.is_empty() && self.place == here.place;
        same_place && self.started.is_some() && started(self.pid) != self.started
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "process {} on {}, {}, since {}",
            self.pid, self.host, self.command, self.since
        )
    }
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "this machine".to_owned(), |name| name.trim().to_owned())
}

/// Two containers on one kernel number their processes apart.
fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/pid");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        _ => String::new(),
    }
}

/// Field 22 of /proc/PID/stat (`proc_pid_stat(5)`); the second one is in brackets and may hold anything.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_a_number_beyond_all_is_gone() {
        let here = Holder::this_process("blueprint up");
        assert!(!here.is_gone(&here));
        let gone = Holder {
            pid: 4_194_305,
            ..here.clone()
        };
        assert!(gone.is_gone(&here));
    }

    #[test]
    fn of_another_machine_nothing_is_certain() {
        let here = Holder::this_process("blueprint up");
        let elsewhere = Holder {
            pid: 4_194_305,
            place: "another boot".to_owned(),
            ..here.clone()
        };
        assert!(!elsewhere.is_gone(&here));
        let silent = Holder {
            place: String::new(),
            ..elsewhere
        };
        assert!(!silent.is_gone(&here));
    }
}
