//! The definition of an evaluation fault, and the list of all of them.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::effect::Effect;
use super::trigger::Trigger;
use super::{invalid_arguments, sequence, valid_arguments};

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

static TABLES: [&[FaultSpec]; 3] = [valid_arguments::FAULTS, invalid_arguments::FAULTS, sequence::FAULTS];

/// A fault that only shows for certain arguments, or after certain calls.
#[derive(Clone, Copy)]
pub struct EvaluationFault(pub(super) &'static FaultSpec);

impl EvaluationFault {
    /// Every evaluation fault, in the order of the tables.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLES.iter().flat_map(|table| table.iter()).map(Self)
    }

    /// The kebab-case name, as `--fault` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What the server does wrong: a predicate whose subject is "the server".
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.0.description
    }

    /// The tool that triggers it.
    #[must_use]
    pub const fn tool(self) -> &'static str {
        self.0.tool
    }

    /// The fuzzing cases of which at least one has to report the fault.
    #[must_use]
    pub const fn oracles(self) -> &'static [&'static str] {
        self.0.oracles
    }

    /// Whether a call is a minimal counterexample: its arguments, and the `params` of the calls that have to
    /// precede it.
    #[must_use]
    pub fn is_minimal(self, before: &[Value], arguments: &Value) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_names_the_fuzzing_cases_that_report_it() {
        assert!(EvaluationFault::all().count() >= 40);
        for fault in EvaluationFault::all() {
            assert!(!fault.oracles().is_empty(), "{fault:?}");
            assert!(fault.oracles().iter().all(|oracle| oracle.starts_with("fuzz/")), "{fault:?}");
        }
    }
}
