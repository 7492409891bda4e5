//! `cargo xtask fuzz`: minutes of processor time for the parsers of files that people edit and crashes cut off.
//!
//! The targets are tests of the crates, which `make test` runs for a moment; here each gets its share of the time.

use crate::error::{Error, Result};
use crate::lab_home::LabHome;
use crate::process::Process;
use crate::report::Reporter;

/// Package and test of each.
const TARGETS: [(&str, &str); 8] = [
    ("blueprint-phase2", "fuzz_settings"),
    ("blueprint-charts", "fuzz_versions"),
    ("blueprint-openbao", "fuzz_init_file"),
    ("blueprint-safekeeping", "fuzz_snapshot"),
    ("blueprint-phase2", "fuzz_corefile"),
    ("blueprint-phase2", "fuzz_hosts"),
    ("blueprint-cluster", "fuzz_kubeconfig"),
    ("blueprint-charts", "fuzz_yaml"),
];
const SECONDS: &str = "BLUEPRINT_FUZZ_SECONDS";
const SEED: &str = "BLUEPRINT_FUZZ_SEED";

pub(crate) fn run(
    lab: &LabHome,
    minutes: u64,
    seed: Option<u64>,
    only: &[String],
    report: &Reporter,
) -> Result<()> {
    let chosen: Vec<_> = TARGETS
        .into_iter()
        .filter(|(_, test)| only.is_empty() || only.iter().any(|name| name == test))
        .collect();
    if chosen.is_empty() || (!only.is_empty() && chosen.len() != only.len()) {
        let names: Vec<_> = TARGETS.iter().map(|(_, test)| *test).collect();
        return Err(Error::unmet(
            format!("not all of these are targets: {}", only.join(", ")),
            format!("there are: {}", names.join(", ")),
        ));
    }
    let seconds = (minutes * 60).div_ceil(chosen.len() as u64);
    report.say(format!(
        "{} targets, {seconds} s of processor time each",
        chosen.len()
    ));
    let mut broken = Vec::new();
    for (package, test) in chosen {
        let mut fuzz = Process::new("cargo")
            .folder(lab.checkout())
            .args([
                "test",
                "--quiet",
                "--locked",
                "--package",
                package,
                "--lib",
                "--",
            ])
            .args([test, "--nocapture", "--test-threads=1"])
            .env(SECONDS, seconds.to_string());
        if let Some(seed) = seed {
            fuzz = fuzz.env(SEED, seed.to_string());
        }
        let (code, stdout, stderr) = fuzz.captured()?;
        let told = stdout
            .lines()
            .filter_map(|line| line.find("fuzz ").map(|at| &line[at..]));
        told.for_each(|line| report.data(line));
        if code != Some(0) || !stdout.contains("nothing found") {
            report.say(stderr);
            broken.push(test);
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Error::unmet(
            format!("found by {}", broken.join(", ")),
            "the mutant and the seed stand above: make a test of it that is named after the fault",
        ))
    }
}
