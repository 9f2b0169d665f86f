//! Moves bytes to and from a server and records them.
//!
//! Decides nothing: the caller chooses what is sent, valid or not, and everything is recorded as received. Reads,
//! waits and memory are limited.

mod allotted;
mod companion;
mod connection;
mod http;
mod pipe;
mod process;
mod record;
mod responder;
mod runner;
mod table;
mod within;

pub use self::http::{
    Bound, OWN_VALUE, Over, PostsOrder, Probe, ProbeError, ProbeOrder, Site, SiteError, header as headers, trouble,
};
pub use companion::Companion;
pub use connection::{Connection, LaunchError, Patience, Waited};
pub use pipe::Pipe;
pub use process::{adopt_orphans, end_every_process};
pub use record::{Allowance, Keeping, Limits, Tap};
pub use responder::{Answer, Responder};
pub use runner::{Packaged, is_package_runner};
pub use within::Within;
