//! HTTP requests that a case makes directly: any method, headers and body, with the response read as far as needed.
//!
//! Each is recorded as an exchange of its own and never as messages of the connection, so that only the case that
//! makes it judges it. Requests only go to the server's origin, and every response is limited in time and size.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request, Response, Url};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::background_tasks::BackgroundTasks;
use super::direct_request::{BodyTransfer, CLIENT_HEADER_VALUE, DirectRequest, DirectRequestError, ReadUntil};
use super::endpoint::HttpEndpoint;
use super::error_description::describe_error;
use super::event_summary;
use super::negotiated::SESSION_HEADER;
use super::rate_limit::{is_rate_limit, retry_delay, wait_for_server, wait_for_slot};
use super::request::{ACCEPT_JSON_OR_STREAM, ACCEPT_STREAM, HttpClient};
use super::request_body::body_of;
use super::response::media_type;
use super::session_renewal::SessionRenewals;
use super::url_relation::url_relation;
use crate::limits::http::MAX_READ_TIME;
use crate::transcript::{
    BodyText, Event, HttpEnd, HttpHead, HttpRequest, SseEventSummary, exchange_to_json, summarize,
};
use crate::wire::{
    Frame, Id, JsonText, MAX_MESSAGE_BYTES, MessageKind, SseDecoder, SseEvent, id_of, is_lost_id, messages,
    reports_rate_limit, same_id,
};

/// The maximum size of a response that is read, in bytes: the longest message and one more.
const MAX_RESPONSE_BYTES: usize = MAX_MESSAGE_BYTES + 1;

/// Of longer messages, in bytes, only the beginning of long strings is kept.
const MAX_WHOLE: usize = 1 << 20;

/// What has been received of a response.
#[derive(Debug, Clone, Default)]
struct Progress {
    head: Option<HttpHead>,
    end: HttpEnd,
    done: bool,
}

/// A request that was made, and its response as it arrives.
pub(crate) struct DirectResponse {
    request: HttpRequest,
    progress: watch::Receiver<Progress>,
    task: AbortHandle,
    /// Records the end of a response that is closed early.
    client: Arc<HttpClient>,
}

impl std::fmt::Debug for DirectResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectResponse")
            .field("request", &self.request)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl DirectResponse {
    /// Makes a request for a case, in one of the connection's tasks; a message goes to `message_url` by default.
    pub(super) fn start(
        client: &Arc<HttpClient>,
        renewals: &Arc<SessionRenewals>,
        tasks: &BackgroundTasks,
        message_url: Url,
        request: &DirectRequest,
    ) -> Result<Self, DirectRequestError> {
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| DirectRequestError::Method(request.method.clone()))?;
        let endpoint = &client.endpoint;
        let url = match &request.target {
            Some(target) => {
                let url = endpoint.url.join(target).ok().filter(|url| endpoint.is_same_origin(url));
                url.ok_or_else(|| DirectRequestError::Elsewhere(target.clone()))?
            }
            None if method == Method::POST => message_url,
            None => endpoint.url.clone(),
        };
        let headers = headers(client, &method, request)?;
        let recorded = HttpRequest {
            number: client.log.next_number(),
            method: request.method.clone(),
            target: client.log.target(&url),
            headers: client.log.request_headers(&headers),
            carries: None,
            step_id: request.step_id,
            body: request.body.clone().map(JsonText::from),
        };
        client.record.add(Event::HttpRequest(recorded.clone()));
        let mut prepared = Request::new(method, url);
        *prepared.headers_mut() = headers;
        let body = request.body.as_ref().map(|body| match body {
            Value::String(text) => Bytes::from(text.clone()),
            other => Bytes::from(other.to_string()),
        });
        let http = if request.title_case_headers {
            endpoint.title_case_client.clone()
        } else {
            endpoint.client_for_body(body.as_ref().map_or(0, Bytes::len)).clone()
        };
        let prepared = PreparedRequest { head: prepared, body, transfer: request.transfer };
        let first = Progress { end: HttpEnd { number: recorded.number, ..HttpEnd::default() }, ..Progress::default() };
        let (sender, progress) = watch::channel(first);
        let reader = DirectResponseReader {
            client: Arc::clone(client),
            renewals: Arc::clone(renewals),
            request: recorded.clone(),
            sender,
            until: request.until,
            awaited: message_of(request).and_then(id_of).cloned(),
            is_repeated: request.is_repeated,
        };
        let limit = request.limit;
        let task = tasks.spawn(async move { reader.run(http, prepared, limit).await });
        Ok(Self { request: recorded, progress, task: task.abort_handle(), client: Arc::clone(client) })
    }

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
            self.client.record.add(Event::HttpEnd(Box::new(end)));
        }
    }
}

/// The JSON-RPC message that a request carries, if it carries one.
fn message_of(request: &DirectRequest) -> Option<&Value> {
    request.body.as_ref().filter(|body| !body.is_string())
}

