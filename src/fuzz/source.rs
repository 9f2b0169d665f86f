//! Sources of choices: one generator, many drivers.
//!
//! Everything random in this module asks a [`Source`] for a number below a bound, and 0 always
//! means the simplest alternative. So a sequence of zeros is the simplest instance, shrinking an
//! instance is shrinking its choice sequence, and a fuzzer's bytes serve as well as a seed.

/// Makes the choices of a generator.
///
/// # Shape
///
/// The choice is below `n`, and 0 means the simplest alternative. `n` is at least 1; an
/// implementation that is given 0 returns 0.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::Source;
///
/// /// Always the last alternative.
/// struct Last;
///
/// impl Source for Last {
///     fn below(&mut self, n: u64) -> u64 {
///         n.saturating_sub(1)
///     }
/// }
///
/// assert_eq!(Last.index(5), 4);
/// assert!(Last.one_in(10));
/// ```
pub trait Source {
    /// Chooses one of `n` alternatives.
    fn below(&mut self, n: u64) -> u64;

    /// Chooses an index below `n`.
    fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// Returns true in one of `n` cases; false is the simpler choice.
    fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == n - 1
    }

    /// Marks the beginning of a value of some kind: the following choices belong to it until its end.
    ///
    /// Values are nested. Only a source that assigns choices to values needs to implement this.
    fn begin(&mut self, _kind: u64) {}

    /// Marks the end of the value that began last.
    fn end(&mut self) {}
}

impl<S: Source + ?Sized> Source for &mut S {
    fn below(&mut self, n: u64) -> u64 {
        S::below(self, n)
    }

    fn index(&mut self, n: usize) -> usize {
        S::index(self, n)
    }

    fn one_in(&mut self, n: u64) -> bool {
        S::one_in(self, n)
    }

    fn begin(&mut self, kind: u64) {
        S::begin(self, kind);
    }

    fn end(&mut self) {
        S::end(self);
    }
}

/// Always the simplest alternative.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simplest;

impl Source for Simplest {
    fn below(&mut self, _n: u64) -> u64 {
        0
    }
}

/// A seeded generator, the same on every platform and with every version of the dependencies:
/// `SplitMix64`, implemented here so that a seed in a report keeps its meaning.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator for `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}

impl Source for Random {
    fn below(&mut self, n: u64) -> u64 {
        // The high half of a 128-bit product is fair enough, and needs no division.
        let product = u128::from(self.next_bits()) * u128::from(n);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

/// The bytes of a coverage-guided fuzzer as choices; after the last byte every choice is the simplest.
#[derive(Debug)]
pub struct Bytes<'a> {
    rest: arbitrary::Unstructured<'a>,
}

impl<'a> Bytes<'a> {
    /// Reads choices from `data`.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: arbitrary::Unstructured::new(data) }
    }

    /// The number of unused bytes.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether every byte has been used, so that all further choices are the simplest ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Appends the bytes that are read as `choice` of `n` alternatives.
    pub fn write(n: u64, choice: u64, bytes: &mut Vec<u8>) {
        let unused = n.saturating_sub(1).leading_zeros() / u8::BITS;
        bytes.extend(choice.to_be_bytes().into_iter().skip(unused as usize));
    }
}

impl Source for Bytes<'_> {
    fn below(&mut self, n: u64) -> u64 {
        if n <= 1 || self.rest.is_empty() {
            return 0;
        }
        self.rest.int_in_range(0..=n - 1).unwrap_or(0)
    }
}

/// A recorded sequence of choices: replays what is recorded, and draws and records the rest.
#[derive(Debug, Clone)]
pub struct ChoiceSequence {
    choices: Vec<u64>,
    next: usize,
    rest: Option<Random>,
}

impl ChoiceSequence {
    /// Replays `choices`, then chooses the simplest.
    #[must_use]
    pub fn replay(choices: Vec<u64>) -> Self {
        Self { choices, next: 0, rest: None }
    }

    /// Records the choices of a generator seeded with `seed`.
    #[must_use]
    pub fn record(seed: u64) -> Self {
        Self { choices: Vec::new(), next: 0, rest: Some(Random::new(seed)) }
    }

    /// The choices made so far, without the unused ones of a replay.
    #[must_use]
    pub fn into_choices(mut self) -> Vec<u64> {
        self.choices.truncate(self.next);
        self.choices
    }
}

impl Source for ChoiceSequence {
    fn below(&mut self, n: u64) -> u64 {
        let top = n.saturating_sub(1);
        let choice = match self.choices.get(self.next) {
            // If the bound is smaller than at the recording, the nearest alternative is chosen.
            Some(&recorded) => recorded.min(top),
            None => self.rest.as_mut().map_or(0, |random| random.below(n)),
        };
        if let Some(slot) = self.choices.get_mut(self.next) {
            *slot = choice;
        } else {
            self.choices.push(choice);
        }
        self.next += 1;
        choice
    }
}

/// Enumerates simple alternatives: the digits of a counter are the choices, the lowest first.
///
/// Gives distinct values in order of simplicity where random choices keep repeating values.
#[derive(Debug, Clone)]
pub(super) struct EnumeratedChoices {
    counter: u64,
}

impl EnumeratedChoices {
    pub(super) fn new(counter: u64) -> Self {
        Self { counter }
    }
}

impl Source for EnumeratedChoices {
    fn below(&mut self, n: u64) -> u64 {
        if n <= 1 {
            return 0;
        }
        let digit = self.counter % n;
        self.counter /= n;
        digit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_means_the_same_choices() {
        let mut random = Random::new(42);
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, [741, 159, 278, 344]);
    }

    #[test]
    fn a_choice_sequence_replays_its_recording_and_then_chooses_the_simplest() {
        let mut first = ChoiceSequence::record(7);
        let drawn: Vec<u64> = (0..8).map(|_| first.below(100)).collect();
        let mut again = ChoiceSequence::replay(first.into_choices());
        let replayed: Vec<u64> = (0..10).map(|_| again.below(100)).collect();
        assert_eq!(replayed[..8], drawn);
        assert_eq!(replayed[8..], [0, 0]);
    }

    #[test]
    fn written_choices_are_read_back() {
        let choices = [(1, 0), (2, 1), (256, 255), (257, 256), (40_000, 31_337), (1 << 40, 1 << 39), (u64::MAX, 7)];
        let mut bytes = Vec::new();
        for (n, choice) in choices {
            Bytes::write(n, choice, &mut bytes);
        }
        let mut read = Bytes::new(&bytes);
        for (n, choice) in choices {
            assert_eq!(read.below(n), choice, "of {n}");
        }
        assert!(read.is_empty());
    }

    #[test]
    fn exhausted_bytes_choose_the_simplest() {
        let mut bytes = Bytes::new(&[200]);
        assert!(bytes.below(256) < 256);
        assert_eq!(bytes.below(1000), 0);
        assert!(bytes.is_empty());
    }
}
