//! The text report as a whole: order of the sections, header, summary and line wrapping.
//!
//! Responsible for the layout that all sections share, not for their content.

use std::io::{self, Write};

use super::fuzzing;
use crate::event::RunSummary;
use crate::report::layout::{format_ms, wrap};
use crate::report::palette::{Palette, paint};
use crate::report::visible::{excerpt, visible};
use crate::report::{CaseCounts, Renderer, Report, Target, conclusion};
use crate::spec::Revision;
use crate::verdict::Verdict;

/// How much of the report to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Only the verdict line.
    Verdict,
    /// Findings, what was not judged or called, and the summary.
    #[default]
    Standard,
    /// Additionally every warning in full, notes, reasons for skips, processes and stderr.
    Everything,
}

/// Writes a report for a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// Whether to colour it.
    pub color: bool,
    /// How much to show.
    pub detail: Detail,
    /// The width to which text is wrapped, in columns.
    pub width: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { color: false, detail: Detail::default(), width: 100 }
    }
}

/// The length at which a line of evidence is truncated, in characters.
pub(super) const MAX_LINE_CHARS: usize = 300;
/// The same for verbose output.
pub(super) const MAX_LINE_CHARS_VERBOSE: usize = 4000;
/// The number of names listed in one place.
pub(super) const MAX_NAMES: usize = 12;
/// The width of the labels of a finding's fields, in columns.
pub(super) const LABEL_WIDTH: usize = 11;
/// The minimum width of wrapped text, in columns.
const MIN_COLUMNS: usize = 40;

impl Renderer for Text {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let page = Page { text: *self, palette: Palette::new(self.color) };
        if self.detail != Detail::Verdict {
            page.write_header(report, out)?;
            page.write_findings(report, out)?;
            page.write_baseline(report, out)?;
            page.write_unjudged(report, out)?;
            if self.detail == Detail::Everything {
                page.write_notes(report, out)?;
                page.write_skips(report, out)?;
                page.write_requirements(report, out)?;
                page.write_processes(report, out)?;
            }
            page.write_tools(report, out)?;
            page.write_hints(report, out)?;
            fuzzing::write_tables(report, page.palette, page.is_verbose(), out)?;
            if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
                page.write_problem(problem, out)?;
            }
            page.write_summary(report, out)?;
        }
        page.write_verdict(report, out)
    }
}

pub(super) struct Page {
    text: Text,
    pub(super) palette: Palette,
}

impl Page {
    pub(super) fn is_verbose(&self) -> bool {
        self.text.detail == Detail::Everything
    }

    pub(super) fn max_line_chars(&self) -> usize {
        if self.is_verbose() { MAX_LINE_CHARS_VERBOSE } else { MAX_LINE_CHARS }
    }

    pub(super) fn write_heading(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", paint(self.palette.strong, title))
    }

    /// The width of the report, in columns.
    pub(super) fn width(&self) -> usize {
        self.text.width
    }

    /// The width left for text after an indent, in columns.
    pub(super) fn room(&self, indent: usize) -> usize {
        self.text.width.saturating_sub(indent).max(MIN_COLUMNS)
    }

