//! The API server restarted during every step of a full run, which bears it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::killed_run::Run;
use super::{Evidence, Scene, end_state, expect, fresh, nodes};
use crate::error::Result;
use crate::report::seconds;

const ANSWERS_WITHIN: Duration = Duration::from_mins(2);
/// Undisturbed it takes two minutes; each restart costs some twenty seconds.
const ENDS_WITHIN: Duration = Duration::from_mins(15);
/// A step that has just begun is to have something under way.
const INTO_THE_STEP: Duration = Duration::from_secs(1);

pub(super) fn in_every_step(scene: &mut Scene) -> Result<Evidence> {
    let undisturbed = end_state::undisturbed(scene)?;
    fresh::installation(scene, |scene| {
        let begun = Instant::now();
        let args = ["up", "--sequential"];
        let mut run = Run::with(scene, "api-server-restarts", args)?;
        let mut restarted = BTreeSet::new();
        while run.still_runs_after(INTO_THE_STEP)? && begun.elapsed() < ENDS_WITHIN {
            let fresh = run
                .begun()
                .into_iter()
                .filter(|task| !restarted.contains(task))
                .collect::<Vec<_>>();
            if !fresh.is_empty() {
                nodes::restart_api_server(scene)?;
                nodes::api_answers(scene, ANSWERS_WITHIN)?;
                restarted.extend(fresh);
            }
        }
        let code = run.ended(Duration::ZERO)?;
        let took = begun.elapsed();
        let missed: Vec<String> = run
            .begun()
            .into_iter()
            .filter(|task| !restarted.contains(task))
            .collect();
        expect(
            code == Some(0) && missed.is_empty(),
            "one run that bears a restart in each of its tasks",
            format!("{code:?}, none in {}", missed.join(", ")),
        )?;
        let ends = end_state::same_end(scene, &undisturbed)?;
        Ok(format!(
            "restarted in each of {} tasks, borne by one run of {}; {ends}",
            restarted.len(),
            seconds(took)
        ))
    })
}
