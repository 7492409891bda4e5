//! Stand-in charts held against the real ones: both rendered by helm with the values that blueprint passes, then compared
//! object by object. Only what `lab/charts/conformance.yaml` allows, each with its reason, may differ.

mod allowed;
mod facts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::charts::Packed;
use crate::charts_choice::PINS;
use crate::error::{Error, Result};
use crate::lab_home::LabHome;
use crate::pins::Pins;
use crate::process::Process;
use crate::report::Reporter;

use self::allowed::{Allowed, Difference};
use self::facts::Facts;

const PROFILES: [&str; 2] = ["small", "full"];

/// Kind and name, and what others rely on in it.
type Objects = BTreeMap<(String, String), Facts>;

/// Compares every chart in every profile. `blueprint` renders, `helm` is on the lab's PATH, `real` are folders with upstream's files.
pub(crate) fn check(
    lab: &LabHome,
    blueprint: &Path,
    packed: &Packed,
    real: &[std::path::PathBuf],
    report: &Reporter,
) -> Result<()> {
    let workspace = lab.scratch()?;
    let bench = Bench {
        lab,
        blueprint,
        workspace: workspace.path(),
    };
    let own = lab.checkout().join("VERSIONS.json");
    bench.fetch(&own, real)?;
    bench.fetch(&packed.versions(), &[packed.folder().to_owned()])?;

    let allowed = Allowed::read(lab)?;
    let (mut compared, mut used, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for (key, chart) in Pins::read(lab.checkout())?.charts() {
        let mut counts = Vec::new();
        for profile in PROFILES {
            let real = bench.objects(&own, key, profile)?;
            let stand_in = bench.objects(&packed.versions(), key, profile)?;
            let differences = compare(&real, &stand_in);
            counts.push(format!(
                "{profile} {} of {} objects",
                real.keys()
                    .filter(|name| stand_in.contains_key(*name))
                    .count(),
                real.len()
            ));
            compared += real.len();
            for difference in differences {
                match allowed.entry(chart, &difference) {
                    Some(entry) => {
                        used.insert(entry);
                    }
                    None => wrong.push(format!("{chart}, profile {profile}: {difference}")),
                }
            }
        }
        report.say(format!("  {chart}: {} compared", counts.join(", ")));
    }
    wrong.extend(allowed.unused(&used));
    if wrong.is_empty() {
        report.say(format!(
            "{compared} objects of the real charts compared; {} differences allowed, each with its reason",
            used.len()
        ));
        return Ok(());
    }
    Err(Error::unmet(
        format!(
            "stand-in charts differ from the real ones:\n    {}",
            wrong.join("\n    ")
        ),
        "mend the chart in lab/charts, or allow the difference in lab/charts/conformance.yaml with its reason",
    ))
}

/// Renders every stand-in chart in every profile, which refuses values that it would ignore (`helm lint` lets a template's
/// `fail` pass). The real ones are not needed.
pub(crate) fn render(
    lab: &LabHome,
    blueprint: &Path,
    packed: &Packed,
    report: &Reporter,
) -> Result<()> {
    let workspace = lab.scratch()?;
    let bench = Bench {
        lab,
        blueprint,
        workspace: workspace.path(),
    };
    bench.fetch(&packed.versions(), &[packed.folder().to_owned()])?;
    let mut count = 0;
    for (key, _) in Pins::read(lab.checkout())?.charts() {
        for profile in PROFILES {
            count += bench.objects(&packed.versions(), key, profile)?.len();
        }
    }
    report.say(format!(
        "{count} objects rendered from the stand-in charts with the values that blueprint passes"
    ));
    Ok(())
}

/// A workspace with both kinds of charts in its cache.
struct Bench<'a> {
    lab: &'a LabHome,
    blueprint: &'a Path,
    workspace: &'a Path,
}

