//! Shrinks a failure against live processes: first to fewer calls, then to smaller arguments.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::call_plan::CallPlan;
use super::fuzz_call::{FuzzCall, ServedCall};
use super::worker::{Failure, Worker};
use crate::case::Oracle;
use crate::check::fuzz::{
    Arguments, Call, ExchangeOutcome, FuzzExchange, OracleViolation, Validity, excerpt, judge, outcome,
};
use crate::event::CallOutcome;
use crate::fuzz::{ChoiceSequence, Malformed, Shrinker};
use crate::verdict::{Confirmation, Verdict};

/// The maximum number of attempts per failure.
const MAX_ATTEMPTS: usize = 3_000;
/// The time limit per failure.
const MAX_SHRINK_TIME: Duration = Duration::from_secs(12);
/// The same limits if another tool fails in the same way, as the root cause is likely the same.
const MAX_BRIEF_ATTEMPTS: usize = 32;
const BRIEF_SHRINK_TIME: Duration = Duration::from_millis(300);
/// How often to confirm the minimal counterexample.
const CONFIRMATIONS: usize = 3;
/// A warning is confirmed as often as a failure if the server starts within this time, otherwise once.
const QUICK_START: Duration = Duration::from_millis(300);
/// How many calls before a failure may be its cause if it shows late.
const MAX_LATE_CALLS: usize = 8;

/// The remaining budget for one failure.
pub(super) struct ShrinkBudget {
    until: Instant,
    most: usize,
    pub(super) attempts: usize,
}

impl ShrinkBudget {
    pub(super) fn new(started: Duration) -> Self {
        Self {
            until: Instant::now() + MAX_SHRINK_TIME.max(started * 20).min(MAX_SHRINK_TIME * 3),
            most: MAX_ATTEMPTS,
            attempts: 0,
        }
    }

    /// The budget for a failure that another tool has shown before.
    fn brief() -> Self {
        Self { until: Instant::now() + BRIEF_SHRINK_TIME, most: MAX_BRIEF_ATTEMPTS, attempts: 0 }
    }

    fn is_spent(&self) -> bool {
        self.attempts >= self.most || Instant::now() >= self.until
    }
}

/// How to detect that a failure occurs again.
#[derive(Debug, Clone)]
pub(super) enum FailureTest {
    /// In the response to the last call.
    Response,
    /// In lists that differ before and after the calls.
    ListChange,
    /// In the response to the last call when it is repeated.
    RepeatedCall,
    /// In another call, which no longer succeeds.
    Canary(FuzzCall),
    /// In growth while the calls are repeated.
    Growth,
    /// In responses that belong to another call when all calls are made concurrently.
    Concurrent,
}

/// An observed failure: the last call, and further evidence.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    pub(super) exchange: FuzzExchange,
    pub(super) supporting: Vec<FuzzExchange>,
    /// The number of calls that it took: fewer than planned if an earlier one failed in the same way.
    taken: usize,
}

