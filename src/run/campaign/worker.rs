//! A fuzzing worker: makes calls on one process, judges and counts them, and has new failures shrunk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::call_plan::CallPlan;
use super::concurrency::Concurrency;
use super::counts::ToolCounts;
use super::fuzz_call::{BurstEnd, FuzzCall, RecognizedResponse};
use super::response_cache::ResponseCache;
use super::server_process::ServerProcess;
use super::shared_failures::SharedFailures;
use super::shrink::{FailureTest, without_large_values};
use super::timeouts::FailureCounters;
use super::value_pool::ValuePool;
use crate::case::Oracle;
use crate::check::fuzz::{
    Call, ExchangeOutcome, FuzzExchange, FuzzedTool, OracleViolation, Validity, judge, outcome, response_class,
};
use crate::event::CallOutcome;
use crate::fuzz::ToolSchema;
use crate::run::conductor::Context;
use crate::run::plan::FuzzPlan;
use crate::verdict::{Confirmation, Counterexample};

/// The maximum number of starts of the server.
const MAX_STARTS: usize = 4_000;
/// The maximum number of failures per tool to shrink; further ones are reported as observed.
const MAX_SHRUNK_PER_TOOL: usize = 12;
/// The maximum number of failures per tool to report.
const MAX_FAILURES_PER_TOOL: usize = 48;

/// A failure, once per root cause.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) tool: usize,
    pub(super) violation: OracleViolation,
    pub(super) count: usize,
    /// The evidence.
    pub(super) exchanges: Vec<FuzzExchange>,
    pub(super) counterexample: Option<Counterexample>,
    pub(super) confirmation: Option<Confirmation>,
}

/// The state of one worker.
pub(super) struct Worker<'a> {
    pub(super) context: &'a Context,
    pub(super) plan: &'a FuzzPlan,
    pub(super) process: ServerProcess,
    pub(super) fuzzed_tools: &'a [FuzzedTool],
    pub(super) schemas: Vec<Option<&'a ToolSchema>>,
    /// For each tool, whether it is annotated `readOnlyHint`.
    pub(super) read_only: Vec<bool>,
    /// For each tool that succeeded in discovery, its plain call; repeated to detect side effects.
    pub(super) canaries: Vec<FuzzCall>,
    /// The server's lists to compare, by method and member.
    pub(super) compared_lists: &'static [(&'static str, &'static str)],
    /// Tools whose results change by themselves.
    pub(super) nondeterministic: Vec<usize>,
    /// The latencies of the plain call of the current tool.
    pub(super) plain_times: Vec<Duration>,
    /// Values from results.
    pub(super) pool: ValuePool,
    /// Cached responses of the current tool.
    pub(super) response_cache: Option<ResponseCache<'a>>,
    pub(super) found: Vec<Failure>,
    /// Failures seen by any worker.
    pub(super) shared_failures: SharedFailures,
    pub(super) deadline: Instant,
    /// How long it waited for the cases to finish.
    pub(super) waited: Duration,
    /// The time slice of the current tool.
    pub(super) time_slice: TimeSlice,
    /// The time limit of shrinking, in addition to the time for fuzzing.
    pub(super) shrinking_limit: Duration,
    pub(super) shrinking_time: Duration,
    pub(super) shrinking: u64,
    pub(super) concurrency: Concurrency,
    pub(super) stop_reason: Option<String>,
    pub(super) failure_counters: FailureCounters,
}

/// The time slice of a tool: a slow tool gets fewer calls instead of delaying the others.
#[derive(Debug, Clone)]
pub(super) struct TimeSlice {
    began: Instant,
    share: Duration,
    /// Time that does not count: shrinking, and waiting for missing responses.
    excluded: Duration,
    /// The latency of the slowest call so far.
    slowest: Duration,
    /// Latencies of successful calls with nothing else in flight; only the first ones are kept.
    pub(super) times: Vec<Duration>,
}

impl TimeSlice {
    pub(super) fn new(share: Duration, slowest: Duration) -> Self {
        Self { began: Instant::now(), share, excluded: Duration::ZERO, slowest, times: Vec::new() }
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() >= self.share + self.excluded
    }

