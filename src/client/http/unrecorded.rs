//! A connection over HTTP that records nothing: lines out, each as a POST, and frames in.
//!
//! An HTTP error status becomes the equivalent JSON-RPC error, so that a caller who makes thousands of calls need not
//! know HTTP. Conditions that end the calling are reported separately: the connection is lost, the session is
//! unknown, the client is rate limited or unauthorized, or the server writes too much.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::connection::HttpConnection;
use super::unrecorded_options::{EndReason, UnrecordedHttpOptions};
use crate::client::connection::WaitOutcome;
use crate::client::record::{Record, RecordLimits, RecordOptions};
use crate::client::wait_budget::WaitBudget;
use crate::limits::MAX_ANSWERED_REQUESTS;
use crate::limits::http::DELIVERY_TIMEOUT;
use crate::text::first_chars;
use crate::transcript::{Entry, Event, HttpEnd, SetAside};
use crate::wire::{Frame, HTTP_STATUS_MEMBER, Id, MAX_MESSAGE_BYTES, MessageKind, id_of, is_lost_id, messages};

/// Statuses for a request that is larger than the server accepts: a limit that it may have.
const TOO_LARGE_STATUSES: [u16; 3] = [413, 414, 431];
/// The error for a header that differs from the body. This client makes the mirrored headers, so the error says
/// nothing about the arguments.
const HEADER_MISMATCH: i64 = -32020;

/// An event of the record that matters here.
enum RecordEvent {
    Begun { number: usize, carries: Option<Arc<Entry>> },
    Status { number: usize, status: u16 },
    Came(Frame),
    Ended(Box<HttpEnd>),
    Closed,
    OutputLimitExceeded,
}

/// A request whose response is still being read.
struct PendingRequest {
    carries: Option<Arc<Entry>>,
    status: Option<u16>,
}

/// A connection over HTTP that records nothing.
pub(in crate::client) struct UnrecordedHttp {
    http: Arc<HttpConnection>,
    event: UnboundedReceiver<RecordEvent>,
    outgoing: VecDeque<Arc<[u8]>>,
    pending: BTreeMap<usize, PendingRequest>,
    /// The number of lines in flight that are not JSON: nothing is sent after one, so that it is known which line
    /// ended the server.
    invalid_lines: usize,
    /// The ids of requests that were made again because the connection broke off.
    repeated: BTreeSet<String>,
    ready: VecDeque<Frame>,
    /// Whether the HTTP response to a request ended without a JSON-RPC response.
    response_missing: bool,
    end_reason: Option<EndReason>,
}

impl std::fmt::Debug for UnrecordedHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnrecordedHttp")
            .field("pending", &self.pending.len())
            .field("end_reason", &self.end_reason)
            .finish_non_exhaustive()
    }
}

impl UnrecordedHttp {
    pub(in crate::client) fn new(options: UnrecordedHttpOptions) -> Self {
        let (sender, event) = unbounded_channel();
        let observer = options.observer;
        let keeping = RecordOptions {
            limits: RecordLimits { answers: MAX_ANSWERED_REQUESTS, ..RecordLimits::default() },
            observer: Some(Arc::new(move |entry| {
                if let Some(observer) = &observer {
                    observer(entry);
                }
                forward(&sender, entry);
            })),
            discards_entries: true,
            ..RecordOptions::default()
        };
        let record = Arc::new(Record::new(keeping));
        let http = HttpConnection::new(options.endpoint, record, options.responder, options.stateless);
        let http = Arc::new(http.without_new_sessions());
        http.set_mirrored(options.mirrored);
        Self {
            http,
            event,
            outgoing: VecDeque::new(),
            pending: BTreeMap::new(),
            invalid_lines: 0,
            repeated: BTreeSet::new(),
            ready: VecDeque::new(),
            response_missing: false,
            end_reason: None,
        }
    }

    pub(in crate::client) fn queue(&mut self, line: Arc<[u8]>) {
        self.outgoing.push_back(line);
    }

    pub(in crate::client) fn end_reason(&self) -> Option<&EndReason> {
        self.end_reason.as_ref()
    }

    /// The next message of the server; queued lines are sent meanwhile. Does not wait any longer once an HTTP response
    /// has ended without the JSON-RPC response that it should carry.
    pub(in crate::client) async fn next(&mut self, limit: Duration) -> WaitOutcome<Frame> {
        let mut budget = WaitBudget::new(limit);
        loop {
            self.send_queued().await;
            while let Ok(event) = self.event.try_recv() {
                self.handle_event(event);
            }
            if let Some(frame) = self.ready.pop_front() {
                return WaitOutcome::Ready(frame);
            }
            if self.end_reason.is_some() {
                return WaitOutcome::Closed;
            }
            if budget.is_exhausted() || std::mem::take(&mut self.response_missing) {
                return WaitOutcome::TimedOut;
            }
            let paused = self.http.is_paused();
            let received = budget.poll(self.event.recv()).await;
            if paused && received.is_none() {
                // The server asked the client to wait, so this time does not count against it.
                budget.refund();
            }
            if let Some(event) = received.flatten() {
                self.handle_event(event);
            }
        }
    }

    async fn send_queued(&mut self) {
        while self.invalid_lines == 0
            && let Some(line) = self.outgoing.pop_front()
        {
            let frame = Frame::parse(&line);
            if frame.json().is_none() {
                self.invalid_lines += 1;
            }
            let limit = self.http.at_least_opening(DELIVERY_TIMEOUT);
            self.http.send(frame, None, limit).await;
        }
    }

