//! Conforming variants of the server that only show over HTTP: in media types, content codings, large bodies, and the ends
//! of sessions and connections.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::injection::has;
use super::response::{HttpResponse, empty, rpc_error, text_error};
use super::session::Session;
use crate::reference::fault::FaultSet;
use crate::reference::fault::HttpFault::{
    ClosesKeptAlive, DeleteRefused, IdentityRequired, LargeBodiesCutOff, LargeBodiesUnread, MediaTypesUpperCase,
    Proxied, SessionExpires,
};
use crate::reference::message::INVALID_REQUEST;

/// How many messages a session that expires serves.
const MESSAGES_PER_SESSION: usize = 150;

/// How many requests a connection serves that is closed under the next one.
const REQUESTS_PER_CONNECTION: usize = 3;

/// The length above which a body is refused unread, in bytes.
const LONG_BODY: u64 = 512 << 10;

/// How long the connection of a refused body stays open, as that of Node.js does.
const UNREAD_TIME: Duration = Duration::from_secs(5);

/// How many sessions are served by a server that no client tells of their end.
const SESSIONS_WITHOUT_DELETE: usize = 250;

/// The names of the sessions in the order in which they were opened, if nobody ends them.
#[derive(Default)]
pub(super) struct SessionOrder(Mutex<VecDeque<String>>);

impl SessionOrder {
    /// Takes note of a session; ends the oldest one if there are too many.
    pub(super) fn forget_oldest(&self, name: &str, sessions: &mut HashMap<String, Session>, faults: &FaultSet) {
        if !has(faults, DeleteRefused) {
            return;
        }
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.push_back(name.to_owned());
        if names.len() > SESSIONS_WITHOUT_DELETE
            && let Some(oldest) = names.pop_front()
        {
            sessions.remove(&oldest);
        }
    }
}

/// Rejects a client that does not ask for uncompressed responses.
pub(super) fn reject_encoding(headers: &HeaderMap, faults: &FaultSet) -> Option<HttpResponse> {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let rejects = has(faults, IdentityRequired) && accepted != Some("identity");
    rejects.then(|| text_error(StatusCode::NOT_ACCEPTABLE, "the client must accept only uncompressed responses"))
}

/// Writes the media type of a response in another spelling that means the same.
pub(super) fn respell_media_type(mut response: HttpResponse, faults: &FaultSet) -> HttpResponse {
    if has(faults, MediaTypesUpperCase) {
        let respelled = match response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes) {
            Some(b"application/json") => "Application/JSON ; Charset=UTF-8",
            Some(b"text/event-stream") => "Text/Event-Stream;Charset=UTF-8",
            _ => return response,
        };
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(respelled));
    }
    response
}

/// Changes the headers of a request as a proxy does, which parses and writes them again.
pub(super) fn pass_to_server(headers: &mut HeaderMap, faults: &FaultSet) {
    const ADDED: [(&str, &str); 4] = [
        ("via", "1.1 proxy.example (Proxy/1.0)"),
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "mcp.example"),
    ];
    if !has(faults, Proxied) {
        return;
    }
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds: Vec<&str> = accepted.flat_map(|value| value.split(',')).map(str::trim).collect();
    kinds.reverse();
    let accepted = if kinds.is_empty() { "*/*".to_owned() } else { kinds.join(" , ") };
    if let Ok(accepted) = HeaderValue::from_str(&accepted) {
        headers.insert(ACCEPT, accepted);
    }
    headers.extend(ADDED.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))));
}

/// Adds the headers of a proxy to a response.
pub(super) fn pass_to_client(mut response: HttpResponse, faults: &FaultSet) -> HttpResponse {
    const ADDED: [(&str, &str); 5] = [
        ("via", "1.1 proxy.example (Proxy/1.0)"),
        ("server", "proxy"),
        ("vary", "Origin, Accept-Encoding"),
        ("x-request-id", "00000000-0000-4000-8000-000000000000"),
        ("alt-svc", "clear"),
    ];
    if has(faults, Proxied) {
        let headers = ADDED.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        response.headers_mut().extend(headers);
    }
    response
}

/// Counts a message in a session; the answer to it if the session has expired, which a server may write in several ways. What
/// the client answers belongs to a call under way, during which no session expires.
pub(super) fn expire_session(messages: &AtomicUsize, message: &Value, faults: &FaultSet) -> Option<HttpResponse> {
    static EXPIRED: AtomicUsize = AtomicUsize::new(0);
    let is_old = messages.fetch_add(1, Ordering::Relaxed) >= MESSAGES_PER_SESSION;
    if !is_old || message.get("method").is_none() || !has(faults, SessionExpires) {
        return None;
    }
    Some(match EXPIRED.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => text_error(StatusCode::NOT_FOUND, "the session has expired"),
        1 => rpc_error(StatusCode::NOT_FOUND, INVALID_REQUEST, "the session has expired"),
        _ => empty(StatusCode::NOT_FOUND),
    })
}

/// Refuses a long body, and neither reads it nor what follows it on the connection, which closes some time later.
pub(super) fn refuse_body(body: Incoming, faults: &FaultSet) -> Result<Incoming, Box<HttpResponse>> {
    if !has(faults, LargeBodiesUnread) || body.size_hint().exact().is_none_or(|length| length <= LONG_BODY) {
        return Ok(body);
    }
    tokio::spawn(async move {
        tokio::time::sleep(UNREAD_TIME).await;
        drop(body);
    });
    Err(text_error(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long").into())
}

/// Reads the beginning of a body; an error, which closes the connection without a response, if it is long.
pub(super) async fn cut_off_body(body: &mut Incoming, faults: &FaultSet) -> io::Result<()> {
    if has(faults, LargeBodiesCutOff) && body.size_hint().exact().is_some_and(|length| length > LONG_BODY) {
        let _beginning = body.frame().await;
        return Err(io::Error::other("the message is too long"));
    }
    Ok(())
}

/// Counts a request on a connection; an error, which closes it without a response, if it has served enough.
pub(super) fn close_connection(requests: &AtomicUsize, faults: &FaultSet) -> io::Result<()> {
    if has(faults, ClosesKeptAlive) && requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS_PER_CONNECTION {
        return Err(io::Error::other("the connection is closed"));
    }
    Ok(())
}
