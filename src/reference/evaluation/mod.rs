//! Faults hidden in the argument space of the tools: plain calls never meet them, a fuzzer has to.
//!
//! Each row states the tool, what triggers the fault, what happens then, which finding of the fuzzer
//! has to tell of it, and what the smallest call is that draws it. They are faults like the others for
//! whoever serves them, and apart from them in that no case of the suite can see one.

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
