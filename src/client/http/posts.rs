//! A lean connection over HTTP: lines out, each as a POST, and frames in, with nothing kept of either.
//!
//! What an HTTP status says in place of a message becomes the message that says the same, so that whoever calls by
//! the thousand need not know of statuses. What ends the calling altogether is told apart: a server that is gone,
//! one that has forgotten the session, and one that wants to be asked less, or by somebody else.

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

/// How long a message that nothing answers is waited for to arrive.
const TAKEN: Duration = Duration::from_secs(2);
/// How many requests of the server are answered.
const ANSWERS: usize = 2_000;
/// Statuses of a request that is larger than a server takes: a bound of its own, which is nobody's fault.
const TOO_LARGE: [u16; 3] = [413, 414, 431];
/// The error of a header that does not say what the body says. What is mirrored is ours, so it tells nothing of
/// the arguments.
const HEADER_MISMATCH: i64 = -32020;

/// What it takes to connect.
#[derive(Debug)]
pub struct PostsOrder {
    /// Where the server is.
    pub site: Arc<Site>,
    /// Whether the connection is of the era without a handshake.
    pub stateless: bool,
    /// What answers the server's requests.
    pub responder: Responder,
    /// The parameters of tools that are mirrored into headers.
    pub mirrored: Mirrored,
}

/// Why nothing more comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// Nobody takes a connection, or a request broke off without an answer, as it did when it was made again.
    Lost(String),
    /// The session is not known any more.
    Forgotten,
    /// The server wants to be asked less.
    Limited,
    /// The server asks for a token.
    Locked,
    /// It writes more than is read.
    Flooded,
}

impl Over {
    /// What came of it, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Lost(trouble) => trouble.clone(),
            Self::Forgotten => "the server does not know the session any more (HTTP status 404)".to_owned(),
            Self::Limited => {
                "the server limits how often it is asked (HTTP status 429): give --max-rate, or lift the limit"
                    .to_owned()
            }
            Self::Locked => "the server asks for a token (HTTP status 401)".to_owned(),
            Self::Flooded => "the server writes more than is read".to_owned(),
        }
    }
}

/// What the record tells.
enum Told {
    Begun { number: usize, carries: Option<Arc<Entry>> },
    Status { number: usize, status: u16 },
    Came(Frame),
    Ended(Box<HttpEnd>),
    Closed,
    Flooded,
}

/// A request that is under way.
struct UnderWay {
    carries: Option<Arc<Entry>>,
    status: Option<u16>,
}

/// A connection over HTTP that keeps nothing.
pub(in crate::client) struct Posts {
    exchanger: Arc<Exchanger>,
    told: UnboundedReceiver<Told>,
    outgoing: VecDeque<Vec<u8>>,
    under_way: BTreeMap<usize, UnderWay>,
    /// How many lines are under way that are no JSON: nothing is sent behind one, so that it is known which ended
    /// the server.
    broken: usize,
    /// What was made once more, by its id.
    again: BTreeSet<String>,
    ready: VecDeque<Frame>,
    /// Whether the answer to a request ended without a response.
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

    /// The next message of the server, while what is put up is sent. An answer that ended without the response that
    /// it was to bring is one that nobody waits for.
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
                // The server asked us to wait, so the time is not counted against it.
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
                self.over.get_or_insert_with(|| Over::Lost("the connection of the server was closed".to_owned()));
            }
            Told::Flooded => {
                self.over.get_or_insert(Over::Flooded);
            }
        }
    }

    fn take_frame(&mut self, frame: Frame) {
        let Some(value) = frame.json() else {
            // What is more than we read is told by the end of its answer, which says whose it is.
            if !frame.value.as_ref().is_err_and(crate::wire::Damage::is_our_bound) {
                self.ready.push_back(frame);
            }
            return;
        };
        // What the server asks for has been answered.
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
        // By the older transport a POST that was not taken draws no answer on the stream either.
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
                    Over::Lost("the connection broke off, and the session is not known any more".to_owned())
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
                self.ready.push_back(unread(id, "the answer is more than is read"));
            }
            _ => self.silent = true,
        }
    }

    /// Takes note of a status that says something of all requests; says whether it does.
    fn take_refusal(&mut self, status: Option<u16>) -> bool {
        let over = match status {
            Some(429) => Over::Limited,
            Some(401) => Over::Locked,
            _ => return false,
        };
        self.over.get_or_insert(over);
        true
    }

    /// A request broke off: made once more, since a connection that lay idle may be closed at any time.
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

/// Hands on what is of use of an entry.
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
    // Whoever listened may be gone, and with them the use of it.
    let _unheard = tell.send(told);
}

/// The response that says what a status says.
fn error(id: &Id, code: i64, status: u16, text: &str) -> Frame {
    const SHOWN: usize = 300;
    let text: String = text.trim().chars().take(SHOWN).collect();
    let message =
        if text.is_empty() { format!("HTTP status {status}") } else { format!("HTTP status {status}: {text}") };
    Frame::of(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
}

/// A response that is one, and of which nothing is judged.
fn unread(id: &Id, why: &str) -> Frame {
    Frame::of(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": why }, "unread": true }))
}
