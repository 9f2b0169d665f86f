//! Sequences of calls as data: which value of which result is an argument of which tool, the calls of a sequence, and what
//! their results have to show.
//!
//! Pure: it reads definitions and results, and neither sends nor judges. [`crate::check::fuzz`] judges what was recorded,
//! and the campaign makes the calls.

mod place;
mod step;
mod tool;
mod words;

pub(crate) use place::{FoundValue, Place, members, values};
pub(crate) use step::{
    CallSequence, Claim, Expectation, SequenceStep, StepAnswer, StepRecord, StepSource, StepValue, like,
};
pub(crate) use tool::{Parameter, ParameterType, SequenceTool, affinity};
pub(crate) use words::{Role, is_volatile, words};
