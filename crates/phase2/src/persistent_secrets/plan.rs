//! What a restore does with each Secret of the snapshot. Pure.

use std::collections::BTreeMap;

use blueprint_cluster::secret::SecretRead;
use blueprint_safekeeping::snapshot::{Snapshot, SnapshotSecret};

use super::restore::InUse;

/// Rails' keys: without the right ones no encrypted column of the database can be read again. The chart's job mints new ones without a word where its `yq` fails.
pub(crate) const RAILS: &str = "gitlab-rails-secret";

/// What to do with one Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// It is not there.
    Create,
    /// All that the snapshot holds is there.
    Keep,
    /// The snapshot's value goes back.
    Replace,
    /// The running release's value stays, and that is said.
    Leave,
}

/// Decides for every Secret. `deployed`: whether a release of GitLab runs with the live ones.
pub(super) fn plan(
    snapshot: &Snapshot,
    live: &BTreeMap<String, SecretRead>,
    deployed: bool,
) -> Vec<(String, Action)> {
    snapshot
        .secrets
        .values()
        .map(|kept| {
            let action = match live.get(&kept.name) {
                None => Action::Create,
                Some(found) if holds(found, kept) => Action::Keep,
                Some(_) if !deployed || kept.name == RAILS => Action::Replace,
                Some(_) => Action::Leave,
            };
            (kept.name.clone(), action)
        })
        .collect()
}

/// Decides for a restore that a person asked for: nothing that a running release depends on is replaced unless that was said, Rails' keys included (the file may be
/// an older one than the database's).
pub(super) fn on_request(
    snapshot: &Snapshot,
    live: &BTreeMap<String, SecretRead>,
    deployed: bool,
    in_use: InUse,
) -> Vec<(String, Action)> {
    snapshot
        .secrets
        .values()
        .map(|kept| {
            let action = match live.get(&kept.name) {
                None => Action::Create,
                Some(found) if holds(found, kept) => Action::Keep,
                Some(_) if !deployed || in_use == InUse::Replace => Action::Replace,
                Some(_) => Action::Leave,
            };
            (kept.name.clone(), action)
        })
        .collect()
}

/// Whether the live Secret holds every value of the snapshot; the job may have added keys since.
fn holds(live: &SecretRead, kept: &SnapshotSecret) -> bool {
    kept.data
        .iter()
        .all(|(key, value)| live.data.get(key) == Some(value))
}

/// The snapshot to write: what is live now, and what only the old snapshot still has (a component that is switched off keeps its data, so it must keep its keys).
pub(super) fn merged(
    namespace: &str,
    old: Option<&Snapshot>,
    live: BTreeMap<String, SnapshotSecret>,
) -> Snapshot {
    let mut secrets = old.map(|old| old.secrets.clone()).unwrap_or_default();
    secrets.extend(live);
    Snapshot {
        namespace: namespace.to_owned(),
        secrets,
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn data(value: &str) -> BTreeMap<String, Zeroizing<Vec<u8>>> {
        BTreeMap::from([("key".to_owned(), Zeroizing::new(value.as_bytes().to_vec()))])
    }

    fn snapshot(names: &[&str]) -> Snapshot {
        let secrets = names
            .iter()
            .map(|name| {
                (
                    (*name).to_owned(),
                    SnapshotSecret {
                        name: (*name).to_owned(),
                        kind: "Opaque".to_owned(),
                        data: data("old"),
                    },
                )
            })
            .collect();
        Snapshot {
            namespace: "gitlab".to_owned(),
            secrets,
        }
    }

    fn live(name: &str, value: &str) -> BTreeMap<String, SecretRead> {
        BTreeMap::from([(
            name.to_owned(),
            SecretRead {
                kind: "Opaque".to_owned(),
                labels: BTreeMap::new(),
                data: data(value),
            },
        )])
    }

    fn only(plan: &[(String, Action)]) -> Action {
        assert_eq!(plan.len(), 1);
        plan[0].1
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_equal_is_kept() {
        assert_eq!(
            only(&plan(&snapshot(&[RAILS]), &BTreeMap::new(), false)),
            Action::Create
        );
        assert_eq!(
            only(&plan(&snapshot(&[RAILS]), &live(RAILS, "old"), true)),
            Action::Keep
        );
    }

    #[test]
    fn keys_that_the_job_added_do_not_matter() {
        let mut found = live(RAILS, "old");
        found
            .get_mut(RAILS)
            .expect("secret")
            .data
            .insert("added".to_owned(), Zeroizing::new(b"x".to_vec()));
        assert_eq!(only(&plan(&snapshot(&[RAILS]), &found, true)), Action::Keep);
    }

    #[test]
    fn without_a_release_the_snapshot_wins() {
        assert_eq!(
            only(&plan(
                &snapshot(&["gitlab-gitaly-secret"]),
                &live("gitlab-gitaly-secret", "new"),
                false
            )),
            Action::Replace
        );
    }

    #[test]
    fn a_rails_secret_that_was_minted_anew_is_always_put_back() {
        assert_eq!(
            only(&plan(&snapshot(&[RAILS]), &live(RAILS, "new"), true)),
            Action::Replace
        );
    }

    #[test]
    fn with_a_release_running_other_secrets_stay_as_the_pods_use_them() {
        assert_eq!(
            only(&plan(
                &snapshot(&["gitlab-gitaly-secret"]),
                &live("gitlab-gitaly-secret", "new"),
                true
            )),
            Action::Leave
        );
    }

    #[test]
    fn a_restore_on_request_replaces_nothing_in_use_unless_that_was_said() {
        for name in [RAILS, "gitlab-gitaly-secret"] {
            let decide = |deployed, in_use| {
                only(&on_request(
                    &snapshot(&[name]),
                    &live(name, "new"),
                    deployed,
                    in_use,
                ))
            };
            assert_eq!(decide(true, InUse::Refuse), Action::Leave);
            assert_eq!(decide(true, InUse::Keep), Action::Leave);
            assert_eq!(decide(true, InUse::Replace), Action::Replace);
            assert_eq!(decide(false, InUse::Refuse), Action::Replace);
            let missing = on_request(&snapshot(&[name]), &BTreeMap::new(), true, InUse::Keep);
            assert_eq!(only(&missing), Action::Create);
        }
    }

    #[test]
    fn a_snapshot_never_forgets_a_secret() {
        let live = BTreeMap::from([(
            "b".to_owned(),
            SnapshotSecret {
                name: "b".to_owned(),
                kind: "Opaque".to_owned(),
                data: data("new"),
            },
        )]);
        let merged = merged("gitlab", Some(&snapshot(&["a", "b"])), live);
        assert_eq!(merged.secrets.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(merged.secrets["b"].data == data("new") && merged.secrets["a"].data == data("old"));
    }
}
