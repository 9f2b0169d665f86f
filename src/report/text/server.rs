//! The sections about the server: tools that were not used, hints that did not help, processes, and the problem that
//! ended the run.

use std::io::{self, Write};

use super::finding::write_evidence;
use super::page::{MAX_LINE_CHARS, Page, join_revisions, one_line, write_hanging};
use crate::event::{CaseResult, Problem};
use crate::report::layout::format_ms;
use crate::report::palette::paint;
use crate::report::visible::{excerpt, visible};
use crate::report::{Report, Target};
use crate::spec::Revision;
use crate::verdict::Verdict;

pub(super) fn write_tools(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for (called, title) in [(false, "Tools not called"), (true, "Tools called, but not used further")] {
        // By reason; a tool is listed once even if several revisions have it.
        let mut by_note: Vec<(&str, Vec<String>)> = Vec::new();
        for tool in report.targets.iter().flat_map(|target| &target.summary.tools) {
            let note = match (&tool.note, called) {
                (Some(note), _) => note.as_str(),
                (None, false) => "no case needed it",
                (None, true) => continue,
            };
            if tool.called != called {
                continue;
            }
            let name = excerpt(&tool.name, 60, 0);
            match by_note.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => by_note.push((note, vec![name])),
            }
        }
        if by_note.is_empty() {
            continue;
        }
        page.write_heading(title, out)?;
        for (note, names) in by_note {
            let (note, names) = (excerpt(note, page.max_line_chars(), 0), page.join_names(&names));
            if page.is_verbose() {
                write_hanging(&format!("{note}: {names}"), page.room(4), out)?;
            } else {
                // The names are what is looked for; how they are joined leaves room for the reason.
                writeln!(out, "  {}", one_line(&format!("{names}: {note}"), page.room(2)))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the hints that failed, and those that did not lead to the behaviour that they are for.
pub(super) fn write_hints(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut lines: Vec<(String, Vec<Revision>)> = Vec::new();
    for target in &report.targets {
        let is_covered = |id: &String| {
            let judged = |result: &CaseResult| result.verdict != Verdict::Skip;
            target.requirements.has_judged(id)
                || target.results.iter().any(|result| result.case == *id && judged(result))
                // A case or requirement that was not selected, or is not part of the revision.
                || !target.results.iter().any(|result| result.case == *id || result.requirements.contains(id))
        };
        for hint in &target.summary.hints {
            let missed: Vec<&str> = hint.purposes.iter().filter(|id| !is_covered(id)).map(String::as_str).collect();
            let why = match &hint.note {
                Some(note) if hint.purposes.is_empty() || !missed.is_empty() => note.clone(),
                None if !missed.is_empty() => format!("it did not cover {}", missed.join(", ")),
                Some(_) | None => continue,
            };
            let text =
                format!("{}: {}", excerpt(&hint.request, MAX_LINE_CHARS, 0), excerpt(&why, page.max_line_chars(), 0));
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, revisions)) => revisions.push(target.summary.revision),
                None => lines.push((text, vec![target.summary.revision])),
            }
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    page.write_heading("Hints that did not help", out)?;
    for (text, of) in lines {
        let text = format!("{text} ({})", join_revisions(&of));
        write_hanging(&text, page.room(4), out)?;
    }
    writeln!(out)
}

pub(super) fn write_processes(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for Target { summary, .. } in &report.targets {
        page.write_heading(&format!("Processes of {}", summary.revision), out)?;
        for launch in &summary.launches {
            let startup = launch
                .startup_ms
                .map_or_else(|| "no response".to_owned(), |ms| format!("started in {}", format_ms(ms)));
            let shutdown = launch.shutdown.as_deref().unwrap_or("not shut down");
            writeln!(
                out,
                "  {}: {startup}, {} sent, {} lines received, shutdown: {}",
                excerpt(&launch.purpose, 80, 0),
                launch.sent,
                launch.received,
                visible(shutdown)
            )?;
        }
        write_stderr(page, "end of stderr", &summary.stderr, usize::MAX, out)?;
        writeln!(out)?;
    }
    Ok(())
}

pub(super) fn write_problem(page: &Page, problem: &Problem, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{}  {}",
        paint(page.palette.of(Verdict::Error), "PROBLEM"),
        paint(page.palette.strong, excerpt(&problem.message, page.max_line_chars(), 0))
    )?;
    page.write_wrapped(2, &excerpt(&problem.hint, page.max_line_chars(), 0), out)?;
    if !problem.evidence.is_empty() {
        writeln!(out, "  last messages")?;
        write_evidence(page, &problem.evidence, out)?;
    }
    let max_lines = if page.is_verbose() { usize::MAX } else { 20 };
    write_stderr(page, "end of stderr", &problem.stderr, max_lines, out)?;
    writeln!(out)
}

fn write_stderr(page: &Page, title: &str, text: &str, max_lines: usize, out: &mut dyn Write) -> io::Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    writeln!(out, "  {title}")?;
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(max_lines)..] {
        writeln!(out, "    {} {}", paint(page.palette.faint, "|"), excerpt(line, page.max_line_chars(), 0))?;
    }
    Ok(())
}
