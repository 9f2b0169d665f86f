//! One connection over HTTP: what is sent, in which order, and what is retried.
//!
//! Owns the course of one exchange: a request, its response, and the requests that resume a broken stream. The
//! neighbouring modules build requests, read responses, apply rate limits, and own the state that each of them needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::background_tasks::BackgroundTasks;
use super::cancel::{InFlightRequests, cancelled, wait_for_arrival, wait_for_first_event};
use super::direct_request::{DirectRequest, DirectRequestError};
use super::direct_response::DirectResponse;
use super::endpoint::{HttpEndpoint, HttpTransport};
use super::error_description::describe_error;
use super::get_stream;
use super::header::Mirrored;
use super::negotiated::SESSION_HEADER;
use super::rate_limit::{is_rate_limit, retry_delay, wait_for_server};
use super::request::{ACCEPT_JSON_OR_STREAM, ACCEPT_STREAM, HttpClient, OutgoingRequest, Repetition, RequestFailure};
use super::request_body::RequestBody;
use super::response::ResponseReader;
use super::session_renewal::{Renewal, SessionRenewals};
use super::sse_transport::MessageEndpoint;
use crate::client::record::Record;
use crate::client::responder::Responder;
use crate::limits::http::{DEFAULT_RECONNECT_DELAY, MAX_RECONNECT_DELAY, MAX_RESUMPTIONS, SESSION_END_TIMEOUT};
use crate::raw_text::RawText;
use crate::transcript::{Entry, Event, HttpEnd, SetAside, StepId};
use crate::wire::{Frame, Id, MessageKind, id_of, messages, method_of};

/// A connection over HTTP.
pub(in crate::client) struct HttpConnection {
    client: Arc<HttpClient>,
    responder: Responder,
    /// The message endpoint of the HTTP+SSE transport.
    message_endpoint: MessageEndpoint,
    tasks: BackgroundTasks,
    in_flight: InFlightRequests,
    /// Whether the stream for the server's own messages was opened.
    is_listening: AtomicBool,
    /// Whether a new session is opened if the server has ended the one in use.
    renews_session: bool,
    renewals: Arc<SessionRenewals>,
}

/// The outcome of a request.
#[derive(Debug, Default)]
struct ExchangeOutcome {
    status: Option<u16>,
    /// How long to wait before the request is repeated.
    retry_delay: Option<Duration>,
    /// Whether the exchange was set aside, so that the request is made once more.
    is_set_aside: bool,
    /// The end of the response, if the caller records it.
    deferred_end: Option<HttpEnd>,
}

impl HttpConnection {
    pub(in crate::client) fn new(
        endpoint: Arc<HttpEndpoint>,
        record: Arc<Record>,
        responder: Responder,
        is_stateless: bool,
    ) -> Self {
        Self {
            client: Arc::new(HttpClient::new(endpoint, record, is_stateless)),
            responder,
            message_endpoint: MessageEndpoint::default(),
            tasks: BackgroundTasks::default(),
            in_flight: InFlightRequests::default(),
            is_listening: AtomicBool::new(false),
            renews_session: true,
            renewals: Arc::default(),
        }
    }

    /// The same connection for a caller who has to know of ended sessions.
    pub(in crate::client) fn without_new_sessions(self) -> Self {
        Self { renews_session: false, ..self }
    }

    fn is_stateless(&self) -> bool {
        self.client.negotiated.is_stateless()
    }

    /// Whether the response to a message arrives as the HTTP response to its POST.
    pub(in crate::client) fn responds_inline(&self) -> bool {
        self.is_stateless() || self.client.endpoint.transport() != Some(HttpTransport::Sse)
    }

    /// The HTTP session that the server opened, if there is one.
    pub(in crate::client) fn session(&self) -> Option<String> {
        self.client.negotiated.session()
    }

    /// Sets which tool parameters are mirrored into headers.
    pub(in crate::client) fn set_mirrored(&self, mirrored: Mirrored) {
        self.client.negotiated.set_mirrored(mirrored);
    }

    /// Whether a request waits because of the server's rate limit.
    pub(super) fn is_paused(&self) -> bool {
        self.client.record.is_paused()
    }

    /// Whether the user gave the token that a placeholder of a header names.
    pub(in crate::client) fn has_further_authorization(&self, placeholder: &str) -> bool {
        self.client.endpoint.further_authorization(placeholder).is_some()
    }

