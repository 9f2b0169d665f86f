//! A session: a connection that has been opened in one revision, and how requests are made on it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::astray::{self, Astray};
use super::conduct::Context;
use super::launch::connect;
use super::reply::Replies;
use crate::client::{Connection, Keeping, LaunchError, Waited};
use crate::spec::{Era, Revision};
use crate::transcript::{Entry, Event, Mark, Terms, Transcript, follows_unanswerable, messages};
use crate::wire::{Damage, Frame, Id, Kind, same_id, same_id_loosely};

/// How long a response whose id is a damaged copy waits for a better one.
const LOOSE_PATIENCE: Duration = Duration::from_millis(100);

/// The share of the time for starting after which a process that does nothing at all is given up, and the
/// least time that it gets: what waits for a neighbour or a network is idle as well.
const IDLE_SHARE: u32 = 6;
const IDLE_LEAST: Duration = Duration::from_secs(5);

/// The longest that a server is given at a step of its shutdown because it took long to start.
const LONGEST_GRACE: Duration = Duration::from_secs(10);

/// How long a server is given to end, at least `grace`: what takes long to start, or runs on a busy
/// machine, takes long to end as well.
pub(super) fn unhurried(grace: Duration, connection: &Connection) -> Duration {
    let startup = connection.first_line().unwrap_or_default();
    grace.max((startup * 3).min(LONGEST_GRACE))
}

/// A connection that has been opened in one revision.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) revision: Revision,
    pub(super) terms: Terms,
    /// How what the server asks for is answered.
    pub(super) replies: Replies,
    /// What it is for, in words.
    pub(super) purpose: String,
    /// Requests in a row that ran into their timeout.
    pub(super) unanswered: usize,
    /// Whether a better answer than the first sign of one was waited for in vain: it is not waited for again.
    settled: bool,
    /// What was asked of a tool in vain: how the cases that did so begin, and the name of the tool.
    pub(super) barren: BTreeSet<(String, String)>,
    /// How long past its timeout a request waits while the process has not written anything yet.
    pub(super) starting: Duration,
    next_id: i64,
}

/// Why a connection could not be opened in a revision.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The process could not be started.
    NotStarted(LaunchError),
    /// It ended, or closed its output, before it answered.
    Ended,
    /// It did not answer in time.
    Silent,
    /// It did not answer, nor did it do anything at all for this long.
    Idle(Duration),
    /// It wrote more than is kept.
    CutOff,
    /// It wrote a message that we do not read.
    Unreadable(Damage),
    /// It wrote back what we sent.
    Echo,
    /// It answered by HTTP alone, with this status and these words.
    Http(Astray),
    /// It answered with an error.
    Error(Value),
    /// It answered with something that opens nothing.
    Unusable(Value),
    /// It speaks another revision.
    Other(String),
}

impl Refusal {
    /// What came of it, as the end of the sentence "the server ...".
    pub(super) fn describe(&self) -> String {
        match self {
            Self::NotStarted(error) => format!("could not be started: {error}"),
            Self::Ended => "ended before it answered the first message".to_owned(),
            Self::Silent => "did not answer the first message in time".to_owned(),
            Self::Idle(time) => format!("did not answer the first message, nor do anything for {time:.0?}"),
            Self::CutOff => "wrote more than is kept before it answered the first message, and was cut off".to_owned(),
            Self::Unreadable(damage) => format!("answers the first message with a line that {}", damage.describe()),
            Self::Echo => "writes back what it is sent".to_owned(),
            Self::Http(astray) => format!("answers the first message with no message: {}", astray.words),
            Self::Error(error) => format!("answers the first message with the error {error}"),
            Self::Unusable(_) => "answers the first message with a result that opens nothing".to_owned(),
            Self::Other(version) => format!("speaks {version}"),
        }
    }
}

/// A connection that was not opened: why, and what was recorded.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) reason: Refusal,
    pub(super) connection: Option<Connection>,
}

