//! Which error text describes an error of the HTTP client.

use std::error::Error;
use std::io;

use super::error_text::{
    CONNECTION_CLOSED, HEADERS_TOO_LARGE, NOT_HTTP, NOT_LISTENING, NOT_TLS, UNKNOWN_HOST, UNTRUSTED_CERTIFICATE,
};
use crate::limits::http::MAX_CAUSES;

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

/// The cause of an error: the error within an I/O error, which is not its `source`, or its `source`.
fn cause_of<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => cause.source(),
    }
}

/// Whether the server closed the connection without reading all that the client had sent.
pub(super) fn is_reset(error: &reqwest::Error) -> bool {
    let causes = std::iter::successors(Error::source(error), |cause| cause_of(*cause)).take(MAX_CAUSES);
    let mut kinds = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.any(|kind| matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset))
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
