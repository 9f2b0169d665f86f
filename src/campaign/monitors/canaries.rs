//! Repeats the plain calls of the tools, to see that they still succeed after other calls.

use std::collections::BTreeMap;
use std::time::Duration;

use super::latency_monitor::is_slower;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::limits::MAX_CANARIES;
use crate::campaign::minimizer::failure_test::{FailureTest, Suspicion};
use crate::campaign::process::caller::{Caller, LateCall};
use crate::case::Oracle;
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, OracleViolation, excerpt, outcome};
use crate::event::CallOutcome;

/// How often the cause of a late response is looked for: a server may be slow now and then.
const MAX_LOOKS_FOR_CAUSE: usize = 2;

/// Which plain calls to repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::campaign) enum CanaryScope {
    /// Only the one of the tool that was called.
    OwnTool,
    AllTools,
}

/// The plain calls that succeeded before.
#[derive(Debug, Clone, Default)]
pub(in crate::campaign) struct Canaries {
    plain_calls: Vec<FuzzCall>,
    /// How long the plain call of a tool takes at least, once its process is ready.
    shortest: BTreeMap<usize, Duration>,
    /// How long the plain call of the current tool took each time.
    times: Vec<Duration>,
    /// Whether a plain call was waited for as long as any other, in vain.
    has_waited: bool,
    /// The plain call that is late after other calls, if one was found to be.
    late: Option<LateCall>,
    /// How often the cause of a late response was looked for.
    looked_for_cause: usize,
}

impl Canaries {
    /// Keeps a plain call if it succeeds repeatedly, each time within `limit`: one that creates something may not.
    pub(in crate::campaign) async fn add_if_repeatable(
        &mut self,
        canary: FuzzCall,
        limit: Duration,
        caller: &mut Caller<'_>,
    ) -> Result<(), String> {
        let first_call = caller.tools().get(canary.tool).first_call;
        if first_call.is_some_and(|duration| duration >= limit) {
            return Ok(());
        }
        for _ in 0..2 {
            let exchange = caller.call_briefly(&canary).await?;
            if outcome(&exchange) != CallOutcome::Success || exchange.duration >= limit {
                return Ok(());
            }
            let shortest = self.shortest.entry(canary.tool).or_insert(exchange.duration);
            *shortest = exchange.duration.min(*shortest);
        }
        self.plain_calls.push(canary);
        Ok(())
    }

    /// How long the plain call of a tool takes at least, if it was repeated before all others.
    pub(in crate::campaign) fn shortest(&self, tool: usize) -> Option<Duration> {
        self.shortest.get(&tool).copied()
    }

    /// The plain call of a tool, if it is repeated.
    pub(in crate::campaign) fn of_tool(&self, tool: usize) -> Option<&FuzzCall> {
        self.plain_calls.iter().find(|canary| canary.tool == tool)
    }

    /// The plain calls of other tools.
    pub(super) fn of_other_tools(&self, tool: usize) -> impl Iterator<Item = &FuzzCall> {
        self.plain_calls.iter().filter(move |canary| canary.tool != tool)
    }

    /// The plain calls to repeat after calls of a tool.
    pub(in crate::campaign) fn to_check(&self, tool: usize, scope: CanaryScope) -> Vec<FuzzCall> {
        let is_chosen = |canary: &&FuzzCall| scope == CanaryScope::AllTools || canary.tool == tool;
        self.plain_calls.iter().filter(is_chosen).take(MAX_CANARIES).cloned().collect()
    }

    /// Forgets how long the plain call of the previous tool took.
    pub(super) fn begin_tool(&mut self) {
        self.times.clear();
    }

    /// Looks for the cause of no late response any more: it is known.
    pub(super) fn end_looking_for_cause(&mut self) {
        self.looked_for_cause = MAX_LOOKS_FOR_CAUSE;
    }

    /// Takes the plain call that is late after other calls.
    pub(super) fn take_late(&mut self) -> Option<LateCall> {
        self.late.take()
    }

    /// Whether the plain call of the current tool became slower.
    pub(super) fn is_slower(&self) -> bool {
        is_slower(&self.times)
    }

