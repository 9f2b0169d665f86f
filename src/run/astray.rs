//! What came instead of an opening where a server is reached over HTTP, and what a user can do about it.

use std::sync::Arc;

use crate::client::trouble;
use crate::transcript::{Entry, Event, HttpEnd, HttpHead};

/// What came instead of an opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Astray {
    /// What it was, as the end of "no MCP server answers at the address: ...".
    pub(super) words: String,
    /// What to do about it.
    pub(super) hint: &'static str,
    /// How much it tells beside what other attempts met.
    pub(super) weight: u8,
}

const USUAL: &str = "is it running, and is the path right? many servers answer at /mcp, older ones at /sse";

/// What came of a connection on which nothing opened, as far as its record tells.
pub(super) fn astray(entries: &[Arc<Entry>]) -> Option<Astray> {
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
    if let Some(trouble) = ends.iter().rev().find_map(|end| end.trouble.clone()) {
        return Some(Astray { hint: remedy(&trouble), words: trouble, weight: 2 });
    }
    let (end, head) = ends.iter().rev().find_map(|end| Some((*end, head_of(end.number)?)))?;
    Some(said(end, head))
}

/// As [`astray`], where nothing came in time: only a refusal tells why.
pub(super) fn refused(entries: &[Arc<Entry>]) -> Option<Astray> {
    let refused = |entry: &Arc<Entry>| matches!(&entry.event, Event::HttpHead(head) if head.status >= 300);
    entries.iter().any(refused).then(|| astray(entries)).flatten()
}

/// What a trouble calls for.
fn remedy(trouble: &str) -> &'static str {
    let begins = |words: &str| trouble.starts_with(words);
    if begins(trouble::NOBODY) || begins(trouble::UNKNOWN_HOST) {
        "is it running, and are host and port right? to have it started, give its command as well: --url URL -- COMMAND"
    } else if begins(trouble::UNTRUSTED) {
        "name a host that the certificate is for, or have it trusted by the system; --insecure takes any certificate"
    } else if begins(trouble::NO_TLS) {
        "a server without TLS is reached at http://, not at https://"
    } else if begins(trouble::NO_HTTP) {
        "a server behind TLS is reached at https://; of HTTP/2 without TLS and of other protocols nothing is spoken here"
    } else if begins(trouble::TOO_LARGE) {
        "is the address right? an answer has a handful of headers, and what is long belongs into its body"
    } else if begins(trouble::ELSEWHERE) {
        "the endpoint that a stream names belongs to the host, the port and the scheme of the stream"
    } else {
        "see what the server prints; a proxy in front of it may cut answers off"
    }
}

/// What an answer without a message says by its status and its headers.
fn said(end: &HttpEnd, head: &HttpHead) -> Astray {
    let kind = head.header("content-type").unwrap_or("no content type");
    let status = head.status;
    let plain = format!("HTTP status {status} ({kind}) and no message");
    let header = |name: &str| head.header(name).map(|value| value.chars().take(200).collect::<String>());
    let (words, hint) = match status {
        300..=399 => {
            let to = header("location").map_or_else(|| "nowhere".to_owned(), |to| format!("`{to}`"));
            let words = format!("HTTP status {status}, a redirect to {to}, and redirects are not followed");
            (words, "give the address that it leads to, if that is the server you mean")
        }
        401 | 403 => {
            let challenge = header("www-authenticate")
                .map_or_else(String::new, |challenge| format!(", WWW-Authenticate: {challenge}"));
            let words = format!("HTTP status {status}{challenge}: it wants to know who asks");
            (words, "give it a token with --bearer-env VAR, or what else it asks for with --header 'Name: value'")
        }
        429 | 503 => {
            let wait = header("retry-after").map_or_else(String::new, |wait| format!(", Retry-After: {wait}"));
            let words = format!("HTTP status {status}{wait}: it has too much to do");
            (words, "try again later, or lift the limit on how often it may be asked")
        }
        _ if kind.contains("html") => {
            (plain, "this is a web page: is the path right? many servers answer at /mcp, older ones at /sse")
        }
        500..=599 => (plain, "see what the server, or the proxy in front of it, prints"),
        200..=299 if end.bytes == 0 => {
            (format!("HTTP status {status} and no body"), "a request is answered by a JSON body or a stream of events")
        }
        _ => (plain, USUAL),
    };
    Astray { words, hint, weight: 1 }
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
    fn each_refusal_says_what_to_do() {
        for (status, header, words, hint) in [
            (308, ("location", "http://x/"), "`http://x/`", "address that it leads to"),
            (401, ("www-authenticate", "Bearer"), "Bearer", "--bearer-env"),
            (429, ("retry-after", "60"), "Retry-After: 60", "later"),
            (200, ("content-type", "text/html"), "text/html", "web page"),
            (404, ("content-type", "text/plain"), "404", "path"),
        ] {
            let told = astray(&answered(status, &[header])).expect("something came");
            assert!(told.words.contains(words) && told.hint.contains(hint), "{told:?}");
        }
    }

    #[test]
    fn an_answer_that_was_taken_is_no_reason_for_silence() {
        assert_eq!(refused(&answered(202, &[])), None);
        assert!(refused(&answered(429, &[])).is_some());
        assert_eq!(astray(&[]), None);
    }
}
