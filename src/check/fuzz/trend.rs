//! What many calls together show: memory, time, files and processes that only ever grow.

use std::time::Duration;

use super::Breach;
use crate::case::Oracle;

/// What a server held at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Bytes of memory, its children's included.
    pub memory: u64,
    /// Open files.
    pub files: u64,
    /// Child processes, theirs included.
    pub children: u64,
}

/// How much memory has to be gained for each call before it counts, in bytes.
const PER_CALL: u64 = 4 << 10;
/// How much has to be gained in all, in bytes.
const IN_ALL: u64 = 24 << 20;
/// How many stretches are counted, the last ones.
const COUNTED: usize = 4;

/// Memory that grew evenly with every stretch of so many calls.
#[must_use]
pub fn grows(samples: &[Sample], calls: u64) -> Option<Breach> {
    // The first stretches fill caches and heaps.
    let tail = samples.get(samples.len().checked_sub(COUNTED + 1)?..)?;
    let gains: Vec<u64> = tail.windows(2).map(|pair| pair[1].memory.saturating_sub(pair[0].memory)).collect();
    let gained: u64 = gains.iter().sum();
    let mean = gained / gains.len() as u64;
    let even = gains.iter().all(|gain| *gain >= calls * PER_CALL && *gain >= mean / 3);
    let whole = tail.last()?.memory.saturating_sub(samples.first()?.memory);
    (even && whole >= IN_ALL).then(|| {
        let each = mean / calls.max(1) / 1024;
        Breach::of_many(
            Oracle::Memory,
            "memory grows with every call",
            format!("{each} KiB for each of the last {} calls; {} MiB in all", calls * gains.len() as u64, whole >> 20),
        )
    })
}

/// Whether the last of so many stretches can be one of those with which memory [grows], so that it is worth going on.
#[must_use]
pub fn may_grow(samples: &[Sample], calls: u64, stretches: usize) -> bool {
    match samples {
        [.., before, last] if samples.len() + COUNTED > stretches + 1 => {
            last.memory.saturating_sub(before.memory) >= calls * PER_CALL
        }
        _ => true,
    }
}

/// Files or processes that piled up evenly with every stretch of so many calls.
#[must_use]
pub fn piles_up(samples: &[Sample], calls: u64) -> Option<Breach> {
    // How many stretches it has to go on for: a pool fills sooner.
    const STRETCHES: usize = 5;
    let look = |what: &str, of: fn(&Sample) -> u64| {
        samples.windows(STRETCHES + 1).find_map(|run| {
            // One for every eighth call, through all of it.
            let even = run.windows(2).all(|pair| of(&pair[1]) >= of(&pair[0]) + (calls / 8).max(1));
            let gained = of(run.last()?).saturating_sub(of(run.first()?));
            (even && gained >= 12).then(|| {
                Breach::of_many(
                    Oracle::Descriptors,
                    format!("{what} pile up with every call"),
                    format!("{gained} more after {} calls", calls * STRETCHES as u64),
                )
            })
        })
    };
    look("open files", |sample| sample.files).or_else(|| look("child processes", |sample| sample.children))
}

/// Times of the same stretch of calls, one after the other, that climb through all of them.
#[must_use]
pub fn climbs(times: &[Duration]) -> Option<Breach> {
    const LEAST: usize = 12;
    const SLOWER: Duration = Duration::from_millis(3);
    if times.len() < LEAST {
        return None;
    }
    let medians: Vec<Duration> = times.chunks(times.len().div_ceil(4)).map(median).collect();
    let (first, last) = (*medians.first()?, *medians.last()?);
    let rising = medians.windows(2).all(|pair| pair[1] > pair[0].mul_f64(1.15));
    (rising && last > first * 3 && last > first + SLOWER).then(|| {
        Breach::of_many(
            Oracle::LatencyClimb,
            "answers take longer with every call",
            format!(
                "the same calls took {first:.1?} at first and {last:.1?} after they had been made {} times",
                times.len()
            ),
        )
    })
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(mebibytes: &[u64]) -> Vec<Sample> {
        mebibytes.iter().map(|memory| Sample { memory: memory << 20, ..Sample::default() }).collect()
    }

    #[test]
    fn only_what_grows_evenly_is_a_leak() {
        assert!(grows(&memory(&[10, 20, 30, 40, 50, 60]), 100).is_some());
        assert!(grows(&memory(&[10, 60, 61, 61, 61, 61]), 100).is_none());
        assert!(grows(&memory(&[10, 20, 30, 15, 25, 35]), 100).is_none());
        assert!(grows(&memory(&[10, 11, 12, 13, 14, 15]), 100).is_none());
        assert!(grows(&memory(&[10]), 100).is_none());
    }

    #[test]
    fn a_stretch_without_growth_ends_the_look_only_where_it_counts() {
        let seven = |mebibytes: &[u64]| may_grow(&memory(mebibytes), 100, 7);
        assert!(seven(&[10]));
        assert!(seven(&[10, 10]) && seven(&[10, 10, 10]) && seven(&[10, 10, 10, 10]), "caches and heaps fill first");
        assert!(!seven(&[10, 20, 30, 40, 40]));
        assert!(seven(&[10, 10, 10, 10, 11]));
        // What it lets through to the end, and nothing else, can be growth.
        assert!(grows(&memory(&[10, 10, 10, 10, 20, 30, 40, 50]), 100).is_some());
        assert!(grows(&memory(&[10, 20, 30, 40, 40, 50, 60, 70]), 100).is_none());
    }

    #[test]
    fn files_that_pile_up_are_told_from_a_pool_that_fills() {
        let files = |counts: &[u64]| -> Vec<Sample> {
            counts.iter().map(|files| Sample { files: *files, ..Sample::default() }).collect()
        };
        assert!(piles_up(&files(&[5, 25, 45, 65, 85, 105]), 20).is_some());
        assert!(piles_up(&files(&[5, 25, 30, 30, 30, 30]), 20).is_none());
    }

    #[test]
    fn times_climb_only_where_every_quarter_is_slower() {
        let times =
            |of: fn(u64) -> u64| -> Vec<Duration> { (0..100).map(|at| Duration::from_millis(of(at))).collect() };
        assert!(climbs(&times(|at| 1 + at)).is_some());
        assert!(climbs(&times(|_| 5)).is_none());
        assert!(climbs(&times(|at| if at > 90 { 50 } else { 5 })).is_none());
    }
}
