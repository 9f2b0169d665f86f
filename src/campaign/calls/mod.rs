//! What to call next, of which tool and with which arguments; the randomness and the corpus are here.
//!
//! Nothing here knows a process or a clock: each call is a value that `process` makes.

mod applicable_keywords;
pub(super) mod call_plan;
mod call_source;
mod clean_results;
pub(super) mod features;
pub(super) mod fuzz_call;
pub(super) mod long_calls;
mod mutant_calls;
pub(super) mod schedule;
mod share;
pub(super) mod tools;
pub(super) mod value_pool;
pub(super) mod vary;
