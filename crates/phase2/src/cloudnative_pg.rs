//! Step 5: the CloudNativePG operator, the Cluster `postgresql-cnpg` on its stable volume, its roles and databases, all declared and none scripted.

mod claim;
mod cluster;
mod databases;
mod operator;
mod removal;
pub(crate) mod role_password;
mod roles;
pub(crate) mod volume_decision;
pub(crate) mod volume_probe;

use crate::error::Error;
use crate::installer::Work;

pub use cluster::CnpgCluster;
pub use operator::CnpgOperator;

/// PostgreSQL, before anything is done.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    /// A Cluster exists: the volume is the operator's. Holds its system identifier, once the operator knows it.
    Running(Option<u64>),
    /// No Cluster; the volume as it was found.
    Volume(volume_probe::Volume),
}

/// Looks.
pub(crate) async fn look(work: Work<'_>) -> Result<Seen, Error> {
    match cluster::read(work).await? {
        Some(there) => Ok(Seen::Running(cluster::system_identifier(&there))),
        None => Ok(Seen::Volume(volume_probe::look(work).await?)),
    }
}

/// For pre-flight: refuses when a role has two passwords and PostgreSQL takes neither.
pub(crate) async fn try_passwords(work: Work<'_>) -> Result<(), Error> {
    cluster::try_passwords(work).await
}

/// What the volume holds and what step 5 will therefore do; `None` when a Cluster exists already (the volume is the operator's then) and when the volume is
/// simply empty. A volume that needs a person's decision is an error.
pub(crate) async fn announce(work: Work<'_>) -> Result<Option<String>, Error> {
    if cluster::read(work).await?.is_some() {
        return Ok(None);
    }
    Ok(match volume_probe::decide(work).await? {
        volume_decision::Decision::Initialise => None,
        volume_decision::Decision::Adopt { system_identifier } => Some(format!(
            "the PostgreSQL volume holds data (system identifier {system_identifier}): step 5 adopts it"
        )),
    })
}
