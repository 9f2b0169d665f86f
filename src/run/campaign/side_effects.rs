//! Detects effects of calls beyond their own responses: changed lists, other calls that no longer succeed, swapped
//! responses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::call_plan::CallPlan;
use super::fuzz_call::{FuzzCall, ServedCall};
use super::shrink::{FailureTest, both_differ, result_of};
use super::worker::{Failure, Worker};
use crate::case::Oracle;
use crate::check::fuzz::{Call, FuzzExchange, OracleViolation, excerpt, outcome};
use crate::event::CallOutcome;

/// How many other tools to call again after the calls of a tool.
const MAX_CANARIES: usize = 16;
/// Calls that take longer are not repeated.
const MAX_CANARY_DURATION: Duration = Duration::from_millis(250);
/// How many pages of a list are compared.
const MAX_PAGES: usize = 16;
/// How many calls of other tools take part in the check for swapped responses.
const MAX_OTHER_TOOLS: usize = 4;
/// How many calls are compared for swapped responses.
const MAX_SWAP_CANDIDATES: usize = 40;
/// The time limit for choosing them.
const MAX_PICKING_TIME: Duration = Duration::from_millis(400);

impl Worker<'_> {
    /// Keeps the plain calls that succeed repeatedly and fast: one that creates something may not.
    pub(super) async fn choose_canaries(&mut self) -> Result<(), String> {
        for canary in std::mem::take(&mut self.canaries) {
            let mut served = !self.is_over();
            for _ in 0..2 {
                if served {
                    let exchange = self.process.call(&canary, self.first_timeout()).await?;
                    served = outcome(&exchange) == CallOutcome::Success && exchange.duration < MAX_CANARY_DURATION;
                }
            }
            if served {
                self.canaries.push(canary);
            }
        }
        Ok(())
    }

    /// Repeats the calls whose results these calls reuse: another process does not know those values, and this one
    /// may have forgotten them.
    pub(super) async fn with_current_values(&mut self, fuzz_calls: Vec<FuzzCall>) -> Result<Vec<FuzzCall>, String> {
        let mut served: Vec<ServedCall> = Vec::new();
        for reused in fuzz_calls.iter().flat_map(|fuzz_call| fuzz_call.reused.iter()) {
            let Some(source) = &reused.source else { continue };
            let is_it = |call: &Arc<Call>| Arc::ptr_eq(call, source);
            if served.iter().any(|(_, call, _)| is_it(call)) {
                continue;
            }
            let exchange =
                self.process.call(&FuzzCall::new(reused.origin.tool, Arc::clone(source)), self.timeout()).await?;
            if let Some(result) = exchange.responses.first().and_then(|answer| answer.get("result")) {
                served.push((reused.origin.tool, Arc::clone(source), result.clone()));
            }
        }
        Ok(fuzz_calls.iter().map(|fuzz_call| fuzz_call.with_values_exactly_from(&served)).collect())
    }

    /// The server's lists, in the form that is compared.
    pub(super) async fn read_lists(&mut self) -> Result<Option<Value>, String> {
        if self.compared_lists.is_empty() {
            return Ok(None);
        }
        self.process.ensure_started().await?;
        let limit = self.timeout();
        let mut read_lists = Vec::new();
        for (method, member) in self.compared_lists {
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                let began = Instant::now();
                let Some(mut result) = self.process.list_page(method, cursor, limit).await else {
                    if began.elapsed() >= limit {
                        // Do not try again, as each time would take as long.
                        self.compared_lists = &[];
                    }
                    return Ok(None);
                };
                cursor = result.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
                read_lists.push(result.get_mut(*member).map(Value::take).unwrap_or_default());
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(Some(Value::Array(read_lists)))
    }

    /// Compares the lists before and after the calls of a tool annotated `readOnlyHint`.
    pub(super) async fn check_lists(&mut self, before: Option<Value>, call_plan: &CallPlan) -> Result<(), String> {
        let after = self.read_lists().await?;
        // Lists that differ between two reads change by themselves.
        if before.is_none() || after.is_none() || before == after || after != self.read_lists().await? {
            return Ok(());
        }
        let violation = OracleViolation::from_many_calls(
            Oracle::ReadOnly,
            "a tool annotated readOnlyHint changes what the server lists",
            "a list has different contents before and after the calls",
        );
        let calls: Vec<FuzzCall> =
            self.process.history().into_iter().filter(|fuzz_call| fuzz_call.tool == call_plan.tool).collect();
        let found = self.investigate(&FailureTest::ListChange, violation, None, calls, call_plan).await?;
        self.add_failure(found);
        self.process.restart().await
    }

    /// Repeats the plain calls and checks that they still succeed.
    pub(super) async fn check_canaries(&mut self, own: bool, call_plan: &CallPlan) -> Result<(), String> {
        let canaries: Vec<FuzzCall> = self.canaries.clone();
        for canary in canaries.iter().filter(|canary| !own || canary.tool == call_plan.tool).take(MAX_CANARIES) {
            let is_known = self.process.has_history();
            let now = self.process.call(canary, self.first_timeout()).await?;
            if canary.tool == call_plan.tool {
                self.plain_times.push(now.duration);
            }
            if outcome(&now) == CallOutcome::Success || !is_known || is_limited(&now) {
                continue;
            }
            // The calls before it, without the plain call itself.
            let mut calls = self.process.history();
            calls.pop();
            self.process.restart().await?;
            let restart = self.process.call(canary, self.timeout()).await?;
            if outcome(&restart) != CallOutcome::Success {
                // It no longer succeeds even on a fresh process, so the calls are not the cause.
                self.canaries.retain(|known| known.tool != canary.tool);
                continue;
            }
            let name = &self.fuzzed_tools[canary.tool].name;
            let actual = now.responses.first().map_or_else(
                || "it is not answered".to_owned(),
                |answer| format!("the response is {}", excerpt(&answer.to_string(), 200)),
            );
            let violation = OracleViolation::from_many_calls(
                Oracle::Degradation,
                format!("after some calls, a plain call of {name} no longer succeeds"),
                actual,
            );
            if self.known_failure(call_plan.tool, &violation).is_none() {
                let found =
                    self.investigate(&FailureTest::Canary(canary.clone()), violation, None, calls, call_plan).await?;
                self.add_failure(found);
            }
            self.process.restart().await?;
        }
        Ok(())
    }

    /// Compares the responses to calls of a tool annotated `idempotentHint` that were made twice in a row.
    pub(super) async fn check_repeated_calls(
        &mut self,
        done: &[FuzzExchange],
        call_plan: &CallPlan,
    ) -> Result<(), String> {
        for pair in done.windows(2) {
            if !Arc::ptr_eq(&pair[0].call, &pair[1].call) || !both_differ(&pair[0], &pair[1]) {
                continue;
            }
            let violation = OracleViolation::from_many_calls(
                Oracle::Idempotent,
                "a tool annotated idempotentHint returns a different result when the same call is repeated",
                "the second result differs, while the first results of fresh processes do not",
            );
            if self.known_failure(call_plan.tool, &violation).is_some()
                || self.nondeterministic.contains(&call_plan.tool)
            {
                return Ok(());
            }
            let fuzz_call = FuzzCall::new(call_plan.tool, Arc::clone(&pair[0].call));
            self.process.restart().await?;
            let mut budget = super::shrink::ShrinkBudget::new(self.process.startup());
            let calls = std::slice::from_ref(&fuzz_call);
            if self.reproduces(&FailureTest::RepeatedCall, calls, &violation, true, &mut budget).await?.is_none() {
                // Its results change by themselves, such as times or random numbers.
                self.nondeterministic.push(call_plan.tool);
                return Ok(());
            }
            let found = self
                .investigate(&FailureTest::RepeatedCall, violation, Some((fuzz_call, &pair[0])), Vec::new(), call_plan)
                .await?;
            self.add_failure(found);
            return Ok(());
        }
        Ok(())
    }

    /// Checks for responses that belong to another call.
    pub(super) async fn check_swapped_responses(&mut self, call_plan: &mut CallPlan) -> Result<(), String> {
        let tool = call_plan.tool;
        let others = self.canaries.iter().filter(|canary| canary.tool != tool).take(MAX_OTHER_TOOLS).cloned();
        // Earlier calls often differ in one value, new ones in all values.
        let (mut known, mut new) = (
            call_plan.sample_served(MAX_SWAP_CANDIDATES / 2).into_iter(),
            call_plan.random_valid(MAX_SWAP_CANDIDATES / 2).into_iter(),
        );
        let mut own = Vec::new();
        while known.len() + new.len() > 0 {
            own.extend(new.next().into_iter().chain(known.next()).map(|call| FuzzCall::new(tool, call)));
        }
        let candidates: Vec<FuzzCall> = own.into_iter().chain(others).collect();
        if let Some(found) = self.find_swapped_response(tool, candidates).await? {
            self.add_failure(Some(found));
        }
        Ok(())
    }

    /// Makes calls one by one and then concurrently; a response counts as swapped only if it is known to belong to
    /// another of the calls.
    pub(super) async fn find_swapped_response(
        &mut self,
        tool: usize,
        candidates: Vec<FuzzCall>,
    ) -> Result<Option<Failure>, String> {
        let mut picked: Vec<(FuzzCall, Value)> = Vec::new();
        let began = Instant::now();
        for fuzz_call in candidates {
            if began.elapsed() > MAX_PICKING_TIME {
                break;
            }
            let exchange = self.process.call(&fuzz_call, self.timeout()).await?;
            let is_new = |known: &(FuzzCall, Value)| {
                (known.0.tool, &known.0.call.arguments) != (fuzz_call.tool, &fuzz_call.call.arguments)
            };
            if outcome(&exchange) == CallOutcome::Success
                && let Some(result) = result_of(&exchange)
                && picked.iter().all(is_new)
            {
                picked.push((fuzz_call, result));
            }
        }
        // Swaps are visible only if results differ, and usually there are none.
        if picked.iter().all(|(_, result)| *result == picked[0].1) || self.call_concurrently(&picked).await?.is_none() {
            return Ok(None);
        }
        // Unstable results prove nothing. Each call is repeated twice in a row, in reverse order, so that a result
        // that alternates or depends on the preceding call does not look stable.
        let mut stable = Vec::new();
        for (fuzz_call, result) in picked.into_iter().rev() {
            let mut same = true;
            for _ in 0..2 {
                same &= result_of(&self.process.call(&fuzz_call, self.timeout()).await?).as_ref() == Some(&result);
            }
            if same {
                stable.push((fuzz_call, result));
            }
        }
        let picked = stable;
        let mut swapped: Option<(FuzzExchange, usize)> = None;
        let mut occurrences = 0;
        for _ in 0..3 {
            match self.call_concurrently(&picked).await? {
                Some((exchange, own, other)) => {
                    // On their own, both calls still get their own results.
                    for at in [own, other] {
                        let alone = self.process.call(&picked[at].0, self.timeout()).await?;
                        if result_of(&alone).as_ref() != Some(&picked[at].1) {
                            return Ok(None);
                        }
                    }
                    occurrences += 1;
                    swapped = Some((exchange, other));
                }
                None if occurrences == 0 => return Ok(None),
                None => {}
            }
        }
        let fuzz_calls: Vec<FuzzCall> = picked.into_iter().map(|(fuzz_call, _)| fuzz_call).collect();
        let Some((exchange, other)) = swapped.filter(|_| occurrences > 1) else { return Ok(None) };
        let other_arguments = excerpt(&String::from_utf8_lossy(&fuzz_calls[other].call.arguments.bytes()), 120);
        let mut violation = OracleViolation::from_many_calls(
            Oracle::ResponsesSwapped,
            "a call made concurrently with others gets the response to another call",
            format!("the response belongs to the call with {other_arguments}"),
        );
        violation.verdict = crate::verdict::Verdict::Fail;
        let mut calls: Vec<FuzzCall> =
            fuzz_calls.iter().filter(|fuzz_call| fuzz_call.call != exchange.call).cloned().collect();
        let mut counterexample = self.counterexample(tool, &exchange, &exchange, &calls, 3);
        calls.extend(fuzz_calls.iter().find(|fuzz_call| fuzz_call.call == exchange.call).cloned());
        counterexample.file = self.save_regression(&FailureTest::Concurrent, &violation, &calls);
        Ok(Some(Failure {
            tool,
            violation,
            count: occurrences,
            exchanges: vec![exchange],
            counterexample: Some(counterexample),
            confirmation: None,
        }))
    }

    /// Makes calls concurrently; returns the first one that got the result of another call which did not get its own,
    /// with the indexes of both.
    async fn call_concurrently(
        &mut self,
        picked: &[(FuzzCall, Value)],
    ) -> Result<Option<(FuzzExchange, usize, usize)>, String> {
        let fuzz_calls: Vec<FuzzCall> = picked.iter().map(|(fuzz_call, _)| fuzz_call.clone()).collect();
        let burst = self.process.burst(&fuzz_calls, fuzz_calls.len(), self.timeout(), None).await?;
        if burst.end.is_some() {
            return Ok(None);
        }
        let got: Vec<(usize, Option<Value>)> =
            burst.done.iter().map(|(index, exchange)| (*index, result_of(exchange))).collect();
        let lost = |at: usize| {
            let own = got.iter().find(|(index, _)| *index == at);
            own.is_some_and(|(_, result)| result.as_ref() != Some(&picked[at].1))
        };
        Ok(burst.done.iter().find_map(|(own, exchange)| {
            let result = result_of(exchange).filter(|_| lost(*own))?;
            let is_other = |(at, (_, known)): &(usize, &(FuzzCall, Value))| *known == result && lost(*at);
            let (other, _) = picked.iter().enumerate().find(is_other)?;
            Some((exchange.clone(), *own, other))
        }))
    }

    /// Adds a failure, or counts it if it is known.
    pub(super) fn add_failure(&mut self, found: Option<Failure>) {
        let Some(found) = found else { return };
        match self.known_failure(found.tool, &found.violation) {
            Some(known) => known.count += found.count,
            None => self.found.push(found),
        }
    }
}

/// Whether a response reports rate limiting.
fn is_limited(exchange: &FuzzExchange) -> bool {
    let actual = exchange.responses.first().map(|answer| answer.to_string().to_lowercase()).unwrap_or_default();
    ["rate limit", "rate-limit", "ratelimit", "too many", "throttl", "quota", "429"]
        .iter()
        .any(|word| actual.contains(word))
}
