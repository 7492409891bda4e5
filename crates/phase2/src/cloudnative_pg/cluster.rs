//! Task `cnpg-cluster`: the Cluster on its stable volume, its roles and databases, and the record of which system it is.

use std::time::Duration;

use async_trait::async_trait;
use blueprint_cluster::wait::condition_true;
use blueprint_cluster::{Verdict, WaitFor};
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::private_file;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{claim, databases, removal, roles, volume_probe};
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::references::image_reference;
use crate::removal::Removal;
use crate::role_connection::{self, query_failed};
use crate::role_passwords::role_password;
use crate::smoke::{self, CheckResult};
use crate::smoke_row::{row, unexpected};

const REFERENCE: &str = "cluster-postgresql.yaml";
/// All pods of the Cluster, also those of its initdb Job.
pub(super) const PODS: &str = "cnpg.io/cluster=postgresql-cnpg";
/// The primary's pod.
pub(super) const PRIMARY: &str = "cnpg.io/cluster=postgresql-cnpg,cnpg.io/instanceRole=primary";
/// PostgreSQL's port in the pod.
pub(super) const PORT: u16 = 5432;
const GONE_WITHIN: Duration = Duration::from_mins(3);
/// From nothing 26 s were measured, images at hand; pulling them may take minutes.
const READY_WITHIN: Duration = Duration::from_mins(10);
/// Ready may come just before the server accepts.
const ANSWERS_WITHIN: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_secs(1);
const ROLES_ROW: &str = "PostgreSQL roles, databases and extensions";

/// The installer of task `cnpg-cluster`.
#[derive(Debug)]
pub struct CnpgCluster;

/// The Cluster as it is.
pub(super) async fn read(work: Work<'_>) -> Result<Option<DynamicObject>, Error> {
    Ok(work
        .context
        .cluster
        .get(
            databases::API,
            "Cluster",
            Some(names::POSTGRESQL),
            names::CNPG_CLUSTER,
        )
        .await?)
}

/// For pre-flight: refuses when a role has two passwords and PostgreSQL takes neither.
pub(super) async fn try_passwords(work: Work<'_>) -> Result<(), Error> {
    roles::try_passwords(work, &declared_roles(work)?).await
}

/// The roles that the reference declares.
pub(super) fn declared_roles(work: Work<'_>) -> Result<Vec<roles::Role>, Error> {
    Ok(roles::declared(&manifest(work)?))
}

/// The reference with the pinned image in it.
pub(super) fn manifest(work: Work<'_>) -> Result<Value, Error> {
    let mut manifest = work
        .context
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
        })?;
    manifest["spec"]["imageName"] =
        json!(image_reference(work.context.versions.image("postgresql")?));
    Ok(manifest)
}

pub(super) fn system_identifier(cluster: &DynamicObject) -> Option<u64> {
    cluster.data["status"]["systemID"].as_str()?.parse().ok()
}

/// Ready, with a system identifier (`Initialized` is set within a second and proves nothing) and every declared role reconciled.
fn judge(cluster: Option<&DynamicObject>, declared: &[roles::Role]) -> Verdict {
    let Some(there) = cluster else {
        return Verdict::Waiting("it does not exist yet".to_owned());
    };
    match condition_true("Ready")(cluster) {
        Verdict::Ready => {}
        Verdict::Waiting(why) => {
            let phase = there.data["status"]["phase"]
                .as_str()
                .unwrap_or("the operator has not looked at it yet");
            let reason = there.data["status"]["phaseReason"]
                .as_str()
                .map(|reason| format!(" ({reason})"))
                .unwrap_or_default();
            return Verdict::Waiting(format!("{phase}{reason}; {why}"));
        }
        hopeless @ Verdict::Hopeless(_) => return hopeless,
    }
    if system_identifier(there).is_none() {
        return Verdict::Waiting("its system identifier is not known yet".to_owned());
    }
    let unreconciled = roles::unreconciled(there, declared);
    if unreconciled.is_empty() {
        Verdict::Ready
    } else {
        Verdict::Waiting(unreconciled.join("; "))
    }
}

/// A Cluster that is being deleted is waited for; `None` means there is none now.
async fn read_settled(work: Work<'_>) -> Result<Option<DynamicObject>, Error> {
    let there = read(work).await?;
    if there
        .as_ref()
        .is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_none())
    {
        return Ok(there);
    }
    let cluster = &work.context.cluster;
    cluster
        .wait_until(
            "the former Cluster to be gone",
            GONE_WITHIN,
            PAUSE,
            &|blocker| work.progress.waiting(blocker),
            || async {
                let there = cluster
                    .get(
                        databases::API,
                        "Cluster",
                        Some(names::POSTGRESQL),
                        names::CNPG_CLUSTER,
                    )
                    .await?;
                Ok(there.map_or(Ok(()), |_| Err("it is being deleted".to_owned())))
            },
        )
        .await?;
    Ok(None)
}

