//! The conductor: finds out which revisions a server supports, runs the cases and reports the results to a sink.

mod asking;
mod bindings;
mod campaign;
mod case_runner;
mod conductor;
mod confirm;
mod discovery;
mod example_arguments;
mod exchange;
mod hint_discovery;
mod hint_requests;
mod http_failure;
mod http_host;
mod http_steps;
mod inventory;
mod launch;
mod permits;
mod plan;
mod primitives;
mod reply;
mod retry;
mod revision_probe;
mod session;
mod shared_results;
mod subscription;
mod target;

pub use campaign::{Regression, RegressionError};
pub use conductor::{Stop, run};
pub use hint_discovery::{DiscoveredHint, DiscoveredHints, discover_hints};
pub(crate) use plan::FuzzPlan;
pub(crate) use plan::default_jobs;
pub(crate) use plan::quote_shell_words;
pub use plan::{CallPolicy, HttpTarget, Launcher, Plan, Revisions, ServerCommand};
