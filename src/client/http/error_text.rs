//! Error texts for HTTP failures, in terms that a user can act on.
//!
//! The texts are constants here, so that the advice given to users does not depend on the wording of a library.

use std::error::Error;
use std::io;

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

/// The text for an error of the HTTP client: its meaning, and the library's own message.
pub(super) fn describe_error(error: &reqwest::Error) -> String {
    let causes: Vec<&(dyn Error + 'static)> =
        std::iter::successors(Error::source(error), |cause| cause_of(*cause)).take(MAX_CAUSES).collect();
    let last = causes.last().map_or_else(|| error.to_string(), ToString::to_string);
    match causes.iter().find_map(|cause| known_text(*cause)) {
        Some(known_text) => format!("{known_text} ({last})"),
        None if error.is_connect() => format!("the connection could not be opened ({last})"),
        None => format!("the response broke off ({last})"),
    }
}

/// How deep causes are followed.
const MAX_CAUSES: usize = 16;

/// The cause of an error: the error within an I/O error, which is not its `source`, or its `source`.
fn cause_of<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => cause.source(),
    }
}

fn known_text(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
        return match tls {
            rustls::Error::InvalidCertificate(_) => Some(UNTRUSTED_CERTIFICATE),
            rustls::Error::InvalidMessage(_) => Some(NOT_TLS),
            _ => None,
        };
    }
    if let Some(http) = cause.downcast_ref::<hyper::Error>() {
        return match http {
            http if http.is_parse_too_large() => Some(HEADERS_TOO_LARGE),
            http if http.is_incomplete_message() => Some(CONNECTION_CLOSED),
            http if http.is_parse() => Some(NOT_HTTP),
            _ => None,
        };
    }
    let kind = cause.downcast_ref::<io::Error>()?.kind();
    match kind {
        io::ErrorKind::ConnectionRefused => Some(NOT_LISTENING),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            Some(CONNECTION_CLOSED)
        }
        _ => None,
    }
    .or_else(|| cause.to_string().starts_with("failed to lookup address").then_some(UNKNOWN_HOST))
}
