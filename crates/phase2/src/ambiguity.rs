//! States that only a person can decide about: recognised in pre-flight, before anything is touched, each with what was found where and the ways out.
//!
//! `blueprint up --accept WAY` takes one. The ways are a closed set, each fits only its states, and none deletes anything: what is in the way is moved aside.

mod judge;
mod look;
mod seen;
mod take;
mod way;

use crate::error::Error;
use crate::installer::Work;
use crate::preflight::Check;

pub use way::Way;

pub(crate) use judge::{Ambiguity, State};

use judge::{Plan, judge, plan};

const ALL: &str = "ambiguous states";

/// The pre-flight's rows: one for each state that was found, or one that none was. Accepted ways count as decided. Where the
/// API server does not answer (`answers`), nothing can be set against what the files say.
pub(crate) async fn checks(work: Work<'_>, answers: bool) -> Vec<Check> {
    if !answers {
        return vec![Check::noted(
            ALL,
            "not looked for, the API server does not answer",
        )];
    }
    let looked = look::look(work).await;
    let mut all: Vec<Check> = looked
        .unknown
        .into_iter()
        .map(|what| Check::noted(ALL, what))
        .collect();
    all.extend(
        looked
            .refused
            .into_iter()
            .filter_map(|error| as_check(error, ALL)),
    );
    let Plan { left, take, .. } = plan(&looked.seen, &work.context.accepted);
    all.extend(
        take.iter()
            .map(|(way, state)| Check::noted(state.name(), format!("accepted {}", way.id()))),
    );
    if left.is_empty() && take.is_empty() {
        all.push(Check::passed(ALL, looked.seen.in_words()));
    }
    all.extend(left.iter().map(Ambiguity::as_check));
    all
}

/// A refusal is a shortfall; anything else could not be told.
fn as_check(error: Error, check: &str) -> Option<Check> {
    match error {
        Error::Refused {
            summary,
            expected,
            found,
            hint,
        } => Some(Check::short(
            check,
            expected,
            format!("{summary}: {found}"),
            hint,
        )),
        _ => None,
    }
}

/// Accepted ways for which there is no state: a mistake of whoever typed them. Answers the ways, and the ways that what was found does allow.
pub async fn unfit(work: Work<'_>) -> (Vec<Way>, Vec<Way>) {
    let seen = look::look(work).await.seen;
    let allowed = judge(&seen)
        .into_iter()
        .flat_map(|ambiguity| ambiguity.ways)
        .collect();
    (plan(&seen, &work.context.accepted).unfit, allowed)
}

pub(crate) use take::take;

/// Refuses the data of another installation, for a run that was started without pre-flight.
pub(crate) async fn refuse_foreign_volumes(work: Work<'_>) -> Result<(), Error> {
    let seen = look::look(work).await.seen;
    let foreign = judge(&seen)
        .into_iter()
        .find(|ambiguity| ambiguity.state == State::ForeignVolumes);
    foreign.map_or(Ok(()), |ambiguity| Err(ambiguity.into_error()))
}

#[cfg(test)]
mod tests;
