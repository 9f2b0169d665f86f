//! The plain-text lines of a finding, shared by all formats: the message, expected and actual behaviour, the
//! rule, the fix and the command that reproduces it.
//!
//! Each line has passed [`visible`](super::visible); joining and escaping lines is up to each format.

use super::palette::Palette;
use super::text::wire_line;
use super::visible::excerpt;
use crate::event::CaseResult;
use crate::spec::Catalogue;
use crate::verdict::{Confirmation, Finding, Verdict};

/// The length at which a line is truncated, in characters.
const MAX_LINE_CHARS: usize = 2000;

/// A note about a failure that did not occur in every retry; `None` for any other finding.
pub(super) fn flaky_note(finding: &Finding) -> Option<String> {
    let confirmation = finding.confirmation.filter(|confirmation| confirmation.is_flaky())?;
    Some(format!("flaky: {}", describe_retries(confirmation)))
}

/// Describes how many retries failed.
pub(super) fn describe_retries(confirmation: Confirmation) -> String {
    let Confirmation { tried, failed } = confirmation;
    match (tried, failed) {
        (1, 0) => "did not fail in 1 retry on a fresh process".to_owned(),
        (1, _) => "failed again in 1 retry on a fresh process".to_owned(),
        (tried, 0) => format!("did not fail in {tried} retries on fresh processes"),
        (tried, failed) if failed >= tried => format!("failed in all {tried} retries on fresh processes"),
        (tried, failed) => format!("failed in {failed} of {tried} retries on fresh processes"),
    }
}

/// A finding without its evidence, one line per field.
pub(super) fn finding_lines(finding: &Finding) -> Vec<String> {
    let mut lines = vec![excerpt(&finding.message, MAX_LINE_CHARS, 0)];
    let mut add = |label: &str, text: &str| {
        if !text.is_empty() {
            lines.push(format!("{label}: {}", excerpt(text, MAX_LINE_CHARS, 0)));
        }
    };
    add("requirement", &finding.requirement);
    add("level", &level_label(finding));
    add("expected", &finding.expected);
    add("actual", &finding.actual);
    add("where", &finding.subjects.join("; "));
    for line in finding.diff.iter().flat_map(|diff| diff.lines()) {
        add("diff", line);
    }
    if let Some(counterexample) = &finding.counterexample {
        add("arguments", &counterexample.arguments.to_string());
    }
    add("retries", &flaky_note(finding).unwrap_or_default());
    add("accepted", finding.accepted.as_deref().unwrap_or_default());
    add("rule", &finding.link);
    add("fix", &finding.fix);
    add("reproduce", &finding.reproduce);
    lines
}

/// The level, with a mark where it is inferred because the specification uses no keyword.
pub(super) fn level_label(finding: &Finding) -> String {
    if finding.derived { format!("{} (inferred)", finding.level) } else { finding.level.to_string() }
}

/// The evidence of a finding, one line per message or event.
pub(super) fn evidence_lines(finding: &Finding) -> Vec<String> {
    finding.evidence.iter().map(|item| wire_line(item, Palette::new(false), MAX_LINE_CHARS)).collect()
}

/// The text of a requirement from the catalogue; `None` if the catalogue does not list it.
pub(super) fn rule_text(requirement: &str) -> Option<&'static str> {
    Catalogue::embedded().get(requirement).map(|requirement| requirement.text.as_str())
}

/// Why a case is accepted: the reasons of its findings, if the baseline accepts all of them.
pub(super) fn accepted_reason(result: &CaseResult) -> Option<String> {
    let reasons: Option<Vec<&str>> = result.findings.iter().map(|finding| finding.accepted.as_deref()).collect();
    let mut reasons = reasons.filter(|reasons| !reasons.is_empty())?;
    reasons.dedup();
    Some(reasons.join("; "))
}

/// The most severe verdict among the findings that the baseline does not accept, or the verdict of a case without
/// findings; `None` if the baseline accepts every finding.
pub(super) fn effective_verdict(result: &CaseResult) -> Option<Verdict> {
    if result.findings.is_empty() {
        return Some(result.verdict);
    }
    result.findings.iter().filter(|finding| finding.accepted.is_none()).map(|finding| finding.verdict).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn every_field_of_a_finding_is_listed_and_escaped() {
        let report = example();
        for finding in report.results().flat_map(|result| &result.findings) {
            let lines = finding_lines(finding);
            assert!(lines.iter().any(|line| line.starts_with("rule: https://")), "{lines:?}");
            for line in lines.iter().chain(&evidence_lines(finding)) {
                assert!(!line.chars().any(super::super::visible::is_control_or_invisible), "{line}");
            }
        }
    }

    #[test]
    fn only_a_failure_that_a_retry_does_not_reproduce_is_flaky() {
        let report = example();
        let mut finding = report.targets[0].results[1].findings[0].clone();
        let mut note = |tried, failed| {
            finding.confirmation = Some(Confirmation { tried, failed });
            flaky_note(&finding)
        };
        assert_eq!(note(1, 1), None);
        assert!(note(1, 0).is_some_and(|text| text == "flaky: did not fail in 1 retry on a fresh process"));
        assert!(note(3, 2).is_some_and(|text| text == "flaky: failed in 2 of 3 retries on fresh processes"));
    }

    #[test]
    fn a_case_is_accepted_if_all_its_findings_are() {
        let report = example();
        let of = |case: &str| report.results().filter(|result| result.case == case).last().expect("it is there");
        assert!(accepted_reason(of("tools/call/image-data")).is_some_and(|why| why.starts_with("known since")));
        assert_eq!(effective_verdict(of("tools/call/image-data")), None);
        assert_eq!(accepted_reason(of("tools/call/unknown-tool")), None);
        assert_eq!(effective_verdict(of("tools/call/unknown-tool")), Some(Verdict::Fail));
        assert_eq!(effective_verdict(of("tools/call/many")), Some(Verdict::Error));
    }
}
