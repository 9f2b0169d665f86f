//! The text report as a whole: the order of the sections, header, summary and verdict line.

use std::io::{self, Write};

use super::page::{Detail, Page, Text};
use super::{finding, fuzzing, next, server, unjudged};
use crate::event::RunSummary;
use crate::report::layout::format_ms;
use crate::report::palette::paint;
use crate::report::visible::{excerpt, visible};
use crate::report::waits::describe_waits;
use crate::report::{CaseCounts, Renderer, Report, Target, conclusion};
use crate::verdict::Verdict;

/// How many lines a report has at most unless it is verbose, so that it fits a screen or two.
const MAX_LINES: usize = 60;

impl Renderer for Text {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let page = Page::new(*self);
        if self.detail == Detail::Verdict {
            return write_verdict(&page, report, out);
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        write_header(&page, report, &mut before)?;
        write_after_findings(&page, self.detail, report, &mut after)?;
        let others = finding::count_lines(&before) + finding::count_lines(&after);
        out.write_all(&before)?;
        finding::write_findings(&page, report, MAX_LINES.saturating_sub(others), out)?;
        out.write_all(&after)
    }
}

/// Writes what follows the findings.
fn write_after_findings(page: &Page, detail: Detail, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    finding::write_baseline(page, report, out)?;
    unjudged::write_unjudged(page, report, out)?;
    unjudged::write_connections(page, report, out)?;
    if detail == Detail::Everything {
        unjudged::write_notes(page, report, out)?;
        unjudged::write_skips(page, report, out)?;
        unjudged::write_requirements(page, report, out)?;
        server::write_processes(page, report, out)?;
    }
    server::write_tools(page, report, out)?;
    server::write_hints(page, report, out)?;
    fuzzing::write_tables(page, report, out)?;
    if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
        server::write_problem(page, problem, out)?;
    }
    write_summary(page, report, out)?;
    next::write_next(page, report, out)?;
    write_verdict(page, report, out)
}

fn write_header(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let server = if report.server.is_empty() { "no server" } else { &report.server };
    writeln!(
        out,
        "{} {} on {}",
        paint(page.palette.strong, visible(&report.tool.name)),
        visible(&report.tool.version),
        paint(page.palette.strong, excerpt(server, page.max_line_chars(), 0))
    )?;
    // Servers usually report the same name and version in every revision.
    let mut names: Vec<String> = Vec::new();
    for info in report.targets.iter().filter_map(|target| target.summary.server_info.as_ref()) {
        let part = |name| info.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let name = excerpt(format!("{} {}", part("name"), part("version")).trim(), 120, 0);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names.iter().take(3) {
        writeln!(out, "{}", paint(page.palette.faint, format_args!("server info: {name}")))?;
    }
    writeln!(out)
}

fn write_summary(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let any_accepted = CaseCounts::of(report).accepted > 0;
    if !report.targets.is_empty() {
        let columns: Vec<String> = [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error]
            .map(|verdict| format!("{:>6}", verdict.as_str()))
            .to_vec();
        let accepted = if any_accepted { "  accepted" } else { "" };
        let columns = format!("{:<10}{}{accepted}", "revision", columns.concat());
        writeln!(out, "{}", paint(page.palette.faint, columns))?;
    }
    for Target { summary, results, .. } in &report.targets {
        let CaseCounts { totals, accepted, .. } = match results.as_slice() {
            [] => CaseCounts { totals: summary.totals, ..CaseCounts::default() },
            results => CaseCounts::of_results(results),
        };
        write!(out, "{:<10}", summary.revision)?;
        for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error] {
            let count = totals.of(verdict);
            let style = if count == 0 { page.palette.faint } else { page.palette.of(verdict) };
            write!(out, "{}", paint(style, format_args!("{count:>6}")))?;
        }
        if any_accepted {
            write!(out, "{accepted:>10}")?;
        }
        writeln!(out)?;
    }
    next::write_extent(page, report, out)?;
    if let Some(RunSummary { timing, .. }) = &report.summary {
        let launches = if timing.launches == 1 { "1 launch" } else { &format!("{} launches", timing.launches) };
        // A server that never responded has no start-up time.
        let startup = match timing.startup_ms {
            ms if ms > 0.0 => format!(", median start-up {}", format_ms(ms)),
            _ => String::new(),
        };
        let (total, judging) = (format_ms(timing.wall_ms), format_ms(timing.judging_ms));
        let work = if report.options.is_of_recording() { String::new() } else { format!("{launches}{startup}; ") };
        page.write_wrapped(0, &format!("{total} in total; {work}judging took {judging}"), out)?;
        if let Some(waits) = timing.waits.as_ref().and_then(describe_waits) {
            page.write_wrapped(0, &waits, out)?;
        }
    }
    Ok(())
}

