//! Cases that could not be judged or were skipped, requirements that were not judged, and notes.
//!
//! Each reason is listed once, with the cases to which it applies.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::page::{Page, join_revisions};
use crate::report::layout::wrap;
use crate::report::visible::{excerpt, visible};
use crate::report::{Report, UnjudgedRequirements};
use crate::spec::Revision;
use crate::verdict::Verdict;

pub(super) fn write_unjudged(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write_section(page, "Could not be judged", &Reasons::of(report, Verdict::Error), out)?;
    let mut any_stopped = false;
    for target in &report.targets {
        if let Some(reason) = &target.summary.stopped_early {
            let text =
                format!("{} stopped early: {}", target.summary.revision, excerpt(reason, page.max_line_chars(), 0));
            for line in wrap(&text, page.width()) {
                writeln!(out, "{line}")?;
            }
            any_stopped = true;
        }
    }
    if any_stopped {
        writeln!(out)?;
    }
    Ok(())
}

pub(super) fn write_notes(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut notes = Reasons::default();
    for result in report.results() {
        for note in &result.notes {
            notes.add(note, &result.case, result.revision);
        }
    }
    write_section(page, "Notes", &notes, out)
}

/// Writes what the connections went through that changes no verdict.
pub(super) fn write_connections(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let noted: Vec<String> = report
        .targets
        .iter()
        .flat_map(|target| target.summary.notes.iter().map(|note| format!("{}: {note}", target.summary.revision)))
        .collect();
    if noted.is_empty() {
        return Ok(());
    }
    page.write_heading("Connections", out)?;
    for note in noted {
        for line in wrap(&excerpt(&note, page.max_line_chars(), 0), page.width()) {
            writeln!(out, "{line}")?;
        }
    }
    writeln!(out)
}

pub(super) fn write_skips(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write_section(page, "Skipped", &Reasons::of(report, Verdict::Skip), out)
}

/// Writes reasons under a heading, if there are any.
fn write_section(page: &Page, heading: &str, reasons: &Reasons, out: &mut dyn Write) -> io::Result<()> {
    if reasons.0.is_empty() {
        return Ok(());
    }
    page.write_heading(heading, out)?;
    write_reasons(page, reasons, out)?;
    writeln!(out)
}

/// Writes how many requirements were judged, and why the others were not.
pub(super) fn write_requirements(page: &Page, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let count = |open: &[UnjudgedRequirements]| open.iter().map(|one| one.requirements.len()).sum::<usize>();
    for target in report.targets.iter().filter(|target| !target.results.is_empty()) {
        let requirements = &target.requirements;
        let mut counts = format!("{} judged", requirements.judged.len());
        for (kind, open) in requirements.unjudged() {
            let _infallible = write!(counts, ", {} {kind}", count(open));
        }
        page.write_heading(&format!("Requirements of {}: {counts}", target.summary.revision), out)?;
        for (kind, open) in requirements.unjudged() {
            for UnjudgedRequirements { reason, requirements } in open {
                let text = format!("{kind}: {}", excerpt(reason, page.max_line_chars(), 0));
                page.write_wrapped(2, &text, out)?;
                let ids: Vec<String> = requirements.iter().map(|id| visible(id).into_owned()).collect();
                page.write_faint(4, &page.join_names(&ids), out)?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_reasons(page: &Page, reasons: &Reasons<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (reason, cases) in &reasons.0 {
        page.write_wrapped(2, &excerpt(reason, page.max_line_chars(), 0), out)?;
        let cases: Vec<String> =
            cases.iter().map(|(case, of)| format!("{} ({})", visible(case), join_revisions(of))).collect();
        page.write_faint(4, &page.join_names(&cases), out)?;
    }
    Ok(())
}

/// Cases and revisions by reason or note.
#[derive(Default)]
struct Reasons<'a>(Vec<(&'a str, Cases<'a>)>);

/// Cases, each with the revisions to which the reason applies.
type Cases<'a> = Vec<(&'a str, Vec<Revision>)>;

impl<'a> Reasons<'a> {
    /// The reasons of all results with this verdict.
    fn of(report: &'a Report, verdict: Verdict) -> Self {
        let mut reasons = Self::default();
        for result in report.results().filter(|result| result.verdict == verdict) {
            reasons.add(result.reason.as_deref().unwrap_or("no reason given"), &result.case, result.revision);
        }
        reasons
    }

    fn add(&mut self, reason: &'a str, case: &'a str, revision: Revision) {
        let at = self.0.iter().position(|(known, _)| *known == reason).unwrap_or_else(|| {
            self.0.push((reason, Vec::new()));
            self.0.len() - 1
        });
        let cases = &mut self.0[at].1;
        match cases.iter_mut().find(|(known, _)| *known == case) {
            Some((_, revisions)) => revisions.push(revision),
            None => cases.push((case, vec![revision])),
        }
    }
}
