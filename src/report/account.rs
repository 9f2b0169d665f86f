//! A finding told in plain lines, for every format that holds prose: what is wrong, what proves it, the
//! rule, how to mend it and the command that shows it again.
//!
//! Each line is [`visible`](super::visible) already; how lines are joined and escaped is the format's own.

use super::palette::Palette;
use super::text::wire_line;
use super::visible::excerpt;
use crate::event::CaseResult;
use crate::spec::Catalogue;
use crate::verdict::{Finding, Verdict};

/// How many characters of a line are kept.
const LINE: usize = 2000;

/// What is said of a failure that did not come back, or not each time; nothing of any other finding.
pub(super) fn doubt(finding: &Finding) -> Option<String> {
    let confirmation = finding.confirmation.filter(|confirmation| confirmation.is_flaky())?;
    let tried = match confirmation.tried {
        1 => "once".to_owned(),
        tried => format!("{tried} times"),
    };
    Some(match confirmation.failed {
        0 => format!("flaky: tried again {tried} on a fresh process, it did not come back"),
        failed => format!("flaky: tried again {tried} on a fresh process, it came back {failed} of them"),
    })
}

/// The finding without its messages, a line for each thing.
pub(super) fn account(finding: &Finding) -> Vec<String> {
    let mut lines = vec![excerpt(&finding.message, LINE, 0)];
    let mut add = |label: &str, text: &str| {
        if !text.is_empty() {
            lines.push(format!("{label}: {}", excerpt(text, LINE, 0)));
        }
    };
    add("requirement", &finding.requirement);
    add("level", &level(finding));
    add("expected", &finding.expected);
    add("actual", &finding.actual);
    add("at", &finding.subjects.join("; "));
    for line in finding.diff.iter().flat_map(|diff| diff.lines()) {
        add("diff", line);
    }
    if let Some(counterexample) = &finding.counterexample {
        add("arguments", &counterexample.arguments.to_string());
    }
    add("confidence", &doubt(finding).unwrap_or_default());
    add("accepted", finding.accepted.as_deref().unwrap_or_default());
    add("rule", &finding.link);
    add("mend", &finding.fix);
    add("again", &finding.reproduce);
    lines
}

/// How strongly the requirement binds, in words.
pub(super) fn level(finding: &Finding) -> String {
    if finding.derived { format!("{}, by our reading", finding.level) } else { finding.level.to_string() }
}

/// The messages that prove a finding, a line for each.
pub(super) fn transcript(finding: &Finding) -> Vec<String> {
    finding.evidence.iter().map(|item| wire_line(item, Palette::new(false), LINE)).collect()
}

/// The rule behind a requirement, in the catalogue's words; nothing where it is in no catalogue of ours.
pub(super) fn rule(requirement: &str) -> Option<&'static str> {
    Catalogue::embedded().get(requirement).map(|requirement| requirement.text.as_str())
}

/// Why a whole case is accepted: the reasons of its findings, if a baseline lists each of them.
pub(super) fn accepted(result: &CaseResult) -> Option<String> {
    let reasons: Option<Vec<&str>> = result.findings.iter().map(|finding| finding.accepted.as_deref()).collect();
    let mut reasons = reasons.filter(|reasons| !reasons.is_empty())?;
    reasons.dedup();
    Some(reasons.join("; "))
}

/// The heaviest verdict among the findings of a case that no baseline lists; its own verdict where it has none.
pub(super) fn standing(result: &CaseResult) -> Option<Verdict> {
    if result.findings.is_empty() {
        return Some(result.verdict);
    }
    result.findings.iter().filter(|finding| finding.accepted.is_none()).map(|finding| finding.verdict).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;
    use crate::verdict::Confirmation;

    #[test]
    fn a_finding_is_told_whole_and_nothing_in_it_acts() {
        let report = example();
        for finding in report.results().flat_map(|result| &result.findings) {
            let lines = account(finding);
            assert!(lines.iter().any(|line| line.starts_with("rule: https://")), "{lines:?}");
            for line in lines.iter().chain(&transcript(finding)) {
                assert!(!line.chars().any(super::super::visible::is_treacherous), "{line}");
            }
        }
    }

    #[test]
    fn only_what_did_not_come_back_each_time_is_in_doubt() {
        let report = example();
        let mut finding = report.targets[0].results[1].findings[0].clone();
        let mut told = |tried, failed| {
            finding.confirmation = Some(Confirmation { tried, failed });
            doubt(&finding)
        };
        assert_eq!(told(1, 1), None);
        assert!(told(1, 0).is_some_and(|text| text.ends_with("once on a fresh process, it did not come back")));
        assert!(told(3, 2).is_some_and(|text| text.ends_with("it came back 2 of them")));
    }

    #[test]
    fn a_case_is_accepted_where_each_of_its_findings_is() {
        let report = example();
        let of = |case: &str| report.results().filter(|result| result.case == case).last().expect("it is there");
        assert!(accepted(of("tools/call/image-data")).is_some_and(|why| why.starts_with("known since")));
        assert_eq!(standing(of("tools/call/image-data")), None);
        assert_eq!(accepted(of("tools/call/unknown-tool")), None);
        assert_eq!(standing(of("tools/call/unknown-tool")), Some(Verdict::Fail));
        assert_eq!(standing(of("tools/call/many")), Some(Verdict::Error));
    }
}
