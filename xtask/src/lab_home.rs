//! Where the lab keeps what it built and what it runs: outside the checkout.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext as _, Result};

/// The checkout, the lab's home, and the folders in them.
#[derive(Clone, Debug)]
pub(crate) struct LabHome {
    checkout: PathBuf,
    home: PathBuf,
    namespace: String,
}

impl LabHome {
    /// `$BLUEPRINT_LAB_HOME`, else `$XDG_CACHE_HOME/blueprint-lab`, else `~/.cache/blueprint-lab`.
    pub(crate) fn find() -> Result<Self> {
        let checkout = checkout()?;
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = set("BLUEPRINT_LAB_HOME")
            .map(PathBuf::from)
            .or_else(|| set("XDG_CACHE_HOME").map(|p| Path::new(&p).join("blueprint-lab")))
            .or_else(|| set("HOME").map(|p| Path::new(&p).join(".cache/blueprint-lab")))
            .ok_or_else(|| {
                Error::unmet(
                    "no home folder for the lab's cache",
                    "set BLUEPRINT_LAB_HOME to a folder with 20 GB of room",
                )
            })?;
        fs::create_dir_all(&home).file("create", &home)?;
        let home = fs::canonicalize(&home).file("resolve", &home)?;
        let namespace = env::var("BLUEPRINT_LAB_NAMESPACE")
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "lab".to_owned());
        Ok(Self {
            checkout,
            home,
            namespace,
        })
    }

    pub(crate) fn checkout(&self) -> &Path {
        &self.checkout
    }

    /// The `lab/` folder of the checkout: pins and recipes.
    pub(crate) fn recipes(&self) -> PathBuf {
        self.checkout.join("lab")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.home
    }

    /// Links to the current build of every binary; goes first on the PATH.
    pub(crate) fn bin(&self) -> PathBuf {
        self.home.join("bin")
    }

    pub(crate) fn engine(&self) -> PathBuf {
        self.home.join("engine")
    }

    /// The network namespace of the lab's engine; a second lab beside the first needs one of its own
    /// (`BLUEPRINT_LAB_NAMESPACE`), and a home of its own.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Enters the namespace: an argument of `nsenter`.
    pub(crate) fn namespace_option(&self) -> String {
        format!("--net=/var/run/netns/{}", self.namespace)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.home.join("kubeconfig")
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.home.join("logs").join(format!("{name}.log"))
    }

    /// A new temporary folder in the lab's home (large: not on a tmpfs), removed when dropped.
    pub(crate) fn scratch(&self) -> Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix("scratch-")
            .tempdir_in(&self.home)
            .file("create a folder in", &self.home)
    }
}

/// The workspace root: the parent of this crate's folder.
fn checkout() -> Result<PathBuf> {
    let crate_folder = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = crate_folder.join("..");
    fs::canonicalize(&root).file("find the checkout at", root)
}
