//! Looks for responses that belong to another call: makes calls one by one and then concurrently.

use std::time::Duration;

use tokio::time::Instant;

use super::canaries::Canaries;
use super::monitor::{Found, Moment, Monitor, Watched};
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::features::most_diverse;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::calls::long_calls::LongCalls;
use crate::campaign::failures::failure::{Failure, counterexample};
use crate::campaign::failures::saved_failure;
use crate::campaign::limits::{
    MAX_SWAP_CANDIDATES, MAX_SWAP_PICKING_TIME, MAX_TOOLS_TO_SWAP_WITH, MIN_CALLS_FOR_REPETITION, SWAP_ATTEMPTS,
};
use crate::campaign::minimizer::failure_test::FailureTest;
use crate::campaign::minimizer::reproduction::result_hash;
use crate::campaign::process::caller::Caller;
use crate::campaign::process::environment::BoxFuture;
use crate::campaign::settings::CampaignSettings;
use crate::case::Oracle;
use crate::check::fuzz::{FuzzExchange, OracleViolation, excerpt, outcome};
use crate::event::CallOutcome;
use crate::verdict::Verdict;

/// A call with a hash of the result that it gets on its own.
type KnownResult = (FuzzCall, u64);

/// A response that was swapped more than once.
#[derive(Debug)]
struct Swap {
    /// The call that got the response to another one.
    exchange: FuzzExchange,
    /// The index of that other call.
    other: usize,
    /// How often a response was swapped.
    count: usize,
}

/// Makes calls of a tool concurrently, whose results differ.
pub(super) struct SwappedResponses;

impl Monitor for SwappedResponses {
    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>> {
        Box::pin(async move {
            let Watched { caller, call_plan, long_calls, canaries, settings, .. } = watched;
            // One call at a time cannot be mixed up with another.
            let may_swap = call_plan.share().others() >= MIN_CALLS_FOR_REPETITION && settings.plan.in_flight != Some(1);
            if moment != (Moment::AfterCalls { had_time: true }) || !may_swap {
                return Ok(Vec::new());
            }
            let candidates = swap_candidates(call_plan, long_calls, canaries);
            let found = find_swapped_responses(caller, settings, call_plan.tool(), candidates).await?;
            Ok(found.map(Found::Failure).into_iter().collect())
        })
    }
}

/// Calls of a tool that differ as much as possible, since only some arguments may lead to a swap, and plain calls of other
/// tools.
fn swap_candidates(call_plan: &mut CallPlan, long_calls: &LongCalls, canaries: &Canaries) -> Vec<FuzzCall> {
    let tool = call_plan.tool();
    // Earlier calls often differ in one value, new ones in all values.
    let random = call_plan.random_valid(MAX_SWAP_CANDIDATES / 2);
    let quick: Vec<_> = random.iter().filter_map(|call| long_calls.shortened(call, call_plan.schema())).collect();
    let mut new = quick.into_iter();
    let mut known = call_plan.served().iter().rev().cloned();
    let mut own = Vec::new();
    while new.len() + known.len() > 0 {
        own.extend(new.next().into_iter().chain(known.next()));
    }
    let own = most_diverse(own, MAX_SWAP_CANDIDATES).into_iter().map(|call| FuzzCall::new(tool, call));
    own.chain(canaries.of_other_tools(tool).take(MAX_TOOLS_TO_SWAP_WITH).cloned()).collect()
}

/// Makes calls one by one and then concurrently; a response counts as swapped only if it is known to belong to
/// another of the calls.
pub(in crate::campaign) async fn find_swapped_responses(
    caller: &mut Caller<'_>,
    settings: &CampaignSettings<'_>,
    tool: usize,
    candidates: Vec<FuzzCall>,
) -> Result<Option<Failure>, String> {
    let picked = pick_distinct(caller, candidates, settings.extended(MAX_SWAP_PICKING_TIME)).await?;
    // Swaps are visible only if results differ, and usually there are none.
    if picked.iter().all(|(_, result)| *result == picked[0].1) || call_concurrently(caller, &picked).await?.is_none() {
        return Ok(None);
    }
    let picked = stable_results(caller, picked).await?;
    let Some(swap) = repeat_concurrently(caller, &picked).await? else { return Ok(None) };
    let fuzz_calls: Vec<FuzzCall> = picked.into_iter().map(|(fuzz_call, _)| fuzz_call).collect();
    Ok(Some(swap_failure(caller, settings, tool, swap, &fuzz_calls)))
}

