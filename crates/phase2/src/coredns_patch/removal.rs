//! The names taken back: the Corefile is what it was, byte for byte, and its pods run from the template that they had.

use blueprint_cluster::object::describe;
use blueprint_cluster::{WaitFor, wait};
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{
    ANNOTATION, KUBE_SYSTEM, REFERENCE, ROLLOUT, SERVERS, Server, corefile, corefile_of, probe,
    refusal,
};
use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::removal::{self, Piece};

/// Our mark on the pod template of a Deployment, DaemonSet or `ReplicaSet`.
fn mark(template_owner: &DynamicObject) -> Option<&Value> {
    let annotations = template_owner
        .data
        .pointer("/spec/template/metadata/annotations")?;
    annotations.get(ANNOTATION)
}

/// A server's Corefile as it is and as it was, where there is one.
async fn corefiles(work: Work<'_>, server: &Server) -> Result<Option<(String, String)>, Error> {
    let found = work
        .context
        .cluster
        .get("v1", "ConfigMap", Some(KUBE_SYSTEM), server.config_map)
        .await?;
    let Some(current) = found.as_ref().and_then(corefile_of) else {
        return Ok(None);
    };
    let former = corefile::without_stanza(&current).map_err(|found| refusal(server, &found))?;
    Ok(Some((current, former)))
}

async fn workload(work: Work<'_>, server: &Server) -> Result<Option<DynamicObject>, Error> {
    Ok(work
        .context
        .cluster
        .get("apps/v1", server.kind, Some(KUBE_SYSTEM), server.name)
        .await?)
}

fn pieces(work: Work<'_>) -> Result<Vec<Piece>, Error> {
    let documents = work.context.references.documents(REFERENCE)?;
    let mut pieces: Vec<Piece> = documents
        .iter()
        .filter_map(|document| document["metadata"]["name"].as_str())
        .map(|name| Piece::object("v1", "Service", Some(names::GITLAB), name))
        .collect();
    // What a run that was cut off left.
    pieces.push(Piece::object("v1", "Pod", Some(names::GITLAB), probe::POD));
    pieces.push(Piece::SharedNamespace(names::GITLAB));
    Ok(pieces)
}

pub(super) async fn remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut found = removal::there(work, &pieces(work)?).await?;
    for server in &SERVERS {
        if corefiles(work, server)
            .await?
            .is_some_and(|(current, former)| current != former)
        {
            found.push(format!(
                "our lines in ConfigMap {KUBE_SYSTEM}/{}",
                server.config_map
            ));
        }
        if workload(work, server)
            .await?
            .as_ref()
            .and_then(mark)
            .is_some()
        {
            found.push(format!("our mark on {}", described(server)));
        }
    }
    Ok(found)
}

fn described(server: &Server) -> String {
    describe(server.kind, Some(KUBE_SYSTEM), server.name)
}

pub(super) async fn run(work: Work<'_>) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    for server in &SERVERS {
        give_back(work, server, &mut outcome).await?;
        roll_back(work, server, &mut outcome).await?;
    }
    removal::remove(work, &pieces(work)?, &mut outcome).await?;
    Ok(outcome)
}

async fn give_back(work: Work<'_>, server: &Server, outcome: &mut Outcome) -> Result<(), Error> {
    let Some((current, former)) = corefiles(work, server).await? else {
        return Ok(());
    };
    if current == former {
        return Ok(());
    }
    let patch = json!({"data": {"Corefile": former}});
    work.context
        .cluster
        .merge_patch(
            "v1",
            "ConfigMap",
            Some(KUBE_SYSTEM),
            server.config_map,
            &patch,
        )
        .await?;
    outcome.changed(format!(
        "took our lines out of ConfigMap {KUBE_SYSTEM}/{}",
        server.config_map
    ));
    Ok(())
}

/// Without our mark the pod template is the one from before, so the controller takes its former `ReplicaSet` up again; the one that bore the mark is history
/// that nobody goes back to.
async fn roll_back(work: Work<'_>, server: &Server, outcome: &mut Outcome) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    let Some(found) = workload(work, server).await? else {
        return Ok(());
    };
    if mark(&found).is_some() {
        let patch =
            json!({"spec": {"template": {"metadata": {"annotations": {ANNOTATION: null}}}}});
        cluster
            .merge_patch(
                "apps/v1",
                server.kind,
                Some(KUBE_SYSTEM),
                server.name,
                &patch,
            )
            .await?;
        outcome.changed(format!(
            "restarted {} with its former Corefile",
            described(server)
        ));
    }
    let former = former_replica_sets(work, server).await?;
    if mark(&found).is_none() && former.is_empty() {
        return Ok(());
    }
    let what = format!("{} to serve the former Corefile", server.name);
    let target = WaitFor {
        what: &what,
        api_version: "apps/v1",
        kind: server.kind,
        namespace: Some(KUBE_SYSTEM),
        name: server.name,
        pods: Some(server.pods),
        deadline: ROLLOUT,
    };
    cluster
        .wait(&target, &wait::workload_ready, &|blocker| {
            work.progress.waiting(blocker);
        })
        .await?;
    for name in former {
        removal::delete(
            work,
            "apps/v1",
            "ReplicaSet",
            Some(KUBE_SYSTEM),
            &name,
            outcome,
        )
        .await?;
    }
    Ok(())
}

/// Those that bear our mark.
async fn former_replica_sets(work: Work<'_>, server: &Server) -> Result<Vec<String>, Error> {
    let sets = work
        .context
        .cluster
        .list("apps/v1", "ReplicaSet", Some(KUBE_SYSTEM), server.pods)
        .await?;
    Ok(sets
        .into_iter()
        .filter(|set| mark(set).is_some())
        .filter_map(|set| set.metadata.name)
        .collect())
}
