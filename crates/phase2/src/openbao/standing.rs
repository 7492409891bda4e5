//! Whether the server is initialised, told before anything is done about it.

use blueprint_openbao::Health;

use super::decide::Rows;
use super::{release, session, storage};
use crate::error::Error;
use crate::installer::Work;

/// By the server where its pod runs, else by its tables.
pub(crate) async fn standing(work: Work<'_>) -> Result<(Health, Rows), Error> {
    let health = if release::runs_now(work).await? {
        session::open(work).await?.client.health().await?
    } else {
        Health::Uninitialised
    };
    if health != Health::Uninitialised {
        return Ok((health, Rows::Some));
    }
    // A server that only just starts may call itself uninitialised; its tables know better.
    Ok(match storage::rows(work).await? {
        Rows::None => (Health::Uninitialised, Rows::None),
        Rows::Some if release::runs_now(work).await? => (Health::Uninitialised, Rows::Some),
        Rows::Some => (Health::Sealed, Rows::Some),
    })
}
