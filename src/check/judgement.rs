//! The judgement of a case in one revision, and how findings are added to it.

use serde_json::Value;

use crate::case::Case;
use crate::spec::{Requirement, Revision};
use crate::verdict::{Finding, Verdict};

/// Why something that looks wrong is not reported.
pub(super) const SHORTENED: &str = "of long strings only the beginning was kept, as too many large messages were \
                                    received before; without the rest it cannot be said what is wrong";

/// The judgement of a case about a server in one revision.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it was skipped or could not be judged.
    pub reason: Option<String>,
    /// Whether the case is for servers of this kind at all.
    pub applies: bool,
    /// How many things were judged.
    pub judged_count: usize,
    /// What is worth knowing although nothing is wrong.
    pub notes: Vec<String>,
    /// What is wrong, one finding per root cause. The caller adds the command that reproduces it.
    pub findings: Vec<Finding>,
}

impl Judgement {
    /// A case for which the server did nothing that could be judged.
    #[must_use]
    pub fn skip(reason: impl Into<String>) -> Self {
        let reason = Some(reason.into());
        Self { verdict: Verdict::Skip, reason, applies: true, judged_count: 0, notes: Vec::new(), findings: Vec::new() }
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

    /// Replaces a pass by another verdict; findings and earlier reasons remain.
    pub(super) fn withdraw_pass(&mut self, verdict: Verdict, reason: impl Into<String>) {
        if self.verdict == Verdict::Pass {
            self.verdict = verdict;
            self.reason = Some(reason.into());
        }
    }
}

/// A value as a finding shows it, unless it is long: the evidence has its beginning.
pub(super) fn shown_value(value: &Value) -> Option<Value> {
    const MAX_VALUE_BYTES: usize = 4_000;
    (value.to_string().len() <= MAX_VALUE_BYTES).then(|| value.clone())
}

/// The requirement that a violation belongs to, and the verdict that it leads to.
pub(super) fn requirement_and_verdict(
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

/// Adds a finding, or counts it with an earlier one of the same root cause.
pub(super) fn add_finding(findings: &mut Vec<Finding>, finding: Finding) {
    const MAX_SUBJECTS: usize = 8;
    let same = findings.iter_mut().find(|known| {
        known.requirement == finding.requirement && known.message == finding.message && known.verdict == finding.verdict
    });
    match same {
        Some(known) => {
            known.count += finding.count;
            for subject in finding.subjects {
                if known.subjects.len() < MAX_SUBJECTS && !known.subjects.contains(&subject) {
                    known.subjects.push(subject);
                }
            }
        }
        None => findings.push(finding),
    }
}
