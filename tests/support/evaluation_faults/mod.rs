//! The faults to evaluate the fuzzer with: only certain arguments or sequences of calls trigger them.
//!
//! Each definition has the tool, the trigger, the effect, the fuzzing cases that have to report it and the
//! minimal counterexample. A reference server with these faults intercepts its own calls.

mod effect;
mod fault;
mod interception;
mod invalid_arguments;
mod sequence;
mod state;
mod trigger;
mod valid_arguments;

use mcp_conformance::reference::Revision;
use serde_json::{Map, Value};

pub(crate) use fault::EvaluationFault;
pub(crate) use state::State;

/// A JSON object.
type Object = Map<String, Value>;

/// The first revision that has all tools with evaluation faults.
pub(crate) const FIRST_REVISION: Revision = Revision::V2025_06_18;

/// Every evaluation fault, in the order of the tables.
pub(crate) fn all() -> impl Iterator<Item = EvaluationFault> {
    [valid_arguments::FAULTS, invalid_arguments::FAULTS, sequence::FAULTS].into_iter().flatten().map(EvaluationFault)
}

/// The evaluation fault with this name.
pub(crate) fn find(name: &str) -> Result<EvaluationFault, String> {
    all().find(|fault| fault.name() == name).ok_or_else(|| format!("no evaluation fault is named `{name}`"))
}
