//! One connection over HTTP: what is sent, in which order, and what is retried.
//!
//! Owns the state of the connection, including its session, and the course of one exchange: a request, its response,
//! and the requests that resume a broken stream. The neighbouring modules build requests, read responses, apply rate
//! limits, cancel requests and implement the HTTP+SSE transport.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::cancel::cancelled;
use super::endpoint::{HttpEndpoint, HttpTransport};
use super::error_text::describe_error;
use super::header::Mirrored;
use super::request::{ACCEPT_JSON_OR_STREAM, ACCEPT_STREAM, OutgoingRequest};
use super::sse_transport::MessageEndpoint;
use crate::client::record::Record;
use crate::client::responder::Responder;
use crate::transcript::{Entry, Event, HttpEnd, StepId, messages};
use crate::wire::{Frame, Id, MessageKind};

/// How often a broken stream is resumed, how long to wait before if the server does not say, and the longest wait.
const MAX_RESUMPTIONS: usize = 5;
const DEFAULT_RECONNECT_DELAY: Duration = Duration::from_millis(100);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// How long ending a session may take.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection over HTTP.
pub(in crate::client) struct HttpConnection {
    pub(super) endpoint: Arc<HttpEndpoint>,
    pub(super) record: Arc<Record>,
    pub(super) responder: Responder,
    /// Whether the connection is of the stateless era.
    pub(super) stateless: bool,
    state: Mutex<State>,
    /// The message endpoint of the HTTP+SSE transport.
    pub(super) message_endpoint: watch::Sender<MessageEndpoint>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// The number of the next request.
    pub(super) next: usize,
    pub(super) session: Option<String>,
    /// The negotiated version, if requests must name it.
    pub(super) version: Option<String>,
    pub(super) mirrored: Mirrored,
    is_listening: bool,
    ended: bool,
    /// The responses that are being read.
    pub(super) open: BTreeMap<usize, HttpEnd>,
    tasks: Vec<AbortHandle>,
    /// The requests whose responses are still being read.
    pub(super) in_flight: Vec<(Id, AbortHandle)>,
}

/// The outcome of a request.
#[derive(Debug, Default)]
pub(super) struct ExchangeOutcome {
    pub(super) status: Option<u16>,
    /// Whether any message was received.
    pub(super) received_message: bool,
    pub(super) last_event_id: Option<String>,
    pub(super) retry: Option<Duration>,
    /// How long to wait before the request is repeated.
    retry_delay: Option<Duration>,
    /// The end of the response, if the caller records it.
    deferred_end: Option<HttpEnd>,
}

