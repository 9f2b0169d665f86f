//! Looks for calls after which a plain call no longer succeeds.

use tokio::time::Instant;

use super::canaries::CanaryScope;
use super::growth::late_failure;
use super::monitor::{Found, Moment, Monitor, Watched};
use crate::campaign::process::environment::BoxFuture;

/// Repeats plain calls before, between and after the calls of a tool.
pub(super) struct Degradation;

impl Monitor for Degradation {
    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>> {
        Box::pin(async move {
            let tool = watched.call_plan.tool();
            let scope = match moment {
                Moment::BeforeCalls => {
                    watched.canaries.begin_tool();
                    CanaryScope::OwnTool
                }
                Moment::BetweenRounds => CanaryScope::OwnTool,
                Moment::AfterCalls { had_time: true } => CanaryScope::AllTools,
                Moment::AfterCalls { had_time: false } | Moment::Answered | Moment::Settled => return Ok(Vec::new()),
            };
            if watched.failures.is_known_late() {
                watched.canaries.end_looking_for_cause();
            }
            for canary in watched.canaries.to_check(tool, scope) {
                let (made, began) = (watched.caller.process().calls(), Instant::now());
                let suspicion = watched.canaries.check(&canary, watched.caller, tool).await?;
                if let Some(late) = watched.canaries.take_late() {
                    let found = Found::Failure(late_failure(watched.caller, watched.settings, &late));
                    let calls = watched.caller.process().calls() - made;
                    return Ok(vec![found, Found::Confirmation { calls, duration: began.elapsed() }]);
                }
                if let Some(suspicion) = suspicion {
                    // The others would be called on a process without history.
                    return Ok(vec![Found::Suspicion { suspicion, spoiled: true }]);
                }
            }
            Ok(Vec::new())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::campaign::limits::MAX_CANARY_DURATION;
    use crate::campaign::monitors::canaries::Canaries;
    use crate::campaign::process::scripted::{Answer, ReceivedCall, ScriptedServer, call_all, valid_call};
    use crate::case::Oracle;

    const SET: usize = 0;
    const READ: usize = 1;

    #[tokio::test(start_paused = true)]
    async fn plain_calls_of_other_tools_are_repeated_after_the_calls_of_a_tool_only() {
        let tools = [("set", json!({ "level": { "type": "integer" } })), ("read", json!({}))];
        let script = |call: &ReceivedCall<'_>| {
            let is_broken = call.tool == "read" && call.earlier.iter().any(|(tool, _)| tool == "set");
            if is_broken { Answer::tool_error("the level is too high") } else { Answer::text("it works") }
        };
        let server = ScriptedServer::new(&tools, script);
        let (mut caller, mut canaries) = (server.caller(), Canaries::default());
        canaries
            .add_if_repeatable(valid_call(READ, json!({})), MAX_CANARY_DURATION, &mut caller)
            .await
            .expect("the server is called");
        call_all(&mut caller, &[valid_call(SET, json!({ "level": 1 }))]).await;
        for moment in [
            Moment::BeforeCalls,
            Moment::Answered,
            Moment::BetweenRounds,
            Moment::Settled,
            Moment::AfterCalls { had_time: false },
        ] {
            let found = server.check(&mut Degradation, moment, (&mut caller, &mut canaries), SET).await;
            assert!(found.is_empty(), "{moment:?}: {found:?}");
        }
        let after = Moment::AfterCalls { had_time: true };
        let found = server.check(&mut Degradation, after, (&mut caller, &mut canaries), SET).await;
        assert!(matches!(found.as_slice(), [Found::Suspicion { spoiled: true, .. }]), "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plain_call_that_is_late_after_others_is_no_broken_one() {
        let tools = [("set", json!({ "level": { "type": "integer" } })), ("read", json!({}))];
        let server = ScriptedServer::new(&tools, |call| match call.earlier.len() {
            0..=5 => Answer::text("it works"),
            _ => Answer::late(3),
        });
        let (mut caller, mut canaries) = (server.caller(), Canaries::default());
        canaries
            .add_if_repeatable(valid_call(READ, json!({})), MAX_CANARY_DURATION, &mut caller)
            .await
            .expect("the server is called");
        call_all(&mut caller, &[1, 2, 3, 4].map(|level| valid_call(SET, json!({ "level": level })))).await;
        let after = Moment::AfterCalls { had_time: true };
        let found = server.check(&mut Degradation, after, (&mut caller, &mut canaries), SET).await;
        let [Found::Failure(failure), Found::Confirmation { .. }] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(failure.violation.oracle, Oracle::LatencyGrowth);
        assert!(
            failure.violation.actual.starts_with("after 6 other calls it took 3.0s"),
            "{}",
            failure.violation.actual
        );
    }
}