/// The headers of a request: those of the client, changed as the case says.
fn headers(client: &HttpClient, method: &Method, request: &DirectRequest) -> Result<HeaderMap, DirectRequestError> {
    let accept = if *method == Method::GET { ACCEPT_STREAM } else { ACCEPT_JSON_OR_STREAM };
    let mut headers = client.headers(message_of(request), accept);
    if request.body.is_none() {
        headers.remove(CONTENT_TYPE);
    }
    if request.base64_headers {
        for (_, value) in headers.iter_mut().filter(|(name, _)| is_mirror(name)) {
            let text = value.to_str().unwrap_or_default();
            if let Ok(encoded) = HeaderValue::from_str(&base64_sentinel(text)) {
                *value = encoded;
            }
        }
    }
    for (name, values) in &request.headers {
        replace(&mut headers, name, values, &client.endpoint)?;
    }
    Ok(headers)
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
/// client would have sent, and a further token is put in the place of its placeholder.
fn replace(
    headers: &mut HeaderMap,
    name: &str,
    values: &[String],
    endpoint: &HttpEndpoint,
) -> Result<(), DirectRequestError> {
    let header_error = || DirectRequestError::Header(name.to_owned());
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
            if let Some(authorization) = endpoint.further_authorization(value) {
                headers.append(&header, authorization.clone());
                continue;
            }
            let value = value.replace(CLIENT_HEADER_VALUE, own);
            // Servers must reject bytes beyond ASCII themselves.
            headers.append(&header, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| header_error())?);
        }
    }
    Ok(())
}

/// A request with its body, which can be made several times.
struct PreparedRequest {
    head: Request,
    body: Option<Bytes>,
    transfer: BodyTransfer,
}

impl PreparedRequest {
    fn request(&self) -> Option<Request> {
        let mut request = self.head.try_clone()?;
        *request.body_mut() = self.body.as_ref().map(|body| body_of(body, self.transfer));
        Some(request)
    }
}

/// Whether a request is made again.
enum Again {
    Never,
    AtOnce,
    After(Duration),
}

/// Makes one request and reads its response.
struct DirectResponseReader {
    client: Arc<HttpClient>,
    renewals: Arc<SessionRenewals>,
    request: HttpRequest,
    sender: watch::Sender<Progress>,
    until: ReadUntil,
    /// The id of the JSON-RPC request that was sent.
    awaited: Option<Id>,
    is_repeated: bool,
}

impl DirectResponseReader {
    /// Makes the request, and repeats it while the server limits the request rate; records the end of the response.
    async fn run(self, mut http: Client, prepared: PreparedRequest, limit: Duration) {
        self.client.endpoint.wait_for_stream_test().await;
        wait_for_slot(&self.client.endpoint, &self.client.record).await;
        let (mut attempt, mut may_break_off) = (0, true);
        let timed = loop {
            // The request is held in memory, so it can be sent again.
            let Some(request) = prepared.request() else { break Ok(Again::Never) };
            match tokio::time::timeout(limit, self.read(http.execute(request), attempt, may_break_off)).await {
                Ok(Again::After(pause)) => {
                    wait_for_server(&self.client.record, pause).await;
                    attempt += 1;
                }
                Ok(Again::AtOnce) => {
                    may_break_off = false;
                    http = self.client.endpoint.fresh_client.clone();
                }
                ended => break ended,
            }
        };
        if timed.is_err() && self.sender.borrow().head.is_none() {
            let waited = format!("no response within {limit:.1?}");
            self.sender.send_modify(|progress| progress.end.failure = Some(waited));
        }
        let half_closed = if self.until == ReadUntil::Closed { self.client.endpoint.half_closed().await } else { None };
        self.sender.send_modify(|progress| {
            progress.end.half_closed = half_closed;
            let value = exchange_to_json(&self.request, progress.head.as_ref(), Some(&progress.end));
            progress.end.standing = url_relation(&self.client.endpoint.url, &value);
            progress.end.listens_at = self.client.endpoint.listens_at();
        });
        let end = self.sender.borrow().end.clone();
        self.client.record.add(Event::HttpEnd(Box::new(end)));
        self.sender.send_modify(|progress| progress.done = true);
    }

    /// Makes the request and reads its response; returns whether it is repeated, because the server limits the request
    /// rate or closes the connection under it.
    async fn read(
        &self,
        response: impl Future<Output = reqwest::Result<Response>>,
        attempt: usize,
        may_break_off: bool,
    ) -> Again {
        match response.await {
            Ok(response) => {
                let pause = retry_delay(&self.client.endpoint, &response, attempt).filter(|_| is_rate_limit(&response));
                if let Some(pause) = pause {
                    return Again::After(pause);
                }
                self.read_answer(response).await;
                Again::Never
            }
            // A server may close an idle connection at any time, also when the next request is on its way.
            Err(error) if may_break_off && !error.is_connect() && !error.is_timeout() => Again::AtOnce,
            Err(error) => {
                self.record_error(&error);
                Again::Never
            }
        }
    }

    fn record_error(&self, error: &reqwest::Error) {
        let text = self.client.endpoint.masked(&describe_error(error));
        self.sender.send_modify(|progress| progress.end.failure = Some(text));
    }

