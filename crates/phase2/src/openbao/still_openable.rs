//! Before OpenBao's pod goes: its next one starts sealed, and only the keys on disk open it.

use blueprint_openbao::{Health, InitFile};

use super::decide::Rows;
use super::standing::standing;
use crate::error::Error;
use crate::installer::Work;

/// Refuses to stop an initialised server whose keys are not on disk.
pub(super) async fn check(work: Work<'_>) -> Result<(), Error> {
    let path = work.context.workspace.openbao_init();
    if InitFile::read(&path)?.is_some() || holds_nothing(work).await {
        return Ok(());
    }
    Err(Error::Refused {
        summary: "OpenBao's keys are not on disk, and once its pod is gone nothing else opens it"
            .to_owned(),
        expected: format!("unseal keys and root token in {}", path.display()),
        found: "no such file, and a server that is initialised or cannot be asked".to_owned(),
        hint: format!(
            "put {} back from a copy; if what OpenBao holds may be lost, `blueprint down --wipe` takes everything",
            path.display()
        ),
    })
}

/// What cannot be told counts as something.
async fn holds_nothing(work: Work<'_>) -> bool {
    matches!(
        standing(work).await,
        Ok((Health::Uninitialised, Rows::None))
    )
}
