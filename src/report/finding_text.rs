//! The plain-text lines of a finding, shared by all formats: the message, expected and actual behaviour, the
//! rule, the fix and the command that reproduces it.
//!
//! Each line has passed [`visible`](super::visible); joining and escaping lines is up to each format.

use std::fmt::Write as _;

use serde_json::Value;

use super::attribution::Attribution;
use super::palette::{Palette, paint};
use super::visible::excerpt;
use crate::event::CaseResult;
use crate::spec::{Catalogue, Level};
use crate::verdict::{
    ArgumentPart, Confirmation, Counterexample, Direction, Evidence, FailingValues, Finding, Verdict,
};

/// The length at which a line is truncated, in characters.
pub(super) const MAX_LINE_CHARS: usize = 2000;
/// The length at which a part of the arguments is truncated, in characters.
const MAX_NAME_CHARS: usize = 120;

/// A note about a failure that did not occur in every retry; `None` for any other finding.
pub(super) fn flaky_note(finding: &Finding) -> Option<String> {
    let confirmation = finding.confirmation.filter(|confirmation| confirmation.is_flaky())?;
    Some(format!("flaky: {}", describe_retries(confirmation)))
}

/// Whose a finding is, if it is not the author's.
pub(super) fn origin_note(finding: &Finding) -> Option<String> {
    match (Attribution::of(finding), &finding.sdk) {
        (Attribution::Sdk, Some(sdk)) => {
            let mut note = format!("not from your code: {sdk} does this on every server");
            if let Some(upstream) = &finding.upstream {
                let _ = write!(note, ". {upstream}");
            }
            Some(note)
        }
        (Attribution::Interpretation, _) => {
            Some("an open question of interpretation: the specification states the rule without a keyword".to_owned())
        }
        (Attribution::Author | Attribution::Sdk, _) => None,
    }
}

/// Describes how many retries failed.
pub(super) fn describe_retries(confirmation: Confirmation) -> String {
    let Confirmation { tried, failed } = confirmation;
    match (tried, failed) {
        (0, _) => "seen once; no time was left for a retry".to_owned(),
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
        add("fails for", &failing_arguments(counterexample));
    }
    add("retries", &flaky_note(finding).unwrap_or_default());
    add("origin", &origin_note(finding).unwrap_or_default());
    add("accepted", finding.accepted.as_deref().unwrap_or_default());
    add("rule", &finding.link);
    add("fix", &finding.fix);
    add("reproduce", &finding.reproduce);
    lines
}

/// The level, with the reason where the verdict is not the one of the level.
pub(super) fn level_label(finding: &Finding) -> String {
    match level_reason(finding) {
        Some(reason) => format!("{} ({reason})", finding.level),
        None => finding.level.to_string(),
    }
}

/// Why a finding has another verdict than its level says: a violation of a MUST or of the schema fails, and one of a
/// SHOULD warns. No `WARN` stands next to a MUST without it.
pub(super) fn level_reason(finding: &Finding) -> Option<&'static str> {
    let binds = matches!(finding.level, Level::Must | Level::Schema);
    match (finding.verdict, finding.derived, binds) {
        (Verdict::Fail, true, _) => {
            Some("inferred: the specification uses no keyword, but no interpretation allows this")
        }
        (_, true, _) => Some("inferred: the specification uses no keyword, so it only warns"),
        (Verdict::Fail, false, false) => Some("fails, as no interpretation allows this"),
        (Verdict::Warn, false, true) if finding.confirmation.is_some_and(Confirmation::is_flaky) => {
            Some("only warns, as no retry or not every retry failed again")
        }
        (Verdict::Warn, false, true) => {
            Some("only warns, as the rule can be read in another way or the messages do not prove the violation")
        }
        _ => None,
    }
}

