//! A violation of an oracle's rule by fuzzed calls.

use serde_json::Value;

use crate::case::Oracle;
use crate::verdict::Verdict;

/// A violation of an oracle's rule in the responses to a tool's calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OracleViolation {
    /// The oracle whose rule is violated.
    pub oracle: Oracle,
    /// The requirement that is violated, if the case names several.
    pub requirement: Option<&'static str>,
    /// The verdict that it leads to.
    pub verdict: Verdict,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What was expected.
    pub expected: String,
    /// What the server did.
    pub actual: String,
    /// The JSON value that is wrong.
    pub value: Option<Value>,
    /// How it is fixed, if not as the case says.
    pub fix: Option<String>,
    /// Distinguishes its root cause from others of the same oracle and tool.
    pub signature: String,
}

impl OracleViolation {
    pub(super) fn new(oracle: Oracle, verdict: Verdict, message: impl Into<String>) -> Self {
        Self {
            oracle,
            requirement: None,
            verdict,
            message: message.into(),
            expected: oracle.rule().to_owned(),
            actual: String::new(),
            value: None,
            fix: None,
            signature: String::new(),
        }
    }

    pub(super) fn of_requirement(mut self, requirement: &'static str) -> Self {
        self.requirement = Some(requirement);
        self
    }

    pub(super) fn actual(mut self, actual: impl Into<String>) -> Self {
        self.actual = actual.into();
        self
    }

    pub(super) fn signature(mut self, signature: impl Into<String>) -> Self {
        self.signature = signature.into();
        self
    }

    pub(super) fn value(mut self, value: &Value) -> Self {
        const MAX_VALUE_BYTES: usize = 16 << 10;
        self.value = Some(value).filter(|value| value.to_string().len() <= MAX_VALUE_BYTES).cloned();
        self
    }

    /// Whether it has the same root cause as another: the same rule, violated in the same way.
    #[must_use]
    pub(crate) fn has_same_cause_as(&self, other: &Self) -> bool {
        self.oracle == other.oracle && self.signature == other.signature
    }

    /// A violation that only many calls together show.
    #[must_use]
    pub(crate) fn from_many_calls(oracle: Oracle, message: impl Into<String>, actual: impl Into<String>) -> Self {
        Self::new(oracle, Verdict::Warn, message).actual(actual).signature(oracle.as_str())
    }
}
