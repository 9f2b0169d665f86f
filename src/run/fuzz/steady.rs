//! Whether a server stays what it is while it is called: memory, open files, child processes, and time.

use std::time::{Duration, Instant};

use super::hunt::Hunt;
use super::rig::Shot;
use super::stock::Stock;
use crate::check::fuzz::{Breach, Fate, Sample, climbs, grows, piles_up};

/// How many calls make a stretch; the same ones each time.
const STRETCH: usize = 16;
/// How many stretches are made.
const STRETCHES: usize = 28;
/// How long that may take.
const TIME: Duration = Duration::from_secs(5);
/// How many stretches are told apart for memory.
const JOINED: usize = 4;

/// What seems to have come of a tool's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// Answers take longer than they did.
    Slower,
    /// The process holds more than it did.
    Grown,
}

/// What a tool's calls did to the server at first sight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watch {
    before: Option<Sample>,
    /// Mean times of a call in the first and in the last round.
    first: Option<Duration>,
    last: Option<Duration>,
}

impl Watch {
    pub(super) fn begin(process: Option<i32>) -> Self {
        Self { before: process.and_then(sample), first: None, last: None }
    }

    /// Takes note of a round.
    pub(super) fn round(&mut self, calls: usize, took: Duration) {
        let each = took / u32::try_from(calls.max(1)).unwrap_or(u32::MAX);
        self.first.get_or_insert(each);
        self.last = Some(each);
    }

    /// What is worth a closer look.
    pub(super) fn suspicion(&self, process: Option<i32>) -> Option<Suspicion> {
        const MEMORY: u64 = 4 << 20;
        const FILES: u64 = 5;
        const CHILDREN: u64 = 3;
        const SLOWER: Duration = Duration::from_millis(1);
        let slower = match (self.first, self.last) {
            (Some(first), Some(last)) => last > first * 2 && last > first + SLOWER,
            _ => false,
        };
        let grown = match (self.before, process.and_then(sample)) {
            (Some(before), Some(after)) => {
                after.memory > before.memory + MEMORY
                    || after.files > before.files + FILES
                    || after.children > before.children + CHILDREN
            }
            _ => false,
        };
        match (slower, grown) {
            (true, _) => Some(Suspicion::Slower),
            (false, true) => Some(Suspicion::Grown),
            (false, false) => None,
        }
    }
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
    pub(super) async fn look_at_trends(&mut self, suspicion: Suspicion, stock: &Stock<'_>) -> Result<(), String> {
        let shots: Vec<Shot> = stock.picked(STRETCH).into_iter().map(|call| Shot { tool: stock.tool, call }).collect();
        if shots.is_empty() {
            return Ok(());
        }
        let (made, began) = (self.rig.calls, Instant::now());
        let found = self.trends(suspicion, &shots).await?;
        for breach in found {
            if self.known(stock.tool, &breach).is_none() {
                let last = self.rig.one(&shots[0], self.limit()).await?;
                let found = self.as_it_came(stock.tool, breach, &last, 0);
                self.add(Some(found));
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
        if suspicion == Suspicion::Grown && self.stretches(shots).await?.is_empty() {
            return Ok(Vec::new());
        }
        self.rig.fresh().await?;
        let found = self.stretches(shots).await?;
        self.rig.fresh().await?;
        Ok(found)
    }

    /// What grows while the same calls are made stretch by stretch.
    async fn stretches(&mut self, shots: &[Shot]) -> Result<Vec<Breach>, String> {
        let began = Instant::now();
        let (mut samples, mut times) = (Vec::new(), Vec::new());
        samples.extend(self.rig.process_id().and_then(sample));
        for _ in 0..STRETCHES {
            if began.elapsed() > TIME {
                break;
            }
            let stretch = Instant::now();
            for shot in shots {
                if self.rig.one(shot, self.limit()).await?.fate != Fate::Answered {
                    return Ok(Vec::new());
                }
            }
            times.push(stretch.elapsed());
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
