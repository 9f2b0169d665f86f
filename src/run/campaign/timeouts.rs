//! Decides how long to wait for responses, and when to abandon a tool or the server: a call that hangs costs one
//! timeout, and a server where every call hangs costs a few.

use std::time::{Duration, Instant};

use super::counts::ToolCounts;
use super::fuzz_call::FuzzCall;
use super::worker::Worker;
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, Validity, judge, outcome};
use crate::event::CallOutcome;

/// The maximum first timeout, if the tool's slowest call is well below it.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// The factor of the first timeout over the slowest call so far.
const SLOWEST_CALL_FACTOR: u32 = 4;
/// The time limit for repeating the calls that preceded an unanswered one.
const MAX_HISTORY_REPLAY_TIME: Duration = Duration::from_secs(3);
/// The minimum and maximum timeout of a call that is expected to hang, while shrinking.
const SHRINK_TIMEOUT_RANGE: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(700)];
/// How often calls may end the server before the tool is abandoned.
const MAX_SERVER_ENDS: usize = 12;
/// How many calls may go unanswered before the tool is abandoned.
const MAX_UNANSWERED: usize = 3;
/// How many consecutive responses may be malformed before the tool is abandoned.
const MAX_MALFORMED_IN_A_ROW: usize = 24;
/// How many calls, of any tool, use up the full timeout before later ones get less.
const MAX_FULL_TIMEOUTS: usize = 3;
/// How many consecutive tools may be abandoned before the server is.
const MAX_ABANDONED_TOOLS: usize = 3;
/// How many tools may leave the same malformed arguments unanswered before no other tool is called with them.
const MAX_TOOLS_PER_MALFORMATION: usize = 2;

/// Counts of unanswered calls and server exits.
#[derive(Debug, Clone, Default)]
pub(super) struct FailureCounters {
    /// Calls of the current tool that ended the server, and those that went unanswered.
    pub(super) server_ends: usize,
    unanswered: usize,
    /// Consecutive malformed responses of the current tool.
    malformed_in_a_row: usize,
    /// Calls of any tool that went unanswered for the full timeout.
    full_timeouts: usize,
    /// Calls of the current tool that went unanswered for less than the full timeout.
    short_timeouts: usize,
    /// Consecutive abandoned tools.
    abandoned_tools: usize,
    /// Whether the server was abandoned.
    pub(super) given_up: bool,
    /// The kinds of malformed arguments of unanswered calls.
    unanswered_malformations: Vec<&'static str>,
}

impl FailureCounters {
    /// Begins the time slice of a tool.
    pub(super) fn begin(&mut self) {
        (self.server_ends, self.unanswered, self.malformed_in_a_row, self.short_timeouts) = (0, 0, 0, 0);
    }

    /// Records a call that ended a burst.
    pub(super) fn record_failure(&mut self, exchange: &FuzzExchange) {
        match &exchange.outcome {
            ExchangeOutcome::Exited { .. } => self.server_ends += 1,
            ExchangeOutcome::TimedOut { .. } => {
                self.unanswered += 1;
                if let Validity::Malformed(_, name) = exchange.call.validity {
                    self.unanswered_malformations.push(name);
                }
            }
            ExchangeOutcome::Answered => {}
        }
    }

    /// Records a response.
    pub(super) fn record_response(&mut self, exchange: &FuzzExchange) {
        if exchange.outcome == ExchangeOutcome::Answered {
            self.malformed_in_a_row = if outcome(exchange) == CallOutcome::Malformed || has_wrong_id(exchange) {
                self.malformed_in_a_row + 1
            } else {
                0
            };
        }
    }

    /// Records a response that is known to be valid.
    pub(super) fn record_valid_response(&mut self) {
        self.malformed_in_a_row = 0;
    }

    /// Whether enough other tools left these arguments unanswered.
    pub(super) fn is_known_unanswered(&self, fuzz_call: &FuzzCall) -> bool {
        let Validity::Malformed(_, name) = fuzz_call.call.validity else { return false };
        self.unanswered_malformations.iter().filter(|known| **known == name).count() >= MAX_TOOLS_PER_MALFORMATION
    }

    /// Whether the current tool has unanswered calls, or is to be abandoned.
    pub(super) fn has_failures(&self) -> bool {
        self.unanswered > 0 || self.give_up_reason().is_some()
    }

    /// The reason for abandoning the current tool, if there is one.
    pub(super) fn give_up_reason(&self) -> Option<String> {
        if self.server_ends >= MAX_SERVER_ENDS {
            Some(format!("abandoned after its calls ended the server {MAX_SERVER_ENDS} times"))
        } else if self.unanswered >= MAX_UNANSWERED || self.short_timeouts > 0 {
            let times = self.unanswered;
            let calls = if times == 1 { "one of its calls".to_owned() } else { format!("{times} of its calls") };
            Some(match self.short_timeouts {
                0 => format!("abandoned after {calls} went unanswered"),
                _ => {
                    format!(
                        "abandoned after {calls} went unanswered for a short time, because many calls of other tools were never answered"
                    )
                }
            })
        } else if self.malformed_in_a_row >= MAX_MALFORMED_IN_A_ROW {
            Some(format!("abandoned after {MAX_MALFORMED_IN_A_ROW} consecutive calls got no valid response"))
        } else {
            None
        }
    }