impl HttpConnection {
    pub(in crate::client) fn new(
        endpoint: Arc<HttpEndpoint>,
        record: Arc<Record>,
        responder: Responder,
        stateless: bool,
    ) -> Self {
        let message_endpoint = watch::Sender::new(MessageEndpoint::default());
        Self { endpoint, record, responder, stateless, state: Mutex::default(), message_endpoint }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the response to a message arrives as the HTTP response to its POST.
    pub(in crate::client) fn responds_inline(&self) -> bool {
        self.stateless || self.endpoint.transport() != Some(HttpTransport::Sse)
    }

    /// The HTTP session that the server opened, if there is one.
    pub(in crate::client) fn session(&self) -> Option<String> {
        self.state().session.clone()
    }

    /// Runs a task in the background until the connection ends.
    pub(super) fn spawn_task(&self, work: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
        let task = tokio::spawn(work);
        let mut state = self.state();
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(task.abort_handle());
        if state.ended {
            task.abort();
        }
        task
    }

    /// Sends a message and records it. A response to a request is read in the background; for any other message the
    /// HTTP response is awaited, at most `limit`, because the message must arrive before the next one.
    pub(in crate::client) async fn send(self: &Arc<Self>, frame: Frame, step_id: Option<StepId>, limit: Duration) {
        if let Some(id) = frame.json().and_then(cancelled) {
            if self.stateless {
                // In this era closing the stream is the cancellation, and no notification is sent.
                self.cancel_by_closing(id).await;
                return;
            }
            self.wait_for_arrival(id).await;
        }
        let expects_response =
            frame.json().is_none_or(|value| messages(value).any(|message| !has_no_response(message)));
        let request_ids = frame.json().map(ids).unwrap_or_default();
        let sent = self.record.add(Event::Sent { frame, step_id });
        let this = Arc::clone(self);
        let task = self.spawn_task(async move { this.deliver(sent).await });
        self.track_requests(request_ids, &task.abort_handle());
        if !expects_response {
            let _slow = tokio::time::timeout(limit, task).await;
        }
    }

    /// Delivers a message that is recorded as sent, over the server's transport, and reads the response.
    pub(super) async fn deliver(self: Arc<Self>, sent: Arc<Entry>) {
        if !self.responds_inline() {
            self.deliver_by_sse(sent).await;
            return;
        }
        let Event::Sent { frame, .. } = &sent.event else { return };
        let message = frame.json();
        let order = |attempt| OutgoingRequest {
            method: Method::POST,
            url: self.endpoint.url.clone(),
            headers: self.headers(message, ACCEPT_JSON_OR_STREAM),
            body: Some(frame.raw.clone()),
            carries: Some(Arc::clone(&sent)),
            awaited: message.map(ids).unwrap_or_default(),
            attempt,
            resume: !self.stateless,
            defers_end: is_of(message, "initialize") && !self.stateless && self.endpoint.transport().is_none(),
        };
        let mut outcome = self.exchange_with_retries(order).await;
        if let Some(200..=299) = outcome.status {
            self.endpoint.set_transport(HttpTransport::Streamable);
        }
        if let Some(mut end) = outcome.deferred_end.take() {
            let unanswered = end.unanswered.take();
            // The fallback that the specification's section on backwards compatibility describes.
            if self.open_sse_stream().await {
                self.finish(end, None);
                self.endpoint.set_transport(HttpTransport::Sse);
                self.deliver_by_sse(sent).await;
                return;
            }
            self.finish(end, unanswered);
        }
        let initialized = is_of(message, "notifications/initialized");
        if initialized && !self.stateless && matches!(outcome.status, Some(200..=299)) {
            self.open_listening_stream();
        }
    }

    /// Makes a request and repeats it while the server asks the client to slow down.
    pub(super) async fn exchange_with_retries(
        self: &Arc<Self>,
        order: impl Fn(usize) -> OutgoingRequest,
    ) -> ExchangeOutcome {
        let mut attempt = 0;
        loop {
            let outcome = self.exchange(order(attempt)).await;
            let Some(pause) = outcome.retry_delay else { return outcome };
            self.wait_paused(pause).await;
            attempt += 1;
        }
    }

    /// Makes a request and reads its response to the end, resuming broken streams.
    pub(super) async fn exchange(self: &Arc<Self>, order: OutgoingRequest) -> ExchangeOutcome {
        let message = order.carries.as_ref().map(|entry| entry.sent());
        let initializes = is_of(message.flatten(), "initialize");
        // A malformed message expects a response as well: the response reports the error.
        let expects_response = message.is_some_and(|message| {
            message.is_none_or(|value| {
                messages(value).next().is_none() || messages(value).any(|message| !has_no_response(message))
            })
        });
        let (resume, defers_end) = (order.resume, order.defers_end);
        let mut awaited = order.awaited.clone();
        let mut outcome = ExchangeOutcome::default();
        let mut next = Some(order);
        let mut rounds = 0;
        while let Some(order) = next.take() {
            let number = self.record_request(&order);
            let (url, attempt, carries) = (order.url.clone(), order.attempt, order.carries.is_some());
            let end = match self.send_request(number, order, initializes).await {
                Ok(response) => {
                    outcome.status = Some(response.status().as_u16());
                    outcome.retry_delay = self.retry_delay(&response, attempt);
                    if carries && outcome.status == Some(429) && outcome.retry_delay.is_none() {
                        self.record.count_rate_limited();
                    }
                    self.read(number, response, expects_response, &mut awaited, &mut outcome).await
                }
                Err(error) => {
                    let end = HttpEnd {
                        number,
                        failure: Some(self.endpoint.masked(&describe_error(&error))),
                        ..HttpEnd::default()
                    };
                    if error.is_connect() {
                        self.finish(end, awaited.first().cloned());
                        self.record.add(Event::Closed);
                        return outcome;
                    }
                    end
                }
            };
            rounds += 1;
            let streamed = !end.events.is_empty() && outcome.status == Some(200);
            let resumed = resume && streamed && !awaited.is_empty() && rounds <= MAX_RESUMPTIONS;
            if let Some(last) = outcome.last_event_id.as_deref().filter(|last| resumed && !last.is_empty()) {
                tokio::time::sleep(outcome.retry.unwrap_or(DEFAULT_RECONNECT_DELAY).min(MAX_RECONNECT_DELAY)).await;
                next = Some(self.resumption(url, last));
                self.finish(end, None);
                continue;
            }
            let unanswered = awaited.first().cloned().filter(|_| outcome.retry_delay.is_none());
            if defers_end && !outcome.received_message && matches!(outcome.status, Some(400 | 404 | 405)) {
                outcome.deferred_end = Some(HttpEnd { unanswered, ..end });
            } else {
                self.finish(end, unanswered);
            }
        }
        outcome
    }

    /// Records the end of a response.
    fn finish(&self, mut end: HttpEnd, unanswered: Option<Id>) {
        self.state().open.remove(&end.number);
        end.unanswered = unanswered;
        self.record.add(Event::HttpEnd(Box::new(end)));
    }

    /// Opens the stream for the server's own messages, once.
    fn open_listening_stream(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state().is_listening, true) {
            return;
        }
        let this = Arc::clone(self);
        drop(self.spawn_task(async move {
            let order = this.request_without_body(Method::GET, this.endpoint.url.clone(), ACCEPT_STREAM);
            this.exchange(order).await;
        }));
    }

