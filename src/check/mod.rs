//! The judge: from a case and transcripts to a judgement, as a pure function.
//!
//! Sends nothing, waits for nothing, prints nothing and reads no clock. `active` judges cases that send,
//! `passive` those that only check what was recorded; `fuzz` judges generated calls. The leaves (`ecma_pattern`, `index`,
//! `violation`, `judgement`, `execution`, `evidence`, `text`) import no sibling, `connection` imports the checks, and
//! `active` and `passive` are at the top.

mod across_steps;
mod active;
mod cancellation;
mod capability;
mod client_request;
mod connection;
mod ecma_pattern;
mod ended_session;
mod evidence;
mod execution;
pub(crate) mod fuzz;
mod handshake;
mod http_stream;
mod index;
mod judgement;
mod list;
mod member_diff;
mod passive;
mod progress;
mod rate;
mod response;
mod sampled;
mod schema_reference;
mod shutdown;
mod step_exchange;
mod subscription_delivery;
mod subscription_opening;
mod task;
mod text;
mod unique;
mod unsolicited;
mod value;
mod violation;

#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;

pub use active::judge_active;
pub(crate) use ended_session::{SESSION_ENDED, judge_ended_session};
pub(crate) use evidence::{evidence, milliseconds, stderr_of};
pub use execution::Execution;
pub use index::{IndexedConnections, RecordedConnection};
pub use judgement::Judgement;
pub use passive::judge_passive;
pub(crate) use passive::judge_passive_cases;
