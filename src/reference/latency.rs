//! How long a slow server takes before it answers.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::connection_state::Output;
use super::fault::{Fault, FaultSet};

/// How long [`Fault::SlowAnswers`] takes for each answer, and [`Fault::SlowInTurn`] for each message.
const SLOW_ANSWER: Duration = Duration::from_secs(2);

/// How long [`Fault::SlowCalls`] takes for each call.
const SLOW_CALL: Duration = Duration::from_secs(5);

/// How long [`Fault::SlowTool`] takes for each call of [`SLOW_TOOL`].
const SLOW_TOOL_CALL: Duration = Duration::from_millis(1_300);

/// The tool that is slow with [`Fault::SlowTool`]: the one that reports progress.
const SLOW_TOOL: &str = "count";

/// How long the answer to a message takes.
pub(super) fn latency_of(message: &Value, faults: &FaultSet) -> Duration {
    if faults.contains(Fault::SlowInTurn) {
        return SLOW_ANSWER;
    }
    let (Some(method), Some(_)) = (message.get("method").and_then(Value::as_str), message.get("id")) else {
        return Duration::ZERO;
    };
    let is_call = method == "tools/call";
    let is_of_slow_tool = || message.pointer("/params/name").is_some_and(|name| name == SLOW_TOOL);
    if is_call && faults.contains(Fault::SlowCalls) {
        SLOW_CALL
    } else if faults.contains(Fault::SlowAnswers) {
        SLOW_ANSWER
    } else if is_call && faults.contains(Fault::SlowTool) && is_of_slow_tool() {
        SLOW_TOOL_CALL
    } else {
        Duration::ZERO
    }
}

/// Whether any answer takes longer than usual.
fn is_slow(faults: &FaultSet) -> bool {
    [Fault::SlowAnswers, Fault::SlowInTurn, Fault::SlowCalls, Fault::SlowTool]
        .into_iter()
        .any(|fault| faults.contains(fault))
}

/// The outputs that are written later, so that slow answers do not delay others unless a server takes its turn with each.
#[derive(Debug, Default)]
pub(super) struct LateOutputs(VecDeque<(Instant, Vec<Output>)>);

impl LateOutputs {
    /// The outputs to write at once for a line: all of them, unless its answer takes longer.
    pub(super) fn hold(&mut self, line: &[u8], outputs: Vec<Output>, faults: &FaultSet) -> Vec<Output> {
        if !is_slow(faults) {
            return outputs;
        }
        let message = serde_json::from_slice(line).unwrap_or_default();
        let latency = latency_of(&message, faults);
        if latency.is_zero() {
            return outputs;
        }
        let now = Instant::now();
        // The message before it is served first.
        let begins = self.0.back().filter(|_| faults.contains(Fault::SlowInTurn)).map_or(now, |(due, _)| now.max(*due));
        let due = begins + latency;
        let at = self.0.partition_point(|(earlier, _)| *earlier <= due);
        self.0.insert(at, (due, outputs));
        Vec::new()
    }

    /// When the next of them are due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.front().map(|(due, _)| *due)
    }

    /// Takes those that are due.
    pub(super) fn take_due(&mut self) -> Vec<Output> {
        let now = Instant::now();
        let mut outputs = Vec::new();
        while self.0.front().is_some_and(|(due, _)| *due <= now)
            && let Some((_, due)) = self.0.pop_front()
        {
            outputs.extend(due);
        }
        outputs
    }
}
