//! Finds out how many calls to keep in flight for the highest throughput.

use std::time::Duration;

/// The maximum number of calls in flight.
const MAX_IN_FLIGHT: usize = 256;
/// The number of calls of a slow tool in flight: a call that takes a second mostly waits.
const SLOW_TOOL_IN_FLIGHT: usize = 16;
/// How many rounds in a row may be no faster before returning to the fastest setting: a single round may be slow by
/// chance.
const SLOWER_ROUNDS_BEFORE_SETTLING: usize = 2;
/// After how many rounds a higher number is first tried again: the server does not change, but the load on the
/// machine does.
const FIRST_RETRY_AFTER_ROUNDS: usize = 8;
/// The maximum of that pause, because trying again costs two rounds.
const MAX_RETRY_AFTER_ROUNDS: usize = 128;

/// The number of calls in flight, increased for as long as that raises the throughput.
///
/// A server that handles one call at a time is not overloaded: the smallest number with the highest throughput is
/// kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Concurrency {
    current: usize,
    /// The setting of the fastest round since the last restart of the search, and its throughput in calls per second.
    best: (usize, f64),
    state: SearchState,
    /// How many rounds to pause after the next unsuccessful search.
    pause: usize,
}

#[derive(Debug, Clone, Copy)]
enum SearchState {
    /// Set by the user.
    Fixed,
    /// Searching upwards; holds the number of consecutive rounds that were no faster.
    Trying(usize),
    /// Paused; holds the number of remaining rounds.
    Settled(usize),
}

impl Concurrency {
    /// Uses the number set by the user, or starts the search at one.
    pub(super) fn new(fixed: Option<usize>) -> Self {
        let current = fixed.unwrap_or(1).max(1);
        let state = if fixed.is_some() { SearchState::Fixed } else { SearchState::Trying(0) };
        Self { current, best: (current, 0.0), state, pause: FIRST_RETRY_AFTER_ROUNDS }
    }

    /// The current number of calls in flight.
    pub(super) fn current(self) -> usize {
        self.current
    }

    /// The number of calls of a slow tool in flight, in every phase: as set by the user, or enough to use the time.
    pub(super) fn for_slow_tool(self) -> usize {
        if matches!(self.state, SearchState::Fixed) { self.current } else { self.current.max(SLOW_TOOL_IN_FLIGHT) }
    }

    /// Records the duration of a round of calls.
    pub(super) fn record_round(&mut self, calls: usize, duration: Duration) {
        // A shorter round is dominated by its start and its end.
        if calls < self.current * 4 {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a round has few calls")]
        let rate = calls as f64 / duration.as_secs_f64().max(1e-9);
        match self.state {
            SearchState::Fixed => {}
            SearchState::Settled(0) => {
                self.best = (self.current, rate);
                self.try_more(2);
            }
            SearchState::Settled(rounds) => self.state = SearchState::Settled(rounds - 1),
            SearchState::Trying(_) if rate > self.best.1 * 1.1 => {
                // After a large gain, a larger step is likely to gain more.
                let by = if rate > self.best.1 * 1.6 { 4 } else { 2 };
                self.best = (self.current, rate);
                self.try_more(by);
            }
            SearchState::Trying(slower)
                if slower + 1 >= SLOWER_ROUNDS_BEFORE_SETTLING || self.current >= MAX_IN_FLIGHT =>
            {
                self.settle();
            }
            SearchState::Trying(slower) => {
                self.current = (self.current * 2).min(MAX_IN_FLIGHT);
                self.state = SearchState::Trying(slower + 1);
            }
        }
    }

    fn try_more(&mut self, by: usize) {
        if self.current >= MAX_IN_FLIGHT {
            self.settle();
        } else {
            self.current = (self.current * by).min(MAX_IN_FLIGHT);
            self.state = SearchState::Trying(0);
        }
    }

    fn settle(&mut self) {
        self.current = self.best.0;
        self.state = SearchState::Settled(self.pause);
        self.pause = (self.pause * 2).min(MAX_RETRY_AFTER_ROUNDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The setting after some rounds against a server that handles `at_once` calls at a time, in one millisecond
    /// each.
    fn after(concurrency: &mut Concurrency, rounds: usize, at_once: usize) -> usize {
        for _ in 0..rounds {
            let millis = 1_024 / concurrency.current().min(at_once);
            concurrency.record_round(1_024, Duration::from_millis(millis as u64));
        }
        concurrency.current()
    }

    #[test]
    fn the_best_setting_is_found_within_a_few_rounds() {
        assert_eq!(after(&mut Concurrency::new(None), 6, 1_000), MAX_IN_FLIGHT);
        assert_eq!(after(&mut Concurrency::new(None), 8, 16), 16);
        assert_eq!(after(&mut Concurrency::new(None), 4, 1), 1);
        assert_eq!(after(&mut Concurrency::new(Some(5)), 20, 1_000), 5);
    }

    #[test]
    fn a_higher_setting_is_tried_again_later() {
        let mut concurrency = Concurrency::new(None);
        assert_eq!(after(&mut concurrency, 4, 1), 1);
        assert_eq!(after(&mut concurrency, FIRST_RETRY_AFTER_ROUNDS + 8, 1_000), MAX_IN_FLIGHT);
    }

    #[test]
    fn several_calls_of_a_slow_tool_are_in_flight_unless_the_user_says_otherwise() {
        assert_eq!(Concurrency::new(None).for_slow_tool(), SLOW_TOOL_IN_FLIGHT);
        assert_eq!(Concurrency::new(Some(2)).for_slow_tool(), 2);
    }

    #[test]
    fn rounds_with_few_calls_are_ignored() {
        let mut concurrency = Concurrency::new(None);
        (0..10).for_each(|_| concurrency.record_round(3, Duration::from_millis(1)));
        assert_eq!(concurrency.current(), 1);
    }
}
