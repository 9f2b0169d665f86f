//! What many calls together show: memory, response times, files and processes that only ever increase.

use std::time::Duration;

use super::violation::OracleViolation;
use crate::case::Oracle;

/// The resources of a server at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ResourceSample {
    /// Bytes of memory, including those of its children.
    pub memory: u64,
    /// Open files.
    pub files: u64,
    /// Child processes, including those of its children.
    pub children: u64,
}

/// The least growth of memory per call that counts, in bytes.
const MIN_BYTES_PER_CALL: u64 = 4 << 10;
/// The least growth of memory in total, in bytes.
const MIN_TOTAL_BYTES: u64 = 24 << 20;
/// How many intervals are judged, the last ones.
const JUDGED_INTERVALS: usize = 4;

/// Memory that grew evenly in every interval of so many calls.
#[must_use]
pub(crate) fn memory_growth(samples: &[ResourceSample], calls: u64) -> Option<OracleViolation> {
    // The first intervals fill caches and heaps.
    let tail = samples.get(samples.len().checked_sub(JUDGED_INTERVALS + 1)?..)?;
    let gains: Vec<u64> = tail.windows(2).map(|pair| pair[1].memory.saturating_sub(pair[0].memory)).collect();
    let gained: u64 = gains.iter().sum();
    let mean = gained / gains.len() as u64;
    let even = gains.iter().all(|gain| *gain >= calls * MIN_BYTES_PER_CALL && *gain >= mean / 3);
    let whole = tail.last()?.memory.saturating_sub(samples.first()?.memory);
    (even && whole >= MIN_TOTAL_BYTES).then(|| {
        let each = mean / calls.max(1) / 1024;
        OracleViolation::from_many_calls(
            Oracle::Memory,
            "memory grows with every call",
            format!(
                "{each} KiB for each of the last {} calls, {} MiB in total",
                calls * gains.len() as u64,
                whole >> 20
            ),
        )
    })
}

/// Whether memory can still be found to [grow](memory_growth) after the last interval, so that measuring is worth going on.
#[must_use]
pub(crate) fn may_show_memory_growth(samples: &[ResourceSample], calls: u64, intervals: usize) -> bool {
    match samples {
        [.., before, last] if samples.len() + JUDGED_INTERVALS > intervals + 1 => {
            last.memory.saturating_sub(before.memory) >= calls * MIN_BYTES_PER_CALL
        }
        _ => true,
    }
}

/// Files or processes whose number grew evenly in every interval of so many calls, and which are not released at some
/// later time, as a garbage collector does.
#[must_use]
pub(crate) fn descriptor_growth(samples: &[ResourceSample], calls: u64) -> Option<OracleViolation> {
    // A pool is filled after fewer intervals.
    const MIN_INTERVALS: usize = 5;
    let count_of = |what: &str, of: fn(&ResourceSample) -> u64| {
        samples.windows(MIN_INTERVALS + 1).find_map(|run| {
            // At least one for every eighth call, in each interval.
            let even = run.windows(2).all(|pair| of(&pair[1]) >= of(&pair[0]) + (calls / 8).max(1));
            let gained = of(run.last()?).saturating_sub(of(run.first()?));
            let is_kept = samples.windows(2).all(|pair| of(&pair[1]) + gained / 2 >= of(&pair[0]));
            (even && gained >= 12 && is_kept).then(|| {
                OracleViolation::from_many_calls(
                    Oracle::Descriptors,
                    format!("the number of {what} grows with every call"),
                    format!("{gained} more after {} calls", calls * MIN_INTERVALS as u64),
                )
            })
        })
    };
    count_of("open files", |sample| sample.files).or_else(|| count_of("child processes", |sample| sample.children))
}

/// Response times of the same calls, repeated, that increase throughout, or are longer from some call on.
#[must_use]
pub(crate) fn latency_growth(times: &[Duration]) -> Option<OracleViolation> {
    const MIN_REPETITIONS: usize = 12;
    if times.len() < MIN_REPETITIONS {
        return None;
    }
    latency_climb(times).or_else(|| latency_step(times))
}

/// By how much the same calls have to take longer at the end than at first.
const MIN_SLOWDOWN: Duration = Duration::from_millis(3);

fn latency_climb(times: &[Duration]) -> Option<OracleViolation> {
    let medians: Vec<Duration> = times.chunks(times.len().div_ceil(4)).map(median).collect();
    let (first, last) = (*medians.first()?, *medians.last()?);
    let rising = medians.windows(2).all(|pair| pair[1] > pair[0].mul_f64(1.15));
    (rising && last > first * 3 && last > first + MIN_SLOWDOWN).then(|| {
        OracleViolation::from_many_calls(
            Oracle::LatencyGrowth,
            "responses take longer with every call",
            format!("the same calls took {first:.1?} at first and {last:.1?} after {} repetitions", times.len()),
        )
    })
}