impl Worker<'_> {
    /// Finds the smallest sequence of calls that reproduces a violation.
    ///
    /// `calls` precede the failure, oldest first. The last call is `exchange` if the failure shows in a response,
    /// otherwise the last of `calls`.
    pub(super) async fn investigate(
        &mut self,
        test: &FailureTest,
        violation: OracleViolation,
        fuzz_call: Option<(FuzzCall, &FuzzExchange)>,
        calls: Vec<FuzzCall>,
        call_plan: &CallPlan,
    ) -> Result<Option<Failure>, String> {
        let began = Instant::now();
        let made = self.process.calls;
        let found = self.shrink(test, violation, fuzz_call, calls, call_plan).await;
        self.shrinking += self.process.calls - made;
        self.shrinking_time += began.elapsed();
        self.exclude_from_time_slice(began.elapsed());
        found
    }

    async fn shrink(
        &mut self,
        test: &FailureTest,
        violation: OracleViolation,
        fuzz_call: Option<(FuzzCall, &FuzzExchange)>,
        calls: Vec<FuzzCall>,
        call_plan: &CallPlan,
    ) -> Result<Option<Failure>, String> {
        let started = self.process.startup();
        let tool = fuzz_call.as_ref().map(|(fuzz_call, _)| fuzz_call.tool);
        let brief = tool.is_some_and(|tool| self.shared_failures.record(tool, &violation));
        let mut budget = if brief { ShrinkBudget::brief() } else { ShrinkBudget::new(started) };
        let mut confirmed = 0;
        let mut needed: Vec<FuzzCall> = Vec::new();
        let mut observed = None;
        if let Some((failing, _)) = &fuzz_call {
            // Only a crash needs a fresh process in any case; other failures are first tried on the current one.
            needed = vec![failing.clone()];
            // Reused values of this process mean nothing to another one.
            let restart = !failing.reused.is_empty();
            observed = self.reproduces(test, &needed, &violation, restart, &mut budget).await?;
            if observed.is_none() && may_show_late(violation.oracle) {
                // What a call causes after its response shows in the next call.
                for earlier in calls.iter().rev().take(MAX_LATE_CALLS) {
                    observed =
                        self.reproduces(test, std::slice::from_ref(earlier), &violation, true, &mut budget).await?;
                    if observed.is_some() {
                        needed = vec![earlier.clone()];
                        break;
                    }
                }
            }
            if observed.is_some() {
                let small =
                    self.shrink_arguments(test, &mut needed, &violation, call_plan, &mut budget).await?.or(observed);
                if brief {
                    return Ok(small.map(|observation| {
                        self.failure_from(test, violation, fuzz_call.as_ref(), &needed, observation, None, &budget)
                    }));
                }
                observed = self.count_reproductions(test, &needed, small, &violation, 1, &mut budget).await?.0;
                confirmed = usize::from(observed.is_some());
            } else if brief {
                return Ok(None);
            }
        }
        if observed.is_none() && !(calls.is_empty() && fuzz_call.is_some()) {
            needed = calls;
            needed.extend(fuzz_call.iter().map(|(fuzz_call, _)| fuzz_call.clone()));
            observed = self.reproduces(test, &needed, &violation, true, &mut budget).await?;
            if let Some(observation) = &observed {
                needed.truncate(observation.taken);
                needed = self.remove_calls(test, needed, fuzz_call.is_some(), &violation, &mut budget).await?;
                observed =
                    self.shrink_arguments(test, &mut needed, &violation, call_plan, &mut budget).await?.or(observed);
            }
        }
        let times = if violation.verdict == Verdict::Fail || started < QUICK_START { CONFIRMATIONS } else { 1 };
        let remaining = times.saturating_sub(confirmed);
        let mut failed = confirmed;
        if remaining > 0 {
            let (observation, repeated) =
                self.count_reproductions(test, &needed, observed.clone(), &violation, remaining, &mut budget).await?;
            observed = observation.or(observed.filter(|_| confirmed > 0));
            failed += repeated;
        }
        let Some(observation) = observed.filter(|_| failed > 0 && !needed.is_empty()) else {
            // It cannot be reproduced: report it as observed, and as unconfirmed, if there is something to report.
            return Ok(fuzz_call.map(|(fuzz_call, exchange)| Failure {
                confirmation: Some(Confirmation { tried: times, failed: 0 }),
                ..self.unshrunk_failure(fuzz_call.tool, violation, exchange, budget.attempts)
            }));
        };
        let confirmation = Some(Confirmation { tried: times, failed });
        Ok(Some(self.failure_from(test, violation, fuzz_call.as_ref(), &needed, observation, confirmation, &budget)))
    }

    /// The failure, represented by the last of the calls that it needs.
    #[expect(clippy::too_many_arguments, reason = "these are the parts of one finding")]
    fn failure_from(
        &self,
        test: &FailureTest,
        violation: OracleViolation,
        fuzz_call: Option<&(FuzzCall, &FuzzExchange)>,
        needed: &[FuzzCall],
        observation: Observation,
        confirmation: Option<Confirmation>,
        budget: &ShrinkBudget,
    ) -> Failure {
        let (tool, before) = match needed.split_last() {
            Some((last, before)) => (last.tool, before),
            None => (fuzz_call.map_or(0, |(fuzz_call, _)| fuzz_call.tool), needed),
        };
        let judged = judge(&self.fuzzed_tools[tool], &observation.exchange);
        // The hanging call had a longer timeout originally than while shrinking.
        let repeated = judged
            .into_iter()
            .find(|repeated| repeated.has_same_cause_as(&violation) && repeated.oracle != Oracle::Hang);
        let violation = repeated.unwrap_or(violation);
        let original = fuzz_call.map_or(&observation.exchange, |(_, exchange)| exchange);
        let mut counterexample = self.counterexample(tool, original, &observation.exchange, before, budget.attempts);
        if let Some(path) = self.save_regression(test, &violation, needed) {
            counterexample.file = Some(path);
        }
        let exchanges =
            std::iter::once(observation.exchange).chain(observation.supporting).map(without_large_values).collect();
        Failure { tool, violation, count: 1, exchanges, counterexample: Some(counterexample), confirmation }
    }

    /// Repeats calls on fresh processes; returns the last failure and how often they failed.
    async fn count_reproductions(
        &mut self,
        test: &FailureTest,
        calls: &[FuzzCall],
        observed: Option<Observation>,
        violation: &OracleViolation,
        times: usize,
        budget: &mut ShrinkBudget,
    ) -> Result<(Option<Observation>, usize), String> {
        let (mut last, mut failed) = (None, 0);
        if observed.is_some() {
            for _ in 0..times {
                if let Some(found) = self.reproduces(test, calls, violation, true, budget).await? {
                    failed += 1;
                    last = Some(found);
                }
            }
        }
        Ok((last, failed))
    }

    /// Makes calls and checks whether the failure occurs again.
    pub(super) async fn reproduces(
        &mut self,
        test: &FailureTest,
        calls: &[FuzzCall],
        violation: &OracleViolation,
        restart: bool,
        budget: &mut ShrinkBudget,
    ) -> Result<Option<Observation>, String> {
        let Some((fuzz_call, before)) = calls.split_last() else { return Ok(None) };
        budget.attempts += 1;
        let untouched = matches!(test, FailureTest::ListChange | FailureTest::Canary(_));
        if restart || untouched || !before.is_empty() {
            self.process.restart().await?;
        }
        let lists = if matches!(test, FailureTest::ListChange) { self.read_lists().await? } else { None };
        // A malformed response can also look like a missing one.
        let silent = matches!(violation.oracle, Oracle::Hang | Oracle::MalformedResponse | Oracle::StdoutNoise);
        let limit = if silent { self.shrink_timeout() } else { self.timeout() };
        let mut served: Vec<ServedCall> = Vec::new();
        for (at, earlier) in before.iter().enumerate() {
            let exchange = self.process.call(&earlier.with_values_from(&served), self.timeout()).await?;
            if let Some(result) = exchange.responses.first().and_then(|answer| answer.get("result")) {
                served.push((earlier.tool, Arc::clone(&earlier.call), result.clone()));
            }
            if exchange.outcome != ExchangeOutcome::Answered {
                // The failure may occur in an earlier call.
                let judged = judge(&self.fuzzed_tools[earlier.tool], &exchange);
                let like = judged.iter().any(|repeated| repeated.has_same_cause_as(violation))
                    && matches!(test, FailureTest::Response);
                return Ok(like.then(|| Observation { exchange, supporting: Vec::new(), taken: at + 1 }));
            }
        }
        let fuzz_call = &fuzz_call.with_values_from(&served);
        let mut exchange = self.process.call(fuzz_call, limit).await?;
        if exchange.outcome == ExchangeOutcome::Answered && may_show_late(violation.oracle) {
            self.process.wait_for_late_output(&mut exchange).await;
        }
        let supporting = match test {
            FailureTest::Response => {
                let judged = judge(&self.fuzzed_tools[fuzz_call.tool], &exchange);
                judged.iter().any(|repeated| repeated.has_same_cause_as(violation)).then(Vec::new)
            }
            // These show in no single response and are not shrunk.
            FailureTest::Growth | FailureTest::Concurrent => None,
            FailureTest::ListChange => {
                let after = self.read_lists().await?;
                (lists.is_some() && after.is_some() && lists != after).then(Vec::new)
            }
            FailureTest::RepeatedCall => {
                self.differing_repeat(fuzz_call, &exchange, restart).await?.map(|second| vec![second])
            }
            FailureTest::Canary(canary) => {
                let after = self.process.call(canary, self.first_timeout()).await?;
                (outcome(&after) != CallOutcome::Success).then(|| vec![after])
            }
        };
        Ok(supporting.map(|supporting| Observation { exchange, supporting, taken: calls.len() }))
    }

    /// The response to a repeated call, if it differs from the first one and, with `control`, the first responses of
    /// fresh processes do not differ.
    async fn differing_repeat(
        &mut self,
        fuzz_call: &FuzzCall,
        first: &FuzzExchange,
        control: bool,
    ) -> Result<Option<FuzzExchange>, String> {
        let second = self.process.call(fuzz_call, self.timeout()).await?;
        if !both_differ(first, &second) {
            return Ok(None);
        }
        if control {
            self.process.restart().await?;
            let other = self.process.call(fuzz_call, self.timeout()).await?;
            if result_of(&other) != result_of(first) {
                return Ok(None);
            }
        }
        Ok(Some(second))
    }

    /// Removes calls that the failure does not need; the last one stays if it is `fixed`.
    async fn remove_calls(
        &mut self,
        test: &FailureTest,
        calls: Vec<FuzzCall>,
        fixed: bool,
        violation: &OracleViolation,
        budget: &mut ShrinkBudget,
    ) -> Result<Vec<FuzzCall>, String> {
        let mut needed = calls;
        if let Some(length) = self.find_failing_prefix(test, &needed, budget).await? {
            needed.truncate(length);
        }
        // Often it is enough to keep the calls whose results are reused, the last calls, or the calls of one tool.
        let mut shorter: Vec<Vec<FuzzCall>> = Vec::new();
        if let Some((last, before)) = needed.split_last()
            && !last.reused.is_empty()
        {
            let is_source = |fuzz_call: &&FuzzCall| {
                let mut sources = last.reused.iter().filter_map(|reused| reused.source.as_ref());
                sources.any(|source| Arc::ptr_eq(source, &fuzz_call.call))
            };
            let sources: Vec<FuzzCall> = before.iter().filter(is_source).cloned().collect();
            // The same call may have been made more than once.
            shorter.extend(sources.last().map(|source| vec![source.clone(), last.clone()]));
            shorter.push(sources.into_iter().chain([last.clone()]).collect());
        }
        let lengths = [1, 2, 3, 5, 9, 17]
            .into_iter()
            .filter(|length| *length < needed.len())
            .map(|length| needed[needed.len() - length..].to_vec());
        shorter.extend(lengths);
        if let Some(last) = needed.last() {
            let tools: BTreeSet<usize> = needed.iter().map(|fuzz_call| fuzz_call.tool).collect();
            for tool in tools {
                let mut own: Vec<FuzzCall> =
                    needed[..needed.len() - 1].iter().filter(|s| s.tool == tool).cloned().collect();
                own.push(last.clone());
                shorter.push(own);
            }
        }
        for calls in shorter {
            if calls.len() < needed.len()
                && !budget.is_spent()
                && let Some(observation) = self.reproduces(test, &calls, violation, true, budget).await?
            {
                needed = calls;
                needed.truncate(observation.taken);
            }
        }
        let mut size = needed.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            loop {
                let last = needed.len() - usize::from(fixed);
                if at >= last || needed.len() == 1 || budget.is_spent() {
                    break;
                }
                let end = (at + size).min(last);
                let rest: Vec<FuzzCall> = needed[..at].iter().chain(&needed[end..]).cloned().collect();
                match self.reproduces(test, &rest, violation, true, budget).await? {
                    Some(observation) => {
                        needed = rest;
                        needed.truncate(observation.taken);
                    }
                    None => at = end,
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(needed)
    }

    /// The number of calls after which another call or a list shows the failure, checked after each call.
    async fn find_failing_prefix(
        &mut self,
        test: &FailureTest,
        calls: &[FuzzCall],
        budget: &mut ShrinkBudget,
    ) -> Result<Option<usize>, String> {
        if !matches!(test, FailureTest::ListChange | FailureTest::Canary(_)) {
            return Ok(None);
        }
        self.process.restart().await?;
        let before = if matches!(test, FailureTest::ListChange) { self.read_lists().await? } else { None };
        for (at, fuzz_call) in calls.iter().enumerate() {
            if budget.is_spent()
                || self.process.call(fuzz_call, self.timeout()).await?.outcome != ExchangeOutcome::Answered
            {
                return Ok(None);
            }
            let shows = if let FailureTest::Canary(canary) = test {
                outcome(&self.process.call(canary, self.first_timeout()).await?) != CallOutcome::Success
            } else {
                let after = self.read_lists().await?;
                after.is_some() && after != before
            };
            if shows {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }

    /// Finds the smallest arguments of the same class that fail: of the last call first, then of the preceding calls.
    async fn shrink_arguments(
        &mut self,
        test: &FailureTest,
        calls: &mut [FuzzCall],
        violation: &OracleViolation,
        call_plan: &CallPlan,
        budget: &mut ShrinkBudget,
    ) -> Result<Option<Observation>, String> {
        const MAX_CALLS_TO_SHRINK_ALL: usize = 4;
        let mut best = None;
        let many = calls.len() > MAX_CALLS_TO_SHRINK_ALL;
        for at in (0..calls.len()).rev() {
            if many && at + 1 < calls.len() {
                break;
            }
            best = self.shrink_arguments_at(at, test, calls, violation, call_plan, budget).await?.or(best);
        }
        Ok(best)
    }

    async fn shrink_arguments_at(
        &mut self,
        at: usize,
        test: &FailureTest,
        calls: &mut [FuzzCall],
        violation: &OracleViolation,
        call_plan: &CallPlan,
        budget: &mut ShrinkBudget,
    ) -> Result<Option<Observation>, String> {
        let fuzz_call = calls[at].clone();
        let call = &fuzz_call.call;
        if let Validity::Malformed(_, name) = call.validity {
            let Some(kind) = Malformed::kinds().into_iter().find(|kind| kind.name == name) else { return Ok(None) };
            let bare = kind.of(&json!({}));
            calls[at].call = Arc::new(Call { arguments: Arguments::Raw(bare.arguments), ..(**call).clone() });
            let observed = self.reproduces(test, calls, violation, false, budget).await?;
            if observed.is_none() {
                calls[at] = fuzz_call;
            }
            return Ok(observed);
        }
        let Arguments::Json(arguments) = &call.arguments else { return Ok(None) };
        let own = fuzz_call.tool == call_plan.tool;
        let generator = if own {
            call_plan.generator(&call.validity)
        } else {
            let schema = self.schemas[fuzz_call.tool];
            schema.filter(|_| call.validity == Validity::Valid).map(|schema| schema.valid().clone())
        };
        let Some(generator) = generator else { return Ok(None) };
        let from_choices = call
            .choices
            .as_ref()
            .and_then(|choices| Shrinker::new(generator.clone(), ChoiceSequence::replay(choices.by(&generator))))
            .filter(|shrinker| shrinker.current() == arguments);
        let Some(mut shrinker) = from_choices.or_else(|| Shrinker::of_value(generator, arguments.clone())) else {
            return Ok(None);
        };
        let (mut best, mut smallest) = (None, fuzz_call.clone());
        let mut progress = shrinker.simplify();
        while progress && !budget.is_spent() && !self.context.is_stopping() {
            let arguments = Arguments::Json(shrinker.current().clone());
            calls[at].call = Arc::new(Call { arguments, choices: None, ..(**call).clone() });
            if let Some(observation) = self.reproduces(test, calls, violation, false, budget).await? {
                best = Some(observation);
                smallest = calls[at].clone();
                progress = shrinker.simplify();
            } else {
                progress = shrinker.complicate();
            }
        }
        calls[at] = smallest;
        Ok(best)
    }
}

/// The exchange with very large responses truncated, for storage.
pub(super) fn without_large_values(mut exchange: FuzzExchange) -> FuzzExchange {
    const MAX_RESPONSE_BYTES: usize = 64 << 10;
    for answer in &mut exchange.responses {
        let text = answer.to_string();
        if text.len() > MAX_RESPONSE_BYTES {
            *answer = Value::String(excerpt(&text, 4_000));
        }
    }
    exchange
}

/// Whether both responses are successes and their results differ.
pub(super) fn both_differ(first: &FuzzExchange, second: &FuzzExchange) -> bool {
    let served = outcome(first) == CallOutcome::Success && outcome(second) == CallOutcome::Success;
    served && result_of(first) != result_of(second)
}

/// The result of a call, without metadata about the response.
pub(super) fn result_of(exchange: &FuzzExchange) -> Option<Value> {
    let mut result = exchange.responses.first()?.get("result")?.clone();
    if let Some(members) = result.as_object_mut() {
        members.shift_remove("_meta");
    }
    Some(result)
}

/// Whether violations of this oracle may show only after the response.
fn may_show_late(oracle: Oracle) -> bool {
    matches!(oracle, Oracle::Crash | Oracle::MalformedResponse | Oracle::StdoutNoise)
}
