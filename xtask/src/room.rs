//! Room on the disk, checked before hours of work end in "no space left on device".

use std::path::Path;

use crate::error::{Error, Result};
use crate::lab_home::LabHome;
use crate::process::Process;
use crate::report::Reporter;

/// What a first run takes at its peak: Go's caches, the engine's images, three nodes with their copies.
const COLD_GIB: u64 = 35;
/// What a run takes whose binaries are cached.
const WARM_GIB: u64 = 15;
/// Below this, kubelet starts to evict pods.
const RUNNING_GIB: u64 = 5;
const GIB: u64 = 1 << 30;

pub(crate) fn check(lab: &LabHome, report: &Reporter) -> Result<()> {
    let free = free_bytes(lab.path())? / GIB;
    let built = lab.path().join("go").is_dir();
    let cluster = lab.path().join("kubeconfig").is_file();
    let needed = match (built, cluster) {
        (false, _) => COLD_GIB,
        (true, false) => WARM_GIB,
        (true, true) => RUNNING_GIB,
    };
    if free >= needed {
        report.say(format!(
            "room: {free} GiB free at {}, {needed} needed",
            lab.path().display()
        ));
        return Ok(());
    }
    Err(Error::unmet(
        format!(
            "{} has {free} GiB free; the lab needs {needed}",
            lab.path().display()
        ),
        "free some room, or set BLUEPRINT_LAB_HOME to a folder on a larger disk; `make clean-lab` removes all that the lab built",
    ))
}

fn free_bytes(path: &Path) -> Result<u64> {
    let text = Process::new("df")
        .args(["--block-size=1", "--output=avail"])
        .arg(path)
        .output()?;
    text.lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| Error::content("the answer of df", text))
}
