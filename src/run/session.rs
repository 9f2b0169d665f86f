//! A session: a connection opened in one revision, and the requests made on it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::conductor::Context;
use super::http_failure::{self, HttpFailure};
use super::launch::connect;
use super::reply::ClientResponder;
use crate::client::{Connection, LaunchError, RecordOptions, WaitOutcome};
use crate::spec::{Era, Revision};
use crate::transcript::{Entry, Event, SessionParameters, StepId, Transcript, allows_null_id_response, messages};
use crate::wire::{Frame, FramingError, Id, MessageKind, same_id, same_id_loosely};

/// How long to wait for the right response after one with an altered id.
const LOOSE_ID_WAIT: Duration = Duration::from_millis(100);

/// The share of the startup timeout after which an idle process is abandoned, and the minimum time: a process that
/// waits for a neighbour or a network is idle as well.
const IDLE_SHARE_OF_STARTUP: u32 = 6;
const MIN_IDLE_TIME: Duration = Duration::from_secs(5);

/// The maximum grace time at a shutdown step that a slow startup allows.
const MAX_GRACE: Duration = Duration::from_secs(10);

/// How long a server gets to exit, at least `grace`: a server that starts slowly, or runs on a busy machine, exits
/// slowly as well.
pub(super) fn shutdown_grace_for(grace: Duration, connection: &Connection) -> Duration {
    let startup = connection.first_line().unwrap_or_default();
    grace.max((startup * 3).min(MAX_GRACE))
}

/// A connection opened in one revision.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) revision: Revision,
    pub(super) parameters: SessionParameters,
    /// How to answer the server's requests.
    pub(super) replies: ClientResponder,
    /// The purpose, for the report.
    pub(super) purpose: String,
    /// The number of consecutive requests that timed out.
    pub(super) unanswered: usize,
    /// Whether no right response followed an altered one: do not wait again.
    skip_loose_wait: bool,
    /// Pairs of opening request and tool name that yielded nothing for a case, not to be tried again.
    pub(super) fruitless_requests: BTreeSet<(String, String)>,
    /// How much longer a request may take while the process has not written anything yet.
    pub(super) startup_allowance: Duration,
    next_id: i64,
}

/// The reason why a connection could not be opened in a revision.
#[derive(Debug)]
pub(super) enum OpeningFailure {
    /// The process could not be started.
    NotStarted(LaunchError),
    /// It exited, or closed its output, before it answered.
    Ended,
    /// It did not answer in time.
    Silent,
    /// It did not answer, and was idle for this long.
    Idle(Duration),
    /// It exceeded the output limit.
    CutOff,
    /// It wrote a message that cannot be read.
    Unreadable(FramingError),
    /// It echoed the request.
    Echo,
    /// It answered over HTTP without a message.
    Http(HttpFailure),
    /// It answered with an error.
    Error(Value),
    /// It answered with a result that opens no session.
    Unusable(Value),
    /// It supports another revision.
    Other(String),
}

impl OpeningFailure {
    /// The reason, as the end of the sentence "the server ...".
    pub(super) fn describe(&self) -> String {
        match self {
            Self::NotStarted(error) => format!("could not be started: {error}"),
            Self::Ended => "exited before it answered the first message".to_owned(),
            Self::Silent => "did not answer the first message in time".to_owned(),
            Self::Idle(time) => format!("did not answer the first message, and was idle for {time:.0?}"),
            Self::CutOff => {
                "exceeded the output limit before it answered the first message, and was stopped".to_owned()
            }
            Self::Unreadable(damage) => format!("answers the first message with a line that {}", damage.describe()),
            Self::Echo => "echoes its input".to_owned(),
            Self::Http(http_failure) => {
                format!("answers the first message without a message: {}", http_failure.description)
            }
            Self::Error(error) => format!("answers the first message with the error {error}"),
            Self::Unusable(_) => "answers the first message with an unusable result".to_owned(),
            Self::Other(version) => format!("supports {version}"),
        }
    }
}

/// A connection that could not be opened, with the reason.
#[derive(Debug)]
pub(super) struct RejectedOpening {
    pub(super) reason: OpeningFailure,
    pub(super) connection: Option<Connection>,
}

