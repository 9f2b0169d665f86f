//! What a check reports: how many things it checked, and which of them violate its rule.
//!
//! How violations become findings of a case is not decided here.

use serde_json::Value;

/// A violation of a rule, with the positions in the transcript that prove it.
pub(super) struct Violation {
    /// What the server did, in one phrase.
    pub(super) actual: String,
    /// The tool or method that it is about; empty for the connection as a whole.
    pub(super) subject: String,
    /// The positions of the entries that prove it.
    pub(super) positions: Vec<usize>,
    /// The value that violates the rule.
    pub(super) value: Option<Value>,
    /// The difference between what a schema wants of a member and what is there.
    pub(super) diff: Option<String>,
}

impl Violation {
    /// A violation by messages at these positions, without a single value that is wrong.
    pub(super) fn new(actual: impl Into<String>, subject: impl Into<String>, positions: &[usize]) -> Self {
        Self { actual: actual.into(), subject: subject.into(), positions: positions.to_vec(), value: None, diff: None }
    }
}

/// The result of a check of a connection.
#[derive(Default)]
pub(super) struct CheckResult {
    /// How many things were checked; none means that the connection proves nothing.
    pub(super) count: usize,
    /// What violates the rule.
    pub(super) violations: Vec<Violation>,
}

impl CheckResult {
    /// Counts one more thing as checked, with its violation if there is one.
    pub(super) fn record(&mut self, violation: Option<Violation>) {
        self.count += 1;
        self.violations.extend(violation);
    }

    /// Adds what another check found.
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.violations.extend(other.violations);
    }
}

/// The result of a check of one value.
pub(super) enum ValueResult {
    /// The value conforms to the rule.
    Conforms,
    /// It violates the rule, for this reason.
    Violates(String),
}

impl From<Option<String>> for ValueResult {
    fn from(problem: Option<String>) -> Self {
        problem.map_or(Self::Conforms, Self::Violates)
    }
}
