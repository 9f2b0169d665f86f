//! Connections over HTTP: Streamable HTTP of every revision, and the HTTP+SSE transport of 2024-11-05.
//!
//! Turns messages into requests, and responses and streams into messages, and sends the headers that the protocol
//! requires. Records everything as received: status, headers, bodies that are not messages, and each message as if
//! it were a line. Requests only go to the origin that the user named: redirects are recorded and never followed,
//! and no proxy is used for an address of this machine.
//!
//! Sources: `basic/transports` of 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25,
//! `basic/transports/streamable-http` of 2026-07-28.

mod answer;
mod cancel;
mod exchange;
pub mod header;
mod note;
mod older;
mod pause;
mod posts;
mod probe;
mod request;
mod site;
mod standing;
pub mod trouble;

pub(super) use exchange::Exchanger;
pub(super) use posts::Posts;
pub use posts::{Over, PostsOrder};
pub use probe::{Bound, OWN_VALUE, Probe, ProbeError, ProbeOrder};
pub use site::{Site, SiteError};
