//! `JUnit` XML: a suite for each revision, a test case for each of its cases.
//!
//! A failing case is a failure, an accepted one is skipped with the reason, and one that could not be judged is an
//! error. A warning is a failure only if warnings fail the run.

use std::io;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};

use super::finding_text::{
    MAX_LINE_CHARS, accepted_reason, effective_verdict, evidence_lines, finding_lines, flaky_note,
};
use super::group::{GroupedFinding, causes_of};
use super::visible::{excerpt, visible};
use super::{Conclusion, FailOn, Renderer, Report, Target};
use crate::event::CaseResult;
use crate::verdict::Verdict;

/// Writes a report as `JUnit` XML.
#[derive(Debug, Clone, Copy, Default)]
pub struct Junit;

impl Renderer for Junit {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = quick_junit::Report::new("mcp-conformance");
        page.timestamp = report.started.parse().ok();
        if let Some(summary) = &report.summary {
            page.time = Some(milliseconds(summary.timing.wall_ms));
        }
        page.add_test_suites(report.targets.iter().map(|target| suite(report, target)));
        page.add_test_suites(run_suite(report));
        page.serialize(&mut *out).map_err(io::Error::other)?;
        out.flush()
    }
}

fn milliseconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time / 1000.0).unwrap_or_default()
}

fn suite(report: &Report, target: &Target) -> TestSuite {
    let mut suite = TestSuite::new(format!("mcp-conformance {}", target.summary.revision));
    suite.timestamp = report.started.parse().ok();
    suite.time = Some(milliseconds(target.results.iter().map(|result| result.duration_ms).sum()));
    let mut property = |name: &str, value: &str| {
        suite.properties.push(Property::new(name, excerpt(value, 1000, 0)));
    };
    property("tool", &format!("{} {}", report.tool.name, report.tool.version));
    property("server", &report.server);
    property("revision", target.summary.revision.as_str());
    for name in ["name", "version"] {
        let value = target.summary.server_info.as_ref().and_then(|info| info.get(name)?.as_str());
        if let Some(value) = value {
            property(&format!("server-{name}"), value);
        }
    }
    if let Some(reason) = &target.summary.stopped_early {
        property("stopped-early", reason);
    }
    suite.add_test_cases(target.results.iter().map(|result| test_case(report, result)));
    if !target.summary.stderr.trim().is_empty() {
        suite.set_system_err(lines(target.summary.stderr.lines().map(|line| visible(line).into_owned())));
    }
    suite
}

fn test_case(report: &Report, result: &CaseResult) -> TestCase {
    let mut case = TestCase::new(visible(&result.case), status(report, result));
    let area = result.case.split('/').next().unwrap_or_default();
    case.set_classname(format!("{}.{}", result.revision, visible(area)));
    case.set_time(milliseconds(result.duration_ms));
    case.add_property(("title", excerpt(&result.title, 500, 0).as_str()));
    case.add_property(("verdict", result.verdict.as_str()));
    for requirement in &result.requirements {
        case.add_property(("requirement", visible(requirement).as_ref()));
    }
    let causes = causes_of(result);
    for note in causes.iter().filter_map(|cause| flaky_note(cause.finding)) {
        case.add_property(("flaky", note.as_str()));
    }
    for note in &result.notes {
        case.add_property(("note", excerpt(note, 1000, 0).as_str()));
    }
    let evidence: Vec<String> = causes
        .iter()
        .map(|cause| cause.finding)
        .flat_map(|finding| std::iter::once(format!("# {}", finding.requirement)).chain(evidence_lines(finding)))
        .map(|line| visible(&line).into_owned())
        .collect();
    if !evidence.is_empty() {
        case.set_system_out(lines(evidence));
    }
    case
}

fn status(report: &Report, result: &CaseResult) -> TestCaseStatus {
    let reason = result.reason.as_deref().unwrap_or("no reason given");
    if let Some(why) = accepted_reason(result) {
        let mut status = TestCaseStatus::skipped();
        status.set_type("accepted").set_message(excerpt(&format!("accepted: {why}"), 1000, 0));
        status.set_description(describe_findings(result));
        return status;
    }
    match effective_verdict(result).unwrap_or(result.verdict) {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Warn if report.options.fail_on != FailOn::Should => TestCaseStatus::success(),
        Verdict::Skip => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(excerpt(reason, 1000, 0));
            status
        }
        Verdict::Error => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("not judged").set_message(excerpt(reason, 1000, 0));
            status
        }
        verdict @ (Verdict::Fail | Verdict::Warn) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let messages: Vec<String> = causes_of(result).iter().map(GroupedFinding::headline).collect();
            status.set_type(verdict.as_str()).set_message(excerpt(&messages.join(" "), 1000, 0));
            status.set_description(describe_findings(result));
            status
        }
    }
}

/// The findings of a case as plain text, one for each cause.
fn describe_findings(result: &CaseResult) -> String {
    let parts: Vec<String> = causes_of(result).iter().map(|cause| lines(cause_lines(cause))).collect();
    parts.join("\n")
}

/// The lines of a finding, with the tools that behave alike.
fn cause_lines(cause: &GroupedFinding<'_>) -> Vec<String> {
    let mut lines = finding_lines(cause.finding);
    if cause.tools.len() > 1 {
        lines[0] = excerpt(&cause.headline(), MAX_LINE_CHARS, 0);
        lines.insert(1, format!("tools: {}", excerpt(&cause.tools.join(", "), MAX_LINE_CHARS, 0)));
    }
    lines
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().fold(String::new(), |mut text, line| {
        text.push_str(&line);
        text.push('\n');
        text
    })
}