    /// Makes a request for a case.
    pub(in crate::client) fn send_directly(
        &self,
        request: &DirectRequest,
    ) -> Result<DirectResponse, DirectRequestError> {
        let named = self.message_endpoint.url().filter(|_| !self.is_stateless());
        let message_url = named.unwrap_or_else(|| self.client.endpoint.url.clone());
        DirectResponse::start(&self.client, &self.renewals, &self.tasks, message_url, request)
    }

    /// Sends a message and records it. A response to a request is read in the background; for any other message the
    /// HTTP response is awaited, at most `limit`, because the message must arrive before the next one.
    pub(in crate::client) async fn send(self: &Arc<Self>, mut frame: Frame, step_id: Option<StepId>, limit: Duration) {
        if let Some(id) = frame.json().and_then(cancelled) {
            if self.is_stateless() {
                // In this era closing the stream is the cancellation, and no notification is sent.
                wait_for_first_event(&self.client.record, &self.client.log, id).await;
                self.in_flight.close(id);
                return;
            }
            wait_for_arrival(&self.client.record, id).await;
        }
        let expects_response =
            frame.json().is_none_or(|value| messages(value).any(|message| !has_no_response(message)));
        let request_ids = frame.json().map(ids).unwrap_or_default();
        // The record keeps less of a long message.
        let body = RequestBody::from(frame.take_text());
        let sent = self.client.record.add(Event::Sent { frame, step_id });
        let this = Arc::clone(self);
        let task = self.tasks.spawn(async move { this.deliver(sent, body).await });
        self.in_flight.track(request_ids, &task.abort_handle());
        if !expects_response {
            let _slow = tokio::time::timeout(limit, task).await;
        }
    }

    /// Delivers a message that is recorded as sent, over the server's transport, and reads the response.
    async fn deliver(self: Arc<Self>, sent: Arc<Entry>, body: RequestBody) {
        if !self.responds_inline() {
            self.deliver_by_sse(sent, body).await;
            return;
        }
        let Event::Sent { frame, .. } = &sent.event else { return };
        let message = frame.json();
        let endpoint = &self.client.endpoint;
        let has_handshake = !self.is_stateless();
        let request = |attempt| OutgoingRequest {
            method: Method::POST,
            url: endpoint.url.clone(),
            headers: self.client.headers(message, ACCEPT_JSON_OR_STREAM),
            body: Some(body.clone()),
            carries: Some(Arc::clone(&sent)),
            awaited: message.map(ids).unwrap_or_default(),
            attempt,
            resume: has_handshake,
            defers_end: is_of(message, "initialize") && has_handshake && endpoint.transport().is_none(),
            repetition: Repetition::Never,
        };
        let mut outcome = self.exchange_with_retries(request).await;
        if let Some(200..=299) = outcome.status {
            endpoint.set_transport(HttpTransport::Streamable);
        }
        if let Some(mut end) = outcome.deferred_end.take() {
            let unanswered = end.unanswered.take();
            // The fallback that the specification's section on backwards compatibility describes.
            if self.open_sse_stream().await {
                self.client.log.finish(end, None);
                endpoint.set_transport(HttpTransport::Sse);
                self.deliver_by_sse(sent, body).await;
                return;
            }
            self.client.log.finish(end, unanswered);
        }
        let initialized = is_of(message, "notifications/initialized");
        if initialized && has_handshake && matches!(outcome.status, Some(200..=299)) {
            self.open_listening_stream();
        }
    }

    /// Delivers an answer to a request of the server in the background.
    fn deliver_in_background(self: &Arc<Self>, sent: Arc<Entry>) {
        let Event::Sent { frame, .. } = &sent.event else { return };
        let (this, body) = (Arc::clone(self), RequestBody::from(RawText::from(frame.raw().into_owned())));
        drop(self.tasks.spawn(async move { this.deliver(sent, body).await }));
    }

    /// Makes a request and repeats it while the server asks the client to slow down, and once if it was set aside.
    async fn exchange_with_retries(self: &Arc<Self>, request: impl Fn(usize) -> OutgoingRequest) -> ExchangeOutcome {
        let (mut attempt, mut repetition) = (0, Repetition::Possible);
        loop {
            let next = OutgoingRequest { repetition, ..request(attempt) };
            if next.carries.is_some() {
                self.client.endpoint.wait_for_stream_test().await;
            }
            let outcome = self.exchange(next).await;
            if outcome.is_set_aside {
                repetition = Repetition::UnderWay;
                continue;
            }
            let Some(pause) = outcome.retry_delay else { return outcome };
            wait_for_server(&self.client.record, pause).await;
            attempt += 1;
        }
    }

