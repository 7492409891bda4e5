//! A component's state and its smoke rows in one finding.

use std::collections::BTreeSet;

use blueprint_pipeline::{Failure, Task};

use super::causes;
use super::findings::{Finding, Mend, Verdict};
use crate::failure_hints;
use crate::installer::State;
use crate::openbao;
use crate::smoke::{CheckResult, CheckVerdict};
use crate::table::TABLE;

/// What was seen of one component.
pub(super) struct Look {
    pub(super) task: &'static Task,
    pub(super) state: Result<State, Failure>,
    pub(super) rows: Vec<CheckResult>,
}

/// Without any of these nothing of the platform is installed.
const PLATFORM: [&str; 7] = [
    "cnpg-operator",
    "cnpg-cluster",
    "redis",
    "minio",
    "openbao",
    "gitlab",
    "runner",
];
/// Rows that go through something the task itself does not need: a pull asks the registry, through the Gateway.
const ROWS_NEED: [(&str, &str); 1] = [("registry-pin", "gitlab")];

/// A finding each, in the order given; one for all where nothing is installed.
pub(super) fn findings(looks: Vec<Look>) -> Vec<Finding> {
    let missing = |id: &&str| {
        looks
            .iter()
            .any(|look| look.task.id == *id && matches!(look.state, Ok(State::Missing)))
    };
    if PLATFORM.iter().all(missing) {
        let mut finding = Finding::new("components", Verdict::Noted, "nothing is installed yet");
        finding.remedy = Some("`blueprint up` installs everything".to_owned());
        return vec![finding];
    }
    let all: Vec<Finding> = looks.into_iter().map(of_look).collect();
    let ill: BTreeSet<&str> = all
        .iter()
        .filter(|finding| finding.verdict == Verdict::Ill)
        .map(|finding| finding.subject.as_str())
        .collect();
    let roots: Vec<Option<String>> = all
        .iter()
        .map(|finding| {
            (finding.verdict == Verdict::Ill)
                .then(|| root(finding, &ill))
                .flatten()
        })
        .collect();
    all.into_iter()
        .zip(roots)
        .map(|(mut finding, root)| {
            if let Some(root) = root {
                finding.cause.get_or_insert_with(|| {
                    format!("probably {root}, which it needs and which is not well")
                });
                finding.follows_from = Some(root);
            }
            finding
        })
        .collect()
}

/// The first of what it needs, directly or not, that is ill itself. What can be mended at its own place follows from nothing.
fn root(finding: &Finding, ill: &BTreeSet<&str>) -> Option<String> {
    if finding.mend.is_some() {
        return None;
    }
    let task = TABLE.task(&finding.subject)?;
    let mut needs: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = task.needs.to_vec();
    open.extend(
        ROWS_NEED
            .iter()
            .filter(|(id, _)| *id == task.id)
            .map(|(_, need)| *need),
    );
    while let Some(id) = open.pop() {
        if needs.insert(id) {
            open.extend(TABLE.task(id).map_or(&[][..], |task| task.needs));
        }
    }
    TABLE
        .tasks
        .iter()
        .map(|task| task.id)
        .find(|id| *id != task.id && needs.contains(id) && ill.contains(id))
        .map(str::to_owned)
}

fn of_look(look: Look) -> Finding {
    let Look { task, state, rows } = look;
    let (failed, passed): (Vec<CheckResult>, Vec<CheckResult>) = rows
        .into_iter()
        .partition(|row| row.verdict == CheckVerdict::Failed);
    let seen = |rows: &[CheckResult]| {
        rows.iter()
            .map(|row| format!("{}: {}", row.check, row.evidence))
            .collect::<Vec<_>>()
    };
    let (verdict, summary, mend, own_remedy) = judge(task.id, &state, &failed);
    let mut finding = Finding::new(task.id, verdict, summary);
    finding.mend = mend;
    if let Err(failure) = state {
        finding.evidence.extend(failure.causes);
        finding.evidence.extend(failure.evidence);
    }
    finding.evidence.extend(seen(&failed));
    if verdict == Verdict::Well {
        finding.evidence = seen(&passed);
        return finding;
    }
    let text = format!("{}\n{}", finding.summary, finding.evidence.join("\n"));
    finding.cause = causes::cause(task.id, &text);
    finding.remedy = own_remedy
        .or_else(|| failed.into_iter().find_map(|row| row.hint))
        .or_else(|| failure_hints::hint(task.id, &text))
        .or_else(|| Some("run `blueprint up`".to_owned()));
    finding
}

