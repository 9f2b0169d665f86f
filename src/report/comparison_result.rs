//! The result of comparing a report with a baseline, as part of the report, and its sentences.

use serde::{Deserialize, Serialize};

use crate::baseline::BaselineEntry;
use crate::spec::RevisionSet;

/// The result of comparing a report with a baseline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct BaselineComparison {
    /// The file of the baseline.
    pub file: String,
    /// The findings that fail the run and are not listed, as the entries that would accept them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new: Vec<BaselineEntry>,
    /// Entries whose finding was not made although its case was judged; they fail the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<StaleEntry>,
    /// Expired entries whose finding is still made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expired: Vec<BaselineEntry>,
    /// The revisions in the file, if the server was judged in different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported: Option<RevisionSet>,
}

/// A baseline entry whose finding is no longer made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct StaleEntry {
    /// The entry.
    pub entry: BaselineEntry,
    /// The revisions in which its case was judged without making the finding; empty if the case does not exist.
    pub missing_in: RevisionSet,
}

impl BaselineComparison {
    /// Whether the baseline is out of date, which fails the run.
    #[must_use]
    pub fn is_out_of_date(&self) -> bool {
        !self.stale.is_empty() || self.supported.is_some()
    }

    /// What has to be edited before the run can pass, one sentence for each outdated entry.
    pub fn outdated_messages(&self) -> impl Iterator<Item = String> {
        let revisions = self.supported.map(|supported| {
            format!(
                "`revisions` in {} says {}, but the server was judged in other revisions: correct it",
                self.file,
                supported.compact()
            )
        });
        self.stale.iter().map(|stale| stale.complaint(&self.file)).chain(revisions)
    }

    /// A sentence for each expired entry.
    pub fn expiry_messages(&self) -> impl Iterator<Item = String> {
        self.expired.iter().map(|entry| {
            let until = entry.expires.as_deref().unwrap_or_default();
            format!(
                "{} in {} was accepted until {until}: fix the server or set a later `expires` date",
                describe(entry),
                self.file
            )
        })
    }
}

impl StaleEntry {
    fn complaint(&self, file: &str) -> String {
        let entry = describe(&self.entry);
        if self.missing_in.is_empty() {
            return format!(
                "{entry} in {file} names a case that does not exist: correct the case id or delete the entry"
            );
        }
        let missing = self.missing_in.compact();
        // An entry that still applies in some revisions only loses the others.
        let edit = match self.entry.revisions {
            Some(listed) if listed != self.missing_in => "remove these revisions from the entry",
            Some(_) | None => "delete the entry",
        };
        format!("{entry} in {file} was not found in {missing}: {edit} or run with --update-baseline")
    }
}

/// Names an entry in a sentence.
fn describe(entry: &BaselineEntry) -> String {
    let tool = entry.tool.as_ref().map_or_else(String::new, |tool| format!(", tool {tool}"));
    format!("{} by {}{tool}", entry.requirement, entry.case)
}
