//! Makes the calls of a round, judges them in order, and finds out which call ended or blocked the server.

use std::time::Duration;

use tokio::time::Instant;

use super::super::tool_run::ToolRun;
use super::Worker;
use super::investigation::calls_before;
use crate::campaign::calls::fuzz_call::{BurstEnd, FuzzCall};
use crate::campaign::failures::failure::Failure;
use crate::campaign::monitors::growth::late_failure;
use crate::campaign::monitors::monitor::Moment;
use crate::campaign::process::caller::{LateCall, Retried};
use crate::case::Oracle;
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, OracleViolation, outcome};

/// A call that was in flight when a burst ended: its index in the burst, and its exchange.
type OpenCall = (usize, FuzzExchange);

/// The answered calls of a burst, in the order in which they were made.
struct AnsweredCalls(Vec<(usize, FuzzExchange)>);

impl AnsweredCalls {
    fn of(mut done: Vec<(usize, FuzzExchange)>) -> Self {
        done.sort_by_key(|(index, _)| *index);
        Self(done)
    }

    /// Removes and returns those made before the call with an index.
    fn take_before(&mut self, index: usize) -> Self {
        let before = self.0.partition_point(|(at, _)| *at < index);
        let rest = Self(self.0.split_off(before));
        std::mem::replace(self, rest)
    }
}

