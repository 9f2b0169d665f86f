//! Explains why an HTTP server could not be opened, and what the user can do about it.

use std::sync::Arc;

use crate::client::error_text;
use crate::text::first_chars;
use crate::transcript::{Entry, Event, HttpEnd, HttpHead};

/// The reason why an HTTP server could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpFailure {
    /// The reason, as the end of "no MCP server answers at the address: ...".
    pub(crate) description: String,
    /// What the user can do about it.
    pub(crate) hint: &'static str,
    /// How informative it is compared with other attempts.
    pub(crate) weight: u8,
    /// Whether the server rejects requests without sufficient credentials.
    pub(crate) protected: bool,
    /// Whether the connection failed or broke off, so that there is no HTTP response.
    pub(crate) broke_off: bool,
}

const DEFAULT_HINT: &str = "is it running, and is the path right? many servers answer at /mcp, older ones at /sse";

/// The reason why nothing could be opened on a connection, according to its entries.
pub(super) fn http_failure(entries: &[Arc<Entry>]) -> Option<HttpFailure> {
    let head_of = |number: usize| {
        entries.iter().find_map(|entry| match &entry.event {
            Event::HttpHead(head) if head.number == number => Some(head),
            _ => None,
        })
    };
    let ends: Vec<&HttpEnd> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::HttpEnd(end) => Some(end.as_ref()),
            _ => None,
        })
        .collect();
    let failures: Vec<&String> = ends.iter().filter_map(|end| end.failure.as_ref()).collect();
    if let (Some(first), Some(last)) = (failures.first(), failures.last()) {
        let is_refused = |failure: &str| failure.starts_with(error_text::NOT_LISTENING);
        let of_failure = |description: String, hint, weight| HttpFailure {
            description,
            hint,
            weight,
            protected: false,
            broke_off: true,
        };
        // The request was repeated after the first failure.
        let has_ended = is_refused(last) && !is_refused(first);
        return Some(if has_ended {
            of_failure(format!("{first}; after that, {last}"), "the server seems to have ended: see what it prints", 3)
        } else {
            of_failure((*last).clone(), hint_for(last), 2)
        });
    }
    let (end, head) = ends.iter().rev().find_map(|end| Some((*end, head_of(end.number)?)))?;
    Some(describe_response(end.bytes, head))
}

/// Whether a status rejects the client rather than its message: it counts whatever the body says.
fn is_denial(status: u16) -> bool {
    matches!(status, 401 | 403)
}

/// The rejection of the client by status 401 or 403, if there is one, whatever its body says.
pub(super) fn http_denial(entries: &[Arc<Entry>]) -> Option<HttpFailure> {
    entries.iter().rev().find_map(|entry| match &entry.event {
        Event::HttpHead(head) if is_denial(head.status) => Some(describe_response(0, head)),
        _ => None,
    })
}

/// Like [`http_failure`], for a connection that timed out: only a rejection explains that.
pub(super) fn http_rejection(entries: &[Arc<Entry>]) -> Option<HttpFailure> {
    let is_rejection = |entry: &Arc<Entry>| matches!(&entry.event, Event::HttpHead(head) if head.status >= 300);
    entries.iter().any(is_rejection).then(|| http_failure(entries)).flatten()
}

/// The hint for a transport error.
fn hint_for(failure: &str) -> &'static str {
    let begins = |description: &str| failure.starts_with(description);
    if begins(error_text::NOT_LISTENING) || begins(error_text::UNKNOWN_HOST) {
        "is it running, and are the host and port right? to have it started for you, add its command: --url URL -- COMMAND"
    } else if begins(error_text::UNTRUSTED_CERTIFICATE) {
        "use a host name that the certificate covers, or add the certificate to the system's trust store; --insecure accepts any certificate"
    } else if begins(error_text::NOT_TLS) {
        "use http:// for a server without TLS"
    } else if begins(error_text::NOT_HTTP) {
        "use https:// for a server with TLS; HTTP/2 without TLS and other protocols are not supported"
    } else if begins(error_text::HEADERS_TOO_LARGE) {
        "is the address right? a response has a small number of headers, and long content belongs in its body"
    } else if begins(error_text::OTHER_ORIGIN) {
        "the endpoint that a stream announces must have the scheme, host and port of the stream"
    } else {
        "see what the server prints; a proxy in front of it may truncate responses"
    }
}