    /// Writes wrapped text with an indent.
    pub(super) fn write_wrapped(&self, indent: usize, text: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in wrap(text, self.room(indent)) {
            writeln!(out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// The same where it matters less.
    pub(super) fn write_faint(&self, indent: usize, text: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in wrap(text, self.room(indent)) {
            writeln!(out, "{:indent$}{}", "", paint(self.palette.faint, line))?;
        }
        Ok(())
    }

    /// Writes a label and wrapped text with a hanging indent.
    pub(super) fn write_labelled(&self, label: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut label = label;
        for line in wrap(text, self.room(4 + LABEL_WIDTH)) {
            writeln!(out, "    {}{line}", paint(self.palette.faint, format_args!("{label:<LABEL_WIDTH$}")))?;
            label = "";
        }
        Ok(())
    }

    /// The first few names, separated by commas.
    pub(super) fn join_names(&self, names: &[String]) -> String {
        self.join(names, ", ")
    }

    pub(super) fn join(&self, names: &[String], by: &str) -> String {
        let shown = if self.is_verbose() { names.len() } else { names.len().min(MAX_NAMES) };
        let list = names[..shown].join(by);
        if shown < names.len() { format!("{list} and {} more", names.len() - shown) } else { list }
    }

    fn write_header(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let server = if report.server.is_empty() { "no server" } else { &report.server };
        writeln!(
            out,
            "{} {} on {}",
            paint(self.palette.strong, visible(&report.tool.name)),
            visible(&report.tool.version),
            paint(self.palette.strong, excerpt(server, self.max_line_chars(), 0))
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
            writeln!(out, "{}", paint(self.palette.faint, format_args!("server info: {name}")))?;
        }
        writeln!(out)
    }

    fn write_summary(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let any_accepted = CaseCounts::of(report).accepted > 0;
        if !report.targets.is_empty() {
            let columns: Vec<String> = [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error]
                .map(|verdict| format!("{:>6}", verdict.as_str()))
                .to_vec();
            let accepted = if any_accepted { "  accepted" } else { "" };
            let columns = format!("{:<10}{}{accepted}", "revision", columns.concat());
            writeln!(out, "{}", paint(self.palette.faint, columns))?;
        }
        for Target { summary, results, .. } in &report.targets {
            let CaseCounts { totals, accepted, .. } = match results.as_slice() {
                [] => CaseCounts { totals: summary.totals, ..CaseCounts::default() },
                results => CaseCounts::of_results(results),
            };
            write!(out, "{:<10}", summary.revision)?;
            for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error] {
                let count = totals.of(verdict);
                let style = if count == 0 { self.palette.faint } else { self.palette.of(verdict) };
                write!(out, "{}", paint(style, format_args!("{count:>6}")))?;
            }
            if any_accepted {
                write!(out, "{accepted:>10}")?;
            }
            writeln!(out)?;
        }
        if let Some(RunSummary { timing, .. }) = &report.summary {
            let launches = if timing.launches == 1 { "1 launch" } else { &format!("{} launches", timing.launches) };
            // A server that never responded has no start-up time.
            let startup = match timing.startup_ms {
                ms if ms > 0.0 => format!(", median start-up {}", format_ms(ms)),
                _ => String::new(),
            };
            writeln!(
                out,
                "{} in total; {launches}{startup}; judging took {}",
                format_ms(timing.wall_ms),
                format_ms(timing.judging_ms)
            )?;
        }
        Ok(())
    }

    fn write_verdict(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let (keyword, why) = conclusion::verdict_parts(report);
        writeln!(out, "{}: {why}", paint(self.palette.of(conclusion::color_verdict(report)), keyword))
    }
}

/// Writes wrapped text with a hanging indent.
pub(super) fn write_hanging(text: &str, room: usize, out: &mut dyn Write) -> io::Result<()> {
    for (index, line) in wrap(text, room).into_iter().enumerate() {
        writeln!(out, "{}{line}", if index == 0 { "  " } else { "    " })?;
    }
    Ok(())
}

/// Joins revisions with commas.
pub(super) fn join_revisions(of: &[Revision]) -> String {
    of.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
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

    #[test]
    fn many_warnings_are_shortened_unless_verbose() {
        let mut report = example();
        let warned = |result: &&crate::event::CaseResult| result.case == "jsonrpc/error-message";
        let result = report.targets[1].results.iter().find(warned).expect("a warning").clone();
        for number in 0..20 {
            let mut more = result.clone();
            more.findings[0].requirement = format!("rule-{number:02}");
            report.targets[1].results.push(more);
        }
        let usual = rendered(&report, Text::default());
        assert_eq!(usual.matches("WARN  ").count(), 21);
        assert_eq!(usual.matches("--select jsonrpc/error-message").count(), 0);
        assert_eq!(usual.matches("--select tools/call/unknown-tool").count(), 1, "failures keep their evidence");
        assert!(usual.contains("use -v to show"));
        let all = rendered(&report, Text { detail: Detail::Everything, ..Text::default() });
        assert_eq!(all.matches("--select jsonrpc/error-message").count(), 21);
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
