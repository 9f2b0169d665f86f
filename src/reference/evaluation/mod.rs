//! Faults to evaluate the fuzzer with: only certain arguments or sequences of calls trigger them.
//!
//! Each definition has the tool, the trigger, the effect, the fuzzing cases that have to report it and the
//! minimal counterexample. They can be enabled like any other fault, but no other case of the suite can find
//! them.

mod effect;
mod fault;
mod interception;
mod invalid_arguments;
mod sequence;
mod state;
mod trigger;
mod valid_arguments;

pub use fault::EvaluationFault;

pub(super) use interception::Interception;
pub(super) use state::State;
