//! How many calls are under way at once: as many as help.

use std::time::Duration;

/// The most calls that are under way at once.
const MOST: usize = 256;
/// How many rounds in a row may be no faster before the fastest is gone back to: one may be slow by chance.
const SLOWER: usize = 2;
/// After how many rounds more are tried again, at first; a server does not change, but a machine does.
const AGAIN: usize = 8;
/// After how many at most, as trying again costs two rounds.
const SELDOM: usize = 128;

/// How many calls are under way at once, found out by trying more for as long as that is faster.
///
/// A server that serves one call after the other is not punished: the fewest that are as fast are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    now: usize,
    /// How many were under way in the fastest round since it was last begun to try, and how many calls a second that
    /// made.
    best: (usize, f64),
    state: State,
    /// How many rounds it stays as it is, the next time that nothing is gained.
    pause: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// It is what the user said.
    Fixed,
    /// More and more are tried; so many rounds in a row were no faster.
    Trying(usize),
    /// It stays as it is for so many rounds.
    Settled(usize),
}

impl Pace {
    /// As many as the user said, or one to begin with.
    pub(super) fn new(fixed: Option<usize>) -> Self {
        let now = fixed.unwrap_or(1).max(1);
        let state = if fixed.is_some() { State::Fixed } else { State::Trying(0) };
        Self { now, best: (now, 0.0), state, pause: AGAIN }
    }

    /// How many calls are to be under way at once.
    pub(super) fn now(self) -> usize {
        self.now
    }

    /// Takes note of how long a round of calls took, of which that many were under way.
    pub(super) fn took(&mut self, calls: usize, took: Duration) {
        // With fewer, the beginning and the end of the round are most of it.
        if calls < self.now * 4 {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a round has few calls")]
        let rate = calls as f64 / took.as_secs_f64().max(1e-9);
        match self.state {
            State::Fixed => {}
            State::Settled(0) => {
                self.best = (self.now, rate);
                self.try_more(2);
            }
            State::Settled(rounds) => self.state = State::Settled(rounds - 1),
            State::Trying(_) if rate > self.best.1 * 1.1 => {
                // Where that was much faster, far more are likely to be faster still.
                let by = if rate > self.best.1 * 1.6 { 4 } else { 2 };
                self.best = (self.now, rate);
                self.try_more(by);
            }
            State::Trying(slower) if slower + 1 >= SLOWER || self.now >= MOST => self.settle(),
            State::Trying(slower) => {
                self.now = (self.now * 2).min(MOST);
                self.state = State::Trying(slower + 1);
            }
        }
    }

    fn try_more(&mut self, by: usize) {
        if self.now >= MOST {
            self.settle();
        } else {
            self.now = (self.now * by).min(MOST);
            self.state = State::Trying(0);
        }
    }

    fn settle(&mut self) {
        self.now = self.best.0;
        self.state = State::Settled(self.pause);
        self.pause = (self.pause * 2).min(SELDOM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many are under way after so many rounds of a server that serves so many calls at a time, one a millisecond.
    fn after(pace: &mut Pace, rounds: usize, at_once: usize) -> usize {
        for _ in 0..rounds {
            let millis = 1_024 / pace.now().min(at_once);
            pace.took(1_024, Duration::from_millis(millis as u64));
        }
        pace.now()
    }

    #[test]
    fn as_many_as_help_are_found_soon() {
        assert_eq!(after(&mut Pace::new(None), 6, 1_000), MOST);
        assert_eq!(after(&mut Pace::new(None), 8, 16), 16);
        assert_eq!(after(&mut Pace::new(None), 4, 1), 1);
        assert_eq!(after(&mut Pace::new(Some(5)), 20, 1_000), 5);
    }

    #[test]
    fn what_seemed_slow_by_chance_is_tried_again() {
        let mut pace = Pace::new(None);
        assert_eq!(after(&mut pace, 4, 1), 1);
        assert_eq!(after(&mut pace, AGAIN + 8, 1_000), MOST);
    }

    #[test]
    fn few_calls_tell_nothing() {
        let mut pace = Pace::new(None);
        (0..10).for_each(|_| pace.took(3, Duration::from_millis(1)));
        assert_eq!(pace.now(), 1);
    }
}
