//! Moves bytes to and from a server and records everything that goes either way.
//!
//! Decides nothing: what is sent comes from the caller, illegal or not, and what comes back is kept
//! as it came. Reads, waits and memory are bounded.

mod connection;
mod process;
mod responder;

pub use connection::{Connection, LaunchError, Limits, Tap, Waited};
pub use process::{adopt_orphans, end_every_process};
pub use responder::Responder;
