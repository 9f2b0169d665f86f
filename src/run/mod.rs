//! Runs a plan: finds out which revisions a server supports, judges it in each of them by the cases, and fuzzes it.
//!
//! The files use each other in one direction: the conductor starts targets, a target discovers what the server has and
//! starts queues of cases, a queue opens sessions and runs cases on them, and a run of a case executes its steps. What
//! they share is in [`crate::context`] and, for one target, in `target_state`; what they send goes through a
//! [`crate::session`].

mod additional_session;
mod argument_search;
mod argument_variants;
mod case_queue;
mod case_run;
mod case_session;
mod client_replies;
mod conductor;
mod confirm;
mod confirm_passive;
mod discovery;
mod example_arguments;
mod execution;
mod further_requests;
mod fuzzing;
mod hint_discovery;
mod input_retry;
mod installed_packages;
mod needs;
mod pagination;
mod parallel_executions;
mod passive_cases;
mod problem;
mod recording;
mod revision_probe;
mod shared_results;
mod start_failure;
mod stream_recording;
mod suggested_values;
mod target;
mod target_run;
mod target_state;
mod target_summary;

pub use conductor::run;
pub use hint_discovery::{DiscoveredHint, DiscoveredHints, discover_hints};
pub use installed_packages::installed_packages;
pub use recording::{RecordingError, RecordingPlan, judge_recording};
pub use stream_recording::{StreamRecording, Writer};