    /// Makes a request and reads its response to the end, resuming broken streams.
    async fn exchange(self: &Arc<Self>, request: OutgoingRequest) -> ExchangeOutcome {
        let client = &self.client;
        let message = request.carries.as_ref().map(|entry| entry.sent());
        let initializes = is_of(message.flatten(), "initialize");
        if let Some(message) = message.flatten() {
            client.negotiated.store_request(message);
        }
        let expects_response = message.is_some_and(|message| message.is_none_or(expects_response));
        let (resume, defers_end) = (request.resume, request.defers_end);
        let mut reader = ResponseReader {
            client,
            responder: &self.responder,
            message_endpoint: &self.message_endpoint,
            deliver: &|sent| self.deliver_in_background(sent),
            expects_response,
            awaited: request.awaited.clone(),
            received_message: false,
            last_event_id: None,
            retry: None,
            body: None,
        };
        let mut outcome = ExchangeOutcome::default();
        let (mut next, mut rounds) = (Some(request), 0);
        while let Some(request) = next.take() {
            let number =
                client.log.begin(request.method.as_str(), &request.url, &request.headers, request.carries.clone());
            let (url, attempt, carries) = (request.url.clone(), request.attempt, request.carries.is_some());
            let may_be_set_aside = request.repetition == Repetition::Possible;
            let used = session_of(&request).filter(|_| rounds == 0);
            let end = match client.send(number, request, initializes).await {
                Ok(response) if may_be_set_aside && self.has_new_session(&response, used.as_deref()).await => {
                    return self.set_aside(number, SetAside::SessionEnded, None);
                }
                Ok(response) => {
                    outcome.status = Some(response.status().as_u16());
                    outcome.retry_delay = retry_delay(&client.endpoint, &response, attempt);
                    if carries && is_rate_limit(&response) && outcome.retry_delay.is_none() {
                        client.record.count_rate_limited();
                    }
                    reader.read(number, response).await
                }
                Err(RequestFailure { error, is_unread }) => {
                    let failure = Some(client.endpoint.masked(&describe_error(&error)));
                    let set_aside = is_unread.then_some(SetAside::BodyUnread);
                    let end = HttpEnd { number, failure, set_aside, ..HttpEnd::default() };
                    if error.is_connect() {
                        client.log.finish(end, reader.awaited.first().cloned());
                        client.record.add(Event::Closed);
                        return outcome;
                    }
                    if may_be_set_aside && !error.is_timeout() {
                        let set_aside = self.set_aside(number, SetAside::ConnectionClosed, end.failure);
                        next = reader.resumption(url).filter(|_| rounds > 0);
                        if next.is_none() {
                            return set_aside;
                        }
                        continue;
                    }
                    end
                }
            };
            rounds += 1;
            let streamed = !end.events.is_empty() && outcome.status == Some(200);
            let resumed = resume && streamed && !reader.awaited.is_empty() && rounds <= MAX_RESUMPTIONS;
            if let Some(last) = reader.last_event_id.as_deref().filter(|last| resumed && !last.is_empty()) {
                tokio::time::sleep(reader.retry.unwrap_or(DEFAULT_RECONNECT_DELAY).min(MAX_RECONNECT_DELAY)).await;
                next = Some(client.resumption(url, last));
                client.log.finish(end, None);
                continue;
            }
            let unanswered = reader.awaited.first().cloned().filter(|_| outcome.retry_delay.is_none());
            if defers_end && !reader.received_message && matches!(outcome.status, Some(400 | 404 | 405)) {
                outcome.deferred_end = Some(HttpEnd { unanswered, ..end });
            } else {
                reader.finish(end, unanswered);
            }
        }
        outcome
    }

    /// Ends an exchange that says nothing about the server, and whose request is made again.
    fn set_aside(&self, number: usize, reason: SetAside, failure: Option<String>) -> ExchangeOutcome {
        self.client.log.finish(HttpEnd { number, failure, set_aside: Some(reason), ..HttpEnd::default() }, None);
        ExchangeOutcome { is_set_aside: true, ..ExchangeOutcome::default() }
    }

