//! Failures with their evidence, once per root cause.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::shared_failures::SharedFailures;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::limits::{MAX_FAILURES_PER_TOOL, MAX_SHRUNK_PER_TOOL};
use crate::campaign::process::caller::Caller;
use crate::case::Oracle;
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, OracleViolation, Validity, excerpt};
use crate::text::first_chars;
use crate::verdict::{Confirmation, Counterexample};

/// A failure, once per root cause.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The index of the tool.
    pub(crate) tool: usize,
    pub(crate) violation: OracleViolation,
    /// How often it was observed.
    pub(crate) count: usize,
    /// The evidence.
    pub(crate) exchanges: Vec<FuzzExchange>,
    pub(crate) counterexample: Option<Counterexample>,
    pub(crate) confirmation: Option<Confirmation>,
}

impl Failure {
    /// A failure of the tool as a whole.
    pub(in crate::campaign) fn of_tool(tool: usize, violation: OracleViolation) -> Self {
        Self { tool, violation, count: 1, exchanges: Vec::new(), counterexample: None, confirmation: None }
    }

    /// A failure that is not shrunk and not yet confirmed; `attempts` is how often that was tried.
    pub(in crate::campaign) fn unshrunk(
        caller: &Caller<'_>,
        tool: usize,
        violation: OracleViolation,
        exchange: &FuzzExchange,
        attempts: usize,
    ) -> Self {
        Self {
            exchanges: vec![without_large_values(exchange.clone())],
            counterexample: Some(counterexample(caller, tool, exchange, exchange, &[], attempts)),
            confirmation: Some(Confirmation::NONE),
            ..Self::of_tool(tool, violation)
        }
    }
}

/// A failure that was seen once.
pub(in crate::campaign) struct Unconfirmed {
    index: usize,
    /// The call that showed it.
    pub(in crate::campaign) fuzz_call: FuzzCall,
    pub(in crate::campaign) violation: OracleViolation,
}

/// The failures that one worker has found.
#[derive(Debug, Default)]
pub(in crate::campaign) struct Failures {
    found: Vec<Failure>,
    /// Failures seen by any worker.
    shared: SharedFailures,
}

impl Failures {
    pub(in crate::campaign) fn new(shared: &SharedFailures) -> Self {
        Self { found: Vec::new(), shared: shared.clone() }
    }

    fn count_of_tool(&self, tool: usize) -> usize {
        self.found.iter().filter(|found| found.tool == tool).count()
    }

    /// Whether a failure of this tool with the same cause is known.
    pub(in crate::campaign) fn is_known(&self, tool: usize, violation: &OracleViolation) -> bool {
        self.found.iter().any(|found| found.tool == tool && found.violation.has_same_cause_as(violation))
    }

    /// Whether any failure meets a condition.
    pub(in crate::campaign) fn any(&self, condition: impl Fn(&Failure) -> bool) -> bool {
        self.found.iter().any(condition)
    }

    /// Whether any worker has found that calls are late after others, or take longer and longer.
    pub(in crate::campaign) fn is_known_late(&self) -> bool {
        self.shared.any_of(Oracle::LatencyGrowth)
    }

    /// Counts a violation if it needs no failure of its own: a known one, or one of a server whose messages never
    /// repeat, which must not produce more failures than reported.
    pub(in crate::campaign) fn count(&mut self, tool: usize, violation: &OracleViolation) -> bool {
        let same_cause = |found: &&mut Failure| found.tool == tool && found.violation.has_same_cause_as(violation);
        if let Some(known) = self.found.iter_mut().find(same_cause) {
            known.count += 1;
            return true;
        }
        if self.count_of_tool(tool) < MAX_FAILURES_PER_TOOL {
            return false;
        }
        let same_kind = |found: &&mut Failure| found.tool == tool && found.violation.oracle == violation.oracle;
        if let Some(same_kind) = self.found.iter_mut().find(same_kind) {
            same_kind.count += 1;
        }
        true
    }

    /// The failures that no call has repeated yet, those that fail first.
    pub(in crate::campaign) fn unconfirmed(&self) -> Vec<Unconfirmed> {
        let unconfirmed = |(index, found): (usize, &Failure)| {
            let exchange = found.exchanges.first().filter(|_| found.confirmation == Some(Confirmation::NONE))?;
            let fuzz_call = FuzzCall::new(found.tool, Arc::clone(&exchange.call));
            Some(Unconfirmed { index, fuzz_call, violation: found.violation.clone() })
        };
        let mut all: Vec<Unconfirmed> = self.found.iter().enumerate().filter_map(unconfirmed).collect();
        all.sort_by_key(|unconfirmed| std::cmp::Reverse(unconfirmed.violation.verdict));
        all
    }

    /// Records whether a retry failed in the same way.
    pub(in crate::campaign) fn record_retry(&mut self, unconfirmed: &Unconfirmed, failed: bool) {
        self.found[unconfirmed.index].confirmation = Some(Confirmation { tried: 1, failed: usize::from(failed) });
    }

    /// Forgets calls without a response that were not waited for this long and that no retry left unanswered either: a late
    /// response is no missing one.
    pub(in crate::campaign) fn forget_late_responses(&mut self, full: Duration) {
        let is_short =
            |exchange: &FuzzExchange| matches!(exchange.outcome, ExchangeOutcome::TimedOut { waited } if waited < full);
        self.found.retain(|found| {
            found.violation.oracle != Oracle::Hang
                || found.confirmation.is_none_or(|retries| retries.failed > 0)
                || !found.exchanges.first().is_some_and(is_short)
        });
    }

    /// Whether another failure of this tool may be shrunk.
    pub(in crate::campaign) fn may_shrink(&self, tool: usize) -> bool {
        self.count_of_tool(tool) < MAX_SHRUNK_PER_TOOL
    }

