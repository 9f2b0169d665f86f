//! Measures what grows while the same calls are repeated: memory, open files, child processes and latency.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::latency_monitor::LatencyMonitor;
use super::monitor::{Found, Moment, Monitor, Watched};
use super::resource_monitor::{ResourceMonitor, ResourceSuspicion, sample};
use crate::campaign::budget::ToolTime;
use crate::campaign::calls::call_plan::CallPlan;
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::failures::failure::{Failure, counterexample, without_large_values};
use crate::campaign::failures::saved_failure;
use crate::campaign::limits::{
    CALLS_IN_FLIGHT, CALLS_OF_SLOW_TOOL_IN_FLIGHT, CALLS_PER_BLOCK, GROWTH_BLOCKS, MAX_BLOCK_TIME, MAX_GROWTH_TIME,
    MIN_GROWTH_BLOCKS,
};
use crate::campaign::minimizer::failure_test::FailureTest;
use crate::campaign::process::caller::{Caller, LateCall};
use crate::campaign::process::environment::BoxFuture;
use crate::campaign::settings::CampaignSettings;
use crate::case::Oracle;
use crate::check::fuzz::{
    Call, ExchangeOutcome, FuzzExchange, OracleViolation, ResourceSample, Validity, descriptor_growth,
    latency_after_calls, latency_growth, may_show_memory_growth, memory_growth, outcome,
};
use crate::event::CallOutcome;

/// The maximum size of the arguments of a call whose latency is compared, in bytes.
const MAX_BYTES_OF_TIMED_CALL: usize = 4 << 10;

/// The number of blocks per memory sample.
const BLOCKS_PER_MEMORY_SAMPLE: usize = 4;

/// Watches what a server uses while a tool is called, and how long the calls take.
#[derive(Debug, Default)]
pub(super) struct Growth {
    resources: ResourceMonitor,
    latencies: LatencyMonitor,
}

impl Growth {
    /// What the calls of a tool seem to make grow, if there is time to find out.
    fn suspicion(&self, watched: &Watched<'_, '_>) -> Option<ResourceSuspicion> {
        // A tool that gets slower with each call runs out of time, which is what this looks for.
        let used_up = watched.time == ToolTime::UsedUp && self.latencies.shows_trends();
        let first_call = watched.caller.tools().get(watched.call_plan.tool()).first_call;
        // One finding tells the author to look; where all tools are late, each further one costs as much waiting.
        let slower = !watched.failures.is_known_late()
            && (used_up
                || self.latencies.is_slower()
                || first_call.is_some_and(|first| self.latencies.is_slower_than(first))
                || watched.canaries.is_slower());
        let suspicion = match self.resources.suspicion(watched.caller.process().process_id()) {
            Some(ResourceSuspicion::FilesOrProcesses) => ResourceSuspicion::FilesOrProcesses,
            _ if slower => ResourceSuspicion::Slow,
            suspicion => suspicion?,
        };
        match watched.time {
            ToolTime::Left => Some(suspicion),
            ToolTime::UsedUp => Some(suspicion).filter(|suspicion| *suspicion != ResourceSuspicion::Memory),
            ToolTime::Over => None,
        }
    }

    /// Repeats the same calls of a tool, and returns what keeps growing.
    async fn confirm(suspicion: ResourceSuspicion, watched: &mut Watched<'_, '_>) -> Result<Vec<Found>, String> {
        let tool = watched.call_plan.tool();
        let mut calls = watched.call_plan.sample_served(CALLS_PER_BLOCK);
        let is_small = |call: &Arc<Call>| call.arguments.bytes().len() <= MAX_BYTES_OF_TIMED_CALL;
        if suspicion == ResourceSuspicion::Slow && calls.iter().any(is_small) {
            // What large arguments cost hides what each call costs.
            calls.retain(is_small);
        }
        // Each as often as it takes for blocks of the usual size.
        let calls = calls.iter().cycle().take(CALLS_PER_BLOCK).cloned();
        let fuzz_calls: Vec<FuzzCall> = calls.map(|call| FuzzCall::new(tool, call)).collect();
        if fuzz_calls.is_empty() {
            return Ok(Vec::new());
        }
        let (made, began) = (watched.caller.process().calls(), Instant::now());
        // A tool that mostly waits does so in many calls at the same time.
        let waits = watched.caller.tools().get(tool).takes_a_while();
        let usual = if waits { CALLS_OF_SLOW_TOOL_IN_FLIGHT } else { CALLS_IN_FLIGHT };
        let in_flight = watched.settings.plan.in_flight.unwrap_or(usual);
        let mut found = Vec::new();
        let time = watched.settings.extended(MAX_GROWTH_TIME);
        for violation in confirmed_growth(watched.caller, suspicion, &fuzz_calls, (in_flight, time)).await? {
            if !watched.failures.is_known(tool, &violation) {
                let failure = growth_failure(watched.caller, watched.settings, tool, violation, &fuzz_calls).await?;
                found.extend(failure.map(Found::Failure));
            }
        }
        let calls = watched.caller.process().calls() - made;
        found.push(Found::Confirmation { calls, duration: began.elapsed() });
        Ok(found)
    }
}

