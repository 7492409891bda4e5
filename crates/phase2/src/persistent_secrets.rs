//! Step 12, before and after GitLab: the Secrets that the chart's own job generates outlive the cluster in infra/secrets/gitlab-runtime-secrets.yaml.
//!
//! Without the restore the job would mint fresh ones that do not fit the data on the volumes. Ours (PostgreSQL, Redis, object storage, TLS) have files of their own.

mod lost;
mod plan;
mod restore;
mod save;

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use blueprint_cluster::secret::{SecretManifest, SecretRead};
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::snapshot::{Snapshot, SnapshotSecret};
use futures::future::try_join_all;

use crate::context::Context;
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::removal::{self, Piece, Removal};
use crate::smoke::CheckResult;

pub(crate) use lost::repositories;
use plan::Action;
pub(crate) use plan::RAILS;
pub use restore::{InUse, restore};
use save::generated;
pub use save::snapshot;
pub(crate) use save::{labelled, names_in_cluster, save, save_the_last};

const RELEASE: &str = "gitlab";

/// What the job generates for a release called `gitlab` (chart 10.1.1, `_generate_secrets.sh.tpl` of shared-secrets, with the names of `templates/_*.tpl`). Those of
/// components that are off are not there, and that is fine. Others that the job labels are found by their label.
pub const GENERATED: [&str; 20] = [
    "gitlab-gitlab-initial-root-password",
    "gitlab-gitlab-kas-secret",
    "gitlab-gitlab-pages-auth-secret",
    "gitlab-gitlab-pages-secret",
    "gitlab-gitlab-runner-secret",
    "gitlab-gitlab-shell-host-keys",
    "gitlab-gitlab-shell-secret",
    "gitlab-gitlab-workhorse-secret",
    "gitlab-gitaly-secret",
    "gitlab-kas-private-api",
    "gitlab-kas-websocket-token",
    "gitlab-oauth-gitlab-pages-secret",
    "gitlab-openbao-audit-secret",
    "gitlab-openbao-unseal",
    "gitlab-praefect-dbsecret",
    "gitlab-praefect-secret",
    RAILS,
    "gitlab-registry-httpsecret",
    "gitlab-registry-notification",
    "gitlab-registry-secret",
];

/// The smoke row that the facts add to the table.
pub const ROW: &str = "Snapshot holds the chart's Secrets";

/// The installer of task `secrets-restore`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SecretsRestore;

/// The installer of task `secrets-snapshot`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SecretsSnapshot;

#[async_trait]
impl Installer for SecretsRestore {
    fn id(&self) -> &'static str {
        "secrets-restore"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let Some(snapshot) = read(work.context)? else {
            return Ok(State::Ready);
        };
        let differs: Vec<String> = planned(work.context, &snapshot)
            .await?
            .into_iter()
            .filter_map(|(name, action)| match action {
                Action::Create => Some(format!("Secret {name} is missing")),
                Action::Replace => Some(format!("Secret {name} differs from the snapshot")),
                Action::Keep | Action::Leave => None,
            })
            .collect();
        Ok(if differs.is_empty() {
            State::Ready
        } else {
            State::Outdated(differs)
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let context = work.context;
        let mut outcome = Outcome::unchanged();
        let Some(snapshot) = read(context)? else {
            outcome.notes.extend(lost::check(context).await?);
            return Ok(outcome);
        };
        outcome
            .changes
            .extend(names::ensure_namespace(&context.cluster, names::GITLAB).await?);
        for (name, action) in planned(context, &snapshot).await? {
            match action {
                Action::Keep => {}
                Action::Leave => outcome.note(format!("Secret {name} differs from the snapshot; GitLab runs with the cluster's, so that stays")),
                Action::Create | Action::Replace => {
                    let Some(kept) = snapshot.secrets.get(&name) else { continue };
                    outcome.changes.extend(context.cluster.apply_secret(&manifest(kept)).await?.phrase());
                    if action == Action::Replace {
                        outcome.note(format!("Secret {name} had been replaced in the cluster; the snapshot's value is back"));
                    }
                }
            }
        }
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::there(work, &[Piece::Namespace(names::GITLAB)]).await
    }

    /// The Secrets that it brought back are GitLab's, and go with it; what is left is the namespace.
    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::remove_all(work, &[Piece::Namespace(names::GITLAB)]).await
    }

