//! The program under work: built once, then driven as a user drives it.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::process::Process;
use crate::report::Reporter;

/// Names a built binary to use instead of a release build; for work on blueprint itself.
const OVERRIDE: &str = "BLUEPRINT_BIN";

/// The same for the build with failpoints.
const OVERRIDE_WITH_FAILPOINTS: &str = "BLUEPRINT_FAILPOINTS_BIN";

/// The release binary, built now when a source changed; or the one that `BLUEPRINT_BIN` names.
pub(crate) fn ensure(lab: &LabHome, report: &Reporter) -> Result<PathBuf> {
    if let Some(path) = named(lab, report)? {
        return Ok(path);
    }
    report.say("building blueprint (release)");
    build(lab, &["--release"])
}

/// The debug binary, which the tests have built already; or the one that `BLUEPRINT_BIN` names.
pub(crate) fn debug(lab: &LabHome, report: &Reporter) -> Result<PathBuf> {
    match named(lab, report)? {
        Some(path) => Ok(path),
        None => build(lab, &[]),
    }
}

fn named(lab: &LabHome, report: &Reporter) -> Result<Option<PathBuf>> {
    let Some(path) = env::var_os(OVERRIDE).map(|path| lab.checkout().join(path)) else {
        return Ok(None);
    };
    if !path.is_file() {
        return Err(Error::unmet(
            format!("{OVERRIDE} names {}, which is no file", path.display()),
            "unset it, or build the binary it names",
        ));
    }
    report.say(format!("using {} ({OVERRIDE})", path.display()));
    Ok(Some(path))
}

/// A debug build with failpoints, in a folder of the lab's: where cargo leaves it the next ordinary build would replace it.
pub(crate) fn ensure_with_failpoints(lab: &LabHome, report: &Reporter) -> Result<PathBuf> {
    if let Some(path) = env::var_os(OVERRIDE_WITH_FAILPOINTS).map(PathBuf::from) {
        report.say(format!(
            "using {} ({OVERRIDE_WITH_FAILPOINTS})",
            path.display()
        ));
        return Ok(path);
    }
    report.say("building blueprint with failpoints (debug)");
    let built = build(lab, &["--features", "failpoints"])?;
    let folder = lab.path().join("failpoints");
    fs::create_dir_all(&folder).file("create", &folder)?;
    let program = folder.join("blueprint");
    fs::copy(&built, &program).file("copy", &program)?;
    Ok(program)
}

fn build(lab: &LabHome, how: &[&str]) -> Result<PathBuf> {
    let text = Process::new("cargo")
        .folder(lab.checkout())
        .args(["build", "--locked", "--package", "blueprint"])
        .args(how)
        .args(["--message-format", "json-render-diagnostics"])
        .output()?;
    executable(&text).ok_or_else(|| {
        Error::content(
            "cargo's messages",
            "none of them names the binary `blueprint`",
        )
    })
}

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
}

/// The binary that cargo's last artifact message names.
fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .find_map(|message| message.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_says_where_the_binary_is() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/t/release/blueprint\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(
            executable(messages),
            Some(PathBuf::from("/t/release/blueprint"))
        );
        assert_eq!(executable("no json"), None);
    }
}