    /// Adds a failure, or counts it if it is known.
    pub(in crate::campaign) fn add(&mut self, found: Failure) {
        if found.violation.oracle == Oracle::LatencyGrowth {
            self.shared.record(found.tool, &found.violation);
        }
        let same_cause =
            |known: &&mut Failure| known.tool == found.tool && known.violation.has_same_cause_as(&found.violation);
        match self.found.iter_mut().find(same_cause) {
            Some(known) => known.count += found.count,
            None => self.found.push(found),
        }
    }

    /// Whether any worker has seen another tool fail in the same way before.
    pub(super) fn is_known_from_another_tool(&self, tool: usize, violation: &OracleViolation) -> bool {
        self.shared.is_known_from_another_tool(tool, violation)
    }

    /// Tells all workers about a failure; returns whether another tool failed in the same way before.
    pub(in crate::campaign) fn share(&self, tool: usize, violation: &OracleViolation) -> bool {
        self.shared.record(tool, violation)
    }

    /// The failures of all workers by tool, each cause once per tool.
    pub(in crate::campaign) fn merge(all: impl IntoIterator<Item = Self>) -> Vec<Failure> {
        Self::once_per_cause(all.into_iter().flat_map(|failures| failures.found))
    }

    /// Failures by tool, each cause once per tool.
    pub(in crate::campaign) fn once_per_cause(all: impl IntoIterator<Item = Failure>) -> Vec<Failure> {
        let mut merged = Self::default();
        for found in all {
            merged.add(found);
        }
        merged.found.sort_by_key(|found| found.tool);
        merged.found
    }
}

/// The counterexample of a failure: the original call and the smallest one, with the calls that must precede it.
pub(in crate::campaign) fn counterexample(
    caller: &Caller<'_>,
    tool: usize,
    original: &FuzzExchange,
    smallest: &FuzzExchange,
    before: &[FuzzCall],
    attempts: usize,
) -> Counterexample {
    let tools = caller.tools();
    let call = &smallest.call;
    let lines = before
        .iter()
        .enumerate()
        .map(|(at, fuzz_call)| caller.process().request_line(fuzz_call, 1_000 + i64::try_from(at).unwrap_or(0)))
        .chain(std::iter::once(Arc::clone(&smallest.line)));
    Counterexample {
        tool: tools.name(tool).to_owned(),
        kind: original.call.kind,
        violated: match &call.validity {
            Validity::Violates(constraint) => Some(constraint.to_string()),
            Validity::Malformed(_, name) => Some((*name).to_owned()),
            Validity::Valid | Validity::Unknown => None,
        },
        original: original.call.arguments.shown(),
        arguments: call.arguments.shown(),
        parts: Vec::new(),
        preceding: before
            .iter()
            .map(|fuzz_call| {
                serde_json::json!({
                    "name": tools.name(fuzz_call.tool),
                    "arguments": fuzz_call.call.arguments.shown(),
                })
            })
            .collect(),
        attempts,
        messages: lines.map(|line| for_display(&line)).collect(),
        file: None,
    }
}

/// The exchange with very large responses truncated, for storage.
pub(in crate::campaign) fn without_large_values(mut exchange: FuzzExchange) -> FuzzExchange {
    const MAX_RESPONSE_BYTES: usize = 64 << 10;
    for answer in &mut exchange.responses {
        let text = answer.to_string();
        if text.len() > MAX_RESPONSE_BYTES {
            *answer = Value::String(excerpt(&text, 4_000));
        }
    }
    exchange
}

/// A line to display, truncated if it is very long.
fn for_display(line: &[u8]) -> String {
    const MAX_DISPLAYED_CHARS: usize = 20_000;
    let text = String::from_utf8_lossy(line);
    let first = first_chars(&text, MAX_DISPLAYED_CHARS);
    if first.len() < text.len() { format!("{first}… ({} bytes in all)", line.len()) } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Oracle;

    fn violation(oracle: Oracle) -> OracleViolation {
        OracleViolation::from_many_calls(oracle, "it fails", "as observed")
    }

    #[test]
    fn a_failure_with_the_same_cause_is_counted_once_per_tool() {
        let mut failures = Failures::default();
        assert!(!failures.count(0, &violation(Oracle::Crash)));
        failures.add(Failure::of_tool(0, violation(Oracle::Crash)));
        assert!(failures.count(0, &violation(Oracle::Crash)) && failures.is_known(0, &violation(Oracle::Crash)));
        assert!(!failures.count(1, &violation(Oracle::Crash)) && !failures.count(0, &violation(Oracle::Hang)));
        let mut others = Failures::default();
        others.add(Failure::of_tool(1, violation(Oracle::Crash)));
        others.add(Failure::of_tool(0, violation(Oracle::Crash)));
        let merged = Failures::merge([others, failures]);
        let counts: Vec<_> = merged.iter().map(|found| (found.tool, found.count)).collect();
        assert_eq!(counts, [(0, 3), (1, 1)]);
    }

    #[test]
    fn a_tool_with_many_failures_gets_no_more_of_them() {
        let mut failures = Failures::default();
        for number in 0..MAX_FAILURES_PER_TOOL {
            assert_eq!(failures.may_shrink(0), number < MAX_SHRUNK_PER_TOOL);
            let other = OracleViolation { signature: number.to_string(), ..violation(Oracle::Hang) };
            assert!(!failures.count(0, &other));
            failures.add(Failure::of_tool(0, other));
        }
        let new = OracleViolation { signature: "new".to_owned(), ..violation(Oracle::Hang) };
        assert!(failures.count(0, &new) && !failures.is_known(0, &new));
        assert!(!failures.count(1, &new) && failures.may_shrink(1));
    }
}