/// The capabilities that the client declares where a case does not say otherwise.
pub(super) fn full_capabilities(revision: Revision) -> Value {
    let roots = json!({ "listChanged": true });
    match revision {
        Revision::V2026_07_28 => {
            json!({ "roots": {}, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } })
        }
        Revision::V2025_11_25 => {
            json!({ "roots": roots, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } })
        }
        Revision::V2025_06_18 => json!({ "roots": roots, "sampling": {}, "elicitation": {} }),
        _ => json!({ "roots": roots, "sampling": {} }),
    }
}

fn client_info() -> Value {
    json!({ "name": "mcp-conformance", "version": env!("CARGO_PKG_VERSION") })
}

/// The `_meta` of a stateless request.
pub(super) fn stateless_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.as_str(),
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The params of `initialize`.
pub(super) fn initialize_params(revision: &str, capabilities: &Value) -> Value {
    json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client_info() })
}

impl Session {
    /// A session in which nothing has been sent yet.
    pub(super) fn unopened(
        connection: Connection,
        revision: Revision,
        capabilities: Value,
        replies: Replies,
        purpose: String,
    ) -> Self {
        let terms = Terms { client_capabilities: capabilities, opening: None };
        Self {
            connection,
            revision,
            terms,
            replies,
            purpose,
            unanswered: 0,
            settled: false,
            barren: BTreeSet::new(),
            starting: Duration::ZERO,
            next_id: 0,
        }
    }

    /// Starts a server and opens it in a revision.
    ///
    /// `insist` opens a stateless server also where its answer to `server/discover` leaves the revision out.
    pub(super) async fn open(
        context: &Context,
        revision: Revision,
        capabilities: Value,
        purpose: String,
        insist: bool,
        keeping: Keeping,
    ) -> Result<Self, Refused> {
        let replies = Replies::default();
        let connection = connect(context, revision, &capabilities, &replies, keeping)
            .map_err(|error| Refused { reason: Refusal::NotStarted(error), connection: None })?;
        let mut session = Self::unopened(connection, revision, capabilities, replies, purpose);
        let limit = context.plan.startup_timeout;
        let opened = match revision.era() {
            Era::Handshake => session.initialize(limit).await,
            Era::Stateless => session.discover(limit, insist).await,
        };
        match opened {
            Ok(()) => {
                context.see_runner(&session.connection);
                Ok(session)
            }
            Err(reason) => Err(Refused { reason, connection: Some(session.connection) }),
        }
    }