/// The failure that a swapped response among these calls is.
fn swap_failure(
    caller: &Caller<'_>,
    settings: &CampaignSettings<'_>,
    tool: usize,
    swap: Swap,
    fuzz_calls: &[FuzzCall],
) -> Failure {
    let Swap { exchange, other, count } = swap;
    let other_arguments = excerpt(&String::from_utf8_lossy(&fuzz_calls[other].call.arguments.bytes()), 120);
    let mut violation = OracleViolation::from_many_calls(
        Oracle::ResponsesSwapped,
        "a call made concurrently with others gets the response to another call",
        format!("the response belongs to the call with {other_arguments}"),
    );
    violation.verdict = Verdict::Fail;
    let is_own = |fuzz_call: &&FuzzCall| fuzz_call.call == exchange.call;
    let mut calls: Vec<FuzzCall> = fuzz_calls.iter().filter(|fuzz_call| !is_own(fuzz_call)).cloned().collect();
    let mut counterexample = counterexample(caller, tool, &exchange, &exchange, &calls, SWAP_ATTEMPTS);
    calls.extend(fuzz_calls.iter().find(is_own).cloned());
    counterexample.file = saved_failure::save(settings, caller.tools(), &FailureTest::Concurrent, &violation, &calls);
    Failure {
        count,
        exchanges: vec![exchange],
        counterexample: Some(counterexample),
        ..Failure::of_tool(tool, violation)
    }
}

/// The calls that succeed, each once, with their results, and within this time; none if one of them was so late that the
/// others together would take too long.
async fn pick_distinct(
    caller: &mut Caller<'_>,
    candidates: Vec<FuzzCall>,
    limit: Duration,
) -> Result<Vec<KnownResult>, String> {
    let mut picked: Vec<KnownResult> = Vec::new();
    let began = Instant::now();
    for fuzz_call in candidates {
        if began.elapsed() > limit {
            break;
        }
        let exchange = caller.call(&fuzz_call).await?;
        let is_new = |known: &KnownResult| {
            (known.0.tool, &known.0.call.arguments) != (fuzz_call.tool, &fuzz_call.call.arguments)
        };
        if outcome(&exchange) == CallOutcome::Success
            && let Some(result) = result_hash(&exchange)
            && picked.iter().all(is_new)
        {
            picked.push((fuzz_call, result));
        }
    }
    Ok(if began.elapsed() > limit * 2 { Vec::new() } else { picked })
}

/// The calls whose results do not change. Unstable results prove nothing. Each call is repeated twice in a row, in
/// reverse order, so that a result that alternates or depends on the preceding call does not look stable.
async fn stable_results(caller: &mut Caller<'_>, picked: Vec<KnownResult>) -> Result<Vec<KnownResult>, String> {
    let mut stable = Vec::new();
    for (fuzz_call, result) in picked.into_iter().rev() {
        let mut same = true;
        for _ in 0..2 {
            same &= result_hash(&caller.call(&fuzz_call).await?) == Some(result);
        }
        if same {
            stable.push((fuzz_call, result));
        }
    }
    Ok(stable)
}

/// Makes calls concurrently several times; returns the last swapped response if there was more than one.
async fn repeat_concurrently(caller: &mut Caller<'_>, picked: &[KnownResult]) -> Result<Option<Swap>, String> {
    let mut swapped: Option<Swap> = None;
    for _ in 0..SWAP_ATTEMPTS {
        match call_concurrently(caller, picked).await? {
            Some((exchange, own, other)) => {
                // On their own, both calls still get their own results.
                for at in [own, other] {
                    let alone = caller.call(&picked[at].0).await?;
                    if result_hash(&alone) != Some(picked[at].1) {
                        return Ok(None);
                    }
                }
                let count = swapped.map_or(0, |swap| swap.count) + 1;
                swapped = Some(Swap { exchange, other, count });
            }
            None if swapped.is_none() => return Ok(None),
            None => {}
        }
    }
    Ok(swapped.filter(|swap| swap.count > 1))
}

/// Makes calls concurrently; returns the first one that got the result of another call which did not get its own,
/// with the indexes of both.
async fn call_concurrently(
    caller: &mut Caller<'_>,
    picked: &[KnownResult],
) -> Result<Option<(FuzzExchange, usize, usize)>, String> {
    let fuzz_calls: Vec<FuzzCall> = picked.iter().map(|(fuzz_call, _)| fuzz_call.clone()).collect();
    let burst = caller.burst(&fuzz_calls, fuzz_calls.len(), caller.timeouts().full()).await?;
    if burst.end.is_some() {
        return Ok(None);
    }
    let got: Vec<(usize, Option<u64>)> =
        burst.done.iter().map(|(index, exchange)| (*index, result_hash(exchange))).collect();
    Ok(find_swap(picked, &got).map(|(position, other)| {
        let (own, exchange) = &burst.done[position];
        (exchange.clone(), *own, other)
    }))
}

