//! Step 5: the CloudNativePG operator, the Cluster `postgresql-cnpg` on its stable volume, its roles and databases, all declared and none scripted.

mod claim;
mod cluster;
mod databases;
mod operator;
mod roles;
mod volume_decision;
mod volume_probe;

use crate::error::Error;
use crate::installer::Work;

pub use cluster::CnpgCluster;
pub use operator::CnpgOperator;

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
