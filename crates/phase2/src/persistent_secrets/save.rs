//! From the cluster to the snapshot: what the chart's job made, as it is now, and never other Rails keys than the database's.

use std::collections::BTreeMap;

use blueprint_pipeline::Outcome;
use blueprint_safekeeping::Written;
use blueprint_safekeeping::snapshot::{Snapshot, SnapshotSecret};
use futures::future::try_join_all;

use super::{GENERATED, RAILS, plan, read, release_runs};
use crate::context::Context;
use crate::error::Error;
use crate::installation;
use crate::installer::Work;
use crate::names;

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

/// What the job made: the names it is known for, and whatever else carries the release's label without belonging to the release itself.
pub(super) async fn generated(
    context: &Context,
) -> Result<BTreeMap<String, SnapshotSecret>, Error> {
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
