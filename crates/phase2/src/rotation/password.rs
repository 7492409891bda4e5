//! The way of a password: a file with both values, the service, the credential's own file, every other copy, and the proof that the former value is dead.
//!
//! Cut off anywhere, the same command goes on from there, and so does `up`: with two values it keeps the one that the service takes.

use std::time::Duration;

use blueprint_pipeline::Outcome;
use blueprint_safekeeping::{password, private_file};
use secrecy::{ExposeSecret as _, SecretString};

use super::pending::{self, Pending, Stage};
use super::service::Service;
use super::{Target, pending_file};
use crate::catalog::Catalog;
use crate::error::Error;
use crate::installer::{State, Work};

/// From a file in place to a service that takes it: the operator needs under a second, a restart half a minute.
const TAKEN: Duration = Duration::from_mins(3);

/// Rotates, or ends what an earlier run began.
pub(super) async fn rotate(
    work: Work<'_>,
    catalog: &Catalog,
    target: Target,
    service: Service,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let path = pending_file(&work.context.workspace, target);
    let present = service.filed(work)?;
    let pending = match pending::stage(&path, &present)? {
        Stage::Committed(pending) => {
            work.progress
                .say("ending the rotation that an earlier run began");
            pending
        }
        Stage::Begun(pending) => {
            work.progress
                .say("going on with the rotation that an earlier run began");
            offer(work, service, &pending).await?;
            service.write(work, &pending.next)?;
            pending
        }
        Stage::None | Stage::Overtaken => {
            let pending = begin(work, service, present).await?;
            pending::write(&path, &pending)?;
            offer(work, service, &pending).await?;
            service.write(work, &pending.next)?;
            pending
        }
    };
    outcome.changed(format!(
        "wrote the new {} to {}",
        target.what(),
        service.file(work).display()
    ));
    for task in service.tasks() {
        follow(work, catalog, task, outcome).await?;
    }
    prove(work, target, service, &pending).await?;
    private_file::remove(&path)?;
    outcome.note(format!(
        "the former {} is refused, the new one works",
        target.what()
    ));
    Ok(())
}

/// A new value, if the present one is in order: a rotation is no repair.
async fn begin(work: Work<'_>, service: Service, present: SecretString) -> Result<Pending, Error> {
    if service.takes(work, &present).await? {
        return Ok(Pending {
            former: present,
            next: password::generate(present_length(service)),
        });
    }
    Err(Error::Refused {
        summary: format!("{} does not take its present password", service.name()),
        expected: format!("the one in {} to work", service.file(work).display()),
        found: "it is refused".to_owned(),
        hint: "run `blueprint up` first: it finds out which password is in force and brings all copies to it".to_owned(),
    })
}

fn present_length(service: Service) -> usize {
    match service {
        Service::Role(_) => 32,
        Service::Redis | Service::Minio => 40,
    }
}

/// Makes the service take the next value, and proves it. Where that fails the former one is brought back.
async fn offer(work: Work<'_>, service: Service, pending: &Pending) -> Result<(), Error> {
    if service.takes(work, &pending.next).await? {
        return Ok(());
    }
    work.progress
        .say(format!("telling {} the new password", service.name()));
    let offered = match service.offer(work, pending).await {
        Ok(()) => wait_taken(work, service, &pending.next).await,
        Err(error) => Err(error),
    };
    let Err(error) = offered else { return Ok(()) };
    work.progress
        .say("that did not work: bringing the former one back");
    service.take_back(work, &pending.former).await?;
    wait_taken(work, service, &pending.former).await?;
    Err(error)
}

async fn wait_taken(work: Work<'_>, service: Service, value: &SecretString) -> Result<(), Error> {
    let say = |blocker| work.progress.waiting(blocker);
    let what = format!("{} to take the password", service.name());
    let attempt = || async move {
        Ok(match service.takes(work, value).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} refuses it", service.name())),
            Err(error) => Err(error.to_string()),
        })
    };
    let cluster = &work.context.cluster;
    cluster
        .wait_until(&what, TAKEN, Duration::from_millis(500), &say, attempt)
        .await?;
    Ok(())
}

/// Brings a component to the new value, by the installer that put it there. What is not installed has no copy.
async fn follow(
    work: Work<'_>,
    catalog: &Catalog,
    task: &str,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let Some(installer) = catalog.get(task) else {
        return Ok(());
    };
    if installer.inspect(work).await? == State::Missing {
        return Ok(());
    }
    work.progress.say(format!("bringing {task} to it"));
    let done = installer.install(work).await?;
    outcome.changes.extend(done.changes);
    outcome.notes.extend(done.notes);
    Ok(())
}

/// The new one works, the former one does not.
async fn prove(
    work: Work<'_>,
    target: Target,
    service: Service,
    pending: &Pending,
) -> Result<(), Error> {
    wait_taken(work, service, &pending.next).await?;
    if pending.former.expose_secret() != pending.next.expose_secret()
        && service.takes(work, &pending.former).await?
    {
        return Err(Error::Failed {
            action: format!("take the former {} out of force", target.what()),
            found: format!("{} still takes it", service.name()),
            hint: format!(
                "run `blueprint secrets rotate {}` again: it goes on from here",
                target.name()
            ),
        });
    }
    Ok(())
}
