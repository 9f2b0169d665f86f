//! Makes a failure small and confirms it, within a budget of attempts and time.

pub(super) mod failure_test;
pub(super) mod reproduction;
pub(super) mod shrink;
mod shrink_budget;
