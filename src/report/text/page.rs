//! The page as a whole: the order of its parts, its head and its end, and how prose is set.
//!
//! Owns the measures that every part keeps to, and refuses to know what stands in one.

use std::io::{self, Write};

use super::fuzzing;
use crate::event::RunSummary;
use crate::report::palette::{Palette, paint};
use crate::report::prose::{time, wrap};
use crate::report::visible::{excerpt, visible};
use crate::report::{Renderer, Report, Standing, Target, conclusion};
use crate::spec::Revision;
use crate::verdict::Verdict;

/// How much a reader wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The verdict line alone.
    Verdict,
    /// Findings, what was left out, and the summary.
    #[default]
    Usual,
    /// Also every warning in full, notes, reasons for skips, processes and error streams.
    Everything,
}

/// Writes a report for a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// Whether to colour it.
    pub color: bool,
    /// How much to show.
    pub detail: Detail,
    /// How many columns prose may take.
    pub width: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { color: false, detail: Detail::default(), width: 100 }
    }
}

/// How many characters of a line of proof are shown.
pub(super) const LINE: usize = 300;
/// The same where everything is asked for.
pub(super) const LONG_LINE: usize = 4000;
/// How many names of a kind are listed.
pub(super) const NAMES: usize = 12;
/// How wide the column to the left of a finding's parts is, where each is named.
pub(super) const LABEL: usize = 10;
/// The fewest columns that prose is set in, however narrow the page.
const NARROWEST: usize = 40;

impl Renderer for Text {
    fn render(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let page = Page { text: *self, palette: Palette::new(self.color) };
        if self.detail != Detail::Verdict {
            page.head(report, out)?;
            page.findings(report, out)?;
            page.baseline(report, out)?;
            page.unjudged(report, out)?;
            if self.detail == Detail::Everything {
                page.notes(report, out)?;
                page.skips(report, out)?;
                page.requirements(report, out)?;
                page.processes(report, out)?;
            }
            page.tools(report, out)?;
            page.hints(report, out)?;
            fuzzing::tables(report, page.palette, page.everything(), out)?;
            if let Some(problem) = report.summary.as_ref().and_then(|summary| summary.problem.as_ref()) {
                page.problem(problem, out)?;
            }
            page.summary(report, out)?;
        }
        page.verdict(report, out)
    }
}

pub(super) struct Page {
    text: Text,
    pub(super) palette: Palette,
}

impl Page {
    pub(super) fn everything(&self) -> bool {
        self.text.detail == Detail::Everything
    }

    pub(super) fn line(&self) -> usize {
        if self.everything() { LONG_LINE } else { LINE }
    }

    pub(super) fn heading(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", paint(self.palette.strong, title))
    }

    /// How many columns the page has.
    pub(super) fn width(&self) -> usize {
        self.text.width
    }

    /// How many columns are left to prose behind so many.
    pub(super) fn room(&self, indent: usize) -> usize {
        self.text.width.saturating_sub(indent).max(NARROWEST)
    }

