//! TAP version 13: a test point for each case in each revision, with a YAML block for findings.
//!
//! Nothing here needs version 14, and readers of version 13 reject it. The texts of findings are block scalars, as the YAML
//! reader of Perl's `prove` takes a quoted list item with a colon for a mapping.
//!
//! An accepted case is marked `TODO`, which is TAP's directive for an expected failure; a case that could not be
//! judged is not ok, and a problem of the run is a bail-out.

use std::io::{self, Write};

use serde_json::Value;

use super::finding_text::{accepted_reason, effective_verdict, evidence_lines, finding_lines, level_label};
use super::visible::{excerpt, visible};
use super::{FailOn, Renderer, Report};
use crate::event::CaseResult;
use crate::verdict::{Finding, Verdict};

/// Writes a report as TAP version 13.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tap;

impl Renderer for Tap {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let outdated_messages: Vec<String> =
            report.baseline.iter().flat_map(super::BaselineComparison::outdated_messages).collect();
        writeln!(out, "TAP version 13")?;
        writeln!(out, "1..{}", report.results().count() + outdated_messages.len())?;
        let mut number = 0;
        for result in report.results() {
            number += 1;
            write_point(report, number, result, out)?;
        }
        for complaint in outdated_messages {
            number += 1;
            writeln!(out, "not ok {number} - baseline: {}", escaped(&excerpt(&complaint, 1000, 0)))?;
        }
        let problem = report.summary.as_ref().map(|summary| summary.problem.as_ref());
        match problem {
            Some(Some(problem)) => writeln!(out, "Bail out! {}", escaped(&excerpt(&problem.message, 1000, 0))),
            None => writeln!(out, "Bail out! the run was aborted"),
            Some(None) => Ok(()),
        }
    }
}

fn write_point(report: &Report, number: usize, result: &CaseResult, out: &mut dyn Write) -> io::Result<()> {
    let todo = accepted_reason(result);
    let fails = match effective_verdict(result) {
        Some(Verdict::Pass | Verdict::Skip) => false,
        Some(Verdict::Warn) => report.options.fail_on == FailOn::Should,
        // An accepted failure is still a failure; the directive says that it is expected.
        Some(Verdict::Fail | Verdict::Error) | None => true,
    };
    let status = if fails { "not ok" } else { "ok" };
    let reason = result.reason.as_deref().unwrap_or("no reason given");
    let directive = match (&todo, result.verdict) {
        (Some(why), _) => format!(" # TODO {}", escaped(&excerpt(why, 500, 0))),
        (None, Verdict::Skip) => format!(" # SKIP {}", escaped(&excerpt(reason, 500, 0))),
        (None, _) => String::new(),
    };
    let case = escaped(&visible(&result.case));
    let title = escaped(&excerpt(&result.title, 200, 0));
    writeln!(out, "{status} {number} - {} {case}: {title}{directive}", result.revision)?;
    if result.verdict == Verdict::Error {
        writeln!(out, "  ---\n  verdict: error\n  message: {}\n  ...", quoted(reason))?;
    } else if !result.findings.is_empty() {
        writeln!(out, "  ---\n  verdict: {}\n  findings:", result.verdict.as_str())?;
        result.findings.iter().try_for_each(|finding| write_finding(finding, out))?;
        writeln!(out, "  ...")?;
    }
    Ok(())
}

/// A finding as an item of a YAML list.
fn write_finding(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "    - message: {}", quoted(&finding.message))?;
    writeln!(out, "      requirement: {}", quoted(&finding.requirement))?;
    writeln!(out, "      level: {}", quoted(&level_label(finding)))?;
    writeln!(out, "      severity: {}", finding.verdict.as_str())?;
    for (name, lines) in [("details", finding_lines(finding)), ("messages", evidence_lines(finding))] {
        if lines.is_empty() {
            continue;
        }
        writeln!(out, "      {name}: |")?;
        for line in lines {
            // White space at the beginning of a block would change its indentation.
            writeln!(out, "        {}", excerpt(&line, 2000, 0).trim())?;
        }
    }
    Ok(())
}

/// Escapes a text for a description or a directive, where `#` starts a directive.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}

/// A text as a YAML scalar: a JSON string, which is also valid YAML.
fn quoted(text: &str) -> String {
    Value::from(excerpt(text, 2000, 0)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Tap.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("TAP is UTF-8")
    }

    /// Parses the test points: ok, description, directive.
    fn points(text: &str) -> Vec<(bool, String, Option<String>)> {
        let mut found = Vec::new();
        for line in text.lines() {
            let (ok, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
                (Some(rest), _) => (true, rest),
                (None, Some(rest)) => (false, rest),
                (None, None) => {
                    let known = ["TAP version 13", "1..", "  ", "Bail out! "];
                    assert!(known.iter().any(|start| line.starts_with(start)), "an unexpected line: {line}");
                    continue;
                }
            };
            let (number, rest) = rest.split_once(" - ").expect("a description");
            assert_eq!(number.parse::<usize>().ok(), Some(found.len() + 1), "{line}");
            // A directive starts at the first `#` that is not escaped.
            let (mut from, mut directive) = (rest.len(), None);
            let mut escaped = false;
            for (at, c) in rest.char_indices() {
                if c == '#' && !escaped {
                    (from, directive) = (at, Some(rest[at + 1..].trim().to_owned()));
                    break;
                }
                escaped = c == '\\' && !escaped;
            }
            found.push((ok, rest[..from].trim().to_owned(), directive));
        }
        found
    }

    #[test]
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.tap", &rendered(&example()));
    }

    #[test]
    fn every_case_is_one_test_point_with_its_directive() {
        let report = example();
        let text = rendered(&report);
        let points = points(&text);
        assert_eq!(points.len(), report.results().count() + 2, "two for the baseline");
        assert!(text.contains(&format!("\n1..{}\n", points.len())));
        let count = |directive_name: &str| {
            points
                .iter()
                .filter(|(.., directive)| directive.as_ref().is_some_and(|d| d.starts_with(directive_name)))
                .count()
        };
        assert_eq!([count("TODO"), count("SKIP")], [1, 2]);
        assert_eq!(points.iter().filter(|(ok, ..)| !ok).count(), 5 + 2);
        assert!(text.lines().last().is_some_and(|line| line.starts_with("Bail out! ")));
    }

    #[test]
    fn server_text_never_becomes_a_line_or_a_directive() {
        let mut report = example();
        poison(&mut report, &format!(" # SKIP \\# TODO\nok 1\nBail out!\n  ...\n{HOSTILE}"));
        let text = rendered(&report);
        let points = points(&text);
        assert_eq!(points.len(), report.results().count() + 2);
        assert_eq!(points.iter().filter(|(ok, ..)| !ok).count(), 5 + 2);
        assert_eq!(points.iter().filter(|(.., directive)| directive.is_some()).count(), 3);
        assert_eq!(text.lines().filter(|line| line.starts_with("Bail out!")).count(), 1);
        assert_eq!(text.lines().filter(|line| *line == "  ...").count(), 6);
        assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
    }
}