    async fn read_answer(&self, mut response: Response) {
        if is_rate_limit(&response) {
            self.client.record.count_rate_limited();
        }
        let head = self.client.log.head(self.request.number, &response);
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
            if began.elapsed() > MAX_READ_TIME {
                break;
            }
        }
        if streams {
            self.sender.send_modify(|progress| event_summary::note_defects(&mut progress.end, &decoder));
        }
        let body = self.client.endpoint.masked_bytes(body);
        let message = if streams { None } else { received_message(&body) };
        self.count_if_rate_limited(message.as_ref());
        self.renew_session().await;
        let message = message.map(|message| self.kept(message));
        let is_text = message.as_ref().is_some_and(|message| self.is_repeated || message.text().as_bytes() == body);
        let text = if is_text { BodyText::OfMessage } else { BodyText::of(&body) };
        self.sender.send_modify(|progress| {
            (progress.end.text, progress.end.message) = (text, message);
        });
    }

    /// Opens a new session if the response says that the connection's own one has ended. What the case did in it has
    /// to be done again, so the request is not.
    async fn renew_session(&self) {
        let headers = &self.request.headers;
        let used = headers.iter().find(|(name, _)| name == SESSION_HEADER).map(|(_, session)| session.as_str());
        let is_unknown = self.sender.borrow().head.as_ref().is_some_and(|head| head.status == 404);
        let own = self.client.negotiated.session();
        if let Some(own) = own.filter(|own| is_unknown && used == Some(own.as_str())) {
            self.renewals.renew(&self.client, &own).await;
        }
    }

    /// Counts a response that says that the server takes no more requests for now.
    fn count_if_rate_limited(&self, response: Option<&Value>) {
        if response.is_some_and(|value| messages(value).any(reports_rate_limit)) {
            self.client.record.count_rate_limited();
        }
    }

    /// Handles a piece of the body; returns whether enough was read.
    fn take(&self, bytes: &[u8], events: Vec<SseEvent>, decoder: &SseDecoder) -> bool {
        let mut enough = false;
        let summaries: Vec<SseEventSummary> = events.into_iter().map(|event| self.summarize(event)).collect();
        for summary in &summaries {
            let message = summary.message.as_ref().map(JsonText::value);
            self.count_if_rate_limited(message.as_ref());
            enough |= match self.until {
                ReadUntil::Head | ReadUntil::Event => true,
                ReadUntil::Answer | ReadUntil::Closed => {
                    message.is_some_and(|message| self.is_awaited_response(&message))
                }
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

    /// What is kept of a message.
    fn kept(&self, message: Value) -> JsonText {
        if self.is_repeated { summarize(&message).into() } else { message.into() }
    }

    fn is_awaited_response(&self, message: &Value) -> bool {
        let responds = |message: &Value| match MessageKind::of(message) {
            MessageKind::Response { id } => match (&self.awaited, id) {
                (Some(own), Some(id)) => same_id(own, id) || is_lost_id(id),
                (Some(_), None) => true,
                (None, _) => false,
            },
            // One without result and error is no response, but nothing else will follow it.
            MessageKind::Unknown => self.awaited.as_ref().zip(id_of(message)).is_some_and(|(own, id)| same_id(own, id)),
            _ => false,
        };
        messages(message).any(responds)
    }

    fn summarize(&self, event: SseEvent) -> SseEventSummary {
        let mut summary = event_summary::summarize(&self.client.endpoint, &event);
        if let Some(data) = event.data.filter(|data| !data.is_empty()) {
            let data = self.client.endpoint.masked_bytes(data);
            match received_message(&data) {
                Some(message) => (summary.data, summary.message) = ("message", Some(self.kept(message))),
                None => summary.text = Some(event_summary::excerpt(&String::from_utf8_lossy(&data))),
            }
        }
        summary
    }
}

/// The message that a body or an event is, if it is one.
fn received_message(data: &[u8]) -> Option<Value> {
    let frame = Frame::parse(data);
    let frame = if frame.bytes > MAX_WHOLE { frame.shortened() } else { frame };
    frame.value.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_replaced_by_name_and_by_prefix() {
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-to", HeaderValue::from_static("2"));
        headers.insert("mcp-name", HeaderValue::from_static("count"));
        let endpoint = HttpEndpoint::new("http://localhost/", &[], false).expect("an address");
        replace(&mut headers, "Mcp-Param-*", &["${header}.0".to_owned()], &endpoint).expect("it can be sent");
        replace(&mut headers, "mcp-name", &[], &endpoint).expect("it can be left out");
        replace(&mut headers, "origin", &["a".to_owned(), "b".to_owned()], &endpoint).expect("it can be repeated");
        assert_eq!(headers["mcp-param-to"], "2.0");
        assert!(!headers.contains_key("mcp-name"));
        assert_eq!(headers.get_all("origin").iter().count(), 2);
        assert!(replace(&mut headers, "bad name", &["x".to_owned()], &endpoint).is_err());
    }

    #[test]
    fn an_encoded_value_stays_as_it_is() {
        assert_eq!(base64_sentinel("count"), "=?base64?Y291bnQ=?=");
        assert_eq!(base64_sentinel("=?base64?Y291bnQ=?="), "=?base64?Y291bnQ=?=");
    }
}
