//! Moves bytes to and from a server and records everything that goes either way.
//!
//! Decides nothing: what is sent comes from the caller, illegal or not, and what comes back is kept
//! as it came. Reads, waits and memory are bounded.

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
