//! How long a slow server takes before it answers, and what a cancellation does to calls that run meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::connection_state::Output;
use super::fault::{Fault, FaultSet};

/// How long [`Fault::SlowAnswers`] takes for each answer, and [`Fault::SlowInTurn`] for each message.
const SLOW_ANSWER: Duration = Duration::from_secs(2);

/// How long [`Fault::SlowerAnswers`] takes for each answer.
const SLOWER_ANSWER: Duration = Duration::from_secs(5);

/// How long [`Fault::Pauses`] serves nothing, as while memory is cleaned up.
const PAUSE: Duration = Duration::from_millis(600);

/// How late [`Fault::NotificationAnsweredLate`] answers.
const LATE_ANSWER: Duration = Duration::from_millis(150);

/// How long [`Fault::SlowCalls`] takes for each call.
const SLOW_CALL: Duration = Duration::from_secs(5);

/// How long [`Fault::SlowTool`] takes for each call of [`SLOW_TOOL`].
const SLOW_TOOL_CALL: Duration = Duration::from_millis(1_300);

/// How long each number takes that a call of [`SLOW_TOOL`] counts with the faults of calls that last.
const COUNTED_NUMBER: Duration = Duration::from_millis(200);

/// The faults with which a call lasts as long as its argument says.
const LASTING: [Fault; 8] = [
    Fault::LastingTool,
    Fault::ManyCallsExit,
    Fault::ManyCallsUnanswered,
    Fault::LateCancellationExits,
    Fault::RunningCallExits,
    Fault::RunningCallAnswered,
    Fault::CancelledTwiceExits,
    Fault::CancellationWaits,
];

/// How many calls may run with the faults of many calls.
const MAX_RUNNING_CALLS: usize = 20;

/// The greatest number that [`SLOW_TOOL`] counts to.
const MAX_COUNTED: u32 = 9;

/// The tool that is slow with [`Fault::SlowTool`]: the one that reports progress.
const SLOW_TOOL: &str = "count";

/// How long the answer to a message takes.
pub(super) fn latency_of(message: &Value, faults: &FaultSet) -> Duration {
    if faults.contains(Fault::SlowInTurn) {
        return SLOW_ANSWER;
    }
    let Some(method) = message.get("method").and_then(Value::as_str) else { return Duration::ZERO };
    if message.get("id").is_none() {
        return if faults.contains(Fault::NotificationAnsweredLate) { LATE_ANSWER } else { Duration::ZERO };
    }
    let is_call = method == "tools/call";
    let is_of_slow_tool = || message.pointer("/params/name").is_some_and(|name| name == SLOW_TOOL);
    if is_call && faults.contains(Fault::SlowCalls) {
        SLOW_CALL
    } else if faults.contains(Fault::SlowAnswers) {
        SLOW_ANSWER
    } else if faults.contains(Fault::SlowerAnswers) {
        SLOWER_ANSWER
    } else if is_call && faults.contains(Fault::SlowTool) && is_of_slow_tool() {
        SLOW_TOOL_CALL
    } else if is_call && LASTING.into_iter().any(|fault| faults.contains(fault)) && is_of_slow_tool() {
        let to = message.pointer("/params/arguments/to").and_then(Value::as_u64).and_then(|to| u32::try_from(to).ok());
        // Other arguments are rejected at once.
        COUNTED_NUMBER * to.filter(|to| *to <= MAX_COUNTED).unwrap_or_default()
    } else {
        Duration::ZERO
    }
}

/// Whether any answer takes longer than usual.
fn is_slow(faults: &FaultSet) -> bool {
    let slow = [
        Fault::SlowAnswers,
        Fault::SlowerAnswers,
        Fault::SlowInTurn,
        Fault::Pauses,
        Fault::SlowCalls,
        Fault::SlowTool,
        Fault::NotificationAnsweredLate,
    ];
    slow.into_iter().chain(LASTING).any(|fault| faults.contains(fault))
}

/// Whether a message waits until those before it are served.
pub(super) fn serves_in_turn(faults: &FaultSet) -> bool {
    [Fault::SlowInTurn, Fault::Pauses, Fault::CancellationWaits].into_iter().any(|fault| faults.contains(fault))
}

/// The id of the request that a message cancels.
pub(super) fn cancelled_id(message: &Value) -> Option<&Value> {
    let is_cancellation = message.get("method").is_some_and(|method| method == "notifications/cancelled");
    message.pointer("/params/requestId").filter(|_| is_cancellation)
}

/// What a cancellation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancellationEffect {
    /// The call that runs is not answered any more.
    Stops,
    /// The call that runs is answered with an error.
    Answers,
    /// The server exits.
    Exits,
}

/// How much is left of a call that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLeft {
    pub(super) begun: Instant,
    pub(super) latency: Duration,
}

impl TimeLeft {
    /// Whether it is less than a quarter.
    fn is_little(self) -> bool {
        self.begun.elapsed() * 4 > self.latency * 3
    }
}

/// The ids of the running calls that were cancelled, for a fault that depends on them.
#[derive(Debug, Default)]
pub(super) struct CancelledCalls(Vec<Value>);