    /// Ends the time slice of a tool; returns the reason for abandoning the server, if there is one.
    pub(super) fn end(&mut self, counts: &ToolCounts) -> Option<String> {
        if self.malformed_in_a_row < MAX_MALFORMED_IN_A_ROW && counts.is_served_mostly() {
            self.abandoned_tools = 0;
            return None;
        }
        self.abandoned_tools += 1;
        self.given_up = self.abandoned_tools >= MAX_ABANDONED_TOOLS;
        let why = self
            .give_up_reason()
            .unwrap_or_else(|| "abandoned after most of its calls got no usable response".to_owned());
        self.given_up.then(|| {
            format!("most calls of {MAX_ABANDONED_TOOLS} consecutive tools failed, and the last tool was {why}")
        })
    }
}

/// Whether a response was matched to the call in spite of a different id.
fn has_wrong_id(exchange: &FuzzExchange) -> bool {
    let own = |answer: &serde_json::Value| answer.get("id").is_some_and(|id| id == &serde_json::json!(exchange.id));
    !exchange.call.is_unparsable() && !exchange.responses.iter().any(own)
}

impl Worker<'_> {
    /// The full timeout of a call.
    pub(super) fn timeout(&self) -> Duration {
        self.context.plan.timeout
    }

    /// The first timeout of a call; after it, the call is repeated with the full timeout.
    pub(super) fn first_timeout(&self) -> Duration {
        FIRST_TIMEOUT.min(self.timeout() / 3).max(self.time_slice.slowest() * SLOWEST_CALL_FACTOR).min(self.timeout())
    }

    /// The timeout of a call that is expected to hang.
    pub(super) fn shrink_timeout(&self) -> Duration {
        let usual = self.time_slice.slowest() * SLOWEST_CALL_FACTOR * 2 + self.process.startup() / 2;
        usual.clamp(SHRINK_TIMEOUT_RANGE[0], SHRINK_TIMEOUT_RANGE[1]).min(self.timeout())
    }

    /// Distinguishes a call that is never answered from a slow one; `waited` is the time waited so far.
    pub(super) async fn retry_if_unanswered(
        &mut self,
        fuzz_call: &FuzzCall,
        exchange: FuzzExchange,
        history: &[FuzzCall],
        waited: Duration,
    ) -> Result<FuzzExchange, String> {
        if !matches!(exchange.outcome, ExchangeOutcome::TimedOut { .. }) {
            return Ok(exchange);
        }
        let known = judge(&self.fuzzed_tools[fuzz_call.tool], &exchange);
        if known.iter().any(|violation| self.known_failure(fuzz_call.tool, violation).is_some()) {
            // Such a call is known to go unanswered for the full timeout.
            return Ok(exchange);
        }
        if self.failure_counters.full_timeouts >= MAX_FULL_TIMEOUTS {
            self.failure_counters.short_timeouts += 1;
            return Ok(exchange);
        }
        let began = Instant::now();
        let full_timeouts = self.retry_with_more_time(fuzz_call, exchange, history, waited).await?;
        if full_timeouts.outcome != ExchangeOutcome::Answered {
            self.failure_counters.full_timeouts +=
                usize::from(matches!(full_timeouts.outcome, ExchangeOutcome::TimedOut { .. }));
            self.shrinking_time += began.elapsed();
            self.exclude_from_time_slice(began.elapsed());
        }
        Ok(full_timeouts)
    }

    /// Whether missing responses count: a call without the full timeout may just be slow.
    pub(super) fn had_full_timeouts(&self) -> bool {
        self.failure_counters.short_timeouts == 0
    }

    /// Repeats an unanswered call on a fresh process for the rest of its timeout, while the first process keeps the
    /// same time.
    async fn retry_with_more_time(
        &mut self,
        fuzz_call: &FuzzCall,
        exchange: FuzzExchange,
        history: &[FuzzCall],
        waited: Duration,
    ) -> Result<FuzzExchange, String> {
        let timeout = self.timeout();
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
        let restart = async {
            process.restart().await?;
            process.call(fuzz_call, longer).await
        };
        let retried = {
            tokio::pin!(late, restart);
            tokio::select! {
                biased;
                Some(answer) = &mut late => Err((answer, waited)),
                retried = &mut restart => Ok(retried?),
            }
        };
        let retried = match retried {
            Ok(retried) => retried,
            Err((answer, waited)) => {
                // It is slow. The call on the other process is not needed.
                self.process.drop_process();
                let duration = exchange.duration.max(waited);
                let responses = if unparsable { Vec::new() } else { vec![answer] };
                return Ok(FuzzExchange { responses, outcome: ExchangeOutcome::Answered, duration, ..exchange });
            }
        };
        if let ExchangeOutcome::TimedOut { .. } = retried.outcome {
            return Ok(FuzzExchange { outcome: ExchangeOutcome::TimedOut { waited: waited + longer }, ..retried });
        }
        if retried.outcome != ExchangeOutcome::Answered
            || history.is_empty()
            || retried.duration > self.first_timeout() / 2
        {
            return Ok(retried);
        }
        // The failure may depend on preceding calls.
        self.process.restart().await?;
        let began = Instant::now();
        for earlier in history {
            let is_late = began.elapsed() > MAX_HISTORY_REPLAY_TIME;
            if is_late || self.process.call(earlier, self.timeout()).await?.outcome != ExchangeOutcome::Answered {
                return Ok(retried);
            }
        }
        self.process.call(fuzz_call, longer).await
    }
}