    async fn initialize(&mut self, limit: Duration) -> Result<(), Refusal> {
        let params = initialize_params(self.revision.as_str(), &self.terms.client_capabilities);
        let result = self.opening("initialize", params, limit).await?;
        match result.get("protocolVersion").and_then(Value::as_str) {
            Some(version) if version == self.revision.as_str() => {}
            Some(version) => return Err(Refusal::Other(version.to_owned())),
            None => return Err(Refusal::Unusable(result)),
        }
        self.terms.opening = Some(result);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), None).await;
        Ok(())
    }

    async fn discover(&mut self, limit: Duration, insist: bool) -> Result<(), Refusal> {
        let params = json!({ "_meta": stateless_meta(&self.terms.client_capabilities) });
        let result = match self.opening("server/discover", params, limit).await {
            Err(Refusal::Error(error)) if insist => return self.serves_anyway(error, limit).await,
            opened => opened?,
        };
        let Some(versions) = result.get("supportedVersions").and_then(Value::as_array) else {
            return Err(Refusal::Unusable(result));
        };
        let listed = versions.iter().any(|version| version == self.revision.as_str());
        if !listed && !insist {
            let other = versions.iter().filter_map(Value::as_str).max().unwrap_or_default().to_owned();
            return Err(Refusal::Other(other));
        }
        self.terms.opening = Some(result);
        Ok(())
    }

    /// Whether a server that refuses `server/discover` serves the revision all the same, as it may be asked to.
    async fn serves_anyway(&mut self, error: Value, limit: Duration) -> Result<(), Refusal> {
        let id = self.new_id();
        let params = json!({ "_meta": stateless_meta(&self.terms.client_capabilities) });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params }), None).await;
        let id = json!(id);
        let waited = self.connection.wait(0, limit, |entries| response_to(entries, &id)).await;
        // A result of the stateless era tells itself by its type; one of the older era proves nothing.
        match waited {
            Waited::Came(response) if response.pointer("/result/resultType").is_some() => Ok(()),
            _ => Err(Refusal::Error(error)),
        }
    }

    async fn opening(&mut self, method: &str, params: Value, limit: Duration) -> Result<Value, Refusal> {
        let id = self.new_id();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }), None).await;
        let echoed = |entries: &[Arc<Entry>]| {
            entries.iter().any(|entry| {
                entry
                    .received()
                    .is_some_and(|value| matches!(Kind::of(value), Kind::Request { method: m, .. } if m == method))
            })
        };
        let id = json!(id);
        let (began, idle) = (Instant::now(), IDLE_LEAST.max(limit / IDLE_SHARE));
        let sign = |entries: &[Arc<Entry>]| if echoed(entries) { Some(None) } else { sign_of(entries, &id).map(Some) };
        let waited = self.connection.wait_for_start(limit, idle, sign).await;
        let settled = match waited {
            Waited::Came(None) => return Err(Refusal::Echo),
            Waited::Came(Some(sign)) => self.settle(0, &id, sign).await,
            Waited::TimedOut => {
                let said = astray::refused(&self.connection.entries_from(0));
                let waited = began.elapsed().min(limit);
                self.connection.note(Event::TimedOut { waited });
                let silent = if waited < limit { Refusal::Idle(idle) } else { Refusal::Silent };
                return Err(said.map_or(silent, Refusal::Http));
            }
            Waited::Closed if self.connection.is_cut_off() => return Err(Refusal::CutOff),
            Waited::Closed if self.connection.is_http() => {
                return Err(self.astray().map_or(Refusal::Ended, Refusal::Http));
            }
            Waited::Closed => return Err(Refusal::Ended),
        };
        let response = settled.map_err(|damage| match damage {
            Some(damage) => Refusal::Unreadable(damage),
            None if self.connection.is_cut_off() => Refusal::CutOff,
            None => self.astray().map_or(Refusal::Silent, Refusal::Http),
        })?;
        match response.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(Refusal::Error(response.get("error").cloned().unwrap_or_default())),
        }
    }

    /// Makes of the first sign of an answer what it comes to, once a better one has had its chance.
    async fn settle(&mut self, from: usize, id: &Id, sign: Sign) -> Result<Value, Option<Damage>> {
        if let Sign::Exact(response) = sign {
            return Ok(response);
        }
        // An id of null, or one that nobody used, may have its own reasons.
        let damaged = match &sign {
            Sign::Loose(response) => response.get("id").is_some_and(|id| !id.is_null()),
            Sign::Unreadable(_) => true,
            // Nothing else can come: the answer to the request is over.
            Sign::Over => return Err(None),
            Sign::Exact(_) | Sign::Foreign => false,
        };
        if !(self.settled && damaged) {
            let exact = |entries: &[Arc<Entry>]| response_to(entries, id);
            if let Waited::Came(response) = self.connection.wait(from, LOOSE_PATIENCE, exact).await {
                return Ok(response);
            }
            self.settled |= damaged;
        }
        match sign {
            Sign::Exact(response) | Sign::Loose(response) => Ok(response),
            Sign::Unreadable(damage) => Err(Some(damage)),
            Sign::Foreign | Sign::Over => Err(None),
        }
    }

    /// An id that this session has not used.
    pub(super) fn new_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Sends a message.
    pub(super) async fn send(&self, message: &Value, mark: Option<Mark>) {
        self.send_frame(Frame::of(message), mark).await;
    }

    /// Sends a line as it stands.
    pub(super) async fn send_frame(&self, frame: Frame, mark: Option<Mark>) {
        self.connection.send(frame, mark, Duration::from_secs(2)).await;
    }

    /// Fills in what a message leaves out: `jsonrpc`, an id for a request, and in the stateless era `_meta`.
    pub(super) fn complete(&mut self, message: &Value, is_request: bool, meta: Option<&Value>) -> Value {
        let Value::Object(given) = message else { return message.clone() };
        let mut whole = Map::new();
        whole.insert("jsonrpc".to_owned(), given.get("jsonrpc").cloned().unwrap_or_else(|| json!("2.0")));
        if is_request && !given.contains_key("id") {
            whole.insert("id".to_owned(), json!(self.new_id()));
        }
        for (name, value) in given {
            whole.insert(name.clone(), value.clone());
        }
        if is_request && self.revision.era() == Era::Stateless {
            self.add_meta(&mut whole, meta);
        }
        Value::Object(whole)
    }

    /// A request with the `_meta` that the revision asks for.
    pub(super) fn with_meta(&self, request: Value) -> Value {
        let Value::Object(mut request) = request else { return request };
        if self.revision.era() == Era::Stateless {
            self.add_meta(&mut request, None);
        }
        Value::Object(request)
    }

    fn add_meta(&self, message: &mut Map<String, Value>, meta: Option<&Value>) {
        let filled = match meta {
            Some(Value::Bool(false)) => return,
            Some(meta) => meta.clone(),
            None => {
                let mut filled = stateless_meta(&self.terms.client_capabilities);
                if let Some(Value::Object(own)) = message.get("params").and_then(|params| params.get("_meta")) {
                    for (name, value) in own {
                        filled[name] = value.clone();
                    }
                }
                filled
            }
        };
        let params = message.entry("params").or_insert_with(|| json!({}));
        if let Value::Object(params) = params {
            params.insert("_meta".to_owned(), filled);
        }
    }

    /// Waits for the response to an id among the entries from a position on. One that is beyond what we
    /// read, or that came under an id of nobody's, is one that never came, but is not waited for.
    pub(super) async fn answer(&mut self, from: usize, id: &Id, limit: Duration) -> Waited<Value> {
        let soon = limit.min(LOOSE_PATIENCE);
        // What was sent right before may have an answer under no id of its own, which is not this one's.
        let known = self.connection.entries_from(0);
        let apart = follows_unanswerable(known.get(..from).unwrap_or_default());
        let sign = |entries: &[Arc<Entry>]| {
            if !apart {
                return sign_of(entries, id);
            }
            let copy = || find_response(entries, |got| !got.is_null() && same_id_loosely(id, got));
            let own = response_to(entries, id).map(Sign::Exact).or_else(|| copy().map(Sign::Loose));
            own.or_else(|| is_over(entries, id).then_some(Sign::Over))
        };
        let mut waited = self.connection.wait(from, soon, sign).await;
        if matches!(waited, Waited::TimedOut) && soon < limit {
            let known = self.connection.entries_from(0);
            let sign = |entries: &[Arc<Entry>]| {
                sign(entries).or_else(|| has_foreign_response(entries, &known).then_some(Sign::Foreign))
            };
            waited = self.connection.wait(from, limit.saturating_sub(soon), sign).await;
        }
        let waited = match waited {
            Waited::Came(sign) => match self.settle(from, id, sign).await {
                Ok(response) => Waited::Came(response),
                Err(_) => return Waited::TimedOut,
            },
            Waited::TimedOut => Waited::TimedOut,
            Waited::Closed => Waited::Closed,
        };
        self.told(waited, limit)
    }

    /// Takes note of how a wait for an answer ended.
    fn told(&mut self, waited: Waited<Value>, limit: Duration) -> Waited<Value> {
        match &waited {
            Waited::Came(_) => self.unanswered = 0,
            Waited::TimedOut => {
                self.connection.note(Event::TimedOut { waited: limit });
                self.unanswered += 1;
            }
            Waited::Closed => {}
        }
        waited
    }

    /// What came instead of a message over HTTP.
    fn astray(&self) -> Option<Astray> {
        astray::astray(&self.connection.entries_from(0))
    }

    /// Makes a request of the session's own and waits for its answer.
    pub(super) async fn request(&mut self, method: &str, params: Value, limit: Duration) -> Waited<Value> {
        let message = self.complete(&json!({ "method": method, "params": params }), true, None);
        let from = self.connection.len();
        self.send(&message, None).await;
        self.answer(from, &message["id"], limit).await
    }

    /// What was recorded so far, from a position on.
    pub(super) fn transcript_from(&self, position: usize) -> Transcript {
        Transcript { entries: self.connection.entries_from(position), terms: self.terms.clone() }
    }
}

