//! The fuzzing statistics of the text report.

use std::io::{self, Write};

use super::page::{Page, one_line, write_hanging};
use crate::event::{CallOutcome, FuzzSummary, SequenceSummary, ToolFuzz};
use crate::report::finding_text::failing_arguments;
use crate::report::layout::{display_width, format_ms, padded, wrap};
use crate::report::palette::paint;
use crate::report::visible::excerpt;
use crate::report::{Report, saved_calls, untested};
use crate::verdict::Finding;

/// The number of tools above which they are listed in a verbose report only.
const MAX_TOOLS: usize = 4;
/// The number of notes shown unless the report is verbose.
const MAX_NOTES: usize = 2;
/// The number of preceding calls of a failing one that are shown.
const MAX_SHOWN_CALLS: usize = 5;
/// The width at which a tool name is shortened, in characters.
const MAX_NAME_CHARS: usize = 28;

/// Writes a table for each fuzzed revision, with a line for each tool that was called.
pub(super) fn write_tables(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for target in &report.targets {
        let Some(fuzz) = &target.summary.fuzz else { continue };
        page.write_heading(&format!("Fuzzing of {}, seed {}", target.summary.revision, fuzz.seed), out)?;
        let called: Vec<&ToolFuzz> = fuzz.tools.iter().filter(|tool| !tool.calls.is_empty()).collect();
        if !called.is_empty() && (called.len() <= MAX_TOOLS || page.is_verbose()) {
            let columns = Columns::of(page, &called);
            writeln!(out, "  {}", paint(page.palette.faint, columns.head()))?;
            for tool in &called {
                writeln!(out, "  {}", columns.line(tool))?;
            }
        }
        let notes = notes(&called);
        let shown = if page.is_verbose() { notes.len() } else { notes.len().min(MAX_NOTES) };
        for (note, names) in &notes[..shown] {
            let text = format!("{}: {}", excerpt(note, 200, 0), page.join_names(names));
            write_hanging(&text, page.room(4), out)?;
        }
        if shown < notes.len() {
            writeln!(out, "  and {} more notes: -v shows them", notes.len() - shown)?;
        }
        let untested = untested::lines(fuzz);
        let shown = if page.is_verbose() { untested.len() } else { untested.len().min(MAX_TOOLS) };
        for (at, line) in untested[..shown].iter().enumerate() {
            if at == 0 {
                let title = if page.is_verbose() { "not tested" } else { "not tested; -v says what would help" };
                writeln!(out, "  {}", paint(page.palette.faint, title))?;
            }
            if page.is_verbose() {
                write_hanging(line, page.room(4), out)?;
            } else {
                writeln!(out, "  {}", one_line(line, page.room(2)))?;
            }
        }
        if shown < untested.len() {
            writeln!(out, "  and {} more that were not tested: -v shows them", untested.len() - shown)?;
        }
        for line in fuzz.sequences.iter().flat_map(|sequences| sequence_lines(sequences, page.is_verbose())) {
            write_hanging(&line, page.room(4), out)?;
        }
        for line in fuzz.saved_calls.iter().flat_map(saved_calls::lines) {
            write_hanging(&line, page.room(4), out)?;
        }
        for line in wrap(&summary_line(fuzz, called.len()), page.room(2)) {
            writeln!(out, "  {}", paint(page.palette.faint, line))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What calls in sequences found: in a verbose report with the links between tools.
fn sequence_lines(sequences: &SequenceSummary, is_verbose: bool) -> Vec<String> {
    let name = |name: &str| excerpt(name, MAX_NAME_CHARS, 0);
    let confirmed = sequences.links.iter().filter(|link| link.confirmed).count();
    let mut lines = vec![format!(
        "sequences: {} calls; {confirmed} of {} links between tools confirmed; {} objects created",
        sequences.calls,
        sequences.links.len(),
        sequences.created,
    )];
    if sequences.left > 0 {
        let by: Vec<String> = sequences.left_by.iter().take(MAX_TOOLS).map(|tool| name(tool)).collect();
        lines.push(format!("{} objects could not be deleted again: {}", sequences.left, by.join(", ")));
    }
    lines
        .extend(sequences.problem.iter().map(|problem| format!("sequences ended early: {}", excerpt(problem, 200, 0))));
    if is_verbose {
        lines.extend(sequences.links.iter().map(|link| {
            let doubt = if link.confirmed { "" } else { " (not confirmed)" };
            let (value, argument) = (excerpt(&link.value, 60, 0), name(&link.argument));
            format!("{} {value} -> {} {argument}{doubt}", name(&link.producer), name(&link.consumer))
        }));
    }
    lines
}

/// Notes about tools, each with the names of its tools.
fn notes<'a>(tools: &[&'a ToolFuzz]) -> Vec<(&'a str, Vec<String>)> {
    let mut by_note: Vec<(&str, Vec<String>)> = Vec::new();
    for tool in tools {
        let Some(note) = &tool.note else { continue };
        match by_note.iter_mut().find(|(known, _)| known == note) {
            Some((_, names)) => names.push(shown(tool)),
            None => by_note.push((note, vec![shown(tool)])),
        }
    }
    by_note
}

fn shown(tool: &ToolFuzz) -> String {
    excerpt(&tool.tool, MAX_NAME_CHARS, 0)
}

/// The columns of the table: without latencies where the page is narrow, and with how much of each schema was tried in
/// a verbose report.
struct Columns {
    /// The width of the names, in columns of the terminal.
    name: usize,
    latency: bool,
    coverage: bool,
}

impl Columns {
    /// The width of a page that has room for latencies.
    const WIDE: usize = 80;
    /// The width of the columns of calls and of latencies, with what separates them.
    const CALLS: usize = 35;
    const LATENCY: usize = 18;

    fn of(page: &Page, tools: &[&ToolFuzz]) -> Self {
        let latency = page.width() >= Self::WIDE;
        let others = Self::CALLS + if latency { Self::LATENCY } else { 0 };
        let longest = tools.iter().map(|tool| display_width(&shown(tool))).max().unwrap_or(0);
        let room = page.room(2).saturating_sub(others).max(8);
        Self { name: longest.clamp(4, room), latency, coverage: page.is_verbose() }
    }

    fn head(&self) -> String {
        let titles = [
            "tool",
            "calls",
            "succeeded",
            "rejected",
            "other",
            "p50",
            "p99",
            "limits tried",
            "keywords broken",
            "mutants",
        ];
        self.row(titles.map(str::to_owned))
    }

    fn line(&self, tool: &ToolFuzz) -> String {
        let of = |wanted: &[CallOutcome]| -> u64 {
            tool.calls.iter().filter(|calls| wanted.contains(&calls.outcome)).map(|calls| calls.count).sum()
        };
        let success = of(&[CallOutcome::Success]);
        let rejected = of(&[CallOutcome::ToolError, CallOutcome::InvalidParams]);
        let all: u64 = tool.calls.iter().map(|calls| calls.count).sum();
        let micros = |of: fn(&crate::event::Latency) -> u64| match &tool.latency {
            #[expect(clippy::cast_precision_loss, reason = "it is shown to two digits")]
            Some(latency) => format_ms(of(latency) as f64 / 1_000.0),
            None => "-".to_owned(),
        };
        let with_effect = || tool.keywords.iter().filter(|keyword| !keyword.no_effect);
        let violated = with_effect().filter(|keyword| keyword.violated > 0).count();
        self.row([
            one_line(&shown(tool), self.name),
            all.to_string(),
            success.to_string(),
            rejected.to_string(),
            (all - success - rejected).to_string(),
            micros(|latency| latency.p50_us),
            micros(|latency| latency.p99_us),
            format!("{} of {}", tool.covered, tool.obligations),
            format!("{violated} of {}", with_effect().count()),
            told_mutants([tool].into_iter()),
        ])
    }

    fn row(&self, columns: [String; 10]) -> String {
        let [tool, calls, succeeded, rejected, other, p50, p99, limits, keywords, mutants] = columns;
        let tool = padded(&tool, self.name);
        let calls = format!("{tool}  {calls:>7} {succeeded:>9} {rejected:>8} {other:>6}");
        let latency = if self.latency { format!(" {p50:>8} {p99:>8}") } else { String::new() };
        let coverage =
            if self.coverage { format!("  {limits:>12}  {keywords:>15}  {mutants:>9}") } else { String::new() };
        format!("{calls}{latency}{coverage}")
    }
}

/// How many mutants of the schemas of tools the calls told apart: `184/187`.
fn told_mutants<'t>(tools: impl Iterator<Item = &'t ToolFuzz> + Clone) -> String {
    let classes = tools.flat_map(|tool| &tool.mutants);
    let told: usize = classes.clone().map(|class| class.told).sum();
    let total: usize = classes.map(|class| class.total).sum();
    format!("{told}/{total}")
}