async fn wait_ready(work: Work<'_>, declared: &[roles::Role]) -> Result<DynamicObject, Error> {
    let target = WaitFor {
        what: "PostgreSQL to be ready with its roles",
        api_version: databases::API,
        kind: "Cluster",
        namespace: Some(names::POSTGRESQL),
        name: names::CNPG_CLUSTER,
        pods: Some(PODS),
        deadline: READY_WITHIN,
    };
    let judge = |object: Option<&DynamicObject>| judge(object, declared);
    Ok(work
        .context
        .cluster
        .wait(&target, &judge, &|blocker| work.progress.waiting(blocker))
        .await?)
}

/// The identifier of a Ready Cluster against the record; the first one is recorded.
fn record(work: Work<'_>, cluster: &DynamicObject, outcome: &mut Outcome) -> Result<(), Error> {
    let Some(running) = system_identifier(cluster) else {
        return Err(unexpected(
            "read the Cluster's system identifier",
            "its status has none",
            "run again",
        ));
    };
    let path = work.context.workspace.system_identifier();
    match volume_probe::recorded(work)? {
        Some(recorded) if recorded == running => Ok(()),
        Some(recorded) => Err(Error::Refused {
            summary: "another database runs than the one that was recorded".to_owned(),
            expected: format!(
                "system identifier {recorded}, recorded in {}",
                path.display()
            ),
            found: format!("system identifier {running}"),
            hint: format!(
                "the volume's folder was exchanged, or the file came from another installation. If the running database is the right one, write {running} into {}",
                path.display()
            ),
        }),
        None => {
            private_file::write(&path, format!("{running}\n").as_bytes())?;
            outcome.changed(format!(
                "recorded system identifier {running} in {}",
                path.display()
            ));
            Ok(())
        }
    }
}

/// Before the Cluster goes: which database it is, where no run has recorded that yet.
pub(super) async fn record_if_unknown(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    if volume_probe::recorded(work)?.is_some() {
        return Ok(());
    }
    match read(work).await? {
        Some(there) if system_identifier(&there).is_some() => record(work, &there, outcome),
        _ => Ok(()),
    }
}

/// A real connection as GitLab will make it.
async fn connect(work: Work<'_>) -> Result<(), Error> {
    let password = role_password(&work.context.workspace, "gitlab")?;
    let connection =
        role_connection::connect(work, "gitlab", &password, "gitlabhq_production").await?;
    connection
        .client
        .simple_query("SELECT 1")
        .await
        .map_err(|error| query_failed("run SELECT 1", &error))?;
    Ok(())
}

async fn wait_answers(work: Work<'_>) -> Result<(), Error> {
    let what = "PostgreSQL to answer role gitlab";
    let attempt = || async { Ok(connect(work).await.map_err(|error| error.to_string())) };
    work.context
        .cluster
        .wait_until(
            what,
            ANSWERS_WITHIN,
            PAUSE,
            &|blocker| work.progress.waiting(blocker),
            attempt,
        )
        .await?;
    Ok(())
}

