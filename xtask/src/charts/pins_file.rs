//! The lab's VERSIONS.json: the checkout's, with the versions, names and digests of what was packed.

use std::fs;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::pins::ImagePin;

/// Build metadata of a version, by which blueprint knows a stand-in.
pub(super) const MARK: &str = "standin";

pub(super) struct PinsFile(Value);

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ChartPin {
    pub(super) chart: String,
    pub(super) chart_version: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ManifestPin {
    pub(super) version: String,
    pub(super) file: String,
    pub(super) sha256: String,
}

/// A packed stand-in chart.
pub(super) struct StandIn {
    pub(super) version: String,
    pub(super) file: String,
}

impl ChartPin {
    /// `10.1.1+standin`.
    pub(super) fn stand_in_version(&self) -> String {
        format!("{}+{MARK}", self.chart_version)
    }
}

impl PinsFile {
    pub(super) fn read(lab: &LabHome) -> Result<Self> {
        let path = lab.checkout().join("VERSIONS.json");
        let text = fs::read(&path).file("read", &path)?;
        serde_json::from_slice(&text)
            .map(Self)
            .map_err(|error| Error::content("VERSIONS.json", error))
    }

    pub(super) fn text(&self) -> String {
        format!("{:#}\n", self.0)
    }

    pub(super) fn manifest(&self, key: &str) -> Result<ManifestPin> {
        self.entry("manifests", key)
    }

    pub(super) fn image(&self, key: &str) -> Result<ImagePin> {
        self.entry("images", key)
    }

    /// The section `images` as it stands.
    pub(super) fn images(&self) -> String {
        format!("{}\n", self.0["images"])
    }

    /// Every chart by its key.
    pub(super) fn charts(&self) -> Result<Vec<(String, ChartPin)>> {
        let section = self.0["helm_repositories"].as_object();
        section
            .into_iter()
            .flatten()
            .map(|(key, _)| Ok((key.clone(), self.entry("helm_repositories", key)?)))
            .collect()
    }

    /// Pins a packed stand-in in place of the real chart.
    pub(super) fn make_stand_in(&mut self, key: &str, sha256: &str) -> Result<StandIn> {
        let pin: ChartPin = self.entry("helm_repositories", key)?;
        let version = pin.stand_in_version();
        let entry = &mut self.0["helm_repositories"][key];
        entry["chart_version"] = json!(version);
        entry["sha256"] = json!(sha256);
        Ok(StandIn {
            file: format!("{}-{version}.tgz", pin.chart),
            version,
        })
    }

    /// Pins other bytes than upstream's for a manifest; answers the file's name.
    pub(super) fn make_variant(&mut self, key: &str, sha256: &str) -> Result<String> {
        let pin = self.manifest(key)?;
        let file = format!("lab-{}", pin.file);
        let entry = &mut self.0["manifests"][key];
        entry["version"] = json!(format!("{}+lab", pin.version));
        entry["file"] = json!(file);
        entry["sha256"] = json!(sha256);
        Ok(file)
    }

    fn entry<T: DeserializeOwned>(&self, section: &str, key: &str) -> Result<T> {
        let entry = &self.0[section][key];
        serde_json::from_value(entry.clone())
            .map_err(|error| Error::content(format!("{section}.{key} of VERSIONS.json"), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins() -> PinsFile {
        PinsFile(json!({
            "helm_repositories": {"redis": {"name": "redis", "chart": "redis", "chart_version": "1.2.3", "sha256": "a"}},
            "manifests": {"m": {"version": "v1", "file": "m.yaml", "sha256": "b"}},
            "images": {}
        }))
    }

    #[test]
    fn a_stand_in_says_so_in_version_and_file_name() {
        let mut pins = pins();
        let stand_in = pins.make_stand_in("redis", "c").unwrap();
        assert_eq!(stand_in.file, "redis-1.2.3+standin.tgz");
        assert_eq!(
            pins.0["helm_repositories"]["redis"]["chart_version"],
            "1.2.3+standin"
        );
        assert_eq!(pins.0["helm_repositories"]["redis"]["sha256"], "c");
        assert_eq!(pins.0["helm_repositories"]["redis"]["name"], "redis");
    }

    #[test]
    fn a_variant_never_takes_the_name_or_version_of_upstreams_file() {
        let mut pins = pins();
        assert_eq!(pins.make_variant("m", "c").unwrap(), "lab-m.yaml");
        let pin = pins.manifest("m").unwrap();
        assert_eq!((pin.version.as_str(), pin.sha256.as_str()), ("v1+lab", "c"));
        assert!(pins.manifest("other").is_err());
    }
}
