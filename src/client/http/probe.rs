//! HTTP requests that a case makes directly: any method, headers and body, with the response read as far as needed.
//!
//! Each is recorded as an exchange of its own and never as messages of the connection, so that only the case that
//! makes it judges it. Requests only go to the server's origin, and every response is limited in time and size.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::connection::HttpConnection;
use super::error_text::describe_error;
use super::event_summary;
use super::request::{ACCEPT_JSON_OR_STREAM, ACCEPT_STREAM};
use super::response::media_type;
use super::url_relation::url_relation;
use crate::transcript::{Event, HttpEnd, HttpHead, HttpRequest, SseEventSummary, StepId, exchange_to_json, messages};
use crate::wire::{Frame, Id, MessageKind, SseDecoder, SseEvent, same_id};

/// A placeholder in a header value for the value that the client would send.
pub(crate) const CLIENT_HEADER_VALUE: &str = "${header}";

/// The maximum size of a response that is read, in bytes.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// How far the response is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadUntil {
    /// To the end of its head.
    Head,
    /// To the first event of a stream.
    Event,
    /// To the JSON-RPC response to the message that was sent.
    Answer,
    /// To its end.
    End,
}

/// A request that a case makes directly.
#[derive(Debug, Clone)]
pub(crate) struct ProbeRequest {
    /// The method.
    pub method: String,
    /// The path and query, or a URL of the same origin; by default the URL for messages.
    pub target: Option<String>,
    /// Headers that replace the client's own: each removed (no values) or set to these values.
    pub headers: Vec<(String, Vec<String>)>,
    /// The message that it carries, from which the usual headers are derived; a string is sent as it is.
    pub body: Option<Value>,
    /// Whether header names are written in title case.
    pub title_case_headers: bool,
    /// Whether Mcp-Name and Mcp-Param-* are Base64-encoded even if that is not needed.
    pub base64_headers: bool,
    /// How far the response is read.
    pub until: ReadUntil,
    /// How long the response is read.
    pub limit: Duration,
    /// The step that makes the request.
    pub step_id: StepId,
}

/// Why the request cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProbeError {
    /// The connection is not over HTTP.
    #[error("the server is not connected over HTTP")]
    NoHttp,
    /// The method is not a token.
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// The header cannot be sent.
    #[error("the header `{0}` cannot be sent with this value")]
    Header(String),
    /// The URL has another origin.
    #[error("`{0}` has another origin than the server, and nothing is sent there")]
    Elsewhere(String),
}

/// What has been received of a response.
#[derive(Debug, Clone, Default)]
struct Progress {
    head: Option<HttpHead>,
    end: HttpEnd,
    done: bool,
}

/// A request that was made, and its response as it arrives.
#[derive(Debug)]
pub(crate) struct Probe {
    request: HttpRequest,
    progress: watch::Receiver<Progress>,
    task: AbortHandle,
    http: Finisher,
}

/// Records the end of a response that is closed early.
struct Finisher(Arc<HttpConnection>);

impl std::fmt::Debug for Finisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Finisher")
    }
}

impl Probe {
    /// Waits until the response was read as far as requested.
    pub(crate) async fn wait_for_end(&mut self) {
        let _gone = self.progress.wait_for(|progress| progress.done).await;
    }

    /// Waits for the head of the response, and then for the first event of a stream.
    pub(crate) async fn wait_for_head(&mut self, head: Duration, event: Duration) {
        let began = self.progress.wait_for(|progress| progress.done || progress.head.is_some());
        let _slow = tokio::time::timeout(head, began).await.is_ok();
        let some = self.progress.wait_for(|progress| progress.done || !progress.end.events.is_empty());
        let _quiet = tokio::time::timeout(event, some).await.is_ok();
    }

    /// What is known of the exchange.
    #[must_use]
    pub(crate) fn value(&self) -> Value {
        let progress = self.progress.borrow();
        exchange_to_json(&self.request, progress.head.as_ref(), Some(&progress.end))
    }

    /// Closes the response, if it is still being read.
    pub(crate) fn close(self) {
        let end = {
            let progress = self.progress.borrow();
            (!progress.done).then(|| progress.end.clone())
        };
        self.task.abort();
        if let Some(end) = end {
            self.http.0.record.add(Event::HttpEnd(Box::new(end)));
        }
    }
}

