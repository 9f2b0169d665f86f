//! What was left open: cases that could not be judged or were skipped, requirements that were not judged, and notes.
//!
//! Owns that each reason is told once, with the cases that it holds for.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::page::{Page, revisions};
use crate::report::prose::wrap;
use crate::report::visible::{excerpt, visible};
use crate::report::{OpenRequirements, Report};
use crate::spec::Revision;
use crate::verdict::Verdict;

impl Page {
    pub(super) fn unjudged(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        self.section("Could not be judged", &Reasons::of(report, Verdict::Error), out)?;
        let mut early = false;
        for target in &report.targets {
            if let Some(reason) = &target.summary.stopped_early {
                let text = format!("{} ended early: {}", target.summary.revision, excerpt(reason, self.line(), 0));
                for line in wrap(&text, self.width()) {
                    writeln!(out, "{line}")?;
                }
                early = true;
            }
        }
        if early {
            writeln!(out)?;
        }
        Ok(())
    }

    pub(super) fn notes(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let mut notes = Reasons::default();
        for result in report.results() {
            for note in &result.notes {
                notes.add(note, &result.case, result.revision);
            }
        }
        self.section("Worth knowing", &notes, out)
    }

    pub(super) fn skips(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        self.section("Skipped", &Reasons::of(report, Verdict::Skip), out)
    }

    /// Reasons below a heading of their own, if there are any.
    fn section(&self, heading: &str, reasons: &Reasons, out: &mut dyn Write) -> io::Result<()> {
        if reasons.0.is_empty() {
            return Ok(());
        }
        self.heading(heading, out)?;
        self.reasons(reasons, out)?;
        writeln!(out)
    }

    /// Which requirements were judged, and why the others were not.
    pub(super) fn requirements(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let count = |open: &[OpenRequirements]| open.iter().map(|one| one.requirements.len()).sum::<usize>();
        for target in report.targets.iter().filter(|target| !target.results.is_empty()) {
            let requirements = &target.requirements;
            let mut counts = format!("{} judged", requirements.judged.len());
            for (kind, open) in requirements.open() {
                let _infallible = write!(counts, ", {} {kind}", count(open));
            }
            self.heading(&format!("Requirements of {}: {counts}", target.summary.revision), out)?;
            for (kind, open) in requirements.open() {
                for OpenRequirements { reason, requirements } in open {
                    let text = format!("{kind}: {}", excerpt(reason, self.line(), 0));
                    self.wrapped(2, &text, out)?;
                    let ids: Vec<String> = requirements.iter().map(|id| visible(id).into_owned()).collect();
                    self.faintly(4, &self.listed(&ids), out)?;
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn reasons(&self, reasons: &Reasons<'_>, out: &mut dyn Write) -> io::Result<()> {
        for (reason, cases) in &reasons.0 {
            self.wrapped(2, &excerpt(reason, self.line(), 0), out)?;
            let cases: Vec<String> =
                cases.iter().map(|(case, of)| format!("{} ({})", visible(case), revisions(of))).collect();
            self.faintly(4, &self.listed(&cases), out)?;
        }
        Ok(())
    }
}

/// Cases by what is said of them, and the revisions in which it is.
#[derive(Default)]
struct Reasons<'a>(Vec<(&'a str, Cases<'a>)>);

/// Cases, each with the revisions that are meant.
type Cases<'a> = Vec<(&'a str, Vec<Revision>)>;

impl<'a> Reasons<'a> {
    /// Those of the results with a verdict.
    fn of(report: &'a Report, verdict: Verdict) -> Self {
        let mut reasons = Self::default();
        for result in report.results().filter(|result| result.verdict == verdict) {
            reasons.add(result.reason.as_deref().unwrap_or("no reason was given"), &result.case, result.revision);
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
