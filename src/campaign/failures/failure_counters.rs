//! Counts unanswered calls and server exits, and decides when to abandon a tool or the server: a server where every
//! call hangs costs a few timeouts.

use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::limits::{
    MAX_ABANDONED_TOOLS, MAX_FULL_TIMEOUTS, MAX_MALFORMED_IN_A_ROW, MAX_SERVER_ENDS, MAX_TOOLS_PER_MALFORMATION,
    MAX_UNANSWERED,
};
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, Validity};
use crate::event::CallOutcome;

/// Counts of unanswered calls and server exits.
#[derive(Debug, Clone, Default)]
pub(in crate::campaign) struct FailureCounters {
    /// Calls of the current tool that ended the server, and those that went unanswered.
    server_ends: usize,
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
    given_up: bool,
    /// The kinds of malformed arguments of unanswered calls.
    unanswered_malformations: Vec<&'static str>,
}

impl FailureCounters {
    /// Begins with another tool.
    pub(in crate::campaign) fn begin_tool(&mut self) {
        (self.server_ends, self.unanswered, self.malformed_in_a_row, self.short_timeouts) = (0, 0, 0, 0);
    }

    /// Records a call that ended a burst.
    pub(in crate::campaign) fn record_failure(&mut self, exchange: &FuzzExchange) {
        match &exchange.outcome {
            ExchangeOutcome::Exited { .. } => self.record_server_end(),
            ExchangeOutcome::TimedOut { .. } => {
                self.unanswered += 1;
                if let Validity::Malformed(_, name) = exchange.call.validity {
                    self.unanswered_malformations.push(name);
                }
            }
            ExchangeOutcome::Answered => {}
        }
    }

    /// Records that calls ended the server.
    pub(in crate::campaign) fn record_server_end(&mut self) {
        self.server_ends += 1;
    }

    /// Records a response, which is this outcome.
    pub(in crate::campaign) fn record_response(&mut self, exchange: &FuzzExchange, outcome: CallOutcome) {
        if exchange.outcome == ExchangeOutcome::Answered {
            self.malformed_in_a_row = if outcome == CallOutcome::Malformed || has_wrong_id(exchange) {
                self.malformed_in_a_row + 1
            } else {
                0
            };
        }
    }

    /// Whether an unanswered call gets the full timeout; otherwise it is recorded as one that did not.
    pub(in crate::campaign) fn grant_full_timeout(&mut self) -> bool {
        let is_granted = self.full_timeouts < MAX_FULL_TIMEOUTS;
        self.short_timeouts += usize::from(!is_granted);
        is_granted
    }

    /// Records a call that had the full timeout.
    pub(in crate::campaign) fn record_full_timeout(&mut self, exchange: &FuzzExchange) {
        self.full_timeouts += usize::from(matches!(exchange.outcome, ExchangeOutcome::TimedOut { .. }));
    }

    /// Whether missing responses count: a call without the full timeout may just be slow.
    pub(in crate::campaign) fn had_full_timeouts(&self) -> bool {
        self.short_timeouts == 0
    }

    /// Whether enough other tools left these arguments unanswered.
    pub(in crate::campaign) fn is_known_unanswered(&self, fuzz_call: &FuzzCall) -> bool {
        let Validity::Malformed(_, name) = fuzz_call.call.validity else { return false };
        self.unanswered_malformations.iter().filter(|known| **known == name).count() >= MAX_TOOLS_PER_MALFORMATION
    }

    /// Whether the current tool has unanswered calls, or is to be abandoned.
    pub(in crate::campaign) fn has_failures(&self) -> bool {
        self.unanswered > 0 || self.give_up_reason().is_some()
    }

    /// Whether the server was abandoned.
    pub(in crate::campaign) fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// The reason for abandoning the current tool, if there is one.
    pub(in crate::campaign) fn give_up_reason(&self) -> Option<String> {
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

    /// Ends with a tool, whose calls were mostly served or not; returns the reason for abandoning the server, if there
    /// is one.
    pub(in crate::campaign) fn end_tool(&mut self, is_served_mostly: bool) -> Option<String> {
        if self.malformed_in_a_row < MAX_MALFORMED_IN_A_ROW && is_served_mostly {
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
    let own = |answer: &serde_json::Value| answer.get("id").is_some_and(|id| *id == exchange.id);
    !exchange.call.is_unparsable() && !exchange.responses.iter().any(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_whose_calls_end_the_server_is_abandoned_and_the_next_one_starts_afresh() {
        let mut counters = FailureCounters::default();
        (1..MAX_SERVER_ENDS).for_each(|_| counters.record_server_end());
        assert_eq!(counters.give_up_reason(), None);
        counters.record_server_end();
        let reason = counters.give_up_reason().expect("it ended the server too often");
        assert_eq!(reason, "abandoned after its calls ended the server 12 times");
        counters.begin_tool();
        assert!(counters.give_up_reason().is_none() && !counters.has_failures());
    }

    #[test]
    fn only_a_few_calls_get_the_full_timeout() {
        let mut counters = FailureCounters { full_timeouts: MAX_FULL_TIMEOUTS - 1, ..FailureCounters::default() };
        assert!(counters.grant_full_timeout() && counters.had_full_timeouts());
        counters.full_timeouts += 1;
        assert!(!counters.grant_full_timeout() && !counters.had_full_timeouts());
        assert!(counters.give_up_reason().is_some());
    }

    #[test]
    fn the_server_is_abandoned_after_consecutive_tools() {
        let mut counters = FailureCounters::default();
        for served in [false, false, true, false, false] {
            counters.begin_tool();
            assert_eq!(counters.end_tool(served), None);
        }
        assert!(!counters.has_given_up());
        let reason = counters.end_tool(false).expect("three tools in a row");
        assert!(reason.starts_with("most calls of 3 consecutive tools failed") && counters.has_given_up());
    }
}
