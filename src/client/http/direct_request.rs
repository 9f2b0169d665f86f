//! What a case asks for when it makes an HTTP request directly, and why such a request cannot be made.

use std::time::Duration;

use serde_json::Value;

use crate::transcript::StepId;

/// A placeholder in a header value for the value that the client would send.
pub(crate) const CLIENT_HEADER_VALUE: &str = "${header}";

/// A placeholder in a header value for the value of `Authorization` with which another user authenticates.
pub(crate) const SECOND_AUTHORIZATION: &str = "${second-authorization}";

/// A placeholder in a header value for the value of `Authorization` with a token that was issued for another server.
pub(crate) const FOREIGN_AUTHORIZATION: &str = "${foreign-authorization}";

/// Bearer tokens other than that of the run, which only cases about them send.
#[derive(Clone, Default)]
pub struct FurtherTokens {
    /// A token of another user of the server.
    pub second_user: Option<String>,
    /// A token that was issued for another server.
    pub foreign: Option<String>,
}

/// How far the response is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadUntil {
    /// To the end of its head.
    Head,
    /// To the first event of a stream.
    Event,
    /// To the JSON-RPC response to the message that was sent.
    Answer,
    /// To its end.
    End,
    /// To the JSON-RPC response, and until the server has closed most connections that clients have closed.
    Closed,
}

/// How the body of a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyTransfer {
    /// At once, with its length.
    Whole,
    /// In chunks, without its length.
    Chunked,
    /// In two parts with a pause between them, with its length.
    Paused,
}

/// A request that a case makes directly.
#[derive(Debug, Clone)]
pub(crate) struct DirectRequest {
    /// The method.
    pub method: String,
    /// The path and query, or a URL of the same origin; by default the URL for messages.
    pub target: Option<String>,
    /// Headers that replace the client's own: each removed (no values) or set to these values.
    pub headers: Vec<(String, Vec<String>)>,
    /// The message that it carries, from which the usual headers are derived; a string is sent as it is.
    pub body: Option<Value>,
    /// Whether header names are written in title case.
    pub title_case_headers: bool,
    /// Whether Mcp-Name and Mcp-Param-* are Base64-encoded even if that is not needed.
    pub base64_headers: bool,
    /// Whether it is one of many, so that only the small members of messages in its response are kept.
    pub is_repeated: bool,
    /// How the body is sent.
    pub transfer: BodyTransfer,
    /// How far the response is read.
    pub until: ReadUntil,
    /// How long the response is read.
    pub limit: Duration,
    /// The step that makes the request; none for one that only tidies up.
    pub step_id: Option<StepId>,
}

/// Why the request cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DirectRequestError {
    /// The connection is not over HTTP.
    #[error("the server is not connected over HTTP")]
    NoHttp,
    /// The method is not a token.
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// The header cannot be sent.
    #[error("the header `{0}` cannot be sent with this value")]
    Header(String),
    /// The URL has another origin.
    #[error("`{0}` has another origin than the server, and nothing is sent there")]
    Elsewhere(String),
}
