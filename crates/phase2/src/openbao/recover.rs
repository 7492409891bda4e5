//! The way back from an init answer that was lost: the journal proves that nobody holds a key and nothing was ever stored.

use std::time::Duration;

use blueprint_pipeline::Outcome;

use super::session::POD;
use super::{release, storage};
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// Stops the server, drops its tables, starts it again. Cut off anywhere, the next run finds the same journal and does the same.
pub(super) async fn start_over(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    work.progress.say("the answer to an earlier initialisation was lost before it reached the disk, and nothing was stored since: starting over");
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
    storage::drop_tables(work).await?;
    release::scale(work, 1).await?;
    release::wait_running(work).await?;
    outcome.changed("emptied OpenBao's storage after an initialisation whose answer was lost");
    Ok(())
}
