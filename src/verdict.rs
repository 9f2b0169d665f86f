//! The five words of a judgement, and the finding that proves a bad one.
//!
//! Plain vocabulary, serialisable as it stands in the JSON report.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Level, Requirement, Revision};

/// What a case says of a server in one revision.
///
/// The order is the order of weight when several are joined: see [`Verdict::join`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does not apply, or nothing was seen.
    Skip,
    /// Something came back, and it was what the rule asks.
    Pass,
    /// We could not judge.
    Error,
    /// A SHOULD is broken, or a rule that the text states without a keyword.
    Warn,
    /// A MUST or a shape rule is broken.
    Fail,
}

impl Verdict {
    /// Every verdict, in the order in which reports list them.
    pub const ALL: [Self; 5] = [Self::Fail, Self::Warn, Self::Error, Self::Pass, Self::Skip];

    /// The heavier of two: one failure outweighs any number of passes, and a pass outweighs a skip.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        self.max(other)
    }

    /// The word.
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

/// A message that went over the wire, as evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Evidence {
    /// `sent`, `received`, `stderr` or `event`.
    pub direction: Direction,
    /// Milliseconds since the connection was opened.
    pub at_ms: f64,
    /// The line as it went over the wire (what is not UTF-8 replaced, long lines cut), or the event in words.
    pub text: String,
    /// How many bytes were cut from `text`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

impl Evidence {
    /// A whole message, so many milliseconds after the connection was opened.
    #[must_use]
    pub fn new(direction: Direction, at_ms: f64, text: String) -> Self {
        Self { direction, at_ms, text, omitted: 0 }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Which way a piece of evidence went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From us to the server.
    Sent,
    /// From the server to us.
    Received,
    /// What the server wrote to its error stream.
    Stderr,
    /// Something that happened: a closed stream, an exit, a wait that ran out.
    Event,
}

/// One root cause of a bad verdict, with its proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Finding {
    /// The requirement that is broken.
    pub requirement: String,
    /// How strongly it binds.
    pub level: Level,
    /// Whether the level is our reading of a text without a keyword.
    #[serde(default)]
    pub derived: bool,
    /// `fail` or `warn`.
    pub verdict: Verdict,
    /// The revision that it was judged by.
    pub revision: Revision,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What the rule asks for, in words.
    pub expected: String,
    /// What came, in words.
    pub actual: String,
    /// What came, as JSON, where there is a value to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Lines that differ between what was expected and what came, where that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// How often it was seen.
    pub count: usize,
    /// Where it was seen: tools, pages, positions; the first few.
    pub subjects: Vec<String>,
    /// The messages that prove it, in order of time.
    pub evidence: Vec<Evidence>,
    /// The page of the specification.
    pub link: String,
    /// How to mend a server that breaks the rule.
    pub fix: String,
    /// The command that shows just this again.
    pub reproduce: String,
    /// What the fuzzer called to draw it, made small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Box<Counterexample>>,
    /// How often it came back when it was tried again on a fresh process, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// Why it is accepted, where a baseline lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The pass of an acting case that drew what a watching case saw; of use while the run lasts.
    #[serde(skip)]
    pub origin: Option<usize>,
}

impl Finding {
    /// A requirement that is broken in a revision, seen once; what proves it is left to be filled in.
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

/// Why a fuzzed call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallKind {
    /// A failing call of an earlier run, tried first.
    Regression,
    /// A boundary or a branch of the schema.
    Coverage,
    /// Random arguments that the schema admits.
    Valid,
    /// Arguments that break exactly one keyword of the schema.
    Invalid,
    /// What no schema speaks of: arguments that are no object, enormous keys, bottomless nesting.
    Malformed,
    /// Valid arguments with values out of earlier results.
    Stateful,
}

impl CallKind {
    /// Every kind, in the order in which they are tried.
    pub const ALL: [Self; 6] =
        [Self::Regression, Self::Coverage, Self::Valid, Self::Invalid, Self::Malformed, Self::Stateful];

    /// The word.
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

/// The call that the fuzzer found something with, made as small as the budget allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Counterexample {
    /// The tool.
    pub tool: String,
    /// Why the call was made.
    pub kind: CallKind,
    /// The keyword that the arguments break, as a pointer into the inputSchema and the keyword, for an invalid call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violated: Option<String>,
    /// The arguments that failed first; cut to a note where they are enormous.
    pub original: Value,
    /// The smallest arguments that still fail.
    pub arguments: Value,
    /// The `tools/call` params that have to be sent before it, in order; empty where it fails by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<Value>,
    /// How many calls shrinking took.
    pub attempts: usize,
    /// Each line to paste into a pipe after the opening, without its newline; the last draws the failure.
    pub messages: Vec<String>,
    /// The file that replays it, where one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// How often a finding came back when it was tried again on a fresh process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// How often it was tried again.
    pub tried: usize,
    /// How often it failed then.
    pub failed: usize,
}

impl Confirmation {
    /// Whether it did not fail each time.
    #[must_use]
    pub fn is_flaky(self) -> bool {
        self.failed < self.tried
    }
}

/// How often each verdict was given.
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
    /// Cases that do not apply.
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

    /// The number of that verdict.
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

    /// How many cases were judged: neither skipped nor in error.
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
