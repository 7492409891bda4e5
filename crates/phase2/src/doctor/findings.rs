//! One finding: what is seen, why it is probably so, what to do.

use jiff::Timestamp;
use serde::Serialize;

use super::causes;
use crate::context::Context;
use crate::preflight::{Check, PRIVATE};
use crate::wake;

/// How bad it is; the worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Something does not work.
    Ill,
    /// It works, and `up` would change it.
    Drifted,
    /// Worth knowing.
    Noted,
    /// As it should be.
    Well,
}

/// A repair that cannot lose anything: what `doctor --fix` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mend {
    /// Private files for their owner alone.
    FileModes,
    /// local-path as the only default class.
    DefaultClass,
    /// The CA in every node's containerd.
    NodeTrust,
    /// The registry in every node's /etc/hosts.
    HostsPin,
    /// OpenBao opened with its keys.
    Unseal,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A check of pre-flight, or a task's id.
    pub subject: String,
    /// How it stands.
    pub verdict: Verdict,
    /// One line.
    pub summary: String,
    /// What was seen.
    pub evidence: Vec<String>,
    /// Why it is probably so.
    pub cause: Option<String>,
    /// What to do.
    pub remedy: Option<String>,
    /// What `--fix` would do about it.
    pub mend: Option<Mend>,
    /// Probably nothing but the consequence of something else that is ill.
    pub follows_from: Option<String>,
}

impl Finding {
    pub(super) fn new(subject: &str, verdict: Verdict, summary: impl Into<String>) -> Self {
        Self {
            subject: subject.to_owned(),
            verdict,
            summary: summary.into(),
            evidence: Vec::new(),
            cause: None,
            remedy: None,
            mend: None,
            follows_from: None,
        }
    }
}

/// One a check; what a check found wanting several times (each file of the cache) is one finding all the same.
pub(super) fn of_checks(checks: Vec<Check>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::with_capacity(checks.len());
    for finding in checks.into_iter().map(of_check) {
        match all.last_mut() {
            Some(last) if last.subject == finding.subject && last.verdict == finding.verdict => {
                last.evidence.push(finding.summary);
            }
            _ => all.push(finding),
        }
    }
    all
}

fn of_check(check: Check) -> Finding {
    match check {
        Check::Passed { check, found } => Finding::new(&check, Verdict::Well, found),
        Check::Noted { check, note } => Finding::new(&check, Verdict::Noted, note),
        Check::Short(short) => {
            let mut finding = Finding::new(&short.check, Verdict::Ill, short.found);
            finding
                .evidence
                .push(format!("expected {}", short.expected));
            finding.cause = causes::cause(&finding.subject, &finding.summary);
            finding.remedy = (!short.hint.is_empty()).then_some(short.hint);
            finding.mend = (finding.subject == PRIVATE).then_some(Mend::FileModes);
            finding
        }
    }
}

/// A cluster that has not caught up with its nodes' start.
pub(super) fn of_lag(lag: String) -> Finding {
    let mut finding = Finding::new(
        "start of the nodes",
        Verdict::Ill,
        "the cluster is still coming back",
    );
    finding.evidence.push(lag);
    finding.cause = Some(
        "a node was started a short while ago; what the API server shows is older than that"
            .to_owned(),
    );
    finding.remedy =
        Some("`blueprint up` waits for it and mends what does not come back by itself".to_owned());
    finding
}

/// When the nodes were started, where that is probably the cause.
pub(super) async fn add_restarts(all: &mut [Finding], context: &Context) {
    let concerned = |finding: &Finding| matches!(finding.mend, Some(Mend::HostsPin | Mend::Unseal));
    let Some(nodes) = &context.nodes else { return };
    if !all.iter().any(concerned) {
        return;
    }
    let (starts, now) = (wake::starts(nodes).await, Timestamp::now());
    let words: Vec<String> = starts
        .iter()
        .map(|(name, running)| {
            format!(
                "{name} {}",
                ago(now.duration_since(running.started).as_secs())
            )
        })
        .collect();
    if words.is_empty() {
        return;
    }
    for finding in all.iter_mut().filter(|finding| concerned(finding)) {
        finding
            .evidence
            .push(format!("nodes were started: {}", words.join(", ")));
    }
}

fn ago(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{} s ago", seconds.max(0)),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Worst first, roots before what follows from them, else in the order of the steps.
pub(super) fn sort(all: &mut [Finding]) {
    all.sort_by_key(|finding| (finding.verdict, finding.follows_from.is_some()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Shortfall;

    #[test]
    fn a_shortfall_keeps_what_was_expected_and_what_to_do() {
        let finding = of_check(Check::Short(Shortfall {
            check: PRIVATE.to_owned(),
            expected: "files with mode 0600".to_owned(),
            found: "redis-password.txt has mode 0644".to_owned(),
            hint: "chmod".to_owned(),
        }));
        assert_eq!(
            (finding.verdict, finding.mend),
            (Verdict::Ill, Some(Mend::FileModes))
        );
        assert_eq!(finding.evidence, ["expected files with mode 0600"]);
        assert!(finding.cause.is_some() && finding.remedy.is_some());
    }

    #[test]
    fn a_cache_without_any_file_is_one_complaint() {
        let short = |label: &str| {
            Check::Short(Shortfall {
                check: "cache".to_owned(),
                expected: format!("{label} as pinned"),
                found: format!("{label} is not there"),
                hint: "fetch".to_owned(),
            })
        };
        let all = of_checks(vec![short("redis"), short("minio")]);
        assert_eq!(all.len(), 1);
        assert_eq!(
            all[0].evidence,
            ["expected redis as pinned", "minio is not there"]
        );
    }

    #[test]
    fn the_worst_comes_first_and_roots_before_what_follows() {
        let mut all = vec![
            Finding::new("well", Verdict::Well, ""),
            Finding::new("follows", Verdict::Ill, ""),
            Finding::new("drifted", Verdict::Drifted, ""),
            Finding::new("root", Verdict::Ill, ""),
        ];
        all[1].follows_from = Some("root".to_owned());
        sort(&mut all);
        let order: Vec<&str> = all.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(order, ["root", "follows", "drifted", "well"]);
    }

    #[test]
    fn times_are_told_in_one_unit() {
        assert_eq!(ago(-3), "0 s ago");
        assert_eq!(ago(119), "119 s ago");
        assert_eq!(ago(600), "10 min ago");
        assert_eq!(ago(7200), "2 h ago");
        assert_eq!(ago(864_000), "10 days ago");
    }
}