/// The first call that got the result of another call which did not get its own: its position among the results that
/// were received, and the index of the other call.
fn find_swap(picked: &[KnownResult], got: &[(usize, Option<u64>)]) -> Option<(usize, usize)> {
    let lost = |at: usize| {
        let own = got.iter().find(|(index, _)| *index == at);
        own.is_some_and(|(_, result)| *result != Some(picked[at].1))
    };
    got.iter().enumerate().find_map(|(position, (own, result))| {
        let result = result.filter(|_| lost(*own))?;
        let is_other = |(at, (_, known)): &(usize, &KnownResult)| *known == result && lost(*at);
        let (other, _) = picked.iter().enumerate().find(is_other)?;
        Some((position, other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::process::scripted::{Answer, ReceivedCall, ScriptedServer, valid_call};
    use serde_json::json;

    /// Calls that get the given results on their own.
    fn known(results: &[u64]) -> Vec<KnownResult> {
        let of = |result: &u64| (valid_call(0, json!({ "n": result })), *result);
        results.iter().map(of).collect()
    }

    #[test]
    fn a_response_is_swapped_if_it_belongs_to_a_call_that_did_not_get_it() {
        let calls = known(&[10, 20, 30]);
        let swap = |got: &[(usize, Option<u64>)]| find_swap(&calls, got);
        assert_eq!(swap(&[(0, Some(10)), (1, Some(20)), (2, Some(30))]), None);
        // The responses need not come in the order of the calls.
        assert_eq!(swap(&[(2, Some(30)), (0, Some(20)), (1, Some(10))]), Some((1, 1)));
        // The result of a call that got it as well is only the same result.
        assert_eq!(swap(&[(0, Some(20)), (1, Some(20)), (2, Some(30))]), None);
        assert_eq!(swap(&[(0, Some(99)), (1, None), (2, Some(30))]), None);
    }

    #[test]
    fn calls_that_ask_the_tool_to_wait_long_are_not_among_those_that_are_compared() {
        let properties = json!({ "seconds": { "type": "number", "minimum": 0 }, "n": { "type": "integer" } });
        let server = ScriptedServer::new(&[("wait", properties)], |_| Answer::text("done"));
        let mut call_plan = server.call_plan(0);
        let long_calls = LongCalls::new(call_plan.schema().schema(), None);
        let candidates = swap_candidates(&mut call_plan, &long_calls, &Canaries::default());
        let seconds = candidates.iter().filter_map(|call| call.call.arguments.value().get("seconds")?.as_f64());
        let seconds: Vec<f64> = seconds.collect();
        assert!(seconds.len() > 2 && seconds.iter().all(|seconds| *seconds <= 0.1), "{seconds:?}");
    }

    /// The failure found by calls whose results show their arguments, on a server that may answer with other ones.
    async fn find(script: impl Fn(&ReceivedCall<'_>) -> Answer + Send + Sync + 'static) -> Option<Failure> {
        let server = ScriptedServer::new(&[("echo", json!({ "n": { "type": "integer" } }))], script);
        let candidates = (1..=3).map(|n| valid_call(0, json!({ "n": n }))).collect();
        let found = find_swapped_responses(&mut server.caller(), &server.settings(), 0, candidates).await;
        found.expect("the server can be called")
    }

    #[tokio::test(start_paused = true)]
    async fn results_that_are_swapped_among_concurrent_calls_are_a_failure() {
        let found = find(|call| Answer::text(call.neighbour.unwrap_or(call.arguments).to_string())).await;
        let found = found.expect("every result belongs to another call");
        assert_eq!((found.violation.oracle, found.count), (Oracle::ResponsesSwapped, SWAP_ATTEMPTS));
        let preceding = found.counterexample.expect("there is a call").preceding;
        assert_eq!(preceding.len(), 2, "all calls that are made concurrently are needed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_each_call_with_its_own_result_has_no_such_failure() {
        assert!(find(|call| Answer::text(call.arguments.to_string())).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_whose_results_depend_on_the_preceding_call_are_not_compared() {
        let script = |call: &ReceivedCall<'_>| {
            let is_repeated = call.earlier.last().is_some_and(|(_, arguments)| arguments == call.arguments);
            let own = if is_repeated { "again".to_owned() } else { call.arguments.to_string() };
            Answer::text(call.neighbour.map_or(own, ToString::to_string))
        };
        assert!(find(script).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_have_become_late_are_not_made_again_concurrently() {
        let began = Instant::now();
        let script = |call: &ReceivedCall<'_>| match call.earlier.len() {
            0 | 1 => Answer::text(call.arguments.to_string()),
            _ => Answer::late(3),
        };
        assert!(find(script).await.is_none());
        assert!(began.elapsed() < Duration::from_secs(4), "only the third call is waited for: {:?}", began.elapsed());
    }
}
