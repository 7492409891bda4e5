//! One run at a time in one workspace.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use blueprint_failpoint::failpoint;

/// Held for as long as a run changes things; released by the operating system when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    _file: std::fs::File,
}

/// Why the lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another live process holds it.
    #[error("another run holds {path}: process {pid} on {host}, {command}, since {since}")]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Its holder; 0 when the holder has not written its name yet.
        pid: u32,
        /// The machine it runs on: a workspace may lie on a shared folder.
        host: String,
        /// When it took the lock (RFC 3339).
        since: String,
        /// What it runs.
        command: String,
    },
    /// The lock file could not be used.
    #[error("failed to lock {path}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
}

impl LockError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Held { pid: 0, .. } => "wait for the other run to end".to_owned(),
            Self::Held { pid, .. } => format!(
                "wait for process {pid} to end, or stop it with `kill -INT {pid}`; the lock goes with it"
            ),
            Self::Io { path, .. } => format!(
                "check that {} can be written and is on a local file system",
                path.display()
            ),
        }
    }
}

/// What the holder writes into the file, for the other's message.
#[derive(serde::Serialize, serde::Deserialize)]
struct Holder {
    pid: u32,
    #[serde(default = "host")]
    host: String,
    since: String,
    command: String,
}

impl RunLock {
    /// Takes the lock or says at once who holds it. `command` is written into the file for the other's message: name the subcommand, never an argument's
    /// value. What an earlier holder left in the file is no obstacle: the lock is the operating system's, not the text.
    pub fn acquire(path: &Path, command: &str) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(path, &mut file)),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let holder = Holder {
            pid: std::process::id(),
            host: host(),
            since: jiff::Timestamp::now().to_string(),
            command: command.to_owned(),
        };
        let text = serde_json::to_string(&holder).map_err(|error| io(error.into()))?;
        failpoint!(before, "take", "run.lock");
        file.set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(io)?;
        failpoint!(after, "take", "run.lock");
        Ok(Self { _file: file })
    }
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "this machine".to_owned(), |name| name.trim().to_owned())
}

/// Reads who holds the lock. A holder writes its name a moment after it took the lock; until then the text is empty or an ended process's.
fn held(path: &Path, file: &mut File) -> LockError {
    let mut text = String::new();
    let holder = file
        .rewind()
        .and_then(|()| file.read_to_string(&mut text))
        .ok()
        .and_then(|_| serde_json::from_str::<Holder>(&text).ok())
        .filter(|holder| Path::new("/proc").join(holder.pid.to_string()).exists())
        .unwrap_or_else(|| Holder {
            pid: 0,
            host: host(),
            since: "a moment ago".to_owned(),
            command: "not known yet".to_owned(),
        });
    LockError::Held {
        path: path.to_owned(),
        pid: holder.pid,
        host: holder.host,
        since: holder.since,
        command: holder.command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_at_once_the_second_is_told_who_holds_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state/run.lock");
        let first = RunLock::acquire(&path, "blueprint up").unwrap();
        let error = RunLock::acquire(&path, "blueprint smoke").unwrap_err();
        match &error {
            LockError::Held {
                pid,
                command,
                since,
                ..
            } => {
                assert_eq!(*pid, std::process::id());
                assert_eq!(command, "blueprint up");
                assert!(since.parse::<jiff::Timestamp>().is_ok());
            }
            LockError::Io { .. } => panic!("{error:?}"),
        }
        assert!(error.hint().contains("kill -INT"));
        drop(first);
        RunLock::acquire(&path, "blueprint smoke").unwrap();
    }

    #[test]
    fn a_holder_that_has_not_written_its_name_yet_is_not_taken_for_the_one_before() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.lock");
        let ended = r#"{"pid":4194305,"since":"2026-01-01T00:00:00Z","command":"up"}"#;
        std::fs::write(&path, ended).unwrap();
        let holder = File::open(&path).unwrap();
        holder.lock().unwrap();
        let error = RunLock::acquire(&path, "smoke").unwrap_err();
        assert!(matches!(error, LockError::Held { pid: 0, .. }), "{error:?}");
        assert!(!error.hint().contains("kill"));
    }

    #[test]
    fn what_a_killed_run_left_is_no_obstacle() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.lock");
        std::fs::write(&path, r#"{"pid":1,"since":"2026-01-01T00:00:00Z","command":"a much longer text than the next one, so that a tail would show"}"#).unwrap();
        let _lock = RunLock::acquire(&path, "up").unwrap();
        let holder: Holder =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(holder.command, "up");
    }
}
