//! Child processes: one builder, output kept for the error, long output in a log file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use crate::error::{Error, FileContext as _, Result};

/// How many of a log's last lines an error shows.
const TAIL_LINES: usize = 20;

#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Programs and arguments put before the program: the namespace's `nsenter`.
    prefix: Vec<OsString>,
    program: OsString,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    input: Option<Vec<u8>>,
}

impl Process {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            prefix: Vec::new(),
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            envs: Vec::new(),
            folder: None,
            input: None,
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    pub(crate) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Runs the program behind another one, such as `nsenter --net=…`.
    pub(crate) fn behind<A: AsRef<OsStr>>(mut self, prefix: impl IntoIterator<Item = A>) -> Self {
        self.prefix = prefix.into_iter().map(|a| a.as_ref().to_owned()).collect();
        self
    }

    /// stdout of a run that must succeed, without the trailing newline.
    pub(crate) fn output(&self) -> Result<String> {
        let output = self.raw()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_owned());
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Err(self.failed(output.status, last_lines(&text)))
    }

    /// Whether the program starts and ends well; its output is dropped.
    pub(crate) fn succeeds(&self) -> bool {
        self.raw().is_ok_and(|output| output.status.success())
    }

    /// Runs with all output in `log`; a failure shows the log's end and its path.
    pub(crate) fn logged(&self, log: &Path) -> Result<()> {
        let (out, err) = open_log(log)?;
        let mut command = self.command();
        command.stdout(out).stderr(err);
        let status = self.run(&mut command)?;
        if status.success() {
            return Ok(());
        }
        let text = fs::read(log).unwrap_or_default();
        let tail = format!(
            "{}\n  log: {}",
            last_lines(&String::from_utf8_lossy(&text)),
            log.display()
        );
        Err(self.failed(status, tail))
    }

    /// Runs with the terminal's own streams.
    pub(crate) fn attached(&self) -> Result<ExitStatus> {
        self.run(&mut self.command())
    }

    /// As [`Self::attached`], failing when the program does.
    pub(crate) fn attached_ok(&self) -> Result<()> {
        let status = self.attached()?;
        if status.success() {
            Ok(())
        } else {
            Err(self.failed(status, String::new()))
        }
    }

    /// Starts a program that outlives this one, writing to `log`, in a session of its own.
    pub(crate) fn detached(&self, log: &Path) -> Result<Child> {
        let (out, err) = open_log(log)?;
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        command.spawn().map_err(|source| self.not_started(source))
    }

    /// Exit code, stdout and stderr, whatever the code; for those who judge it.
    pub(crate) fn captured(&self) -> Result<(Option<i32>, String, String)> {
        let output = self.raw()?;
        Ok((
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    }

    /// Replaces this program by the child: its streams, signals and exit code are the child's.
    pub(crate) fn replace(&self) -> Error {
        let source = self.command().exec();
        self.not_started(source)
    }

    fn raw(&self) -> Result<Output> {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| self.not_started(source))?;
        if let (Some(bytes), Some(mut stdin)) = (&self.input, child.stdin.take()) {
            // A child that ends early closes the pipe; its exit status tells more than the pipe's error.
            let _ = stdin.write_all(bytes);
        }
        child
            .wait_with_output()
            .map_err(|source| self.not_started(source))
    }

    fn run(&self, command: &mut Command) -> Result<ExitStatus> {
        let mut child = command.spawn().map_err(|source| self.not_started(source))?;
        if let (Some(bytes), Some(mut stdin)) = (&self.input, child.stdin.take()) {
            // As in `raw`: the status is the better error.
            let _ = stdin.write_all(bytes);
        }
        child.wait().map_err(|source| self.not_started(source))
    }

    fn command(&self) -> Command {
        let mut words = self.prefix.iter().chain([&self.program]);
        let mut command = Command::new(words.next().unwrap_or(&self.program));
        command.args(words).args(&self.args);
        for name in set_by_cargo_run() {
            command.env_remove(name);
        }
        command.envs(self.envs.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if self.input.is_some() {
            command.stdin(Stdio::piped());
        }
        command
    }

    fn not_started(&self, source: std::io::Error) -> Error {
        Error::Start {
            program: self.shown(),
            source,
        }
    }

    fn failed(&self, status: ExitStatus, tail: String) -> Error {
        Error::Command {
            command: self.shown(),
            status: status.to_string(),
            tail,
        }
    }

    /// The command line as an error shows it: long ones are cut, the environment is left out.
    fn shown(&self) -> String {
        let mut text = self.program.to_string_lossy().into_owned();
        for arg in &self.args {
            text.push(' ');
            text.push_str(&arg.to_string_lossy());
        }
        match text.char_indices().nth(200) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text,
        }
    }
}

/// What `cargo run` tells xtask about xtask. A cargo that inherits it builds crates anew whose build scripts look at these names.
fn set_by_cargo_run() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    })
}

/// Whether a program of this name is on the PATH.
pub(crate) fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

fn open_log(log: &Path) -> Result<(File, File)> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).file("create", folder)?;
    }
    let out = File::create(log).file("create", log)?;
    let err = out.try_clone().file("open", log)?;
    Ok((out, err))
}

/// The last lines of a text, indented below the message they belong to.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..]
        .iter()
        .fold(String::new(), |all, line| all + "\n    " + line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_log_and_shows_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("logs/a.log");
        let error = Process::new("sh")
            .args(["-c", "seq 30; exit 3"])
            .logged(&log)
            .unwrap_err()
            .to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("\n    30"), "{error}");
        assert!(!error.contains("\n    10\n"), "{error}");
        assert!(error.contains(&log.display().to_string()), "{error}");
    }

    #[test]
    fn input_reaches_the_program() {
        let text = Process::new("cat").input("hello\n").output().unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Process::new("no-such-program").output().unwrap_err();
        assert!(error.to_string().contains("no-such-program"));
    }
}