    /// Ends the session and all background tasks.
    pub(in crate::client) async fn end(self: &Arc<Self>) {
        let tasks = {
            let mut state = self.state();
            state.ended = true;
            std::mem::take(&mut state.tasks)
        };
        for task in tasks {
            task.abort();
        }
        let open = std::mem::take(&mut self.state().open);
        for end in open.into_values() {
            self.record.add(Event::HttpEnd(Box::new(end)));
        }
        if self.state().session.is_some() && !self.record.state().closed {
            let order = self.request_without_body(Method::DELETE, self.endpoint.url.clone(), ACCEPT_JSON_OR_STREAM);
            let _slow = tokio::time::timeout(SESSION_END_TIMEOUT, self.exchange(order)).await;
        }
    }

    /// Ends everything at once, for a connection that is dropped without a shutdown.
    pub(in crate::client) fn abandon(&self) {
        let mut state = self.state();
        state.ended = true;
        for task in state.tasks.drain(..) {
            task.abort();
        }
    }
}

/// Whether a message has the given method.
fn is_of(message: Option<&Value>, method: &str) -> bool {
    message.and_then(|message| message.get("method")).is_some_and(|own| own == method)
}

/// Whether a message is one that has no response.
fn has_no_response(message: &Value) -> bool {
    matches!(MessageKind::of(message), MessageKind::Notification { .. } | MessageKind::Response { .. })
}

/// The ids of the requests in a message.
fn ids(message: &Value) -> Vec<Id> {
    let expects_response = |message: &&Value| message.get("method").is_some() || !has_no_response(message);
    messages(message).filter(expects_response).filter_map(|message| message.get("id").cloned()).collect()
}
