//! Repeats calls and checks whether a failure occurs again.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::failure_test::FailureTest;
use super::shrink_budget::ShrinkBudget;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::process::caller::Caller;
use crate::case::Oracle;
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, OracleViolation, outcome};
use crate::event::CallOutcome;

/// An observed failure: the last call, and further evidence.
#[derive(Debug, Clone)]
pub(in crate::campaign) struct Observation {
    pub(in crate::campaign) exchange: FuzzExchange,
    pub(in crate::campaign) supporting: Vec<FuzzExchange>,
    /// The number of calls that it took: fewer than planned if an earlier one failed in the same way.
    pub(in crate::campaign) taken: usize,
}

impl Observation {
    /// One call that fails by itself.
    pub(super) fn of(exchange: FuzzExchange) -> Self {
        Self { exchange, supporting: Vec::new(), taken: 1 }
    }
}

/// Repeats calls to see one failure again.
pub(in crate::campaign) struct Reproducer<'r, 'a> {
    pub(in crate::campaign) caller: &'r mut Caller<'a>,
    pub(in crate::campaign) test: &'r FailureTest,
    pub(in crate::campaign) violation: &'r OracleViolation,
    /// Whether a response that may be missing is waited for as long as any other.
    pub(in crate::campaign) is_patient: bool,
}

impl Reproducer<'_, '_> {
    /// Makes calls, on a fresh process if so or if the test needs one, and checks whether the failure occurs again.
    pub(in crate::campaign) async fn attempt(
        &mut self,
        calls: &[FuzzCall],
        restart: bool,
    ) -> Result<Option<Observation>, String> {
        let Some((fuzz_call, before)) = calls.split_last() else { return Ok(None) };
        let untouched = matches!(self.test, FailureTest::ListChange | FailureTest::Canary(_));
        if restart || untouched || !before.is_empty() {
            self.caller.restart().await?;
        }
        let lists = self.lists_if_compared().await?;
        // A malformed response can also look like a missing one.
        let oracle = self.violation.oracle;
        let silent = matches!(oracle, Oracle::Hang | Oracle::MalformedResponse | Oracle::StdoutNoise);
        let limit =
            if silent && !self.is_patient { self.caller.shrink_timeout() } else { self.caller.timeouts().full() };
        let (served, unanswered) = self.caller.call_in_order(before, true).await?;
        if let Some((at, exchange)) = unanswered {
            // The failure may occur in an earlier call.
            let like = matches!(self.test, FailureTest::Response) && self.is_violated_by(before[at].tool, &exchange);
            return Ok(like.then(|| Observation { exchange, supporting: Vec::new(), taken: at + 1 }));
        }
        let fuzz_call = &fuzz_call.with_values_from(&served);
        let mut exchange = self.caller.call_within(fuzz_call, limit).await?;
        if exchange.outcome == ExchangeOutcome::Answered && may_show_late(oracle) {
            self.caller.wait_for_late_output(&mut exchange).await;
        }
        let supporting = match self.test {
            FailureTest::Response => self.is_violated_by(fuzz_call.tool, &exchange).then(Vec::new),
            // These show in no single response and are not shrunk.
            FailureTest::Growth | FailureTest::Concurrent => None,
            FailureTest::ListChange => {
                let after = self.caller.read_lists().await?;
                (lists.is_some() && after.is_some() && lists != after).then(Vec::new)
            }
            FailureTest::RepeatedCall => {
                self.differing_repeat(fuzz_call, &exchange, restart).await?.map(|second| vec![second])
            }
            FailureTest::Canary(canary) => {
                let after = self.caller.call_briefly(canary).await?;
                (outcome(&after) != CallOutcome::Success).then(|| vec![after])
            }
        };
        Ok(supporting.map(|supporting| Observation { exchange, supporting, taken: calls.len() }))
    }

