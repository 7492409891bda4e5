//! Step 12, before and after GitLab: the Secrets that the chart's own job generates outlive the cluster in infra/secrets/gitlab-runtime-secrets.yaml.
//!
//! Without the restore the job would mint fresh ones that do not fit the data on the volumes. Ours (PostgreSQL, Redis, object storage, TLS) have files of their own.

mod lost;
mod plan;
mod restore;

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use blueprint_cluster::secret::{SecretManifest, SecretRead};
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::Written;
use blueprint_safekeeping::snapshot::{Snapshot, SnapshotSecret};
use futures::future::try_join_all;

use crate::context::Context;
use crate::error::Error;
use crate::installation;
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::removal::{self, Piece, Removal};
use crate::smoke::CheckResult;

pub(crate) use lost::repositories;
use plan::Action;
pub(crate) use plan::RAILS;
pub use restore::{InUse, restore};

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

/// Names of all that the chart's job made and that is in the cluster now.
pub(crate) async fn names_in_cluster(context: &Context) -> Result<Vec<String>, Error> {
    Ok(generated(context).await?.into_keys().collect())
}

/// Before the Secrets go: the snapshot holds each of them as it is now, or nothing may be removed. Without Rails' keys in the cluster there is nothing new to
/// save (an earlier run was cut off while it removed them, or GitLab never started), but the snapshot must have them when GitLab is installed.
pub(crate) async fn save_the_last(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let context = work.context;
    let live = generated(context).await?;
    if live.contains_key(RAILS) {
        save(work, outcome).await?;
        let kept = read(context)?;
        let held = |name: &String, secret: &SnapshotSecret| {
            kept.as_ref()
                .and_then(|kept| kept.secrets.get(name))
                .is_some_and(|kept| kept == secret)
        };
        let stale: Vec<&str> = live
            .iter()
            .filter(|(name, secret)| !held(name, secret))
            .map(|(name, _)| name.as_str())
            .collect();
        return if stale.is_empty() {
            Ok(())
        } else {
            Err(not_saved(context, &stale.join(", ")))
        };
    }
    let deployed = release_runs(context).await?;
    let kept = read(context)?.is_some_and(|kept| kept.secrets.contains_key(RAILS));
    if deployed && !kept {
        return Err(not_saved(context, RAILS));
    }
    Ok(())
}

fn not_saved(context: &Context, what: &str) -> Error {
    let path = context.workspace.gitlab_snapshot();
    Error::Refused {
        summary: "GitLab's Secrets are not safe on disk, so nothing of GitLab is removed"
            .to_owned(),
        expected: format!(
            "{} with every Secret as the cluster has it now",
            path.display()
        ),
        found: format!("it lacks {what}"),
        hint: format!(
            "put the missing Secret back (copies of the snapshot lie beside it as {}.1 to .5) and run `blueprint up --only secrets-snapshot`; or, if GitLab's data \
             may be lost, `blueprint down --wipe`",
            path.display()
        ),
    }
}

/// `blueprint secrets snapshot`: writes the snapshot now.
pub async fn snapshot(work: Work<'_>) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    save(work, &mut outcome).await?;
    Ok(outcome)
}

/// Writes the snapshot. It can be called as soon as the chart's job has run, so that a run that is cut off while GitLab starts does not lose the keys with the cluster.
pub(crate) async fn save(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let context = work.context;
    let old = read(context)?;
    let live = generated(context).await?;
    if !live.contains_key(RAILS) {
        return Err(Error::Failed {
            action: "snapshot the chart's Secrets".to_owned(),
            found: format!("there is no Secret {}/{RAILS}", names::GITLAB),
            hint: "the chart's shared-secrets job makes it: run `blueprint up --only gitlab`"
                .to_owned(),
        });
    }
    refuse_other_rails_keys(context, old.as_ref(), &live)?;
    let path = context.workspace.gitlab_snapshot();
    let count = live.len();
    let written = plan::merged(names::GITLAB, old.as_ref(), live).write(&path)?;
    if written == Written::Created {
        installation::remember(work).await;
    }
    match written {
        Written::Created => {
            outcome.changed(format!("saved {count} Secrets in {}", path.display()));
        }
        Written::Replaced => outcome.changed(format!(
            "saved {count} Secrets in {}, the former content beside it",
            path.display()
        )),
        Written::Unchanged => {}
    }
    Ok(())
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

/// What the job made: the names it is known for, and whatever else carries the release's label without belonging to the release itself.
async fn generated(context: &Context) -> Result<BTreeMap<String, SnapshotSecret>, Error> {
    let others = labelled(context).await?;
    let mut wanted: Vec<String> = GENERATED
        .iter()
        .map(|name| (*name).to_owned())
        .chain(others)
        .collect();
    wanted.sort_unstable();
    wanted.dedup();
    let found = try_join_all(wanted.into_iter().map(|name| async move {
        let secret = context.cluster.secret(names::GITLAB, &name).await?;
        Ok::<_, Error>(
            secret
                .filter(|secret| secret.kind == "Opaque")
                .map(|secret| {
                    (
                        name.clone(),
                        SnapshotSecret {
                            name,
                            kind: secret.kind,
                            data: secret.data,
                        },
                    )
                }),
        )
    }))
    .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Names of Secrets that carry the release's label without belonging to the release itself.
pub(crate) async fn labelled(context: &Context) -> Result<Vec<String>, Error> {
    let labelled = context
        .cluster
        .list("v1", "Secret", Some(names::GITLAB), "release=gitlab")
        .await?;
    Ok(labelled
        .iter()
        .filter(|secret| !belongs_to_release(secret))
        .filter_map(|secret| secret.metadata.name.clone())
        .collect())
}

/// Helm marks what comes out of the chart's templates; those come back with every install.
fn belongs_to_release(secret: &kube::api::DynamicObject) -> bool {
    let marks = secret.metadata.annotations.as_ref();
    marks.is_some_and(|marks| marks.contains_key("meta.helm.sh/release-name"))
}

/// The snapshot's Rails keys are those of the database. Other ones in the cluster were minted behind our back and must not replace them.
fn refuse_other_rails_keys(
    context: &Context,
    old: Option<&Snapshot>,
    live: &BTreeMap<String, SnapshotSecret>,
) -> Result<(), Error> {
    let kept = old.and_then(|old| old.secrets.get(RAILS));
    let (Some(kept), Some(found)) = (kept, live.get(RAILS)) else {
        return Ok(());
    };
    if kept
        .data
        .iter()
        .all(|(key, value)| found.data.get(key) == Some(value))
    {
        return Ok(());
    }
    Err(Error::Refused {
        summary: format!("Secret {RAILS} in the cluster is not the one of the snapshot"),
        expected: "the keys that the database was written with".to_owned(),
        found: "other keys: the chart's shared-secrets job minted new ones".to_owned(),
        hint: format!(
            "run `blueprint up --from secrets-restore`, which puts the snapshot's keys back; if the new keys are meant, move {} away first",
            context.workspace.gitlab_snapshot().display()
        ),
    })
}