#[async_trait]
impl Installer for CnpgCluster {
    fn id(&self) -> &'static str {
        "cnpg-cluster"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let declared = declared_roles(work)?;
        let there = read(work).await?;
        if there.is_none() {
            return Ok(State::Missing);
        }
        Ok(match judge(there.as_ref(), &declared) {
            Verdict::Ready => State::Ready,
            Verdict::Waiting(why) | Verdict::Hopeless(why) => State::Broken(why),
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let manifest = manifest(work)?;
        let declared = roles::declared(&manifest);
        outcome
            .changes
            .extend(names::ensure_namespace(&work.context.cluster, names::POSTGRESQL).await?);
        let there = read_settled(work).await?;
        if there.is_none() {
            let decision = volume_probe::decide(work).await?;
            claim::ensure(work, &decision, &mut outcome).await?;
        }
        roles::ensure(work, &declared, &mut outcome).await?;
        outcome
            .changes
            .extend(work.context.cluster.apply(&manifest).await?.phrase());
        let ready = wait_ready(work, &declared).await?;
        record(work, &ready, &mut outcome)?;
        databases::ensure(work, &mut outcome).await?;
        wait_answers(work).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::cluster_remains(work).await
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        removal::cluster_run(work, removal).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![
            row(smoke::row::CNPG_READY, self.id(), look_ready(work).await),
            row(ROLES_ROW, self.id(), look_contents(work).await),
        ]
    }
}

const AGAIN: &str = "run `blueprint up --only cnpg-cluster`";

async fn look_ready(work: Work<'_>) -> Result<String, Error> {
    let there = read(work).await?;
    match judge(there.as_ref(), &[]) {
        Verdict::Ready => {}
        Verdict::Waiting(why) | Verdict::Hopeless(why) => {
            return Err(unexpected("find Cluster postgresql-cnpg Ready", why, AGAIN));
        }
    }
    let running = there
        .as_ref()
        .and_then(system_identifier)
        .map(|identifier| identifier.to_string())
        .unwrap_or_default();
    match volume_probe::recorded(work)? {
        Some(recorded) if recorded.to_string() != running => Err(unexpected(
            "find the recorded database",
            format!("system identifier {running} runs, {recorded} is recorded"),
            AGAIN,
        )),
        _ => Ok(format!("True, system identifier {running}")),
    }
}

/// By asking the server itself: what its catalogs say counts, not what the objects' status says.
async fn look_contents(work: Work<'_>) -> Result<String, Error> {
    let password = role_password(&work.context.workspace, "gitlab")?;
    let connection =
        role_connection::connect(work, "gitlab", &password, "gitlabhq_production").await?;
    let names_of = |sql: &'static str| {
        let client = &connection.client;
        async move {
            let rows = client
                .query(sql, &[])
                .await
                .map_err(|error| query_failed("list what is there", &error))?;
            Ok::<Vec<String>, Error>(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
        }
    };
    let roles_there = names_of("SELECT rolname::text FROM pg_roles WHERE rolcanlogin").await?;
    let databases_there = names_of("SELECT datname::text FROM pg_database").await?;
    let extensions_there = names_of("SELECT extname::text FROM pg_extension").await?;
    let mut missing = Vec::new();
    let declared = declared_roles(work)?;
    missing.extend(
        declared
            .iter()
            .filter(|role| !roles_there.contains(&role.name))
            .map(|role| format!("role {}", role.name)),
    );
    let (mut databases_wanted, mut extensions_wanted) = (0, 0);
    for database in databases::manifests(work)? {
        databases_wanted += 1;
        let name = database["spec"]["name"].as_str().unwrap_or_default();
        if !databases_there.iter().any(|there| there == name) {
            missing.push(format!("database {name}"));
        }
        if name == "gitlabhq_production" {
            for extension in database["spec"]["extensions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|extension| extension["name"].as_str())
            {
                extensions_wanted += 1;
                if !extensions_there.iter().any(|there| there == extension) {
                    missing.push(format!("extension {extension}"));
                }
            }
        }
    }
    if missing.is_empty() {
        return Ok(format!(
            "{} roles, {databases_wanted} databases, {extensions_wanted} extensions",
            declared.len()
        ));
    }
    Err(unexpected(
        "find every role, database and extension",
        format!("missing: {}", missing.join(", ")),
        AGAIN,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": databases::API, "kind": "Cluster", "metadata": {"name": "c", "generation": 1}, "spec": {}, "status": status
        }))
        .unwrap()
    }

    #[test]
    fn ready_alone_is_not_enough() {
        let ready = json!({"type": "Ready", "status": "True"});
        let waits = |status: Value| match judge(
            Some(&cluster(&status)),
            &roles::declared(
                &json!({"spec": {"managed": {"roles": [{"name": "gitlab", "passwordSecret": {"name": "s"}}]}}}),
            ),
        ) {
            Verdict::Waiting(why) => why,
            other => format!("{other:?}"),
        };
        assert!(waits(json!({"conditions": [{"type": "Initialized", "status": "True"}], "phase": "Setting up primary"})).contains("Setting up primary"));
        assert!(waits(json!({"conditions": [ready]})).contains("system identifier"));
        assert!(waits(json!({"conditions": [ready], "systemID": "42"})).contains("role gitlab"));
        let done = json!({"conditions": [ready], "systemID": "42", "managedRolesStatus": {"byStatus": {"reconciled": ["gitlab"]}}});
        assert_eq!(waits(done), "Ready");
    }

    #[test]
    fn the_selectors_name_the_cluster() {
        assert!(PODS.ends_with(names::CNPG_CLUSTER));
        assert!(PRIMARY.starts_with(PODS));
    }
}
