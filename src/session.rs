//! A session: a connection opened in one revision, and the requests made on it.
//!
//! The files below it connect to the server and open sessions; this one sends requests and waits for responses. What
//! the requests are for is decided by those who hold the session.

mod client_parameters;
mod http_failure;
mod launch;
mod opening;
mod reply;
mod response_sign;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

pub(crate) use self::client_parameters::{full_capabilities, initialize_params, stateless_meta};
use self::http_failure::{HttpFailure, http_failure};
pub(crate) use self::launch::{StartConditions, connect_unrecorded};
pub(crate) use self::opening::{OpeningFailure, RejectedOpening};
pub(crate) use self::reply::{ClientResponder, Reply, ReplyChoice, form_content, form_schema};
use self::response_sign::{
    ResponseSign, answer_time_among_others, find_response, has_foreign_response, is_altered_copy, is_over,
    is_overtaken, malformed_response_to, messages_ahead, messages_sent, response_to, sign_of, usual_answer_time,
};
use crate::client::{Connection, WaitOutcome};
use crate::context::{AnswerTimes, RequestKind, SessionPace};
use crate::limits::{
    LOOSE_ID_WAIT, MAX_MESSAGES_AHEAD, MAX_UNANSWERED, OVERTAKEN_WAIT, SEND_TIMEOUT, SLOW_ANSWER,
    SLOW_ANSWERS_PER_OPENING, STARTING_IDLE_TIME, TIMEOUT_AFTER_UNANSWERED,
};
use crate::spec::{Era, Revision};
use crate::transcript::{Entry, Event, SessionParameters, StepId, Transcript, allows_null_id_response, messages};
use crate::wire::{Frame, FramingError, Id, is_lost_id, same_id, same_id_loosely};

/// A connection opened in one revision.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) revision: Revision,
    pub(crate) parameters: SessionParameters,
    /// How to answer the server's requests.
    pub(crate) replies: ClientResponder,
    /// The purpose, for the report.
    pub(crate) purpose: String,
    /// The number of consecutive requests that timed out.
    pub(crate) unanswered: usize,
    /// Whether the server opened it without naming a version of the protocol, so that it may be of any revision.
    pub(crate) has_unknown_revision: bool,
    /// Whether no right response followed an altered one: do not wait again.
    skip_loose_wait: bool,
    /// Pairs of opening request and tool name that yielded nothing for a case, not to be tried again.
    pub(crate) fruitless_requests: BTreeSet<(String, String)>,
    /// What all sessions of the revision know about the server's answers.
    answer_times: Arc<AnswerTimes>,
    /// What its first slow answers show.
    pace: SessionPace,
    /// The fastest answer on this session.
    pub(crate) fastest: Option<Duration>,
    /// How much longer a request may take while the process has not written anything yet.
    pub(crate) startup_allowance: Duration,
    /// How long after its start a process that has not written anything yet is waited for while it is busy.
    pub(crate) startup_limit: Duration,
    /// Whether the server serves one session at a time, so that a case ends those that it opens.
    pub(crate) is_only: bool,
    next_id: i64,
}

impl Session {
    /// A session on which nothing has been sent yet.
    fn unopened(
        connection: Connection,
        revision: Revision,
        capabilities: Value,
        replies: ClientResponder,
        purpose: String,
        (answer_times, pace): (Arc<AnswerTimes>, SessionPace),
    ) -> Self {
        let session_parameters =
            SessionParameters { client_capabilities: capabilities, ..SessionParameters::default() };
        Self {
            connection,
            revision,
            parameters: session_parameters,
            replies,
            purpose,
            unanswered: 0,
            has_unknown_revision: false,
            skip_loose_wait: false,
            fruitless_requests: BTreeSet::new(),
            answer_times,
            pace,
            fastest: None,
            startup_allowance: Duration::ZERO,
            startup_limit: Duration::ZERO,
            is_only: false,
            next_id: 0,
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
            ResponseSign::Unreadable(_) | ResponseSign::Malformed(_) => true,
            // The HTTP response is complete, so nothing else can arrive.
            ResponseSign::Over => return Err(None),
            ResponseSign::Exact(_) | ResponseSign::Foreign => false,
        };
        if !(self.skip_loose_wait && damaged) {
            let exact = |entries: &[Arc<Entry>]| response_to(entries, id);
            let limit = self.answer_times.at_least_fastest(LOOSE_ID_WAIT);
            if let WaitOutcome::Ready(response) = self.connection.wait(from, limit, exact).await {
                return Ok(response);
            }
            self.skip_loose_wait |= damaged;
        }
        match sign {
            ResponseSign::Exact(response) | ResponseSign::Loose(response) | ResponseSign::Malformed(response) => {
                Ok(response)
            }
            ResponseSign::Unreadable(damage) => Err(Some(damage)),
            ResponseSign::Foreign | ResponseSign::Over => Err(None),
        }
    }