fn write_verdict(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (keyword, why) = conclusion::verdict_parts(report);
    writeln!(out, "{}: {why}", paint(page.palette.of(conclusion::color_verdict(report)), keyword))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_control_or_invisible;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report, text: Text) -> String {
        let mut bytes = Vec::new();
        text.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("text is UTF-8")
    }

    #[test]
    fn the_rendered_examples_match_the_golden_files() {
        let report = example();
        golden::compare("example.txt", &rendered(&report, Text::default()));
        golden::compare("example-color.txt", &rendered(&report, Text { color: true, ..Text::default() }));
        golden::compare(
            "example-verbose.txt",
            &rendered(&report, Text { detail: Detail::Everything, ..Text::default() }),
        );
    }

    #[test]
    fn server_text_never_controls_the_terminal() {
        let mut report = example();
        // Every text of the report is hostile.
        poison(&mut report, HOSTILE);
        for detail in [Detail::Verdict, Detail::Standard, Detail::Everything] {
            let text = rendered(&report, Text { detail, ..Text::default() });
            let strange: Vec<char> = text.chars().filter(|c| *c != '\n' && is_control_or_invisible(*c)).collect();
            assert_eq!(strange, Vec::<char>::new());
            assert!(!text.lines().any(|line| line.starts_with("PASS")), "a server forged a line");
        }
        // With colour, the only escape sequences are those that set a style.
        let text = rendered(&report, Text { color: true, detail: Detail::Everything, width: 100 });
        for escape in text.split('\u{1b}').skip(1) {
            let style = escape.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(style, _)| style);
            assert!(style.is_some_and(|style| style.chars().all(|c| c.is_ascii_digit() || c == ';')), "{escape}");
        }
    }

    /// The example without parts that leave little room for findings.
    fn short_example() -> Report {
        let mut report = example();
        for target in &mut report.targets {
            (target.summary.fuzz, target.summary.stopped_early) = (None, None);
            target.summary.tools.clear();
            target.summary.notes.clear();
            target.summary.hints.clear();
            target
                .results
                .retain(|result| ["tools/call/unknown-tool", "jsonrpc/error-message"].contains(&&*result.case));
        }
        Report { summary: None, baseline: None, ..report }
    }

    /// The same with more warnings of as many rules.
    fn with_warnings(count: usize) -> Report {
        let mut report = short_example();
        let warned = |result: &&crate::event::CaseResult| result.case == "jsonrpc/error-message";
        let result = report.targets[1].results.iter().find(warned).expect("a warning").clone();
        for number in 0..count {
            let mut more = result.clone();
            more.findings[0].requirement = format!("rule-{number:02}");
            more.findings[0].message = format!("The server breaks rule {number}.");
            (more.findings[0].sdk, more.findings[0].upstream) = (None, None);
            report.targets[1].results.push(more);
        }
        report
    }

    #[test]
    fn failures_are_shown_before_warnings_and_verbose_shows_all() {
        let report = with_warnings(20);
        let usual = rendered(&report, Text::default());
        assert_eq!(usual.matches("--select tools/call/unknown-tool").count(), 1, "failures keep their command");
        assert_eq!(usual.matches("--select jsonrpc/error-message").count(), 0, "warnings are one line each");
        assert!(usual.contains("more findings: -v shows all of them"), "{usual}");
        let all = rendered(&report, Text { detail: Detail::Everything, ..Text::default() });
        assert_eq!(all.matches("WARN  ").count(), 21);
        assert_eq!(all.matches("--select jsonrpc/error-message").count(), 21);
    }

    #[test]
    fn findings_take_few_lines_however_many_there_are() {
        let lines = |report: &Report| rendered(report, Text::default()).lines().count();
        let (few, many) = (lines(&with_warnings(0)), lines(&with_warnings(1000)));
        assert!(few <= many && many <= MAX_LINES, "{few} lines with few warnings, {many} with many");
    }

    #[test]
    fn a_narrow_page_is_not_exceeded_by_prose_and_tables() {
        let mut report = example();
        for tool in report.targets.iter_mut().filter_map(|target| target.summary.fuzz.as_mut()) {
            tool.tools
                .iter_mut()
                .for_each(|tool| tool.tool = "a-tool-with-a-name-that-is-longer-than-usual".to_owned());
        }
        let text = rendered(&report, Text { width: 60, ..Text::default() });
        let wide: Vec<&str> = text
            .lines()
            // Commands, JSON and what a server sent are kept whole, so that they can be copied; the verdict is one line.
            .filter(|line| !line.contains("reproduce") && !line.contains(['{', '|']) && !line.contains("://"))
            .filter(|line| !["mcp-conformance ", "PROBLEM ", "FAIL: "].iter().any(|start| line.starts_with(start)))
            .filter(|line| line.split_whitespace().count() > 1 && line.chars().count() > 60)
            .collect();
        assert_eq!(wide, Vec::<&str>::new());
    }

    #[test]
    fn why_a_level_has_another_verdict_is_said_once() {
        let text = rendered(&example(), Text::default());
        assert_eq!(text.matches("(inferred), ").count(), 2, "{text}");
        assert_eq!(text.matches("no interpretation allows this").count(), 1, "{text}");
    }

    #[test]
    fn only_the_member_that_is_wrong_is_shown_unless_verbose() {
        let mut report = short_example();
        let findings = report.targets.iter_mut().flat_map(|target| &mut target.results).flat_map(|r| &mut r.findings);
        for finding in findings {
            finding.value = Some(serde_json::json!({"type": "text"}));
        }
        let usual = rendered(&report, Text::default());
        assert!(usual.contains(r#"sent       tools/call {"name":"no-such-tool"}"#), "{usual}");
        assert!(!usual.contains("received   ") && !usual.contains(r#""content":[{"#), "{usual}");
        let all = rendered(&report, Text { detail: Detail::Everything, ..Text::default() });
        assert!(
            all.contains(r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"ok"}]}}"#),
            "{all}"
        );
    }

    #[test]
    fn what_a_server_wrote_is_indented_on_a_narrow_page() {
        let mut report = example();
        for finding in report.targets.iter_mut().flat_map(|target| &mut target.results).flat_map(|r| &mut r.findings) {
            finding.actual = format!("at `/data`: {} is no base64", "A".repeat(200));
        }
        let text = rendered(&report, Text { width: 60, detail: Detail::Everything, ..Text::default() });
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("AAAA")).collect();
        assert!(lines.len() >= 5, "{text}");
        let is_indented = |line: &&str| line.starts_with(&" ".repeat(17)) || line.trim_start().starts_with("actual ");
        assert!(lines.iter().all(|line| is_indented(line) && line.chars().count() <= 60), "{lines:#?}");
    }

    #[test]
    fn what_to_do_next_and_the_verdict_are_last() {
        let text = rendered(&example(), Text::default());
        let end = text.split_once("\n\nNext\n").map(|(_, end)| end).unwrap_or_default();
        let actions: Vec<&str> =
            end.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).collect();
        assert!((1..=3).contains(&actions.len()), "{text}");
        assert!(end.lines().last().is_some_and(|line| line.starts_with("FAIL: ")), "{text}");
        assert!(!end.contains("\n\n"), "{text}");
    }

    #[test]
    fn quiet_output_is_only_the_verdict_line() {
        let text = rendered(&example(), Text { detail: Detail::Verdict, ..Text::default() });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("FAIL: 2 requirements violated"), "{text}");
        assert!(text.ends_with("exit code 1\n"), "{text}");
    }

    #[test]
    fn a_problem_is_shown_with_stderr_and_advice() {
        let mut report = example();
        report.targets.clear();
        report.baseline = None;
        let summary = report.summary.as_mut().expect("a summary");
        summary.totals = crate::verdict::Totals::default();
        let text = rendered(&report, Text::default());
        assert!(text.contains("PROBLEM  the server ended"), "{text}");
        assert!(text.contains("Start it manually") && text.contains("| Error: listen EADDRINUSE"), "{text}");
        assert!(text.contains("NOT JUDGED: ") && text.ends_with("exit code 2\n"), "{text}");
    }
}
