//! The judge: from a case and a transcript to a verdict, as a pure function.
//!
//! Sends nothing, waits for nothing, prints nothing and knows no clock. An acting case is judged by
//! `act`, a watching case by `watch`; both say the same kind of thing, a `Judged`.

mod act;
mod answer;
mod asked;
mod cancel;
mod compare;
mod connection;
mod declared;
mod ending;
mod evidence;
pub mod fuzz;
mod list;
mod listening;
mod opening;
mod pace;
mod progress;
mod seen;
mod stream;
mod subscription;
mod task;
mod value;
mod watch;

#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::case::Case;
use crate::spec::{Requirement, Revision};
use crate::transcript::Transcript;
use crate::verdict::{Finding, Verdict};

pub use act::act;
pub use evidence::{evidence, stderr_of};
pub use watch::{Watched, watch};

/// What a case says of a server in one revision.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it was skipped or could not be judged.
    pub reason: Option<String>,
    /// Whether the case is for servers of this kind at all.
    pub applies: bool,
    /// How many things were seen and judged.
    pub seen: usize,
    /// What is worth knowing though nothing is wrong.
    pub notes: Vec<String>,
    /// What is wrong, each root cause once. The replay command is left to the caller.
    pub findings: Vec<Finding>,
}

impl Judged {
    /// A case for which nothing was seen.
    #[must_use]
    pub fn skip(reason: impl Into<String>) -> Self {
        let reason = Some(reason.into());
        Self { verdict: Verdict::Skip, reason, applies: true, seen: 0, notes: Vec::new(), findings: Vec::new() }
    }

    /// A case that is not for servers of this kind.
    #[must_use]
    pub fn inapplicable(reason: impl Into<String>) -> Self {
        Self { applies: false, ..Self::skip(reason) }
    }

    /// A case that could not be judged.
    #[must_use]
    pub fn error(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Error, ..Self::skip(reason) }
    }
}

/// One walk over the steps of an acting case.
#[derive(Debug, Clone)]
pub struct Pass {
    /// What it was for: the tool, or empty.
    pub label: String,
    /// Its number, as in the marks of its entries.
    pub number: usize,
    /// What went over the wire in it.
    pub transcript: Transcript,
    /// What the survey found on the shared connection, by the method of the list: the names of tools and
    /// prompts, the uris of resources. A list that it did not read to the end is not there.
    pub offered: BTreeMap<&'static str, Vec<String>>,
    /// Why it could not be carried out as the case says.
    pub trouble: Option<String>,
    /// Why nothing in it is judged: what the case is about did not come to pass.
    pub void: Option<String>,
}

impl Pass {
    /// What it was for, as the subjects of a finding.
    fn subjects(&self) -> Vec<String> {
        if self.label.is_empty() { Vec::new() } else { vec![self.label.clone()] }
    }
}

/// A connection to be watched, with its name.
#[derive(Debug, Clone)]
pub struct Connected {
    /// What the connection was for.
    pub label: String,
    /// Its record.
    pub transcript: Transcript,
}

/// The requirement that a breach speaks for, and the verdict that it leads to.
fn verdict_of(
    case: &Case,
    revision: Revision,
    named: Option<&str>,
    verdict: Option<Verdict>,
) -> Option<(&'static Requirement, Verdict)> {
    let requirement = named
        .and_then(|id| case.requirement_for(Some(id), revision))
        .filter(|requirement| requirement.revisions().contains(revision))
        .or_else(|| case.requirement_in(revision))?;
    let by_level = if requirement.binds() { Verdict::Fail } else { Verdict::Warn };
    Some((requirement, verdict.unwrap_or(by_level)))
}

/// Adds a finding, or counts it to one of the same root cause.
fn add(findings: &mut Vec<Finding>, finding: Finding) {
    const SUBJECTS: usize = 8;
    let same = findings.iter_mut().find(|known| {
        known.requirement == finding.requirement && known.message == finding.message && known.verdict == finding.verdict
    });
    match same {
        Some(known) => {
            known.count += finding.count;
            for subject in finding.subjects {
                if known.subjects.len() < SUBJECTS && !known.subjects.contains(&subject) {
                    known.subjects.push(subject);
                }
            }
        }
        None => findings.push(finding),
    }
}