impl CancelledCalls {
    /// What the cancellation of a request does, which runs for so long or not at all; none if it changes nothing.
    pub(super) fn cancel(
        &mut self,
        id: &Value,
        left: Option<TimeLeft>,
        faults: &FaultSet,
    ) -> Option<CancellationEffect> {
        let Some(left) = left else {
            let again = self.0.contains(id) && faults.contains(Fault::CancelledTwiceExits);
            return again.then_some(CancellationEffect::Exits);
        };
        if self.0.contains(id) && faults.contains(Fault::CancelledTwiceExits) {
            return Some(CancellationEffect::Exits);
        }
        if faults.contains(Fault::CancelledServed) {
            return None;
        }
        self.0.push(id.clone());
        let ends = left.is_little() && faults.contains(Fault::LateCancellationExits);
        Some(if ends || faults.contains(Fault::RunningCallExits) {
            CancellationEffect::Exits
        } else if faults.contains(Fault::RunningCallAnswered) {
            CancellationEffect::Answers
        } else {
            CancellationEffect::Stops
        })
    }
}

/// What becomes of a call that comes while so many run; none if it is served.
pub(super) fn overload(running: usize, faults: &FaultSet) -> Option<Overload> {
    let is_too_much = running >= MAX_RUNNING_CALLS;
    if is_too_much && faults.contains(Fault::ManyCallsExit) {
        Some(Overload::Exits)
    } else if is_too_much && faults.contains(Fault::ManyCallsUnanswered) {
        Some(Overload::Unanswered)
    } else {
        None
    }
}

/// What becomes of a call that is one too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overload {
    /// The server exits.
    Exits,
    /// It is never answered.
    Unanswered,
}

/// The answer to a call that was cancelled, which only a fault sends.
pub(super) fn answer_to_cancelled(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": 0, "message": "Request cancelled"}})
}

/// The outputs for a message that are written later.
#[derive(Debug)]
struct LateOutput {
    begun: Instant,
    due: Instant,
    /// The id of the request that they answer.
    id: Option<Value>,
    outputs: Vec<Output>,
}

/// The outputs that are written later, so that slow answers do not delay others unless a server takes its turn with each.
#[derive(Debug, Default)]
pub(super) struct LateOutputs {
    held: VecDeque<LateOutput>,
    /// Whether the last message was a `ping`, or what asks for as little in stateless revisions.
    is_after_ping: bool,
    cancelled: CancelledCalls,
}

impl LateOutputs {
    /// The outputs to write at once for a line: all of them, unless its answer takes longer.
    pub(super) fn hold(&mut self, line: &[u8], outputs: Vec<Output>, faults: &FaultSet) -> Vec<Output> {
        if !is_slow(faults) {
            return outputs;
        }
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        if let Some(id) = cancelled_id(&message).filter(|_| !serves_in_turn(faults)) {
            return self.cancel(id, outputs, faults);
        }
        let is_ping = message.get("method").is_some_and(|method| method == "ping" || method == "server/discover");
        let pauses = std::mem::replace(&mut self.is_after_ping, is_ping) && faults.contains(Fault::Pauses);
        let latency = if pauses { PAUSE } else { latency_of(&message, faults) };
        let now = Instant::now();
        // The message before it is served first.
        let begins = self.held.back().filter(|_| serves_in_turn(faults)).map_or(now, |last| now.max(last.due));
        let due = begins + latency;
        if due == now {
            return outputs;
        }
        match overload(self.held.len(), faults) {
            Some(Overload::Exits) => return vec![Output::Close],
            Some(Overload::Unanswered) => return Vec::new(),
            None => {}
        }
        let at = self.held.partition_point(|earlier| earlier.due <= due);
        self.held.insert(at, LateOutput { begun: begins, due, id: message.get("id").cloned(), outputs });
        Vec::new()
    }

    /// Cancels a request, and returns what is written at once.
    fn cancel(&mut self, id: &Value, mut outputs: Vec<Output>, faults: &FaultSet) -> Vec<Output> {
        let runs = |late: &LateOutput| late.id.as_ref() == Some(id);
        let running = self.held.iter().find(|late| runs(late));
        let left = running.map(|late| TimeLeft { begun: late.begun, latency: late.due - late.begun });
        let effect = self.cancelled.cancel(id, left, faults);
        if matches!(effect, Some(CancellationEffect::Stops | CancellationEffect::Answers)) {
            self.held.retain(|late| !runs(late));
        }
        match effect {
            Some(CancellationEffect::Answers) => {
                outputs.push(Output::Bytes(format!("{}\n", answer_to_cancelled(id)).into_bytes()));
            }
            Some(CancellationEffect::Exits) => outputs.push(Output::Close),
            Some(CancellationEffect::Stops) | None => {}
        }
        outputs
    }

    /// When the next of them are due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.front().map(|late| late.due)
    }

    /// Takes those that are due.
    pub(super) fn take_due(&mut self) -> Vec<Output> {
        let now = Instant::now();
        let mut outputs = Vec::new();
        while self.held.front().is_some_and(|late| late.due <= now)
            && let Some(late) = self.held.pop_front()
        {
            outputs.extend(late.outputs);
        }
        outputs
    }
}