    /// Repeats a plain call after calls of a tool; returns a suspicion if it succeeds only on a fresh process.
    pub(in crate::campaign) async fn check(
        &mut self,
        canary: &FuzzCall,
        caller: &mut Caller<'_>,
        tool: usize,
    ) -> Result<Option<Suspicion>, String> {
        let has_history = caller.process().has_history();
        let mut now = caller.call_briefly(canary).await?;
        if !self.has_waited && matches!(now.outcome, ExchangeOutcome::TimedOut { .. }) {
            // A late response is no missing one.
            now = caller.wait_for_late_response(now).await;
            self.has_waited = matches!(now.outcome, ExchangeOutcome::TimedOut { .. });
            if now.outcome == ExchangeOutcome::Answered {
                if self.looked_for_cause < MAX_LOOKS_FOR_CAUSE {
                    self.looked_for_cause += 1;
                    let preceding = preceding_calls(caller);
                    self.late = caller.late_after(canary, &preceding).await?;
                }
                return Ok(None);
            }
        }
        if canary.tool == tool {
            self.times.push(now.duration);
        }
        if outcome(&now) == CallOutcome::Success || !has_history || is_limited(&now) {
            return Ok(None);
        }
        let preceding = preceding_calls(caller);
        caller.restart().await?;
        let fresh = caller.call(canary).await?;
        if outcome(&fresh) != CallOutcome::Success {
            // It no longer succeeds even on a fresh process, so the calls are not the cause.
            self.plain_calls.retain(|known| known.tool != canary.tool);
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

/// The calls to the process before the last one, which is the plain call itself.
fn preceding_calls(caller: &Caller<'_>) -> Vec<FuzzCall> {
    let mut calls = caller.process().history();
    calls.pop();
    calls
}

/// Whether a response reports rate limiting.
fn is_limited(exchange: &FuzzExchange) -> bool {
    let actual = exchange.responses.first().map(|answer| answer.to_string().to_lowercase()).unwrap_or_default();
    ["rate limit", "rate-limit", "ratelimit", "too many", "throttl", "quota", "429"]
        .iter()
        .any(|word| actual.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::limits::MAX_CANARY_DURATION;
    use crate::campaign::minimizer::shrink::{Effort, FailureShrinker};
    use crate::campaign::process::scripted::{Answer, ReceivedCall, ScriptedServer, call_all, valid_call};
    use serde_json::json;
    use tokio::time::Instant;

    const SET: usize = 0;
    const READ: usize = 1;

    /// A server with two tools, the second of which is called with the same arguments each time.
    fn server(script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static) -> ScriptedServer {
        ScriptedServer::new(&[("set", json!({ "level": { "type": "integer" } })), ("read", json!({}))], script)
    }

    fn set(level: i64) -> FuzzCall {
        valid_call(SET, json!({ "level": level }))
    }

    /// The plain call of `read`, which succeeds on a process without other calls.
    async fn canaries(caller: &mut Caller<'_>) -> Canaries {
        let mut canaries = Canaries::default();
        canaries
            .add_if_repeatable(valid_call(READ, json!({})), MAX_CANARY_DURATION, caller)
            .await
            .expect("the server is called");
        canaries
    }

    /// Repeats the plain call after calls of `set`.
    async fn check(canaries: &mut Canaries, caller: &mut Caller<'_>) -> Option<Suspicion> {
        let canary = canaries.to_check(SET, CanaryScope::AllTools).pop().expect("it is repeatable");
        canaries.check(&canary, caller, SET).await.expect("the server is called")
    }

    #[tokio::test(start_paused = true)]
    async fn a_plain_call_that_fails_only_after_a_call_leads_to_that_call() {
        let server = server(|call| {
            let is_set = |(_, arguments): &(String, serde_json::Value)| arguments["level"].as_i64() > Some(9);
            let is_broken = call.tool == "read" && call.earlier.iter().any(is_set);
            if is_broken { Answer::tool_error("the level is too high") } else { Answer::text("it works") }
        });
        let (settings, mut caller) = (server.settings(), server.caller());
        let mut canaries = canaries(&mut caller).await;
        call_all(&mut caller, &[set(3), set(-4)]).await;
        assert!(check(&mut canaries, &mut caller).await.is_none(), "these calls change nothing");
        call_all(&mut caller, &[set(5), set(700), set(2)]).await;
        let suspicion = check(&mut canaries, &mut caller).await.expect("it fails now");
        let effort = Effort { is_brief: false, deadline: Instant::now() + Duration::from_secs(60) };
        let (call_plan, environment) = (server.call_plan(SET), server.environment());
        let shrinker = FailureShrinker::new(&mut caller, &suspicion, &call_plan, &settings, environment, effort);
        let found = shrinker.shrink().await.expect("the server can be called").expect("it is a failure");
        let counterexample = found.counterexample.expect("there is a call");
        assert_eq!((found.tool, found.violation.oracle), (SET, Oracle::Degradation));
        assert_eq!((counterexample.arguments, counterexample.preceding), (json!({ "level": 10 }), Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_plain_call_that_fails_on_fresh_processes_as_well_is_not_repeated_any_more() {
        let server = server(|call| match (call.process, call.tool) {
            (0, "read") if call.earlier.iter().all(|(tool, _)| tool == "read") => Answer::text("it works"),
            (_, "read") => Answer::tool_error("the level is too high"),
            _ => Answer::text("it is set"),
        });
        let mut caller = server.caller();
        let mut canaries = canaries(&mut caller).await;
        call_all(&mut caller, &[set(1)]).await;
        assert!(check(&mut canaries, &mut caller).await.is_none());
        assert!(canaries.of_tool(READ).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_plain_call_that_succeeds_only_once_is_not_repeated() {
        let server = server(|call| match call.earlier {
            [] => Answer::text("it is created"),
            _ => Answer::tool_error("it exists already"),
        });
        assert!(canaries(&mut server.caller()).await.of_tool(READ).is_none());
    }
}
