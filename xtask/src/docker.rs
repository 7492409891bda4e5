//! What the lab asks of the Docker command line. A built image carries the key of what it was built from.

use std::path::Path;

use crate::docker_engine::Engine;
use crate::error::Result;

/// Holds the content key on every image the lab builds.
const KEY_LABEL: &str = "dev.blueprint.lab.key";

impl Engine {
    /// Whether the engine has this image, built from exactly these inputs.
    pub(crate) fn has_image(&self, reference: &str, key: &str) -> bool {
        let format = format!("{{{{index .Config.Labels \"{KEY_LABEL}\"}}}}");
        self.docker()
            .args(["image", "inspect", "--format", &format, reference])
            .output()
            .is_ok_and(|found| found == key)
    }

    /// Makes an image of a root file system's tar archive.
    pub(crate) fn import(&self, archive: &Path, reference: &str, key: &str) -> Result<()> {
        self.docker()
            .args(["import", "--change", &label(key)])
            .arg(archive)
            .arg(reference)
            .output()?;
        Ok(())
    }

    /// Builds a folder with a Dockerfile.
    pub(crate) fn build(
        &self,
        folder: &Path,
        reference: &str,
        key: &str,
        build_args: &[(String, String)],
        log: &Path,
    ) -> Result<()> {
        let args = build_args
            .iter()
            .flat_map(|(name, value)| ["--build-arg".to_owned(), format!("{name}={value}")]);
        self.docker()
            .args(["build", "--force-rm", "--tag", reference])
            .args(["--label", &format!("{KEY_LABEL}={key}")])
            .args(args)
            .arg(folder)
            .logged(log)
    }

    /// Removes what a rebuild left without a name; only in the lab's own engine.
    pub(crate) fn prune(&self) -> Result<()> {
        if self.is_lab() {
            self.docker().args(["image", "prune", "--force"]).output()?;
        }
        Ok(())
    }
}

/// A Dockerfile instruction that sets the key.
pub(crate) fn label(key: &str) -> String {
    format!("LABEL {KEY_LABEL}={key}")
}