    /// The number of calls after which another call or a list shows the failure, checked after each call, as long as
    /// the budget lasts.
    pub(super) async fn failing_prefix(
        &mut self,
        calls: &[FuzzCall],
        budget: &ShrinkBudget,
    ) -> Result<Option<usize>, String> {
        if !matches!(self.test, FailureTest::ListChange | FailureTest::Canary(_)) {
            return Ok(None);
        }
        self.caller.restart().await?;
        let before = self.lists_if_compared().await?;
        for (at, fuzz_call) in calls.iter().enumerate() {
            if budget.is_spent(Instant::now())
                || self.caller.call(fuzz_call).await?.outcome != ExchangeOutcome::Answered
            {
                return Ok(None);
            }
            let shows = if let FailureTest::Canary(canary) = self.test {
                outcome(&self.caller.call_briefly(canary).await?) != CallOutcome::Success
            } else {
                let after = self.caller.read_lists().await?;
                after.is_some() && after != before
            };
            if shows {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }

    async fn lists_if_compared(&mut self) -> Result<Option<Value>, String> {
        if matches!(self.test, FailureTest::ListChange) { self.caller.read_lists().await } else { Ok(None) }
    }

    /// Whether an exchange shows the same violation.
    fn is_violated_by(&self, tool: usize, exchange: &FuzzExchange) -> bool {
        let violations = self.caller.judge_again(self.violation.oracle, tool, exchange);
        violations.iter().any(|repeated| repeated.has_same_cause_as(self.violation))
    }

    /// The response to a repeated call, if it differs from the first one and, with `control`, the first responses of
    /// fresh processes do not differ.
    async fn differing_repeat(
        &mut self,
        fuzz_call: &FuzzCall,
        first: &FuzzExchange,
        control: bool,
    ) -> Result<Option<FuzzExchange>, String> {
        let second = self.caller.call(fuzz_call).await?;
        if !both_differ(first, &second) {
            return Ok(None);
        }
        if control {
            self.caller.restart().await?;
            let other = self.caller.call(fuzz_call).await?;
            if result_hash(&other) != result_hash(first) {
                return Ok(None);
            }
        }
        Ok(Some(second))
    }
}

/// Makes calls and returns the violation of an oracle in the response to the last one, if there is one.
pub(in crate::campaign) async fn violation_in_response(
    caller: &mut Caller<'_>,
    oracle: Oracle,
    calls: &[FuzzCall],
) -> Result<Option<(OracleViolation, FuzzExchange)>, String> {
    let Some((last, preceding)) = calls.split_last() else { return Ok(None) };
    let (served, _) = caller.call_in_order(preceding, false).await?;
    let mut exchange = caller.call(&last.with_values_from(&served)).await?;
    if exchange.outcome == ExchangeOutcome::Answered {
        caller.wait_for_late_output(&mut exchange).await;
    }
    let violations = caller.judge_again(oracle, last.tool, &exchange);
    Ok(violations.into_iter().find(|violation| violation.oracle == oracle).map(|violation| (violation, exchange)))
}

/// Whether two exchanges are of the same call, both are successes and their results differ.
pub(in crate::campaign) fn is_contradiction(first: &FuzzExchange, second: &FuzzExchange) -> bool {
    Arc::ptr_eq(&first.call, &second.call) && both_differ(first, second)
}

/// Whether both responses are successes and their results differ.
fn both_differ(first: &FuzzExchange, second: &FuzzExchange) -> bool {
    let served = outcome(first) == CallOutcome::Success && outcome(second) == CallOutcome::Success;
    served && result_hash(first) != result_hash(second)
}

/// A hash of the result of a call, without metadata about the response: results that are compared may be long.
pub(in crate::campaign) fn result_hash(exchange: &FuzzExchange) -> Option<u64> {
    let result = exchange.responses.first()?.get("result")?;
    let mut hasher = DefaultHasher::new();
    match result.as_object() {
        // The order of members means nothing.
        Some(members) => {
            let members = members.iter().filter(|(name, _)| *name != "_meta");
            members.collect::<BTreeMap<_, _>>().hash(&mut hasher);
        }
        None => result.hash(&mut hasher),
    }
    Some(hasher.finish())
}

/// Whether violations of this oracle may show only after the response.
pub(super) fn may_show_late(oracle: Oracle) -> bool {
    matches!(oracle, Oracle::Crash | Oracle::MalformedResponse | Oracle::StdoutNoise | Oracle::ResultRules)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_equal_whatever_their_metadata_and_the_order_of_their_members() {
        let hash = |result: Value| result_hash(&FuzzExchange::answered(json!({}), vec![json!({ "result": result })]));
        let one = hash(json!({ "content": [{ "type": "text", "text": "a" }], "isError": false, "_meta": { "at": 1 } }));
        assert!(one.is_some());
        assert_eq!(one, hash(json!({ "isError": false, "content": [{ "text": "a", "type": "text" }] })));
        assert_ne!(one, hash(json!({ "isError": false, "content": [{ "text": "b", "type": "text" }] })));
        assert_ne!(one, hash(json!({ "isError": true, "content": [{ "text": "a", "type": "text" }] })));
        assert_eq!(hash(json!([1])), hash(json!([1])));
        assert_eq!(result_hash(&FuzzExchange::answered(json!({}), vec![json!({ "error": {} })])), None);
    }
}
