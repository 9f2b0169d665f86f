//! Watches whether the calls of a tool become slower.

use std::time::Duration;

use crate::campaign::limits::{MIN_CALL_SLOWDOWN, MIN_SLOWDOWN_SINCE_FIRST_CALL};

/// The minimum number of latencies that show a trend.
const MIN_TIMED_CALLS: usize = 24;

/// The number of latencies that are kept.
const MAX_LATENCIES: usize = 4_096;

/// The latencies of the calls of one tool.
#[derive(Debug, Default)]
pub(in crate::campaign) struct LatencyMonitor {
    /// Of successful calls with nothing else in flight; only the first ones are kept.
    calls: Vec<Duration>,
}

impl LatencyMonitor {
    /// Records the latency of a successful call with nothing else in flight.
    pub(in crate::campaign) fn record(&mut self, latency: Duration) {
        if self.calls.len() < MAX_LATENCIES {
            self.calls.push(latency);
        }
    }

    /// Whether there are enough latencies to show a trend.
    pub(in crate::campaign) fn shows_trends(&self) -> bool {
        self.calls.len() >= MIN_TIMED_CALLS
    }

    /// Whether the tool became slow enough to deserve a closer look.
    pub(in crate::campaign) fn is_slower(&self) -> bool {
        becomes_slower(&self.calls)
    }

    /// Whether the tool is slower than when it was called first, which deserves a closer look as well.
    pub(in crate::campaign) fn is_slower_than(&self, first_call: Duration) -> bool {
        are_slower_than(&self.calls, first_call)
    }
}

/// Whether most calls take longer than a call that was made before all others.
fn are_slower_than(times: &[Duration], first: Duration) -> bool {
    const MIN_CALLS: usize = 3;
    let mut times = times.to_vec();
    times.sort_unstable();
    times.len() >= MIN_CALLS && times[times.len() / 2] > first * 4 + MIN_SLOWDOWN_SINCE_FIRST_CALL
}

/// Whether the calls of a tool are slower at the end than at the start: the median, or the 90th percentile.
fn becomes_slower(times: &[Duration]) -> bool {
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

/// Whether the same call, repeated, became slower.
pub(super) fn is_slower(times: &[Duration]) -> bool {
    match times {
        [first, .., before, last] => before.min(last) > &(*first * 3) && *before.min(last) > *first + MIN_CALL_SLOWDOWN,
        _ => false,
    }
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

    #[test]
    fn few_calls_show_that_all_are_slower_than_the_first_one() {
        let millis = Duration::from_millis;
        assert!(are_slower_than(&[millis(501), millis(3), millis(502)], millis(20)));
        assert!(!are_slower_than(&[millis(501), millis(502)], millis(20)), "too few");
        assert!(!are_slower_than(&[millis(501), millis(502), millis(503)], millis(120)), "too little");
    }

    #[test]
    fn a_plain_call_has_to_be_slow_twice() {
        let slower = |millis: &[u64]| is_slower(&millis.iter().copied().map(Duration::from_millis).collect::<Vec<_>>());
        assert!(slower(&[1, 1, 9, 9]));
        assert!(!slower(&[1, 1, 1, 9]));
        assert!(!slower(&[1, 9]), "the two last ones do not include the first");
    }
}
