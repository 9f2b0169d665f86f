//! Monitors what a server should keep stable while it is called: memory, open files, child processes and latency.

use std::time::Duration;

use crate::campaign::limits::MIN_ROUND_SLOWDOWN;
use crate::check::fuzz::ResourceSample;

/// What a tool's calls seem to cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::campaign) enum ResourceSuspicion {
    /// There are more open files or processes.
    FilesOrProcesses,
    /// Responses take longer than at first, as they do on any machine for a while.
    Slow,
    /// There is more memory in use, as in any server for a while.
    Memory,
}

/// Measurements of a server around the calls of one tool.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::campaign) struct ResourceMonitor {
    /// Before any call.
    first: Option<ResourceSample>,
    /// After the very large arguments, which grow the heap.
    settled: Option<ResourceSample>,
    /// Mean latencies in the first round and in the last two.
    early: Option<Duration>,
    late: [Option<Duration>; 2],
}

impl ResourceMonitor {
    pub(in crate::campaign) fn begin(process: Option<i32>) -> Self {
        Self { first: process.and_then(sample), ..Self::default() }
    }

    /// Takes the sample with which later memory usage is compared.
    pub(in crate::campaign) fn settle(&mut self, process: Option<i32>) {
        self.settled = process.and_then(sample);
    }

    /// Records a round.
    pub(in crate::campaign) fn record_round(&mut self, calls: usize, duration: Duration) {
        let each = duration / u32::try_from(calls.max(1)).unwrap_or(u32::MAX);
        self.early.get_or_insert(each);
        self.late = [self.late[1], Some(each)];
    }

    /// What deserves a closer look.
    pub(in crate::campaign) fn suspicion(&self, process: Option<i32>) -> Option<ResourceSuspicion> {
        const MIN_MEMORY_GROWTH: u64 = 2 << 20;
        const MIN_FILE_GROWTH: u64 = 5;
        const MIN_CHILD_GROWTH: u64 = 3;
        let slower = match (self.early, self.late) {
            (Some(early), [before, Some(late)]) => {
                let late = before.map_or(late, |before| late.min(before));
                late > early * 2 && late > early + MIN_ROUND_SLOWDOWN
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
            return Some(if files_or_processes {
                ResourceSuspicion::FilesOrProcesses
            } else {
                ResourceSuspicion::Slow
            });
        }
        more(self.settled, |sample| sample.memory, MIN_MEMORY_GROWTH).then_some(ResourceSuspicion::Memory)
    }
}

/// The resource usage of a process and its children, if the operating system reports it.
pub(in crate::campaign) fn sample(process: i32) -> Option<ResourceSample> {
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