impl HttpConnection {
    /// Makes a request for a case.
    pub(in crate::client) fn probe(self: &Arc<Self>, order: &ProbeRequest) -> Result<Probe, ProbeError> {
        let method =
            Method::from_bytes(order.method.as_bytes()).map_err(|_| ProbeError::Method(order.method.clone()))?;
        let url = match &order.target {
            Some(target) => {
                let url = self.endpoint.url.join(target).ok().filter(|url| self.endpoint.is_same_origin(url));
                url.ok_or_else(|| ProbeError::Elsewhere(target.clone()))?
            }
            None if method == Method::POST => self.message_url(),
            None => self.endpoint.url.clone(),
        };
        let message = order.body.as_ref().filter(|body| !body.is_string());
        let accept = if method == Method::GET { ACCEPT_STREAM } else { ACCEPT_JSON_OR_STREAM };
        let mut headers = self.headers(message, accept);
        if order.body.is_none() {
            headers.remove(CONTENT_TYPE);
        }
        if order.base64_headers {
            for (_, value) in headers.iter_mut().filter(|(name, _)| is_mirror(name)) {
                let text = value.to_str().unwrap_or_default();
                if let Ok(encoded) = HeaderValue::from_str(&base64_sentinel(text)) {
                    *value = encoded;
                }
            }
        }
        for (name, values) in &order.headers {
            replace(&mut headers, name, values)?;
        }
        let number = self.next_number();
        let request = HttpRequest {
            number,
            method: order.method.clone(),
            target: self.target(&url),
            headers: self.recorded_headers(&headers),
            carries: None,
            step_id: Some(order.step_id),
            body: order.body.clone(),
        };
        self.record.add(Event::HttpRequest(request.clone()));
        let body = order.body.as_ref().map(|body| match body {
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        });
        let client = if order.title_case_headers { &self.endpoint.title_case_client } else { &self.endpoint.client };
        let mut prepared = client.request(method, url).headers(headers);
        if let Some(body) = body {
            prepared = prepared.body(body);
        }
        let first = Progress { end: HttpEnd { number, ..HttpEnd::default() }, ..Progress::default() };
        let (sender, progress) = watch::channel(first);
        let this = Arc::clone(self);
        let awaited = message.and_then(|message| message.get("id")).cloned();
        let (until, limit, recorded_request) = (order.until, order.limit, request.clone());
        let task = self.spawn_task(async move {
            this.wait_for_slot().await;
            let reader = ResponseReader { http: &this, number, sender: &sender, until, awaited };
            let mut attempt = 0;
            let timed = loop {
                // The request is held in memory, so it can be sent again.
                let Some(copy) = prepared.try_clone() else { break Ok(None) };
                match tokio::time::timeout(limit, reader.read(copy, attempt)).await {
                    Ok(Some(pause)) => {
                        this.wait_paused(pause).await;
                        attempt += 1;
                    }
                    ended => break ended,
                }
            };
            if timed.is_err() && sender.borrow().head.is_none() {
                let waited = format!("no response within {limit:.1?}");
                sender.send_modify(|progress| progress.end.failure = Some(waited));
            }
            sender.send_modify(|progress| {
                let value = exchange_to_json(&recorded_request, progress.head.as_ref(), Some(&progress.end));
                progress.end.standing = url_relation(&this.endpoint.url, &value);
            });
            let end = sender.borrow().end.clone();
            this.record.add(Event::HttpEnd(Box::new(end)));
            sender.send_modify(|progress| progress.done = true);
        });
        let http = Finisher(Arc::clone(self));
        Ok(Probe { request, progress, task: task.abort_handle(), http })
    }
}

/// Whether a header mirrors a value that may be encoded.
fn is_mirror(name: &HeaderName) -> bool {
    name == "mcp-name" || name.as_str().starts_with("mcp-param-")
}

/// A value in the Base64 sentinel; one that already is stays as it is.
fn base64_sentinel(text: &str) -> String {
    let is_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_encoded { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// Replaces a header, or every header with the prefix before a `*`. [`CLIENT_HEADER_VALUE`] is replaced by the value that the
/// client would have sent.
fn replace(headers: &mut HeaderMap, name: &str, values: &[String]) -> Result<(), ProbeError> {
    let header_error = || ProbeError::Header(name.to_owned());
    let named = match name.strip_suffix('*') {
        Some(prefix) => {
            let prefix = prefix.to_ascii_lowercase();
            headers.keys().filter(|name| name.as_str().starts_with(&prefix)).cloned().collect()
        }
        None => vec![HeaderName::try_from(name).map_err(|_| header_error())?],
    };
    for header in named {
        let own = headers.remove(&header);
        let own = own.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
        for value in values {
            let value = value.replace(CLIENT_HEADER_VALUE, own);
            // Servers must reject bytes beyond ASCII themselves.
            headers.append(&header, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| header_error())?);
        }
    }
    Ok(())
}

/// Reads one response.
struct ResponseReader<'a> {
    http: &'a HttpConnection,
    number: usize,
    sender: &'a watch::Sender<Progress>,
    until: ReadUntil,
    /// The id of the request that was sent.
    awaited: Option<Id>,
}

