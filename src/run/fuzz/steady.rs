//! Whether a server stays what it is while it is called: memory, open files, child processes, and time.

use std::time::{Duration, Instant};

use super::hunt::{Found, Hunt};
use super::shot::Shot;
use super::shrink::{Test, slim};
use super::stock::Stock;
use crate::case::Oracle;
use crate::check::fuzz::{Breach, Fate, Sample, climbs, grows, may_grow, piles_up};

/// How many calls make a stretch; the same ones each time.
const STRETCH: usize = 16;
/// How many stretches are made.
pub(super) const STRETCHES: usize = 28;
/// How long that may take, and how many of them are made in up to three times as long: fewer tell of nothing.
const TIME: Duration = Duration::from_secs(5);
const TOLD: usize = 16;
/// How many stretches are told apart for memory.
const JOINED: usize = 4;

/// What seems to have come of a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// There are more files or processes.
    Clear,
    /// Answers take longer than they did, as they do on every machine for a moment.
    Slow,
    /// There is more memory, as there is in every server for a while.
    Heap,
}

/// What a tool's calls did to the server at first sight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watch {
    /// Before any call.
    first: Option<Sample>,
    /// When what is enormous has been sent, which leaves a heap that is.
    settled: Option<Sample>,
    /// Mean times of a call in the first round and in the last two.
    early: Option<Duration>,
    late: [Option<Duration>; 2],
}

impl Watch {
    pub(super) fn begin(process: Option<i32>) -> Self {
        Self { first: process.and_then(sample), ..Self::default() }
    }

    /// Takes note of the memory that is held from now on.
    pub(super) fn settle(&mut self, process: Option<i32>) {
        self.settled = process.and_then(sample);
    }

    /// Takes note of a round.
    pub(super) fn round(&mut self, calls: usize, took: Duration) {
        let each = took / u32::try_from(calls.max(1)).unwrap_or(u32::MAX);
        self.early.get_or_insert(each);
        self.late = [self.late[1], Some(each)];
    }

    /// What is worth a closer look.
    pub(super) fn suspicion(&self, process: Option<i32>) -> Option<Suspicion> {
        const MEMORY: u64 = 2 << 20;
        const FILES: u64 = 5;
        const CHILDREN: u64 = 3;
        const SLOWER: Duration = Duration::from_millis(1);
        let slower = match (self.early, self.late) {
            (Some(early), [before, Some(late)]) => {
                let late = before.map_or(late, |before| late.min(before));
                late > early * 2 && late > early + SLOWER
            }
            _ => false,
        };
        let now = process.and_then(sample);
        let more = |before: Option<Sample>, of: fn(&Sample) -> u64, least: u64| {
            before.zip(now).is_some_and(|(before, now)| of(&now) > of(&before) + least)
        };
        let held =
            more(self.first, |sample| sample.files, FILES) || more(self.first, |sample| sample.children, CHILDREN);
        if held || slower {
            return Some(if held { Suspicion::Clear } else { Suspicion::Slow });
        }
        more(self.settled, |sample| sample.memory, MEMORY).then_some(Suspicion::Heap)
    }
}

/// Of how many calls the times tell something.
pub(super) const LEAST: usize = 24;

/// Whether the calls of a tool take longer in the end than at first: half of them, or the slower ones.
pub(super) fn ends_slower(times: &[Duration]) -> bool {
    const MANY: usize = 48;
    let at = |times: &[Duration], tenths: usize| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times.get(times.len() * tenths / 10).copied().unwrap_or_default()
    };
    let is_slower = |part: usize, tenths: usize, by: u64| {
        let (first, last) = (at(&times[..part], tenths), at(&times[times.len() - part..], tenths));
        last > first * 2 && last > first + Duration::from_millis(by)
    };
    times.len() >= LEAST && is_slower(times.len() / 3, 5, 1) || times.len() >= MANY && is_slower(times.len() / 4, 9, 2)
}

/// Whether the same call takes longer than it did, so that a closer look is worth it.
pub(super) fn is_slower(times: &[Duration]) -> bool {
    const SLOWER: Duration = Duration::from_millis(2);
    match times {
        [first, .., before, last] => before.min(last) > &(*first * 3) && *before.min(last) > *first + SLOWER,
        _ => false,
    }
}

