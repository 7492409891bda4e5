//! OpenBao's tables in PostgreSQL, seen as its own role.

use blueprint_failpoint::failpoint;

use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::role_connection::{RoleConnection, connect, query_failed};
use crate::role_passwords::role_password;

use super::decide::Rows;

/// Its role.
pub(super) const ROLE: &str = "openbao";
/// Its database. GitLab's bundled OpenBao has another: two servers on one database corrupt each other.
pub(super) const DATABASE: &str = "openbao";
/// What `storage "postgresql"` makes (the second only with HA).
const TABLES: [&str; 2] = ["openbao_kv_store", "openbao_ha_locks"];

async fn open(work: Work<'_>) -> Result<RoleConnection, Error> {
    let password = role_password(&work.context.workspace, ROLE)?;
    connect(work, ROLE, &password, DATABASE).await
}

/// Whether the tables hold anything.
pub(super) async fn rows(work: Work<'_>) -> Result<Rows, Error> {
    let connection = open(work).await?;
    for table in TABLES {
        let failed =
            |error: tokio_postgres::Error| query_failed(&format!("look into {table}"), &error);
        let exists = connection
            .client
            .query_one("select to_regclass($1::text) is not null", &[&table])
            .await
            .map_err(failed)?;
        if !exists.get::<_, bool>(0) {
            continue;
        }
        let found = connection
            .client
            .query_one(&format!("select exists (select 1 from {table})"), &[])
            .await
            .map_err(failed)?;
        if found.get::<_, bool>(0) {
            return Ok(Rows::Some);
        }
    }
    Ok(Rows::None)
}

/// Drops the tables; the server makes them anew at its next start. To be called only with the server stopped: under a live one this goes unnoticed.
pub(super) async fn drop_tables(work: Work<'_>) -> Result<(), Error> {
    let connection = open(work).await?;
    failpoint!(before, "drop", "OpenBao's tables");
    let statement = format!("drop table if exists {}", TABLES.join(", "));
    connection
        .client
        .batch_execute(&statement)
        .await
        .map_err(|error| query_failed("drop OpenBao's empty beginnings", &error))?;
    failpoint!(after, "drop", "OpenBao's tables");
    Ok(())
}

/// Moves the tables, with their indexes, into a schema of their own: nothing is deleted, and the server makes new ones at its next start. To be called only
/// with the server stopped.
pub(super) async fn set_tables_aside(work: Work<'_>, schema: &str) -> Result<(), Error> {
    let connection = open(work).await?;
    let moves = TABLES.map(|table| format!("alter table if exists {table} set schema {schema};"));
    let statement = format!("begin; create schema {schema}; {} commit;", moves.join(" "));
    failpoint!(before, "set aside", "OpenBao's tables");
    connection
        .client
        .batch_execute(&statement)
        .await
        .map_err(|error| query_failed("move OpenBao's tables aside", &error))?;
    failpoint!(after, "set aside", "OpenBao's tables");
    Ok(())
}

/// PostgreSQL's system identifier, as the operator reports it.
pub(super) async fn system_identifier(work: Work<'_>) -> Result<String, Error> {
    let api_version = "postgresql.cnpg.io/v1";
    let found = work
        .context
        .cluster
        .get(
            api_version,
            "Cluster",
            Some(names::POSTGRESQL),
            names::CNPG_CLUSTER,
        )
        .await?;
    let identifier = found.and_then(|cluster| {
        cluster
            .data
            .pointer("/status/systemID")
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned)
    });
    identifier
        .filter(|identifier| !identifier.is_empty())
        .ok_or_else(|| Error::Failed {
            action: "read PostgreSQL's system identifier".to_owned(),
            found: format!(
                "Cluster {}/{} does not report one",
                names::POSTGRESQL,
                names::CNPG_CLUSTER
            ),
            hint: "run `blueprint up --only cnpg-cluster` and wait until the Cluster is Ready"
                .to_owned(),
        })
}
