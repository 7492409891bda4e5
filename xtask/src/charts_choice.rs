//! Which charts `make up` and `make e2e` install: the real ones where they can be had, and in the lab alone, where they
//! cannot, the stand-ins. blueprint refuses a workspace or cluster that is made with the other kind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::charts;
use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::process::Process;
use crate::report::Reporter;

/// Names a pins file to blueprint.
pub(crate) const PINS: &str = "BLUEPRINT_VERSIONS";
/// The stand-ins' pins in the workspace, beside the charts they pin: they outlive the lab's cache.
const PINS_FILE: &str = "infra/helm-charts/VERSIONS.stand-ins.json";
/// Where charts and manifests may lie beside the checkout.
const BESIDE: [&str; 2] = ["../shared/charts", "../shared/manifests"];

/// The charts that were chosen.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    pins: Option<PathBuf>,
}

impl Charts {
    /// Another pins file than the checkout's.
    pub(crate) fn pins(&self) -> Option<&Path> {
        self.pins.as_deref()
    }

    pub(crate) fn are_stand_ins(&self) -> bool {
        let text = self
            .pins
            .as_ref()
            .and_then(|pins| fs::read_to_string(pins).ok());
        text.is_some_and(|text| text.contains("+standin"))
    }

    /// Fills the workspace's cache and says which charts these are. `in_lab`: whether stand-ins may take the place of real
    /// ones that cannot be had.
    pub(crate) fn choose(
        lab: &LabHome,
        blueprint: &Path,
        in_lab: bool,
        report: &Reporter,
    ) -> Result<Self> {
        if let Some(pins) = given_pins() {
            let pins = lab.checkout().join(pins);
            report.say(format!("charts: as {} pins them ({PINS})", pins.display()));
            let beside = pins.parent().map(Path::to_owned);
            fetch(lab, blueprint, Some(&pins), beside.as_deref()).attached_ok()?;
            return Ok(Self { pins: Some(pins) });
        }
        let (code, said, told) = fetch(lab, blueprint, None, None).captured()?;
        if code == Some(0) {
            for line in said.lines().chain(told.lines()) {
                report.say(format!("  {line}"));
            }
            report.say("charts: the REAL ones, each with the digest that VERSIONS.json pins");
            return Ok(Self::default());
        }
        let why = reasons(&told);
        if !in_lab {
            return Err(Error::unmet(
                format!(
                    "charts that VERSIONS.json pins can't be had:\n    {}",
                    why.join("\n    ")
                ),
                "run `blueprint charts fetch` on a machine that reaches upstream, copy its infra/helm-charts here and name the folder in BLUEPRINT_CHARTS",
            ));
        }
        report.say("the real charts can't be had; what was tried:");
        for line in &why {
            report.say(format!("  {line}"));
        }
        let pins = stand_ins(lab, blueprint, report)?;
        report.say("charts: STAND-INS of the lab (lab/STAND-INS.md). No result with them counts as one with the real charts.");
        Ok(Self { pins: Some(pins) })
    }
}

/// What the caller's environment names.
fn given_pins() -> Option<OsString> {
    env::var_os(PINS).filter(|pins| !pins.is_empty())
}

/// Packs the stand-ins and lays them into the workspace's cache with their pins.
fn stand_ins(lab: &LabHome, blueprint: &Path, report: &Reporter) -> Result<PathBuf> {
    let packed = charts::ensure(lab, report)?;
    let pins = lab.checkout().join(PINS_FILE);
    let text = fs::read(packed.versions()).file("read", packed.versions())?;
    if fs::read(&pins).ok().as_deref() != Some(text.as_slice()) {
        fs::create_dir_all(pins.with_file_name("")).file("create the folder of", &pins)?;
        fs::write(&pins, text).file("write", &pins)?;
    }
    fetch(lab, blueprint, Some(&pins), Some(packed.folder())).attached_ok()?;
    Ok(pins)
}

/// `blueprint charts fetch`, outside the lab's network namespace: from there nothing of the world can be reached.
fn fetch(lab: &LabHome, blueprint: &Path, pins: Option<&Path>, from: Option<&Path>) -> Process {
    let beside = BESIDE
        .into_iter()
        .filter(|folder| lab.checkout().join(folder).is_dir())
        .flat_map(|folder| ["--from", folder]);
    let process = Process::new(blueprint)
        .folder(lab.checkout())
        .env(PINS, pins.unwrap_or(Path::new("")))
        .args(["charts", "fetch"])
        .args(beside);
    match from {
        Some(from) => process.arg("--from").arg(from),
        None => process,
    }
}

/// What blueprint said of each chart that it could not have.
fn reasons(told: &str) -> Vec<String> {
    let lines: Vec<String> = told
        .lines()
        .filter_map(|line| line.strip_prefix("error: "))
        .map(str::to_owned)
        .collect();
    if lines.is_empty() {
        return vec![told.trim().to_owned()];
    }
    lines
}

/// The pins that this workspace is made with, where they are not its own VERSIONS.json.
pub(crate) fn pins_of_workspace(lab: &LabHome) -> Option<PathBuf> {
    let record = lab.checkout().join("infra/phase2/state/charts.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(record).ok()?).ok()?;
    record["pins"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chart_that_could_not_be_had_is_a_reason() {
        let told = "redis: in the cache\nerror: chart a 1 could not be had: cache: x; upstream: y\nhint: z\nerror: b\n";
        assert_eq!(
            reasons(told),
            ["chart a 1 could not be had: cache: x; upstream: y", "b"]
        );
        assert_eq!(reasons("killed\n"), ["killed"]);
    }

    #[test]
    fn stand_ins_are_known_by_their_pins() {
        let folder = tempfile::tempdir().unwrap();
        let pins = folder.path().join("pins.json");
        fs::write(&pins, r#"{"chart_version": "1+standin"}"#).unwrap();
        let charts = |pins| Charts { pins };
        assert!(charts(Some(pins.clone())).are_stand_ins());
        fs::write(&pins, r#"{"chart_version": "1"}"#).unwrap();
        assert!(!charts(Some(pins)).are_stand_ins());
        assert!(!charts(None).are_stand_ins());
    }
}
