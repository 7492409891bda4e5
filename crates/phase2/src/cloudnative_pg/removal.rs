//! The Cluster and the operator taken away again. The data stays on its volume, where the next install adopts it.

use blueprint_cluster::object::describe;
use blueprint_pipeline::Outcome;

use super::databases;
use super::operator::RELEASE;
use super::{claim, cluster, roles};
use crate::definitions;
use crate::error::Error;
use crate::helm_release;
use crate::installer::Work;
use crate::names;
use crate::removal::{self, Piece, Removal};

/// The operator copies its default queries into each namespace with a Cluster, without an owner, and leaves them there (`internal/controller/cluster_create.go`,
/// `createOrPatchDefaultMetricsConfigmap`).
const MONITORING: &str = "cnpg-default-monitoring";

/// Databases first, while there is an operator and an instance to let go of their finalizers; then the Cluster, whose pod and claim follow in the background.
fn pieces(databases: Vec<String>, roles: &[roles::Role]) -> Vec<Piece> {
    let namespace = Some(names::POSTGRESQL);
    let mut pieces: Vec<Piece> = databases
        .into_iter()
        .map(|name| Piece::object(databases::API, "Database", namespace, name))
        .collect();
    pieces.push(Piece::object(
        databases::API,
        "Cluster",
        namespace,
        names::CNPG_CLUSTER,
    ));
    pieces.push(Piece::Pods {
        namespace: names::POSTGRESQL,
        selector: cluster::PODS,
    });
    pieces.push(Piece::object("v1", "ConfigMap", namespace, MONITORING));
    pieces.extend(
        roles
            .iter()
            .map(|role| Piece::secret(names::POSTGRESQL, role.secret.clone())),
    );
    pieces
}

fn all(work: Work<'_>) -> Result<(Vec<Piece>, Vec<roles::Role>), Error> {
    let declared = roles::declared(&cluster::manifest(work)?);
    let names = databases::manifests(work)?
        .iter()
        .filter_map(|manifest| manifest["metadata"]["name"].as_str().map(str::to_owned))
        .collect();
    Ok((pieces(names, &declared), declared))
}

pub(super) async fn cluster_remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let (mut pieces, _) = all(work)?;
    pieces.push(Piece::claim(names::POSTGRESQL, claim::name(work)?));
    pieces.push(Piece::Namespace(names::POSTGRESQL));
    removal::there(work, &pieces).await
}

pub(super) async fn cluster_run(work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    let (pieces, declared) = all(work)?;
    if removal == Removal::Keep {
        roles::save_lost(work, &declared, &mut outcome).await?;
        cluster::record_if_unknown(work, &mut outcome).await?;
    }
    removal::remove(work, &pieces, &mut outcome).await?;
    // Its owner is gone, so it goes by itself; one that had no owner yet (made for an adoption that never came) does not.
    claim::wait_gone_or_delete(work, &mut outcome).await?;
    removal::remove(work, &[Piece::Namespace(names::POSTGRESQL)], &mut outcome).await?;
    Ok(outcome)
}

/// The chart's definitions: they carry resource-policy keep, so they outlive the release, and helm's annotations still say whose they are.
async fn chart_definitions(work: Work<'_>) -> Result<Vec<String>, Error> {
    let release = &work.context.versions.chart(RELEASE.key)?.name;
    definitions::names(work, |metadata| {
        let is = |key: &str, value: &str| {
            let annotations = metadata.annotations.as_ref();
            annotations
                .and_then(|annotations| annotations.get(key))
                .is_some_and(|found| found == value)
        };
        is("meta.helm.sh/release-name", release)
            && is("meta.helm.sh/release-namespace", RELEASE.namespace)
    })
    .await
}

fn operator_pieces() -> [Piece; 2] {
    [
        Piece::Release(RELEASE),
        Piece::Pods {
            namespace: names::CNPG_SYSTEM,
            selector: super::operator::CONTROLLER.pods,
        },
    ]
}

pub(super) async fn operator_remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut found = removal::there(work, &operator_pieces()).await?;
    let names = chart_definitions(work).await?;
    found.extend(
        names
            .iter()
            .map(|name| describe(definitions::KIND, None, name)),
    );
    found.extend(removal::there(work, &[Piece::Namespace(names::CNPG_SYSTEM)]).await?);
    Ok(found)
}

/// An operator that runs somebody else's PostgreSQL stays: without it nobody looks after that.
pub(super) async fn operator_run(work: Work<'_>) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    helm_release::uninstall::check_ours(work, &RELEASE).await?;
    let clusters = work
        .context
        .cluster
        .list(databases::API, "Cluster", None, "")
        .await?;
    if !clusters.is_empty() {
        let others: Vec<String> = clusters
            .iter()
            .map(|cluster| {
                let name = cluster.metadata.name.as_deref().unwrap_or_default();
                describe("Cluster", cluster.metadata.namespace.as_deref(), name)
            })
            .collect();
        outcome.note(format!(
            "the CloudNativePG operator stays: it runs {}",
            others.join(", ")
        ));
        return Ok(outcome);
    }
    // Read before: without the release nothing else tells where the definitions came from when a definition is left over.
    let names = chart_definitions(work).await?;
    removal::remove(work, &operator_pieces(), &mut outcome).await?;
    definitions::remove(work, &names, &mut outcome).await?;
    removal::remove(work, &[Piece::Namespace(names::CNPG_SYSTEM)], &mut outcome).await?;
    Ok(outcome)
}
