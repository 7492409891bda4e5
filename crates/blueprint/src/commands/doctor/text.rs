//! The report as people read it: a block for everything that is not well, one line for all that is.

use std::fmt::Write as _;

use blueprint_phase2::doctor::{Finding, Verdict};

use crate::columns::wrapped;
use crate::printer::{Look, Paint};
use crate::words::count;

const COLUMNS: usize = 100;
const INDENT: &str = "  ";
/// `seen`, `why` and `do` stand in a column of this width.
const LABEL: usize = 6;

/// Worst first, as they come.
pub(super) fn report(findings: &[Finding], paint: Paint, verbose: bool) -> String {
    let mut text = String::new();
    let (well, others): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .partition(|finding| finding.verdict == Verdict::Well);
    for finding in others {
        block(&mut text, finding, paint);
        text.push('\n');
    }
    if verbose {
        for finding in well {
            block(&mut text, finding, paint);
        }
    } else if !well.is_empty() {
        let names: Vec<&str> = well
            .iter()
            .map(|finding| finding.subject.as_str())
            .collect();
        let (mark, _) = mark(Verdict::Well);
        paragraph(
            &mut text,
            &format!("{} ", paint.apply(Look::Good, mark)),
            INDENT,
            &format!("well: {}", names.join(", ")),
        );
    }
    text
}

/// The last line: how many of each, and the next move.
pub(super) fn sum(findings: &[Finding], fixed: bool) -> String {
    let of = |verdict| {
        findings
            .iter()
            .filter(|finding| finding.verdict == verdict)
            .count()
    };
    let (ill, drifted, well) = (of(Verdict::Ill), of(Verdict::Drifted), of(Verdict::Well));
    if ill == 0 && drifted == 0 {
        return format!("{} made, all is well.", count(findings.len(), "check"));
    }
    let mut text = format!("{ill} not well, {drifted} to be brought up to date, {well} well.");
    let mendable = findings
        .iter()
        .filter(|finding| finding.mend.is_some())
        .count();
    if mendable > 0 && !fixed {
        write!(text, " `blueprint doctor --fix` mends {mendable} of them;").ok();
    }
    text.push_str(" `blueprint up` brings everything to what is wanted.");
    text
}

fn mark(verdict: Verdict) -> (&'static str, Look) {
    match verdict {
        Verdict::Ill => ("✘", Look::Bad),
        Verdict::Drifted => ("≠", Look::Warning),
        Verdict::Noted => ("·", Look::Accent),
        Verdict::Well => ("✔", Look::Good),
    }
}

fn block(text: &mut String, finding: &Finding, paint: Paint) {
    let (sign, look) = mark(finding.verdict);
    let lead = format!(
        "{} {}  ",
        paint.apply(look, sign),
        paint.apply(Look::Strong, &finding.subject)
    );
    let summary_room = INDENT.len() + finding.subject.chars().count() + INDENT.len();
    let lines = wrapped(
        &finding.summary,
        COLUMNS.saturating_sub(summary_room).max(40),
    );
    for (number, line) in lines.iter().enumerate() {
        let before = if number == 0 { lead.as_str() } else { "    " };
        text.push_str(format!("{before}{line}").trim_end());
        text.push('\n');
    }
    let mut labelled = |label: &str, words: &str, first: bool| {
        let shown = if first { label } else { "" };
        let lead = format!(
            "{INDENT}{INDENT}{}",
            paint.apply(Look::Faint, &format!("{shown:<LABEL$}"))
        );
        paragraph(text, &lead, &" ".repeat(2 * INDENT.len() + LABEL), words);
    };
    for (number, evidence) in finding.evidence.iter().enumerate() {
        labelled("seen", evidence, number == 0);
    }
    if let Some(cause) = &finding.cause {
        labelled("why", cause, true);
    }
    if let Some(remedy) = &finding.remedy {
        labelled("do", remedy, true);
    }
    if let Some(mend) = finding.mend {
        let words = format!("`blueprint doctor --fix` does it: {}", mend.words());
        labelled("do", &words, finding.remedy.is_none());
    }
}

/// `lead` before the first line, `indent` before the others; both are as wide as `indent`.
fn paragraph(text: &mut String, lead: &str, indent: &str, words: &str) {
    for (number, line) in wrapped(words, COLUMNS - indent.len()).iter().enumerate() {
        let before = if number == 0 { lead } else { indent };
        text.push_str(format!("{before}{line}").trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use blueprint_phase2::doctor::Mend;

    use super::*;

    fn finding(subject: &str, verdict: Verdict, summary: &str) -> Finding {
        Finding {
            subject: subject.to_owned(),
            verdict,
            summary: summary.to_owned(),
            evidence: Vec::new(),
            cause: None,
            remedy: None,
            mend: None,
            follows_from: None,
        }
    }

    fn after_a_reboot() -> Vec<Finding> {
        let mut openbao = finding("openbao", Verdict::Ill, "OpenBao is sealed");
        openbao.evidence = vec![
            "OpenBao unsealed: failed to find OpenBao unsealed on PostgreSQL: initialized: true, sealed: true, storage: postgresql, version 2.7.2".to_owned(),
            "nodes were started: lab-control-plane 3 min ago, lab-worker 3 min ago".to_owned(),
        ];
        openbao.cause = Some("OpenBao seals itself whenever its pod starts anew: the keys are never where the server is".to_owned());
        openbao.remedy = Some("run `blueprint secrets unseal`".to_owned());
        openbao.mend = Some(Mend::Unseal);
        let mut runner = finding(
            "runner",
            Verdict::Ill,
            "failed to read secret/gitlab/runner",
        );
        runner.cause = Some("probably openbao, which it needs and which is not well".to_owned());
        runner.follows_from = Some("openbao".to_owned());
        let mut redis = finding(
            "redis",
            Verdict::Drifted,
            "chart or values of release redis",
        );
        redis.remedy = Some("run `blueprint up --only redis`".to_owned());
        let note = finding(
            "proxy variables",
            Verdict::Noted,
            "HTTPS_PROXY is set and NO_PROXY does not name 127.0.0.1",
        );
        let mut all = vec![openbao, runner, redis, note];
        let names = [
            "API server",
            "nodes are Ready",
            "memory",
            "images can be had",
            "helm",
            "container engine",
            "node containers",
            "inotify limits",
            "gateway-crds",
            "minio",
        ];
        all.extend(names.map(|name| finding(name, Verdict::Well, "as wanted")));
        all
    }

    #[test]
    fn a_report_is_worst_first_and_what_is_well_takes_one_paragraph() {
        insta::assert_snapshot!(report(&after_a_reboot(), Paint::new(false), false));
    }

    #[test]
    fn colours_do_not_move_a_line() {
        let plain = report(&after_a_reboot(), Paint::new(false), true);
        let coloured = report(&after_a_reboot(), Paint::new(true), true);
        assert_eq!(plain.lines().count(), coloured.lines().count());
        assert!(
            plain.lines().all(|line| line.chars().count() <= COLUMNS),
            "{plain}"
        );
    }

    #[test]
    fn the_last_line_counts_and_names_the_next_move() {
        assert_eq!(
            sum(&after_a_reboot(), false),
            "2 not well, 1 to be brought up to date, 10 well. `blueprint doctor --fix` mends 1 of them; `blueprint up` brings everything to what is wanted."
        );
        assert!(!sum(&after_a_reboot(), true).contains("--fix"));
        assert_eq!(
            sum(&after_a_reboot()[3..], false),
            "11 checks made, all is well."
        );
    }
}