/// For which other arguments a failing call fails: "any `query`; `limit` of 0 or less"; empty if that was not tried.
pub(super) fn failing_arguments(counterexample: &Counterexample) -> String {
    let describe = |part: &ArgumentPart| {
        let name = match part.pointer.strip_prefix('/').filter(|name| !name.contains(['/', '~'])) {
            Some(name) => format!("`{name}`"),
            None => format!("`{}`", part.pointer),
        };
        let value = counterexample.arguments.pointer(&part.pointer);
        let number = || value.map(ToString::to_string).unwrap_or_default();
        // The constraint that the arguments violate belongs to this part if it is in the schema of that name.
        let property = part.pointer.rsplit('/').find(|name| name.parse::<usize>().is_err());
        let constraint = counterexample.violated.as_deref().and_then(|violated| violated.split(' ').next());
        let is_wrong = constraint.is_some_and(|schema| schema.split('/').any(|name| Some(name) == property));
        let wrong = if is_wrong { "wrong " } else { "" };
        let text = match part.fails_for {
            FailingValues::Any => format!("any {wrong}{name}"),
            FailingValues::AtMost => format!("{name} of {} or less", number()),
            FailingValues::AtLeast => format!("{name} of {} or more", number()),
            FailingValues::AtLeastAsLong => {
                // The arguments of a very long text are replaced by a note.
                let shown = || value.and_then(Value::as_str).map(|text| text.chars().count());
                part.characters.or_else(shown).map_or_else(
                    || format!("some other {name}, too"),
                    |length| format!("{name} of {length} or more characters"),
                )
            }
            FailingValues::This => format!("this {name} only"),
            FailingValues::Some => format!("some other {name}, too"),
        };
        excerpt(&text, MAX_NAME_CHARS, 0)
    };
    counterexample.parts.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// The evidence of a finding, one line per message or event.
pub(super) fn evidence_lines(finding: &Finding) -> Vec<String> {
    finding.evidence.iter().map(|item| wire_line(item, Palette::new(false), MAX_LINE_CHARS)).collect()
}

/// One line of evidence: direction, time, text.
pub(super) fn wire_line(item: &Evidence, palette: Palette, limit: usize) -> String {
    let direction = match item.direction {
        Direction::Sent => "sent",
        Direction::Received => "received",
        Direction::Stderr => "stderr",
        Direction::Event => "event",
    };
    let style = palette.of_direction(item.direction);
    format!(
        "{} {}  {}",
        paint(style, format_args!("{direction:<8}")),
        paint(palette.faint, format_args!("{:>9.1} ms", item.at_ms)),
        excerpt(&item.text, limit, item.omitted)
    )
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
    use crate::report::{FailOn, Github, Markdown, Renderer, Report, Sarif, Tap, Text, example};
    #[cfg(feature = "reports")]
    use crate::report::{Html, Junit};

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

    /// A report with one finding of this verdict, as strict as possible, so that every format shows it.
    fn report_of(
        requirement: &crate::spec::Requirement,
        verdict: Verdict,
        confirmation: Option<Confirmation>,
    ) -> Report {
        let mut report = example();
        report.options.fail_on = FailOn::Should;
        (report.summary.as_mut().expect("a summary").problem, report.baseline) = (None, None);
        report.targets.truncate(1);
        report.targets[0].summary.fuzz = None;
        report.targets[0].results.truncate(1);
        let revision = report.targets[0].summary.revision;
        let result = &mut report.targets[0].results[0];
        result.verdict = verdict;
        let finding = Finding {
            message: "The server does it wrong.".to_owned(),
            confirmation,
            ..Finding::new(requirement, revision, verdict)
        };
        result.findings = vec![finding];
        report
    }

    /// The formats that show how binding the rule of a finding is.
    fn formats() -> Vec<(&'static str, Box<dyn Renderer>)> {
        let plain = Text { width: 10_000, ..Text::default() };
        let mut formats: Vec<(&'static str, Box<dyn Renderer>)> = vec![
            ("text", Box::new(plain)),
            ("markdown", Box::new(Markdown)),
            ("sarif", Box::new(Sarif::default())),
            ("tap", Box::new(Tap)),
            ("github", Box::new(Github)),
        ];
        #[cfg(feature = "reports")]
        formats.extend([("html", Box::new(Html) as Box<dyn Renderer>), ("junit", Box::new(Junit))]);
        formats
    }

    #[test]
    fn a_verdict_other_than_that_of_the_level_has_its_reason_in_every_format() {
        let mut known = Vec::new();
        let flaky = Some(Confirmation { tried: 1, failed: 0 });
        for requirement in Catalogue::embedded().iter() {
            let kind = (requirement.level, requirement.derived);
            if known.contains(&kind) {
                continue;
            }
            known.push(kind);
            for (verdict, confirmation) in [(Verdict::Fail, None), (Verdict::Warn, None), (Verdict::Warn, flaky)] {
                let report = report_of(requirement, verdict, confirmation);
                let finding = &report.targets[0].results[0].findings[0];
                let reason = level_reason(finding);
                let is_usual = (verdict == Verdict::Fail) == requirement.binds();
                assert_eq!(reason.is_none(), is_usual && !requirement.derived, "{kind:?} {verdict:?}");
                for (name, format) in formats() {
                    // In the title of an annotation these are escaped.
                    let text = report.render(&*format).replace("%2C", ",").replace("%3A", ":");
                    let needed = reason.filter(|_| verdict == Verdict::Warn || requirement.derived);
                    assert!(
                        needed.is_none_or(|reason| text.contains(reason)),
                        "{name} has no reason for {kind:?} with {verdict:?}:\n{text}"
                    );
                }
            }
        }
        assert!(known.len() >= 5, "{known:?}");
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