    /// Whether a response says that the session of its request has ended, so that the request is made again in a new
    /// one, which this opens.
    async fn has_new_session(self: &Arc<Self>, response: &Response, used: Option<&str>) -> bool {
        let Some(used) = used.filter(|_| response.status() == 404 && self.renews_session) else { return false };
        match self.renewals.renew(&self.client, used).await {
            Renewal::Done => {
                // The stream for the server's own messages belonged to the session.
                if self.is_listening.swap(false, Ordering::Relaxed) {
                    self.open_listening_stream();
                }
                true
            }
            Renewal::DoneBefore => true,
            Renewal::Failed => false,
        }
    }

    /// Opens the stream for the server's own messages, once.
    fn open_listening_stream(self: &Arc<Self>) {
        if self.is_listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::clone(self);
        drop(self.tasks.spawn(async move {
            get_stream::listen(&this.client, &this.client.endpoint.get_streams, || this.read_listening_stream()).await;
        }));
    }

    /// Opens the stream for the server's own messages, and reads it in the background.
    fn read_listening_stream(self: &Arc<Self>) -> JoinHandle<()> {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            this.exchange_with_retries(|_| this.client.request_without_body(Method::GET, ACCEPT_STREAM)).await;
        })
    }

    /// Opens the HTTP+SSE stream, unless it is open; returns whether it names a message endpoint.
    async fn open_sse_stream(self: &Arc<Self>) -> bool {
        if self.message_endpoint.request() {
            let this = Arc::clone(self);
            drop(self.tasks.spawn(async move {
                this.exchange(this.client.request_without_body(Method::GET, ACCEPT_STREAM)).await;
                // The stream is the connection: without it nothing more can arrive.
                if this.message_endpoint.end() {
                    this.client.record.add(Event::Closed);
                }
            }));
        }
        self.message_endpoint.wait_until_named().await
    }

    /// Sends a message over the HTTP+SSE transport.
    async fn deliver_by_sse(self: &Arc<Self>, sent: Arc<Entry>, body: RequestBody) {
        if !self.open_sse_stream().await {
            self.client.record.add(Event::Closed);
            return;
        }
        let Some(url) = self.message_endpoint.url() else { return };
        let Event::Sent { frame, .. } = &sent.event else { return };
        let headers = self.client.headers(frame.json(), ACCEPT_JSON_OR_STREAM);
        // The response arrives on the stream; the POST only shows whether the message was accepted.
        let request = |attempt| OutgoingRequest {
            method: Method::POST,
            url: url.clone(),
            headers: headers.clone(),
            body: Some(body.clone()),
            carries: Some(Arc::clone(&sent)),
            awaited: Vec::new(),
            attempt,
            resume: false,
            defers_end: false,
            repetition: Repetition::Never,
        };
        let _taken = self.exchange_with_retries(request).await;
    }

    /// How long to wait at least for something that needs no more than a usual answer.
    pub(in crate::client) fn at_least_opening(&self, usual: Duration) -> Duration {
        self.client.record.at_least_opening(usual)
    }

    /// Ends the session and all background tasks.
    pub(in crate::client) async fn end(self: &Arc<Self>) {
        self.tasks.end();
        self.client.log.finish_all();
        if self.session().is_some() && !self.client.record.state().closed {
            let request = self.client.request_without_body(Method::DELETE, ACCEPT_JSON_OR_STREAM);
            let limit = self.at_least_opening(SESSION_END_TIMEOUT);
            let _slow = tokio::time::timeout(limit, self.exchange(request)).await;
        }
    }

    /// Ends everything at once, for a connection that is dropped without a shutdown.
    pub(in crate::client) fn abandon(&self) {
        self.tasks.end();
    }
}

/// Whether a message has the given method.
fn is_of(message: Option<&Value>, method: &str) -> bool {
    message.and_then(method_of) == Some(method)
}

/// Whether a message is one that has no response.
fn has_no_response(message: &Value) -> bool {
    matches!(MessageKind::of(message), MessageKind::Notification { .. } | MessageKind::Response { .. })
}

/// Whether a message expects a response. A malformed one does as well: the response reports the error.
fn expects_response(message: &Value) -> bool {
    messages(message).next().is_none() || messages(message).any(|message| !has_no_response(message))
}

/// The session in which a request carries a message.
fn session_of(request: &OutgoingRequest) -> Option<String> {
    let session = request.headers.get(SESSION_HEADER).filter(|_| request.carries.is_some())?;
    session.to_str().ok().map(str::to_owned)
}

/// The ids of the requests in a message.
fn ids(message: &Value) -> Vec<Id> {
    let expects_response = |message: &&Value| message.get("method").is_some() || !has_no_response(message);
    messages(message).filter(expects_response).filter_map(|message| id_of(message).cloned()).collect()
}