/// A sign that a request was answered.
enum Sign {
    /// A response that carries its id.
    Exact(Value),
    /// A response that carries a damaged copy of its id.
    Loose(Value),
    /// A message that is beyond what we read.
    Unreadable(Damage),
    /// A response under an id that no request carries.
    Foreign,
    /// The HTTP answer to the request ended without a response.
    Over,
}

/// Whether there is a response under an id that nothing we sent carries, in whatever form.
fn has_foreign_response(entries: &[Arc<Entry>], known: &[Arc<Entry>]) -> bool {
    let carried = |entry: &Arc<Entry>, got: &Id| match &entry.event {
        Event::Sent { frame, .. } => match frame.json() {
            Some(value) => {
                let mut ids = messages(value).filter_map(|message| message.get("id"));
                ids.any(|id| same_id(id, got) || same_id_loosely(id, got))
            }
            // A lenient server may find an id in a line that is no message.
            None => String::from_utf8_lossy(&frame.raw).contains(&got.to_string()),
        },
        _ => false,
    };
    find_response(entries, |got| !known.iter().chain(entries).any(|entry| carried(entry, got))).is_some()
}

/// The best sign of an answer among the entries.
fn sign_of(entries: &[Arc<Entry>], id: &Id) -> Option<Sign> {
    let unreadable = || {
        entries.iter().find_map(|entry| match &entry.event {
            Event::Received(Frame { value: Err(damage), .. }) if damage.is_our_bound() => Some(damage.clone()),
            _ => None,
        })
    };
    let loose = || loose_response_to(entries, id).map(Sign::Loose);
    let over = || is_over(entries, id).then_some(Sign::Over);
    let exact = response_to(entries, id).map(Sign::Exact);
    exact.or_else(loose).or_else(|| unreadable().map(Sign::Unreadable)).or_else(over)
}

