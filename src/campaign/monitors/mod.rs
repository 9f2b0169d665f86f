//! Oracles that need more than one response: each owns its samples, and returns what it suspects.
//!
//! A monitor is a file with a type that implements [`Monitor`], and its line in [`all`].

pub(super) mod calls_at_once;
pub(super) mod canaries;
mod degradation;
pub(super) mod growth;
mod latency_monitor;
mod list_change;
pub(super) mod monitor;
mod refused_arguments;
mod repeated_calls;
pub(super) mod resource_monitor;
pub(super) mod swapped_responses;

use self::monitor::Monitor;

/// The monitors of a worker, in the order in which they look at a server.
pub(super) fn all() -> Vec<Box<dyn Monitor>> {
    vec![
        Box::new(calls_at_once::CallsAtOnce),
        Box::<repeated_calls::RepeatedCalls>::default(),
        Box::new(swapped_responses::SwappedResponses),
        Box::<list_change::ListChange>::default(),
        Box::<refused_arguments::RefusedArguments>::default(),
        Box::new(degradation::Degradation),
        Box::<growth::Growth>::default(),
    ]
}
