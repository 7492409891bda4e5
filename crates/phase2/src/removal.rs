//! What an installer owns in the cluster, as a list: `down --check` reads it, `down` removes it, piece by piece and in its order.

use std::time::Duration;

use blueprint_cluster::object::describe;
use blueprint_pipeline::Outcome;
use k8s_openapi::api::core::v1::Pod;

use crate::error::Error;
use crate::helm_release::{self, ReleaseSpec};
use crate::installer::Work;
use crate::namespaces;

/// A pod may take its grace period, and a claim waits for its pods.
const GONE_WITHIN: Duration = Duration::from_mins(3);
const PAUSE: Duration = Duration::from_secs(1);

/// How much goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// What is in the cluster; data on the storage root and private files stay, and what only the cluster knew is saved first.
    Keep,
    /// Those too.
    Wipe,
}

/// Something that an installer made.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// A helm release.
    Release(ReleaseSpec),
    /// One object, by its name.
    Object {
        /// apiVersion.
        api_version: &'static str,
        /// kind.
        kind: &'static str,
        /// Namespace, of namespaced kinds.
        namespace: Option<String>,
        /// Name.
        name: String,
    },
    /// Nothing to remove, only to wait for: pods that end after what ran them is gone.
    Pods {
        /// Namespace.
        namespace: &'static str,
        /// Label selector.
        selector: &'static str,
    },
    /// The component's own namespace.
    Namespace(&'static str),
    /// A namespace of several components; it goes with the last of them.
    SharedNamespace(&'static str),
}

impl Piece {
    pub(crate) fn object(
        api_version: &'static str,
        kind: &'static str,
        namespace: Option<&str>,
        name: impl Into<String>,
    ) -> Self {
        Self::Object {
            api_version,
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        }
    }

    pub(crate) fn secret(namespace: &str, name: impl Into<String>) -> Self {
        Self::object("v1", "Secret", Some(namespace), name)
    }

    pub(crate) fn claim(namespace: &str, name: impl Into<String>) -> Self {
        Self::object("v1", "PersistentVolumeClaim", Some(namespace), name)
    }

    /// How it is called, if it is there and ours.
    async fn there(&self, work: Work<'_>) -> Result<Option<String>, Error> {
        let cluster = &work.context.cluster;
        match self {
            Self::Release(spec) => helm_release::uninstall::there(work, spec).await,
            Self::Object {
                api_version,
                kind,
                namespace,
                name,
            } => Ok(cluster
                .get(api_version, kind, namespace.as_deref(), name)
                .await?
                .map(|_| describe(kind, namespace.as_deref(), name))),
            Self::Namespace(name) => namespaces::there(work, name).await,
            Self::Pods { .. } | Self::SharedNamespace(_) => Ok(None),
        }
    }

    async fn remove(&self, work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        match self {
            Self::Release(spec) => helm_release::uninstall::run(work, spec, outcome).await,
            Self::Object {
                api_version,
                kind,
                namespace,
                name,
            } => {
                let what = describe(kind, namespace.as_deref(), name);
                delete(work, api_version, kind, namespace.as_deref(), name, outcome)
                    .await
                    .map_err(|error| stuck(error, &what))
            }
            Self::Pods {
                namespace,
                selector,
            } => wait_ended(work, namespace, selector).await,
            Self::Namespace(name) | Self::SharedNamespace(name) => {
                namespaces::leave(work, name, outcome).await
            }
        }
    }
}

/// Deletes one object, waits until it is gone, and says so if it was there.
pub(crate) async fn delete(
    work: Work<'_>,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    if cluster
        .delete(api_version, kind, namespace, name, GONE_WITHIN)
        .await?
    {
        outcome.changed(format!("deleted {}", describe(kind, namespace, name)));
    }
    Ok(())
}

/// A deletion that somebody holds up is nothing that a second try mends.
fn stuck(error: Error, what: &str) -> Error {
    match error {
        Error::Cluster(blueprint_cluster::Error::Deadline { blocker, .. }) => Error::Failed {
            action: format!("delete {what}"),
            found: blocker,
            hint: "whoever set that finalizer or uses it has to let go; then run `blueprint down` again, it goes on from here".to_owned(),
        },
        other => other,
    }
}

async fn wait_ended(work: Work<'_>, namespace: &str, selector: &str) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    let what = format!("the pods `{selector}` of {namespace} to end");
    cluster
        .wait_until(
            &what,
            GONE_WITHIN,
            PAUSE,
            &|blocker| work.progress.waiting(blocker),
            || async {
                let pods = cluster.pods(namespace, selector).await?;
                let running = pods
                    .into_iter()
                    .filter(|pod| !has_run(pod))
                    .find_map(|pod| pod.metadata.name);
                Ok(running.map_or(Ok(()), |name| {
                    Err(format!("pod {namespace}/{name} is ending"))
                }))
            },
        )
        .await?;
    Ok(())
}

/// A pod of a finished Job uses nothing any more, and goes with it.
fn has_run(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Those of the pieces that are there.
pub(crate) async fn there(work: Work<'_>, pieces: &[Piece]) -> Result<Vec<String>, Error> {
    let looks = pieces.iter().map(|piece| piece.there(work));
    let found = futures::future::try_join_all(looks).await?;
    Ok(found.into_iter().flatten().collect())
}

/// Removes them, one after the other, each gone before the next.
pub(crate) async fn remove(
    work: Work<'_>,
    pieces: &[Piece],
    outcome: &mut Outcome,
) -> Result<(), Error> {
    for piece in pieces {
        piece.remove(work, outcome).await?;
    }
    Ok(())
}

/// [`remove`] as an installer's whole uninstall.
pub(crate) async fn remove_all(work: Work<'_>, pieces: &[Piece]) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    remove(work, pieces, &mut outcome).await?;
    Ok(outcome)
}