impl Bench<'_> {
    fn blueprint(&self, pins: &Path) -> Process {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.lab.bin()).chain(std::env::split_paths(&path));
        Process::new(self.blueprint)
            .folder(self.lab.checkout())
            .env("PATH", std::env::join_paths(folders).unwrap_or_default())
            .env(PINS, pins)
            .arg("--workspace")
            .arg(self.workspace)
    }

    fn fetch(&self, pins: &Path, folders: &[std::path::PathBuf]) -> Result<()> {
        let from = folders
            .iter()
            .flat_map(|folder| [Path::new("--from"), folder]);
        self.blueprint(pins)
            .args(["charts", "fetch", "--offline"])
            .args(from)
            .output()
            .map(drop)
    }

    fn objects(&self, pins: &Path, key: &str, profile: &str) -> Result<Objects> {
        let run = self.blueprint(pins).args([
            "values",
            "render",
            key,
            "--output",
            "json",
            "--profile",
            profile,
        ]);
        let (code, stdout, stderr) = run.captured()?;
        if code != Some(0) {
            return Err(Error::content(
                format!("`blueprint values render {key}` with {}", pins.display()),
                stderr,
            ));
        }
        let objects = stdout
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<Vec<Value>, _>>()
            .map_err(|error| Error::content(format!("chart {key}, rendered"), error))?;
        Ok(facts::of(&objects))
    }
}

fn compare(real: &Objects, stand_in: &Objects) -> Vec<Difference> {
    let difference = |(kind, name): &(String, String), what: &str, detail: String| Difference {
        kind: kind.clone(),
        name: name.clone(),
        what: what.to_owned(),
        detail,
    };
    let mut found = Vec::new();
    for (identity, facts) in real {
        let Some(other) = stand_in.get(identity) else {
            found.push(difference(identity, "absent", String::new()));
            continue;
        };
        for (what, ours, theirs) in facts.beside(other) {
            let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
                a.difference(b).cloned().collect::<Vec<_>>().join(", ")
            };
            let detail = format!(
                "only real: [{}]; only stand-in: [{}]",
                only(ours, theirs),
                only(theirs, ours)
            );
            if ours != theirs {
                found.push(difference(identity, what, detail));
            }
        }
    }
    let added = stand_in.keys().filter(|name| !real.contains_key(*name));
    found.extend(added.map(|identity| difference(identity, "added", String::new())));
    found
}

/// `helm lint --strict` of every chart: as it is written, and as it is packed, where the schema of blueprint's reference may
/// ask for what the reference sets.
pub(crate) fn lint(lab: &LabHome, packed: &Packed, report: &Reporter) -> Result<()> {
    let references = lab.checkout().join("infra/phase2/references");
    let helm = |chart: &Path| {
        Process::new(lab.bin().join("helm"))
            .args(["lint", "--strict", "--quiet"])
            .arg(chart)
    };
    let mut count = 0;
    for (key, chart) in Pins::read(lab.checkout())?.charts() {
        helm(&lab.recipes().join("charts").join(chart)).output()?;
        let values = format!("helm-values-{key}.yaml");
        helm(&packed.chart(chart)?)
            .arg("--values")
            .arg(references.join(&values))
            .arg("--values")
            .arg(references.join("profiles/small").join(&values))
            .output()?;
        count += 1;
    }
    report.say(format!(
        "{count} stand-in charts: helm lint --strict is clean, as written and as packed"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(port: u16) -> Value {
        json!({"kind": "Service", "metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": port}]}})
    }

    #[test]
    fn a_missing_an_added_and_a_changed_object_are_told() {
        let config = |name: &str| json!({"kind": "ConfigMap", "metadata": {"name": name}});
        let real = facts::of(&[service(1), config("gone")]);
        let stand_in = facts::of(&[service(2), config("new")]);
        let found: Vec<String> = compare(&real, &stand_in)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("ConfigMap gone") && found[0].contains("absent"));
        assert!(
            found[1].contains("Service a") && found[1].contains("ports"),
            "{found:?}"
        );
        assert!(found[2].contains("ConfigMap new") && found[2].contains("added"));
        assert!(compare(&real, &real).is_empty());
    }
}
