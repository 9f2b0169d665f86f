//! Measures what grows while the same calls are repeated: memory, open files, child processes and latency.

use std::time::Duration;

use tokio::time::Instant;

use super::resource_monitor::{ResourceSuspicion, sample};
use crate::campaign::calls::fuzz_call::FuzzCall;
use crate::campaign::failures::failure::{Failure, counterexample, without_large_values};
use crate::campaign::failures::saved_failure;
use crate::campaign::limits::{GROWTH_BLOCKS, MAX_GROWTH_TIME, MIN_GROWTH_BLOCKS};
use crate::campaign::minimizer::failure_test::FailureTest;
use crate::campaign::process::caller::Caller;
use crate::campaign::settings::CampaignSettings;
use crate::case::Oracle;
use crate::check::fuzz::{
    ExchangeOutcome, OracleViolation, ResourceSample, descriptor_growth, latency_growth, may_show_memory_growth,
    memory_growth,
};

/// The number of blocks per memory sample.
const BLOCKS_PER_MEMORY_SAMPLE: usize = 4;

/// What grows on a fresh process. Heaps and caches grow on every server for a while, so the growth must first
/// continue on the process where it was seen, with this many calls in flight; only then is a fresh one started.
pub(in crate::campaign) async fn confirmed_growth(
    caller: &mut Caller<'_>,
    suspicion: ResourceSuspicion,
    fuzz_calls: &[FuzzCall],
    in_flight: usize,
) -> Result<Vec<OracleViolation>, String> {
    if suspicion == ResourceSuspicion::Memory && !goes_on_growing(caller, fuzz_calls, in_flight).await? {
        return Ok(Vec::new());
    }
    if suspicion == ResourceSuspicion::Slow {
        if !is_slower_than_a_fresh_one(caller, fuzz_calls).await? {
            return Ok(Vec::new());
        }
    } else {
        caller.process.restart().await?;
    }
    let mut found = repeat_and_measure(caller, fuzz_calls, GROWTH_BLOCKS).await?;
    let is_climb = |violation: &OracleViolation| violation.oracle == Oracle::LatencyGrowth;
    if found.iter().any(is_climb) && !climbs_by_itself(caller, fuzz_calls).await? {
        found.retain(|violation| !is_climb(violation));
    }
    caller.process.drop_process();
    Ok(found)
}

/// Whether the current process keeps growing while the same calls are repeated concurrently; stops as soon as it
/// does not.
async fn goes_on_growing(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall], in_flight: usize) -> Result<bool, String> {
    let began = Instant::now();
    let calls = (fuzz_calls.len() * BLOCKS_PER_MEMORY_SAMPLE) as u64;
    let many: Vec<FuzzCall> =
        fuzz_calls.iter().cycle().take(fuzz_calls.len() * BLOCKS_PER_MEMORY_SAMPLE).cloned().collect();
    let mut samples: Vec<ResourceSample> = caller.process.process_id().and_then(sample).into_iter().collect();
    for _ in 0..GROWTH_BLOCKS / BLOCKS_PER_MEMORY_SAMPLE {
        let burst = caller.process.burst(&many, in_flight, caller.timeouts.full()).await?;
        samples.extend(caller.process.process_id().and_then(sample));
        let is_spent = began.elapsed() > MAX_GROWTH_TIME * 3;
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
async fn climbs_by_itself(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall]) -> Result<bool, String> {
    if !is_slower_than_a_fresh_one(caller, fuzz_calls).await? {
        return Ok(false);
    }
    let repeated = repeat_and_measure(caller, fuzz_calls, GROWTH_BLOCKS).await?;
    Ok(repeated.iter().any(|violation| violation.oracle == Oracle::LatencyGrowth))
}

/// Whether the current process is slower than a fresh one at the same moment.
async fn is_slower_than_a_fresh_one(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall]) -> Result<bool, String> {
    let late = time_block(caller, fuzz_calls).await?;
    caller.process.restart().await?;
    // The first calls of a process are slow.
    let (warmed, early) = (time_block(caller, fuzz_calls).await?, time_block(caller, fuzz_calls).await?);
    let (Some(late), Some(_), Some(early)) = (late, warmed, early) else { return Ok(false) };
    Ok(late >= early * 2)
}

/// How long the calls take one after the other, if all of them are answered.
async fn time_block(caller: &mut Caller<'_>, fuzz_calls: &[FuzzCall]) -> Result<Option<Duration>, String> {
    let began = Instant::now();
    for fuzz_call in fuzz_calls {
        if caller.call(fuzz_call).await?.outcome != ExchangeOutcome::Answered {
            return Ok(None);
        }
    }
    Ok(Some(began.elapsed()))
}

/// Repeats calls, at most `most` times, and returns what grows.
pub(in crate::campaign) async fn repeat_and_measure(
    caller: &mut Caller<'_>,
    fuzz_calls: &[FuzzCall],
    most: usize,
) -> Result<Vec<OracleViolation>, String> {
    let began = Instant::now();
    let (mut samples, mut times) = (Vec::new(), Vec::new());
    samples.extend(caller.process.process_id().and_then(sample));
    for _ in 0..most {
        let duration = began.elapsed();
        if duration > MAX_GROWTH_TIME && (times.len() >= MIN_GROWTH_BLOCKS || duration > MAX_GROWTH_TIME * 3) {
            break;
        }
        let Some(duration) = time_block(caller, fuzz_calls).await? else { return Ok(Vec::new()) };
        times.push(duration);
        samples.extend(caller.process.process_id().and_then(sample));
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
