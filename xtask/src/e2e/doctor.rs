//! What `blueprint doctor` answers, for checks that have made something ill.

use serde_json::Value;

use super::{Scene, expect};
use crate::error::{Error, Result};

/// Exit code and findings.
pub(super) struct Doctor {
    pub(super) code: Option<i32>,
    report: Value,
    told: String,
}

impl Doctor {
    /// Runs it; `--fix` where `fix` is given.
    pub(super) fn ask(scene: &Scene, fix: &[&str]) -> Result<Self> {
        let (code, out, told) = scene
            .platform
            .blueprint()
            .args(["doctor", "--output", "json"])
            .args(fix)
            .captured()?;
        let report = serde_json::from_str(&out)
            .map_err(|error| Error::content(format!("doctor's answer ({code:?}) {told}"), error))?;
        Ok(Self { code, report, told })
    }

    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.report["findings"].as_array().into_iter().flatten()
    }

    /// Subjects of what is ill, in the order told.
    pub(super) fn ill(&self) -> Vec<&str> {
        self.findings()
            .filter(|finding| finding["verdict"] == "ill")
            .filter_map(|finding| finding["subject"].as_str())
            .collect()
    }

    /// Everything said about a subject, as one text; nothing where it is not ill.
    pub(super) fn about(&self, subject: &str) -> String {
        self.findings()
            .filter(|finding| finding["subject"] == subject && finding["verdict"] == "ill")
            .map(ToString::to_string)
            .collect()
    }

    /// Exit code 4, and this told about this subject: with evidence, a cause and a remedy.
    pub(super) fn must_blame(&self, subject: &str, words: &[&str]) -> Result<()> {
        let about = self.about(subject);
        let finding: Value = serde_json::from_str(&about).unwrap_or_default();
        let complete = ["cause", "remedy"]
            .iter()
            .all(|key| finding[key].is_string());
        expect(
            self.code == Some(4) && complete && words.iter().all(|word| about.contains(word)),
            &format!(
                "exit code 4, `{subject}` with {} and a cause and a remedy",
                words.join(", ")
            ),
            format!(
                "exit code {:?}; ill: {}; {about}",
                self.code,
                self.ill().join(", ")
            ),
        )
        .map(drop)
    }

    /// Exit code 0 and nothing ill.
    pub(super) fn must_be_clean(&self) -> Result<()> {
        let ill: Vec<String> = self
            .ill()
            .into_iter()
            .map(|subject| self.about(subject))
            .collect();
        expect(
            self.code == Some(0) && ill.is_empty(),
            "exit code 0, nothing ill",
            format!(
                "exit code {:?}; {}; {}",
                self.code,
                ill.join("; "),
                self.told
            ),
        )
        .map(drop)
    }
}
