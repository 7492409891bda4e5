//! The definitions taken away again. Which ones we brought is told by the digest that every one of them bears, so no artifact is needed for it.

use blueprint_cluster::object::describe;
use blueprint_pipeline::Outcome;

use super::APPLIED;
use crate::definitions;
use crate::error::Error;
use crate::installer::Work;
use crate::removal;

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
/// The bundle's policy and its binding, the binding first: without it the policy says nothing.
const GUARDS: [&str; 2] = [
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
];
/// What the guards guard.
const GUARDED: &str = "gateway.networking.k8s.io";

async fn definitions(work: Work<'_>) -> Result<Vec<String>, Error> {
    definitions::names(work, |metadata| {
        let annotations = metadata.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.contains_key(APPLIED))
    })
    .await
}

/// Kind and name.
async fn guards(work: Work<'_>) -> Result<Vec<(&'static str, String)>, Error> {
    let mut found = Vec::new();
    for kind in GUARDS {
        let objects = work.context.cluster.list(ADMISSION, kind, None, "").await?;
        found.extend(
            objects
                .into_iter()
                .filter(|object| {
                    let annotations = object.metadata.annotations.as_ref();
                    annotations.is_some_and(|annotations| annotations.contains_key(APPLIED))
                })
                .filter_map(|object| Some((kind, object.metadata.name?))),
        );
    }
    Ok(found)
}

/// What is there of ours.
pub(super) async fn remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let names = definitions(work).await?;
    let guards = guards(work).await?;
    Ok(names
        .iter()
        .map(|name| describe(definitions::KIND, None, name))
        .chain(guards.iter().map(|(kind, name)| describe(kind, None, name)))
        .collect())
}

/// Removes what nobody else uses. As long as one definition of Gateway API stays, its guards stay with it.
pub(super) async fn run(work: Work<'_>) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    let names = definitions(work).await?;
    let kept = definitions::remove(work, &names, &mut outcome).await?;
    if kept.iter().any(|name| name.ends_with(GUARDED)) {
        return Ok(outcome);
    }
    for (kind, name) in guards(work).await? {
        removal::delete(work, ADMISSION, kind, None, &name, &mut outcome).await?;
    }
    Ok(outcome)
}
