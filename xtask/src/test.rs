//! `cargo xtask test`: everything that needs neither root nor Docker.

use std::ffi::OsString;
use std::fs;

use crate::blueprint;
use crate::charts;
use crate::conformance;
use crate::error::{Error, FileContext as _, Result};
use crate::go_binaries::GoBinaries;
use crate::lab_home::LabHome;
use crate::process::Process;
use crate::report::Reporter;

/// The tests start these two as a control plane of their own, and drive charts with the third.
const TEST_PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "helm"];
/// Either names folders with upstream's charts and manifests. The first is what the tests read; the second is what people set for blueprint.
const ARTIFACTS: [&str; 2] = ["BLUEPRINT_TEST_ARTIFACTS", "BLUEPRINT_CHARTS"];
const CARGO_DENY: &str = "0.20.2";

pub(crate) fn run(lab: &LabHome, report: &Reporter) -> Result<()> {
    let cargo = |args: &[&str]| Process::new("cargo").folder(lab.checkout()).args(args);
    report.stage("format", || {
        cargo(&["fmt", "--all", "--check"]).attached_ok()
    })?;
    report.stage("lints", || {
        cargo(&[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ])
        .attached_ok()
    })?;
    report.stage("control plane for the tests", || {
        let go = GoBinaries::open(lab)?;
        for program in TEST_PROGRAMS {
            go.ensure(program, report)?;
        }
        Ok(())
    })?;
    let artifacts = artifacts(lab);
    let tests = |args: &[&str]| {
        let mut tests = cargo(args).env("BLUEPRINT_TEST_BIN", lab.bin());
        if let Some(artifacts) = &artifacts {
            tests = tests.env(ARTIFACTS[0], artifacts);
        }
        tests.attached_ok()
    };
    report.stage("tests", || tests(&["test", "--locked", "--workspace"]))?;
    if artifacts.is_some() {
        report.stage("tests with upstream's charts and manifests", || {
            tests(&[
                "test",
                "--locked",
                "--package",
                "blueprint-phase2",
                "--test",
                "api",
                "--",
                "--ignored",
            ])
        })?;
    } else {
        report.say(format!(
            "SKIPPED: the tests that read upstream's charts and manifests. Neither {} nor ../shared has them.",
            ARTIFACTS.join(", ")
        ));
    }
    report.stage("no failpoints in an ordinary build", || unarmed(&cargo))?;
    report.stage("stand-in charts", || stand_ins(lab, report))?;
    report.stage("licences, sources and bans", || {
        let deny = cargo_deny(lab, report)?;
        Process::new(deny)
            .folder(lab.checkout())
            .args(["check", "bans", "licenses", "sources"])
            .attached_ok()
    })?;
    report.summary();
    Ok(())
}

/// The lab's charts are packed and linted; where the real ones are at hand, both are compared.
pub(crate) fn stand_ins(lab: &LabHome, report: &Reporter) -> Result<()> {
    GoBinaries::open(lab)?.ensure("helm", report)?;
    let packed = charts::ensure(lab, report)?;
    conformance::lint(lab, &packed, report)?;
    let blueprint = blueprint::debug(lab, report)?;
    let Some(artifacts) = artifacts(lab) else {
        conformance::render(lab, &blueprint, &packed, report)?;
        report.say(format!(
            "SKIPPED: the comparison of stand-in charts with the real ones. Neither {} nor ../shared has the real ones.",
            ARTIFACTS.join(", ")
        ));
        return Ok(());
    };
    let real: Vec<_> = std::env::split_paths(&artifacts).collect();
    conformance::check(lab, &blueprint, &packed, &real, report)
}

/// Asks cargo which features it would build the program with: by itself none that arms the failpoints, and that one when it is asked for.
fn unarmed(cargo: &impl Fn(&[&str]) -> Process) -> Result<()> {
    let ask = [
        "tree",
        "--locked",
        "--package",
        "blueprint",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p} [{f}]",
    ];
    for (more, armed) in [(&[][..], false), (&["--features", "failpoints"], true)] {
        let told = cargo(&ask).args(more).output()?;
        let line = told
            .lines()
            .find(|line| line.starts_with("blueprint-failpoint "))
            .unwrap_or_default();
        if !line.contains('[') || line.contains("[armed]") != armed {
            return Err(Error::content(
                "cargo's features of blueprint-failpoint",
                format!("{line:?} with {more:?}"),
            ));
        }
    }
    Ok(())
}

/// Folders with upstream's charts and manifests: those of the environment, else those beside the checkout.
fn artifacts(lab: &LabHome) -> Option<OsString> {
    let set = |name: &&str| std::env::var_os(name).filter(|value| !value.is_empty());
    ARTIFACTS.iter().find_map(set).or_else(|| {
        let beside =
            ["../shared/charts", "../shared/manifests"].map(|folder| lab.checkout().join(folder));
        beside
            .iter()
            .all(|folder| folder.is_dir())
            .then(|| std::env::join_paths(beside).ok())
            .flatten()
    })
}

/// The pinned cargo-deny, installed outside the checkout when it is missing.
fn cargo_deny(lab: &LabHome, report: &Reporter) -> Result<std::path::PathBuf> {
    let root = lab.path().join(format!("cargo-deny-{CARGO_DENY}"));
    let program = root.join("bin/cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    report.say(format!("installing cargo-deny {CARGO_DENY}, once"));
    let target = lab.scratch()?;
    fs::create_dir_all(&root).file("create", &root)?;
    Process::new("cargo")
        .args(["install", "--locked", "--root"])
        .arg(&root)
        .args(["--version", CARGO_DENY, "cargo-deny"])
        .env("CARGO_TARGET_DIR", target.path())
        .logged(&lab.log("cargo-deny"))?;
    if program.is_file() {
        Ok(program)
    } else {
        Err(Error::content(
            "cargo install's result",
            format!("no {}", program.display()),
        ))
    }
}
