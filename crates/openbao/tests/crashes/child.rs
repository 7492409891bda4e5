//! This program once more, for one test of its own.

use std::process::{Command, Output};

/// Names the folder that a child works in; a test that is a child's does nothing without it.
const FOLDER: &str = "BLUEPRINT_TEST_CHILD_FOLDER";

/// The folder, in a child.
pub(crate) fn folder() -> Option<std::path::PathBuf> {
    std::env::var_os(FOLDER).map(Into::into)
}

/// A child that runs `test` in `folder`, behind the words of `prefix`.
pub(crate) fn command(prefix: &[&str], test: &str, folder: &std::path::Path) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut words = prefix
        .iter()
        .map(std::ffi::OsString::from)
        .collect::<Vec<_>>();
    words.push(this.into());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder);
    command
}

/// What a child said, for a message.
pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
