//! Runs a plan: finds out which revisions a server supports, judges it in each of them by the cases, and fuzzes it.
//!
//! The files use each other in one direction: the conductor starts targets, a target discovers what the server has and
//! starts queues of cases, and [`cases`] carries them out. What they share is in [`crate::context`] and, for one target,
//! in `target_state`; what they send goes through a [`crate::session`].

mod cases;
mod conductor;
mod control_request;
mod discovery;
mod fuzzing;
mod hint_discovery;
mod idle_sessions;
mod input_retry;
mod installed_packages;
mod one_session;
mod pagination;
mod problem;
mod recording;
mod revision_probe;
mod shared_runs;
mod start_failure;
mod stream_recording;
mod target;
mod target_run;
mod target_state;
mod target_summary;

pub use conductor::run;
pub use hint_discovery::{DiscoveredHint, DiscoveredHints, discover_hints};
pub use installed_packages::installed_packages;
pub use recording::{RecordingError, RecordingPlan, judge_recording};
pub use stream_recording::{StreamRecording, Writer};
