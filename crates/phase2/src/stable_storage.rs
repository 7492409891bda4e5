//! Step 4: folders and volumes that outlive the cluster, each reserved for one claim.
//!
//! A reserved volume (claimRef by namespace and name) binds to its claim whatever the storage class does, also after the cluster was made anew.

pub(crate) mod folders;
mod removal;
pub(crate) mod volume;

use async_trait::async_trait;
use blueprint_pipeline::Outcome;
use serde_json::{Value, json};

use self::volume::{Phase, StableVolume};
use crate::cloudnative_pg;
use crate::error::Error;
use crate::installation;
use crate::installer::{Installer, State, Work};
use crate::removal::Removal;
use crate::smoke::CheckResult;
use crate::smoke_row::{row, unexpected};

const REFERENCE: &str = "persistent-volumes.yaml";
const ROW: &str = "Stable volumes bound";

/// The installer of task `stable-storage`.
#[derive(Debug)]
pub struct StableStorage;

/// The reference, sorted: volumes, and the namespaces and claims that go with them.
struct Documents {
    volumes: Vec<StableVolume>,
    others: Vec<Value>,
}

fn documents(work: Work<'_>) -> Result<Documents, Error> {
    let (volumes, others): (Vec<Value>, Vec<Value>) = work
        .context
        .references
        .documents(REFERENCE)?
        .into_iter()
        .partition(|document| document["kind"] == json!("PersistentVolume"));
    let volumes = volumes
        .into_iter()
        .map(StableVolume::from_reference)
        .collect::<Result<_, _>>()?;
    Ok(Documents { volumes, others })
}

/// All stable volumes of the reference.
pub(crate) fn stable_volumes(work: Work<'_>) -> Result<Vec<StableVolume>, Error> {
    Ok(documents(work)?.volumes)
}

/// One stable volume by name.
pub(crate) fn stable_volume(work: Work<'_>, name: &str) -> Result<StableVolume, Error> {
    let found = documents(work)?
        .volumes
        .into_iter()
        .find(|volume| volume.name == name);
    found.ok_or_else(|| {
        unexpected(
            "find the stable volume",
            format!(
                "{} has no PersistentVolume {name}",
                work.context.references.path(REFERENCE).display()
            ),
            "restore it from `blueprint init`",
        )
    })
}

/// Looks at every volume before any is touched: one that is someone else's stops the step.
async fn check_all(work: Work<'_>, volumes: &[StableVolume]) -> Result<(), Error> {
    for stable in volumes {
        if let Some(there) = stable.read(work).await? {
            stable.check(&there)?;
        }
        stable.check_claim(work).await?;
    }
    Ok(())
}

/// The volumes and what goes with them, without their folders: what needs the API server alone.
pub async fn ensure_volumes(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let Documents { volumes, others } = documents(work)?;
    check_all(work, &volumes).await?;
    for stable in &volumes {
        stable.ensure(work, outcome).await?;
    }
    outcome
        .changes
        .extend(work.context.cluster.apply_all(&others).await?);
    Ok(())
}

/// What a wipe would stop at, told before anything is taken down.
pub(crate) async fn check_wipe(work: Work<'_>) -> Result<(), Error> {
    removal::check_all(work, &documents(work)?, Removal::Wipe).await
}

#[async_trait]
impl Installer for StableStorage {
    fn id(&self) -> &'static str {
        "stable-storage"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let volumes = documents(work)?.volumes;
        check_all(work, &volumes).await?;
        let (mut missing, mut differs) = (0, Vec::new());
        for stable in &volumes {
            match stable.read(work).await?.as_ref().map(volume::phase) {
                None => {
                    missing += 1;
                    differs.push(format!("PersistentVolume {} is missing", stable.name));
                }
                Some(Phase::Released) => {
                    differs.push(format!("PersistentVolume {} is Released", stable.name));
                }
                Some(Phase::Failed) => {
                    return Ok(State::Broken(format!(
                        "PersistentVolume {} is Failed",
                        stable.name
                    )));
                }
                Some(Phase::Usable) => {}
            }
        }
        differs.extend(installation::outdated(work).await?.map(str::to_owned));
        Ok(match (missing == volumes.len(), differs.is_empty()) {
            (true, _) => State::Missing,
            (false, true) => State::Ready,
            (false, false) => State::Outdated(differs),
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let volumes = documents(work)?.volumes;
        check_all(work, &volumes).await?;
        folders::prepare(work, &volumes, &mut outcome).await?;
        installation::mark(work, &mut outcome).await?;
        // Judged here already, so that a volume which needs a person is named before anything is bound to it; step 5 acts on it.
        if let Some(found) = cloudnative_pg::announce(work).await? {
            outcome.note(found);
        }
        ensure_volumes(work, &mut outcome).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, removal: Removal) -> Result<Vec<String>, Error> {
        removal::remains(work, removal).await
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        removal::run(work, removal).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![row(ROW, self.id(), look(work).await)]
    }
}

/// Bound to its claim, or free because nobody claims it.
async fn look(work: Work<'_>) -> Result<String, Error> {
    let (mut bound, mut free, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for stable in documents(work)?.volumes {
        let phase = stable.read(work).await?.map(|there| {
            there.data["status"]["phase"]
                .as_str()
                .unwrap_or("without a phase")
                .to_owned()
        });
        let claimed = stable.claim(work).await?.is_some();
        match phase.as_deref() {
            Some("Bound") => bound.push(stable.name),
            Some("Available") if !claimed => free.push(stable.name),
            Some(phase) => wrong.push(format!("{} is {phase}", stable.name)),
            None => wrong.push(format!("{} is missing", stable.name)),
        }
    }
    if !wrong.is_empty() {
        return Err(unexpected(
            "find every stable volume bound",
            wrong.join(", "),
            "run `blueprint up --only stable-storage`",
        ));
    }
    let unclaimed = if free.is_empty() {
        String::new()
    } else {
        format!("; unclaimed: {}", free.join(", "))
    };
    Ok(format!("{} bound{unclaimed}", bound.join(", ")))
}
