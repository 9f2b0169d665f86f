//! Compares the responses to calls of a tool annotated `idempotentHint` that were made twice in a row.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::monitor::{Found, Moment, Monitor, Watched};
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::minimizer::failure_test::{FailureTest, Suspicion};
use crate::campaign::minimizer::reproduction::{Reproducer, is_contradiction};
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::BoxFuture;
use crate::case::Oracle;
use crate::check::fuzz::{FuzzExchange, OracleViolation};

/// Looks for results that differ when a call is repeated.
#[derive(Debug, Default)]
pub(super) struct RepeatedCalls {
    /// The first call whose repetition had a different result, with its exchange.
    contradiction: Option<FuzzExchange>,
    /// Tools whose results change by themselves.
    nondeterministic: BTreeSet<usize>,
}

impl RepeatedCalls {
    /// The contradiction that was observed, as a suspicion; none for a tool whose results change by themselves.
    fn suspicion(&mut self, tool: usize) -> Option<Suspicion> {
        let first = self.contradiction.take()?;
        let violation = OracleViolation::from_many_calls(
            Oracle::Idempotent,
            "a tool annotated idempotentHint returns a different result when the same call is repeated",
            "the second result differs, while the first results of fresh processes do not",
        );
        let failing = Some((FuzzCall::new(tool, Arc::clone(&first.call)), first));
        let suspicion = Suspicion { test: FailureTest::RepeatedCall, violation, failing, preceding: Vec::new() };
        (!self.nondeterministic.contains(&tool)).then_some(suspicion)
    }

    /// Whether the failure occurs again on a fresh process. Otherwise the results of the tool change by themselves, such
    /// as times or random numbers.
    async fn confirm(&mut self, caller: &mut Caller<'_>, suspicion: &Suspicion) -> Result<bool, String> {
        let Some((fuzz_call, _)) = &suspicion.failing else { return Ok(false) };
        caller.restart().await?;
        let mut reproducer =
            Reproducer { caller, test: &suspicion.test, violation: &suspicion.violation, is_patient: false };
        let is_confirmed = reproducer.attempt(std::slice::from_ref(fuzz_call), true).await?.is_some();
        if !is_confirmed {
            self.nondeterministic.insert(fuzz_call.tool);
        }
        Ok(is_confirmed)
    }

    /// Takes note of answered calls.
    fn note(&mut self, exchanges: &[FuzzExchange]) {
        let contradiction = exchanges.windows(2).find(|pair| is_contradiction(&pair[0], &pair[1]));
        self.contradiction = contradiction.and_then(<[_]>::first).cloned();
    }
}

impl Monitor for RepeatedCalls {
    fn observe(&mut self, _call_plan: &CallPlan, exchanges: &[FuzzExchange]) {
        self.note(exchanges);
    }

    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>> {
        Box::pin(async move {
            let tool = watched.call_plan.tool();
            if moment != Moment::Answered || !watched.call_plan.is_doubled() {
                return Ok(Vec::new());
            }
            let Some(suspicion) = self.suspicion(tool) else { return Ok(Vec::new()) };
            let is_new = !watched.failures.is_known(tool, &suspicion.violation)
                && self.confirm(watched.caller, &suspicion).await?;
            Ok(if is_new { vec![Found::Suspicion { suspicion, spoiled: false }] } else { Vec::new() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::process::scripted::{Answer, ReceivedCall, ScriptedServer, call_all, valid_call};
    use serde_json::json;

    fn server(script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static) -> ScriptedServer {
        ScriptedServer::new(&[("count", json!({ "step": { "type": "integer" } }))], script)
    }

    /// Whether a difference between the results of the same call is suspected, and confirmed as a failure; and whether
    /// it is suspected once more afterwards.
    async fn observe(server: &ScriptedServer) -> (bool, bool, bool) {
        let (mut caller, mut repeated_calls) = (server.caller(), RepeatedCalls::default());
        let [other, twice] = [1, 2].map(|step| valid_call(0, json!({ "step": step })));
        let done = call_all(&mut caller, &[other, twice.clone(), twice]).await;
        repeated_calls.note(&done);
        let Some(suspicion) = repeated_calls.suspicion(0) else { return (false, false, false) };
        let is_confirmed = repeated_calls.confirm(&mut caller, &suspicion).await.expect("the server is called");
        repeated_calls.note(&done);
        (true, is_confirmed, repeated_calls.suspicion(0).is_some())
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_that_differs_when_the_call_is_repeated_is_confirmed_on_a_fresh_process() {
        let server = server(|call| Answer::text(call.earlier.len().to_string()));
        assert_eq!(observe(&server).await, (true, true, true));
    }

    #[tokio::test(start_paused = true)]
    async fn results_that_differ_between_processes_as_well_are_no_failure() {
        let server = server(|call| Answer::text(format!("{} {}", call.process, call.earlier.len())));
        assert_eq!(observe(&server).await, (true, false, false));
    }

    #[tokio::test(start_paused = true)]
    async fn equal_results_are_not_suspected() {
        let server = server(|call| Answer::text(call.integer("step").to_string()));
        assert_eq!(observe(&server).await, (false, false, false));
    }
}
