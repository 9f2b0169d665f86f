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
    Bound, OWN_VALUE, Over, PostsOrder, Probe, ProbeError, ProbeOrder, Site, SiteError, error_text as trouble,
    header as headers,
};
pub use background_process::Companion;
pub use connection::{Connection, LaunchError, Patience, Waited};
pub use in_process::Within;
pub use package_runner::{Packaged, is_package_runner};
pub use process::{adopt_orphans, end_every_process};
pub use record::{Allowance, EntryObserver, Keeping, RecordLimits};
pub use responder::{Answer, Responder};
pub use unrecorded::Pipe;
