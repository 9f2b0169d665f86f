//! Error texts for HTTP failures, in terms that a user can act on.
//!
//! The texts are constants here, so that the advice given to users does not depend on the wording of a library.

/// The connection was refused.
pub(crate) const NOT_LISTENING: &str = "no server listens at the URL";
/// The host name cannot be resolved.
pub(crate) const UNKNOWN_HOST: &str = "the host name in the URL cannot be resolved";
/// The certificate is not trusted.
pub(crate) const UNTRUSTED_CERTIFICATE: &str = "the TLS certificate of the server is not trusted";
/// The response is not TLS.
pub(crate) const NOT_TLS: &str = "the server does not speak TLS";
/// The response is not HTTP/1.1.
pub(crate) const NOT_HTTP: &str = "the server does not answer in HTTP/1.1";
/// The response headers are too long.
pub(crate) const HEADERS_TOO_LARGE: &str = "the response headers are longer than the client reads";
/// The connection was closed.
pub(crate) const CONNECTION_CLOSED: &str = "the server closed the connection before the end of its response";
/// The HTTP+SSE endpoint has another origin.
pub(crate) const OTHER_ORIGIN: &str = "the endpoint for messages has another origin, and nothing is sent there";
