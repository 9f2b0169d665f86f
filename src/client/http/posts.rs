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

use super::exchange::Exchanger;
use super::header::Mirrored;
use super::site::Site;
use crate::client::allotted::Allotted;
use crate::client::connection::Waited;
use crate::client::record::{Keeping, Limits, Record};
use crate::client::responder::Responder;
use crate::transcript::{Entry, Event, HttpEnd, messages};
use crate::wire::{Frame, Id, Kind, MAX_MESSAGE_BYTES};

/// How long to wait for a message without a response to arrive.
const TAKEN: Duration = Duration::from_secs(2);
/// How many requests of the server are answered.
const ANSWERS: usize = 2_000;
/// Statuses for a request that is larger than the server accepts: a limit that it may have.
const TOO_LARGE: [u16; 3] = [413, 414, 431];
/// The error for a header that differs from the body. This client makes the mirrored headers, so the error says
/// nothing about the arguments.
const HEADER_MISMATCH: i64 = -32020;

/// The parameters of a connection.
#[derive(Debug)]
pub struct PostsOrder {
    /// The server's endpoint.
    pub site: Arc<Site>,
    /// Whether the connection is of the era without a handshake.
    pub stateless: bool,
    /// Answers the server's requests.
    pub responder: Responder,
    /// The tool parameters that are mirrored into headers.
    pub mirrored: Mirrored,
}

/// Why a connection has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// No connection is accepted, or a request and its repetition both broke off without a response.
    Lost(String),
    /// The session is no longer known.
    Forgotten,
    /// The server limits the request rate.
    Limited,
    /// The server requires a token.
    Locked,
    /// The server writes more than is read.
    Flooded,
}

impl Over {
    /// The reason as a sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Lost(trouble) => trouble.clone(),
            Self::Forgotten => "the server no longer knows the session (HTTP status 404)".to_owned(),
            Self::Limited => {
                "the server limits the request rate (HTTP status 429): use --max-rate, or lift the limit"
                    .to_owned()
            }
            Self::Locked => "the server requires a token (HTTP status 401)".to_owned(),
            Self::Flooded => "the server writes more than the client reads".to_owned(),
        }
    }
}

/// An event of the record that matters here.
enum Told {
    Begun { number: usize, carries: Option<Arc<Entry>> },
    Status { number: usize, status: u16 },
    Came(Frame),
    Ended(Box<HttpEnd>),
    Closed,
    Flooded,
}

/// A request whose response is still being read.
struct UnderWay {
    carries: Option<Arc<Entry>>,
    status: Option<u16>,
}

/// A connection over HTTP that records nothing.
pub(in crate::client) struct Posts {
    exchanger: Arc<Exchanger>,
    told: UnboundedReceiver<Told>,
    outgoing: VecDeque<Vec<u8>>,
    under_way: BTreeMap<usize, UnderWay>,
    /// The number of lines in flight that are not JSON: nothing is sent after one, so that it is known which line
    /// ended the server.
    broken: usize,
    /// The ids of requests that were repeated once.
    again: BTreeSet<String>,
    ready: VecDeque<Frame>,
    /// Whether the HTTP response to a request ended without a JSON-RPC response.
    silent: bool,
    over: Option<Over>,
}

impl std::fmt::Debug for Posts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Posts")
            .field("under_way", &self.under_way.len())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

impl Posts {
    pub(in crate::client) fn new(order: PostsOrder) -> Self {
        let (tell, told) = unbounded_channel();
        let keeping = Keeping {
            limits: Limits { answers: ANSWERS, ..Limits::default() },
            tap: Some(Arc::new(move |entry| show(&tell, entry))),
            passing: true,
            ..Keeping::default()
        };
        let record = Arc::new(Record::new(keeping));
        let exchanger = Arc::new(Exchanger::new(order.site, record, order.responder, order.stateless));
        exchanger.mirror(order.mirrored);
        Self {
            exchanger,
            told,
            outgoing: VecDeque::new(),
            under_way: BTreeMap::new(),
            broken: 0,
            again: BTreeSet::new(),
            ready: VecDeque::new(),
            silent: false,
            over: None,
        }
    }

    pub(in crate::client) fn queue(&mut self, line: &[u8]) {
        self.outgoing.push_back(line.to_vec());
    }

    pub(in crate::client) fn over(&self) -> Option<&Over> {
        self.over.as_ref()
    }

    /// The next message of the server; queued lines are sent meanwhile. Does not wait any longer once an HTTP response
    /// has ended without the JSON-RPC response that it should carry.
    pub(in crate::client) async fn next(&mut self, limit: Duration) -> Waited<Frame> {
        let mut allotted = Allotted::new(limit);
        loop {
            self.send_what_may_go().await;
            while let Ok(told) = self.told.try_recv() {
                self.take(told);
            }
            if let Some(frame) = self.ready.pop_front() {
                return Waited::Came(frame);
            }
            if self.over.is_some() {
                return Waited::Closed;
            }
            if allotted.is_over() || std::mem::take(&mut self.silent) {
                return Waited::TimedOut;
            }
            let paused = self.exchanger.record.is_pausing();
            let came = allotted.glance(self.told.recv()).await;
            if paused && came.is_none() {
                // The server asked the client to wait, so this time does not count against it.
                allotted.give_back();
            }
            if let Some(told) = came.flatten() {
                self.take(told);
            }
        }
    }

    async fn send_what_may_go(&mut self) {
        while self.broken == 0
            && let Some(line) = self.outgoing.pop_front()
        {
            let frame = Frame::parse(&line);
            if frame.json().is_none() {
                self.broken += 1;
            }
            self.exchanger.send(frame, None, TAKEN).await;
        }
    }

