//! helm as a process: its surroundings, reading calls, and changing calls that nobody kills.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use blueprint_failpoint::failpoint;
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::classify;
use super::under_way::Begun;

/// How often an orphan's lock is looked at: file locks cannot be awaited without a thread that outlives a cancelled wait.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What a reading helm gave.
pub(super) struct Output {
    pub(super) success: bool,
    pub(super) stdout: Vec<u8>,
    /// Its last lines.
    pub(super) stderr: String,
}

/// What a changing helm gave.
pub(super) struct Ended {
    pub(super) success: bool,
    /// Both of its outputs.
    pub(super) log: String,
}

/// Whether `path` is a file that may be run.
pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// `v4.3.1+g1234` as `4.3.1`; `None` for anything that is no version.
pub(super) fn plain_version(said: &str) -> Option<String> {
    let core = said
        .strip_prefix('v')
        .unwrap_or(said)
        .split(['+', '-'])
        .next()
        .unwrap_or_default();
    let mut numbers: Vec<u32> = core
        .split('.')
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    if numbers.len() > 3 {
        return None;
    }
    numbers.resize(3, 0);
    Some(
        numbers
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join("."),
    )
}

/// A command whose helm homes are empty folders of ours and whose environment has no `HELM_*` of the user's.
pub(super) fn command(binary: &Path, state_folder: &Path) -> io::Result<Command> {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HELM_") {
            command.env_remove(name);
        }
    }
    for (name, folder) in [
        ("HELM_CONFIG_HOME", "config"),
        ("HELM_CACHE_HOME", "cache"),
        ("HELM_DATA_HOME", "data"),
    ] {
        let home = state_folder.join("helm-home").join(folder);
        private_folder(&home)?;
        command.env(name, home);
    }
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs a helm that only reads; it is killed when the future is dropped.
pub(super) async fn read(mut command: Command) -> io::Result<Output> {
    let output = command.kill_on_drop(true).output().await?;
    Ok(Output {
        success: output.status.success(),
        stdout: output.stdout,
        stderr: classify::tail(&String::from_utf8_lossy(&output.stderr)),
    })
}

/// Writes a file of mode 0600 anew.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// A values file for one reading call, 0600, removed when dropped.
pub(super) fn values_file(
    state_folder: &Path,
    release: &str,
    text: &str,
) -> io::Result<NamedTempFile> {
    private_folder(state_folder)?;
    let prefix = format!("helm-{release}.template.");
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".yaml")
        .tempfile_in(state_folder)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The right to change one release, and the files that go with it.
///
/// It is a lock on the log file. The helm that is started inherits the locked file as its output, so the lock stands exactly as long as one of the two lives.
pub(super) struct Slot {
    log: File,
    files: Files,
}

/// The files of one release's changing helm.
struct Files {
    log: PathBuf,
    pid: PathBuf,
    values: PathBuf,
}

impl Files {
    fn of(state_folder: &Path, release: &str) -> Self {
        let file = |kind: &str| state_folder.join(format!("helm-{release}.{kind}"));
        Self {
            log: file("log"),
            pid: file("pid"),
            values: file("values.yaml"),
        }
    }

    fn open_log(&self) -> io::Result<File> {
        File::options()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.log)
    }

    /// Removes the files that mean something only while helm runs. What cannot be removed is written anew by the next run.
    fn clear(&self) {
        for file in [&self.pid, &self.values] {
            let _ = fs::remove_file(file);
        }
    }

    fn noted_pid(&self) -> u32 {
        fs::read_to_string(&self.pid)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    }
}

impl Slot {
    /// `None` when another helm of ours is still changing this release.
    pub(super) fn take(state_folder: &Path, release: &str) -> io::Result<Option<Self>> {
        private_folder(state_folder)?;
        let files = Files::of(state_folder, release);
        let log = files.open_log()?;
        match log.try_lock() {
            Ok(()) => {
                log.set_len(0)?;
                Ok(Some(Self { log, files }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Where this release's values go; removed when helm has ended.
    pub(super) fn values_file(&self) -> PathBuf {
        self.files.values.clone()
    }

    /// Runs helm to its end. Dropping the future, or the whole process, leaves it running: its group is its own, so no Ctrl-C reaches it, and its output is a
    /// file, so no closed pipe ends it.
    pub(super) async fn run(
        self,
        mut command: Command,
        begun: Begun,
        action: &str,
    ) -> io::Result<Ended> {
        let Self { log, files } = self;
        command
            .process_group(0)
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                files.clear();
                return Err(error);
            }
        };
        // The command keeps copies of the log open.
        drop(command);
        if let Some(pid) = child.id() {
            // Only for people's eyes: helm is under way and must be seen to its end, whether or not its number could be noted.
            let _ = write_private(&files.pid, &format!("{pid}\n"));
        }
        failpoint!(under_way, "helm", "{action} {}", begun.release());
        let to_its_end = tokio::spawn(async move {
            let status = child.wait().await;
            files.clear();
            let_go(&log);
            drop(begun);
            Ok(Ended {
                success: status?.success(),
                log: String::from_utf8_lossy(&fs::read(&files.log)?).into_owned(),
            })
        });
        to_its_end.await.map_err(io::Error::other)?
    }
}

/// Ends the lock for all copies of the descriptor. Closing ours would not do: a process that another thread starts at this moment holds a copy until it
/// executes (flock(2)), and for that long the next helm would be refused.
fn let_go(log: &File) {
    // A lock that is not let go here ends with the last copy.
    let _ = log.unlock();
}

/// Waits until no helm of ours changes the release, then removes what a killed run left.
pub(super) async fn wait_for_lock(
    state_folder: &Path,
    release: &str,
    waiting: &(dyn Fn(u32) + Send + Sync),
) -> io::Result<()> {
    let files = Files::of(state_folder, release);
    if !files.log.exists() {
        return Ok(());
    }
    let log = files.open_log()?;
    let mut told = false;
    loop {
        match log.try_lock() {
            Ok(()) => {
                files.clear();
                let_go(&log);
                return Ok(());
            }
            Err(TryLockError::WouldBlock) => {
                if !told {
                    waiting(files.noted_pid());
                    told = true;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
