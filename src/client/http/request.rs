//! Builds HTTP requests: the message, the headers that go with it, and the record of both.
//!
//! Owns what a request looks like, on the wire and in the transcript. Does not decide when a request is made or
//! repeated, and reads only the head of the response.

use std::sync::Arc;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::Value;

use super::connection::HttpConnection;
use super::header::stateless;
use super::rate_limit::MAX_RETRIES;
use crate::transcript::{Entry, Event, HttpEnd, HttpHead, HttpRequest};
use crate::wire::Id;

/// The media types that a client accepts in the response to a message.
pub(super) const ACCEPT_JSON_OR_STREAM: &str = "application/json, text/event-stream";
pub(super) const ACCEPT_STREAM: &str = "text/event-stream";

/// The version in the header of a stateless request that names none.
const STATELESS: &str = "2026-07-28";

/// A request to be made.
pub(super) struct OutgoingRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    /// The entry of the message that it carries.
    pub(super) carries: Option<Arc<Entry>>,
    /// The ids of the JSON-RPC requests that the response should answer.
    pub(super) awaited: Vec<Id>,
    /// How often it was already sent to a server that asks the client to slow down.
    pub(super) attempt: usize,
    /// Whether a stream that breaks off is resumed.
    pub(super) resume: bool,
    /// Whether the caller records the end of a rejection, because it may try something else.
    pub(super) defers_end: bool,
}

impl HttpConnection {
    /// The headers that go with a message.
    pub(super) fn headers(&self, message: Option<&Value>, accept: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let state = self.state();
        let mut own: Vec<(String, String)> = Vec::new();
        if self.stateless {
            own = stateless(message.unwrap_or(&Value::Null), STATELESS, &state.mirrored);
        } else {
            own.extend(state.version.clone().map(|version| ("mcp-protocol-version".to_owned(), version)));
            own.extend(state.session.clone().map(|session| ("mcp-session-id".to_owned(), session)));
        }
        drop(state);
        for (name, value) in own {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(&value)) {
                headers.insert(name, value);
            }
        }
        // A header of the user takes precedence.
        for name in self.endpoint.headers.keys() {
            headers.remove(name);
        }
        headers.extend(self.endpoint.headers.clone());
        headers
    }

    /// A request without a body.
    pub(super) fn request_without_body(&self, method: Method, url: Url, accept: &'static str) -> OutgoingRequest {
        let mut headers = self.headers(None, accept);
        headers.remove(CONTENT_TYPE);
        OutgoingRequest {
            method,
            url,
            headers,
            body: None,
            carries: None,
            awaited: Vec::new(),
            attempt: MAX_RETRIES,
            resume: false,
            defers_end: false,
        }
    }

    /// The request that resumes a stream after an event.
    pub(super) fn resumption(&self, url: Url, last: &str) -> OutgoingRequest {
        let mut order = self.request_without_body(Method::GET, url, ACCEPT_STREAM);
        if let Ok(value) = HeaderValue::from_str(last) {
            order.headers.insert("last-event-id", value);
        }
        order
    }

    /// Records a request and returns its number.
    pub(super) fn record_request(&self, order: &OutgoingRequest) -> usize {
        let number = self.next_number();
        self.state().open.insert(number, HttpEnd { number, ..HttpEnd::default() });
        self.record.add(Event::HttpRequest(HttpRequest {
            number,
            method: order.method.to_string(),
            target: self.target(&order.url),
            headers: self.recorded_headers(&order.headers),
            carries: order.carries.clone(),
            ..HttpRequest::default()
        }));
        number
    }

    /// Takes the number of the next request.
    pub(super) fn next_number(&self) -> usize {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        number
    }

    /// The path and query of a URL, with secrets masked.
    pub(super) fn target(&self, url: &Url) -> String {
        match url.query() {
            Some(query) => self.endpoint.masked(&format!("{}?{query}", url.path())),
            None => self.endpoint.masked(url.path()),
        }
    }

    /// Headers with secrets masked.
    pub(super) fn recorded_headers(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let shown = |value: &HeaderValue| {
            if value.is_sensitive() {
                return "[secret]".to_owned();
            }
            self.endpoint.masked(&String::from_utf8_lossy(value.as_bytes()))
        };
        headers.iter().map(|(name, value)| (name.as_str().to_owned(), shown(value))).collect()
    }

    /// Makes a request under the rate limit; records the head of the response and leaves its body to be read.
    pub(super) async fn send_request(
        &self,
        number: usize,
        order: OutgoingRequest,
        initializes: bool,
    ) -> Result<Response, reqwest::Error> {
        self.wait_for_slot().await;
        let mut request = self.endpoint.client.request(order.method, order.url).headers(order.headers);
        if let Some(body) = order.body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let headers = self.recorded_headers(response.headers());
        if initializes
            && !self.stateless
            && response.status().is_success()
            && let Some(session) = response.headers().get("mcp-session-id")
        {
            self.state().session = Some(String::from_utf8_lossy(session.as_bytes()).into_owned());
        }
        self.record.add(Event::HttpHead(HttpHead { number, status: response.status().as_u16(), headers }));
        Ok(response)
    }
}
