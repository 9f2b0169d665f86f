//! Oracles that need more than one response: each owns its samples, and returns what it suspects.

pub(super) mod canaries;
pub(super) mod growth;
pub(super) mod latency_monitor;
pub(super) mod list_change;
pub(super) mod repeated_calls;
pub(super) mod resource_monitor;
pub(super) mod swapped_responses;
