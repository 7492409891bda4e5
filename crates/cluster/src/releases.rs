//! Helm's release records, read from their Secrets' labels (type `helm.sh/release.v1`, labels `owner=helm`, `name`, `status`, `version`; helm pkg/storage).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};

use crate::connect::Cluster;
use crate::error::Error;
use crate::retry::patiently;

/// One revision's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRevision {
    /// Revision number.
    pub revision: u32,
    /// `deployed`, `failed`, `superseded`, `pending-install`, `pending-upgrade`, `pending-rollback`, `uninstalling`, `uninstalled`.
    pub status: String,
    /// Labels given with `--labels`.
    pub labels: BTreeMap<String, String>,
}

/// A release's history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// Oldest first.
    pub revisions: Vec<ReleaseRevision>,
}

impl Release {
    /// The newest.
    pub fn newest(&self) -> Option<&ReleaseRevision> {
        self.revisions.last()
    }

    /// The newest that is or was deployed (`deployed`, `superseded`).
    pub fn last_deployed(&self) -> Option<&ReleaseRevision> {
        self.revisions
            .iter()
            .rev()
            .find(|revision| matches!(revision.status.as_str(), "deployed" | "superseded"))
    }
}

/// Labels that helm sets itself (helm pkg/storage/driver/labels.go and secrets.go).
const HELMS_OWN: [&str; 6] = [
    "name",
    "owner",
    "status",
    "version",
    "createdAt",
    "modifiedAt",
];

impl Cluster {
    /// The history of a release; empty when there is none. Only labels are read: a record's body is up to a megabyte.
    pub async fn release(&self, namespace: &str, name: &str) -> Result<Release, Error> {
        let api = Api::<Secret>::namespaced(self.client(), namespace);
        let parameters = ListParams::default().labels(&format!("owner=helm,name={name}"));
        let records = patiently(
            &format!("list the records of release {namespace}/{name}"),
            || api.list_metadata(&parameters),
        )
        .await?;
        Ok(from_labels(
            records
                .items
                .into_iter()
                .filter_map(|record| record.metadata.labels),
        ))
    }
}

/// Records whose revision is not a number are none of helm's.
fn from_labels(records: impl Iterator<Item = BTreeMap<String, String>>) -> Release {
    let mut revisions = records
        .filter_map(|mut labels| {
            let revision = labels.get("version")?.parse().ok()?;
            let status = labels
                .remove("status")
                .unwrap_or_else(|| "unknown".to_owned());
            labels.retain(|label, _| !HELMS_OWN.contains(&label.as_str()));
            Some(ReleaseRevision {
                revision,
                status,
                labels,
            })
        })
        .collect::<Vec<_>>();
    revisions.sort_by_key(|revision| revision.revision);
    Release { revisions }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: &str, status: &str) -> BTreeMap<String, String> {
        [
            ("owner", "helm"),
            ("name", "redis"),
            ("version", version),
            ("status", status),
            ("modifiedAt", "1"),
            ("blueprint-inputs", "abc"),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
    }

    #[test]
    fn revisions_are_sorted_as_numbers_and_keep_only_our_labels() {
        let release = from_labels(
            [
                record("10", "pending-upgrade"),
                record("9", "deployed"),
                record("x", "deployed"),
                record("2", "superseded"),
            ]
            .into_iter(),
        );
        assert_eq!(
            release
                .revisions
                .iter()
                .map(|revision| revision.revision)
                .collect::<Vec<_>>(),
            [2, 9, 10]
        );
        assert_eq!(
            release.newest().map(|revision| revision.status.as_str()),
            Some("pending-upgrade")
        );
        assert_eq!(
            release.last_deployed().map(|revision| revision.revision),
            Some(9)
        );
        assert_eq!(
            release.revisions[0].labels,
            BTreeMap::from([("blueprint-inputs".to_owned(), "abc".to_owned())])
        );
    }

    #[test]
    fn a_release_that_was_never_deployed_has_no_way_back() {
        let release =
            from_labels([record("1", "failed"), record("2", "pending-install")].into_iter());
        assert_eq!(release.last_deployed(), None);
    }
}
