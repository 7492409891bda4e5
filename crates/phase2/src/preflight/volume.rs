//! What the PostgreSQL volume holds, while nothing has been changed yet: a database that only a person can decide about stops the run here.

use super::Check;
use crate::cloudnative_pg;
use crate::error::Error;
use crate::installer::Work;

const VOLUME: &str = "PostgreSQL volume";

pub(super) async fn check(work: Work<'_>) -> Check {
    if work.context.nodes().is_err() {
        // The check of the container engine says so.
        return Check::noted(VOLUME, "not looked at, no node can be asked");
    }
    judged(cloudnative_pg::announce(work).await)
}

fn judged(announced: Result<Option<String>, Error>) -> Check {
    match announced {
        Ok(found) => Check::passed(
            VOLUME,
            found.unwrap_or_else(|| "empty, or in use by the running Cluster".to_owned()),
        ),
        Err(Error::Refused {
            summary,
            expected,
            found,
            hint,
        }) => Check::short(VOLUME, expected, format!("{summary}: {found}"), hint),
        // Step 4 looks again, and must know.
        Err(error) => Check::noted(VOLUME, format!("could not be looked at: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_written_pgdata_was_found_only_after_steps_2_and_3_had_changed_the_cluster() {
        let refused = Error::Refused {
            summary: "the PostgreSQL volume holds a half-written PGDATA".to_owned(),
            expected: "a whole PGDATA".to_owned(),
            found: "pgdata has no global/pg_control".to_owned(),
            hint: "restore it from a backup".to_owned(),
        };
        let Check::Short(short) = judged(Err(refused)) else {
            panic!("pre-flight must stop for it");
        };
        assert!(short.found.contains("half-written") && short.found.contains("pg_control"));
        assert_eq!(short.hint, "restore it from a backup");
    }

    #[test]
    fn what_is_not_a_decision_stops_nothing() {
        let failed = Error::Failed {
            action: "ask a node".to_owned(),
            found: "no answer".to_owned(),
            hint: String::new(),
        };
        assert!(matches!(judged(Err(failed)), Check::Noted { .. }));
        assert!(matches!(judged(Ok(None)), Check::Passed { .. }));
    }
}
