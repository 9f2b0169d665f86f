//! A baseline: findings that are accepted for now, each with a reason and an optional expiry date.
//!
//! Its file is read and rewritten by `case`, and `report` compares a run with it.

use serde::{Deserialize, Serialize};

use crate::spec::RevisionSet;
use crate::verdict::Verdict;

/// The placeholder for the reason of a new entry.
pub(crate) const NO_REASON_YET: &str = "TODO: explain why this finding is accepted";

/// An accepted finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaselineEntry {
    /// The case that makes the finding.
    pub case: String,
    /// The violated requirement.
    pub requirement: String,
    /// The tool that the finding is about; any tool if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The revisions in which it is accepted; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<RevisionSet>,
    /// Whether it is accepted as a failure or as a warning; both if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Whether the finding is made in some runs only, for example because of a race in the server. A run without it does
    /// not make the entry stale.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
}

impl BaselineEntry {
    /// Whether the entry has expired on a day, given as `2027-01-31`.
    #[must_use]
    pub fn is_expired(&self, today: &str) -> bool {
        self.expires.as_deref().is_some_and(|last| last < today)
    }

    /// The revisions to which the entry applies.
    #[must_use]
    pub fn within(&self) -> RevisionSet {
        self.revisions.unwrap_or(RevisionSet::ALL)
    }

    /// Whether two entries accept the same finding in some revision.
    #[must_use]
    pub(crate) fn collides(&self, other: &Self) -> bool {
        let either = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        self.case == other.case
            && self.requirement == other.requirement
            && either(&self.tool, &other.tool)
            && (self.verdict.is_none() || other.verdict.is_none() || self.verdict == other.verdict)
            && !self.within().intersection(other.within()).is_empty()
    }
}

/// The accepted findings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    #[serde(default, rename = "$schema")]
    _schema: Option<String>,
    /// The revisions that the server supports, if the file lists them.
    #[serde(default)]
    pub revisions: Option<RevisionSet>,
    /// The entries.
    #[serde(rename = "findings")]
    pub entries: Vec<BaselineEntry>,
}

/// A change to a baseline file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Removes the entry with this index.
    Remove(usize),
    /// Limits the entry with this index to these revisions.
    Narrow(usize, RevisionSet),
    /// Appends an entry.
    Add(BaselineEntry),
}

impl Baseline {
    /// A baseline with these entries.
    #[must_use]
    pub fn of(revisions: Option<RevisionSet>, entries: Vec<BaselineEntry>) -> Self {
        Self { _schema: None, revisions, entries }
    }
}