/// Describes an HTTP response that opens nothing by the length of its body, its status and its headers.
fn describe_response(bytes: usize, head: &HttpHead) -> HttpFailure {
    let kind = head.header("content-type").unwrap_or("no content type");
    let status = head.status;
    let plain = format!("HTTP status {status} ({kind}) without a message");
    let header = |name: &str| head.header(name).map(|value| first_chars(value, 200).to_owned());
    let (description, hint) = match status {
        300..=399 => {
            let to = header("location").map_or_else(|| "nowhere".to_owned(), |to| format!("`{to}`"));
            let description = format!("HTTP status {status}, a redirect to {to}; redirects are not followed");
            (description, "pass the address that it redirects to, if that is the intended server")
        }
        401 | 403 => {
            let challenge = header("www-authenticate")
                .map_or_else(String::new, |challenge| format!(", WWW-Authenticate: {challenge}"));
            let description = format!("HTTP status {status}{challenge}");
            (description, "pass a token with --bearer-env VAR, or other credentials with --header 'Name: value'")
        }
        429 | 503 => {
            let wait = header("retry-after").map_or_else(String::new, |wait| format!(", Retry-After: {wait}"));
            let description = format!("HTTP status {status}{wait}: the server is overloaded");
            (description, "try again later, or raise the server's rate limit")
        }
        _ if kind.contains("html") => {
            (plain, "this is a web page: is the path right? many servers answer at /mcp, older ones at /sse")
        }
        500..=599 => (plain, "see what the server, or the proxy in front of it, prints"),
        200..=299 if bytes == 0 => (
            format!("HTTP status {status} without a body"),
            "the response to a request is a JSON body or an event stream",
        ),
        _ => (plain, DEFAULT_HINT),
    };
    HttpFailure { description, hint, weight: 1, protected: is_denial(status), broke_off: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn answered(status: u16, headers: &[(&str, &str)]) -> Vec<Arc<Entry>> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        [
            Event::HttpHead(HttpHead { number: 0, status, headers }),
            Event::HttpEnd(Box::new(HttpEnd { number: 0, bytes: 9, ..HttpEnd::default() })),
        ]
        .into_iter()
        .map(|event| Arc::new(Entry { at: Duration::ZERO, event }))
        .collect()
    }

    #[test]
    fn each_rejection_has_a_hint() {
        for (status, header, description, hint) in [
            (308, ("location", "http://x/"), "`http://x/`", "address that it redirects to"),
            (401, ("www-authenticate", "Bearer"), "Bearer", "--bearer-env"),
            (429, ("retry-after", "60"), "Retry-After: 60", "later"),
            (200, ("content-type", "text/html"), "text/html", "web page"),
            (404, ("content-type", "text/plain"), "404", "path"),
        ] {
            let failure = http_failure(&answered(status, &[header])).expect("something came");
            assert!(failure.description.contains(description) && failure.hint.contains(hint), "{failure:?}");
        }
    }

    #[test]
    fn a_server_that_no_longer_listens_is_described_by_what_it_did_before() {
        let failed = |failures: &[&str]| -> Vec<Arc<Entry>> {
            let ends = failures.iter().enumerate().map(|(number, failure)| {
                let failure = Some((*failure).to_owned());
                Event::HttpEnd(Box::new(HttpEnd { number, failure, ..HttpEnd::default() }))
            });
            ends.map(|event| Arc::new(Entry { at: Duration::ZERO, event })).collect()
        };
        let refused = format!("{} (Connection refused)", error_text::NOT_LISTENING);
        let failure = http_failure(&failed(&["it broke off", &refused])).expect("something failed");
        assert_eq!(failure.description, format!("it broke off; after that, {refused}"));
        assert!(failure.hint.contains("seems to have ended"), "{}", failure.hint);
        let failure = http_failure(&failed(&[&refused, &refused])).expect("something failed");
        assert_eq!(failure.description, refused);
        assert!(failure.hint.contains("--url URL -- COMMAND"), "{}", failure.hint);
    }

    #[test]
    fn an_accepted_request_does_not_explain_a_timeout() {
        assert_eq!(http_rejection(&answered(202, &[])), None);
        assert!(http_rejection(&answered(429, &[])).is_some());
        assert_eq!(http_failure(&[]), None);
    }
}
