//! The definition of an evaluation fault.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::effect::Effect;
use super::trigger::Trigger;

/// The definition of an evaluation fault.
pub(super) struct FaultSpec {
    pub(super) name: &'static str,
    /// A predicate whose subject is "the server".
    pub(super) description: &'static str,
    pub(super) tool: &'static str,
    pub(super) trigger: Trigger,
    pub(super) effect: Effect,
    /// The fuzzing cases of which at least one has to report the fault.
    pub(super) oracles: &'static [&'static str],
    /// Whether a call is a minimal counterexample, given the params of the calls before it.
    pub(super) is_minimal: fn(&[Value], &Value) -> bool,
}

/// A fault that only shows for certain arguments, or after certain calls.
#[derive(Clone, Copy)]
pub(crate) struct EvaluationFault(pub(super) &'static FaultSpec);

impl EvaluationFault {
    /// The kebab-case name.
    pub(crate) const fn name(self) -> &'static str {
        self.0.name
    }

    /// What the server does wrong: a predicate whose subject is "the server".
    pub(crate) const fn description(self) -> &'static str {
        self.0.description
    }

    /// The tool that triggers it.
    pub(crate) const fn tool(self) -> &'static str {
        self.0.tool
    }

    /// The fuzzing cases of which at least one has to report the fault.
    pub(crate) const fn oracles(self) -> &'static [&'static str] {
        self.0.oracles
    }

    /// Whether a call is a minimal counterexample: its arguments, and the `params` of the calls that have to
    /// precede it.
    pub(crate) fn is_minimal(self, before: &[Value], arguments: &Value) -> bool {
        (self.0.is_minimal)(before, arguments)
    }
}

impl fmt::Debug for EvaluationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl PartialEq for EvaluationFault {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for EvaluationFault {}

impl PartialOrd for EvaluationFault {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EvaluationFault {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl Hash for EvaluationFault {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}