impl Worker<'_> {
    /// Makes the calls of a round and judges them in order.
    pub(super) async fn run_round(
        &mut self,
        fuzz_calls: &[FuzzCall],
        in_flight: usize,
        run: &mut ToolRun,
    ) -> Result<(), String> {
        let began = Instant::now();
        let mut at = 0;
        while at < fuzz_calls.len() && self.continues() {
            at += self.run_burst(&fuzz_calls[at..], in_flight, run).await?;
        }
        if self.environment.is_judging_cases() {
            // Calls are slower while cases run.
            self.budget.exclude_from_slice(began.elapsed());
        }
        Ok(())
    }

    /// Makes calls until all are answered or one ends or blocks the server, and judges them; returns how many were
    /// sent.
    async fn run_burst(
        &mut self,
        fuzz_calls: &[FuzzCall],
        in_flight: usize,
        run: &mut ToolRun,
    ) -> Result<usize, String> {
        let until = self.budget.tool_deadline(Instant::now());
        let burst = self.caller.burst_until(fuzz_calls, in_flight, until).await?;
        let mut answered = AnsweredCalls::of(burst.done);
        let first_open = burst.open.first().map_or(usize::MAX, |(index, _)| *index);
        // Shrinking replaces the process, so the history for further failures is saved first.
        let record = burst.end.is_some().then(|| self.caller.process().record());
        self.judge_answered(answered.take_before(first_open), record.as_deref(), run).await?;
        let duplicates = self.caller.take_duplicates();
        if !duplicates.is_empty() {
            let history = self.caller.process().record();
            for (fuzz_call, exchange) in duplicates {
                let violations = self.caller.judge(fuzz_call.tool, &exchange);
                self.handle_violations_of(fuzz_call.tool, &exchange, violations, &history, run).await?;
            }
        }
        if let (Some(end), Some(record)) = (burst.end, record) {
            self.find_culprit(fuzz_calls, &mut answered, burst.open, &end, &record, run).await?;
            self.judge_answered(answered, Some(&record), run).await?;
        }
        Ok(burst.unsent)
    }

    /// Counts and judges answered calls in order, and handles their violations; `record` is the history of the process, if
    /// it is known already.
    async fn judge_answered(
        &mut self,
        answered: AnsweredCalls,
        record: Option<&[(i64, FuzzCall)]>,
        run: &mut ToolRun,
    ) -> Result<(), String> {
        let began = Instant::now();
        let (done, violations) = self.count_and_judge_all(answered, run);
        self.environment.add_judging_time(began.elapsed());
        if violations.iter().any(|found| !found.is_empty()) {
            let record = record.map_or_else(|| self.caller.process().record(), <[_]>::to_vec);
            for (exchange, violations) in done.iter().zip(violations) {
                self.handle_violations(exchange, violations, &record, run).await?;
            }
        }
        self.show(&done, run);
        self.check(Moment::Answered, run).await
    }

    /// Counts and judges answered calls in order; returns their exchanges with the violations in each.
    fn count_and_judge_all(
        &mut self,
        answered: AnsweredCalls,
        run: &mut ToolRun,
    ) -> (Vec<FuzzExchange>, Vec<Vec<OracleViolation>>) {
        let done: Vec<FuzzExchange> = answered.0.into_iter().map(|(_, exchange)| exchange).collect();
        let violations = done.iter().map(|exchange| self.count_and_judge(exchange, run)).collect();
        (done, violations)
    }

    /// Counts an exchange and judges it.
    fn count_and_judge(&mut self, exchange: &FuzzExchange, run: &mut ToolRun) -> Vec<OracleViolation> {
        let outcome = outcome(exchange);
        self.budget.counters_mut().record_response(exchange, outcome);
        if exchange.alone && exchange.outcome == ExchangeOutcome::Answered {
            self.caller.record_latency(exchange.duration);
        }
        run.record(exchange, outcome);
        self.caller.judge(run.tool(), exchange)
    }

    /// Shows calls of the current tool to the monitors.
    fn show(&mut self, exchanges: &[FuzzExchange], run: &ToolRun) {
        self.monitors.iter_mut().for_each(|monitor| monitor.observe(run.call_plan(), exchanges));
    }

    /// Finds out which of the calls in flight ended the server or made it hang. Those of the `answered` calls that were made
    /// before one of them are judged before it: which calls come next depends on the order, and must not depend on which
    /// calls happened to be late.
    async fn find_culprit(
        &mut self,
        fuzz_calls: &[FuzzCall],
        answered: &mut AnsweredCalls,
        suspects: Vec<OpenCall>,
        end: &BurstEnd,
        record: &[(i64, FuzzCall)],
        run: &mut ToolRun,
    ) -> Result<(), String> {
        if *end == BurstEnd::Flooded {
            self.budget.stop_finally("the server wrote endlessly without answering");
            return Ok(());
        }
        if self.caller.process().is_gone() {
            self.report_server_end_by(suspects, run.tool());
            return Ok(());
        }
        let first = suspects.first().map_or(0, |(_, first)| first.id);
        let history = calls_before(record, first);
        let alone = suspects.len() == 1;
        let last = suspects.last().map(|(_, last)| last.clone()).filter(|_| !alone);
        let mut culprit = false;
        for (index, exchange) in suspects {
            if !self.continues() {
                return Ok(());
            }
            self.judge_answered(answered.take_before(index), Some(record), run).await?;
            let fuzz_call = &fuzz_calls[index];
            let soon = self.caller.timeouts().first();
            let exchange = if alone { exchange } else { self.caller.call_within(fuzz_call, soon).await? };
            let waited = if alone { soon } else { soon * 2 };
            let exchange = self.retry_if_unanswered(fuzz_call, exchange, &history, waited).await?;
            if exchange.outcome == ExchangeOutcome::Answered {
                self.caller.record_latency(exchange.duration);
            }
            culprit |= exchange.outcome != ExchangeOutcome::Answered;
            self.budget.counters_mut().record_failure(&exchange);
            if matches!(exchange.outcome, ExchangeOutcome::Exited { .. }) {
                run.record_crash(&exchange.call);
            }
            if matches!(exchange.outcome, ExchangeOutcome::TimedOut { .. }) {
                self.budget.exclude_from_slice(soon);
            }
            let began = Instant::now();
            let mut violations = self.count_and_judge(&exchange, run);
            self.show(std::slice::from_ref(&exchange), run);
            self.environment.add_judging_time(began.elapsed());
            if !self.budget.counters().had_full_timeouts() {
                violations.retain(|violation| violation.oracle != Oracle::Hang);
            }
            self.handle_violations(&exchange, violations, record, run).await?;
        }
        if let (false, Some(last)) = (culprit, last) {
            if matches!(last.outcome, ExchangeOutcome::TimedOut { .. })
                && self.is_late_after_others(&last, record).await?
            {
                return Ok(());
            }
            // No call does it alone, so preceding calls are needed.
            self.budget.counters_mut().record_server_end();
            let violations = self.caller.judge(run.tool(), &last);
            self.handle_violations(&last, violations, record, run).await?;
        }
        Ok(())
    }

    /// Whether a call that timed out was late because of the calls before it, which is a failure of its own.
    async fn is_late_after_others(&mut self, last: &FuzzExchange, record: &[(i64, FuzzCall)]) -> Result<bool, String> {
        // A fresh process is enough to go on.
        if self.failures.is_known_late() {
            return Ok(true);
        }
        let Some((_, fuzz_call)) = record.iter().find(|(id, _)| *id == last.id) else { return Ok(false) };
        let (made, began) = (self.caller.process().calls(), Instant::now());
        let late = self.caller.late_after(fuzz_call, &calls_before(record, last.id)).await?;
        self.add_if_late(late.as_ref(), made);
        self.budget.add_shrinking(began.elapsed());
        Ok(late.is_some())
    }

    /// Adds the failure of a call that is late after others; so many calls had been made before it was repeated.
    fn add_if_late(&mut self, late: Option<&LateCall>, made: u64) {
        if let Some(late) = late {
            self.shrinking_calls += self.caller.process().calls() - made;
            self.failures.add(late_failure(&self.caller, self.settings, late));
        }
    }

    /// Distinguishes a call that is never answered from a slow one; `waited` is the time waited so far.
    async fn retry_if_unanswered(
        &mut self,
        fuzz_call: &FuzzCall,
        exchange: FuzzExchange,
        history: &[FuzzCall],
        waited: Duration,
    ) -> Result<FuzzExchange, String> {
        if !matches!(exchange.outcome, ExchangeOutcome::TimedOut { .. }) {
            return Ok(exchange);
        }
        let known = self.caller.judge(fuzz_call.tool, &exchange);
        if known.iter().any(|violation| self.failures.is_known(fuzz_call.tool, violation)) {
            // Such a call is known to go unanswered for the full timeout.
            return Ok(exchange);
        }
        if !self.budget.counters_mut().grant_full_timeout() {
            return Ok(exchange);
        }
        let (made, began) = (self.caller.process().calls(), Instant::now());
        let history = if self.failures.is_known_late() { &[] } else { history };
        let Retried { exchange: retried, late } =
            self.caller.retry_with_more_time(fuzz_call, exchange, history, waited).await?;
        if retried.outcome != ExchangeOutcome::Answered {
            self.budget.counters_mut().record_full_timeout(&retried);
        }
        self.add_if_late(late.as_ref(), made);
        if late.is_some() || retried.outcome != ExchangeOutcome::Answered {
            self.budget.add_shrinking(began.elapsed());
        }
        Ok(retried)
    }

    /// Reports the end of a server that the client cannot restart, if no call was seen to end it, with the last call.
    pub(super) fn report_server_end(&mut self) {
        if self.caller.process().is_gone()
            && !self.failures.any(|found| found.violation.oracle == Oracle::Crash)
            && let Some((fuzz_call, exchange)) = self.caller.process().last_call()
        {
            self.report_server_end_by(vec![(0, exchange)], fuzz_call.tool);
        }
    }

    /// Reports the end of a server that the client cannot restart, with the last of the calls in flight, as nothing
    /// can be repeated.
    fn report_server_end_by(&mut self, suspects: Vec<OpenCall>, tool: usize) {
        self.budget.stop_finally("the server ended, and the client cannot restart it");
        let others = suspects.len().saturating_sub(1);
        let Some((_, last)) = suspects.into_iter().next_back() else { return };
        for mut violation in self.caller.judge(tool, &last) {
            if others > 0 {
                let rest = format!("; {others} other calls were in flight, and one of them may be the cause");
                violation.actual.push_str(&rest);
            }
            // Nothing can be repeated; that the server is gone is what confirms it.
            let found = Failure::unshrunk(&self.caller, tool, violation, &last, 0);
            self.failures.add(Failure { confirmation: None, ..found });
        }
    }
}