    /// Writes prose, wrapped, each line behind so many columns.
    pub(super) fn wrapped(&self, indent: usize, prose: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in wrap(prose, self.room(indent)) {
            writeln!(out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// The same where it matters less.
    pub(super) fn faintly(&self, indent: usize, prose: &str, out: &mut dyn Write) -> io::Result<()> {
        for line in wrap(prose, self.room(indent)) {
            writeln!(out, "{:indent$}{}", "", paint(self.palette.faint, line))?;
        }
        Ok(())
    }

    /// Writes prose beside a label, wrapped, its later lines below its first.
    pub(super) fn labelled(&self, label: &str, prose: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut label = label;
        for line in wrap(prose, self.room(4 + LABEL)) {
            writeln!(out, "    {}{line}", paint(self.palette.faint, format_args!("{label:<LABEL$}")))?;
            label = "";
        }
        Ok(())
    }

    /// Names, the first few of them.
    pub(super) fn listed(&self, names: &[String]) -> String {
        self.joined(names, ", ")
    }

    pub(super) fn joined(&self, names: &[String], by: &str) -> String {
        let shown = if self.everything() { names.len() } else { names.len().min(NAMES) };
        let list = names[..shown].join(by);
        if shown < names.len() { format!("{list} and {} more", names.len() - shown) } else { list }
    }

    fn head(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let server = if report.server.is_empty() { "no server" } else { &report.server };
        writeln!(
            out,
            "{} {} on {}",
            paint(self.palette.strong, visible(&report.tool.name)),
            visible(&report.tool.version),
            paint(self.palette.strong, excerpt(server, self.line(), 0))
        )?;
        // What the server calls itself, each name once: it usually says the same in every revision.
        let mut names: Vec<String> = Vec::new();
        for info in report.targets.iter().filter_map(|target| target.summary.server_info.as_ref()) {
            let part = |name| info.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            let name = excerpt(format!("{} {}", part("name"), part("version")).trim(), 120, 0);
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names.iter().take(3) {
            writeln!(out, "{}", paint(self.palette.faint, format_args!("it calls itself {name}")))?;
        }
        writeln!(out)
    }

    fn summary(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let any_accepted = Standing::of(report).accepted > 0;
        if !report.targets.is_empty() {
            let words: Vec<String> = [Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error]
                .map(|verdict| format!("{:>6}", verdict.as_str()))
                .to_vec();
            let accepted = if any_accepted { "  accepted" } else { "" };
            let words = format!("{:<10}{}{accepted}", "revision", words.concat());
            writeln!(out, "{}", paint(self.palette.faint, words))?;
        }
        for Target { summary, results, .. } in &report.targets {
            let Standing { totals, accepted, .. } = match results.as_slice() {
                [] => Standing { totals: summary.totals, ..Standing::default() },
                results => Standing::of_results(results),
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
            // A server that never answered has no start-up time.
            let startup = match timing.startup_ms {
                ms if ms > 0.0 => format!(", median start-up {}", time(ms)),
                _ => String::new(),
            };
            writeln!(
                out,
                "{} in all; {launches}{startup}; judging took {}",
                time(timing.wall_ms),
                time(timing.judging_ms)
            )?;
        }
        Ok(())
    }

    fn verdict(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let (word, why) = conclusion::verdict_words(report);
        writeln!(out, "{}: {why}", paint(self.palette.of(conclusion::tone(report)), word))
    }
}

/// Writes prose, wrapped, its later lines further in than its first.
pub(super) fn hanging(prose: &str, room: usize, out: &mut dyn Write) -> io::Result<()> {
    for (index, line) in wrap(prose, room).into_iter().enumerate() {
        writeln!(out, "{}{line}", if index == 0 { "  " } else { "    " })?;
    }
    Ok(())
}

/// Revisions, one after the other.
pub(super) fn revisions(of: &[Revision]) -> String {
    of.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::visible::is_treacherous;
    use crate::report::{HOSTILE, example, golden, poison};

    fn rendered(report: &Report, text: Text) -> String {
        let mut bytes = Vec::new();
        text.render(report, &mut bytes).expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("text is UTF-8")
    }

    #[test]
    fn the_example_renders_are_fixed() {
        let report = example();
        golden::compare("example.txt", &rendered(&report, Text::default()));
        golden::compare("example-color.txt", &rendered(&report, Text { color: true, ..Text::default() }));
        golden::compare(
            "example-verbose.txt",
            &rendered(&report, Text { detail: Detail::Everything, ..Text::default() }),
        );
    }

    #[test]
    fn nothing_that_a_server_wrote_acts_on_the_terminal() {
        let mut report = example();
        // Every text of the report is hostile, ours included.
        poison(&mut report, HOSTILE);
        for detail in [Detail::Verdict, Detail::Usual, Detail::Everything] {
            let text = rendered(&report, Text { detail, ..Text::default() });
            let strange: Vec<char> = text.chars().filter(|c| *c != '\n' && is_treacherous(*c)).collect();
            assert_eq!(strange, Vec::<char>::new());
            assert!(!text.lines().any(|line| line.starts_with("PASS")), "a server forged a line");
        }
        // With colour the only escapes are ours: those that set a style.
        let text = rendered(&report, Text { color: true, detail: Detail::Everything, width: 100 });
        for escape in text.split('\u{1b}').skip(1) {
            let style = escape.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(style, _)| style);
            assert!(style.is_some_and(|style| style.chars().all(|c| c.is_ascii_digit() || c == ';')), "{escape}");
        }
    }

    #[test]
    fn many_warnings_are_shortened_unless_everything_is_asked_for() {
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
        assert_eq!(usual.matches("--select tools/call/unknown-tool").count(), 1, "failures keep their proof");
        assert!(usual.contains("-v shows"));
        let all = rendered(&report, Text { detail: Detail::Everything, ..Text::default() });
        assert_eq!(all.matches("--select jsonrpc/error-message").count(), 21);
    }

    #[test]
    fn the_verdict_line_stands_alone_where_nothing_else_is_asked_for() {
        let text = rendered(&example(), Text { detail: Detail::Verdict, ..Text::default() });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("FAIL: 2 requirements are broken"), "{text}");
        assert!(text.ends_with("exit code 1\n"), "{text}");
    }

    #[test]
    fn a_server_that_never_speaks_is_told_with_its_stderr_and_what_to_do() {
        let mut report = example();
        report.targets.clear();
        report.baseline = None;
        let summary = report.summary.as_mut().expect("a summary");
        summary.totals = crate::verdict::Totals::default();
        let text = rendered(&report, Text::default());
        assert!(text.contains("PROBLEM  the server ended"), "{text}");
        assert!(text.contains("Start it by hand") && text.contains("| Error: listen EADDRINUSE"), "{text}");
        assert!(text.contains("NOT JUDGED: ") && text.ends_with("exit code 2\n"), "{text}");
    }
}
