//! Moves bytes to and from a server and records them.
//!
//! Decides nothing: the caller chooses what is sent, valid or not, and everything is recorded as received. Reads,
//! waits and memory are limited.

mod background_process;
mod connection;
mod http;
mod in_process;
mod long_message;
mod package_runner;
mod process;
mod process_table;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP connections pause"))]
mod record;
mod responder;
mod secrets;
mod streams;
mod under_way;
mod unrecorded;
mod wait_budget;

pub(crate) use self::http::{
    BodyTransfer, CLIENT_HEADER_VALUE, DirectRequest, DirectResponse, EndReason, FOREIGN_AUTHORIZATION, HostState,
    ReadUntil, SECOND_AUTHORIZATION, UnrecordedHttpOptions, error_text,
};
pub use self::http::{FurtherTokens, HttpEndpoint, HttpEndpointError, header as headers};
pub(crate) use background_process::BackgroundProcess;
pub(crate) use connection::{Connection, FirstSignal, InProcessEnd, LaunchError, SigtermHandling, WaitOutcome};
pub use in_process::InProcessServer;
pub(crate) use package_runner::{PackagedProgram, is_package_runner};
pub(crate) use process::{ShutdownTimeouts, adopt_orphans, end_every_process, process_waits};
pub(crate) use record::{ConnectionCosts, EntryObserver, MemoryBudget, RecordOptions};
pub(crate) use responder::{RequestHandler, Responder};
pub(crate) use secrets::Secrets;
pub(crate) use under_way::MessagesUnderWay;
pub(crate) use unrecorded::UnrecordedConnection;
