//! Makes 3, 10 and 30 calls of a slow tool at once, each of which succeeds by itself: a server that has something for a few of
//! them only must not exit or stop answering.
//!
//! How it answers is not judged: a server may limit how much it does at once. One that makes its calls one after the other is
//! given time as long as answers come.

use std::time::Duration;

use tokio::time::Instant;

use super::monitor::{Found, Moment, Monitor, Watched};
use crate::campaign::calls::fuzz_call::{BurstEnd, FuzzCall};
use crate::campaign::failures::failure::{Failure, counterexample};
use crate::campaign::failures::saved_failure;
use crate::campaign::limits::{CALLS_AT_ONCE, CALLS_AT_ONCE_REPETITIONS, MAX_TIME_OF_CALLS_AT_ONCE};
use crate::campaign::minimizer::failure_test::FailureTest;
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::BoxFuture;
use crate::campaign::settings::CampaignSettings;
use crate::case::Oracle;
use crate::check::fuzz::{ExchangeOutcome, FuzzExchange, OracleViolation};
use crate::verdict::{Confirmation, Verdict};

const FIX: &str = "Let no call wait for what another one holds, such as a worker or a connection of a pool, without a limit of time, and \
                   refuse calls that are too many with an error.";

/// Makes more and more calls of a slow tool at once.
pub(super) struct CallsAtOnce;

/// How calls that were made at once ended the server or were left unanswered.
struct BrokenOff {
    exchange: FuzzExchange,
    oracle: Oracle,
    actual: String,
}

impl Monitor for CallsAtOnce {
    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>> {
        Box::pin(async move {
            let Watched { caller, call_plan, settings, .. } = watched;
            let tool = caller.tools().get(call_plan.tool());
            let is_possible =
                moment == Moment::BeforeCalls && settings.plan.in_flight.is_none() && tool.takes_a_while();
            let plain = caller.tools().plain_calls().into_iter().find(|plain| plain.tool == call_plan.tool());
            let Some(plain) = plain.filter(|_| is_possible) else { return Ok(Vec::new()) };
            let (made, began) = (caller.process().calls(), Instant::now());
            let limit = settings.extended(MAX_TIME_OF_CALLS_AT_ONCE);
            let failure = match too_many(caller, &plain, limit).await? {
                Some(count) => confirmed(caller, settings, &vec![plain; count], CALLS_AT_ONCE_REPETITIONS).await?,
                None => None,
            };
            let calls = caller.process().calls() - made;
            let mut found: Vec<Found> = failure.map(Found::Failure).into_iter().collect();
            found.push(Found::Confirmation { calls, duration: began.elapsed() });
            Ok(found)
        })
    }
}

/// How many calls at once break the server off, if any number of them does that is tried in this time.
async fn too_many(caller: &mut Caller<'_>, plain: &FuzzCall, limit: Duration) -> Result<Option<usize>, String> {
    let mut last = (1, Duration::ZERO);
    for count in [1].into_iter().chain(CALLS_AT_ONCE) {
        let (fewer, took) = last;
        // A server that makes one call after the other takes so long.
        if took * u32::try_from(count / fewer).unwrap_or(u32::MAX) > limit {
            return Ok(None);
        }
        let began = Instant::now();
        if make_at_once(caller, &vec![plain.clone(); count]).await?.is_some() {
            return Ok(Some(count).filter(|count| *count > 1));
        }
        last = (count, began.elapsed());
    }
    Ok(None)
}

/// Makes calls at once; how they were broken off, if they were.
async fn make_at_once(caller: &mut Caller<'_>, calls: &[FuzzCall]) -> Result<Option<BrokenOff>, String> {
    let timeout = caller.timeouts().full();
    let burst = caller.burst(calls, calls.len(), timeout).await?;
    let open = burst.open.len();
    let Some((_, exchange)) = burst.open.into_iter().next() else { return Ok(None) };
    let (oracle, actual) = match (burst.end, &exchange.outcome) {
        (Some(BurstEnd::Ended { status, .. }), _) => (Oracle::Crash, format!("the server exited ({status})")),
        // Over HTTP, a response may end at once without an answer, as that of a server which limits what it does.
        (Some(BurstEnd::Silent), ExchangeOutcome::TimedOut { waited }) if *waited >= timeout => {
            (Oracle::Hang, format!("{open} of {} calls were not answered, and no answer came any more", calls.len()))
        }
        _ => return Ok(None),
    };
    Ok(Some(BrokenOff { exchange, oracle, actual }))
}

