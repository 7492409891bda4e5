//! Base images: root file systems of Debian packages, straight from the mirror.

use crate::cache::Key;
use crate::debian;
use crate::docker_engine::Engine;
use crate::error::Result;
use crate::lab_home::LabHome;
use crate::report::Reporter;

/// A base image as the engine has it.
pub(crate) struct Base {
    pub(crate) reference: String,
    pub(crate) key: String,
}

/// Makes `blueprint-lab/<name>:latest` of these packages, without what is in `remove`, unless the engine has it.
pub(crate) fn ensure(
    lab: &LabHome,
    engine: &Engine,
    name: &str,
    packages: &[String],
    remove: &[String],
    report: &Reporter,
) -> Result<Base> {
    let reference = format!("blueprint-lab/{name}:latest");
    let key = Key::new("base image")
        .text(debian::recipe())
        .text(packages.join(" "))
        .text(remove.join(" "))
        .finish();
    let base = Base { reference, key };
    if engine.has_image(&base.reference, &base.key) {
        return Ok(base);
    }
    debian::install_missing(report, &[("mmdebstrap", "mmdebstrap")])?;
    report.say(format!(
        "making the base image {} of {} Debian packages",
        base.reference,
        packages.len()
    ));
    let scratch = lab.scratch()?;
    let archive = scratch.path().join("root.tar");
    debian::root_file_system(
        packages,
        remove,
        &archive,
        &lab.log(&format!("base-{name}")),
    )?;
    engine.import(&archive, &base.reference, &base.key)?;
    Ok(base)
}
