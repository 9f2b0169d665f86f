//! The parameters of an HTTP connection that records nothing, and why such a connection has ended.

use std::sync::Arc;

use super::HttpEndpoint;
use super::header::Mirrored;
use crate::client::record::EntryObserver;
use crate::client::responder::Responder;

/// The parameters of a connection.
pub(crate) struct UnrecordedHttpOptions {
    /// The server's endpoint.
    pub endpoint: Arc<HttpEndpoint>,
    /// Whether the connection is of the era without a handshake.
    pub stateless: bool,
    /// Answers the server's requests.
    pub responder: Responder,
    /// The tool parameters that are mirrored into headers.
    pub mirrored: Mirrored,
    /// Sees every entry.
    pub observer: Option<EntryObserver>,
}

/// Why a connection has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// No connection is accepted, or a request and its repetition both broke off without a response.
    ConnectionLost(String),
    /// The session is no longer known.
    SessionUnknown,
    /// The server limits the request rate.
    RateLimited,
    /// The server requires a token.
    Unauthorized,
    /// The server writes more than is read.
    OutputLimitExceeded,
}

impl EndReason {
    /// The reason as a sentence.
    #[must_use]
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::ConnectionLost(failure) => failure.clone(),
            Self::SessionUnknown => "the server no longer knows the session (HTTP status 404)".to_owned(),
            Self::RateLimited => {
                "the server limits the request rate (HTTP status 429): use --max-rate, or lift the limit".to_owned()
            }
            Self::Unauthorized => "the server requires a token (HTTP status 401)".to_owned(),
            Self::OutputLimitExceeded => "the server writes more than the client reads".to_owned(),
        }
    }
}