    /// Whether the server no longer answers on this session.
    pub(crate) fn is_unresponsive(&self) -> bool {
        self.unanswered >= MAX_UNANSWERED
    }

    /// How long a response is waited for where `timeout` is usual: longer while the process starts and of a slow server,
    /// shorter once a request has gone unanswered.
    pub(crate) fn response_timeout(&self, timeout: Duration) -> Duration {
        // As long as nothing else is known, the next answer may take as long as the first.
        let first_answer = self.connection.first_line().filter(|_| self.fastest.is_none()).unwrap_or_default();
        let timeout = self.answer_times.extended(timeout, first_answer);
        if self.unanswered > 0 {
            timeout.min(self.answer_times.at_least(TIMEOUT_AFTER_UNANSWERED))
        } else if self.connection.first_line().is_none() {
            timeout + self.startup_allowance
        } else {
            timeout
        }
    }

    /// How much longer a response is waited for than [`Session::response_timeout`] over HTTP, because the messages of all
    /// sessions may be served one after the other.
    pub(crate) fn time_of_messages_ahead(&self) -> Duration {
        self.answer_times.time_of_messages(self.pace.messages_ahead())
    }

    /// How much longer a process that has not written anything yet may be starting. The time counts from its start, so
    /// that several requests are not waited for that long each.
    fn rest_of_start(&self) -> Duration {
        if self.connection.process_id().is_none() || self.connection.first_line().is_some() {
            return Duration::ZERO;
        }
        self.startup_limit.saturating_sub(self.connection.age())
    }

    /// Waits for the response to a request of a kind, at most for the time that is usual for it. Silence that is known
    /// says nothing new about the session.
    pub(crate) async fn wait_for_response_of_kind(
        &mut self,
        kind: &RequestKind,
        from: usize,
        id: &Id,
        timeout: Duration,
    ) -> WaitOutcome<Value> {
        self.wait_on_for_response_of_kind(kind, from, id, timeout, Duration::ZERO).await
    }

    /// As [`Session::wait_for_response_of_kind`], for a response that has been waited for already, together with others.
    pub(crate) async fn wait_on_for_response_of_kind(
        &mut self,
        kind: &RequestKind,
        from: usize,
        id: &Id,
        timeout: Duration,
        already: Duration,
    ) -> WaitOutcome<Value> {
        let mut limit = self.answer_times.limit(kind, self.response_timeout(timeout));
        if self.connection.first_line().is_none() {
            // That a request of the kind is known to go unanswered does not make the process start any faster.
            limit = limit.max(self.startup_allowance.saturating_sub(self.connection.age()));
        }
        // The first of them was waited for as long as its process was starting.
        let start = if self.answer_times.are_unanswered(kind) { Duration::ZERO } else { self.rest_of_start() };
        let unanswered = self.unanswered;
        let waited = self.wait_on_for_response(from, id, limit, already.min(limit), start).await;
        match waited {
            WaitOutcome::Ready(_) => {
                self.answer_times.record(kind, true);
            }
            WaitOutcome::TimedOut if self.answer_times.record(kind, false) => self.unanswered = unanswered,
            WaitOutcome::TimedOut | WaitOutcome::Closed => {}
        }
        waited
    }

    /// Records how long a call took that was answered while others were in flight; `from` is the position before them.
    pub(crate) fn record_call_among_others(&self, from: usize, id: &Id) {
        if let Some(duration) = answer_time_among_others(&self.connection.entries_from(from), id) {
            self.answer_times.record_slow_answer(duration);
        }
    }

    /// What is known about the server's answers in the revision.
    pub(crate) fn answer_times(&self) -> &AnswerTimes {
        &self.answer_times
    }

    /// Whether even the fastest answer so far was slow, so that time passes mostly by waiting, and another session is opened in less
    /// time than what it takes over.
    pub(crate) fn is_slow(&self) -> bool {
        let opened_in = self.connection.opening_time().unwrap_or_default();
        self.fastest.is_some_and(|fastest| fastest >= SLOW_ANSWER.max(opened_in / SLOW_ANSWERS_PER_OPENING))
    }

