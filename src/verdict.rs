//! Verdicts and findings.
//!
//! The types are serialized as in the JSON report.
//!
//! # Examples
//!
//! ```
//! use mcp_conformance::reference::Fault;
//! use mcp_conformance::verdict::{Confirmation, Direction, Evidence, Finding, Totals, Verdict};
//! use mcp_conformance::{Judge, Server, Settings};
//!
//! let settings = Settings { select: vec!["content/*".to_owned()], ..Settings::default() };
//! let server = Server::reference([Fault::ImageDataUrl]);
//! let report = Judge::new(server).settings(settings).run_blocking()?;
//!
//! let mut totals = Totals::default();
//! report.results().for_each(|result| totals.add(result.verdict));
//! assert!(totals.of(Verdict::Fail) > 0 && totals.judged() > totals.of(Verdict::Fail));
//!
//! let findings: Vec<&Finding> = report.results().flat_map(|result| &result.findings).collect();
//! // What the server said, and whether it said so again on another process.
//! let image = findings.iter().find(|finding| finding.requirement == "content-image").expect("the image is wrong");
//! let said: Vec<&Evidence> = image.evidence.iter().filter(|line| line.direction == Direction::Received).collect();
//! assert!(said.iter().any(|line| line.text.contains("data:image/png")));
//! let confirmed: Option<Confirmation> = image.confirmation;
//! assert!(confirmed.is_none_or(|confirmation| !confirmation.is_flaky()));
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```
//!
//! What a finding of the fuzzer says:
//!
//! ```
//! use mcp_conformance::reference::Fault;
//! use mcp_conformance::verdict::{
//!     ArgumentPart, CallKind, CallOutcome, Counterexample, FailingValues, MessageSummary,
//! };
//! use mcp_conformance::{FuzzSettings, Judge, Server, Settings};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let regressions = Some(folder.path().to_path_buf());
//! let fuzz = FuzzSettings { calls: Some(20), tools: vec!["add".to_owned()], regressions, ..FuzzSettings::default() };
//! let settings = Settings { select: vec!["fuzz/*".to_owned()], fuzz: Some(fuzz), ..Settings::default() };
//! let server = Server::reference([Fault::MissingArgumentSucceeds]);
//! let report = Judge::new(server).settings(settings).run_blocking()?;
//!
//! let findings = || report.results().flat_map(|result| &result.findings);
//! let (finding, call) = findings().find_map(|one| Some((one, one.counterexample.as_ref()?))).expect("it is found");
//! let Counterexample { tool, kind, arguments, parts, messages, .. } = call.as_ref();
//! assert_eq!((tool.as_str(), *kind), ("add", CallKind::Invalid));
//! assert!(arguments.as_object().is_some_and(|arguments| arguments.len() < 2), "a number is missing: {arguments}");
//! // One number is missing, whatever the other one is.
//! for ArgumentPart { pointer, fails_for, .. } in parts {
//!     assert_eq!(*fails_for, FailingValues::Any, "{pointer}");
//! }
//! assert!(messages.last().is_some_and(|line| line.contains("tools/call")));
//! // The server answered with a result, and not with an error.
//! let answers = finding.evidence.iter().filter_map(|line| line.message.as_ref());
//! assert!(answers.clone().any(|message| matches!(message, MessageSummary::Result { .. })));
//! assert!(CallOutcome::ALL.contains(&CallOutcome::Success) && answers.count() > 1);
//! # Ok::<(), mcp_conformance::JudgeError>(())
//! ```

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::spec::{Level, Requirement, Revision};

mod upstream;
pub use upstream::Upstream;

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

    /// What the verdict says, as Markdown. The README and the documentation have this text.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Pass => "the case saw a response or message, and it satisfies the rule",
            Self::Fail => {
                "the server violates a MUST or the shape of a message, or does something that no interpretation of a rule \
                 allows"
            }
            Self::Warn => {
                "the server violates a SHOULD, or a rule that the specification states without an RFC 2119 keyword (marked \
                 as inferred)"
            }
            Self::Skip => "the case does not apply, or there was nothing to judge; the reason is given",
            Self::Error => "the case could not be judged, for example because the server had exited",
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
    /// The JSON-RPC message that the line contains, also where `text` is truncated. Absent if the line is not a JSON
    /// object or array, if the summary itself would be long, and in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageSummary>,
}

impl Evidence {
    /// A complete line, `at_ms` milliseconds after the connection was opened, without a summary of its message.
    #[must_use]
    pub fn new(direction: Direction, at_ms: f64, text: String) -> Self {
        Self { direction, at_ms, text, omitted: 0, message: None }
    }

    /// The same line with the message that it contains.
    #[must_use]
    pub fn with_message(self, message: MessageSummary) -> Self {
        Self { message: Some(message), ..self }
    }
}

/// The kind of a JSON-RPC message, with the members that identify it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum MessageSummary {
    /// A method with an id.
    Request {
        /// The id, of any type.
        id: Value,
        /// The method.
        method: String,
        /// The name of the tool, if the method is `tools/call`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// A method without an id.
    Notification {
        /// The method.
        method: String,
    },
    /// A response without an `error`.
    Result {
        /// The id, if there is one.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
    },
    /// A response with an `error`.
    Error {
        /// The id, if there is one.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// The code of the error, if there is one.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        code: Option<Value>,
    },
    /// An array of messages.
    Batch {},
    /// An object that is none of these.
    Other {
        /// The id, if there is one.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
    },
}

