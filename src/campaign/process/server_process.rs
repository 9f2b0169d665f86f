//! Drives one process of the server: sends it many calls, and replaces it when it ends or stops answering.

mod in_flight;
mod pending_call;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::pending_call::PendingCall;
use super::environment::Environment;
use super::slow_process::SlowProcess;
use super::standby::StandbyProcesses;
use crate::campaign::budget::TIME_LIMIT_REACHED;
use crate::campaign::calls::fuzz_call::{BurstEnd, FuzzCall};
use crate::campaign::calls::tools::FuzzTools;
use crate::campaign::limits::{LATE_OUTPUT_TIMEOUT, SLOW_PROCESS_END_TIMEOUTS};
use crate::campaign::settings::CampaignSettings;
use crate::check::fuzz::{CONNECTION_DROPPED, ExchangeOutcome, FuzzExchange, OtherOutput, is_noise};
use crate::client::headers::mirrored;
use crate::client::{EndReason, HostState, Responder, UnrecordedConnection, WaitOutcome};
use crate::limits::MAX_ANSWERED_REQUESTS;
use crate::spec::{Era, Revision};
use crate::wire::{FramingError, MessageKind, is_lost_id, same_id, same_id_loosely};

/// The maximum number of remembered calls, from which the calls that a failure needs are selected.
const MAX_HISTORY: usize = 1_024;
/// The maximum size of the remembered arguments.
const MAX_HISTORY_BYTES: usize = 16 << 20;
/// The exit status reported for a server that the client cannot restart.
const NOT_LISTENING: &str = "the server no longer listens at the address";

/// A running process of the server, and the calls it got.
pub(in crate::campaign) struct ServerProcess {
    environment: Arc<dyn Environment>,
    revision: Revision,
    /// The names of the tools, serialised as JSON.
    tool_names: Vec<String>,
    /// The `_meta` of requests, if the revision has no handshake.
    stateless_meta: Option<Value>,
    /// The same as a part of a request line.
    meta: String,
    responder: Responder,
    standby: StandbyProcesses,
    pipe: Option<UnrecordedConnection>,
    process_id: Option<i32>,
    had_process: bool,
    /// Whether the server ended and the client cannot restart it.
    gone: bool,
    /// The last call to the previous process, which may have ended it.
    last_of_previous: Option<(i64, FuzzCall)>,
    /// How often the server ended the session.
    lost_sessions: usize,
    /// The process that did not answer the last call, until the next call.
    slow_process: Option<SlowProcess>,
    /// Consecutive responses with a wrong id that no right one followed.
    wrong_ids: usize,
    next_id: i64,
    answered_requests: usize,
    /// The last calls to this process, oldest first.
    history: VecDeque<(i64, FuzzCall, usize)>,
    history_bytes: usize,
    /// Second responses, with the calls they belong to.
    duplicates: Vec<(FuzzCall, FuzzExchange)>,
    /// What answers nothing between two bursts.
    other: OtherOutput,
    /// The size of recent answers in memory, in bytes.
    usual_answer_bytes: usize,
    startup: Duration,
    /// How many processes were started.
    starts: usize,
    /// How many calls were made.
    calls: u64,
    /// The minimum time between two calls.
    pause: Option<Duration>,
    last_call: Option<Instant>,
    /// When calls are no longer sent in a burst.
    sending_deadline: Option<Instant>,
    /// When calls are no longer waited for.
    deadline: Option<Instant>,
}

impl ServerProcess {
    pub(in crate::campaign) fn new(
        environment: &Arc<dyn Environment>,
        settings: &CampaignSettings<'_>,
        tools: &FuzzTools,
    ) -> Self {
        let revision = settings.revision;
        let mirrored = mirrored(&json!({ "tools": tools.definitions() }));
        Self {
            environment: Arc::clone(environment),
            revision,
            tool_names: tools.names().map(|name| Value::from(name).to_string()).collect(),
            stateless_meta: settings.stateless_meta.clone(),
            meta: settings.stateless_meta.as_ref().map_or_else(String::new, |meta| format!(",\"_meta\":{meta}")),
            responder: environment.responder(revision),
            standby: StandbyProcesses::new(environment, revision, mirrored, settings.is_single_process),
            pipe: None,
            process_id: None,
            had_process: false,
            gone: false,
            last_of_previous: None,
            lost_sessions: 0,
            slow_process: None,
            wrong_ids: 0,
            // The first request opens the session.
            next_id: 1,
            answered_requests: 0,
            history: VecDeque::new(),
            history_bytes: 0,
            duplicates: Vec::new(),
            other: OtherOutput::default(),
            usual_answer_bytes: 0,
            startup: Duration::ZERO,
            starts: 0,
            calls: 0,
            pause: settings.pause(),
            last_call: None,
            sending_deadline: None,
            deadline: None,
        }
    }