/// A summary in one line.
fn summary_line(fuzz: &FuzzSummary, called: usize) -> String {
    let gaps: usize = fuzz.tools.iter().map(|tool| tool.gaps.len()).sum();
    let not_called = fuzz.tools.iter().filter(|tool| tool.calls.is_empty()).count();
    let tools = if called == 1 { "1 tool".to_owned() } else { format!("{called} tools") };
    let mut parts = vec![format!("{} calls of {tools} in {}", fuzz.calls, format_ms(fuzz.wall_ms))];
    let mut add = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => parts.push(format!("1 {one}")),
        _ => parts.push(format!("{count} {many}")),
    };
    add(fuzz.shrinking, "of them to minimize or confirm a failure", "of them to minimize or confirm failures");
    add(fuzz.restarts as u64, "restart", "restarts");
    add(not_called as u64, "tool not called", "tools not called");
    add(gaps as u64, "constraint not generated", "constraints not generated");
    let left = |tool: &ToolFuzz| tool.planned.saturating_sub(tool.calls.iter().map(|calls| calls.count).sum());
    let called = || fuzz.tools.iter().filter(|tool| !tool.calls.is_empty());
    match (called().map(left).sum::<u64>(), called().map(|tool| tool.planned).sum::<u64>()) {
        (_, 0) => {}
        (0, _) => parts.push("all planned calls made".to_owned()),
        (left, planned) => parts.push(format!("{} of {planned} planned calls made", planned - left)),
    }
    if fuzz.tools.iter().any(|tool| !tool.mutants.is_empty()) {
        parts.push(format!("mutants {}", told_mutants(fuzz.tools.iter())));
    }
    if let Some(reason) = &fuzz.stopped_early {
        parts.push(format!("stopped early: {}", excerpt(reason, 200, 0)));
    }
    parts.join("; ")
}

