//! The fuzzing statistics of the text report.

use std::io::{self, Write};

use crate::event::{CallOutcome, FuzzSummary, ToolFuzz};
use crate::report::Report;
use crate::report::layout::format_ms;
use crate::report::palette::{Palette, paint};
use crate::report::visible::excerpt;
use crate::verdict::Finding;

/// The number of tools listed unless the report is verbose.
const MAX_TOOLS: usize = 40;
/// The width at which a tool name is shortened, in characters.
const MAX_NAME_CHARS: usize = 28;

/// Writes a table for each fuzzed revision, with a line for each tool that was called.
pub(super) fn write_tables(report: &Report, palette: Palette, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    for target in &report.targets {
        let Some(fuzz) = &target.summary.fuzz else { continue };
        let title = format!("Fuzzing of {}, seed {}", target.summary.revision, fuzz.seed);
        writeln!(out, "{}", paint(palette.strong, title))?;
        let called: Vec<&ToolFuzz> = fuzz.tools.iter().filter(|tool| !tool.calls.is_empty()).collect();
        if !called.is_empty() {
            let width = called.iter().map(|tool| shown(tool).chars().count()).max().unwrap_or(0).max(4);
            let head = format!(
                "{:<width$}  {:>7} {:>7} {:>8} {:>6}  {:>10}  {:>17}  {:>8} {:>8}",
                "tool", "calls", "success", "rejected", "other", "boundaries", "keywords violated", "p50", "p99"
            );
            writeln!(out, "  {}", paint(palette.faint, head))?;
            let most = if verbose { called.len() } else { MAX_TOOLS };
            for tool in called.iter().take(most) {
                writeln!(out, "  {}", line(tool, width))?;
            }
            if called.len() > most {
                writeln!(out, "  and {} more; use -v to list them", called.len() - most)?;
            }
        }
        for tool in called.iter().filter(|tool| tool.note.is_some()) {
            let note = tool.note.as_deref().unwrap_or_default();
            writeln!(out, "  {}: {}", shown(tool), excerpt(note, 200, 0))?;
        }
        writeln!(out, "  {}", paint(palette.faint, summary_line(fuzz)))?;
        writeln!(out)?;
    }
    Ok(())
}

fn shown(tool: &ToolFuzz) -> String {
    excerpt(&tool.tool, MAX_NAME_CHARS, 0)
}

fn line(tool: &ToolFuzz, width: usize) -> String {
    let of = |wanted: &[CallOutcome]| -> u64 {
        tool.calls.iter().filter(|calls| wanted.contains(&calls.outcome)).map(|calls| calls.count).sum()
    };
    let success = of(&[CallOutcome::Success]);
    let rejected = of(&[CallOutcome::ToolError, CallOutcome::InvalidParams]);
    let all: u64 = tool.calls.iter().map(|calls| calls.count).sum();
    let with_effect = || tool.keywords.iter().filter(|keyword| !keyword.no_effect);
    let violated = with_effect().filter(|keyword| keyword.violated > 0).count();
    let micros = |of: fn(&crate::event::Latency) -> u64| match &tool.latency {
        #[expect(clippy::cast_precision_loss, reason = "it is shown to two digits")]
        Some(latency) => format_ms(of(latency) as f64 / 1_000.0),
        None => "-".to_owned(),
    };
    format!(
        "{:<width$}  {all:>7} {success:>7} {rejected:>8} {:>6}  {:>10}  {:>17}  {:>8} {:>8}",
        shown(tool),
        all - success - rejected,
        format!("{}/{}", tool.covered, tool.obligations),
        format!("{violated}/{}", with_effect().count()),
        micros(|latency| latency.p50_us),
        micros(|latency| latency.p99_us),
    )
}

/// A summary in one line.
fn summary_line(fuzz: &FuzzSummary) -> String {
    let gaps: usize = fuzz.tools.iter().map(|tool| tool.gaps.len()).sum();
    let not_called = fuzz.tools.iter().filter(|tool| tool.calls.is_empty()).count();
    let mut parts = vec![format!("{} calls in {}", fuzz.calls, format_ms(fuzz.wall_ms))];
    let mut add = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => parts.push(format!("1 {one}")),
        _ => parts.push(format!("{count} {many}")),
    };
    add(fuzz.shrinking, "of them to minimize or confirm a failure", "of them to minimize or confirm failures");
    add(fuzz.restarts as u64, "restart", "restarts");
    add(not_called as u64, "tool not called", "tools not called");
    add(gaps as u64, "constraint not generated", "constraints not generated");
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
            if let [one] = example.preceding.as_slice() {
                call = format!("{call}: {}", excerpt(&one.to_string(), 200, 0));
            }
        }
        details.push(("call", call));
        if let Some(keyword) = &example.violated {
            details.push(("violates", excerpt(keyword.trim(), 120, 0)));
        }
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn each_called_tool_has_a_line() {
        let mut bytes = Vec::new();
        write_tables(&example(), Palette::new(false), false, &mut bytes).expect("a vector takes all that is written");
        let text = String::from_utf8(bytes).expect("UTF-8");
        let search: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("search ")).collect();
        assert_eq!(search.len(), 1, "{text}");
        assert!(search[0].contains("24/26") && search[0].contains("262"), "{text}");
        assert!(!text.contains("delete_file"), "{text}");
        assert!(text.contains("stopped early: the server could not be started again"), "{text}");
    }
}
