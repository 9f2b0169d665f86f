//! Waiting for a server, with the time left out in which we were busy ourselves.
//!
//! Everything runs on one thread. While that judges, answers lie unread and questions unsent, so a clock on
//! the wall would count against the server what it has no part in.

use std::pin::pin;
use std::time::{Duration, Instant};

/// How often the clock is looked at.
pub(super) const GLANCE: Duration = Duration::from_millis(100);

/// The most that the time between two looks may exceed what was asked for; beyond that we were busy.
const SLACK: Duration = Duration::from_millis(50);

/// What is left of the time that a server gets.
#[derive(Debug)]
pub(super) struct Allotted {
    left: Duration,
    /// What the last look took.
    last: Duration,
}

impl Allotted {
    pub(super) fn new(limit: Duration) -> Self {
        Self { left: limit, last: Duration::ZERO }
    }

    /// Gives back what the last look took: it was no time of the server's.
    pub(super) fn give_back(&mut self) {
        self.left += std::mem::take(&mut self.last);
    }

    /// Whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.left.is_zero()
    }

    /// Waits for something, until the next look at the clock at most.
    pub(super) async fn glance<T>(&mut self, something: impl Future<Output = T>) -> Option<T> {
        let step = self.left.min(GLANCE);
        let began = Instant::now();
        let outcome = tokio::time::timeout(step, something).await.ok();
        self.last = began.elapsed().min(step + SLACK).min(self.left);
        self.left -= self.last;
        outcome
    }
}

/// Waits for something that a server has so much time for.
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
    fn time_in_which_we_are_busy_does_not_count() {
        let came = run(async {
            let answer = tokio::spawn(async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                // The judge is at work.
                std::thread::sleep(Duration::from_millis(400));
                tokio::time::sleep(Duration::from_millis(20)).await;
            });
            within(Duration::from_millis(250), answer).await
        });
        assert!(came.is_some());
    }

    #[test]
    fn time_that_passes_idly_counts() {
        let began = Instant::now();
        let came = run(within(Duration::from_millis(250), std::future::pending::<()>()));
        assert!(came.is_none());
        assert!(began.elapsed() >= Duration::from_millis(250));
    }
}