    async fn smoke(&self, _work: Work<'_>) -> Vec<CheckResult> {
        Vec::new()
    }
}

#[async_trait]
impl Installer for SecretsSnapshot {
    fn id(&self) -> &'static str {
        "secrets-snapshot"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let Some(old) = read(work.context)? else {
            return Ok(State::Missing);
        };
        let live = generated(work.context).await?;
        let differs: Vec<String> = live
            .iter()
            .filter(|(name, secret)| old.secrets.get(*name) != Some(*secret))
            .map(|(name, _)| format!("the snapshot lacks the current {name}"))
            .collect();
        Ok(if differs.is_empty() {
            State::Ready
        } else {
            State::Outdated(differs)
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        snapshot(work).await
    }

    async fn remains(&self, _work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// One more snapshot, before GitLab goes: what is saved is what was in force last.
    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        let mut outcome = Outcome::unchanged();
        if removal == Removal::Keep {
            save_the_last(work, &mut outcome).await?;
        }
        Ok(outcome)
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        let result = match self.inspect(work).await {
            Ok(State::Ready) => Ok(work
                .context
                .workspace
                .gitlab_snapshot()
                .display()
                .to_string()),
            Ok(State::Missing) => Err(
                "there is no snapshot yet; run `blueprint up --only secrets-snapshot`".to_owned(),
            ),
            Ok(State::Outdated(differs)) => Err(differs.join("; ")),
            Ok(State::Broken(why)) => Err(why),
            Err(error) => Err(error.to_string()),
        };
        vec![CheckResult::from_result(ROW, result)]
    }
}

fn read(context: &Context) -> Result<Option<Snapshot>, Error> {
    let path = context.workspace.gitlab_snapshot();
    let snapshot = Snapshot::read(&path)?;
    match &snapshot {
        Some(found) if found.namespace != names::GITLAB => Err(other_namespace(&path, found)),
        _ => Ok(snapshot),
    }
}

fn other_namespace(path: &Path, found: &Snapshot) -> Error {
    Error::Refused {
        summary: format!("{} is a snapshot of another namespace", path.display()),
        expected: format!("Secrets of namespace {}", names::GITLAB),
        found: format!("namespace {}", found.namespace),
        hint: format!(
            "put the right file back; earlier contents lie beside it as {}.1 to .5",
            path.display()
        ),
    }
}

async fn planned(context: &Context, snapshot: &Snapshot) -> Result<Vec<(String, Action)>, Error> {
    let deployed = release_runs(context).await?;
    Ok(plan::plan(
        snapshot,
        &live(context, snapshot).await?,
        deployed,
    ))
}

async fn release_runs(context: &Context) -> Result<bool, Error> {
    let release = context.cluster.release(names::GITLAB, RELEASE).await?;
    Ok(release.last_deployed().is_some())
}

/// The cluster's Secrets of the snapshot's names.
async fn live(
    context: &Context,
    snapshot: &Snapshot,
) -> Result<BTreeMap<String, SecretRead>, Error> {
    let live = try_join_all(snapshot.secrets.keys().map(|name| async move {
        let secret = context.cluster.secret(names::GITLAB, name).await?;
        Ok::<_, Error>(secret.map(|secret| (name.clone(), secret)))
    }))
    .await?;
    Ok(live.into_iter().flatten().collect())
}

fn manifest(kept: &SnapshotSecret) -> SecretManifest {
    SecretManifest {
        namespace: names::GITLAB.to_owned(),
        name: kept.name.clone(),
        kind: kept.kind.clone(),
        labels: BTreeMap::new(),
        data: kept.data.clone(),
    }
}
