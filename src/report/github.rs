//! GitHub annotations: workflow commands (`::error ...::...`), one for each finding of each requirement.
//!
//! GitHub shows ten errors and ten warnings per step, so equal findings of several revisions are merged, and what is not from
//! the author's code comes after what is. An accepted finding is a notice. The title is what is wrong, since GitHub shows it in bold.

use std::io::{self, Write};

use super::finding_text::{flaky_note, level_label, origin_note};
use super::group::{GroupedFinding, Parts};
use super::visible::excerpt;
use super::{Renderer, Report, conclusion, verdict_line};
use crate::verdict::Verdict;

/// Writes a report as workflow commands of GitHub Actions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Github;

impl Renderer for Github {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let parts = Parts::of(report).fold();
        let groups = [parts.author, parts.sdk, parts.interpretation, parts.accepted].concat();
        for group in groups {
            for grouped in &group.findings {
                let finding = grouped.finding;
                let command = match (&finding.accepted, finding.verdict) {
                    (Some(_), _) => "notice",
                    (None, Verdict::Fail) => "error",
                    (None, _) => "warning",
                };
                write_command(command, &grouped.headline(), &annotation_lines(grouped), out)?;
            }
        }
        for message in report.baseline.iter().flat_map(super::BaselineComparison::outdated_messages) {
            write_command("error", "The baseline is out of date", &[message], out)?;
        }
        if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
            write_command("error", "The run had a problem", &[problem.message.clone(), problem.hint.clone()], out)?;
        }
        let command = match conclusion::color_verdict(report) {
            Verdict::Pass | Verdict::Skip => "notice",
            Verdict::Warn => "warning",
            Verdict::Fail | Verdict::Error => "error",
        };
        write_command(command, "mcp-conformance", &[verdict_line(report)], out)
    }
}

fn annotation_lines(grouped: &GroupedFinding<'_>) -> Vec<String> {
    let finding = grouped.finding;
    let revisions: Vec<&str> = grouped.revisions.iter().map(|revision| revision.as_str()).collect();
    let mut lines = vec![format!("Expected {}; got {}", finding.expected, finding.actual)];
    if !grouped.tools.is_empty() {
        lines.push(format!("Tools: {}", grouped.tools.join(", ")));
    }
    lines.extend(grouped.alike.iter().map(|other| format!("Likewise: {}", other.message)));
    lines.extend(origin_note(finding).map(|note| format!("Origin: {note}")));
    lines.extend(flaky_note(finding));
    lines.extend(finding.accepted.as_ref().map(|why| format!("Accepted: {why}")));
    lines.extend([format!("Fix: {}", finding.fix), format!("Reproduce: {}", finding.reproduce)]);
    let rule = format!("{}, {}", finding.requirement, level_label(finding));
    lines.push(format!("Rule: {rule}, in {} by {}", revisions.join(", "), grouped.cases.join(", ")));
    lines.push(finding.link.clone());
    lines
}

/// Writes one command on one line, with all data escaped.
fn write_command(command: &str, title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    let shown: Vec<String> = lines.iter().map(|line| data(&excerpt(line, 600, 0))).collect();
    let title = property(&excerpt(title, 200, 0));
    writeln!(out, "::{command} title={title}::{}", shown.join("%0A"))
}

/// Escapes a text as the data of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a text as the value of a command property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Github.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("it is UTF-8")
    }

    /// Parses the commands as GitHub's runner does: name, title, message.
    fn commands(text: &str) -> Vec<(String, String, String)> {
        let decoded = |text: &str| {
            text.replace("%3A", ":").replace("%2C", ",").replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        };
        text.lines()
            .map(|line| {
                let rest = line.strip_prefix("::").expect("every line is a command");
                let (head, message) = rest.split_once("::").expect("a command has data");
                let (name, title) = head.split_once(" title=").expect("a title alone");
                assert!(!title.contains(','), "the title contains another property: {title}");
                (name.to_owned(), decoded(title), decoded(message))
            })
            .collect()
    }

    #[test]
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.github.txt", &rendered(&example()));
    }

    #[test]
    fn failures_come_first_and_accepted_findings_are_notices() {
        let commands = commands(&rendered(&example()));
        let names: Vec<&str> = commands.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["error", "error", "warning", "notice", "error", "error", "error", "error"]);
        assert!(commands[3].2.contains("Accepted: known since 1.3"), "{:?}", commands[3]);
    }

    #[test]
    fn a_failure_of_the_sdk_comes_after_warnings_of_the_author() {
        let mut report = example();
        for finding in
            report.targets.iter_mut().flat_map(|target| &mut target.results).flat_map(|one| &mut one.findings)
        {
            let is_of_sdk = finding.verdict == Verdict::Fail && finding.accepted.is_none();
            finding.sdk = is_of_sdk.then(|| "TypeScript SDK 1".to_owned());
        }
        let commands = commands(&rendered(&report));
        let findings: Vec<&str> = commands.iter().take(4).map(|(name, ..)| name.as_str()).collect();
        assert_eq!(findings, ["warning", "error", "error", "notice"]);
        assert!(commands[1].2.contains("Origin: not from your code: TypeScript SDK 1"), "{:?}", commands[1]);
    }

    #[test]
    fn server_text_never_becomes_a_command_or_a_property() {
        let mut report = example();
        let before = commands(&rendered(&report)).len();
        poison(&mut report, &format!("\n::error file=x,line=1::owned\r\n##[error]%0A::x:: {HOSTILE}"));
        let text = rendered(&report);
        let commands = commands(&text);
        assert_eq!(commands.len(), before);
        assert!(commands.iter().all(|(name, ..)| ["error", "warning", "notice"].contains(&name.as_str())));
        assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
    }
}
