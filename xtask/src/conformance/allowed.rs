//! `lab/charts/conformance.yaml`: the differences that are meant, each with its reason.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

use serde::Deserialize;

use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;

/// One thing that a stand-in has otherwise than the real chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) kind: String,
    pub(super) name: String,
    /// `absent`, `added`, `selectors`, `ports`, `secrets`, `routes` or `users`.
    pub(super) what: String,
    pub(super) detail: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind, self.name, self.what)?;
        if self.detail.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.detail)
        }
    }
}

pub(super) struct Allowed(Vec<Entry>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    chart: String,
    kind: String,
    /// `*` is every object of the kind.
    name: String,
    what: What,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Absent,
    Added,
    Selectors,
    Ports,
    Secrets,
    Routes,
    Users,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Added => "added",
            Self::Selectors => "selectors",
            Self::Ports => "ports",
            Self::Secrets => "secrets",
            Self::Routes => "routes",
            Self::Users => "users",
        }
    }
}

impl Allowed {
    pub(super) fn read(lab: &LabHome) -> Result<Self> {
        let path = lab.recipes().join("charts/conformance.yaml");
        let text = fs::read_to_string(&path).file("read", &path)?;
        Self::parse(&text).map_err(|found| Error::content(path.display().to_string(), found))
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let entries: Vec<Entry> =
            serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        match entries.iter().find(|entry| entry.reason.trim().is_empty()) {
            Some(entry) => Err(format!("{} {} has no reason", entry.kind, entry.name)),
            None => Ok(Self(entries)),
        }
    }

    /// The number of the entry that allows a difference.
    pub(super) fn entry(&self, chart: &str, difference: &Difference) -> Option<usize> {
        self.0.iter().position(|entry| {
            entry.chart == chart
                && entry.kind == difference.kind
                && (entry.name == "*" || entry.name == difference.name)
                && entry.what.word() == difference.what
        })
    }

    /// Entries that allowed nothing.
    pub(super) fn unused(&self, used: &BTreeSet<usize>) -> Vec<String> {
        self.0
            .iter()
            .enumerate()
            .filter(|(number, _)| !used.contains(number))
            .map(|(_, entry)| {
                format!(
                    "conformance.yaml allows {} {} {} of {} and nothing differs so: take the entry out",
                    entry.kind,
                    entry.name,
                    entry.what.word(),
                    entry.chart
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "- {chart: a, kind: Job, name: '*', what: absent, reason: not run}\n\
                        - {chart: a, kind: Service, name: x, what: ports, reason: one port}\n";

    fn difference(kind: &str, what: &str) -> Difference {
        Difference {
            kind: kind.to_owned(),
            name: "x".to_owned(),
            what: what.to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn only_what_is_listed_is_allowed_and_an_entry_must_be_of_use() {
        let allowed = Allowed::parse(TEXT).unwrap();
        assert_eq!(allowed.entry("a", &difference("Job", "absent")), Some(0));
        assert_eq!(allowed.entry("b", &difference("Job", "absent")), None);
        assert_eq!(allowed.entry("a", &difference("Service", "secrets")), None);
        let unused = allowed.unused(&BTreeSet::from([0]));
        assert!(
            unused.len() == 1 && unused[0].contains("Service x ports"),
            "{unused:?}"
        );
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        let without = TEXT.replace("one port", "' '");
        assert!(
            Allowed::parse(&without)
                .err()
                .unwrap()
                .contains("no reason")
        );
        assert!(Allowed::parse(&TEXT.replace("ports", "port")).is_err());
    }
}