    /// Sets when calls are no longer sent in a burst, if so.
    pub(in crate::campaign) fn set_sending_deadline(&mut self, deadline: Option<Instant>) {
        self.sending_deadline = deadline;
    }

    /// Sets when calls are no longer waited for.
    pub(in crate::campaign) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Whether no call is made or waited for any more.
    pub(in crate::campaign) fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The time limit of a wait that must not exceed the deadline.
    fn limited(&self, limit: Duration) -> Duration {
        self.deadline.map_or(limit, |deadline| limit.min(deadline.saturating_duration_since(Instant::now())))
    }

    /// How many processes were started.
    pub(in crate::campaign) fn starts(&self) -> usize {
        self.starts
    }

    /// How many calls were made.
    pub(in crate::campaign) fn calls(&self) -> u64 {
        self.calls
    }

    /// How long the last process took to open.
    pub(in crate::campaign) fn startup(&self) -> Duration {
        self.startup
    }

    /// The id of the server's process, if known.
    pub(in crate::campaign) fn process_id(&self) -> Option<i32> {
        self.process_id
    }

    /// Whether the id of a process was ever known.
    pub(in crate::campaign) fn had_process(&self) -> bool {
        self.had_process
    }

    /// Whether the server ended and the client cannot restart it.
    pub(in crate::campaign) fn is_gone(&self) -> bool {
        self.gone
    }

    /// The last call, as one that ended the server.
    pub(in crate::campaign) fn last_call(&self) -> Option<(FuzzCall, FuzzExchange)> {
        let last = self.history.back().map(|(id, fuzz_call, _)| (*id, fuzz_call.clone()));
        let (id, fuzz_call) = last.or_else(|| self.last_of_previous.clone())?;
        let outcome = ExchangeOutcome::Exited { status: NOT_LISTENING.to_owned(), stderr: String::new() };
        let pending_call = PendingCall::of(id, self.request_line(&fuzz_call, id));
        let found = Self::exchange(&fuzz_call, &pending_call, Vec::new(), outcome, &mut OtherOutput::default());
        Some((fuzz_call, found))
    }

    /// The calls to this process with their ids, oldest first.
    pub(in crate::campaign) fn record(&self) -> Vec<(i64, FuzzCall)> {
        self.history.iter().map(|(id, fuzz_call, _)| (*id, fuzz_call.clone())).collect()
    }

    /// The calls to this process, oldest first.
    pub(in crate::campaign) fn history(&self) -> Vec<FuzzCall> {
        self.history.iter().map(|(_, fuzz_call, _)| fuzz_call.clone()).collect()
    }

    /// Whether the running process has been called.
    pub(in crate::campaign) fn has_history(&self) -> bool {
        self.pipe.is_some() && !self.history.is_empty()
    }

    fn clear_history(&mut self) {
        if let Some((id, fuzz_call, _)) = self.history.pop_back() {
            self.last_of_previous = Some((id, fuzz_call));
        }
        self.history.clear();
        self.history_bytes = 0;
    }

    /// Takes the second responses.
    pub(in crate::campaign) fn take_duplicates(&mut self) -> Vec<(FuzzCall, FuzzExchange)> {
        std::mem::take(&mut self.duplicates)
    }

