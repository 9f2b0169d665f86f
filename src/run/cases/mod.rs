//! Cases on a target: they read what discovery found, and change nothing of it.
//!
//! A queue opens sessions and runs cases on them, a run of a case executes its steps, and what surprises is confirmed
//! on fresh processes.

mod additional_session;
mod attribution;
pub(super) mod case_queue;
pub(super) mod case_run;
pub(super) mod case_session;
mod client_replies;
pub(super) mod confirm;
pub(super) mod confirm_passive;
pub(super) mod deferred;
mod execution;
mod idle_permit;
pub(super) mod in_turn;
pub(super) mod needs;
pub(super) mod own_process;
mod parallel_executions;
pub(super) mod passive_cases;
pub(super) mod remaining_cases;
pub(super) mod shared_results;