/// Whether the HTTP answer to a request ended without a response to it.
fn is_over(entries: &[Arc<Entry>], id: &Id) -> bool {
    entries.iter().any(|entry| match &entry.event {
        Event::HttpEnd(end) => end.unanswered.as_ref().is_some_and(|own| same_id(own, id)),
        _ => false,
    })
}

/// The response that carries exactly this id.
fn response_to(entries: &[Arc<Entry>], id: &Id) -> Option<Value> {
    find_response(entries, |got| same_id(got, id))
}

/// A response that carries a damaged copy of the id: another type, or null while nothing else is open.
fn loose_response_to(entries: &[Arc<Entry>], id: &Id) -> Option<Value> {
    let sent = entries.iter().filter(|entry| entry.sent().is_some()).count();
    let others: Vec<&Value> = bodies_for_others(entries, id);
    find_response_in(entries, |message, got| {
        same_id_loosely(id, got)
            && (!got.is_null() || sent <= 1 && !others.iter().any(|other| std::ptr::eq(*other, message)))
    })
}

/// The bodies over HTTP that answer another request than the one with this id: the end of an answer stands right
/// behind its body, and tells which request it belongs to.
fn bodies_for_others<'a>(entries: &'a [Arc<Entry>], id: &Id) -> Vec<&'a Value> {
    let is_own = |number: usize| {
        entries.iter().any(|entry| match &entry.event {
            Event::HttpRequest(request) if request.number == number => {
                let carried = request.carries.as_ref().and_then(|entry| entry.sent());
                carried.into_iter().flat_map(messages).any(|message| message.get("id").is_some_and(|own| own == id))
            }
            _ => false,
        })
    };
    entries
        .windows(2)
        .filter_map(|pair| match &pair[1].event {
            Event::HttpEnd(end) if !is_own(end.number) => pair[0].received(),
            _ => None,
        })
        .collect()
}

fn find_response(entries: &[Arc<Entry>], wanted: impl Fn(&Id) -> bool) -> Option<Value> {
    find_response_in(entries, |_, id| wanted(id))
}

fn find_response_in(entries: &[Arc<Entry>], wanted: impl Fn(&Value, &Id) -> bool) -> Option<Value> {
    entries.iter().rev().filter_map(|entry| entry.received()).flat_map(messages).find_map(|message| {
        match Kind::of(message) {
            Kind::Response { id: Some(id) } if wanted(message, id) => Some(message.clone()),
            _ => None,
        }
    })
}
