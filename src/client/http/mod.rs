//! Connections over HTTP: Streamable HTTP of every revision, and the HTTP+SSE transport of 2024-11-05.
//!
//! Turns messages into requests, and responses and streams into messages, and sends the headers that the protocol
//! requires. Records everything as received: status, headers, bodies that are not messages, and each message as if
//! it were a line. Requests only go to the origin that the user named: redirects are recorded and never followed,
//! and no proxy is used for an address of this machine.
//!
//! Sources: `basic/transports` of 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25,
//! `basic/transports/streamable-http` of 2026-07-28.

mod cancel;
mod connection;
mod endpoint;
pub(crate) mod error_text;
mod event_summary;
pub mod header;
mod probe;
mod rate_limit;
mod request;
mod response;
mod sse_transport;
mod unrecorded;
mod url_relation;

pub(super) use connection::HttpConnection;
pub use endpoint::{HttpEndpoint, HttpEndpointError};
pub(crate) use probe::{CLIENT_HEADER_VALUE, Probe, ProbeError, ProbeRequest, ReadUntil};
pub(super) use unrecorded::UnrecordedHttp;
pub(crate) use unrecorded::{EndReason, UnrecordedHttpOptions};