/// The capabilities that the client declares unless a case says otherwise.
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
    /// A session on which nothing has been sent yet.
    pub(super) fn unopened(
        connection: Connection,
        revision: Revision,
        capabilities: Value,
        replies: ClientResponder,
        purpose: String,
    ) -> Self {
        let session_parameters = SessionParameters { client_capabilities: capabilities, opening: None };
        Self {
            connection,
            revision,
            parameters: session_parameters,
            replies,
            purpose,
            unanswered: 0,
            skip_loose_wait: false,
            fruitless_requests: BTreeSet::new(),
            startup_allowance: Duration::ZERO,
            next_id: 0,
        }
    }

    /// Starts a server and opens it in a revision.
    ///
    /// With `insist`, opens a stateless server even if its response to `server/discover` does not list the revision.
    pub(super) async fn open(
        context: &Context,
        revision: Revision,
        capabilities: Value,
        purpose: String,
        insist: bool,
        keeping: RecordOptions,
    ) -> Result<Self, RejectedOpening> {
        let replies = ClientResponder::default();
        let connection = connect(context, revision, &capabilities, &replies, keeping)
            .map_err(|error| RejectedOpening { reason: OpeningFailure::NotStarted(error), connection: None })?;
        let mut session = Self::unopened(connection, revision, capabilities, replies, purpose);
        let limit = context.plan.startup_timeout;
        let opened = match revision.era() {
            Era::Handshake => session.initialize(limit).await,
            Era::Stateless => session.discover(limit, insist).await,
        };
        match opened {
            Ok(()) => {
                context.detect_runner(&session.connection);
                Ok(session)
            }
            Err(reason) => Err(RejectedOpening { reason, connection: Some(session.connection) }),
        }
    }

    async fn initialize(&mut self, limit: Duration) -> Result<(), OpeningFailure> {
        let params = initialize_params(self.revision.as_str(), &self.parameters.client_capabilities);
        let result = self.send_opening("initialize", params, limit).await?;
        match result.get("protocolVersion").and_then(Value::as_str) {
            Some(version) if version == self.revision.as_str() => {}
            Some(version) => return Err(OpeningFailure::Other(version.to_owned())),
            None => return Err(OpeningFailure::Unusable(result)),
        }
        self.parameters.opening = Some(result);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), None).await;
        Ok(())
    }

    async fn discover(&mut self, limit: Duration, insist: bool) -> Result<(), OpeningFailure> {
        let params = json!({ "_meta": stateless_meta(&self.parameters.client_capabilities) });
        let result = match self.send_opening("server/discover", params, limit).await {
            Err(OpeningFailure::Error(error)) if insist => return self.serves_revision_anyway(error, limit).await,
            opened => opened?,
        };
        let Some(versions) = result.get("supportedVersions").and_then(Value::as_array) else {
            return Err(OpeningFailure::Unusable(result));
        };
        let listed = versions.iter().any(|version| version == self.revision.as_str());
        if !listed && !insist {
            let other = versions.iter().filter_map(Value::as_str).max().unwrap_or_default().to_owned();
            return Err(OpeningFailure::Other(other));
        }
        self.parameters.opening = Some(result);
        Ok(())
    }

    /// Whether a server that rejects `server/discover` still serves the revision, as clients may skip that request.
    async fn serves_revision_anyway(&mut self, error: Value, limit: Duration) -> Result<(), OpeningFailure> {
        let id = self.new_id();
        let params = json!({ "_meta": stateless_meta(&self.parameters.client_capabilities) });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params }), None).await;
        let id = json!(id);
        let waited = self.connection.wait(0, limit, |entries| response_to(entries, &id)).await;
        // A result of the stateless era has a `resultType`; one of an older era proves nothing.
        match waited {
            WaitOutcome::Ready(response) if response.pointer("/result/resultType").is_some() => Ok(()),
            _ => Err(OpeningFailure::Error(error)),
        }
    }

    async fn send_opening(&mut self, method: &str, params: Value, limit: Duration) -> Result<Value, OpeningFailure> {
        let id = self.new_id();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }), None).await;
        let echoed = |entries: &[Arc<Entry>]| {
            entries.iter().any(|entry| {
                entry.received().is_some_and(
                    |value| matches!(MessageKind::of(value), MessageKind::Request { method: m, .. } if m == method),
                )
            })
        };
        let id = json!(id);
        let (began, idle) = (Instant::now(), MIN_IDLE_TIME.max(limit / IDLE_SHARE_OF_STARTUP));
        let sign = |entries: &[Arc<Entry>]| if echoed(entries) { Some(None) } else { sign_of(entries, &id).map(Some) };
        let waited = self.connection.wait_for_start(limit, idle, sign).await;
        let settled = match waited {
            WaitOutcome::Ready(None) => return Err(OpeningFailure::Echo),
            WaitOutcome::Ready(Some(sign)) => self.resolve_sign(0, &id, sign).await,
            WaitOutcome::TimedOut => {
                let rejection = http_failure::http_rejection(&self.connection.entries_from(0));
                let waited = began.elapsed().min(limit);
                self.connection.record(Event::TimedOut { waited });
                let silent = if waited < limit { OpeningFailure::Idle(idle) } else { OpeningFailure::Silent };
                return Err(rejection.map_or(silent, OpeningFailure::Http));
            }
            WaitOutcome::Closed if self.connection.has_overflowed() => return Err(OpeningFailure::CutOff),
            WaitOutcome::Closed if self.connection.is_http() => {
                return Err(self.http_failure().map_or(OpeningFailure::Ended, OpeningFailure::Http));
            }
            WaitOutcome::Closed => return Err(OpeningFailure::Ended),
        };
        let response = settled.map_err(|damage| match damage {
            Some(damage) => OpeningFailure::Unreadable(damage),
            None if self.connection.has_overflowed() => OpeningFailure::CutOff,
            None => self.http_failure().map_or(OpeningFailure::Silent, OpeningFailure::Http),
        })?;
        match response.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(OpeningFailure::Error(response.get("error").cloned().unwrap_or_default())),
        }
    }

    /// Resolves the first sign of a response, after waiting briefly for a better one.
    async fn resolve_sign(&mut self, from: usize, id: &Id, sign: ResponseSign) -> Result<Value, Option<FramingError>> {
        if let ResponseSign::Exact(response) = sign {
            return Ok(response);
        }
        // A null id, or one that was never used, may have other causes.
        let damaged = match &sign {
            ResponseSign::Loose(response) => response.get("id").is_some_and(|id| !id.is_null()),
            ResponseSign::Unreadable(_) => true,
            // The HTTP response is complete, so nothing else can arrive.
            ResponseSign::Over => return Err(None),
            ResponseSign::Exact(_) | ResponseSign::Foreign => false,
        };
        if !(self.skip_loose_wait && damaged) {
            let exact = |entries: &[Arc<Entry>]| response_to(entries, id);
            if let WaitOutcome::Ready(response) = self.connection.wait(from, LOOSE_ID_WAIT, exact).await {
                return Ok(response);
            }
            self.skip_loose_wait |= damaged;
        }
        match sign {
            ResponseSign::Exact(response) | ResponseSign::Loose(response) => Ok(response),
            ResponseSign::Unreadable(damage) => Err(Some(damage)),
            ResponseSign::Foreign | ResponseSign::Over => Err(None),
        }
    }

    /// An id that this session has not used.
    pub(super) fn new_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Sends a message.
    pub(super) async fn send(&self, message: &Value, step_id: Option<StepId>) {
        self.send_frame(Frame::from_value(message), step_id).await;
    }

    /// Sends a line unchanged.
    pub(super) async fn send_frame(&self, frame: Frame, step_id: Option<StepId>) {
        self.connection.send(frame, step_id, Duration::from_secs(2)).await;
    }

    /// Fills in missing members of a message: `jsonrpc`, the id of a request, and `_meta` in the stateless era.
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

    /// A request with the `_meta` that the revision requires.
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
                let mut filled = stateless_meta(&self.parameters.client_capabilities);
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

    /// Waits for the response to an id among the entries from a position on. A response that cannot be read, or whose
    /// id belongs to no request, counts as missing, but without waiting any longer.
    pub(super) async fn wait_for_response(&mut self, from: usize, id: &Id, limit: Duration) -> WaitOutcome<Value> {
        let soon = limit.min(LOOSE_ID_WAIT);
        // A response with an unknown id may belong to the preceding message.
        let known = self.connection.entries_from(0);
        let after_unanswerable = allows_null_id_response(known.get(..from).unwrap_or_default());
        let sign = |entries: &[Arc<Entry>]| {
            if !after_unanswerable {
                return sign_of(entries, id);
            }
            let copy = || find_response(entries, |got| !got.is_null() && same_id_loosely(id, got));
            let own = response_to(entries, id).map(ResponseSign::Exact).or_else(|| copy().map(ResponseSign::Loose));
            own.or_else(|| is_over(entries, id).then_some(ResponseSign::Over))
        };
        let mut waited = self.connection.wait(from, soon, sign).await;
        if matches!(waited, WaitOutcome::TimedOut) && soon < limit {
            let known = self.connection.entries_from(0);
            let sign = |entries: &[Arc<Entry>]| {
                sign(entries).or_else(|| has_foreign_response(entries, &known).then_some(ResponseSign::Foreign))
            };
            waited = self.connection.wait(from, limit.saturating_sub(soon), sign).await;
        }
        let waited = match waited {
            WaitOutcome::Ready(sign) => match self.resolve_sign(from, id, sign).await {
                Ok(response) => WaitOutcome::Ready(response),
                Err(_) => return WaitOutcome::TimedOut,
            },
            WaitOutcome::TimedOut => WaitOutcome::TimedOut,
            WaitOutcome::Closed => WaitOutcome::Closed,
        };
        self.note_wait(waited, limit)
    }

    /// Updates the counters after waiting for a response.
    fn note_wait(&mut self, waited: WaitOutcome<Value>, limit: Duration) -> WaitOutcome<Value> {
        match &waited {
            WaitOutcome::Ready(_) => self.unanswered = 0,
            WaitOutcome::TimedOut => {
                self.connection.record(Event::TimedOut { waited: limit });
                self.unanswered += 1;
            }
            WaitOutcome::Closed => {}
        }
        waited
    }

    /// The HTTP response that arrived instead of a message.
    fn http_failure(&self) -> Option<HttpFailure> {
        http_failure::http_failure(&self.connection.entries_from(0))
    }

    /// Sends a request of the session itself and waits for the response.
    pub(super) async fn request(&mut self, method: &str, params: Value, limit: Duration) -> WaitOutcome<Value> {
        let message = self.complete(&json!({ "method": method, "params": params }), true, None);
        let from = self.connection.len();
        self.send(&message, None).await;
        self.wait_for_response(from, &message["id"], limit).await
    }

    /// The transcript from a position on.
    pub(super) fn transcript_from(&self, position: usize) -> Transcript {
        Transcript { entries: self.connection.entries_from(position), session_parameters: self.parameters.clone() }
    }
}

