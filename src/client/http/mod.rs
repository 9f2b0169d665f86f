//! Connections over HTTP: Streamable HTTP of every revision, and the HTTP+SSE transport of 2024-11-05.
//!
//! Turns messages into requests, and responses and streams into messages, and sends the headers that the protocol
//! requires. Records everything as received: status, headers, bodies that are not messages, and each message as if
//! it were a line. Requests only go to the origin that the user named: redirects are recorded and never followed,
//! and no proxy is used for an address of this machine. Without the feature `http`, `absent` is in the place of all that.
//!
//! Sources: `basic/transports` of 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25,
//! `basic/transports/streamable-http` of 2026-07-28.

#[cfg(not(feature = "http"))]
mod absent;
#[cfg(feature = "http")]
mod background_tasks;
#[cfg(feature = "http")]
mod cancel;
#[cfg(feature = "http")]
mod connection;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP connections use all of it"))]
mod direct_request;
#[cfg(feature = "http")]
mod direct_response;
#[cfg(feature = "http")]
mod endpoint;
mod endpoint_error;
#[cfg(feature = "http")]
mod error_description;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP connections use all of it"))]
pub(crate) mod error_text;
#[cfg(feature = "http")]
mod event_summary;
#[cfg(feature = "http")]
mod exchange_log;
#[cfg(feature = "http")]
mod get_stream;
pub mod header;
mod host_state;
#[cfg(feature = "http")]
mod listening;
#[cfg(feature = "http")]
mod negotiated;
#[cfg(feature = "http")]
mod rate_limit;
#[cfg(feature = "http")]
mod request;
#[cfg(feature = "http")]
mod request_body;
#[cfg(feature = "http")]
mod response;
#[cfg(feature = "http")]
mod session_renewal;
#[cfg(feature = "http")]
mod sse_transport;
#[cfg(feature = "http")]
mod unrecorded;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP connections use all of it"))]
mod unrecorded_options;
#[cfg(feature = "http")]
mod url_relation;

#[cfg(not(feature = "http"))]
pub(crate) use absent::DirectResponse;
#[cfg(not(feature = "http"))]
pub use absent::HttpEndpoint;
#[cfg(not(feature = "http"))]
pub(super) use absent::{HttpConnection, UnrecordedHttp};
#[cfg(feature = "http")]
pub(super) use connection::HttpConnection;
pub use direct_request::FurtherTokens;
pub(crate) use direct_request::{
    BodyTransfer, CLIENT_HEADER_VALUE, DirectRequest, DirectRequestError, FOREIGN_AUTHORIZATION, ReadUntil,
    SECOND_AUTHORIZATION,
};
#[cfg(feature = "http")]
pub(crate) use direct_response::DirectResponse;
#[cfg(feature = "http")]
pub use endpoint::HttpEndpoint;
pub use endpoint_error::HttpEndpointError;
pub(super) use endpoint_error::MIN_SECRET_CHARS;
pub(crate) use host_state::HostState;
#[cfg(feature = "http")]
pub(super) use unrecorded::UnrecordedHttp;
pub(crate) use unrecorded_options::{EndReason, UnrecordedHttpOptions};
