//! A forward to OpenBao's pod and a client at its end.

use std::time::Duration;

use blueprint_cluster::LocalForward;
use blueprint_openbao::Client;

use super::init_file;
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// The one pod of the StatefulSet.
pub(super) const POD: &str = "openbao-0";
/// OpenBao's API.
const PORT: u16 = 8200;

/// Ends with the pod; a new pod needs a new one.
pub(super) struct Session {
    /// Keeps the way open.
    pub(super) forward: LocalForward,
    /// Without a token.
    pub(super) client: Client,
}

impl Session {
    /// The same client with the root token of the init file.
    pub(super) fn with_root_token(&self, work: Work<'_>) -> Result<Client, Error> {
        Ok(self.client.with_token(init_file(work)?.root_token))
    }
}

/// Opens one to the pod as it is now.
pub(super) async fn open(work: Work<'_>) -> Result<Session, Error> {
    let forward = work
        .context
        .cluster
        .port_forward(names::OPENBAO, POD, PORT)
        .await?;
    let client = Client::new(forward.address());
    Ok(Session { forward, client })
}

/// Opens one as soon as the server answers: started without PostgreSQL it is silent for half a minute, exits, and comes back by itself.
pub(super) async fn open_when_answering(work: Work<'_>) -> Result<Session, Error> {
    let say = |blocker| work.progress.waiting(blocker);
    let attempt = || async move {
        let session = match open(work).await {
            Ok(session) => session,
            Err(error) => return Ok(Err(format!("pod {}/{POD}: {error}", names::OPENBAO))),
        };
        Ok(match session.client.health().await {
            Ok(_) => Ok(session),
            Err(error) => Err(format!(
                "pod {}/{POD} runs and does not answer yet ({error})",
                names::OPENBAO
            )),
        })
    };
    let cluster = &work.context.cluster;
    Ok(cluster
        .wait_until(
            "an answer from OpenBao",
            Duration::from_mins(3),
            Duration::from_millis(500),
            &say,
            attempt,
        )
        .await?)
}