impl Monitor for Growth {
    fn observe(&mut self, _call_plan: &CallPlan, exchanges: &[FuzzExchange]) {
        let is_timed = |exchange: &&FuzzExchange| {
            exchange.alone && exchange.call.validity == Validity::Valid && outcome(exchange) == CallOutcome::Success
        };
        for exchange in exchanges.iter().filter(is_timed) {
            self.latencies.record(exchange.duration);
        }
    }

    fn observe_round(&mut self, calls: usize, duration: Duration) {
        self.resources.record_round(calls, duration);
    }

    fn check<'m>(
        &'m mut self,
        moment: Moment,
        watched: &'m mut Watched<'_, '_>,
    ) -> BoxFuture<'m, Result<Vec<Found>, String>> {
        Box::pin(async move {
            let process = watched.caller.process().process_id();
            match moment {
                Moment::BeforeCalls => {
                    *self = Self { resources: ResourceMonitor::begin(process), latencies: LatencyMonitor::default() };
                }
                Moment::Settled => self.resources.settle(process),
                Moment::AfterCalls { .. } => {
                    if let Some(suspicion) = self.suspicion(watched) {
                        return Self::confirm(suspicion, watched).await;
                    }
                }
                Moment::Answered | Moment::BetweenRounds => {}
            }
            Ok(Vec::new())
        })
    }
}

/// What grows on a fresh process. Heaps and caches grow on every server for a while, so the growth must first
/// continue on the process where it was seen, with this many calls in flight; only then is a fresh one started. The
/// calls are repeated for about this time.
async fn confirmed_growth(
    caller: &mut Caller<'_>,
    suspicion: ResourceSuspicion,
    fuzz_calls: &[FuzzCall],
    (in_flight, time): (usize, Duration),
) -> Result<Vec<OracleViolation>, String> {
    if suspicion == ResourceSuspicion::Memory && !goes_on_growing(caller, fuzz_calls, (in_flight, time)).await? {
        return Ok(Vec::new());
    }
    if suspicion == ResourceSuspicion::Slow {
        if !is_slower_than_a_fresh_one(caller, fuzz_calls).await? {
            return Ok(Vec::new());
        }
    } else {
        caller.restart().await?;
    }
    let mut found = repeat_and_measure(caller, fuzz_calls, (GROWTH_BLOCKS, time)).await?;
    let is_climb = |violation: &OracleViolation| violation.oracle == Oracle::LatencyGrowth;
    if found.iter().any(is_climb) && !climbs_by_itself(caller, fuzz_calls, time).await? {
        found.retain(|violation| !is_climb(violation));
    }
    caller.drop_process();
    Ok(found)
}

/// Whether the current process keeps growing while the same calls are repeated concurrently; stops as soon as it
/// does not.
async fn goes_on_growing(
    caller: &mut Caller<'_>,
    fuzz_calls: &[FuzzCall],
    (in_flight, time): (usize, Duration),
) -> Result<bool, String> {
    let began = Instant::now();
    let calls = (fuzz_calls.len() * BLOCKS_PER_MEMORY_SAMPLE) as u64;
    let many: Vec<FuzzCall> =
        fuzz_calls.iter().cycle().take(fuzz_calls.len() * BLOCKS_PER_MEMORY_SAMPLE).cloned().collect();
    let mut samples: Vec<ResourceSample> = caller.process().process_id().and_then(sample).into_iter().collect();
    for _ in 0..GROWTH_BLOCKS / BLOCKS_PER_MEMORY_SAMPLE {
        let burst = caller.burst(&many, in_flight, caller.timeouts().full()).await?;
        samples.extend(caller.process().process_id().and_then(sample));
        let is_spent = began.elapsed() > time * 3;
        if burst.end.is_some()
            || is_spent
            || !may_show_memory_growth(&samples, calls, GROWTH_BLOCKS / BLOCKS_PER_MEMORY_SAMPLE)
        {
            return Ok(false);
        }
    }
    Ok(memory_growth(&samples, calls).is_some())
}

