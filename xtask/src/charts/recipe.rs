//! `lab/charts.yaml`: what comes out of which Go module, and where it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    /// By key in VERSIONS.json's `manifests`.
    pub(super) manifests: BTreeMap<String, Manifest>,
    /// By the chart's name.
    pub(super) charts: BTreeMap<String, Vec<Part>>,
}

/// A manifest made of a module's files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// Folder in `lab/go`.
    pub(super) module: String,
    /// The module's path.
    pub(super) source: String,
    /// Folder in the module.
    pub(super) folder: String,
    /// One file of it instead of all.
    pub(super) only: Option<String>,
    /// Whether a line `---` stands before each file.
    #[serde(default)]
    pub(super) separated: bool,
}

/// A real part of a stand-in chart.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// Folder in `lab/go`.
    pub(super) module: String,
    /// The module's path.
    pub(super) source: String,
    /// The image pin that must have the module's version.
    pub(super) image: String,
    /// File or folder in the module.
    pub(super) from: String,
    /// Its place in the chart.
    pub(super) to: String,
    /// Names that stay out.
    #[serde(default)]
    pub(super) without: BTreeSet<String>,
    /// Whether the part is a chart whose Chart.yaml gets the module's version.
    #[serde(default)]
    pub(super) versioned: bool,
    /// The name that such a chart goes by in ours: in its labels, and as the key of its values. Its own where there is none.
    pub(super) alias: Option<String>,
    /// A file that upstream fills in for a release.
    pub(super) filled: Option<Filled>,
}

/// Plain replacements in one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filled {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) with: BTreeMap<String, String>,
}

impl Recipe {
    pub(super) fn path(lab: &LabHome) -> PathBuf {
        lab.recipes().join("charts.yaml")
    }

    pub(super) fn read(lab: &LabHome) -> Result<Self> {
        let path = Self::path(lab);
        let text = fs::read_to_string(&path).file("read", &path)?;
        serde_saphyr::from_str(&text)
            .map_err(|error| Error::content(path.display().to_string(), error))
    }

    /// The folders of `lab/go` that something is taken from.
    pub(super) fn modules(&self) -> BTreeSet<&str> {
        let manifests = self.manifests.values().map(|part| part.module.as_str());
        let charts = self.charts.values().flatten();
        manifests
            .chain(charts.map(|part| part.module.as_str()))
            .collect()
    }
}
