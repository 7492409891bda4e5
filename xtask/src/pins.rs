//! The pins of VERSIONS.json that the lab has to meet.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, FileContext as _, Result};

#[derive(Debug, Deserialize)]
pub(crate) struct Pins {
    helm_repositories: BTreeMap<String, ChartPin>,
    images: BTreeMap<String, ImagePin>,
}

#[derive(Debug, Deserialize)]
struct ChartPin {
    chart: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ImagePin {
    pub(crate) repository: String,
    pub(crate) tag: String,
}

impl ImagePin {
    pub(crate) fn reference(&self) -> String {
        format!("{}:{}", self.repository, self.tag)
    }
}

impl Pins {
    pub(crate) fn read(checkout: &Path) -> Result<Self> {
        let path = checkout.join("VERSIONS.json");
        let text = fs::read(&path).file("read", &path)?;
        serde_json::from_slice(&text).map_err(|error| Error::content("VERSIONS.json", error))
    }

    /// Key and name of every chart.
    pub(crate) fn charts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.helm_repositories
            .iter()
            .map(|(key, pin)| (key.as_str(), pin.chart.as_str()))
    }

    pub(crate) fn image(&self, pin: &str) -> Result<&ImagePin> {
        self.images.get(pin).ok_or_else(|| {
            Error::unmet(
                format!("VERSIONS.json pins no image `{pin}`"),
                format!(
                    "its `images` are: {}",
                    self.images.keys().cloned().collect::<Vec<_>>().join(", ")
                ),
            )
        })
    }
}