/// Whether the latency grows because of the process rather than the load on the machine: a fresh process is
/// faster at the same moment, and gets slower as well.
async fn climbs_by_itself(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall], time: Duration) -> Result<bool, String> {
    if !is_slower_than_a_fresh_one(caller, fuzz_calls).await? {
        return Ok(false);
    }
    let repeated = repeat_and_measure(caller, fuzz_calls, (GROWTH_BLOCKS, time)).await?;
    Ok(repeated.iter().any(|violation| violation.oracle == Oracle::LatencyGrowth))
}

/// Whether the current process is slower than a fresh one at the same moment.
async fn is_slower_than_a_fresh_one(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall]) -> Result<bool, String> {
    let Some((late, made)) = time_block(caller, fuzz_calls).await? else { return Ok(false) };
    caller.restart().await?;
    // The first calls of a process are slow.
    let same_calls = &fuzz_calls[..made];
    let (warmed, early) = (time_block(caller, same_calls).await?, time_block(caller, same_calls).await?);
    let (Some(_), Some((early, _))) = (warmed, early) else { return Ok(false) };
    Ok(late >= early * 2)
}

/// How long the calls take one after the other, and how many were made, if all of them are answered. A block that takes
/// long is ended early, as it is long enough to be longer than another.
async fn time_block(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall]) -> Result<Option<(Duration, usize)>, String> {
    let began = Instant::now();
    for (at, fuzz_call) in fuzz_calls.iter().enumerate() {
        if caller.call(fuzz_call).await?.outcome != ExchangeOutcome::Answered {
            return Ok(None);
        }
        if began.elapsed() > MAX_BLOCK_TIME {
            return Ok(Some((began.elapsed(), at + 1)));
        }
    }
    Ok(Some((began.elapsed(), fuzz_calls.len())))
}

/// Repeats calls, at most `most` times and for about this time, and returns what grows.
pub(in crate::campaign) async fn repeat_and_measure(
    caller: &mut Caller<'_>,
    fuzz_calls: &[FuzzCall],
    (most, time): (usize, Duration),
) -> Result<Vec<OracleViolation>, String> {
    let began = Instant::now();
    let (mut samples, mut times) = (Vec::new(), Vec::new());
    samples.extend(caller.process().process_id().and_then(sample));
    for _ in 0..most {
        let duration = began.elapsed();
        if duration > time && (times.len() >= MIN_GROWTH_BLOCKS || duration > time * 3) {
            break;
        }
        let Some((duration, _)) = time_block(caller, fuzz_calls).await? else { return Ok(Vec::new()) };
        times.push(duration);
        if duration >= MAX_BLOCK_TIME && latency_growth(&times).is_some() {
            break;
        }
        samples.extend(caller.process().process_id().and_then(sample));
    }
    let calls = fuzz_calls.len() as u64;
    let joined: Vec<ResourceSample> = samples.iter().copied().step_by(BLOCKS_PER_MEMORY_SAMPLE).collect();
    let found = [
        memory_growth(&joined, calls * BLOCKS_PER_MEMORY_SAMPLE as u64),
        descriptor_growth(&samples, calls),
        latency_growth(&times),
    ];
    Ok(found.into_iter().flatten().collect())
}

/// The failure of a call that is late after many others. Repeating it is enough to show it again.
pub(in crate::campaign) fn late_failure(
    caller: &Caller<'_>,
    settings: &CampaignSettings<'_>,
    call: &LateCall,
) -> Failure {
    let LateCall { fuzz_call, before, late, quick } = call;
    let violation = latency_after_calls(late.duration, *before, quick.duration);
    let mut counterexample = counterexample(caller, fuzz_call.tool, late, late, &[], 0);
    let calls = vec![fuzz_call.clone(); CALLS_PER_BLOCK];
    counterexample.file = saved_failure::save(settings, caller.tools(), &FailureTest::Growth, &violation, &calls);
    Failure {
        exchanges: [late, quick].map(|exchange| without_large_values(exchange.clone())).into(),
        counterexample: Some(counterexample),
        ..Failure::of_tool(fuzz_call.tool, violation)
    }
}

/// The failure that only many repetitions of these calls show; the last one represents them.
pub(in crate::campaign) async fn growth_failure(
    caller: &mut Caller<'_>,
    settings: &CampaignSettings<'_>,
    tool: usize,
    violation: OracleViolation,
    calls: &[FuzzCall],
) -> Result<Option<Failure>, String> {
    let Some((fuzz_call, before)) = calls.split_last() else { return Ok(None) };
    let last = caller.call(fuzz_call).await?;
    let mut counterexample = counterexample(caller, tool, &last, &last, before, 0);
    counterexample.file = saved_failure::save(settings, caller.tools(), &FailureTest::Growth, &violation, calls);
    Ok(Some(Failure {
        exchanges: vec![without_large_values(last)],
        counterexample: Some(counterexample),
        ..Failure::of_tool(tool, violation)
    }))
}