/// A sign that a request was answered.
enum ResponseSign {
    /// A response with its id.
    Exact(Value),
    /// A response with an altered copy of its id.
    Loose(Value),
    /// A message that cannot be read.
    Unreadable(FramingError),
    /// A response with an id that no request has.
    Foreign,
    /// The HTTP response ended without a JSON-RPC response.
    Over,
}

/// Whether there is a response with an id that nothing sent contains, in any form.
fn has_foreign_response(entries: &[Arc<Entry>], known: &[Arc<Entry>]) -> bool {
    let carried = |entry: &Arc<Entry>, got: &Id| match &entry.event {
        Event::Sent { frame, .. } => match frame.json() {
            Some(value) => {
                let mut ids = messages(value).filter_map(|message| message.get("id"));
                ids.any(|id| same_id(id, got) || same_id_loosely(id, got))
            }
            // A lenient server may find an id in a line that is not a message.
            None => String::from_utf8_lossy(&frame.raw).contains(&got.to_string()),
        },
        _ => false,
    };
    find_response(entries, |got| !known.iter().chain(entries).any(|entry| carried(entry, got))).is_some()
}

/// The best sign of a response among the entries.
fn sign_of(entries: &[Arc<Entry>], id: &Id) -> Option<ResponseSign> {
    let unreadable = || {
        entries.iter().find_map(|entry| match &entry.event {
            Event::Received(Frame { value: Err(damage), .. }) if damage.is_own_limit() => Some(damage.clone()),
            _ => None,
        })
    };
    let loose = || loose_response_to(entries, id).map(ResponseSign::Loose);
    let over = || is_over(entries, id).then_some(ResponseSign::Over);
    let exact = response_to(entries, id).map(ResponseSign::Exact);
    exact.or_else(loose).or_else(|| unreadable().map(ResponseSign::Unreadable)).or_else(over)
}