    /// An id that this session has not used.
    pub(crate) fn new_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Sends a message.
    pub(crate) async fn send(&self, message: &Value, step_id: Option<StepId>) {
        let frame = if step_id.is_some() { Frame::of_case(message) } else { Frame::from_value(message) };
        self.send_frame(frame, step_id).await;
    }

    /// Sends a line unchanged.
    pub(crate) async fn send_frame(&self, frame: Frame, step_id: Option<StepId>) {
        self.connection.send(frame, step_id, self.answer_times.at_least(SEND_TIMEOUT)).await;
    }

    /// Sends a line unchanged, byte by byte.
    pub(crate) async fn send_in_pieces(&self, frame: Frame, step_id: Option<StepId>) {
        self.connection.send_in_pieces(frame, step_id, self.answer_times.at_least(SEND_TIMEOUT)).await;
    }

    /// Fills in missing members of a message: `jsonrpc`, the id of a request, and `_meta` in the stateless era. A
    /// notification has it too, because some servers take one without it for the beginning of an older revision.
    pub(crate) fn complete(&mut self, message: &Value, is_request: bool, meta: Option<&Value>) -> Value {
        let Value::Object(given) = message else { return message.clone() };
        let mut whole = Map::new();
        if !given.contains_key("jsonrpc") {
            whole.insert("jsonrpc".to_owned(), json!("2.0"));
        }
        if is_request && !given.contains_key("id") {
            whole.insert("id".to_owned(), json!(self.new_id()));
        }
        for (name, value) in given {
            whole.insert(name.clone(), value.clone());
        }
        if self.revision.era() == Era::Stateless {
            self.add_meta(&mut whole, meta);
        }
        Value::Object(whole)
    }

