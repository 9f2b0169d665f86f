//! The budget for shrinking one failure. It does not read the clock; the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use crate::campaign::limits::{MAX_BRIEF_ATTEMPTS, MAX_SHRINK_ATTEMPTS};

/// The remaining budget for one failure.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShrinkBudget {
    until: Instant,
    most: usize,
    attempts: usize,
}

impl ShrinkBudget {
    /// The budget on a server that takes `startup` to start. `time` is the limit if it starts quickly.
    pub(in crate::campaign) fn new(now: Instant, time: Duration, startup: Duration) -> Self {
        let time = time.max(startup * 20).min(time * 3);
        Self { until: now + time, most: MAX_SHRINK_ATTEMPTS, attempts: 0 }
    }

    /// The budget for a failure that another tool has shown before.
    pub(super) fn brief(now: Instant, time: Duration) -> Self {
        Self { until: now + time, most: MAX_BRIEF_ATTEMPTS, attempts: 0 }
    }

    /// Counts an attempt.
    pub(super) fn record_attempt(&mut self) {
        self.attempts += 1;
    }

    pub(in crate::campaign) fn attempts(&self) -> usize {
        self.attempts
    }

    /// When the time is spent.
    pub(in crate::campaign) fn deadline(&self) -> Instant {
        self.until
    }

    pub(in crate::campaign) fn is_spent(&self, now: Instant) -> bool {
        self.attempts >= self.most || now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::limits::{MAX_BRIEF_SHRINK_TIME, MAX_SHRINK_TIME};

    #[test]
    fn a_budget_is_spent_by_attempts_or_time() {
        let began = Instant::now();
        let mut brief = ShrinkBudget::brief(began, MAX_BRIEF_SHRINK_TIME);
        (1..MAX_BRIEF_ATTEMPTS).for_each(|_| brief.record_attempt());
        assert!(!brief.is_spent(began) && brief.is_spent(began + MAX_BRIEF_SHRINK_TIME));
        brief.record_attempt();
        assert!(brief.is_spent(began) && brief.attempts() == MAX_BRIEF_ATTEMPTS);
    }

    #[test]
    fn a_server_that_starts_slowly_gets_more_time() {
        let (began, seconds) = (Instant::now(), Duration::from_secs);
        for (startup, limit) in [(0, 12), (1, 20), (10, 36)] {
            let budget = ShrinkBudget::new(began, MAX_SHRINK_TIME, seconds(startup));
            assert!(!budget.is_spent(began + seconds(limit - 1)) && budget.is_spent(began + seconds(limit)));
        }
    }
}