/// The additional fields of a finding with a counterexample, by label.
pub(super) fn counterexample_fields(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    if let Some(example) = &finding.counterexample {
        let mut call = format!("{} {}", excerpt(&example.tool, 60, 0), excerpt(&example.arguments.to_string(), 300, 0));
        if !example.preceding.is_empty() {
            call = format!(
                "{call}, after {} other call{}",
                example.preceding.len(),
                if example.preceding.len() == 1 { "" } else { "s" }
            );
            if example.preceding.len() <= MAX_SHOWN_CALLS {
                let shown: Vec<String> =
                    example.preceding.iter().map(|call| excerpt(&call.to_string(), 200, 0)).collect();
                call = format!("{call}: {}", shown.join(", "));
            }
        }
        details.push(("call", call));
        if let Some(keyword) = &example.violated {
            details.push(("violates", excerpt(keyword.trim(), 120, 0)));
        }
        let fails_for = failing_arguments(example);
        if !fails_for.is_empty() {
            details.push(("fails for", fails_for));
        }
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;
    use crate::report::text::page::{Detail, Text};

    #[test]
    fn each_called_tool_has_a_line() {
        let text = rendered(Detail::Everything);
        let search: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("search ")).collect();
        assert_eq!(search.len(), 1, "{text}");
        assert!(search[0].contains("24 of 26") && search[0].contains("262"), "{text}");
        assert!(!text.contains("delete_file"), "{text}");
        let unfolded = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unfolded.contains("stopped early: the server could not be started again"), "{text}");
        assert!(unfolded.contains("262 of 300 planned calls made"), "{text}");
        assert!(!rendered(Detail::Standard).contains("24 of 26"), "{text}");
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_name_in_any_script_keeps_the_columns_in_line() {
        let end = |text: &str, word: &str| {
            text.lines().find_map(|line| Some(display_width(&line[..line.find(word)? + word.len()])))
        };
        for name in ["search", "查询天气预报", "cafe\u{301}-search", "한국어"] {
            let mut report = example();
            let fuzz = report
                .targets
                .iter_mut()
                .find_map(|target| target.summary.fuzz.as_mut())
                .expect("the example is fuzzed");
            let tool = fuzz.tools.iter_mut().find(|tool| tool.tool == "search").expect("the example has this tool");
            name.clone_into(&mut tool.tool);
            let text = rendered_report(&report, Detail::Standard);
            assert_eq!(end(&text, " 262"), end(&text, " calls"), "{text}");
            assert!(text.contains(name), "{text}");
        }
    }

    fn rendered(detail: Detail) -> String {
        rendered_report(&example(), detail)
    }

    fn rendered_report(report: &Report, detail: Detail) -> String {
        let mut bytes = Vec::new();
        write_tables(&Page::new(Text { detail, ..Text::default() }), report, &mut bytes)
            .expect("a vector takes all that is written");
        String::from_utf8(bytes).expect("UTF-8")
    }
}