impl ResponseReader<'_> {
    /// Makes the request and reads its response; returns how long to wait before it is repeated if the server limits
    /// the request rate.
    async fn read(&self, request: reqwest::RequestBuilder, attempt: usize) -> Option<Duration> {
        match request.send().await {
            Ok(response) => {
                let pause = self.http.retry_delay(&response, attempt).filter(|_| response.status() == 429);
                if pause.is_none() {
                    self.read_answer(response).await;
                }
                pause
            }
            Err(error) => {
                self.record_error(&error);
                None
            }
        }
    }

    fn record_error(&self, error: &reqwest::Error) {
        let text = self.http.endpoint.masked(&describe_error(error));
        self.sender.send_modify(|progress| progress.end.failure = Some(text));
    }

    async fn read_answer(&self, mut response: Response) {
        let headers = self.http.recorded_headers(response.headers());
        let head = HttpHead { number: self.number, status: response.status().as_u16(), headers };
        if head.status == 429 {
            self.http.record.count_rate_limited();
        }
        self.http.record.add(Event::HttpHead(head.clone()));
        self.sender.send_modify(|progress| progress.head = Some(head));
        if self.until == ReadUntil::Head {
            return;
        }
        let streams = media_type(&response) == "text/event-stream";
        let mut decoder = SseDecoder::default();
        let mut body = Vec::new();
        let began = Instant::now();
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    body.extend_from_slice(&bytes[..bytes.len().min(MAX_RESPONSE_BYTES.saturating_sub(body.len()))]);
                    let mut events = Vec::new();
                    if streams {
                        decoder.push(&bytes, |event| events.push(event));
                    }
                    let enough = self.take(&bytes, events, &decoder);
                    if enough || body.len() >= MAX_RESPONSE_BYTES {
                        break;
                    }
                }
                Ok(None) => {
                    self.sender.send_modify(|progress| progress.end.complete = true);
                    break;
                }
                Err(error) => {
                    self.record_error(&error);
                    break;
                }
            }
            if began.elapsed() > Duration::from_secs(60) {
                break;
            }
        }
        let body = self.http.endpoint.masked_bytes(body);
        let text = event_summary::beginning(&body);
        let frame = (!streams && !body.is_empty()).then(|| Frame::parse(&body));
        let message = frame.and_then(|frame| frame.json().cloned());
        self.sender.send_modify(|progress| (progress.end.text, progress.end.message) = (text, message));
    }

    /// Handles a piece of the body; returns whether enough was read.
    fn take(&self, bytes: &[u8], events: Vec<SseEvent>, decoder: &SseDecoder) -> bool {
        let mut enough = false;
        let summaries: Vec<SseEventSummary> = events.into_iter().map(|event| self.summarize(event)).collect();
        for summary in &summaries {
            enough |= match self.until {
                ReadUntil::Head | ReadUntil::Event => true,
                ReadUntil::Answer => summary.message.as_ref().is_some_and(|message| self.is_awaited_response(message)),
                ReadUntil::End => false,
            };
        }
        self.sender.send_modify(|progress| {
            let end = &mut progress.end;
            end.bytes += bytes.len();
            end.comments = decoder.comments;
            for summary in summaries {
                event_summary::push(&mut end.events, summary);
            }
        });
        enough
    }

    fn is_awaited_response(&self, message: &Value) -> bool {
        let responds = |message: &Value| match MessageKind::of(message) {
            MessageKind::Response { id } => match (&self.awaited, id) {
                (Some(own), Some(id)) => same_id(own, id) || id.is_null(),
                (Some(_), None) => true,
                (None, _) => false,
            },
            _ => false,
        };
        messages(message).any(responds)
    }

    fn summarize(&self, event: SseEvent) -> SseEventSummary {
        let mut summary = event_summary::summarize(&self.http.endpoint, &event);
        if let Some(data) = event.data.filter(|data| !data.is_empty()) {
            let data = self.http.endpoint.masked_bytes(data);
            match Frame::parse(&data).json() {
                Some(message) => (summary.data, summary.message) = ("message", Some(message.clone())),
                None => summary.text = Some(event_summary::excerpt(&String::from_utf8_lossy(&data))),
            }
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_replaced_by_name_and_by_prefix() {
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-to", HeaderValue::from_static("2"));
        headers.insert("mcp-name", HeaderValue::from_static("count"));
        replace(&mut headers, "Mcp-Param-*", &["${header}.0".to_owned()]).expect("it can be sent");
        replace(&mut headers, "mcp-name", &[]).expect("it can be left out");
        replace(&mut headers, "origin", &["a".to_owned(), "b".to_owned()]).expect("it can be repeated");
        assert_eq!(headers["mcp-param-to"], "2.0");
        assert!(!headers.contains_key("mcp-name"));
        assert_eq!(headers.get_all("origin").iter().count(), 2);
        assert!(replace(&mut headers, "bad name", &["x".to_owned()]).is_err());
    }

    #[test]
    fn an_encoded_value_stays_as_it_is() {
        assert_eq!(base64_sentinel("count"), "=?base64?Y291bnQ=?=");
        assert_eq!(base64_sentinel("=?base64?Y291bnQ=?="), "=?base64?Y291bnQ=?=");
    }
}