fn judge(
    task: &str,
    state: &Result<State, Failure>,
    failed: &[CheckResult],
) -> (Verdict, String, Option<Mend>, Option<String>) {
    let up = || Some(format!("run `blueprint up --only {task}`"));
    match state {
        Ok(State::Ready) => match failed.first() {
            None => (Verdict::Well, "as wanted".to_owned(), None, None),
            Some(row) => (
                Verdict::Ill,
                format!("in place, but this fails: {}", row.check),
                None,
                None,
            ),
        },
        Ok(State::Outdated(differs)) => {
            let mend = match task {
                "registry-pin" => Some(Mend::HostsPin),
                "node-trust" => Some(Mend::NodeTrust),
                "local-path" => Some(Mend::DefaultClass),
                _ => None,
            };
            // These three are never a matter of taste; of the rest a failed row tells whether anybody suffers.
            let ill = mend.is_some() || !failed.is_empty();
            let verdict = if ill { Verdict::Ill } else { Verdict::Drifted };
            (verdict, differs.join("; "), mend, up())
        }
        Ok(State::Missing) => (
            Verdict::Ill,
            "not installed".to_owned(),
            None,
            Some("run `blueprint up`".to_owned()),
        ),
        Ok(State::Broken(why)) if task == "openbao" && why == openbao::SEALED => (
            Verdict::Ill,
            why.clone(),
            Some(Mend::Unseal),
            Some("run `blueprint secrets unseal`".to_owned()),
        ),
        Ok(State::Broken(why)) => (Verdict::Ill, why.clone(), None, None),
        Err(failure) => {
            let found = failure
                .found
                .as_ref()
                .map_or_else(String::new, |found| format!(": {found}"));
            (
                Verdict::Ill,
                format!("{}{found}", failure.summary),
                None,
                failure.hint.clone(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(task: &str, state: State, rows: Vec<CheckResult>) -> Look {
        Look {
            task: TABLE.task(task).unwrap(),
            state: Ok(state),
            rows,
        }
    }

    fn one(task: &str, state: State, rows: Vec<CheckResult>) -> Finding {
        findings(vec![look(task, state, rows)]).remove(0)
    }

    #[test]
    fn a_sealed_openbao_is_told_with_cause_remedy_and_mend() {
        let row = CheckResult::failed("OpenBao unsealed", "sealed: true");
        let finding = one(
            "openbao",
            State::Broken(openbao::SEALED.to_owned()),
            vec![row],
        );
        assert_eq!(
            (finding.verdict, finding.mend),
            (Verdict::Ill, Some(Mend::Unseal))
        );
        assert!(finding.cause.unwrap().contains("seals itself"));
        assert!(finding.remedy.unwrap().contains("secrets unseal"));
        assert_eq!(finding.evidence, ["OpenBao unsealed: sealed: true"]);
    }

    #[test]
    fn something_newer_in_the_workspace_is_drift_while_its_rows_pass() {
        let differs = || State::Outdated(vec!["chart or values of release redis".to_owned()]);
        let pong = CheckResult::passed("Redis reachable", "PONG");
        assert_eq!(
            one("redis", differs(), vec![pong]).verdict,
            Verdict::Drifted
        );
        let dead = CheckResult::failed("Redis reachable", "refused");
        assert_eq!(one("redis", differs(), vec![dead]).verdict, Verdict::Ill);
    }

    #[test]
    fn a_lost_hosts_line_is_ill_whatever_the_rows_say() {
        let finding = one(
            "registry-pin",
            State::Outdated(vec![
                "lab-worker's /etc/hosts lacks the registry".to_owned(),
            ]),
            Vec::new(),
        );
        assert_eq!(
            (finding.verdict, finding.mend),
            (Verdict::Ill, Some(Mend::HostsPin))
        );
    }

    #[test]
    fn what_only_suffers_from_something_else_says_from_what() {
        let all = findings(vec![
            look(
                "cnpg-cluster",
                State::Broken("pod postgresql-cnpg-1: CrashLoopBackOff".to_owned()),
                Vec::new(),
            ),
            look("redis", State::Ready, Vec::new()),
            look(
                "gitlab",
                State::Broken("Deployment gitlab/gitlab-kas: 0 of 1 replicas ready".to_owned()),
                Vec::new(),
            ),
        ]);
        assert_eq!(all[0].follows_from, None);
        assert_eq!(all[1].verdict, Verdict::Well);
        assert_eq!(all[2].follows_from.as_deref(), Some("cnpg-cluster"));
        assert!(all[2].cause.as_deref().unwrap().contains("cnpg-cluster"));
    }

    #[test]
    fn a_registry_that_is_down_is_not_the_pins_fault() {
        let row = CheckResult::failed(
            "Registry reachable from every node",
            "503 service unavailable",
        );
        let all = findings(vec![
            look(
                "gitlab",
                State::Broken(
                    "Deployment gitlab/gitlab-registry: 0 of 1 replicas ready".to_owned(),
                ),
                Vec::new(),
            ),
            look("registry-pin", State::Ready, vec![row]),
        ]);
        assert_eq!(all[1].follows_from.as_deref(), Some("gitlab"));
    }

    #[test]
    fn a_fresh_cluster_is_one_note_and_not_seventeen_complaints() {
        let looks = TABLE
            .tasks
            .iter()
            .skip(1)
            .map(|task| look(task.id, State::Missing, Vec::new()))
            .collect();
        let all = findings(looks);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].verdict, Verdict::Noted);
    }

    #[test]
    fn one_missing_component_among_others_is_ill() {
        let all = findings(vec![
            look("redis", State::Ready, Vec::new()),
            look("minio", State::Missing, Vec::new()),
        ]);
        assert_eq!(all[1].verdict, Verdict::Ill);
    }
}
