//! The claim of the PostgreSQL volume, brought to what the decision about the volume asks for before the Cluster is made.

use std::time::Duration;

use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::Value;

use super::volume_decision::Decision;
use super::volume_probe::VOLUME;
use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::removal;
use crate::smoke_row::unexpected;
use crate::stable_storage::stable_volume;

const REFERENCE: &str = "adoptable-claim-postgresql.yaml";
/// A deleted Cluster's claim goes in the background; 15 s were measured.
const GONE_WITHIN: Duration = Duration::from_mins(3);
const PAUSE: Duration = Duration::from_secs(1);

/// What to do about a claim that is there although no Cluster is.
#[derive(Debug, PartialEq, Eq)]
enum Leftover {
    /// Being deleted, or owned by a Cluster that is gone: it will go.
    Going,
    /// Without owner, as adoption wants it.
    Adoptable,
}

fn leftover(claim: &DynamicObject) -> Leftover {
    let owned = claim
        .metadata
        .owner_references
        .as_ref()
        .is_some_and(|owners| !owners.is_empty());
    if owned || claim.metadata.deletion_timestamp.is_some() {
        Leftover::Going
    } else {
        Leftover::Adoptable
    }
}

/// Adopt: the adoptable claim is there. Initialise: no claim is there, because one on an empty volume would keep the operator from initdb for ever.
/// Only called while there is no Cluster.
pub(super) async fn ensure(
    work: Work<'_>,
    decision: &Decision,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let manifest = manifest(work)?;
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let there = read(work, name).await?;
    if there.as_ref().map(leftover) == Some(Leftover::Going) {
        wait_gone(work, name).await?;
    } else if there.is_some() && *decision == Decision::Initialise {
        work.context
            .cluster
            .delete(
                "v1",
                "PersistentVolumeClaim",
                Some(names::POSTGRESQL),
                name,
                GONE_WITHIN,
            )
            .await?;
        outcome.changed(format!("deleted PersistentVolumeClaim {}/{name}: its volume is empty, and adopting it would never come up", names::POSTGRESQL));
    }
    // A claim that went just now leaves the volume Released.
    stable_volume(work, VOLUME)?.ensure(work, outcome).await?;
    if let Decision::Adopt { system_identifier } = decision
        && let Some(phrase) = work.context.cluster.apply(&manifest).await?.phrase()
    {
        outcome.changed(format!(
            "{phrase}, to adopt the data of system {system_identifier}"
        ));
    }
    Ok(())
}

/// The claim's name.
pub(super) fn name(work: Work<'_>) -> Result<String, Error> {
    Ok(manifest(work)?["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

/// The claim of a Cluster that was deleted: it is waited for; one without an owner is nobody's to remove but ours.
pub(super) async fn wait_gone_or_delete(
    work: Work<'_>,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let name = name(work)?;
    match read(work, &name).await?.as_ref().map(leftover) {
        None => Ok(()),
        Some(Leftover::Going) => wait_gone(work, &name).await,
        Some(Leftover::Adoptable) => {
            removal::delete(
                work,
                "v1",
                "PersistentVolumeClaim",
                Some(names::POSTGRESQL),
                &name,
                outcome,
            )
            .await
        }
    }
}

fn manifest(work: Work<'_>) -> Result<Value, Error> {
    work.context
        .references
        .documents(REFERENCE)?
        .into_iter()
        .next()
        .ok_or_else(|| {
            unexpected(
                &format!("read {REFERENCE}"),
                "the file is empty",
                "compare it with the one that `blueprint init` writes",
            )
        })
}

async fn read(work: Work<'_>, name: &str) -> Result<Option<DynamicObject>, Error> {
    Ok(work
        .context
        .cluster
        .get("v1", "PersistentVolumeClaim", Some(names::POSTGRESQL), name)
        .await?)
}

async fn wait_gone(work: Work<'_>, name: &str) -> Result<(), Error> {
    let what = format!(
        "PersistentVolumeClaim {}/{name} of the former Cluster to be gone",
        names::POSTGRESQL
    );
    let cluster = &work.context.cluster;
    cluster
        .wait_until(
            &what,
            GONE_WITHIN,
            PAUSE,
            &|blocker| work.progress.waiting(blocker),
            || async {
                let there = cluster
                    .get("v1", "PersistentVolumeClaim", Some(names::POSTGRESQL), name)
                    .await?;
                Ok(there.map_or(Ok(()), |claim| Err(held_by(&claim))))
            },
        )
        .await?;
    Ok(())
}

fn held_by(claim: &DynamicObject) -> String {
    match claim.metadata.finalizers.as_deref() {
        Some([first, ..]) if claim.metadata.deletion_timestamp.is_some() => {
            format!("it is being deleted and held by {first} (a pod may still use it)")
        }
        _ => "its owner was deleted, it is not yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(metadata: &Value) -> DynamicObject {
        serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}),
        )
        .unwrap()
    }

    #[test]
    fn a_claim_with_an_owner_or_in_deletion_is_waited_for_not_adopted() {
        let owner = json!([{"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": "c", "uid": "u"}]);
        assert_eq!(
            leftover(&claim(&json!({"name": "x", "ownerReferences": owner}))),
            Leftover::Going
        );
        assert_eq!(
            leftover(&claim(
                &json!({"name": "x", "deletionTimestamp": "2026-11-30T10:00:00Z"})
            )),
            Leftover::Going
        );
        assert_eq!(leftover(&claim(&json!({"name": "x"}))), Leftover::Adoptable);
    }

    #[test]
    fn a_claim_that_hangs_names_what_holds_it() {
        let held = claim(
            &json!({"name": "x", "deletionTimestamp": "2026-11-30T10:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}),
        );
        assert!(held_by(&held).contains("kubernetes.io/pvc-protection"));
    }
}
