//! A PostgreSQL connection as one of our roles, through a forward to the primary's pod.

use std::time::Duration;

use blueprint_cluster::LocalForward;
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::{Client, Config, NoTls};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::Error;
use crate::installer::Work;
use crate::names;

const PORT: u16 = 5432;
const HINT: &str = "look at the cluster with `kubectl -n postgresql get cluster,pods`, then run `blueprint up --only cnpg-cluster`";

/// An open connection; closed when dropped.
pub(crate) struct RoleConnection {
    /// For queries.
    pub(crate) client: Client,
    _forward: LocalForward,
    _driver: DropGuard,
}

/// Connects. TLS is not asked for: the forward itself runs inside the API server's.
pub(crate) async fn connect(
    work: Work<'_>,
    role: &str,
    password: &SecretString,
    database: &str,
) -> Result<RoleConnection, Error> {
    let selector = format!(
        "cnpg.io/cluster={},cnpg.io/instanceRole=primary",
        names::CNPG_CLUSTER
    );
    let Some(pod) = work
        .context
        .cluster
        .ready_pod(names::POSTGRESQL, &selector)
        .await?
    else {
        return Err(failed(role, database, "no primary pod is ready"));
    };
    let forward = work
        .context
        .cluster
        .port_forward(names::POSTGRESQL, &pod, PORT)
        .await?;
    let mut config = Config::new();
    config
        .host(forward.address().ip().to_string())
        .port(forward.address().port())
        .user(role)
        .password(password.expose_secret())
        .dbname(database)
        .application_name("blueprint")
        .connect_timeout(Duration::from_secs(10));
    let (client, connection) = config
        .connect(NoTls)
        .await
        .map_err(|error| failed(role, database, &said(&error)))?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = connection => {}
            () = stopped.cancelled() => {}
        }
    });
    Ok(RoleConnection {
        client,
        _forward: forward,
        _driver: stop.drop_guard(),
    })
}

/// A query's failure, in words.
pub(crate) fn query_failed(what: &str, error: &tokio_postgres::Error) -> Error {
    Error::Failed {
        action: format!("{what} in PostgreSQL"),
        found: said(error),
        hint: HINT.to_owned(),
    }
}

fn failed(role: &str, database: &str, found: &str) -> Error {
    Error::Failed {
        action: format!("connect to database {database} as {role}"),
        found: found.to_owned(),
        hint: HINT.to_owned(),
    }
}

/// The server's own words, which tokio-postgres keeps in the source.
fn said(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(answer), _) => format!("{} (SQLSTATE {})", answer.message(), answer.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
