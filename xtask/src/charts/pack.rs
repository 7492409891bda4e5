//! A stand-in chart put together: our files of `lab/charts`, and the real parts out of Go modules.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::pins::Pins;

use super::pins_file::ChartPin;
use super::recipe::{Filled, Part, Recipe};
use super::sources::Sources;

const SCHEMA: &str = "values.schema.json";
/// The image pins, for charts that name images themselves.
const IMAGES: &str = "files/images.json";

/// A chart's files by their path in it.
pub(super) struct Chart(BTreeMap<String, Vec<u8>>);

impl Chart {
    /// Where our own charts are written.
    pub(super) fn root(lab: &LabHome) -> PathBuf {
        lab.recipes().join("charts")
    }

    /// The schema of what blueprint sets for a chart.
    pub(super) fn reference_schema(lab: &LabHome, key: &str) -> PathBuf {
        lab.checkout().join(format!(
            "infra/phase2/references/helm-values-{key}.schema.json"
        ))
    }

    /// Gathers the stand-in for the chart that `pin` names; `images` are VERSIONS.json's.
    pub(super) fn gather(
        lab: &LabHome,
        recipe: &Recipe,
        sources: &Sources<'_>,
        images: &str,
        (key, pin): (&str, &ChartPin),
    ) -> Result<Self> {
        let folder = Self::root(lab).join(&pin.chart);
        if !folder.is_dir() {
            return Err(Error::unmet(
                format!(
                    "helm_repositories.{key} pins the chart {}, and lab/charts has no stand-in of that name",
                    pin.chart
                ),
                "write one, or use the real charts: `blueprint charts fetch --from DIR`",
            ));
        }
        let mut chart = Self(tree(&folder)?);
        chart.set_version("Chart.yaml", &pin.stand_in_version(), None)?;
        if chart.reads(IMAGES) {
            chart.0.insert(IMAGES.to_owned(), images.into());
        }
        for part in recipe.charts.get(&pin.chart).into_iter().flatten() {
            chart.add(lab, sources, part)?;
        }
        let schema = Self::reference_schema(lab, key);
        if !chart.0.contains_key(SCHEMA) && schema.is_file() {
            let text = fs::read(&schema).file("read", &schema)?;
            chart.0.insert(SCHEMA.to_owned(), text);
        }
        Ok(chart)
    }

    pub(super) fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.0
    }

    /// Whether one of its templates names a file. A file that no template reads would only make digests change for nothing.
    fn reads(&self, file: &str) -> bool {
        let mut templates = self
            .0
            .iter()
            .filter(|(path, _)| path.starts_with("templates/"));
        templates.any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(file))
    }

    /// Adds a file or folder of a module.
    fn add(&mut self, lab: &LabHome, sources: &Sources<'_>, part: &Part) -> Result<()> {
        let version = sources.version(&part.module, &part.source)?;
        let from = sources
            .folder(&part.module, &part.source)?
            .join(part.from.replace("{version}", &version));
        if from.is_file() {
            let bytes = fs::read(&from).file("read", &from)?;
            self.0.insert(part.to.clone(), bytes);
            return Ok(());
        }
        for (name, bytes) in tree(&from)? {
            if !part.without.contains(&name) {
                self.0.insert(format!("{}/{name}", part.to), bytes);
            }
        }
        if let Some(filled) = &part.filled {
            let image = Pins::read(lab.checkout())?.image(&part.image)?.reference();
            self.fill(&part.to, filled, &image)?;
        }
        if part.versioned {
            let place = format!("{}/Chart.yaml", part.to);
            self.set_version(&place, &version, Some(&format!("v{version}")))?;
            let name = part.to.rsplit('/').next().unwrap_or(&part.to);
            self.depend_on(name, &version, part.alias.as_deref())?;
        }
        Ok(())
    }

    /// Replaces a template of upstream's by what a release makes of it.
    fn fill(&mut self, folder: &str, filled: &Filled, image: &str) -> Result<()> {
        let place = format!("{folder}/{}", filled.from);
        let mut text = self.take_text(&place)?;
        for (mark, value) in &filled.with {
            text = text.replace(mark, &value.replace("{image}", image));
        }
        if let Some(left) = text.find("${") {
            let rest: String = text[left..].chars().take(40).collect();
            return Err(Error::content(
                place,
                format!("lab/charts.yaml does not say what to put in place of {rest:?}"),
            ));
        }
        self.0
            .insert(format!("{folder}/{}", filled.to), text.into_bytes());
        Ok(())
    }

    /// Sets the version of a Chart.yaml, and its appVersion where one is given.
    fn set_version(&mut self, place: &str, version: &str, app: Option<&str>) -> Result<()> {
        let mut text = set_line(&self.take_text(place)?, "version", version)
            .ok_or_else(|| Error::content(place, "it has no line `version:`"))?;
        if let Some(app) = app {
            text = set_line(&text, "appVersion", app)
                .ok_or_else(|| Error::content(place, "it has no line `appVersion:`"))?;
        }
        self.0.insert(place.to_owned(), text.into_bytes());
        Ok(())
    }

    /// Declares a chart that was packed into this one: as it is written, without it, the chart must be whole as well.
    fn depend_on(&mut self, name: &str, version: &str, alias: Option<&str>) -> Result<()> {
        let text = self.take_text("Chart.yaml")?;
        let alias = alias.map(|alias| format!("  alias: {alias}\n"));
        let entry = format!(
            "- name: {name}\n  version: {version}\n{}",
            alias.unwrap_or_default()
        );
        let text = match text.split_once("dependencies:\n") {
            Some((before, after)) => format!("{before}dependencies:\n{entry}{after}"),
            None => format!("{text}dependencies:\n{entry}"),
        };
        self.0.insert("Chart.yaml".to_owned(), text.into_bytes());
        Ok(())
    }

    fn take_text(&mut self, place: &str) -> Result<String> {
        let bytes = self
            .0
            .remove(place)
            .ok_or_else(|| Error::content(place, "there is no such file in the chart"))?;
        String::from_utf8(bytes).map_err(|error| Error::content(place, error))
    }
}

