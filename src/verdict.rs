//! Verdicts and findings.
//!
//! The types are serialized as in the JSON report.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Level, Requirement, Revision};

/// The verdict of a case in one revision, in ascending order of severity: see [`Verdict::join`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The case does not apply, or nothing was observed.
    Skip,
    /// The observed behaviour satisfies the rule.
    Pass,
    /// The case could not be judged.
    Error,
    /// A SHOULD is violated, or a rule that the specification states without a keyword.
    Warn,
    /// A MUST or a schema rule is violated.
    Fail,
}

impl Verdict {
    /// All verdicts, in the order of the reports.
    pub const ALL: [Self; 5] = [Self::Fail, Self::Warn, Self::Error, Self::Pass, Self::Skip];

    /// The more severe of two verdicts: a failure outweighs any number of passes, and a pass outweighs a skip.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        self.max(other)
    }

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Skip => "skip",
            Self::Error => "error",
        }
    }
}

/// A message or event as evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Evidence {
    /// The direction or kind.
    pub direction: Direction,
    /// The time since the connection was opened, in milliseconds.
    pub at_ms: f64,
    /// The line as sent or received (invalid UTF-8 replaced, long lines truncated), or a description of the event.
    pub text: String,
    /// The number of bytes truncated from `text`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

impl Evidence {
    /// A complete message, `at_ms` milliseconds after the connection was opened.
    #[must_use]
    pub fn new(direction: Direction, at_ms: f64, text: String) -> Self {
        Self { direction, at_ms, text, omitted: 0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The direction or kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to the server.
    Sent,
    /// From the server to the client.
    Received,
    /// Written by the server to stderr.
    Stderr,
    /// An event: a closed stream, an exit, a timeout.
    Event,
}

/// A violation of a requirement, with evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Finding {
    /// The violated requirement.
    pub requirement: String,
    /// The level of the requirement.
    pub level: Level,
    /// Whether the level is inferred because the specification uses no keyword.
    #[serde(default)]
    pub derived: bool,
    /// `fail` or `warn`.
    pub verdict: Verdict,
    /// The revision in which it was judged.
    pub revision: Revision,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What the rule requires.
    pub expected: String,
    /// What the server did.
    pub actual: String,
    /// The actual value as JSON, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// A diff of expected and actual lines, where that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The number of occurrences.
    pub count: usize,
    /// The first few locations: tools, pages, positions.
    pub subjects: Vec<String>,
    /// The messages that prove it, in chronological order.
    pub evidence: Vec<Evidence>,
    /// The URL of the specification page.
    pub link: String,
    /// How to fix the server.
    pub fix: String,
    /// The command that reproduces the finding.
    pub reproduce: String,
    /// The minimal failing call, for a finding of the fuzzer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Box<Counterexample>>,
    /// How many retries on fresh processes failed, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// Why it is accepted, if the baseline lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The pass of an active case that provoked what a passive case observed; only used during the run.
    #[serde(skip)]
    pub origin: Option<usize>,
}

impl Finding {
    /// A finding with one occurrence, whose message and evidence are still empty.
    #[must_use]
    pub fn new(requirement: &Requirement, revision: Revision, verdict: Verdict) -> Self {
        Self {
            requirement: requirement.id.clone(),
            level: requirement.level,
            derived: requirement.derived,
            verdict,
            revision,
            message: String::new(),
            expected: String::new(),
            actual: String::new(),
            value: None,
            diff: None,
            count: 1,
            subjects: Vec::new(),
            evidence: Vec::new(),
            link: requirement.link(revision),
            fix: String::new(),
            reproduce: String::new(),
            counterexample: None,
            confirmation: None,
            accepted: None,
            origin: None,
        }
    }
}

/// The kind of a fuzz call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallKind {
    /// A failing call of an earlier run.
    Regression,
    /// Arguments at a boundary or branch of the schema.
    Coverage,
    /// Random valid arguments.
    Valid,
    /// Arguments that violate exactly one keyword of the schema.
    Invalid,
    /// Malformed arguments: not an object, huge keys, very deep nesting.
    Malformed,
    /// Valid arguments with values from earlier results.
    Stateful,
}

impl CallKind {
    /// All kinds, in the order in which they are tried.
    pub const ALL: [Self; 6] =
        [Self::Regression, Self::Coverage, Self::Valid, Self::Invalid, Self::Malformed, Self::Stateful];

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Coverage => "coverage",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Malformed => "malformed",
            Self::Stateful => "stateful",
        }
    }
}

/// A failing call of the fuzzer, shrunk as far as the budget allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Counterexample {
    /// The tool.
    pub tool: String,
    /// The kind of the call.
    pub kind: CallKind,
    /// The keyword that the arguments violate, as a JSON Pointer into the inputSchema and the keyword, for an invalid
    /// call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
    /// The arguments that failed first; replaced by a note if they are huge.
    pub original: Value,
    /// The smallest arguments that still fail.
    pub arguments: Value,
    /// The `params` of the `tools/call` requests that have to precede it, in order; empty if it fails by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<Value>,
    /// The number of calls used for shrinking.
    pub attempts: usize,
    /// The lines to send after initialization, without newlines; the last one triggers the failure.
    pub messages: Vec<String>,
    /// The file for `replay`, if one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The retries of a failure on fresh processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The number of retries.
    pub tried: usize,
    /// The number of retries that failed.
    pub failed: usize,
}

impl Confirmation {
    /// Whether at least one retry did not fail.
    #[must_use]
    pub fn is_flaky(self) -> bool {
        self.failed < self.tried
    }
}

/// The number of cases by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Totals {
    /// Cases that pass.
    pub pass: usize,
    /// Cases that fail.
    pub fail: usize,
    /// Cases that warn.
    pub warn: usize,
    /// Skipped cases.
    pub skip: usize,
    /// Cases that could not be judged.
    pub error: usize,
}

impl Totals {
    /// Counts one more verdict.
    pub fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Pass => self.pass += 1,
            Verdict::Fail => self.fail += 1,
            Verdict::Warn => self.warn += 1,
            Verdict::Skip => self.skip += 1,
            Verdict::Error => self.error += 1,
        }
    }

    /// The count of a verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> usize {
        match verdict {
            Verdict::Pass => self.pass,
            Verdict::Fail => self.fail,
            Verdict::Warn => self.warn,
            Verdict::Skip => self.skip,
            Verdict::Error => self.error,
        }
    }

    /// The number of cases that were judged: neither skipped nor in error.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.pass + self.fail + self.warn
    }
}

impl FromIterator<Verdict> for Totals {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        let mut totals = Self::default();
        for verdict in verdicts {
            totals.add(verdict);
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_everything_and_a_pass_outweighs_a_skip() {
        use Verdict::{Error, Fail, Pass, Skip, Warn};
        assert_eq!([Skip, Pass, Error, Warn, Fail].into_iter().reduce(Verdict::join), Some(Fail));
        assert_eq!(Skip.join(Pass), Pass);
        assert_eq!(Pass.join(Error), Error);
        assert_eq!(Warn.join(Error), Warn);
    }

    #[test]
    fn only_pass_fail_and_warn_count_as_judged() {
        let totals: Totals = Verdict::ALL.into_iter().collect();
        assert_eq!(totals.judged(), 3);
    }
}
