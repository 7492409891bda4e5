//! Starting over with an empty storage: after an init answer that was lost (the journal proves that nobody holds a key and nothing was ever stored), or because a
//! person chose to set aside what cannot be opened.

use std::time::Duration;

use blueprint_pipeline::Outcome;
use jiff::Timestamp;

use super::session::POD;
use super::{release, seal, storage};
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// Stops the server, drops its tables, starts it again. Cut off anywhere, the next run finds the same journal and does the same.
pub(super) async fn start_over(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    work.progress.say("the answer to an earlier initialisation was lost before it reached the disk, and nothing was stored since: starting over");
    stop(work).await?;
    storage::drop_tables(work).await?;
    start(work).await?;
    outcome.changed("emptied OpenBao's storage after an initialisation whose answer was lost");
    Ok(())
}

/// Sets aside what nobody has keys for, as `--accept openbao-data-aside` says. Cut off anywhere, the tables are either where they were or in the schema.
pub(super) async fn set_data_aside(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let schema = Timestamp::now()
        .strftime("aside_%Y%m%dt%H%M%Sz")
        .to_string();
    work.progress
        .say(format!("moving OpenBao's tables into schema {schema}"));
    stop(work).await?;
    storage::set_tables_aside(work, &schema).await?;
    // What it sealed went aside with it: a new server begins with key shares.
    seal::retire_key(work, outcome)?;
    release::ensure(work, outcome).await?;
    outcome.changed(format!(
        "moved OpenBao's tables into schema {schema} of database {}",
        storage::DATABASE
    ));
    Ok(())
}

async fn stop(work: Work<'_>) -> Result<(), Error> {
    release::scale(work, 0).await?;
    release::wait_stopped(work).await?;
    // The set counts a pod out while its container still ends; deleting it here as well is how its very end is waited for.
    work.context
        .cluster
        .delete(
            "v1",
            "Pod",
            Some(names::OPENBAO),
            POD,
            Duration::from_secs(90),
        )
        .await?;
    Ok(())
}

async fn start(work: Work<'_>) -> Result<(), Error> {
    release::scale(work, 1).await?;
    release::wait_running(work).await
}
