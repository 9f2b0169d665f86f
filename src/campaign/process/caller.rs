//! Calls tools on a process of the server, and waits for the responses as long as the tool usually takes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::environment::Environment;
use super::lists::ListReader;
use super::server_process::ServerProcess;
use super::timeouts::Timeouts;
use crate::campaign::calls::fuzz_call::{Burst, FuzzCall, ServedCall};
use crate::campaign::calls::tools::FuzzTools;
use crate::campaign::limits::{
    CALLS_AFTER_HISTORY, CALLS_IN_FLIGHT, LATE_REPETITIONS, LONGER_CALL, LONGER_HISTORY_REPLAY_TIME,
    MAX_HISTORY_REPLAY_TIME,
};
use crate::campaign::settings::CampaignSettings;
use crate::case::Oracle;
use crate::check::fuzz::{Call, ExchangeOutcome, FuzzExchange, OracleViolation, refused_like_invalid};

/// Makes calls on one process of the server at a time.
pub(in crate::campaign) struct Caller<'a> {
    process: ServerProcess,
    timeouts: Timeouts,
    tools: &'a FuzzTools,
    lists: ListReader,
    /// How long the calls that preceded an unanswered one are repeated, quick ones and longer ones.
    history_replay_time: [Duration; 2],
    /// How many longer calls are repeated at a time.
    in_flight: usize,
}

impl<'a> Caller<'a> {
    pub(in crate::campaign) fn new(
        environment: &Arc<dyn Environment>,
        settings: &CampaignSettings<'_>,
        tools: &'a FuzzTools,
    ) -> Self {
        Self {
            process: ServerProcess::new(environment, settings, tools),
            timeouts: Timeouts::new(settings.timeout),
            tools,
            lists: ListReader::new(settings.has_resources, settings.has_prompts),
            history_replay_time: [MAX_HISTORY_REPLAY_TIME, LONGER_HISTORY_REPLAY_TIME]
                .map(|limit| settings.extended(limit)),
            in_flight: settings.plan.in_flight.unwrap_or(CALLS_IN_FLIGHT),
        }
    }

    /// The process that is called, to look at.
    pub(in crate::campaign) fn process(&self) -> &ServerProcess {
        &self.process
    }

    /// How long a call of the current tool is waited for.
    pub(in crate::campaign) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Begins with another tool, given a latency that is known of it; no call is waited for after the deadline.
    pub(in crate::campaign) fn begin_tool(&mut self, latency: Duration, deadline: Instant) {
        self.timeouts.begin_tool(latency);
        self.set_deadline(deadline);
    }

    /// Records the latency of an answered call of the current tool.
    pub(in crate::campaign) fn record_latency(&mut self, latency: Duration) {
        self.timeouts.record(latency);
    }

    /// Sets when calls are no longer waited for.
    pub(in crate::campaign) fn set_deadline(&mut self, deadline: Instant) {
        self.process.set_deadline(deadline);
    }

    /// Starts a process if none is running.
    pub(in crate::campaign) async fn ensure_started(&mut self) -> Result<(), String> {
        self.process.ensure_started().await
    }

    /// Replaces the process by a fresh one.
    pub(in crate::campaign) async fn restart(&mut self) -> Result<(), String> {
        self.process.restart().await
    }

    /// Ends the process; the next call starts another.
    pub(in crate::campaign) fn drop_process(&mut self) {
        self.process.drop_process();
    }

    /// Ends the process and waits for it to exit.
    pub(in crate::campaign) async fn end(&mut self) {
        self.process.end().await;
    }

