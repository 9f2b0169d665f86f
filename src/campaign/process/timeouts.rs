//! How long to wait for a response: a call that hangs costs one timeout, which depends on how fast the tool is.

use std::time::Duration;

use crate::campaign::limits::{FIRST_TIMEOUT, SHRINK_TIMEOUT_RANGE, SLOWEST_CALL_FACTOR};

/// The timeouts of the calls of one tool.
#[derive(Debug, Clone, Copy)]
pub(in crate::campaign) struct Timeouts {
    full: Duration,
    /// The latency of the slowest call of the current tool so far.
    slowest: Duration,
}

impl Timeouts {
    /// Timeouts of at most `full`.
    pub(in crate::campaign) fn new(full: Duration) -> Self {
        Self { full, slowest: Duration::ZERO }
    }

    /// Begins with another tool, given a latency that is known of it.
    pub(in crate::campaign) fn begin_tool(&mut self, latency: Duration) {
        self.slowest = latency;
    }

    /// Records the latency of an answered call.
    pub(in crate::campaign) fn record(&mut self, latency: Duration) {
        self.slowest = self.slowest.max(latency);
    }

    /// The full timeout of a call.
    pub(in crate::campaign) fn full(self) -> Duration {
        self.full
    }

    /// The first timeout of a call; after it, the call is repeated with the full timeout.
    pub(in crate::campaign) fn first(self) -> Duration {
        FIRST_TIMEOUT.min(self.full / 3).max(self.slowest * SLOWEST_CALL_FACTOR).min(self.full)
    }

    /// The timeout of a call that is expected to hang, on a process that took `startup` to start.
    pub(in crate::campaign) fn shrinking(self, startup: Duration) -> Duration {
        let usual = self.slowest * SLOWEST_CALL_FACTOR * 2 + startup / 2;
        usual.clamp(SHRINK_TIMEOUT_RANGE[0], SHRINK_TIMEOUT_RANGE[1]).min(self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_tool_gets_longer_timeouts_up_to_the_full_one() {
        let seconds = Duration::from_secs;
        let mut timeouts = Timeouts::new(seconds(10));
        assert_eq!(timeouts.first(), FIRST_TIMEOUT);
        timeouts.record(Duration::from_millis(500));
        timeouts.record(Duration::from_millis(100));
        assert_eq!(timeouts.first(), seconds(2));
        timeouts.record(seconds(9));
        assert_eq!((timeouts.first(), timeouts.full()), (seconds(10), seconds(10)));
        timeouts.begin_tool(Duration::ZERO);
        assert_eq!(timeouts.first(), FIRST_TIMEOUT);
        assert_eq!(Timeouts::new(Duration::from_millis(300)).first(), Duration::from_millis(100));
    }

    #[test]
    fn a_call_that_is_expected_to_hang_gets_little_time() {
        let millis = Duration::from_millis;
        let mut timeouts = Timeouts::new(millis(5_000));
        assert_eq!(timeouts.shrinking(Duration::ZERO), millis(250));
        assert_eq!(timeouts.shrinking(millis(1_000)), millis(500));
        timeouts.record(millis(400));
        assert_eq!(timeouts.shrinking(Duration::ZERO), millis(700));
    }
}