/// The failure that calls at once show on so many fresh processes, each of which answers one of them by itself; none if one
/// process does not.
pub(in crate::campaign) async fn confirmed(
    caller: &mut Caller<'_>,
    settings: &CampaignSettings<'_>,
    calls: &[FuzzCall],
    repetitions: usize,
) -> Result<Option<Failure>, String> {
    let Some((last, others)) = calls.split_last() else { return Ok(None) };
    let mut shown: Option<BrokenOff> = None;
    for _ in 0..repetitions {
        caller.restart().await?;
        if caller.call(last).await?.outcome != ExchangeOutcome::Answered {
            return Ok(None);
        }
        let again = make_at_once(caller, calls).await?;
        shown = again.filter(|again| shown.as_ref().is_none_or(|before| before.oracle == again.oracle));
        if shown.is_none() {
            return Ok(None);
        }
    }
    let Some(BrokenOff { exchange, oracle, actual }) = shown else { return Ok(None) };
    let what = if oracle == Oracle::Crash { "make the server exit" } else { "are not all answered" };
    let message = format!("{} calls at once {what}, though each is answered by itself", calls.len());
    let mut violation = OracleViolation::from_many_calls(oracle, message, actual);
    violation.verdict = Verdict::Fail;
    violation.fix = Some(FIX.to_owned());
    let mut counterexample = counterexample(caller, last.tool, &exchange, &exchange, others, calls.len() * repetitions);
    counterexample.file = saved_failure::save(settings, caller.tools(), &FailureTest::Concurrent, &violation, calls);
    Ok(Some(Failure {
        exchanges: vec![exchange],
        counterexample: Some(counterexample),
        confirmation: Some(Confirmation { tried: repetitions, failed: repetitions }),
        ..Failure::of_tool(last.tool, violation)
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::campaign::monitors::canaries::Canaries;
    use crate::campaign::process::scripted::{Answer, ReceivedCall, ScriptedServer};

    const PROPERTIES: fn() -> serde_json::Value = || json!({ "text": { "type": "string" } });

    /// What is found of a tool whose first call took so long.
    async fn found(
        millis: u64,
        script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static,
    ) -> Vec<(Oracle, String)> {
        let tool = ("render", PROPERTIES());
        let server = ScriptedServer::slow(tool, json!({ "text": "a" }), Duration::from_millis(millis), script);
        let (mut caller, mut canaries) = (server.caller(), Canaries::default());
        let found = server.check(&mut CallsAtOnce, Moment::BeforeCalls, (&mut caller, &mut canaries), 0).await;
        let failures = found.into_iter().filter_map(|found| match found {
            Found::Failure(failure) => Some((failure.violation.oracle, failure.violation.message)),
            _ => None,
        });
        failures.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_at_once_that_end_or_block_the_server_are_a_failure() {
        for (most, count) in [(2, 3), (9, 10), (20, 30)] {
            let ends = found(100, move |call| if call.at_once > most { Answer::Exit } else { Answer::text("") }).await;
            let message = format!("{count} calls at once make the server exit, though each is answered by itself");
            assert_eq!(ends, [(Oracle::Crash, message)]);
            let blocks =
                found(100, move |call| if call.at_once > most { Answer::Silence } else { Answer::text("") }).await;
            let message = format!("{count} calls at once are not all answered, though each is answered by itself");
            assert_eq!(blocks, [(Oracle::Hang, message)]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_makes_one_call_after_the_other_has_none() {
        for millis in [100, 900, 4_000] {
            let late =
                move |_: &ReceivedCall<'_>| Answer::Late(Duration::from_millis(millis), json!({ "content": [] }));
            assert_eq!(found(millis, late).await, []);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_a_fresh_process_does_not_show_is_none() {
        let once = |call: &ReceivedCall<'_>| match (call.process, call.at_once) {
            (0, 2..) => Answer::Exit,
            _ => Answer::text(""),
        };
        assert_eq!(found(100, once).await, []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_tool_gets_no_calls_at_once() {
        assert_eq!(found(10, |_| Answer::Exit).await, []);
    }
}
