//! What went wrong with an answer, in words that a user can act on.
//!
//! Owns the beginnings of these texts, so that what is advised to a user hangs on no library's wording.

use std::error::Error;
use std::io;

/// Nobody takes a connection at the address.
pub const NOBODY: &str = "nobody listens at the address";
/// The host has no address.
pub const UNKNOWN_HOST: &str = "the host of the address is not known";
/// The certificate is not one that is trusted.
pub const UNTRUSTED: &str = "the TLS certificate of the server is not trusted";
/// What comes is no TLS.
pub const NO_TLS: &str = "the server does not speak TLS";
/// What comes is no HTTP of the version that we speak.
pub const NO_HTTP: &str = "what the server writes is no HTTP/1.1";
/// The headers of an answer have no end in sight.
pub const TOO_LARGE: &str = "the headers of the answer are more than is read";
/// The connection was closed.
pub const CLOSED: &str = "the server closed the connection before its answer was whole";
/// The endpoint of the older transport is elsewhere.
pub const ELSEWHERE: &str = "the endpoint for messages is at another origin, where nothing is sent";

/// An error of the HTTP client: what it means, and what the libraries say of it.
pub(super) fn words(error: &reqwest::Error) -> String {
    let causes: Vec<&(dyn Error + 'static)> =
        std::iter::successors(Error::source(error), |cause| beneath(*cause)).take(DEEPEST).collect();
    let last = causes.last().map_or_else(|| error.to_string(), ToString::to_string);
    match causes.iter().find_map(|cause| meaning(*cause)) {
        Some(meaning) => format!("{meaning} ({last})"),
        None if error.is_connect() => format!("no connection came about ({last})"),
        None => format!("the answer broke off ({last})"),
    }
}

/// How deep causes are followed.
const DEEPEST: usize = 16;

/// What lies beneath an error: what an I/O error carries, which it does not count as its cause, or its cause.
fn beneath<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => cause.source(),
    }
}

fn meaning(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
        return match tls {
            rustls::Error::InvalidCertificate(_) => Some(UNTRUSTED),
            rustls::Error::InvalidMessage(_) => Some(NO_TLS),
            _ => None,
        };
    }
    if let Some(http) = cause.downcast_ref::<hyper::Error>() {
        return match http {
            http if http.is_parse_too_large() => Some(TOO_LARGE),
            http if http.is_incomplete_message() => Some(CLOSED),
            http if http.is_parse() => Some(NO_HTTP),
            _ => None,
        };
    }
    let kind = cause.downcast_ref::<io::Error>()?.kind();
    match kind {
        io::ErrorKind::ConnectionRefused => Some(NOBODY),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Some(CLOSED),
        _ => None,
    }
    .or_else(|| cause.to_string().starts_with("failed to lookup address").then_some(UNKNOWN_HOST))
}
