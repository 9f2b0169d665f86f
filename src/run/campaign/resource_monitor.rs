//! Monitors what a server should keep stable while it is called: memory, open files, child processes and latency.

use std::time::{Duration, Instant};

use super::call_plan::CallPlan;
use super::fuzz_call::FuzzCall;
use super::shrink::{FailureTest, without_large_values};
use super::worker::{Failure, Worker};
use crate::case::Oracle;
use crate::check::fuzz::{
    ExchangeOutcome, OracleViolation, ResourceSample, descriptor_growth, latency_growth, may_show_memory_growth,
    memory_growth,
};

/// The number of calls per block; the calls of all blocks are the same.
const CALLS_PER_BLOCK: usize = 16;
/// The number of blocks.
pub(super) const BLOCKS: usize = 28;
/// The time limit of the blocks, and the number of blocks that are run in up to three times as long: fewer prove
/// nothing.
const MAX_BLOCKS_TIME: Duration = Duration::from_secs(5);
const MIN_BLOCKS: usize = 16;
/// The number of blocks per memory sample.
const BLOCKS_PER_MEMORY_SAMPLE: usize = 4;

/// What a tool's calls seem to cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// There are more open files or processes.
    FilesOrProcesses,
    /// Responses take longer than at first, as they do on any machine for a while.
    Slow,
    /// There is more memory in use, as in any server for a while.
    Memory,
}

/// Measurements of a server around the calls of one tool.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ResourceMonitor {
    /// Before any call.
    first: Option<ResourceSample>,
    /// After the very large arguments, which grow the heap.
    settled: Option<ResourceSample>,
    /// Mean latencies in the first round and in the last two.
    early: Option<Duration>,
    late: [Option<Duration>; 2],
}

impl ResourceMonitor {
    pub(super) fn begin(process: Option<i32>) -> Self {
        Self { first: process.and_then(sample), ..Self::default() }
    }

    /// Takes the sample with which later memory usage is compared.
    pub(super) fn settle(&mut self, process: Option<i32>) {
        self.settled = process.and_then(sample);
    }

    /// Records a round.
    pub(super) fn record_round(&mut self, calls: usize, duration: Duration) {
        let each = duration / u32::try_from(calls.max(1)).unwrap_or(u32::MAX);
        self.early.get_or_insert(each);
        self.late = [self.late[1], Some(each)];
    }

    /// What deserves a closer look.
    pub(super) fn suspicion(&self, process: Option<i32>) -> Option<Suspicion> {
        const MIN_MEMORY_GROWTH: u64 = 2 << 20;
        const MIN_FILE_GROWTH: u64 = 5;
        const MIN_CHILD_GROWTH: u64 = 3;
        const MIN_SLOWDOWN: Duration = Duration::from_millis(1);
        let slower = match (self.early, self.late) {
            (Some(early), [before, Some(late)]) => {
                let late = before.map_or(late, |before| late.min(before));
                late > early * 2 && late > early + MIN_SLOWDOWN
            }
            _ => false,
        };
        let now = process.and_then(sample);
        let more = |before: Option<ResourceSample>, of: fn(&ResourceSample) -> u64, least: u64| {
            before.zip(now).is_some_and(|(before, now)| of(&now) > of(&before) + least)
        };
        let files_or_processes = more(self.first, |sample| sample.files, MIN_FILE_GROWTH)
            || more(self.first, |sample| sample.children, MIN_CHILD_GROWTH);
        if files_or_processes || slower {
            return Some(if files_or_processes { Suspicion::FilesOrProcesses } else { Suspicion::Slow });
        }
        more(self.settled, |sample| sample.memory, MIN_MEMORY_GROWTH).then_some(Suspicion::Memory)
    }
}

/// The minimum number of latencies that show a trend.
pub(super) const MIN_TIMED_CALLS: usize = 24;

/// Whether the calls of a tool are slower at the end than at the start: the median, or the 90th percentile.
pub(super) fn becomes_slower(times: &[Duration]) -> bool {
    const MIN_CALLS_FOR_PERCENTILE: usize = 48;
    let at = |times: &[Duration], tenths: usize| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times.get(times.len() * tenths / 10).copied().unwrap_or_default()
    };
    let is_slower = |part: usize, tenths: usize, by: u64| {
        let (first, last) = (at(&times[..part], tenths), at(&times[times.len() - part..], tenths));
        last > first * 2 && last > first + Duration::from_millis(by)
    };
    times.len() >= MIN_TIMED_CALLS && is_slower(times.len() / 3, 5, 1)
        || times.len() >= MIN_CALLS_FOR_PERCENTILE && is_slower(times.len() / 4, 9, 2)
}

