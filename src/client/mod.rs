//! Moves bytes to and from a server and records them.
//!
//! Decides nothing: the caller chooses what is sent, valid or not, and everything is recorded as received. Reads,
//! waits and memory are limited.

mod background_process;
mod connection;
mod http;
mod in_process;
mod package_runner;
mod process;
mod process_table;
mod record;
mod responder;
mod unrecorded;
mod wait_budget;

pub use self::http::{
    CLIENT_HEADER_VALUE, EndReason, HttpEndpoint, HttpEndpointError, Probe, ProbeError, ProbeRequest, ReadUntil,
    UnrecordedHttpOptions, error_text, header as headers,
};
pub use background_process::BackgroundProcess;
pub use connection::{Connection, LaunchError, ShutdownTimeouts, WaitOutcome};
pub use in_process::InProcessServer;
pub use package_runner::{PackagedProgram, is_package_runner};
pub use process::{adopt_orphans, end_every_process};
pub use record::{EntryObserver, MemoryBudget, RecordLimits, RecordOptions};
pub use responder::{RequestHandler, Responder};
pub use unrecorded::UnrecordedConnection;