    /// A request with the `_meta` that the revision requires.
    pub(crate) fn with_meta(&self, request: Value) -> Value {
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
    pub(crate) async fn wait_for_response(&mut self, from: usize, id: &Id, limit: Duration) -> WaitOutcome<Value> {
        self.wait_on_for_response(from, id, limit, Duration::ZERO, self.rest_of_start()).await
    }

    /// As [`Session::wait_for_response`], where `already` of the time is over, for up to `start` in any case while the
    /// process is busy.
    async fn wait_on_for_response(
        &mut self,
        from: usize,
        id: &Id,
        mut limit: Duration,
        already: Duration,
        start: Duration,
    ) -> WaitOutcome<Value> {
        // A response with an unknown id may belong to the preceding message.
        let known = self.connection.entries_from(0);
        let earlier = known.get(..from).unwrap_or_default();
        let was_waited_for = !already.is_zero() && already >= limit;
        limit += self.answer_times.time_of_messages(messages_ahead(earlier, &known));
        // What has been waited for in full, with others, is not waited for again.
        let least = if was_waited_for { Duration::ZERO } else { LOOSE_ID_WAIT.min(limit) };
        let rest = limit.saturating_sub(already).max(least);
        let soon = rest.min(LOOSE_ID_WAIT);
        let began = Instant::now();
        let has_started = self.connection.first_line().is_some();
        let after_unanswerable = allows_null_id_response(earlier);
        let ahead = self.pace.messages_ahead();
        let sign = |entries: &[Arc<Entry>]| {
            if !after_unanswerable {
                return sign_of(entries, earlier, id);
            }
            let copy = || find_response(entries, |got| !got.is_null() && is_altered_copy(got, id, earlier, entries));
            let own = response_to(entries, id).map(ResponseSign::Exact).or_else(|| copy().map(ResponseSign::Loose));
            let own = own.or_else(|| malformed_response_to(entries, id).map(ResponseSign::Malformed));
            own.or_else(|| is_over(entries, id).then_some(ResponseSign::Over))
        };
        let mut waited = self.connection.wait(from, soon, sign).await;
        if matches!(waited, WaitOutcome::TimedOut) && (soon < rest || was_waited_for) {
            let sign = |entries: &[Arc<Entry>]| {
                let is_foreign = || has_foreign_response(entries, earlier);
                sign(entries).or_else(|| is_foreign().then_some(ResponseSign::Foreign))
            };
            if is_overtaken(&self.connection.entries_from(from), id) {
                limit = limit.min(self.answer_times.at_least(OVERTAKEN_WAIT));
            }
            let rest = rest.min(limit.saturating_sub(already)).saturating_sub(soon);
            let start = start.saturating_sub(began.elapsed());
            if start > rest {
                let idle = self.pace.opening_limit(STARTING_IDLE_TIME);
                waited = self.connection.wait_for_start(from, start, rest, idle, sign).await;
                limit = limit.max(already + began.elapsed());
            } else {
                waited = self.connection.wait(from, rest, sign).await;
            }
            if matches!(waited, WaitOutcome::TimedOut) {
                let (later, more) = self.wait_behind_others(from, ahead, sign).await;
                waited = later;
                limit += more;
            }
        }
        let waited = match waited {
            WaitOutcome::Ready(sign) => match self.resolve_sign(from, id, sign).await {
                Ok(response) => WaitOutcome::Ready(response),
                Err(_) => return WaitOutcome::TimedOut,
            },
            WaitOutcome::TimedOut => WaitOutcome::TimedOut,
            WaitOutcome::Closed => WaitOutcome::Closed,
        };
        if !matches!(waited, WaitOutcome::Closed) {
            self.answer_times.record_wait(began.elapsed(), matches!(waited, WaitOutcome::Ready(_)));
        }
        if matches!(waited, WaitOutcome::Ready(_)) {
            self.record_answer_time(from, id, has_started);
        }
        self.note_wait(waited, limit)
    }

    /// Goes on waiting for a sign as long as messages that the server may serve first take: `ahead` were sent before, on any
    /// session, and the client's own responses after. Also how long that is.
    async fn wait_behind_others<T>(
        &self,
        from: usize,
        ahead: usize,
        sign: impl Fn(&[Arc<Entry>]) -> Option<T> + Copy,
    ) -> (WaitOutcome<T>, Duration) {
        // Meanwhile it may have turned out that sessions do not wait for each other.
        let ahead = self.answer_times.time_of_messages(ahead.min(self.pace.messages_ahead()));
        let (mut limit, mut counted, mut waited) = (ahead, 0, WaitOutcome::TimedOut);
        if !ahead.is_zero() {
            waited = self.connection.wait(from, ahead, sign).await;
        }
        // A server that asked the client meanwhile has the client's responses to serve first.
        while matches!(waited, WaitOutcome::TimedOut) {
            let sent_later = messages_sent(&self.connection.entries_from(from)).saturating_sub(1);
            let more = self.answer_times.time_of_messages(sent_later.saturating_sub(counted));
            if more.is_zero() || counted >= MAX_MESSAGES_AHEAD {
                break;
            }
            counted = sent_later;
            limit += more;
            waited = self.connection.wait(from, more, sign).await;
        }
        (waited, limit)
    }

    /// Records how long a request was answered, if that says something about others.
    fn record_answer_time(&mut self, from: usize, id: &Id, has_started: bool) {
        let Some(duration) = usual_answer_time(&self.connection.entries_from(from), id) else { return };
        if has_started {
            self.answer_times.record_answer(duration);
            self.fastest = Some(self.fastest.map_or(duration, |fastest| fastest.min(duration)));
        }
        self.pace.record_answer(duration);
    }

    /// Waits for the first response to any of several requests in flight, among the entries from a position on: its
    /// position in `ids`, and the response. Neither a response nor its lack changes what is known about the session.
    pub(crate) async fn wait_for_first_response(
        &self,
        from: usize,
        ids: &[Id],
        limit: Duration,
    ) -> WaitOutcome<(usize, Value)> {
        let is_of = |wanted: &Id, id: &Id| same_id(wanted, id) || (!is_lost_id(id) && same_id_loosely(wanted, id));
        let response = |message: &Value| {
            let id = message.get("id").filter(|_| message.get("method").is_none())?;
            Some((ids.iter().position(|wanted| is_of(wanted, id))?, message.clone()))
        };
        self.connection
            .wait(from, limit, |entries| {
                entries.iter().filter_map(|entry| entry.received()).flat_map(messages).find_map(response)
            })
            .await
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
        http_failure(&self.connection.entries_from(0))
    }

    /// Sends a request of the session itself and waits for the response.
    pub(crate) async fn request(&mut self, method: &str, params: Value, limit: Duration) -> WaitOutcome<Value> {
        let message = self.complete(&json!({ "method": method, "params": params }), true, None);
        let from = self.connection.len();
        self.send(&message, None).await;
        self.wait_for_response(from, &message["id"], limit).await
    }

    /// Cancels a request.
    pub(crate) async fn cancel(&mut self, id: &Id, reason: &str) {
        let params = json!({ "requestId": id, "reason": reason });
        let message = json!({ "method": "notifications/cancelled", "params": params });
        let message = self.complete(&message, false, None);
        self.send(&message, None).await;
    }

    /// The transcript from a position on.
    pub(crate) fn transcript_from(&self, position: usize) -> Transcript {
        Transcript { entries: self.connection.entries_from(position), session_parameters: self.parameters.clone() }
    }
}
