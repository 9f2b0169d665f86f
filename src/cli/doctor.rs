//! `doctor`: shows what a run sees of a server before it judges anything, and what would help it to see more.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};

use mcp_conformance::Settings;
use mcp_conformance::internals::judge::{PreparedRun, plan};
use mcp_conformance::report::layout::format_ms;
use mcp_conformance::report::visible::excerpt;
use mcp_conformance::report::{Conclusion, Report, Target};
use serde_json::Value;

use super::args::DoctorArgs;
use super::error::CliError;
use super::run::run_quietly;
use super::server_check;
use super::stdout::print;

/// The case that is run: it watches, and sends nothing.
const CASE: &str = "jsonrpc/answered-once";

/// The width of the left column.
const LABEL_WIDTH: usize = 11;

/// How many names a line has, and how many characters of a text of the server are shown.
const MAX_NAMES: usize = 12;
const MAX_CHARS: usize = 120;

/// Inspects the server of the command line, and prints what a run sees of it.
pub(super) fn doctor(args: &DoctorArgs, line: &[OsString]) -> Result<Conclusion, CliError> {
    let look = &args.look;
    server_check::find_mistake(&look.server, line, look.connection.process.cwd.as_deref())?;
    let server = look.connection.server(&look.server)?;
    let settings = Settings { select: vec![CASE.to_owned()], retries: 0, ..look.settings()? };
    let command = plan(&server, &settings)?.reproduce_suffix;
    let run = PreparedRun::new(&server, &settings)?;
    let report = run_quietly(run)?;
    let problem = report.summary.as_ref().and_then(|summary| summary.problem.as_ref());
    if let (true, Some(problem)) = (report.targets.is_empty(), problem) {
        return Err(CliError::InitServer { message: problem.message.clone(), hint: problem.hint.clone() });
    }
    print(|out| Ok(write(&report, &command, out)?))
}

fn write(report: &Report, command: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some(newest) = report.targets.last() else { return writeln!(out, "the server supports no revision") };
    let mut line = |label: &str, text: &str| writeln!(out, "{label:LABEL_WIDTH$}{text}");
    line("server", &name(newest))?;
    if let Some(startup) = startup(report) {
        line("start-up", &format_ms(startup))?;
    }
    let revisions: Vec<String> = report.targets.iter().map(|target| target.summary.revision.to_string()).collect();
    line("revisions", &revisions.join(", "))?;
    line("declares", &capabilities(newest))?;
    let tools = &newest.summary.tools;
    let (called, used) =
        (tools.iter().filter(|tool| tool.called), tools.iter().filter(|tool| tool.called && tool.note.is_none()));
    let (called, used) = (called.count(), used.count());
    line("tools", &format!("{}, of which {called} were called and {used} are used by cases", tools.len()))?;
    let mut by_note: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for tool in tools {
        if let Some(note) = &tool.note {
            by_note.entry(note).or_default().push(shown(&tool.name));
        }
    }
    for (note, names) in &by_note {
        line("", &format!("{}: {}", shown(note), listed(names)))?;
    }
    let advice = advice(&by_note.keys().copied().collect::<Vec<_>>(), command);
    for (at, text) in advice.iter().enumerate() {
        line(if at == 0 { "helps" } else { "" }, text)?;
    }
    if let Some(reason) = &newest.summary.stopped_early {
        line("problem", &shown(reason))?;
    }
    line("next", &format!("mcp-conformance{command}"))
}

/// A text of the server, made harmless for a terminal and not too long.
fn shown(text: &str) -> String {
    excerpt(text, MAX_CHARS, 0)
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let some = names[..names.len() - more].join(", ");
    if more > 0 { format!("{some} and {more} more") } else { some }
}

/// The name and version that the server gives itself.
fn name(target: &Target) -> String {
    let member = |name: &str| target.summary.server_info.as_ref()?.get(name)?.as_str();
    let parts: Vec<String> = ["name", "version"].into_iter().filter_map(member).map(shown).collect();
    if parts.is_empty() { "does not say its name".to_owned() } else { parts.join(" ") }
}

/// The median time until a process or session of the server answered first, in milliseconds.
fn startup(report: &Report) -> Option<f64> {
    let launches = report.targets.iter().flat_map(|target| &target.summary.launches);
    let mut times: Vec<f64> = launches.filter_map(|launch| launch.startup_ms).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// The declared capabilities, each with the members that are set.
fn capabilities(target: &Target) -> String {
    let Some(Value::Object(declared)) = &target.summary.capabilities else { return "nothing".to_owned() };
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let described = declared.iter().map(|(name, value)| {
        let members = value.as_object().into_iter().flatten().filter(|(_, value)| is_set(value));
        let members: Vec<String> = members.map(|(name, _)| shown(name)).collect();
        if members.is_empty() { shown(name) } else { format!("{} ({})", shown(name), listed(&members)) }
    });
    let described: Vec<String> = described.collect();
    if described.is_empty() { "nothing".to_owned() } else { listed(&described) }
}

/// What would let a run use tools about which there are these notes.
fn advice(notes: &[&str], command: &str) -> Vec<String> {
    let any = |part: &str| notes.iter().any(|note| note.contains(part));
    let mut advice = Vec::new();
    if any("--call-destructive") {
        advice.push("--call-destructive calls every tool, on data that may be lost".to_owned());
    }
    if any("--timeout") {
        advice.push("--timeout 30s gives slow tools more time".to_owned());
    }
    if any("plain call failed") || any("no arguments") {
        advice.push(format!(
            "mcp-conformance hints --output hints.jsonc{command} finds arguments that work, or edit them there; \
             --hints hints.jsonc uses them"
        ));
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_follows_from_the_notes() {
        assert!(advice(&[], " -- ./s").is_empty());
        let notes = ["its plain call failed", "it is annotated destructive (--call-destructive calls it)"];
        let advised = advice(&notes, " -- ./s");
        assert_eq!(advised.len(), 2);
        assert!(advised[0].starts_with("--call-destructive"), "{advised:?}");
        assert!(advised[1].contains("hints.jsonc -- ./s finds"), "{advised:?}");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..=MAX_NAMES).map(|number| number.to_string()).collect();
        assert!(listed(&names).ends_with("11 and 1 more"), "{}", listed(&names));
        assert_eq!(listed(&names[..2]), "0, 1");
    }
}
