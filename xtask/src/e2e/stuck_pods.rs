//! Pods that cannot become ready: `up` names each with its reason within half a minute, long before its deadline.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::killed_run::Run;
use super::pipeline::run_blueprint;
use super::refusals::Place;
use super::{Evidence, Scene, expect};
use crate::error::{Error, FileContext as _, Result};
use crate::report::seconds;

const NAMED_WITHIN: Duration = Duration::from_secs(30);
/// A run that was interrupted waits for nothing more.
const ENDS_WITHIN: Duration = Duration::from_mins(1);

/// A release spoilt by its `values_overrides`.
struct Case {
    /// As `kubectl get pods` calls the state.
    state: &'static str,
    /// Key of the chart in VERSIONS.json and the task that installs it.
    chart: &'static str,
    task: &'static str,
    spoil: fn() -> Value,
    /// Parts of the blocker that is told.
    told: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        state: "ImagePullBackOff",
        chart: "redis",
        task: "redis",
        spoil: || json!({"image": {"tag": "no-such-tag"}}),
        told: &["redis-master-0", "no-such-tag"],
    },
    Case {
        state: "Pending",
        chart: "redis",
        task: "redis",
        spoil: || json!({"master": {"resources": {"requests": {"memory": "900Gi"}, "limits": {"memory": "900Gi"}}}}),
        told: &["redis-master-0", "Insufficient memory"],
    },
    Case {
        state: "CrashLoopBackOff",
        chart: "redis",
        task: "redis",
        spoil: || json!({"master": {"command": ["/bin/sh", "-c", "exit 3"], "args": []}}),
        told: &["redis-master-0", "CrashLoopBackOff (exit 3)"],
    },
];

pub(super) fn named_within_half_a_minute(scene: &mut Scene) -> Result<Evidence> {
    let mut told = Vec::new();
    let mut wrong = Vec::new();
    for case in CASES {
        match judge(scene, case) {
            Ok(after) => told.push(format!("{} after {}", case.state, seconds(after))),
            Err(error) => wrong.push(format!("{}: {error}", case.state)),
        }
    }
    // Whatever was spoilt is put back by the workspace's own pins.
    run_blueprint(scene, &["up", "--output", "plain"])?;
    run_blueprint(scene, &["smoke"])?;
    expect(
        wrong.is_empty(),
        "each named with its reason within 30 s of its task's start",
        if wrong.is_empty() {
            format!("{}; then `up` green again", told.join(", "))
        } else {
            wrong.join("; ")
        },
    )
}

/// How long after the task's start its blocker was named.
fn judge(scene: &Scene, case: &Case) -> Result<Duration> {
    let place = Place::copy_of(scene)?;
    spoil(&place, case)?;
    let workspace = place.root.display().to_string();
    let args = ["--workspace", &workspace, "up", "--only", case.task];
    let mut run = Run::with(scene, &format!("stuck-{}", case.state), args)?;
    run.until_begun(case.task)?;
    let begun = Instant::now();
    let mut in_time = false;
    run.until(&format!("the name of what is {}", case.state), |run| {
        in_time = case.told.iter().all(|words| run.told(case.task, words));
        Ok(in_time || begun.elapsed() > NAMED_WITHIN)
    })?;
    let after = begun.elapsed();
    run.interrupt()?;
    run.ended(ENDS_WITHIN)?;
    if in_time {
        return Ok(after);
    }
    let events = run.events();
    let last: Vec<&str> = events.lines().rev().take(3).collect();
    Err(Error::unmet(
        format!("not named within 30 s; last told: {}", last.join(" / ")),
        "look at the log of this run",
    ))
}

fn spoil(place: &Place, case: &Case) -> Result<()> {
    let path = place.root.join("VERSIONS.json");
    let text = fs::read_to_string(&path).file("read", &path)?;
    let mut pins: Value = serde_json::from_str(&text)
        .map_err(|error| Error::content(path.display().to_string(), error))?;
    pins["helm_repositories"][case.chart]["values_overrides"] = (case.spoil)();
    fs::write(&path, format!("{pins:#}\n")).file("write", &path)
}