    /// Ends the process; the next call starts another.
    pub(in crate::campaign) fn drop_process(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            tokio::spawn(pipe.end(SLOW_PROCESS_END_TIMEOUTS));
        }
        self.clear_history();
    }

    /// Ends the process and waits for it to exit.
    pub(in crate::campaign) async fn end(&mut self) {
        self.standby.end();
        if let Some(pipe) = self.pipe.take() {
            pipe.end(SLOW_PROCESS_END_TIMEOUTS).await;
        }
        self.clear_history();
    }

    /// Takes the process that did not answer the last call.
    pub(super) fn take_slow_process(&mut self) -> Option<SlowProcess> {
        self.slow_process.take()
    }

    /// Replaces the process by a fresh one.
    pub(in crate::campaign) async fn restart(&mut self) -> Result<(), String> {
        self.drop_process();
        self.ensure_started().await
    }

    /// Starts a process if none is running.
    pub(in crate::campaign) async fn ensure_started(&mut self) -> Result<(), String> {
        if self.pipe.is_some() {
            return Ok(());
        }
        self.starts += 1;
        self.answered_requests = 0;
        self.clear_history();
        let opened = match self.standby.take().await {
            Ok(opened) => opened,
            Err(problem) => {
                self.gone |= matches!(self.environment.host_state().await, HostState::Unreachable);
                return Err(problem);
            }
        };
        self.startup = opened.startup;
        self.process_id = opened.process_id;
        self.had_process |= opened.process_id.is_some();
        self.pipe = Some(opened.pipe);
        for message in opened.requests {
            if let MessageKind::Request { id, method } = MessageKind::of(&message) {
                self.answer(id, method, message.get("params"));
            }
        }
        Ok(())
    }

    /// Sends a request other than a call and returns its response.
    pub(in crate::campaign) async fn request(
        &mut self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Option<Value> {
        self.next_id += 1;
        let id = self.next_id;
        let pipe = self.pipe.as_mut()?;
        pipe.queue(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
        let (began, limit) = (Instant::now(), self.limited(limit));
        loop {
            let frame = match self.pipe.as_mut()?.next(limit.saturating_sub(began.elapsed())).await {
                WaitOutcome::Ready(frame) => frame,
                WaitOutcome::TimedOut | WaitOutcome::Closed => return None,
            };
            if !is_noise(frame.json()) {
                self.other.add_messages(&frame);
            } else if frame.value != Err(FramingError::Blank) {
                self.other.add_noise(&frame);
            }
            let several = match frame.value {
                Ok(Value::Array(messages)) => messages,
                Ok(message) => vec![message],
                Err(_) => Vec::new(),
            };
            for message in several {
                match MessageKind::of(&message) {
                    MessageKind::Response { id: Some(got) } if same_id_loosely(&json!(id), got) && !is_lost_id(got) => {
                        return Some(message);
                    }
                    MessageKind::Response { id: Some(got) } => self.record_duplicate(&message, got),
                    MessageKind::Request { id, method } => self.answer(id, method, message.get("params")),
                    // A response with neither result nor error is malformed, but a response.
                    MessageKind::Unknown if message.get("id").is_some_and(|got| same_id(&json!(id), got)) => {
                        return Some(message);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Reads one page of a list.
    pub(super) async fn list_page(&mut self, method: &str, cursor: Option<Value>, limit: Duration) -> Option<Value> {
        let mut params = self.stateless_meta.as_ref().map_or_else(|| json!({}), |meta| json!({ "_meta": meta }));
        if let Some(cursor) = cursor {
            params["cursor"] = cursor;
        }
        self.request(method, &params, limit).await?.get_mut("result").map(Value::take)
    }

    /// Whether a list is read by a request that so many bytes of `_meta` make long.
    pub(super) async fn answers_long_request(&mut self, bytes: usize, limit: Duration) -> bool {
        let mut meta = self.stateless_meta.clone().unwrap_or_else(|| json!({}));
        meta["conformance.example/padding"] = "a".repeat(bytes).into();
        let answer = self.request("tools/list", &json!({ "_meta": meta }), limit).await;
        answer.is_some_and(|answer| answer.get("result").is_some())
    }

    fn answer(&mut self, id: &Value, method: &str, params: Option<&Value>) {
        self.answered_requests += 1;
        if self.answered_requests <= MAX_ANSWERED_REQUESTS
            && let (Some(answer), Some(pipe)) = (self.responder.answer(id, method, params), &mut self.pipe)
        {
            pipe.queue(answer.to_string().as_bytes());
        }
    }

    /// The request line of a call.
    pub(in crate::campaign) fn request_line(&self, fuzz_call: &FuzzCall, id: i64) -> Arc<[u8]> {
        let mut request_line = Vec::new();
        write_line(&mut request_line, &self.tool_names[fuzz_call.tool], &self.meta, fuzz_call, id);
        request_line.into()
    }

    async fn wait_for_rate_limit(&mut self) {
        if let (Some(pause), Some(last)) = (self.pause, self.last_call) {
            tokio::time::sleep(pause.saturating_sub(last.elapsed())).await;
        }
        if self.pause.is_some() {
            self.last_call = Some(Instant::now());
        }
    }

    /// The reason why the connection closed; an error if no further call is possible.
    async fn end_of_connection(&mut self) -> Result<BurstEnd, String> {
        let Some(pipe) = &mut self.pipe else { return Err("the server is gone".to_owned()) };
        match pipe.end_reason() {
            None => {
                let status = pipe.exit_description().await;
                Ok(BurstEnd::Ended { status, stderr: pipe.stderr() })
            }
            Some(over @ (EndReason::RateLimited | EndReason::Unauthorized)) => Err(over.describe()),
            Some(EndReason::OutputLimitExceeded) => Ok(BurstEnd::Flooded),
            Some(EndReason::ConnectionLost(_) | EndReason::SessionUnknown) => {
                Ok(match self.environment.host_state().await {
                    HostState::Ended { status, stderr } => BurstEnd::Ended { status, stderr },
                    HostState::Unreachable => {
                        self.gone = true;
                        BurstEnd::Ended { status: NOT_LISTENING.to_owned(), stderr: String::new() }
                    }
                    HostState::Listening => {
                        BurstEnd::Ended { status: CONNECTION_DROPPED.to_owned(), stderr: String::new() }
                    }
                })
            }
        }
    }

    /// Records a second response.
    fn record_duplicate(&mut self, message: &Value, id: &Value) {
        const MAX_DUPLICATES: usize = 8;
        let mut latest = self.history.iter().rev();
        let Some((id, fuzz_call, _)) = latest.find(|(known, ..)| same_id(&(*known).into(), id)).cloned() else {
            return;
        };
        if fuzz_call.call.is_unparsable() || self.duplicates.len() >= MAX_DUPLICATES {
            return;
        }
        // The first response is no longer available; only the number of responses matters.
        let responses = vec![message.clone(), message.clone()];
        let pending_call = PendingCall::of(id, self.request_line(&fuzz_call, id));
        let found = Self::exchange(
            &fuzz_call,
            &pending_call,
            responses,
            ExchangeOutcome::Answered,
            &mut OtherOutput::default(),
        );
        self.duplicates.push((fuzz_call, found));
    }

    /// Waits for late output of a call until another request is answered, and adds it to the exchange.
    pub(in crate::campaign) async fn wait_for_late_output(&mut self, exchange: &mut FuzzExchange) {
        let method = if self.revision.era() == Era::Stateless { "tools/list" } else { "ping" };
        let response = self.list_page(method, None, LATE_OUTPUT_TIMEOUT).await;
        exchange.other.append(&mut self.other);
        for (_, duplicate) in std::mem::take(&mut self.duplicates) {
            if duplicate.id == exchange.id {
                exchange.responses.extend(duplicate.responses.into_iter().skip(1));
            }
        }
        if response.is_none()
            && self.pipe.as_ref().is_some_and(UnrecordedConnection::is_closed)
            && let Ok(BurstEnd::Ended { status, stderr }) = self.end_of_connection().await
        {
            exchange.outcome = ExchangeOutcome::Exited { status, stderr };
            self.drop_process();
        }
    }

    /// Makes one call and waits for its outcome; an error if the deadline passes meanwhile.
    pub(in crate::campaign) async fn call(
        &mut self,
        fuzz_call: &FuzzCall,
        limit: Duration,
    ) -> Result<FuzzExchange, String> {
        let mut burst = self.burst(std::slice::from_ref(fuzz_call), 1, limit).await?;
        let done = burst.done.pop().or_else(|| burst.open.pop());
        done.map(|(_, exchange)| exchange).ok_or_else(|| TIME_LIMIT_REACHED.to_owned())
    }
}

/// Writes the request line of a call, without the line end.
fn write_line(line: &mut Vec<u8>, name: &str, meta: &str, fuzz_call: &FuzzCall, id: i64) {
    line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    serde_json::to_writer(&mut *line, &id).expect("a number can be written to memory");
    line.extend_from_slice(b",\"method\":\"tools/call\",\"params\":{\"name\":");
    line.extend_from_slice(name.as_bytes());
    fuzz_call.call.arguments.write(line);
    line.extend_from_slice(meta.as_bytes());
    line.extend_from_slice(b"}}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::process::scripted::{Answer, ScriptedServer, call_all, valid_call};

    #[tokio::test(start_paused = true)]
    async fn a_process_that_ends_is_replaced_and_the_next_call_is_the_first_of_the_new_one() {
        let server = ScriptedServer::new(&[("stop", json!({ "now": { "type": "boolean" } }))], |call| {
            let is_stopped = call.arguments["now"] == true;
            if is_stopped { Answer::Exit } else { Answer::text(format!("{} {}", call.process, call.earlier.len())) }
        });
        let mut caller = server.caller();
        let calls = [false, false, true, false].map(|now| valid_call(0, json!({ "now": now })));
        let done = call_all(&mut caller, &calls).await;
        let texts = done.iter().map(|exchange| {
            let response = exchange.responses.first()?;
            response["result"]["content"][0]["text"].as_str()
        });
        assert_eq!(texts.collect::<Vec<_>>(), [Some("0 0"), Some("0 1"), None, Some("1 0")]);
        assert!(matches!(done[2].outcome, ExchangeOutcome::Exited { .. }), "{:?}", done[2].outcome);
        let process = caller.process();
        assert_eq!((process.starts(), process.calls(), process.history().len()), (2, 4, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_does_not_answer_is_given_up_after_the_timeout() {
        let server = ScriptedServer::new(&[("wait", json!({}))], |call| match call.process {
            0 => Answer::Silence,
            _ => Answer::text("done"),
        });
        let (mut caller, began) = (server.caller(), Instant::now());
        let calls = [valid_call(0, json!({})), valid_call(0, json!({}))];
        let done = call_all(&mut caller, &calls).await;
        let timeout = server.settings().timeout;
        assert_eq!(done[0].outcome, ExchangeOutcome::TimedOut { waited: timeout });
        assert_eq!((&done[1].outcome, began.elapsed()), (&ExchangeOutcome::Answered, timeout));
    }
}