impl Hunt<'_> {
    /// Makes the same calls of a tool again and again, and tells what only ever grows.
    pub(super) async fn look_at_trends(&mut self, suspicion: Suspicion, stock: &Stock) -> Result<(), String> {
        let shots: Vec<Shot> = stock.picked(STRETCH).into_iter().map(|call| Shot::new(stock.tool, call)).collect();
        if shots.is_empty() {
            return Ok(());
        }
        let (made, began) = (self.rig.calls, Instant::now());
        let found = self.trends(suspicion, &shots).await?;
        for breach in found {
            if self.known(stock.tool, &breach).is_none() {
                let found = self.of_all(stock.tool, &Test::Stretches, breach, &shots).await?;
                self.add(found);
            }
        }
        self.shrinking += self.rig.calls - made;
        self.shrinking_took += began.elapsed();
        self.spare(began.elapsed());
        Ok(())
    }

    /// What grows on a fresh process. Heaps and caches grow on every server for a while, so what seems to have
    /// grown has to go on growing on the process where it was seen before a fresh one is started for it.
    async fn trends(&mut self, suspicion: Suspicion, shots: &[Shot]) -> Result<Vec<Breach>, String> {
        if suspicion == Suspicion::Heap && !self.goes_on_growing(shots).await? {
            return Ok(Vec::new());
        }
        if suspicion == Suspicion::Slow {
            if !self.is_slower_than_a_fresh_one(shots).await? {
                return Ok(Vec::new());
            }
        } else {
            self.rig.fresh().await?;
        }
        let mut found = self.stretches(shots, STRETCHES).await?;
        let is_climb = |breach: &Breach| breach.oracle == Oracle::LatencyClimb;
        if found.iter().any(is_climb) && !self.climbs_by_itself(shots).await? {
            found.retain(|breach| !is_climb(breach));
        }
        self.rig.drop_process();
        Ok(found)
    }

    /// Whether the process at hand goes on growing while the same calls are made, as many at once as it likes; seen
    /// from what it holds alone, and only for as long as it may.
    async fn goes_on_growing(&mut self, shots: &[Shot]) -> Result<bool, String> {
        let began = Instant::now();
        let calls = (shots.len() * JOINED) as u64;
        let many: Vec<Shot> = shots.iter().cycle().take(shots.len() * JOINED).cloned().collect();
        let mut samples: Vec<Sample> = self.rig.process_id().and_then(sample).into_iter().collect();
        for _ in 0..STRETCHES / JOINED {
            let in_flight = self.in_flight.now();
            let burst = self.rig.burst(&many, in_flight, self.limit(), None).await?;
            samples.extend(self.rig.process_id().and_then(sample));
            let is_spent = began.elapsed() > TIME * 3;
            if burst.broken.is_some() || is_spent || !may_grow(&samples, calls, STRETCHES / JOINED) {
                return Ok(false);
            }
        }
        Ok(grows(&samples, calls).is_some())
    }

    /// Whether the process that was found to climb does so by itself, rather than with the whole machine: one that
    /// was just started is faster at the same moment, and climbs as well.
    async fn climbs_by_itself(&mut self, shots: &[Shot]) -> Result<bool, String> {
        if !self.is_slower_than_a_fresh_one(shots).await? {
            return Ok(false);
        }
        let again = self.stretches(shots, STRETCHES).await?;
        Ok(again.iter().any(|breach| breach.oracle == Oracle::LatencyClimb))
    }

    /// Whether the process at hand is slower than one that is started in its place, at the same moment.
    async fn is_slower_than_a_fresh_one(&mut self, shots: &[Shot]) -> Result<bool, String> {
        let late = self.stretch(shots).await?;
        self.rig.fresh().await?;
        // The first calls of a process are slow.
        let (warmed, early) = (self.stretch(shots).await?, self.stretch(shots).await?);
        let (Some(late), Some(_), Some(early)) = (late, warmed, early) else { return Ok(false) };
        Ok(late >= early * 2)
    }

    /// How long the same calls take one after the other, if all of them are answered.
    async fn stretch(&mut self, shots: &[Shot]) -> Result<Option<Duration>, String> {
        let began = Instant::now();
        for shot in shots {
            if self.rig.one(shot, self.limit()).await?.fate != Fate::Answered {
                return Ok(None);
            }
        }
        Ok(Some(began.elapsed()))
    }

    /// The finding of what only all of these calls together show; the last one stands for them.
    pub(super) async fn of_all(
        &mut self,
        tool: usize,
        test: &Test,
        breach: Breach,
        calls: &[Shot],
    ) -> Result<Option<Found>, String> {
        let Some((shot, before)) = calls.split_last() else { return Ok(None) };
        let last = self.rig.one(shot, self.limit()).await?;
        let mut counterexample = self.counterexample(tool, &last, &last, before, 0);
        counterexample.file = self.write_down(test, &breach, calls);
        Ok(Some(Found {
            tool,
            breach,
            count: 1,
            exchanges: vec![slim(last)],
            counterexample: Some(counterexample),
            confirmation: None,
        }))
    }

    /// What grows while the same calls are made stretch by stretch.
    pub(super) async fn stretches(&mut self, shots: &[Shot], most: usize) -> Result<Vec<Breach>, String> {
        let began = Instant::now();
        let (mut samples, mut times) = (Vec::new(), Vec::new());
        samples.extend(self.rig.process_id().and_then(sample));
        for _ in 0..most {
            let took = began.elapsed();
            if took > TIME && (times.len() >= TOLD || took > TIME * 3) {
                break;
            }
            let Some(took) = self.stretch(shots).await? else { return Ok(Vec::new()) };
            times.push(took);
            samples.extend(self.rig.process_id().and_then(sample));
        }
        let calls = shots.len() as u64;
        let joined: Vec<Sample> = samples.iter().copied().step_by(JOINED).collect();
        let found = [grows(&joined, calls * JOINED as u64), piles_up(&samples, calls), climbs(&times)];
        Ok(found.into_iter().flatten().collect())
    }
}

/// What a process and its children hold, where the system tells.
fn sample(process: i32) -> Option<Sample> {
    const MOST: usize = 256;
    let mut sample = Sample::default();
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
        pending.truncate(MOST);
    }
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_end_slower_where_half_of_them_do_or_the_slow_ones() {
        let times = |many: u64, of: fn(u64) -> u64| -> Vec<Duration> {
            (0..many).map(|at| Duration::from_micros(of(at))).collect()
        };
        assert!(ends_slower(&times(30, |at| 100 * at)));
        assert!(!ends_slower(&times(20, |at| 1_000 * at)), "too few");
        assert!(!ends_slower(&times(60, |_| 5_000)));
        assert!(!ends_slower(&times(60, |at| 10 * at)), "too little");
        // One in five takes longer each time, of which half of all calls show nothing.
        assert!(ends_slower(&times(60, |at| if at % 5 == 0 { 300 * at } else { 100 })));
        assert!(!ends_slower(&times(40, |at| if at == 39 { 90_000 } else { 100 })));
    }
}
