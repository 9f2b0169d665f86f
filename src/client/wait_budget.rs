//! Waiting for a server without counting the time in which this program was busy itself.
//!
//! Everything runs on one thread. While that thread judges, responses stay unread and requests unsent, so wall-clock
//! time would charge the server for delays that it did not cause.

use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

use crate::limits::{MAX_POLL_OVERRUN, WAIT_POLL_INTERVAL};

/// The remaining time of a wait for a server.
#[derive(Debug)]
pub(super) struct WaitBudget {
    left: Duration,
    /// The duration of the last poll.
    last: Duration,
}

impl WaitBudget {
    pub(super) fn new(limit: Duration) -> Self {
        Self { left: limit, last: Duration::ZERO }
    }

    /// Adds the duration of the last poll back: the server was not responsible for it.
    pub(super) fn refund(&mut self) {
        self.left += std::mem::take(&mut self.last);
    }

    /// Whether no time is left.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.is_zero()
    }

    /// Waits for a future, until the next poll at most.
    pub(super) async fn poll<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        let step = self.left.min(WAIT_POLL_INTERVAL);
        let began = Instant::now();
        let outcome = tokio::time::timeout(step, future).await.ok();
        self.last = began.elapsed().min(step + MAX_POLL_OVERRUN).min(self.left);
        self.left -= self.last;
        outcome
    }
}

/// Waits for a future that depends on a server, for at most `limit` of the server's time.
pub(super) async fn wait_at_most<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut budget = WaitBudget::new(limit);
    let mut future = pin!(future);
    loop {
        let outcome = budget.poll(&mut future).await;
        if outcome.is_some() || budget.is_exhausted() {
            return outcome;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_in_which_this_program_is_busy_does_not_count() {
        let answer = tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            // Stands for the judging.
            tokio::time::advance(Duration::from_millis(400)).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
        assert!(wait_at_most(Duration::from_millis(250), answer).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_counts() {
        let began = Instant::now();
        let output = wait_at_most(Duration::from_millis(250), std::future::pending::<()>()).await;
        assert!(output.is_none());
        assert!(began.elapsed() >= Duration::from_millis(250));
    }
}
