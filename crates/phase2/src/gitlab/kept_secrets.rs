//! Secrets that must be after an upgrade what they were before it.
//!
//! The chart's shared-secrets job reads `gitlab-rails-secret` with `yq`; where that is missing or fails, the job silently makes new keys, nothing restarts,
//! and everything that the old keys encrypted is lost with the next pod. So both are read before helm runs and put back when they changed.

use std::collections::BTreeMap;

use blueprint_cluster::secret::{SecretManifest, SecretRead};
use blueprint_pipeline::Outcome;

use super::readiness::{BUNDLED_OPENBAO, SIDEKIQ, TOOLBOX, WEBSERVICE};
use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::workloads::Workload;

/// The Secret and those who read it when they start.
const KEPT: [(&str, &[Workload]); 2] = [
    ("gitlab-rails-secret", &[WEBSERVICE, SIDEKIQ, TOOLBOX]),
    ("gitlab-openbao-unseal", &[BUNDLED_OPENBAO]),
];

/// What they held before helm ran.
pub(super) struct KeptSecrets {
    before: BTreeMap<&'static str, SecretRead>,
}

impl KeptSecrets {
    /// Reads them; one that does not exist yet may be made.
    pub(super) async fn read(work: Work<'_>) -> Result<Self, Error> {
        let mut before = BTreeMap::new();
        for (name, _) in KEPT {
            if let Some(secret) = work.context.cluster.secret(names::GITLAB, name).await? {
                before.insert(name, secret);
            }
        }
        Ok(Self { before })
    }

    /// Puts back what changed, restarts its readers, and says so.
    pub(super) async fn put_back(
        &self,
        work: Work<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        for (name, readers) in KEPT {
            let Some(before) = self.before.get(name) else {
                continue;
            };
            let after = work.context.cluster.secret(names::GITLAB, name).await?;
            if after.as_ref().is_some_and(|after| holds(after, before)) {
                continue;
            }
            work.context
                .cluster
                .apply_secret(&manifest(name, before))
                .await?;
            outcome.changed(format!(
                "put Secret {}/{name} back to what it held before the upgrade",
                names::GITLAB
            ));
            outcome.note(format!(
                "the chart's shared-secrets job replaced {name}: it could not read the existing one. Its image (cng/kubectl) must bring a working yq; \
                 data written in between with the new keys cannot be read any more"
            ));
            for reader in readers {
                if reader.exists(work).await? {
                    reader.restart(work).await?;
                    outcome.changed(format!("restarted {}", reader.describe()));
                }
            }
        }
        Ok(())
    }
}

/// Every key of `before` with its value; keys that a newer chart added are fine.
fn holds(after: &SecretRead, before: &SecretRead) -> bool {
    before
        .data
        .iter()
        .all(|(key, value)| after.data.get(key) == Some(value))
}

/// Without labels: those are the job's.
fn manifest(name: &str, secret: &SecretRead) -> SecretManifest {
    SecretManifest {
        namespace: names::GITLAB.to_owned(),
        name: name.to_owned(),
        kind: secret.kind.clone(),
        labels: BTreeMap::new(),
        data: secret.data.clone(),
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn secret(pairs: &[(&str, &str)]) -> SecretRead {
        SecretRead {
            kind: "Opaque".to_owned(),
            labels: BTreeMap::new(),
            data: pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), Zeroizing::new(value.as_bytes().to_vec())))
                .collect(),
        }
    }

    #[test]
    fn a_silently_reminted_rails_secret_is_seen() {
        let before = secret(&[("secrets.yml", "production: old")]);
        assert!(!holds(
            &secret(&[("secrets.yml", "production: new")]),
            &before
        ));
        assert!(!holds(&secret(&[]), &before));
        assert!(holds(
            &secret(&[("secrets.yml", "production: old")]),
            &before
        ));
        assert!(holds(
            &secret(&[
                ("secrets.yml", "production: old"),
                ("added", "by a newer chart")
            ]),
            &before
        ));
    }

    #[test]
    fn what_is_put_back_is_what_was_read() {
        let before = secret(&[("secrets.yml", "production: old")]);
        let manifest = manifest("gitlab-rails-secret", &before);
        assert_eq!(
            (manifest.name.as_str(), &manifest.data),
            ("gitlab-rails-secret", &before.data)
        );
        assert!(manifest.labels.is_empty());
    }
}