    pub(super) fn slowest(&self) -> Duration {
        self.slowest
    }

    /// The remaining time.
    pub(super) fn left(&self) -> Duration {
        (self.share + self.excluded).saturating_sub(self.began.elapsed())
    }
}

impl Worker<'_> {
    /// The remaining time for fuzzing, without shrinking.
    pub(super) fn time_left(&self) -> Duration {
        let until = self.deadline + self.shrinking_time.min(self.shrinking_limit);
        until.saturating_duration_since(Instant::now())
    }

    /// Waits until the cases of every revision have finished, unless the tool is annotated `readOnlyHint`: cases must
    /// not see what its calls change in files or databases that all processes of the server share. The wait does not
    /// count as fuzzing time.
    pub(super) async fn wait_for_cases(&mut self, of: usize) {
        if self.read_only[of] {
            return;
        }
        let began = Instant::now();
        self.context.wait_for_cases().await;
        let duration = began.elapsed();
        self.deadline += duration;
        self.waited += duration;
    }

    /// Excludes time from the time slice.
    pub(super) fn exclude_from_time_slice(&mut self, duration: Duration) {
        self.time_slice.excluded += duration;
    }

    /// Whether fuzzing has to stop.
    pub(super) fn is_over(&mut self) -> bool {
        if self.stop_reason.is_some() {
            return true;
        }
        if self.context.is_stopping() {
            self.stop_reason = Some("the run was interrupted".to_owned());
        } else if self.time_left().is_zero() {
            self.stop_reason = Some("the time limit was reached".to_owned());
        } else if self.process.starts > MAX_STARTS {
            self.stop_reason = Some(format!("the server had to be restarted {MAX_STARTS} times"));
        }
        self.stop_reason.is_some()
    }

    /// The reason for abandoning the current tool, if there is one.
    pub(super) fn give_up_reason(&self) -> Option<String> {
        self.failure_counters.give_up_reason().or_else(|| {
            let share = self.time_slice.share;
            let slow = format!(
                "its calls are slow: it was called less often because its time slice ({share:.1?}) was used up"
            );
            self.time_slice.is_over().then_some(slow)
        })
    }

    /// Whether the current tool is out of time and has no failures that speak against further calls.
    pub(super) fn is_only_out_of_time(&self) -> bool {
        self.time_slice.is_over() && !self.failure_counters.has_failures()
    }

    /// Makes the calls of a round and judges them in order.
    pub(super) async fn run_round(
        &mut self,
        fuzz_calls: &[FuzzCall],
        in_flight: usize,
        counts: &mut ToolCounts,
        call_plan: &mut CallPlan,
    ) -> Result<(), String> {
        let (began, shrinking) = (Instant::now(), self.shrinking_time);
        let mut at = 0;
        while at < fuzz_calls.len() && !self.is_over() && self.give_up_reason().is_none() {
            let soon = self.first_timeout();
            let fuzzed_tool = &self.fuzzed_tools[call_plan.tool];
            if self
                .response_cache
                .as_ref()
                .is_none_or(|response_cache| !std::ptr::eq(response_cache.fuzzed_tool(), fuzzed_tool))
            {
                self.response_cache = Some(ResponseCache::of(fuzzed_tool));
            }
            // Comparing two responses needs both of them.
            let response_cache = self.response_cache.as_mut().filter(|_| !call_plan.doubled);
            let burst = self.process.burst(&fuzz_calls[at..], in_flight, soon, response_cache).await?;
            let (mut done, mut known) = (burst.done, burst.recognized);
            done.sort_by_key(|(index, _)| *index);
            known.sort_by_key(|known| known.index);
            let context = self.context;
            let violations = context.judging(|| {
                let mut violations = Vec::with_capacity(done.len());
                let mut known = known.iter().peekable();
                for (index, exchange) in &done {
                    while let Some(known) = known.next_if(|known| known.index < *index) {
                        self.count_recognized(&fuzz_calls[at + known.index], known, counts, call_plan);
                    }
                    violations.push(self.count_and_judge(exchange, counts, call_plan));
                }
                known.for_each(|known| self.count_recognized(&fuzz_calls[at + known.index], known, counts, call_plan));
                violations
            });
            let done: Vec<FuzzExchange> = done.into_iter().map(|(_, exchange)| exchange).collect();
            // Shrinking replaces the process, so the history for further failures is saved first.
            let record =
                if violations.iter().any(|found| !found.is_empty()) { self.process.record() } else { Vec::new() };
            for (exchange, violations) in done.iter().zip(violations) {
                self.handle_violations(fuzz_calls[at].tool, exchange, violations, &record, call_plan).await?;
            }
            if call_plan.doubled {
                self.check_repeated_calls(&done, call_plan).await?;
            }
            for (fuzz_call, exchange) in self.process.take_duplicates() {
                let violations = judge(&self.fuzzed_tools[fuzz_call.tool], &exchange);
                self.handle_violations(fuzz_call.tool, &exchange, violations, &record, call_plan).await?;
            }
            if let Some(broken) = burst.end {
                let suspects = burst.open.into_iter().map(|(index, exchange)| (at + index, exchange)).collect();
                self.find_culprit(fuzz_calls, suspects, &broken, counts, call_plan).await?;
            }
            at += burst.unsent;
        }
        // Rounds that are sequential for another reason, or contain a failure, do not show the throughput.
        if in_flight == self.concurrency.current() && self.shrinking_time == shrinking {
            self.concurrency.record_round(fuzz_calls.len(), began.elapsed());
        }
        if self.context.is_judging_cases() {
            // Calls are slower while cases run.
            self.exclude_from_time_slice(began.elapsed());
        }
        Ok(())
    }

    /// Finds out which of the calls in flight ended the server or made it hang.
    async fn find_culprit(
        &mut self,
        fuzz_calls: &[FuzzCall],
        suspects: Vec<(usize, FuzzExchange)>,
        broken: &BurstEnd,
        counts: &mut ToolCounts,
        call_plan: &mut CallPlan,
    ) -> Result<(), String> {
        if *broken == BurstEnd::Flooded {
            self.stop_reason = Some("the server wrote endlessly without answering".to_owned());
            return Ok(());
        }
        if self.process.is_gone() {
            self.report_server_end_by(suspects, call_plan.tool);
            return Ok(());
        }
        let record = self.process.record();
        let first = suspects.first().map_or(0, |(_, first)| first.id);
        let history: Vec<FuzzCall> =
            record.iter().filter(|(id, _)| *id < first).map(|(_, fuzz_call)| fuzz_call.clone()).collect();
        let alone = suspects.len() == 1;
        let last = suspects.last().map(|(_, last)| last.clone()).filter(|_| !alone);
        let mut culprit = false;
        for (index, exchange) in suspects {
            if self.is_over() || self.give_up_reason().is_some() {
                return Ok(());
            }
            let fuzz_call = &fuzz_calls[index];
            let soon = self.first_timeout();
            let exchange = if alone { exchange } else { self.process.call(fuzz_call, soon).await? };
            let waited = if alone { soon } else { soon * 2 };
            let exchange = self.retry_if_unanswered(fuzz_call, exchange, &history, waited).await?;
            if exchange.outcome == ExchangeOutcome::Answered {
                self.time_slice.slowest = self.time_slice.slowest.max(exchange.duration);
            }
            culprit |= exchange.outcome != ExchangeOutcome::Answered;
            self.failure_counters.record_failure(&exchange);
            if matches!(exchange.outcome, ExchangeOutcome::TimedOut { .. }) {
                self.exclude_from_time_slice(soon);
            }
            let mut violations = self.context.judging(|| self.count_and_judge(&exchange, counts, call_plan));
            if !self.had_full_timeouts() {
                violations.retain(|violation| violation.oracle != Oracle::Hang);
            }
            self.handle_violations(fuzz_call.tool, &exchange, violations, &record, call_plan).await?;
        }
        if let (false, Some(last)) = (culprit, last) {
            // No call does it alone, so preceding calls are needed.
            self.failure_counters.server_ends += 1;
            let violations = judge(&self.fuzzed_tools[call_plan.tool], &last);
            self.handle_violations(call_plan.tool, &last, violations, &record, call_plan).await?;
        }
        Ok(())
    }

    /// Reports the end of a server that the client cannot restart, if no call was seen to end it, with the last call.
    pub(super) fn report_server_end(&mut self) {
        if self.process.is_gone()
            && !self.found.iter().any(|found| found.violation.oracle == Oracle::Crash)
            && let Some((fuzz_call, exchange)) = self.process.last_call()
        {
            self.report_server_end_by(vec![(0, exchange)], fuzz_call.tool);
        }
    }

    /// Reports the end of a server that the client cannot restart, with the last of the calls in flight, as nothing
    /// can be repeated.
    fn report_server_end_by(&mut self, suspects: Vec<(usize, FuzzExchange)>, tool: usize) {
        self.stop_reason = Some("the server ended, and the client cannot restart it".to_owned());
        let others = suspects.len().saturating_sub(1);
        let Some((_, last)) = suspects.into_iter().next_back() else { return };
        for mut violation in judge(&self.fuzzed_tools[tool], &last) {
            if others > 0 {
                let rest = format!("; {others} other calls were in flight, and one of them may be the cause");
                violation.actual.push_str(&rest);
            }
            let found = self.unshrunk_failure(tool, violation, &last, 0);
            self.add_failure(Some(found));
        }
    }

    /// Counts an exchange and judges it.
    fn count_and_judge(
        &mut self,
        exchange: &FuzzExchange,
        counts: &mut ToolCounts,
        call_plan: &mut CallPlan,
    ) -> Vec<OracleViolation> {
        self.failure_counters.record_response(exchange);
        let alone = (exchange.alone && exchange.outcome == ExchangeOutcome::Answered).then_some(exchange.duration);
        let answered = alone.filter(|_| !exchange.responses.is_empty());
        let is_new = counts.count(&exchange.call, outcome(exchange), &response_class(exchange), answered);
        let result = exchange.responses.first().and_then(|answer| answer.get("result"));
        self.learn(&exchange.call, outcome(exchange), is_new, result, alone, call_plan);
        judge(&self.fuzzed_tools[call_plan.tool], exchange)
    }

    /// Counts a call whose response is known to be valid.
    fn count_recognized(
        &mut self,
        fuzz_call: &FuzzCall,
        known: &RecognizedResponse,
        counts: &mut ToolCounts,
        call_plan: &mut CallPlan,
    ) {
        let response = &known.response;
        self.failure_counters.record_valid_response();
        let is_new = counts.count(&fuzz_call.call, response.outcome, &response.class, known.alone);
        self.learn(&fuzz_call.call, response.outcome, is_new, response.message.get("result"), known.alone, call_plan);
    }

    /// Updates the plan of calls with an outcome.
    fn learn(
        &mut self,
        call: &Arc<Call>,
        outcome: CallOutcome,
        is_new: bool,
        result: Option<&Value>,
        alone: Option<Duration>,
        call_plan: &mut CallPlan,
    ) {
        const MAX_TIMES: usize = 4_096;
        self.time_slice.slowest = self.time_slice.slowest.max(alone.unwrap_or_default());
        call_plan.count(call);
        if is_new {
            call_plan.add_to_corpus(call);
        }
        if call.validity == Validity::Valid && outcome == CallOutcome::Success {
            call_plan.record_success(call);
            if let Some(result) = result {
                self.pool.learn(call_plan.tool, result, call);
            }
            self.time_slice.times.extend(alone.filter(|_| self.time_slice.times.len() < MAX_TIMES));
        }
    }

    /// Counts known failures and shrinks new ones; `record` is the history of the process.
    async fn handle_violations(
        &mut self,
        tool: usize,
        exchange: &FuzzExchange,
        violations: Vec<OracleViolation>,
        record: &[(i64, FuzzCall)],
        call_plan: &mut CallPlan,
    ) -> Result<(), String> {
        for violation in violations {
            if let Some(known) = self.known_failure(tool, &violation) {
                known.count += 1;
                continue;
            }
            if self.found.iter().filter(|found| found.tool == tool).count() >= MAX_FAILURES_PER_TOOL {
                // A server whose messages never repeat must not produce more findings than this.
                let same_kind = |found: &&mut Failure| found.tool == tool && found.violation.oracle == violation.oracle;
                if let Some(same_kind) = self.found.iter_mut().find(same_kind) {
                    same_kind.count += 1;
                }
                continue;
            }
            // A call that was repeated alone has a later id than all preceding calls.
            let history: Vec<FuzzCall> =
                record.iter().filter(|(id, _)| *id < exchange.id).map(|(_, fuzz_call)| fuzz_call.clone()).collect();
            let is_over_limit = self.found.iter().filter(|found| found.tool == tool).count() >= MAX_SHRUNK_PER_TOOL;
            let found = if is_over_limit || self.shrinking_time >= self.shrinking_limit {
                self.unshrunk_failure(tool, violation, exchange, 0)
            } else {
                // The call as sent, with its reused values.
                let made = record.iter().find(|(id, fuzz_call)| *id == exchange.id && fuzz_call.tool == tool);
                let fuzz_call = made.map_or_else(
                    || FuzzCall::new(tool, Arc::clone(&exchange.call)),
                    |(_, fuzz_call)| fuzz_call.clone(),
                );
                let unshrunk = violation.clone();
                let found = self
                    .investigate(&FailureTest::Response, violation, Some((fuzz_call, exchange)), history, call_plan)
                    .await?;
                found.unwrap_or_else(|| self.unshrunk_failure(tool, unshrunk, exchange, 0))
            };
            if let (Oracle::Crash | Oracle::Hang, Validity::Violates(constraint)) =
                (found.violation.oracle, &exchange.call.validity)
            {
                call_plan.avoid(constraint);
            }
            self.add_failure(Some(found));
        }
        Ok(())
    }

    pub(super) fn known_failure(&mut self, tool: usize, violation: &OracleViolation) -> Option<&mut Failure> {
        self.found.iter_mut().find(|found| found.tool == tool && found.violation.has_same_cause_as(violation))
    }

    /// A failure that is not shrunk.
    pub(super) fn unshrunk_failure(
        &self,
        tool: usize,
        violation: OracleViolation,
        exchange: &FuzzExchange,
        attempts: usize,
    ) -> Failure {
        let counterexample = self.counterexample(tool, exchange, exchange, &[], attempts);
        Failure {
            tool,
            violation,
            count: 1,
            exchanges: vec![without_large_values(exchange.clone())],
            counterexample: Some(counterexample),
            confirmation: None,
        }
    }

    pub(super) fn counterexample(
        &self,
        tool: usize,
        original: &FuzzExchange,
        smallest: &FuzzExchange,
        before: &[FuzzCall],
        attempts: usize,
    ) -> Counterexample {
        let call = &smallest.call;
        let lines = before
            .iter()
            .enumerate()
            .map(|(at, fuzz_call)| self.process.request_line(fuzz_call, 1_000 + i64::try_from(at).unwrap_or(0)))
            .chain(std::iter::once(Arc::clone(&smallest.line)));
        Counterexample {
            tool: self.fuzzed_tools[tool].name.clone(),
            kind: original.call.kind,
            violated: match &call.validity {
                Validity::Violates(constraint) => Some(constraint.to_string()),
                Validity::Malformed(_, name) => Some((*name).to_owned()),
                Validity::Valid | Validity::Unknown => None,
            },
            original: original.call.arguments.shown(),
            arguments: call.arguments.shown(),
            preceding: before
                .iter()
                .map(|fuzz_call| {
                    serde_json::json!({
                        "name": self.fuzzed_tools[fuzz_call.tool].name,
                        "arguments": fuzz_call.call.arguments.shown(),
                    })
                })
                .collect(),
            attempts,
            messages: lines.map(|line| for_display(&line)).collect(),
            file: None,
        }
    }
}

/// A line to display, truncated if it is very long.
fn for_display(line: &[u8]) -> String {
    const MAX_DISPLAYED_CHARS: usize = 20_000;
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(MAX_DISPLAYED_CHARS) {
        Some((at, _)) => format!("{}… ({} bytes in all)", &text[..at], line.len()),
        None => text.into_owned(),
    }
}
