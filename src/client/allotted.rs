//! Waiting for a server without counting the time in which this program was busy itself.
//!
//! Everything runs on one thread. While that thread judges, responses stay unread and requests unsent, so wall-clock
//! time would charge the server for delays that it did not cause.

use std::pin::pin;
use std::time::{Duration, Instant};

/// How often the clock is read during a wait.
pub(super) const GLANCE: Duration = Duration::from_millis(100);

/// How much longer than requested a poll may take; any time beyond it was spent by this program.
const SLACK: Duration = Duration::from_millis(50);

/// The remaining time of a wait for a server.
#[derive(Debug)]
pub(super) struct Allotted {
    left: Duration,
    /// The duration of the last poll.
    last: Duration,
}

impl Allotted {
    pub(super) fn new(limit: Duration) -> Self {
        Self { left: limit, last: Duration::ZERO }
    }

    /// Adds the duration of the last poll back: the server was not responsible for it.
    pub(super) fn give_back(&mut self) {
        self.left += std::mem::take(&mut self.last);
    }

    /// Whether no time is left.
    pub(super) fn is_over(&self) -> bool {
        self.left.is_zero()
    }

    /// Waits for a future, until the next poll at most.
    pub(super) async fn glance<T>(&mut self, something: impl Future<Output = T>) -> Option<T> {
        let step = self.left.min(GLANCE);
        let began = Instant::now();
        let outcome = tokio::time::timeout(step, something).await.ok();
        self.last = began.elapsed().min(step + SLACK).min(self.left);
        self.left -= self.last;
        outcome
    }
}

/// Waits for a future that depends on a server, for at most `limit` of the server's time.
pub(super) async fn within<T>(limit: Duration, something: impl Future<Output = T>) -> Option<T> {
    let mut allotted = Allotted::new(limit);
    let mut something = pin!(something);
    loop {
        let outcome = allotted.glance(&mut something).await;
        if outcome.is_some() || allotted.is_over() {
            return outcome;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(something: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(something)
    }

    #[test]
    fn time_in_which_this_program_is_busy_does_not_count() {
        let came = run(async {
            let answer = tokio::spawn(async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                // Stands for the judging.
                std::thread::sleep(Duration::from_millis(400));
                tokio::time::sleep(Duration::from_millis(20)).await;
            });
            within(Duration::from_millis(250), answer).await
        });
        assert!(came.is_some());
    }

    #[test]
    fn idle_time_counts() {
        let began = Instant::now();
        let came = run(within(Duration::from_millis(250), std::future::pending::<()>()));
        assert!(came.is_none());
        assert!(began.elapsed() >= Duration::from_millis(250));
    }
}
