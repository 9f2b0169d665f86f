//! The HTTP exchanges of a connection as its record keeps them: numbered requests, heads, and ends of responses.
//!
//! Owns the numbers and the state of the responses that are being read, and masks secrets in targets and headers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use serde_json::Value;

use super::endpoint::HttpEndpoint;
use crate::client::record::Record;
use crate::transcript::{Entry, Event, HttpEnd, HttpHead, HttpRequest};
use crate::wire::{Frame, Id};

/// Records the HTTP exchanges of one connection.
pub(super) struct ExchangeLog {
    endpoint: Arc<HttpEndpoint>,
    record: Arc<Record>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the next request.
    next: usize,
    /// The responses that are being read.
    open: BTreeMap<usize, HttpEnd>,
    /// The headers of the last request.
    request_headers: Arc<[(String, String)]>,
    /// The headers of the last response.
    response_headers: Arc<[(String, String)]>,
}

impl ExchangeLog {
    pub(super) fn new(endpoint: Arc<HttpEndpoint>, record: Arc<Record>) -> Self {
        Self { endpoint, record, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the number of the next request.
    pub(super) fn next_number(&self) -> usize {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        number
    }

    /// Records a request, whose response counts as being read from now on; returns its number.
    pub(super) fn begin(&self, method: &str, url: &Url, headers: &HeaderMap, carries: Option<Arc<Entry>>) -> usize {
        self.begin_request(url, headers, HttpRequest { method: method.to_owned(), carries, ..HttpRequest::default() })
    }

    /// The same for a request whose body is no message of the connection.
    pub(super) fn begin_with_body(&self, method: &str, url: &Url, headers: &HeaderMap, body: Value) -> usize {
        let request = HttpRequest { method: method.to_owned(), body: Some(body.into()), ..HttpRequest::default() };
        self.begin_request(url, headers, request)
    }

    fn begin_request(&self, url: &Url, headers: &HeaderMap, request: HttpRequest) -> usize {
        let number = self.next_number();
        self.state().open.insert(number, HttpEnd { number, ..HttpEnd::default() });
        let (target, headers) = (self.target(url), self.request_headers(headers));
        self.record.add(Event::HttpRequest(HttpRequest { number, target, headers, ..request }));
        number
    }

    /// Records the head of a response.
    pub(super) fn head(&self, number: usize, response: &Response) -> HttpHead {
        let headers = share(&mut self.state().response_headers, self.masked_headers(response.headers()));
        let head = HttpHead { number, status: response.status().as_u16(), headers };
        self.record.add(Event::HttpHead(head.clone()));
        head
    }

    /// Saves the state of a stream that is still open, in case it never ends. Only new events are added: on a stream
    /// that carries every response, copying all of them would take longer each time.
    pub(super) fn save_open_stream(&self, end: &mut HttpEnd) {
        let all = std::mem::take(&mut end.events);
        let mut state = self.state();
        let mut events = state.open.remove(&end.number).map(|saved| saved.events).unwrap_or_default();
        events.extend(all.iter().skip(events.len()).cloned());
        state.open.insert(end.number, HttpEnd { events, ..end.clone() });
        end.events = all;
    }

    /// Whether the response to a request is still being read and has had no event.
    pub(super) fn is_silent(&self, number: usize) -> bool {
        self.state().open.get(&number).is_some_and(|end| end.events.is_empty())
    }

    /// Records the end of a response.
    pub(super) fn finish(&self, mut end: HttpEnd, unanswered: Option<Id>) {
        self.state().open.remove(&end.number);
        end.unanswered = unanswered;
        self.record.add(Event::HttpEnd(Box::new(end)));
    }

    /// Records the message that is the body of a response, and the end of this; `false` once the server has written more than
    /// is kept.
    pub(super) fn finish_with_body(&self, body: Frame, mut end: HttpEnd, unanswered: Option<Id>) -> bool {
        self.state().open.remove(&end.number);
        end.unanswered = unanswered;
        self.record.receive_body(body, end)
    }

    /// Records the end of a response that is given up while it is being read.
    pub(super) fn give_up(&self, number: usize) {
        let end = self.state().open.remove(&number);
        if let Some(end) = end {
            self.record.add(Event::HttpEnd(Box::new(end)));
        }
    }

    /// Records the ends of all responses that are still being read.
    pub(super) fn finish_all(&self) {
        let open = std::mem::take(&mut self.state().open);
        for end in open.into_values() {
            self.record.add(Event::HttpEnd(Box::new(end)));
        }
    }

    /// The path and query of a URL, with secrets masked.
    pub(super) fn target(&self, url: &Url) -> String {
        match url.query() {
            Some(query) => self.endpoint.masked(&format!("{}?{query}", url.path())),
            None => self.endpoint.masked(url.path()),
        }
    }

    /// The headers of a request with secrets masked; those of the request before it if they are the same, as they take as
    /// much memory as its message.
    pub(super) fn request_headers(&self, headers: &HeaderMap) -> Arc<[(String, String)]> {
        share(&mut self.state().request_headers, self.masked_headers(headers))
    }

    /// Headers with secrets masked.
    fn masked_headers(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let shown = |value: &HeaderValue| {
            if value.is_sensitive() {
                return "[secret]".to_owned();
            }
            self.endpoint.masked(&String::from_utf8_lossy(value.as_bytes()))
        };
        headers.iter().map(|(name, value)| (name.as_str().to_owned(), shown(value))).collect()
    }
}

/// Headers in the memory of the last ones, if they are the same.
fn share(last: &mut Arc<[(String, String)]>, own: Vec<(String, String)>) -> Arc<[(String, String)]> {
    if **last != *own {
        *last = own.into();
    }
    Arc::clone(last)
}