/// Every repetition from one of them on takes longer than twice the longest before it.
fn latency_step(times: &[Duration]) -> Option<OracleViolation> {
    const MIN_QUICK: usize = 8;
    const MIN_LATE: usize = 2;
    // The first calls of a process are slow.
    let warm = times.get(1..)?;
    let (quick, late) =
        (MIN_QUICK..=warm.len().checked_sub(MIN_LATE)?).map(|at| warm.split_at(at)).find(|(quick, late)| {
            let (longest, shortest) = (quick.iter().max(), late.iter().min());
            longest.zip(shortest).is_some_and(|(longest, shortest)| *shortest > *longest * 2)
                && median(late) > median(quick) * 3
                && median(late) > median(quick) + MIN_SLOWDOWN
        })?;
    let (first, last) = (median(quick), median(late));
    let repetitions = quick.len() + 1;
    Some(late_responses(format!(
        "the same calls took {first:.1?} at first and at least {last:.1?} after {repetitions} repetitions"
    )))
}

/// A response that was late after so many calls, and that a fresh process gives at once.
#[must_use]
pub(crate) fn latency_after_calls(late: Duration, calls: usize, on_fresh: Duration) -> OracleViolation {
    late_responses(format!(
        "after {calls} other calls it took {late:.1?}, again and again, and {on_fresh:.1?} on a fresh process"
    ))
}

fn late_responses(actual: String) -> OracleViolation {
    OracleViolation::from_many_calls(Oracle::LatencyGrowth, "responses are late after many calls", actual)
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(mebibytes: &[u64]) -> Vec<ResourceSample> {
        mebibytes.iter().map(|memory| ResourceSample { memory: memory << 20, ..ResourceSample::default() }).collect()
    }

    #[test]
    fn only_even_growth_is_a_leak() {
        assert!(memory_growth(&memory(&[10, 20, 30, 40, 50, 60]), 100).is_some());
        assert!(memory_growth(&memory(&[10, 60, 61, 61, 61, 61]), 100).is_none());
        assert!(memory_growth(&memory(&[10, 20, 30, 15, 25, 35]), 100).is_none());
        assert!(memory_growth(&memory(&[10, 11, 12, 13, 14, 15]), 100).is_none());
        assert!(memory_growth(&memory(&[10]), 100).is_none());
    }

    #[test]
    fn an_interval_without_growth_ends_the_measurement_only_if_it_is_judged() {
        let seven = |mebibytes: &[u64]| may_show_memory_growth(&memory(mebibytes), 100, 7);
        assert!(seven(&[10]));
        assert!(seven(&[10, 10]) && seven(&[10, 10, 10]) && seven(&[10, 10, 10, 10]), "caches and heaps fill first");
        assert!(!seven(&[10, 20, 30, 40, 40]));
        assert!(seven(&[10, 10, 10, 10, 11]));
        // Only what it allows to continue can be growth.
        assert!(memory_growth(&memory(&[10, 10, 10, 10, 20, 30, 40, 50]), 100).is_some());
        assert!(memory_growth(&memory(&[10, 20, 30, 40, 40, 50, 60, 70]), 100).is_none());
    }

    #[test]
    fn leaked_files_are_distinguished_from_a_pool_that_fills() {
        let files = |counts: &[u64]| -> Vec<ResourceSample> {
            counts.iter().map(|files| ResourceSample { files: *files, ..ResourceSample::default() }).collect()
        };
        assert!(descriptor_growth(&files(&[5, 25, 45, 65, 85, 105]), 20).is_some());
        assert!(descriptor_growth(&files(&[5, 25, 30, 30, 30, 30]), 20).is_none());
        // The garbage collector of a server closes them now and then.
        assert!(descriptor_growth(&files(&[5, 25, 45, 65, 85, 105, 10, 30, 50]), 20).is_none());
        assert!(descriptor_growth(&files(&[90, 5, 25, 45, 65, 85, 105]), 20).is_none());
        assert!(descriptor_growth(&files(&[5, 25, 45, 65, 85, 105, 104, 124]), 20).is_some());
    }

    #[test]
    fn times_increase_if_every_quarter_is_slower_or_all_from_some_call_on() {
        let times =
            |of: fn(u64) -> u64| -> Vec<Duration> { (0..100).map(|at| Duration::from_millis(of(at))).collect() };
        assert!(latency_growth(&times(|at| 1 + at)).is_some());
        assert!(latency_growth(&times(|_| 5)).is_none());
        let steps =
            latency_growth(&times(|at| if at == 0 || at > 90 { 50 } else { 5 })).expect("the last ones are late");
        assert_eq!(steps.actual, "the same calls took 5.0ms at first and at least 50.0ms after 91 repetitions");
        assert!(latency_growth(&times(|at| if at > 98 { 50 } else { 5 })).is_none(), "once");
        assert!(latency_growth(&times(|at| if at % 40 > 30 { 50 } else { 5 })).is_none(), "not to the end");
        assert!(latency_growth(&times(|at| if at > 90 { 9 } else { 5 })).is_none(), "too little");
    }
}