    fn take(&mut self, told: Told) {
        match told {
            Told::Begun { number, carries } => {
                self.under_way.insert(number, UnderWay { carries, status: None });
            }
            Told::Status { number, status } => {
                if let Some(request) = self.under_way.get_mut(&number) {
                    request.status = Some(status);
                }
            }
            Told::Came(frame) => self.take_frame(frame),
            Told::Ended(end) => self.take_end(&end),
            Told::Closed => {
                self.over.get_or_insert_with(|| Over::Lost("the server closed the connection".to_owned()));
            }
            Told::Flooded => {
                self.over.get_or_insert(Over::Flooded);
            }
        }
    }

    fn take_frame(&mut self, frame: Frame) {
        let Some(value) = frame.json() else {
            // A message beyond a size limit is reported at the end of its response, which identifies the request.
            if !frame.value.as_ref().is_err_and(crate::wire::Damage::is_our_bound) {
                self.ready.push_back(frame);
            }
            return;
        };
        // The server's requests have been answered already.
        if messages(value).all(|message| matches!(Kind::of(message), Kind::Request { .. })) {
            return;
        }
        if value.pointer("/error/code").and_then(Value::as_i64) == Some(HEADER_MISMATCH)
            && let Some(id) = value.get("id").filter(|id| !id.is_null())
        {
            self.ready.push_back(unread(id, "the headers do not fit the body"));
            return;
        }
        self.ready.push_back(frame);
    }

    fn take_end(&mut self, end: &HttpEnd) {
        let Some(request) = self.under_way.remove(&end.number) else { return };
        let Some(carries) = request.carries else { return };
        let Some(message) = carries.sent() else {
            self.broken = self.broken.saturating_sub(1);
            self.take_refusal(request.status);
            return;
        };
        // Over HTTP+SSE a rejected POST has no response on the stream either.
        let not_taken = !self.exchanger.answers_in_place() && request.status.is_none_or(|status| status >= 300);
        let own = message.get("id").filter(|_| matches!(Kind::of(message), Kind::Request { .. }));
        let Some(id) = end.unanswered.as_ref().or(own.filter(|_| not_taken)) else { return };
        if self.take_refusal(request.status) {
            return;
        }
        if let Some(trouble) = end.trouble.as_ref().filter(|_| end.bytes <= MAX_MESSAGE_BYTES) {
            self.take_trouble(trouble, id, &carries);
            return;
        }
        match request.status {
            Some(404) if self.exchanger.session().is_some() => {
                // A request that broke off had a session before.
                let over = if self.again.contains(&id.to_string()) {
                    Over::Lost("the connection broke off, and the server no longer knows the session".to_owned())
                } else {
                    Over::Forgotten
                };
                self.over.get_or_insert(over);
            }
            Some(status) if TOO_LARGE.contains(&status) || status == 403 => {
                self.ready.push_back(unread(id, &format!("HTTP status {status}")));
            }
            Some(status @ 500..) => self.ready.push_back(error(id, -32603, status, &end.text)),
            Some(status @ 300..) => self.ready.push_back(error(id, -32600, status, &end.text)),
            _ if end.bytes > MAX_MESSAGE_BYTES => {
                self.ready.push_back(unread(id, "the response is larger than the client reads"));
            }
            _ => self.silent = true,
        }
    }

    /// Handles a status that applies to all requests; returns whether it is one.
    fn take_refusal(&mut self, status: Option<u16>) -> bool {
        let over = match status {
            Some(429) => Over::Limited,
            Some(401) => Over::Locked,
            _ => return false,
        };
        self.over.get_or_insert(over);
        true
    }

    /// Repeats a request that broke off once, since an idle connection may be closed at any time.
    fn take_trouble(&mut self, trouble: &str, id: &Id, carries: &Arc<Entry>) {
        if let Event::Sent { frame, .. } = &carries.event
            && self.again.insert(id.to_string())
        {
            self.outgoing.push_back(frame.raw.clone());
        } else {
            self.over.get_or_insert_with(|| Over::Lost(trouble.to_owned()));
        }
    }

    /// Ends the session.
    pub(in crate::client) async fn end(self) {
        self.exchanger.end().await;
    }
}

impl Drop for Posts {
    fn drop(&mut self) {
        self.exchanger.abandon();
    }
}

/// Forwards an entry, if it matters here.
fn show(tell: &UnboundedSender<Told>, entry: &Entry) {
    let told = match &entry.event {
        Event::HttpRequest(request) => Told::Begun { number: request.number, carries: request.carries.clone() },
        Event::HttpHead(head) => Told::Status { number: head.number, status: head.status },
        Event::HttpEnd(end) => Told::Ended(end.clone()),
        Event::Received(frame) => Told::Came(frame.clone()),
        Event::Closed | Event::Exited { .. } => Told::Closed,
        Event::Overflow => Told::Flooded,
        _ => return,
    };
    // The receiver may be gone, and then the event is of no use.
    let _unheard = tell.send(told);
}

/// The JSON-RPC error for an HTTP status.
fn error(id: &Id, code: i64, status: u16, text: &str) -> Frame {
    const SHOWN: usize = 300;
    let text: String = text.trim().chars().take(SHOWN).collect();
    let message =
        if text.is_empty() { format!("HTTP status {status}") } else { format!("HTTP status {status}: {text}") };
    Frame::of(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
}

/// An error response whose contents are not judged.
fn unread(id: &Id, why: &str) -> Frame {
    Frame::of(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": why }, "unread": true }))
}
