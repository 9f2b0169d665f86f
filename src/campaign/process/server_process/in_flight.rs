//! Sends calls concurrently and matches them with the lines that the server writes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::slow_process::SlowProcess;
use super::pending_call::PendingCall;
use super::{MAX_HISTORY, MAX_HISTORY_BYTES, ServerProcess, write_line};
use crate::campaign::calls::fuzz_call::{Burst, BurstEnd, FuzzCall};
use crate::campaign::limits::{
    MAX_LOST_SESSIONS, MAX_UNRELATED_LINES, SHORT_WRONG_ID_TIMEOUT, WRONG_ID_TIMEOUT, WRONG_IDS_BEFORE_SHORT_TIMEOUT,
};
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, OtherOutput, is_noise};
use crate::client::{EndReason, WaitOutcome};
use crate::spec::Era;
use crate::wire::{Frame, FramingError, MessageKind, is_lost_id, same_id, same_id_loosely};

/// The calls in flight, and the results so far.
struct InFlight<'s> {
    fuzz_calls: &'s [FuzzCall],
    /// In the order of their ids.
    pending: VecDeque<PendingCall>,
    burst: Burst,
    /// What answers no call, reported with the next answered one.
    other: OtherOutput,
    /// A response whose id matches no call.
    unmatched: Option<Value>,
    /// How much memory the answers so far take, in bytes.
    answer_bytes: usize,
}

/// How much memory the answers of a burst may take, in bytes: it ends when they take more, so that they are judged and
/// freed. No more calls are in flight than have answers of the usual size within it.
const MAX_ANSWER_BYTES: usize = 8 << 20;

impl<'s> InFlight<'s> {
    fn new(fuzz_calls: &'s [FuzzCall]) -> Self {
        let burst = Burst::default();
        let pending = VecDeque::new();
        Self { fuzz_calls, pending, burst, other: OtherOutput::default(), unmatched: None, answer_bytes: 0 }
    }

    /// The position of the pending call with an id.
    fn position(&self, id: i64) -> Option<usize> {
        match self.pending.front() {
            Some(first) if first.answered_id() == id => Some(0),
            _ => self.pending.binary_search_by_key(&id, PendingCall::answered_id).ok(),
        }
    }
}

impl ServerProcess {
    /// Sends calls, keeping at most `max_in_flight` of them in flight, until all are answered or none is within the
    /// limit. At the deadline, calls in flight are dropped, since
    /// they are neither answered nor unanswered.
    pub(in crate::campaign) async fn burst(
        &mut self,
        fuzz_calls: &[FuzzCall],
        max_in_flight: usize,
        limit: Duration,
    ) -> Result<Burst, String> {
        self.slow_process = None;
        if self.is_out_of_time() {
            return Ok(Burst::default());
        }
        self.ensure_started().await?;
        let mut state = InFlight::new(fuzz_calls);
        // What came with other requests belongs to none of these calls.
        self.other.messages.clear();
        let (mut left, mut unrelated) = (limit, 0_usize);
        loop {
            if self.is_out_of_time() {
                if !state.pending.is_empty() {
                    self.drop_process();
                }
                return Ok(state.burst);
            }
            self.refill(&mut state, max_in_flight).await;
            if state.pending.is_empty() {
                return Ok(state.burst);
            }
            let limited = self.limited(left);
            let began = Instant::now();
            let Some(pipe) = &mut self.pipe else { return Err("the server is gone".to_owned()) };
            let grace =
                if self.wrong_ids < WRONG_IDS_BEFORE_SHORT_TIMEOUT { WRONG_ID_TIMEOUT } else { SHORT_WRONG_ID_TIMEOUT };
            let wait = if state.unmatched.is_some() { grace.min(limited) } else { limited };
            let waited = pipe.next(wait).await;
            left = left.saturating_sub(began.elapsed());
            let is_out_of_time = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            match waited {
                WaitOutcome::Ready(frame) => {
                    if self.take_sized_frame(frame, &mut state) {
                        self.wrong_ids = if state.unmatched.is_some() { 0 } else { self.wrong_ids };
                        (left, unrelated, state.unmatched) = (limit, 0, None);
                    } else {
                        unrelated += 1;
                        if unrelated > MAX_UNRELATED_LINES {
                            state.burst.end = Some(BurstEnd::Flooded);
                        }
                    }
                }
                WaitOutcome::TimedOut if state.unmatched.is_some() && state.pending.len() == 1 => {
                    // The response with the wrong id is the only one.
                    let Some(pending_call) = state.pending.pop_front() else { continue };
                    self.wrong_ids += 1;
                    let responses = state.unmatched.take().into_iter().collect();
                    Self::close(&pending_call, responses, &mut state);
                    (left, unrelated) = (limit, 0);
                }
                WaitOutcome::TimedOut if is_out_of_time => {}
                WaitOutcome::TimedOut => state.burst.end = Some(BurstEnd::Silent),
                WaitOutcome::Closed if pipe.end_reason() == Some(&EndReason::SessionUnknown) => {
                    self.send_again(&state).await?;
                    (left, unrelated, state.unmatched) = (limit, 0, None);
                }
                WaitOutcome::Closed => state.burst.end = Some(self.end_of_connection().await?),
            }
            if state.burst.end.is_some() {
                return Ok(self.abort(state, limit));
            }
        }
    }