    fn handle_event(&mut self, event: RecordEvent) {
        match event {
            RecordEvent::Begun { number, carries } => {
                self.pending.insert(number, PendingRequest { carries, status: None });
            }
            RecordEvent::Status { number, status } => {
                if let Some(request) = self.pending.get_mut(&number) {
                    request.status = Some(status);
                }
            }
            RecordEvent::Came(frame) => self.handle_frame(frame),
            RecordEvent::Ended(end) => self.handle_end(&end),
            RecordEvent::Closed => {
                self.end_reason
                    .get_or_insert_with(|| EndReason::ConnectionLost("the server closed the connection".to_owned()));
            }
            RecordEvent::OutputLimitExceeded => {
                self.end_reason.get_or_insert(EndReason::OutputLimitExceeded);
            }
        }
    }

    fn handle_frame(&mut self, frame: Frame) {
        let Some(value) = frame.json() else {
            // A message beyond a size limit is reported at the end of its response, which identifies the request.
            if !frame.value.as_ref().is_err_and(crate::wire::FramingError::is_own_limit) {
                self.ready.push_back(frame);
            }
            return;
        };
        // The server's requests have been answered already.
        if messages(value).all(|message| matches!(MessageKind::of(message), MessageKind::Request { .. })) {
            return;
        }
        if value.pointer("/error/code").and_then(Value::as_i64) == Some(HEADER_MISMATCH)
            && let Some(id) = id_of(value).filter(|id| !is_lost_id(id))
        {
            self.ready.push_back(unread(id, "the headers do not fit the body"));
            return;
        }
        self.ready.push_back(frame);
    }

    fn handle_end(&mut self, end: &HttpEnd) {
        let Some(request) = self.pending.remove(&end.number) else { return };
        let Some(carries) = request.carries else { return };
        if end.set_aside == Some(SetAside::BodyUnread) {
            // A server may refuse what is too large for it.
            let id = carries.sent().and_then(id_of);
            self.ready.extend(id.map(|id| unread(id, "the connection was closed before the request was read")));
            return;
        }
        if end.set_aside.is_some() {
            self.repeated.extend(carries.sent().and_then(id_of).map(ToString::to_string));
            return;
        }
        let Some(message) = carries.sent() else {
            self.invalid_lines = self.invalid_lines.saturating_sub(1);
            self.handle_rejection(request.status);
            return;
        };
        // Over HTTP+SSE a rejected POST has no response on the stream either.
        let not_taken = !self.http.responds_inline() && request.status.is_none_or(|status| status >= 300);
        let own = id_of(message).filter(|_| matches!(MessageKind::of(message), MessageKind::Request { .. }));
        let Some(id) = end.unanswered.as_ref().or(own.filter(|_| not_taken)) else { return };
        if self.handle_rejection(request.status) {
            return;
        }
        if let Some(failure) = end.failure.as_ref().filter(|_| end.bytes <= MAX_MESSAGE_BYTES) {
            self.end_reason.get_or_insert_with(|| EndReason::ConnectionLost(failure.clone()));
            return;
        }
        match request.status {
            Some(404) if self.http.session().is_some() => {
                // A request that broke off had a session before.
                let over = if self.repeated.contains(&id.to_string()) {
                    EndReason::ConnectionLost(
                        "the connection broke off, and the server no longer knows the session".to_owned(),
                    )
                } else {
                    EndReason::SessionUnknown
                };
                self.end_reason.get_or_insert(over);
            }
            Some(status) if TOO_LARGE_STATUSES.contains(&status) || status == 403 => {
                self.ready.push_back(unread(id, &format!("HTTP status {status}")));
            }
            Some(status @ 500..) => self.ready.push_back(error(id, -32603, status, &end.text())),
            Some(status @ 300..) => self.ready.push_back(error(id, -32600, status, &end.text())),
            _ if end.bytes > MAX_MESSAGE_BYTES => {
                self.ready.push_back(unread(id, "the response is larger than the client reads"));
            }
            _ => self.response_missing = true,
        }
    }

    /// Handles a status that applies to all requests; returns whether it is one.
    fn handle_rejection(&mut self, status: Option<u16>) -> bool {
        let over = match status {
            Some(429) => EndReason::RateLimited,
            Some(401) => EndReason::Unauthorized,
            _ => return false,
        };
        self.end_reason.get_or_insert(over);
        true
    }

    /// Ends the session.
    pub(in crate::client) async fn end(self) {
        self.http.end().await;
    }
}

impl Drop for UnrecordedHttp {
    fn drop(&mut self) {
        self.http.abandon();
    }
}

/// Forwards an entry, if it matters here.
fn forward(sender: &UnboundedSender<RecordEvent>, entry: &Entry) {
    let event = match &entry.event {
        Event::HttpRequest(request) => RecordEvent::Begun { number: request.number, carries: request.carries.clone() },
        Event::HttpHead(head) => RecordEvent::Status { number: head.number, status: head.status },
        Event::HttpEnd(end) => RecordEvent::Ended(end.clone()),
        Event::Received(frame) => RecordEvent::Came(frame.clone()),
        Event::Closed | Event::Exited { .. } => RecordEvent::Closed,
        Event::Overflow => RecordEvent::OutputLimitExceeded,
        _ => return,
    };
    // The receiver may be gone, and then the event is of no use.
    let _not_arrived = sender.send(event);
}

/// The JSON-RPC error for an HTTP status.
fn error(id: &Id, code: i64, status: u16, text: &str) -> Frame {
    const SHOWN: usize = 300;
    let text = first_chars(text.trim(), SHOWN);
    let message =
        if text.is_empty() { format!("HTTP status {status}") } else { format!("HTTP status {status}: {text}") };
    let error = json!({ "code": code, "message": message, HTTP_STATUS_MEMBER: status });
    Frame::from_value(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

/// An error response whose contents are not judged.
fn unread(id: &Id, why: &str) -> Frame {
    Frame::from_value(
        &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": why }, "unread": true }),
    )
}