impl MessageSummary {
    /// The id, if there is one.
    #[must_use]
    pub fn id(&self) -> Option<&Value> {
        match self {
            Self::Request { id, .. } => Some(id),
            Self::Result { id } | Self::Error { id, .. } | Self::Other { id } => id.as_ref(),
            Self::Notification { .. } | Self::Batch {} => None,
        }
    }
}

/// Reads a member that is present: unlike an absent one, `null` is a value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
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
    /// Why it is accepted, if the baseline lists it or `--accept` covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The SDK that behaves like this on a clean server, with its major version; the author's code is to blame if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// What is known of it in the SDK.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Box<Upstream>>,
    /// The pass of an active case that provoked what a passive case observed; only used during the run.
    #[serde(skip)]
    pub origin: Option<usize>,
    /// The cases without which it does not occur, because they ran before on the same session; only used during the
    /// run.
    #[serde(skip)]
    pub preceding: Vec<String>,
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
            sdk: None,
            upstream: None,
            origin: None,
            preceding: Vec::new(),
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
    /// Valid arguments that break handlers: long strings, many items, syntax of other languages, extreme dates.
    Handler,
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
    pub const ALL: [Self; 7] =
        [Self::Regression, Self::Coverage, Self::Handler, Self::Valid, Self::Invalid, Self::Malformed, Self::Stateful];

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Coverage => "coverage",
            Self::Handler => "handler",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Malformed => "malformed",
            Self::Stateful => "stateful",
        }
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallOutcome {
    /// A result without `isError: true`.
    Success,
    /// A result with `isError: true`.
    ToolError,
    /// Error -32602.
    InvalidParams,
    /// Another JSON-RPC error.
    OtherError,
    /// A response that is neither a result nor an error.
    Malformed,
    /// No response before the timeout.
    NoResponse,
    /// The server exited or closed the connection before it responded.
    Closed,
}

impl CallOutcome {
    /// All outcomes, successful ones first.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::ToolError,
        Self::InvalidParams,
        Self::OtherError,
        Self::Malformed,
        Self::NoResponse,
        Self::Closed,
    ];

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ToolError => "tool-error",
            Self::InvalidParams => "invalid-params",
            Self::OtherError => "other-error",
            Self::Malformed => "malformed",
            Self::NoResponse => "no-response",
            Self::Closed => "closed",
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
    /// Which parts of these arguments matter, as far as it was tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ArgumentPart>,
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

/// A part of failing arguments that was varied on its own, while the arguments stayed as valid or as invalid as they were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct ArgumentPart {
    /// The part, as a JSON Pointer.
    pub pointer: String,
    /// The values for which the call fails.
    pub fails_for: FailingValues,
    /// The least length that fails, in characters, where the length of a text decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<usize>,
    /// The number of other values that were tried.
    pub tried: usize,
}

/// The values in place of a part for which a call fails, judging by those that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailingValues {
    /// Every value.
    Any,
    /// This number and those below it.
    AtMost,
    /// This number and those above it.
    AtLeast,
    /// Every text that is as long as this one or longer.
    AtLeastAsLong,
    /// This value only.
    This,
    /// This value and some others.
    Some,
}

/// The retries of a failure on fresh processes. None were made (`tried` is 0) if there was no time for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The number of retries.
    pub tried: usize,
    /// The number of retries that failed.
    pub failed: usize,
}

impl Confirmation {
    /// What is known of a failure that was seen once and not retried.
    pub(crate) const NONE: Self = Self { tried: 0, failed: 0 };

    /// Whether at least one retry did not fail, or there was none.
    #[must_use]
    pub fn is_flaky(self) -> bool {
        self.failed < self.tried.max(1)
    }

    /// Whether no retry failed, be it that there was none: nothing shows that it was more than chance.
    #[must_use]
    pub fn is_unconfirmed(self) -> bool {
        self.failed == 0
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
    use serde_json::json;

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
    fn a_message_reads_back_as_it_was_written_even_with_a_null_id() {
        let messages = [
            MessageSummary::Request { id: json!(1.0), method: "tools/call".to_owned(), tool: Some("echo".to_owned()) },
            MessageSummary::Notification { method: "x".to_owned() },
            MessageSummary::Result { id: Some(Value::Null) },
            MessageSummary::Result { id: None },
            MessageSummary::Error { id: Some(json!("a")), code: Some(json!(-32602)) },
            MessageSummary::Batch {},
            MessageSummary::Other { id: Some(json!(u64::MAX)) },
        ];
        for message in messages {
            let evidence = Evidence::new(Direction::Sent, 0.0, String::new()).with_message(message);
            let text = serde_json::to_string(&evidence).expect("it is JSON");
            let read: Evidence = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(read, evidence, "{text}");
        }
        assert!(serde_json::from_value::<MessageSummary>(json!({"kind": "result", "method": "x"})).is_err());
    }

    #[test]
    fn only_pass_fail_and_warn_count_as_judged() {
        let totals: Totals = Verdict::ALL.into_iter().collect();
        assert_eq!(totals.judged(), 3);
    }
}
