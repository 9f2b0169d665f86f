//! What is known of the server apart from its verdicts: its tools and what was not done with them, hints that did not
//! help, its processes, and the trouble that ended the run.
//!
//! Owns how a server's own output is quoted, its end first to be kept.

use std::io::{self, Write};

use super::page::{LINE, Page, hanging, revisions};
use crate::event::{CaseResult, Problem};
use crate::report::palette::paint;
use crate::report::prose::time;
use crate::report::visible::{excerpt, visible};
use crate::report::{Report, Target};
use crate::spec::Revision;
use crate::verdict::Verdict;

impl Page {
    pub(super) fn tools(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        for (called, title) in
            [(false, "Tools that were not called"), (true, "Tools that were called, but not used further")]
        {
            // By reason; a tool is named once however many revisions list it.
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
            self.heading(title, out)?;
            for (note, names) in by_note {
                let text = format!("{}: {}", excerpt(note, self.line(), 0), self.listed(&names));
                hanging(&text, self.room(4), out)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// The hints that did not help: what was not served, and what did not show what it is for.
    pub(super) fn hints(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut told: Vec<(String, Vec<Revision>)> = Vec::new();
        for target in &report.targets {
            let shown = |id: &String| {
                let judged = |result: &CaseResult| result.verdict != Verdict::Skip;
                target.requirements.has_judged(id)
                    || target.results.iter().any(|result| result.case == *id && judged(result))
                    // What is not stated in the revision, or was not selected, cannot be missed.
                    || !target.results.iter().any(|result| result.case == *id || result.requirements.contains(id))
            };
            for hint in &target.summary.hints {
                let missed: Vec<&str> = hint.purposes.iter().filter(|id| !shown(id)).map(String::as_str).collect();
                let why = match &hint.note {
                    Some(note) if hint.purposes.is_empty() || !missed.is_empty() => note.clone(),
                    None if !missed.is_empty() => format!("it did not show {}", missed.join(", ")),
                    Some(_) | None => continue,
                };
                let text = format!("{}: {}", excerpt(&hint.request, LINE, 0), excerpt(&why, self.line(), 0));
                match told.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, revisions)) => revisions.push(target.summary.revision),
                    None => told.push((text, vec![target.summary.revision])),
                }
            }
        }
        if told.is_empty() {
            return Ok(());
        }
        self.heading("Hints that did not help", out)?;
        for (text, of) in told {
            let text = format!("{text} ({})", revisions(&of));
            hanging(&text, self.room(4), out)?;
        }
        writeln!(out)
    }

    pub(super) fn processes(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        for Target { summary, .. } in &report.targets {
            self.heading(&format!("Processes of {}", summary.revision), out)?;
            for launch in &summary.launches {
                let startup =
                    launch.startup_ms.map_or_else(|| "no answer".to_owned(), |ms| format!("up in {}", time(ms)));
                let shutdown = launch.shutdown.as_deref().unwrap_or("not ended by us");
                writeln!(
                    out,
                    "  {}: {startup}, {} sent, {} lines received, end: {}",
                    excerpt(&launch.purpose, 80, 0),
                    launch.sent,
                    launch.received,
                    visible(shutdown)
                )?;
            }
            self.stderr("its error stream ends", &summary.stderr, usize::MAX, out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    pub(super) fn problem(&self, problem: &Problem, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{}  {}",
            paint(self.palette.of(Verdict::Error), "PROBLEM"),
            paint(self.palette.strong, excerpt(&problem.message, self.line(), 0))
        )?;
        self.wrapped(2, &excerpt(&problem.hint, self.line(), 0), out)?;
        if !problem.evidence.is_empty() {
            writeln!(out, "  the last messages")?;
            self.evidence(&problem.evidence, out)?;
        }
        let most = if self.everything() { usize::MAX } else { 20 };
        self.stderr("its error stream ends", &problem.stderr, most, out)?;
        writeln!(out)
    }

    fn stderr(&self, title: &str, text: &str, most: usize, out: &mut dyn Write) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        writeln!(out, "  {title}")?;
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(most)..] {
            writeln!(out, "    {} {}", paint(self.palette.faint, "|"), excerpt(line, self.line(), 0))?;
        }
        Ok(())
    }
}