/// The text with the value of a top-level key replaced; `None` where the key is missing.
fn set_line(text: &str, key: &str, value: &str) -> Option<String> {
    let begins = format!("{key}:");
    let mut found = false;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            if line.starts_with(&begins) {
                found = true;
                format!("{key}: {value}")
            } else {
                line.to_owned()
            }
        })
        .collect();
    found.then(|| lines.join("\n") + "\n")
}

/// Every file below a folder, by its path in it.
fn tree(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    collect(folder, "", &mut files)?;
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(folder).file("list", folder)? {
        let path = entry.file("list", folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else {
            let bytes = fs::read(&path).file("read", &path)?;
            files.insert(name, bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_charts_own_version_is_set() {
        let text = "name: x\nversion: 0.0.0\ndependencies:\n- name: y\n  version: 1.0.0\n";
        assert_eq!(
            set_line(text, "version", "2.0.0+standin").unwrap(),
            "name: x\nversion: 2.0.0+standin\ndependencies:\n- name: y\n  version: 1.0.0\n"
        );
        assert_eq!(set_line(text, "appVersion", "1"), None);
    }

    #[test]
    fn a_packed_chart_is_declared_beside_others() {
        for (before, alias, after) in [
            (
                "name: x\n",
                None,
                "name: x\ndependencies:\n- name: y\n  version: 1.0.0\n",
            ),
            (
                "dependencies:\n- name: z\n",
                Some("a"),
                "dependencies:\n- name: y\n  version: 1.0.0\n  alias: a\n- name: z\n",
            ),
        ] {
            let mut chart = Chart(BTreeMap::from([("Chart.yaml".to_owned(), before.into())]));
            chart.depend_on("y", "1.0.0", alias).unwrap();
            assert_eq!(chart.files()["Chart.yaml"], after.as_bytes());
        }
    }

    #[test]
    fn a_mark_that_nothing_fills_is_an_error() {
        let filled = Filled {
            from: "v.tmpl.yaml".to_owned(),
            to: "v.yaml".to_owned(),
            with: BTreeMap::from([("${A}".to_owned(), "{image}".to_owned())]),
        };
        let chart = |text: &str| Chart(BTreeMap::from([("c/v.tmpl.yaml".to_owned(), text.into())]));
        let mut good = chart("image: ${A}\n");
        good.fill("c", &filled, "r/i:1").unwrap();
        assert_eq!(good.files()["c/v.yaml"], b"image: r/i:1\n");
        let error = chart("${A} ${B}").fill("c", &filled, "r/i:1").unwrap_err();
        assert!(error.to_string().contains("${B}"), "{error}");
    }
}
