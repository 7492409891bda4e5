//! `infra/phase2/state/charts.json`: which charts the workspace is made with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Context, Error, Workspace, private_file};

/// The charts by their key in VERSIONS.json, and where their pins stand if not in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) charts: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pins: Option<PathBuf>,
}

impl Record {
    /// What the pins of this run come to.
    pub(super) fn of(context: &Context) -> Self {
        let pins = context.versions.helm_repositories.iter();
        Self {
            charts: pins
                .map(|(key, pin)| (key.clone(), pin.chart_version.clone()))
                .collect(),
            pins: context.workspace.given_versions().map(Into::into),
        }
    }

    pub(super) fn read(workspace: &Workspace) -> Result<Option<Self>, Error> {
        let path = workspace.charts_record();
        let Some(text) = private_file::read_text(&path)? else {
            return Ok(None);
        };
        serde_json::from_str(&text).map(Some).map_err(|error| Error::Refused {
            summary: format!("{} is not a valid record of charts", path.display()),
            expected: "the charts that this workspace is made with".to_owned(),
            found: error.to_string(),
            hint: "restore it from a copy; if the workspace was only ever used with upstream's charts, remove it: it is written anew".to_owned(),
        })
    }

    /// Whole or not at all; untouched where it says the same already.
    pub(super) fn write(&self, workspace: &Workspace) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Failed {
            action: "write the record of charts".to_owned(),
            found: error.to_string(),
            hint: "this is a fault in blueprint".to_owned(),
        })?;
        private_file::write(&workspace.charts_record(), format!("{text}\n").as_bytes())?;
        Ok(())
    }
}