/// Whether the same call became slow enough to deserve a closer look.
pub(super) fn is_slower(times: &[Duration]) -> bool {
    const MIN_SLOWDOWN: Duration = Duration::from_millis(2);
    match times {
        [first, .., before, last] => before.min(last) > &(*first * 3) && *before.min(last) > *first + MIN_SLOWDOWN,
        _ => false,
    }
}

impl Worker<'_> {
    /// Repeats the same calls of a tool and reports what keeps growing.
    pub(super) async fn check_trends(&mut self, suspicion: Suspicion, call_plan: &CallPlan) -> Result<(), String> {
        let fuzz_calls: Vec<FuzzCall> = call_plan
            .sample_served(CALLS_PER_BLOCK)
            .into_iter()
            .map(|call| FuzzCall::new(call_plan.tool, call))
            .collect();
        if fuzz_calls.is_empty() {
            return Ok(());
        }
        let (made, began) = (self.process.calls, Instant::now());
        let found = self.confirmed_trends(suspicion, &fuzz_calls).await?;
        for violation in found {
            if self.known_failure(call_plan.tool, &violation).is_none() {
                let found = self.failure_of_all(call_plan.tool, &FailureTest::Growth, violation, &fuzz_calls).await?;
                self.add_failure(found);
            }
        }
        self.shrinking += self.process.calls - made;
        self.shrinking_time += began.elapsed();
        self.exclude_from_time_slice(began.elapsed());
        Ok(())
    }

    /// What grows on a fresh process. Heaps and caches grow on every server for a while, so the growth must first
    /// continue on the process where it was seen; only then is a fresh one started.
    async fn confirmed_trends(
        &mut self,
        suspicion: Suspicion,
        fuzz_calls: &[FuzzCall],
    ) -> Result<Vec<OracleViolation>, String> {
        if suspicion == Suspicion::Memory && !self.goes_on_growing(fuzz_calls).await? {
            return Ok(Vec::new());
        }
        if suspicion == Suspicion::Slow {
            if !self.is_slower_than_a_fresh_one(fuzz_calls).await? {
                return Ok(Vec::new());
            }
        } else {
            self.process.restart().await?;
        }
        let mut found = self.run_blocks(fuzz_calls, BLOCKS).await?;
        let is_climb = |violation: &OracleViolation| violation.oracle == Oracle::LatencyGrowth;
        if found.iter().any(is_climb) && !self.climbs_by_itself(fuzz_calls).await? {
            found.retain(|violation| !is_climb(violation));
        }
        self.process.drop_process();
        Ok(found)
    }

    /// Whether the current process keeps growing while the same calls are repeated concurrently; stops as soon as it
    /// does not.
    async fn goes_on_growing(&mut self, fuzz_calls: &[FuzzCall]) -> Result<bool, String> {
        let began = Instant::now();
        let calls = (fuzz_calls.len() * BLOCKS_PER_MEMORY_SAMPLE) as u64;
        let many: Vec<FuzzCall> =
            fuzz_calls.iter().cycle().take(fuzz_calls.len() * BLOCKS_PER_MEMORY_SAMPLE).cloned().collect();
        let mut samples: Vec<ResourceSample> = self.process.process_id().and_then(sample).into_iter().collect();
        for _ in 0..BLOCKS / BLOCKS_PER_MEMORY_SAMPLE {
            let in_flight = self.concurrency.current();
            let burst = self.process.burst(&many, in_flight, self.timeout(), None).await?;
            samples.extend(self.process.process_id().and_then(sample));
            let is_spent = began.elapsed() > MAX_BLOCKS_TIME * 3;
            if burst.end.is_some()
                || is_spent
                || !may_show_memory_growth(&samples, calls, BLOCKS / BLOCKS_PER_MEMORY_SAMPLE)
            {
                return Ok(false);
            }
        }
        Ok(memory_growth(&samples, calls).is_some())
    }

    /// Whether the latency grows because of the process rather than the load on the machine: a fresh process is
    /// faster at the same moment, and gets slower as well.
    async fn climbs_by_itself(&mut self, fuzz_calls: &[FuzzCall]) -> Result<bool, String> {
        if !self.is_slower_than_a_fresh_one(fuzz_calls).await? {
            return Ok(false);
        }
        let repeated = self.run_blocks(fuzz_calls, BLOCKS).await?;
        Ok(repeated.iter().any(|violation| violation.oracle == Oracle::LatencyGrowth))
    }

    /// Whether the current process is slower than a fresh one at the same moment.
    async fn is_slower_than_a_fresh_one(&mut self, fuzz_calls: &[FuzzCall]) -> Result<bool, String> {
        let late = self.time_block(fuzz_calls).await?;
        self.process.restart().await?;
        // The first calls of a process are slow.
        let (warmed, early) = (self.time_block(fuzz_calls).await?, self.time_block(fuzz_calls).await?);
        let (Some(late), Some(_), Some(early)) = (late, warmed, early) else { return Ok(false) };
        Ok(late >= early * 2)
    }

    /// How long the calls take one after the other, if all of them are answered.
    async fn time_block(&mut self, fuzz_calls: &[FuzzCall]) -> Result<Option<Duration>, String> {
        let began = Instant::now();
        for fuzz_call in fuzz_calls {
            if self.process.call(fuzz_call, self.timeout()).await?.outcome != ExchangeOutcome::Answered {
                return Ok(None);
            }
        }
        Ok(Some(began.elapsed()))
    }

    /// The failure that only all of these calls together show; the last one represents them.
    pub(super) async fn failure_of_all(
        &mut self,
        tool: usize,
        test: &FailureTest,
        violation: OracleViolation,
        calls: &[FuzzCall],
    ) -> Result<Option<Failure>, String> {
        let Some((fuzz_call, before)) = calls.split_last() else { return Ok(None) };
        let last = self.process.call(fuzz_call, self.timeout()).await?;
        let mut counterexample = self.counterexample(tool, &last, &last, before, 0);
        counterexample.file = self.save_regression(test, &violation, calls);
        Ok(Some(Failure {
            tool,
            violation,
            count: 1,
            exchanges: vec![without_large_values(last)],
            counterexample: Some(counterexample),
            confirmation: None,
        }))
    }

    /// Runs blocks of calls and returns what grows.
    pub(super) async fn run_blocks(
        &mut self,
        fuzz_calls: &[FuzzCall],
        most: usize,
    ) -> Result<Vec<OracleViolation>, String> {
        let began = Instant::now();
        let (mut samples, mut times) = (Vec::new(), Vec::new());
        samples.extend(self.process.process_id().and_then(sample));
        for _ in 0..most {
            let duration = began.elapsed();
            if duration > MAX_BLOCKS_TIME && (times.len() >= MIN_BLOCKS || duration > MAX_BLOCKS_TIME * 3) {
                break;
            }
            let Some(duration) = self.time_block(fuzz_calls).await? else { return Ok(Vec::new()) };
            times.push(duration);
            samples.extend(self.process.process_id().and_then(sample));
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
}

/// The resource usage of a process and its children, if the operating system reports it.
fn sample(process: i32) -> Option<ResourceSample> {
    const MAX_PROCESSES: usize = 256;
    let mut sample = ResourceSample::default();
    let mut pending = vec![process];
    let mut at = 0;
    while let Some(&process) = pending.get(at) {
        at += 1;
        let Ok(statm) = std::fs::read_to_string(format!("/proc/{process}/statm")) else {
            if at == 1 {
                return None;
            }
            continue;
        };
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        sample.memory += pages * 4096;
        sample.files += std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |files| files.count() as u64);
        if at > 1 {
            sample.children += 1;
        }
        for task in std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let Ok(children) = std::fs::read_to_string(task.path().join("children")) else { continue };
            pending.extend(children.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
        }
        pending.truncate(MAX_PROCESSES);
    }
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_median_or_90th_percentile_is_detected() {
        let times = |many: u64, of: fn(u64) -> u64| -> Vec<Duration> {
            (0..many).map(|at| Duration::from_micros(of(at))).collect()
        };
        assert!(becomes_slower(&times(30, |at| 100 * at)));
        assert!(!becomes_slower(&times(20, |at| 1_000 * at)), "too few");
        assert!(!becomes_slower(&times(60, |_| 5_000)));
        assert!(!becomes_slower(&times(60, |at| 10 * at)), "too little");
        // One call in five gets slower, which the median does not show.
        assert!(becomes_slower(&times(60, |at| if at % 5 == 0 { 300 * at } else { 100 })));
        assert!(!becomes_slower(&times(40, |at| if at == 39 { 90_000 } else { 100 })));
    }
}