/// Whether the HTTP response to a request ended without a JSON-RPC response.
fn is_over(entries: &[Arc<Entry>], id: &Id) -> bool {
    entries.iter().any(|entry| match &entry.event {
        Event::HttpEnd(end) => end.unanswered.as_ref().is_some_and(|own| same_id(own, id)),
        _ => false,
    })
}

/// The response with exactly this id.
fn response_to(entries: &[Arc<Entry>], id: &Id) -> Option<Value> {
    find_response(entries, |got| same_id(got, id))
}

/// A response with an altered copy of the id: another type, or null if nothing else is pending.
fn loose_response_to(entries: &[Arc<Entry>], id: &Id) -> Option<Value> {
    let sent = entries.iter().filter(|entry| entry.sent().is_some()).count();
    let others: Vec<&Value> = bodies_for_others(entries, id);
    find_response_in(entries, |message, got| {
        same_id_loosely(id, got)
            && (!got.is_null() || sent <= 1 && !others.iter().any(|other| std::ptr::eq(*other, message)))
    })
}

/// The bodies of HTTP responses to other requests: the entry for the end of an HTTP response directly follows its
/// body and identifies the request.
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
        match MessageKind::of(message) {
            MessageKind::Response { id: Some(id) } if wanted(message, id) => Some(message.clone()),
            _ => None,
        }
    })
}
