//! Builds HTTP requests and makes them: the message, the headers that go with it, and the record of both.
//!
//! Owns what a request looks like, on the wire and in the transcript. Does not decide when a request is made or
//! repeated, and reads only the head of the response.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::Value;

use super::endpoint::HttpEndpoint;
use super::error_description::is_reset;
use super::exchange_log::ExchangeLog;
use super::negotiated::Negotiated;
use super::rate_limit::wait_for_slot;
use super::request_body::RequestBody;
use crate::client::record::Record;
use crate::limits::http::{LARGE_BODY, MAX_RETRIES};
use crate::transcript::Entry;
use crate::wire::Id;

/// The media types that a client accepts in the response to a message.
pub(super) const ACCEPT_JSON_OR_STREAM: &str = "application/json, text/event-stream";
pub(super) const ACCEPT_STREAM: &str = "text/event-stream";

/// Whether a request is made again if the session has ended, or the connection is closed under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    Never,
    /// Once, if it comes to that.
    Possible,
    /// It is made again, on a connection of its own.
    UnderWay,
}

/// A request to be made.
pub(super) struct OutgoingRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<RequestBody>,
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
    pub(super) repetition: Repetition,
}

/// Why a request has no response.
pub(super) struct RequestFailure {
    pub(super) error: reqwest::Error,
    /// Whether the server closed the connection before it had read a large body.
    pub(super) is_unread: bool,
}

/// Makes the HTTP requests of one connection.
pub(super) struct HttpClient {
    pub(super) endpoint: Arc<HttpEndpoint>,
    pub(super) record: Arc<Record>,
    pub(super) negotiated: Negotiated,
    pub(super) log: ExchangeLog,
}

impl HttpClient {
    /// A client for an endpoint; `is_stateless` selects the era without a handshake.
    pub(super) fn new(endpoint: Arc<HttpEndpoint>, record: Arc<Record>, is_stateless: bool) -> Self {
        let log = ExchangeLog::new(Arc::clone(&endpoint), Arc::clone(&record));
        Self { endpoint, record, negotiated: Negotiated::new(is_stateless), log }
    }

    /// The headers that go with a message.
    pub(super) fn headers(&self, message: Option<&Value>, accept: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        // What is judged are the bytes that the server sends, so it has to leave them uncompressed.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.negotiated.headers(message) {
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

    /// A request without a body to the server's URL.
    pub(super) fn request_without_body(&self, method: Method, accept: &'static str) -> OutgoingRequest {
        let mut headers = self.headers(None, accept);
        headers.remove(CONTENT_TYPE);
        OutgoingRequest {
            method,
            url: self.endpoint.url.clone(),
            headers,
            body: None,
            carries: None,
            awaited: Vec::new(),
            attempt: MAX_RETRIES,
            resume: false,
            defers_end: false,
            repetition: Repetition::Never,
        }
    }

    /// The request that resumes a stream after an event.
    pub(super) fn resumption(&self, url: Url, last: &str) -> OutgoingRequest {
        let request = self.request_without_body(Method::GET, ACCEPT_STREAM);
        let mut request = OutgoingRequest { url, repetition: Repetition::Possible, ..request };
        if let Ok(value) = HeaderValue::from_str(last) {
            request.headers.insert("last-event-id", value);
        }
        request
    }

    /// Makes a request under the rate limit; records the head of the response and leaves its body to be read.
    pub(super) async fn send(
        &self,
        number: usize,
        outgoing: OutgoingRequest,
        initializes: bool,
    ) -> Result<Response, RequestFailure> {
        wait_for_slot(&self.endpoint, &self.record).await;
        let http = if outgoing.repetition == Repetition::UnderWay {
            &self.endpoint.fresh_client
        } else {
            self.endpoint.client_for_body(outgoing.body.as_ref().map_or(0, RequestBody::len))
        };
        let mut request = http.request(outgoing.method, outgoing.url).headers(outgoing.headers);
        let mut is_taken = None;
        request = match outgoing.body {
            Some(body) if body.len() > LARGE_BODY => {
                let (body, taken) = body.in_parts();
                is_taken = Some(taken);
                request.body(body)
            }
            Some(body) => request.body(body.whole()),
            None => request,
        };
        let response = request.send().await.map_err(|error| {
            let is_broken = !error.is_connect() && !error.is_timeout();
            let is_unread = is_taken.is_some_and(|taken| !taken.load(Ordering::Relaxed) || is_reset(&error));
            RequestFailure { is_unread: is_broken && is_unread, error }
        })?;
        if initializes && response.status().is_success() {
            self.negotiated.store_session(response.headers());
        }
        self.log.head(number, &response);
        Ok(response)
    }
}