    /// The tools that can be called.
    pub(in crate::campaign) fn tools(&self) -> &'a FuzzTools {
        self.tools
    }

    /// Judges the responses to a call of a tool.
    pub(in crate::campaign) fn judge(&self, tool: usize, exchange: &FuzzExchange) -> Vec<OracleViolation> {
        self.tools.judge(tool, exchange)
    }

    /// Judges the responses to a call in which a violation of this oracle was found before. Refused arguments, of which one
    /// response does not show that they are, are judged to be again, and so is a result like many that kept the rules.
    pub(in crate::campaign) fn judge_again(
        &self,
        oracle: Oracle,
        tool: usize,
        exchange: &FuzzExchange,
    ) -> Vec<OracleViolation> {
        let mut violations = self.judge(tool, exchange);
        if oracle == Oracle::ValidRejected && violations.iter().all(|violation| violation.oracle != oracle) {
            violations.extend(refused_like_invalid(exchange));
        }
        if oracle == Oracle::ResultRules && violations.iter().all(|violation| violation.oracle != oracle) {
            violations.extend(self.tools.broken_rules(exchange));
        }
        violations
    }

    /// Makes one call with the full timeout.
    pub(in crate::campaign) async fn call(&mut self, fuzz_call: &FuzzCall) -> Result<FuzzExchange, String> {
        self.process.call(fuzz_call, self.timeouts.full()).await
    }

    /// Makes one call and waits for its outcome within a limit; an error if the deadline passes meanwhile.
    pub(in crate::campaign) async fn call_within(
        &mut self,
        fuzz_call: &FuzzCall,
        limit: Duration,
    ) -> Result<FuzzExchange, String> {
        self.process.call(fuzz_call, limit).await
    }

    /// Makes calls, at most so many at a time, until all are answered or none is within the limit.
    pub(in crate::campaign) async fn burst(
        &mut self,
        fuzz_calls: &[FuzzCall],
        in_flight: usize,
        limit: Duration,
    ) -> Result<Burst, String> {
        self.process.burst(fuzz_calls, in_flight, limit).await
    }

    /// The same with the first timeout; calls are no longer sent after a time.
    pub(in crate::campaign) async fn burst_until(
        &mut self,
        fuzz_calls: &[FuzzCall],
        in_flight: usize,
        until: Instant,
    ) -> Result<Burst, String> {
        self.process.set_sending_deadline(Some(until));
        let burst = self.process.burst(fuzz_calls, in_flight, self.timeouts.first()).await;
        self.process.set_sending_deadline(None);
        burst
    }

    /// Takes second responses to calls, with these.
    pub(in crate::campaign) fn take_duplicates(&mut self) -> Vec<(FuzzCall, FuzzExchange)> {
        self.process.take_duplicates()
    }

    /// Waits for late output of a call until another request is answered, and adds it to the exchange.
    pub(in crate::campaign) async fn wait_for_late_output(&mut self, exchange: &mut FuzzExchange) {
        self.process.wait_for_late_output(exchange).await;
    }

    /// Makes one call with the first timeout.
    pub(in crate::campaign) async fn call_briefly(&mut self, fuzz_call: &FuzzCall) -> Result<FuzzExchange, String> {
        self.process.call(fuzz_call, self.timeouts.first()).await
    }

    /// The timeout of a call that is expected to hang.
    pub(in crate::campaign) fn shrink_timeout(&self) -> Duration {
        self.timeouts.shrinking(self.process.startup())
    }

    /// The server's lists, in the form that is compared.
    pub(in crate::campaign) async fn read_lists(&mut self) -> Result<Option<Value>, String> {
        self.lists.read(&mut self.process, self.timeouts.full()).await
    }

    /// Whether a fresh process answers a request of more than so many bytes that asks for little.
    pub(in crate::campaign) async fn answers_long_request(&mut self, bytes: usize) -> Result<bool, String> {
        self.process.restart().await?;
        Ok(self.process.answers_long_request(bytes, self.timeouts.full()).await)
    }

    /// Makes calls one by one, each with current values from the results of earlier ones. Stops after a call that is
    /// not answered if `only_answered`; returns its index and exchange in that case, and the successful calls.
    pub(in crate::campaign) async fn call_in_order(
        &mut self,
        fuzz_calls: &[FuzzCall],
        only_answered: bool,
    ) -> Result<(Vec<ServedCall>, Option<(usize, FuzzExchange)>), String> {
        let mut served: Vec<ServedCall> = Vec::new();
        for (at, fuzz_call) in fuzz_calls.iter().enumerate() {
            let exchange = self.call(&fuzz_call.with_values_from(&served)).await?;
            if let Some(result) = exchange.responses.first().and_then(|answer| answer.get("result")) {
                served.push((fuzz_call.tool, Arc::clone(&fuzz_call.call), result.clone()));
            }
            if only_answered && exchange.outcome != ExchangeOutcome::Answered {
                return Ok((served, Some((at, exchange))));
            }
        }
        Ok((served, None))
    }

    /// Repeats the calls whose results these calls reuse: another process does not know those values, and this one
    /// may have forgotten them.
    pub(in crate::campaign) async fn with_current_values(
        &mut self,
        fuzz_calls: Vec<FuzzCall>,
    ) -> Result<Vec<FuzzCall>, String> {
        let mut served: Vec<ServedCall> = Vec::new();
        for reused in fuzz_calls.iter().flat_map(|fuzz_call| fuzz_call.reused.iter()) {
            let Some(source) = &reused.source else { continue };
            let is_it = |call: &Arc<Call>| Arc::ptr_eq(call, source);
            if served.iter().any(|(_, call, _)| is_it(call)) {
                continue;
            }
            let exchange = self.call(&FuzzCall::new(reused.origin.tool, Arc::clone(source))).await?;
            if let Some(result) = exchange.responses.first().and_then(|answer| answer.get("result")) {
                served.push((reused.origin.tool, Arc::clone(source), result.clone()));
            }
        }
        Ok(fuzz_calls.iter().map(|fuzz_call| fuzz_call.with_values_exactly_from(&served)).collect())
    }

    /// Repeats an unanswered call on a fresh process for the rest of its timeout, while the first process keeps the
    /// same time. `history` are the calls before it, which are repeated as well if the fresh process answers at once; and
    /// `waited` is the time waited so far.
    pub(in crate::campaign) async fn retry_with_more_time(
        &mut self,
        fuzz_call: &FuzzCall,
        exchange: FuzzExchange,
        history: &[FuzzCall],
        waited: Duration,
    ) -> Result<Retried, String> {
        let timeout = self.timeouts.full();
        let longer = timeout.saturating_sub(waited).max(timeout / 2);
        let slow_process = self.process.take_slow_process();
        // A line that need not be answered is followed by a request that must be.
        let unparsable = exchange.call.is_unparsable();
        let id = exchange.id + i64::from(unparsable);
        let late = async {
            match slow_process {
                Some(slow_process) => slow_process.response_to(id, longer).await,
                None => None,
            }
        };
        let process = &mut self.process;
        let on_fresh = async {
            process.restart().await?;
            process.call(fuzz_call, longer).await
        };
        let retried = {
            tokio::pin!(late, on_fresh);
            tokio::select! {
                biased;
                Some(answer) = &mut late => Err((answer, waited)),
                retried = &mut on_fresh => Ok(retried?),
            }
        };
        let retried = match retried {
            Ok(retried) => retried,
            Err((answer, waited)) => {
                // It is slow. The call on the other process is not needed.
                self.process.drop_process();
                let duration = exchange.duration.max(waited);
                let responses = if unparsable { Vec::new() } else { vec![answer] };
                let outcome = ExchangeOutcome::Answered;
                return Ok(Retried::of(FuzzExchange { responses, outcome, duration, ..exchange }));
            }
        };
        if let ExchangeOutcome::TimedOut { waited: own } = retried.outcome {
            // Over HTTP, a response can end at once without a message, so that nothing more was waited for.
            let waited = if own < longer { own } else { waited + longer };
            return Ok(Retried::of(FuzzExchange { outcome: ExchangeOutcome::TimedOut { waited }, ..retried }));
        }
        if retried.outcome != ExchangeOutcome::Answered || history.is_empty() || !self.is_quick(&retried) {
            return Ok(Retried::of(retried));
        }
        // The failure may depend on preceding calls.
        match self.after_history(fuzz_call, history, longer).await? {
            Some((_, unanswered)) if unanswered.outcome != ExchangeOutcome::Answered => Ok(Retried::of(unanswered)),
            Some((cause, late)) => {
                let late = self.late_again(&cause, late).await?;
                Ok(Retried { exchange: retried, late })
            }
            None => Ok(Retried::of(retried)),
        }
    }

    /// The call that is late because of calls before it, if one is: this one, or one of those.
    pub(in crate::campaign) async fn late_after(
        &mut self,
        fuzz_call: &FuzzCall,
        history: &[FuzzCall],
    ) -> Result<Option<LateCall>, String> {
        match self.after_history(fuzz_call, history, self.timeouts.full()).await? {
            Some((cause, late)) if late.outcome == ExchangeOutcome::Answered => self.late_again(&cause, late).await,
            _ => Ok(None),
        }
    }

    /// Waits for the response to a call that timed out, as long as for any other.
    pub(in crate::campaign) async fn wait_for_late_response(&mut self, exchange: FuzzExchange) -> FuzzExchange {
        let ExchangeOutcome::TimedOut { waited } = exchange.outcome else { return exchange };
        let Some(slow_process) = self.process.take_slow_process() else { return exchange };
        let full = self.timeouts.full();
        let began = Instant::now();
        match slow_process.response_to(exchange.id, full.saturating_sub(waited)).await {
            Some(answer) => FuzzExchange {
                responses: vec![answer],
                outcome: ExchangeOutcome::Answered,
                duration: waited + began.elapsed(),
                ..exchange
            },
            None => FuzzExchange { outcome: ExchangeOutcome::TimedOut { waited: full.max(waited) }, ..exchange },
        }
    }

    /// Whether a call was answered so soon that a late response to it is none of its own.
    fn is_quick(&self, exchange: &FuzzExchange) -> bool {
        exchange.outcome == ExchangeOutcome::Answered && exchange.duration <= self.timeouts.first() / 2
    }

    /// Repeats a call after the calls before it on a fresh process; returns the first one that is answered late, or the
    /// call itself if it is not answered.
    async fn after_history(
        &mut self,
        fuzz_call: &FuzzCall,
        history: &[FuzzCall],
        limit: Duration,
    ) -> Result<Option<(FuzzCall, FuzzExchange)>, String> {
        self.process.restart().await?;
        let (began, late) = (Instant::now(), self.timeouts.first());
        let [time, longer_time] = self.history_replay_time;
        let mut slowest = Duration::ZERO;
        let mut left = history;
        while !left.is_empty() {
            // Longer calls are repeated several at a time, as they were made.
            let (time, in_flight) = if slowest < LONGER_CALL { (time, 1) } else { (longer_time, self.in_flight) };
            if began.elapsed() > time {
                return Ok(None);
            }
            let (repeated, later) = left.split_at(in_flight.min(left.len()));
            let mut burst = self.process.burst(repeated, in_flight, self.timeouts.full()).await?;
            if burst.done.len() < repeated.len() {
                return Ok(None);
            }
            burst.done.sort_by_key(|(index, _)| *index);
            for (earlier, (_, exchange)) in repeated.iter().zip(burst.done) {
                if exchange.duration > late {
                    return Ok(Some((earlier.clone(), exchange)));
                }
                slowest = slowest.max(exchange.duration);
            }
            left = later;
        }
        for _ in 0..CALLS_AFTER_HISTORY {
            let exchange = self.process.call(fuzz_call, limit).await?;
            if exchange.outcome != ExchangeOutcome::Answered || exchange.duration > late {
                return Ok(Some((fuzz_call.clone(), exchange)));
            }
        }
        Ok(None)
    }

    /// Repeats a call that was late after other calls: it must stay late on this process, and be quick on a fresh one.
    async fn late_again(&mut self, fuzz_call: &FuzzCall, late: FuzzExchange) -> Result<Option<LateCall>, String> {
        let before = self.process.history().len().saturating_sub(1);
        for _ in 1..LATE_REPETITIONS {
            let again = self.call(fuzz_call).await?;
            if again.outcome != ExchangeOutcome::Answered || again.duration <= self.timeouts.first() {
                return Ok(None);
            }
        }
        self.process.restart().await?;
        let mut quick = self.call(fuzz_call).await?;
        for _ in 1..LATE_REPETITIONS {
            if self.is_quick(&quick) {
                quick = self.call(fuzz_call).await?;
            }
        }
        let is_confirmed = self.is_quick(&quick);
        Ok(is_confirmed.then(|| LateCall { fuzz_call: fuzz_call.clone(), before, late, quick }))
    }
}

/// What repeating an unanswered call shows.
#[derive(Debug)]
pub(in crate::campaign) struct Retried {
    pub(in crate::campaign) exchange: FuzzExchange,
    /// The call that is late because of the calls before it, if one is.
    pub(in crate::campaign) late: Option<LateCall>,
}

impl Retried {
    fn of(exchange: FuzzExchange) -> Self {
        Self { exchange, late: None }
    }
}

/// A call that is answered late after other calls, and quickly by a fresh process.
#[derive(Debug, Clone)]
pub(in crate::campaign) struct LateCall {
    pub(in crate::campaign) fuzz_call: FuzzCall,
    /// The number of calls before it.
    pub(in crate::campaign) before: usize,
    pub(in crate::campaign) late: FuzzExchange,
    /// The same call on a fresh process.
    pub(in crate::campaign) quick: FuzzExchange,
}