/// A suite for what is wrong with the run as a whole: a problem, or an outdated baseline.
fn run_suite(report: &Report) -> Option<TestSuite> {
    let mut cases = Vec::new();
    let mut add = |name: &str, kind, message: &str, description: String| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_type(name).set_message(excerpt(message, 1000, 0)).set_description(description);
        cases.push(TestCase::new(name, status));
    };
    if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
        let evidence = problem.stderr.lines().map(|line| visible(line).into_owned());
        add(
            "problem",
            NonSuccessKind::Error,
            &problem.message,
            lines(evidence.chain([excerpt(&problem.hint, 1000, 0)])),
        );
    }
    if report.summary.is_none() {
        add("aborted", NonSuccessKind::Error, "the run was aborted", String::new());
    }
    for (at, message) in report.baseline.iter().flat_map(super::BaselineComparison::outdated_messages).enumerate() {
        add(&format!("baseline {}", at + 1), NonSuccessKind::Failure, &message, super::verdict_line(report));
    }
    // A run that judged nothing must not look like a passing one.
    if Conclusion::of(report) == Conclusion::NothingJudged {
        add("nothing-judged", NonSuccessKind::Error, &super::verdict_line(report), String::new());
    }
    let mut suite = TestSuite::new("mcp-conformance run");
    suite.add_test_cases(cases);
    (suite.tests > 0).then_some(suite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report) -> String {
        let mut bytes = Vec::new();
        Junit.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("XML is UTF-8")
    }

    #[test]
    fn the_rendered_example_matches_the_golden_file() {
        golden::compare("example.junit.xml", &rendered(&example()));
    }

    #[test]
    fn an_xml_parser_finds_every_case_with_its_status() {
        let report = example();
        let text = rendered(&report);
        let document = roxmltree::Document::parse(&text).expect("it is XML");
        let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!(count("testsuite"), report.targets.len() + 1, "one for the problem of the run");
        assert_eq!(count("testcase"), report.results().count() + 3, "two of them for the baseline");
        // One of the four failing cases is accepted; a warning is not a failure.
        assert_eq!([count("failure"), count("skipped"), count("error")], [3 + 2, 3, 2]);
        let failing = |node: &roxmltree::Node<'_, '_>| {
            node.attribute("classname") == Some("2025-11-25.tools")
                && node.attribute("name") == Some("tools/call/unknown-tool")
        };
        let case = document.descendants().find(failing).expect("the case");
        let output = case.children().find(|node| node.has_tag_name("system-out")).expect("its transcript");
        assert!(output.text().is_some_and(|text| text.contains("\"method\":\"tools/call\"")), "{output:?}");
    }

    #[test]
    fn quick_junit_parses_what_was_written() {
        let text = rendered(&example());
        let read = quick_junit::Report::deserialize_from_str(&text).expect("it is JUnit");
        let cases: Vec<(&str, bool)> = read
            .test_suites
            .iter()
            .flat_map(|suite| &suite.test_cases)
            .map(|case| (case.name.as_str(), matches!(case.status, TestCaseStatus::NonSuccess { .. })))
            .collect();
        let failing = ["tools/call/unknown-tool", "fuzz/crash", "tools/call/many", "tools/call/unknown-tool"];
        let wrong: Vec<&str> = cases.iter().filter(|(_, failed)| *failed).map(|(name, _)| *name).collect();
        assert_eq!(wrong[..4], failing);
        assert_eq!(wrong[4..], ["problem", "baseline 1", "baseline 2"]);
        assert_eq!((cases.len(), read.tests, read.failures, read.errors), (13, 13, 5, 2));
    }

    #[test]
    fn a_cause_is_described_once_however_many_tools_show_it() {
        let mut report = example();
        let crash = |result: &&mut CaseResult| result.case == "fuzz/crash";
        let result = report.targets[1].results.iter_mut().find(crash).expect("the example has one");
        result.findings[0].message = "search: the server exits".to_owned();
        for tool in ["delete", "list"] {
            let mut other = result.findings[0].clone();
            other.message = format!("{tool}: the server exits");
            tool.clone_into(&mut other.counterexample.as_mut().expect("the fuzzer found it").tool);
            result.findings.push(other);
        }
        let text = rendered(&report);
        assert_eq!(text.matches("message=\"3 tools: the server exits\"").count(), 1, "{text}");
        assert_eq!(text.matches("tools: search, delete, list").count(), 1);
        assert_eq!(text.matches("requirement: jsonrpc-request-answered").count(), 1);
        assert_eq!(text.matches("# jsonrpc-request-answered").count(), 1);
    }

    #[test]
    fn warnings_are_failures_only_if_they_fail_the_run() {
        let mut report = example();
        report.options.fail_on = FailOn::Should;
        assert_eq!(rendered(&report).matches("<failure ").count(), 4 + 2);
    }

    #[test]
    fn server_text_never_becomes_markup() {
        let mut report = example();
        let nasty = format!("]]></system-out><failure/>&x;<!-- \u{fffe}\u{ffff}\u{0} {HOSTILE}");
        poison(&mut report, &nasty);
        let text = rendered(&report);
        let document = roxmltree::Document::parse(&text).expect("it is XML all the same");
        let names: std::collections::BTreeSet<&str> =
            document.descendants().filter(roxmltree::Node::is_element).map(|node| node.tag_name().name()).collect();
        let known = [
            "error",
            "failure",
            "properties",
            "property",
            "skipped",
            "system-err",
            "system-out",
            "testcase",
            "testsuite",
            "testsuites",
        ];
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("failure")).count(), 3 + 2);
        assert!(!text.chars().any(|c| c != '\n' && is_control_or_invisible(c)));
    }
}