    /// Sends the pending calls again in a new session, since a server may end one at any time.
    async fn send_again(&mut self, state: &InFlight<'_>) -> Result<(), String> {
        self.lost_sessions += 1;
        if self.lost_sessions > MAX_LOST_SESSIONS {
            return Err(EndReason::SessionUnknown.describe());
        }
        self.restart().await?;
        for pending_call in &state.pending {
            let request_line = self.request_line(&state.fuzz_calls[pending_call.index], pending_call.id);
            if let Some(pipe) = &mut self.pipe {
                pipe.queue(&request_line);
            }
        }
        Ok(())
    }

    /// Sends calls until `max_in_flight` calls are in flight.
    async fn refill(&mut self, state: &mut InFlight<'_>, max_in_flight: usize) {
        if state.answer_bytes > MAX_ANSWER_BYTES {
            return;
        }
        let max_in_flight = max_in_flight.min((MAX_ANSWER_BYTES / self.usual_answer_bytes.max(1)).max(1));
        let mut now: Option<Instant> = None;
        if self.sending_deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return;
        }
        while let Some(fuzz_call) = state.fuzz_calls.get(state.burst.unsent)
            && state.pending.len() < max_in_flight
            && (state.pending.is_empty() || !fuzz_call.call.is_unparsable())
            && state.pending.back().is_none_or(|pending_call| pending_call.fence.is_none())
        {
            if self.pause.is_some() {
                self.wait_for_rate_limit().await;
                now = None;
            }
            // Calls that are sent together share a timestamp.
            let since = *now.get_or_insert_with(Instant::now);
            let alone = state.pending.is_empty() && max_in_flight == 1;
            let pending_call = self.send(state.burst.unsent, fuzz_call, alone, since);
            state.pending.push_back(pending_call);
            state.burst.unsent += 1;
        }
    }

    fn send(&mut self, index: usize, fuzz_call: &FuzzCall, alone: bool, since: Instant) -> PendingCall {
        self.next_id += 1;
        let id = self.next_id;
        self.calls += 1;
        let fence = fuzz_call.call.is_unparsable().then(|| {
            self.next_id += 1;
            self.next_id
        });
        let mut line = Arc::default();
        if let Some(pipe) = &mut self.pipe {
            let (name, meta) = (&self.tool_names[fuzz_call.tool], &self.meta);
            line = pipe.queue_with(|line| write_line(line, name, meta, fuzz_call, id));
            if let Some(fence) = fence {
                let method = if self.revision.era() == Era::Stateless { "tools/list" } else { "ping" };
                let meta = meta.trim_start_matches(',');
                let params = if meta.is_empty() { "{}".to_owned() } else { format!("{{{meta}}}") };
                let request_line = format!(r#"{{"jsonrpc":"2.0","id":{fence},"method":"{method}","params":{params}}}"#);
                pipe.queue(request_line.as_bytes());
            }
        }
        self.history_bytes += line.len();
        self.history.push_back((id, fuzz_call.clone(), line.len()));
        while self.history.len() > MAX_HISTORY || self.history_bytes > MAX_HISTORY_BYTES {
            let Some((_, fuzz_call, bytes)) = self.history.pop_front() else { break };
            self.history_bytes -= bytes;
            if self.history.is_empty() {
                // This call alone exceeds the limit, but it is still the last one.
                self.last_of_previous = Some((id, fuzz_call));
            }
        }
        PendingCall { index, id, line, fence, reacted: false, since, alone }
    }

    /// Abandons the calls in flight.
    fn abort(&mut self, state: InFlight<'_>, limit: Duration) -> Burst {
        let InFlight { fuzz_calls, pending, mut burst, mut other, .. } = state;
        for pending_call in pending {
            let has_ended = matches!(burst.end, Some(BurstEnd::Ended { .. }));
            if pending_call.reacted && !has_ended {
                // Only the request after it is unanswered, which other cases judge.
                let call = &fuzz_calls[pending_call.index];
                let exchange = Self::exchange(call, &pending_call, Vec::new(), ExchangeOutcome::Answered, &mut other);
                burst.done.push((pending_call.index, exchange));
                continue;
            }
            let outcome = match &burst.end {
                Some(BurstEnd::Ended { status, stderr }) => {
                    ExchangeOutcome::Exited { status: status.clone(), stderr: stderr.clone() }
                }
                // An HTTP response can end early, without the JSON-RPC response.
                _ => ExchangeOutcome::TimedOut { waited: limit.min(pending_call.since.elapsed()) },
            };
            let exchange =
                Self::exchange(&fuzz_calls[pending_call.index], &pending_call, Vec::new(), outcome, &mut other);
            burst.open.push((pending_call.index, exchange));
        }
        // A silent process may only be slow.
        let slow_process = self.pipe.take().map(SlowProcess::new);
        self.slow_process = slow_process.filter(|_| burst.end == Some(BurstEnd::Silent));
        burst
    }

    /// Records the responses to a call.
    fn close(pending_call: &PendingCall, responses: Vec<Value>, state: &mut InFlight<'_>) {
        let exchange = Self::exchange(
            &state.fuzz_calls[pending_call.index],
            pending_call,
            responses,
            ExchangeOutcome::Answered,
            &mut state.other,
        );
        state.burst.done.push((pending_call.index, exchange));
    }

    /// Handles a line from the server, and counts its size if it answers a call; returns whether it does.
    fn take_sized_frame(&mut self, frame: Frame, state: &mut InFlight<'_>) -> bool {
        let bytes = frame.memory_bytes();
        let is_answer = self.take_frame(frame, state);
        if is_answer {
            state.answer_bytes += bytes;
            // A tool whose answers become short again gets back to more calls in flight.
            self.usual_answer_bytes = bytes.max(self.usual_answer_bytes / 2);
        }
        is_answer
    }

    /// Handles a line from the server; returns whether it answers a call.
    fn take_frame(&mut self, frame: Frame, state: &mut InFlight<'_>) -> bool {
        match &frame.value {
            Err(FramingError::Blank) => return false,
            Err(damage) if damage.is_own_limit() => {
                // A message over the client's size limit still counts as a response; it is not judged here.
                let Some(pending_call) = state.pending.pop_front() else { return false };
                let unread =
                    json!({"jsonrpc": "2.0", "id": pending_call.id, "result": {"content": []}, "unread": true});
                Self::close(&pending_call, vec![unread], state);
                return true;
            }
            _ if is_noise(frame.json()) => {
                self.other.add_noise(&frame);
                state.other.append(&mut self.other);
                return false;
            }
            _ => state.other.add_messages(&frame),
        }
        let mut progress = false;
        let several = match frame.value {
            Ok(Value::Array(messages)) => messages,
            Ok(message) => return self.take_message(message, state),
            Err(_) => Vec::new(),
        };
        for message in several {
            progress |= self.take_message(message, state);
        }
        progress
    }

    /// Handles a message from the server; returns whether it answers a call.
    fn take_message(&mut self, message: Value, state: &mut InFlight<'_>) -> bool {
        match MessageKind::of(&message) {
            MessageKind::Request { id, method } => self.answer(id, method, message.get("params")),
            MessageKind::Response { id } => {
                let id = id.cloned().unwrap_or_default();
                return self.match_response(message, &id, state);
            }
            // A response with neither result nor error is malformed, but a response.
            MessageKind::Unknown => {
                let answered = message.get("id").filter(|_| message.get("method").is_none()).and_then(Value::as_i64);
                if let Some(id) = answered.filter(|id| state.position(*id).is_some()) {
                    return self.match_response(message, &json!(id), state);
                }
            }
            _ => {}
        }
        false
    }

    fn match_response(&mut self, message: Value, id: &Value, state: &mut InFlight<'_>) -> bool {
        let exact = |pending_call: &PendingCall| same_id(&pending_call.answered_id().into(), id);
        let loose =
            |pending_call: &PendingCall| !is_lost_id(id) && same_id_loosely(&pending_call.answered_id().into(), id);
        let pending = &state.pending;
        let at = id.as_i64().and_then(|id| state.position(id));
        let at = at.or_else(|| pending.iter().position(exact)).or_else(|| pending.iter().position(loose));
        if let Some(at) = at
            && let Some(pending_call) = state.pending.remove(at)
        {
            let responses = if pending_call.fence.is_some() { Vec::new() } else { vec![message] };
            Self::close(&pending_call, responses, state);
            return true;
        }
        // Input that cannot be parsed is answered without an id, or not at all.
        if let Some(fenced) = state.pending.iter_mut().find(|pending_call| pending_call.fence.is_some()) {
            fenced.reacted |= is_lost_id(id) || same_id(&fenced.id.into(), id);
            return false;
        }
        if self.history.iter().any(|(known, ..)| same_id(&(*known).into(), id)) {
            self.record_duplicate(&message, id);
            return false;
        }
        state.unmatched.get_or_insert(message);
        false
    }

    /// Combines a call with its outcome.
    pub(super) fn exchange(
        fuzz_call: &FuzzCall,
        pending_call: &PendingCall,
        responses: Vec<Value>,
        outcome: ExchangeOutcome,
        other: &mut OtherOutput,
    ) -> FuzzExchange {
        FuzzExchange {
            call: Arc::clone(&fuzz_call.call),
            line: Arc::clone(&pending_call.line),
            id: pending_call.id,
            responses,
            other: std::mem::take(other),
            outcome,
            duration: pending_call.since.elapsed(),
            alone: pending_call.alone,
        }
    }
}
