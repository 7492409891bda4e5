//! One row of the smoke table out of what an installer's check came to.

use crate::error::Error;
use crate::smoke::CheckResult;

/// `result` is the evidence, or the error whose chain of causes becomes the evidence of a failed row. `task` is where the failure map looks first.
pub(crate) fn row(check: &str, task: &str, result: Result<String, Error>) -> CheckResult {
    match result {
        Ok(evidence) => CheckResult::passed(check, evidence),
        Err(error) => {
            let failure = error.into_failure(task);
            let mut evidence = failure.summary;
            for more in failure.found.iter().chain(&failure.causes) {
                evidence.push_str(": ");
                evidence.push_str(more);
            }
            let mut row = CheckResult::failed(check, evidence);
            if row.hint.is_none() {
                row.hint = failure.hint;
            }
            row
        }
    }
}

/// A check that saw something other than it should.
pub(crate) fn unexpected(action: &str, found: impl Into<String>, hint: &str) -> Error {
    Error::Failed {
        action: action.to_owned(),
        found: found.into(),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smoke::CheckVerdict;

    #[test]
    fn a_failed_check_keeps_its_causes_and_its_hint() {
        let result = row(
            "Redis reachable",
            "redis",
            Err(unexpected("ping Redis", "WRONGPASS", "run `blueprint up`")),
        );
        assert_eq!(result.verdict, CheckVerdict::Failed);
        assert!(
            result.evidence.contains("ping Redis") && result.evidence.contains("WRONGPASS"),
            "{}",
            result.evidence
        );
        assert!(result.hint.is_some());
    }
}
