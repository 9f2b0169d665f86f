//! Repeats the plain calls of the tools, to see that they still succeed after other calls.

use std::time::Duration;

use super::caller::Caller;
use super::failure_test::{FailureTest, Suspicion};
use super::fuzz_call::FuzzCall;
use super::latency_monitor::LatencyMonitor;
use crate::case::Oracle;
use crate::check::fuzz::{FuzzExchange, OracleViolation, excerpt, outcome};
use crate::event::CallOutcome;

/// How many tools to call again after the calls of a tool.
const MAX_CANARIES: usize = 16;
/// Calls that take longer are not repeated.
const MAX_CANARY_DURATION: Duration = Duration::from_millis(250);

/// Which plain calls to repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CanaryScope {
    /// Only the one of the tool that was called.
    OwnTool,
    AllTools,
}

/// The plain calls that succeeded before.
#[derive(Debug, Clone, Default)]
pub(super) struct Canaries(Vec<FuzzCall>);

impl Canaries {
    /// Keeps a plain call if it succeeds repeatedly and fast: one that creates something may not.
    pub(super) async fn add_if_repeatable(&mut self, canary: FuzzCall, caller: &mut Caller<'_>) -> Result<(), String> {
        let first_call = caller.tools().get(canary.tool).first_call;
        if first_call.is_some_and(|duration| duration >= MAX_CANARY_DURATION) {
            return Ok(());
        }
        for _ in 0..2 {
            let exchange = caller.call_briefly(&canary).await?;
            if outcome(&exchange) != CallOutcome::Success || exchange.duration >= MAX_CANARY_DURATION {
                return Ok(());
            }
        }
        self.0.push(canary);
        Ok(())
    }

    /// The plain call of a tool, if it is repeated.
    pub(super) fn of_tool(&self, tool: usize) -> Option<&FuzzCall> {
        self.0.iter().find(|canary| canary.tool == tool)
    }

    /// The plain calls of other tools.
    pub(super) fn of_other_tools(&self, tool: usize) -> impl Iterator<Item = &FuzzCall> {
        self.0.iter().filter(move |canary| canary.tool != tool)
    }

    /// The plain calls to repeat after calls of a tool.
    pub(super) fn to_check(&self, tool: usize, scope: CanaryScope) -> Vec<FuzzCall> {
        let is_chosen = |canary: &&FuzzCall| scope == CanaryScope::AllTools || canary.tool == tool;
        self.0.iter().filter(is_chosen).take(MAX_CANARIES).cloned().collect()
    }

    /// Repeats a plain call after calls of a tool, whose latencies are recorded; returns a suspicion if it succeeds
    /// only on a fresh process.
    pub(super) async fn check(
        &mut self,
        canary: &FuzzCall,
        caller: &mut Caller<'_>,
        tool: usize,
        latencies: &mut LatencyMonitor,
    ) -> Result<Option<Suspicion>, String> {
        let has_history = caller.process.has_history();
        let now = caller.call_briefly(canary).await?;
        if canary.tool == tool {
            latencies.record_plain_call(now.duration);
        }
        if outcome(&now) == CallOutcome::Success || !has_history || is_limited(&now) {
            return Ok(None);
        }
        // The calls before it, without the plain call itself.
        let mut preceding = caller.process.history();
        preceding.pop();
        caller.process.restart().await?;
        let fresh = caller.call(canary).await?;
        if outcome(&fresh) != CallOutcome::Success {
            // It no longer succeeds even on a fresh process, so the calls are not the cause.
            self.0.retain(|known| known.tool != canary.tool);
            return Ok(None);
        }
        let name = caller.tools().name(canary.tool);
        let actual = now.responses.first().map_or_else(
            || "it is not answered".to_owned(),
            |answer| format!("the response is {}", excerpt(&answer.to_string(), 200)),
        );
        let violation = OracleViolation::from_many_calls(
            Oracle::Degradation,
            format!("after some calls, a plain call of {name} no longer succeeds"),
            actual,
        );
        Ok(Some(Suspicion { test: FailureTest::Canary(canary.clone()), violation, failing: None, preceding }))
    }
}

/// Whether a response reports rate limiting.
fn is_limited(exchange: &FuzzExchange) -> bool {
    let actual = exchange.responses.first().map(|answer| answer.to_string().to_lowercase()).unwrap_or_default();
    ["rate limit", "rate-limit", "ratelimit", "too many", "throttl", "quota", "429"]
        .iter()
        .any(|word| actual.contains(word))
}
