//! The eleven buckets, through the S3 API.

use std::time::Duration;

use async_trait::async_trait;
use blueprint_pipeline::Outcome;

use super::release::keys_in_cluster;
use super::s3::{Keys, S3, S3Error};
use super::storage_secret;
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::removal::{self, Piece, Removal};
use crate::smoke::CheckResult;
use crate::smoke_row;

const TASK: &str = "buckets";

/// What helm-values-gitlab.yaml names, and `gitlab-pages` and `gitlab-snippets`, which the specification lists for features that are off in the chart's values
/// (Pages) or that keep their content elsewhere (snippets are Git repositories).
pub(crate) const BUCKETS: [&str; 11] = [
    "git-lfs",
    "gitlab-artifacts",
    "gitlab-backups",
    "gitlab-ci-secure-files",
    "gitlab-dependency-proxy",
    "gitlab-packages",
    "gitlab-pages",
    "gitlab-snippets",
    "gitlab-terraform-state",
    "gitlab-uploads",
    "registry",
];

/// Where a small object is written, read and removed again to prove that the keys can.
const PROOF_BUCKET: &str = "gitlab-backups";
const PROOF_KEY: &str = "blueprint/write-proof";

/// Buckets and `gitlab-rails-storage`.
#[derive(Debug, Clone, Copy)]
pub struct Buckets;

#[async_trait]
impl Installer for Buckets {
    fn id(&self) -> &'static str {
        TASK
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let Some(keys) = keys_in_cluster(work).await? else {
            return Ok(State::Missing);
        };
        let missing = match look(work, &keys).await? {
            Ok(missing) => missing,
            Err(error) => return Ok(State::Broken(format!("MinIO: {error}"))),
        };
        let mut differs: Vec<String> = missing
            .iter()
            .map(|name| format!("bucket {name} is missing"))
            .collect();
        if !storage_secret::is_current(work, &keys).await? {
            differs.push(format!(
                "Secret {}/{} is missing or differs",
                names::GITLAB,
                names::RAILS_STORAGE
            ));
        }
        Ok(if missing.len() == BUCKETS.len() {
            State::Missing
        } else if differs.is_empty() {
            State::Ready
        } else {
            State::Outdated(differs)
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let keys = keys_in_cluster(work).await?.ok_or_else(|| Error::Failed {
            action: "make the buckets".to_owned(),
            found: format!("no Secret {}/minio-root", names::MINIO),
            hint: "run `blueprint up --only minio` first".to_owned(),
        })?;
        let s3 = open(work, &keys).await?;
        let found = s3
            .list_buckets()
            .await
            .map_err(|error| failed("list the buckets", &error))?;
        for name in BUCKETS.iter().filter(|name| !found.contains(**name)) {
            s3.create_bucket(name)
                .await
                .map_err(|error| failed(&format!("make bucket {name}"), &error))?;
            outcome.changed(format!("made bucket {name}"));
        }
        outcome
            .changes
            .extend(names::ensure_namespace(&work.context.cluster, names::GITLAB).await?);
        outcome.changes.extend(
            work.context
                .cluster
                .apply_secret(&storage_secret::manifest(&keys))
                .await?
                .phrase(),
        );
        if !outcome.changes.is_empty() {
            s3.round_trip(PROOF_BUCKET, PROOF_KEY)
                .await
                .map_err(|error| failed("write, read and remove an object", &error))?;
        }
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::there(work, &pieces()).await
    }

    /// The buckets themselves are data: they stay on the volume, or go with it.
    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::remove_all(work, &pieces()).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![smoke_row::row(
            "11 GitLab buckets exist",
            TASK,
            all_there(work).await,
        )]
    }
}

fn pieces() -> [Piece; 2] {
    [
        Piece::secret(names::GITLAB, names::RAILS_STORAGE),
        Piece::SharedNamespace(names::GITLAB),
    ]
}

async fn all_there(work: Work<'_>) -> Result<String, Error> {
    let hint = "run `blueprint up --only buckets`";
    let secret = storage_secret::keys_in_secret(work).await?;
    let Some(keys) = secret else {
        let found = format!(
            "no readable Secret {}/{}",
            names::GITLAB,
            names::RAILS_STORAGE
        );
        return Err(smoke_row::unexpected(
            "list the buckets as GitLab",
            found,
            hint,
        ));
    };
    match look(work, &keys).await? {
        Ok(missing) if missing.is_empty() => Ok(format!(
            "all {} with the keys that GitLab has",
            BUCKETS.len()
        )),
        Ok(missing) => Err(smoke_row::unexpected(
            "find every bucket",
            format!("missing: {}", missing.join(", ")),
            hint,
        )),
        Err(error) => Err(smoke_row::unexpected(
            "list the buckets as GitLab",
            error.to_string(),
            hint,
        )),
    }
}

/// Which of ours are missing.
async fn look(work: Work<'_>, keys: &Keys) -> Result<Result<Vec<&'static str>, S3Error>, Error> {
    let s3 = match S3::open(work, keys).await? {
        Ok(s3) => s3,
        Err(error) => return Ok(Err(error)),
    };
    Ok(s3.list_buckets().await.map(|found| {
        BUCKETS
            .iter()
            .filter(|name| !found.contains(**name))
            .copied()
            .collect()
    }))
}

/// Opened once it answers: a moment after a restart the forward's pod may not listen yet.
async fn open(work: Work<'_>, keys: &Keys) -> Result<S3, Error> {
    let say = |blocker| work.progress.waiting(blocker);
    let attempt = || async move {
        let s3 = match S3::open(work, keys).await {
            Ok(Ok(s3)) => s3,
            Ok(Err(error)) => return Ok(Err(format!("MinIO: {error}"))),
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(match s3.list_buckets().await {
            Ok(_) => Ok(s3),
            Err(error) => Err(format!("MinIO: {error}")),
        })
    };
    let cluster = &work.context.cluster;
    Ok(cluster
        .wait_until(
            "an answer from MinIO's S3 API",
            Duration::from_mins(1),
            Duration::from_secs(1),
            &say,
            attempt,
        )
        .await?)
}

fn failed(action: &str, error: &S3Error) -> Error {
    Error::Failed {
        action: action.to_owned(),
        found: error.to_string(),
        hint: "look at the pod's log: `kubectl -n minio logs deploy/minio`; a full or read-only volume shows there".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    /// Every string under a key named `bucket` or `tmpBucket` whose section is not switched off.
    fn named_buckets(value: &Value, into: &mut BTreeSet<String>) {
        let Some(map) = value.as_object() else { return };
        if map.get("enabled") == Some(&Value::Bool(false)) {
            return;
        }
        for (key, inner) in map {
            match inner.as_str() {
                Some(name) if key == "bucket" || key == "tmpBucket" => {
                    into.insert(name.to_owned());
                }
                _ => named_buckets(inner, into),
            }
        }
    }

    #[test]
    fn every_bucket_that_gitlabs_values_name_is_made() {
        let text = include_str!("../../../../infra/phase2/references/helm-values-gitlab.yaml");
        let values =
            blueprint_charts::yaml::document(text, Path::new("helm-values-gitlab.yaml")).unwrap();
        let mut named = BTreeSet::new();
        named_buckets(&values, &mut named);
        assert!(named.len() >= 9, "{named:?}");
        let ours: BTreeSet<String> = BUCKETS.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            named.difference(&ours).collect::<Vec<_>>(),
            Vec::<&String>::new()
        );
        assert_eq!(ours.len(), 11);
    }
}
