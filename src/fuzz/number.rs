//! Generates numbers within bounds: the closest to zero first, boundaries often, other values sometimes.

use jsonschema::canonical::{IntegerView, NumberView};
use serde_json::{Number, Value};

use super::source::Source;

/// Beyond this magnitude a double cannot represent every integer.
const MAX_EXACT_INTEGER: i128 = 1 << 53;
/// How far [`IntegerSpec::nearest_valid`] searches for a value that no excluded divisor divides.
const MAX_SEARCH_STEPS: u32 = 64;

/// The integers of an arithmetic progression within a range.
#[derive(Debug, Clone)]
pub(super) struct IntegerSpec {
    min: i128,
    max: i128,
    step: i128,
    excluded_divisors: Vec<i128>,
    origin: i128,
    edges: Vec<i128>,
}

impl IntegerSpec {
    /// The integers that `view` accepts, or `None` if there are none within 64 bits.
    pub(super) fn new(view: &IntegerView) -> Option<Self> {
        let min = view.minimum.as_ref().map(|n| bound(n, f64::ceil));
        let max = view.maximum.as_ref().map(|n| bound(n, f64::floor));
        let mut step = 1;
        for divisor in &view.multiple_of {
            step = common_multiple(step, whole_step(divisor)?)?;
        }
        let excluded_divisors = view.not_multiple_of.iter().filter_map(whole_step).collect();
        Self::within(min, max, step, excluded_divisors)
    }

    /// The multiples of `step` from `min` to `max` that no excluded divisor divides.
    fn within(min: Option<i128>, max: Option<i128>, step: i128, excluded_divisors: Vec<i128>) -> Option<Self> {
        let floor = min.unwrap_or(i128::from(i64::MIN)).max(i64::MIN.into());
        let ceiling = max.unwrap_or(i128::from(i64::MAX)).min(u64::MAX.into());
        let min = floor + (-floor).rem_euclid(step);
        let max = ceiling - ceiling.rem_euclid(step);
        if min > max {
            return None;
        }
        let mut whole = Self { min, max, step, excluded_divisors, origin: 0_i128.clamp(min, max), edges: Vec::new() };
        whole.origin = whole.nearest_valid(whole.origin)?;
        whole.edges = whole.find_edges();
        Some(whole)
    }

    fn find_edges(&self) -> Vec<i128> {
        let around = [
            0,
            1,
            -1,
            i128::from(i32::MAX),
            i128::from(i32::MAX) + 1,
            i128::from(i32::MIN),
            MAX_EXACT_INTEGER - 1,
            MAX_EXACT_INTEGER + 1,
            -MAX_EXACT_INTEGER - 1,
            i64::MAX.into(),
            i64::MIN.into(),
        ];
        let mut edges = Vec::new();
        let ends = [self.min, self.max, self.min + self.step, self.max - self.step];
        for value in ends.into_iter().chain(around) {
            let fits = (self.min..=self.max).contains(&value) && value % self.step == 0;
            if fits && !self.is_excluded(value) && !edges.contains(&value) {
                edges.push(value);
            }
        }
        edges
    }

    fn is_excluded(&self, value: i128) -> bool {
        self.excluded_divisors.iter().any(|divisor| value % divisor == 0)
    }

    /// The closest valid integer to `value` that a bounded search finds.
    fn nearest_valid(&self, value: i128) -> Option<i128> {
        let base = value.clamp(self.min, self.max);
        let base = base - base.rem_euclid(self.step);
        for distance in 0..MAX_SEARCH_STEPS {
            let distance = i128::from(distance) * self.step;
            for candidate in [base + distance, base - distance] {
                if (self.min..=self.max).contains(&candidate) && !self.is_excluded(candidate) {
                    return Some(candidate);
                }
            }
        }
        None
    }

    /// Values at and next to the bounds, and at the limits of common integer types.
    pub(super) fn edges(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self.edges.iter().map(|&edge| integer(edge))
    }

    pub(super) fn draw(&self, source: &mut impl Source) -> Value {
        integer(self.pick(source))
    }

    fn pick(&self, source: &mut impl Source) -> i128 {
        let drawn = match source.below(8) {
            0..=3 => self.near_origin(i128::from(source.below(16))),
            4 | 5 if !self.edges.is_empty() => self.edges[source.index(self.edges.len())],
            6 => {
                let bits = source.below(62);
                self.near_origin(source.below(1 << bits).into())
            }
            _ => {
                let places = (self.max - self.min) / self.step;
                let span = u64::try_from(places).unwrap_or(u64::MAX);
                self.min + self.step * i128::from(source.below(span.saturating_add(1)))
            }
        };
        if self.excluded_divisors.is_empty() { drawn } else { self.nearest_valid(drawn).unwrap_or(self.origin) }
    }

    /// The `rank`-th integer counted outwards from the simplest one.
    fn near_origin(&self, rank: i128) -> i128 {
        let below = (self.origin - self.min) / self.step;
        let above = (self.max - self.origin) / self.step;
        let both = below.min(above);
        let offset = if rank <= both * 2 {
            if rank % 2 == 0 { -(rank / 2) } else { rank / 2 + 1 }
        } else if below < above {
            (rank - both).min(above)
        } else {
            -(rank - both).min(below)
        };
        (self.origin + offset * self.step).clamp(self.min, self.max)
    }
}

/// The numbers within an interval, including fractions.
#[derive(Debug, Clone)]
pub(super) struct NumberSpec {
    /// The integers among them, as multiples of the divisor if there is one.
    whole: Option<IntegerSpec>,
    /// The divisor as a fraction of integers.
    unit: Option<(i128, i128)>,
    low: f64,
    high: f64,
    excluded_divisors: Vec<f64>,
    no_integers: bool,
    edges: Vec<f64>,
}

impl NumberSpec {
    /// The numbers that `view` accepts, or `None` if no double is among them.
    pub(super) fn new(view: &NumberView) -> Option<Self> {
        let low = view.minimum.as_ref().and_then(Number::as_f64);
        let high = view.maximum.as_ref().and_then(Number::as_f64);
        let low = low.map_or(-f64::MAX, |low| if view.exclusive_minimum { low.next_up() } else { low });
        let high = high.map_or(f64::MAX, |high| if view.exclusive_maximum { high.next_down() } else { high });
        if low > high {
            return None;
        }
        let mut unit = None;
        for divisor in &view.multiple_of {
            let next = fraction(divisor)?;
            unit = Some(match unit {
                None => next,
                Some(so_far) => common_fraction(so_far, next)?,
            });
        }
        let excluded_divisors = view.not_multiple_of.iter().filter_map(Number::as_f64).collect();
        let whole = whole_range(view, unit, low, high);
        let mut real =
            Self { whole, unit, low, high, excluded_divisors, no_integers: view.excludes_integers, edges: Vec::new() };
        real.edges = real.find_edges();
        (real.whole.is_some() || unit.is_none()).then_some(real)
    }

    fn find_edges(&self) -> Vec<f64> {
        if self.unit.is_some() {
            return Vec::new();
        }
        let mut edges = Vec::new();
        let bounded = [self.low, self.high].map(|bound| bound.abs() < f64::MAX);
        let half = self.low / 2.0 + self.high / 2.0;
        let around = [0.0, -0.0, 0.5, -0.5, 0.1, 1e-9, 5e-324, 1e15, 1e21, 1e300, -1e300];
        let ends = [
            (bounded[0], self.low),
            (bounded[1], self.high),
            (bounded[0], self.low.next_up()),
            (bounded[1], self.high.next_down()),
            (bounded[0] && bounded[1], half),
        ];
        let ends = ends.into_iter().filter_map(|(applies, value)| applies.then_some(value));
        for value in ends.chain(around) {
            let known = |seen: &f64| seen.to_bits() == value.to_bits();
            if self.admits(value) && !edges.iter().any(known) {
                edges.push(value);
            }
        }
        edges
    }

    fn admits(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
            && !(self.no_integers && value.fract() == 0.0)
            && !self.excluded_divisors.iter().any(|divisor| value % divisor == 0.0)
    }

    /// Values at and next to the bounds, tiny and huge ones.
    pub(super) fn edges(&self) -> Vec<Value> {
        let whole = self.whole.iter().flat_map(|whole| &whole.edges);
        let mut edges: Vec<Value> = whole.map(|&edge| self.in_units(edge)).collect();
        edges.extend(self.edges.iter().map(|&edge| real(edge)));
        edges
    }

    pub(super) fn draw(&self, source: &mut impl Source) -> Option<Value> {
        let mode = source.below(8);
        match &self.whole {
            Some(whole) if mode < 4 || self.unit.is_some() => {
                let value = self.in_units(whole.pick(source));
                if value.as_f64().is_some_and(|value| self.admits(value)) {
                    return Some(value);
                }
            }
            _ => {}
        }
        if self.unit.is_none() && mode < 6 && !self.edges.is_empty() {
            return Some(real(self.edges[source.index(self.edges.len())]));
        }
        let low = self.low.max(-1e6_f64.max(-self.high));
        let high = self.high.min(1e6_f64.max(self.low));
        for _ in 0..8 {
            // Binary fractions of the interval, so that most results are short decimals.
            let parts = 1_u32 << source.below(20);
            let part = u32::try_from(source.below(u64::from(parts) + 1)).unwrap_or(0);
            let share = f64::from(part) / f64::from(parts);
            let value = low + (high - low) * share;
            if self.admits(value) {
                return Some(real(value));
            }
        }
        self.edges.first().map(|&edge| real(edge)).or_else(|| Some(self.in_units(self.whole.as_ref()?.origin)))
    }

    fn in_units(&self, count: i128) -> Value {
        match self.unit {
            None | Some((1, 1)) => integer(count),
            Some((over, under)) => match count.checked_mul(over) {
                Some(scaled) if scaled % under == 0 => integer(scaled / under),
                // A single division rounds to the double closest to the decimal.
                Some(scaled) => real(as_double(scaled) / as_double(under)),
                None => integer(0),
            },
        }
    }
}

fn whole_range(view: &NumberView, unit: Option<(i128, i128)>, low: f64, high: f64) -> Option<IntegerSpec> {
    if let Some((over, under)) = unit {
        let scale = as_double(under) / as_double(over);
        let min = view.minimum.as_ref().map(|_| to_i128((low * scale).ceil()));
        let max = view.maximum.as_ref().map(|_| to_i128((high * scale).floor()));
        return IntegerSpec::within(min, max, 1, Vec::new());
    }
    if view.excludes_integers {
        return None;
    }
    let min = view.minimum.as_ref().map(|n| {
        let bound = bound(n, f64::ceil);
        let excluded = view.exclusive_minimum && Some(as_double(bound)) == n.as_f64();
        if excluded { bound + 1 } else { bound }
    });
    let max = view.maximum.as_ref().map(|n| {
        let bound = bound(n, f64::floor);
        let excluded = view.exclusive_maximum && Some(as_double(bound)) == n.as_f64();
        if excluded { bound - 1 } else { bound }
    });
    let excluded_divisors = view.not_multiple_of.iter().filter_map(whole_step).collect();
    IntegerSpec::within(min, max, 1, excluded_divisors)
}

/// An integer as a JSON number; a double if it exceeds 64 bits.
fn integer(value: i128) -> Value {
    i64::try_from(value)
        .map(Value::from)
        .or_else(|_| u64::try_from(value).map(Value::from))
        .unwrap_or_else(|_| real(as_double(value)))
}

/// A double as a JSON number, written as an integer where that is exact.
fn real(value: f64) -> Value {
    let plain = value.fract() == 0.0 && value.abs() < 9e15 && value.is_sign_positive();
    if plain || (value.fract() == 0.0 && value < 0.0 && value > -9e15) {
        return integer(to_i128(value));
    }
    Number::from_f64(value).map_or(Value::from(0), Value::Number)
}

#[expect(clippy::cast_precision_loss, reason = "the closest double is wanted")]
fn as_double(value: i128) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and every caller clamps to 64 bits afterwards"
)]
fn to_i128(value: f64) -> i128 {
    value as i128
}

fn bound(number: &Number, round: fn(f64) -> f64) -> i128 {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
        .or_else(|| number.as_f64().map(|value| to_i128(round(value))))
        .unwrap_or(0)
}

/// The smallest integer that `divisor` divides, if it is reasonably small.
fn whole_step(divisor: &Number) -> Option<i128> {
    fraction(divisor).map(|(over, _)| over)
}

/// A positive decimal as a reduced fraction, if it has at most 18 decimal places.
fn fraction(number: &Number) -> Option<(i128, i128)> {
    if let Some(whole) = number.as_i64() {
        return (whole > 0).then_some((whole.into(), 1));
    }
    let value = number.as_f64()?;
    if !(value > 0.0 && value < 1e18) {
        return None;
    }
    let mut under = 1_i128;
    for _ in 0..=18 {
        let scaled = (value * as_double(under)).round();
        #[expect(clippy::float_cmp, reason = "the fraction is right if dividing gives exactly the same double")]
        let exact = scaled / as_double(under) == value;
        if exact && scaled >= 1.0 {
            let over = to_i128(scaled);
            let shared = common_divisor(over, under);
            return Some((over / shared, under / shared));
        }
        under *= 10;
    }
    None
}

fn common_fraction(left: (i128, i128), right: (i128, i128)) -> Option<(i128, i128)> {
    let over = common_multiple(left.0, right.0)?;
    Some((over, common_divisor(left.1, right.1)))
}

fn common_multiple(left: i128, right: i128) -> Option<i128> {
    (left / common_divisor(left, right)).checked_mul(right).filter(|multiple| *multiple <= i128::from(i64::MAX))
}

fn common_divisor(mut left: i128, mut right: i128) -> i128 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::source::{Random, Simplest};

    fn whole(min: Option<i64>, max: Option<i64>, step: i64) -> Option<IntegerSpec> {
        IntegerSpec::new(&IntegerView {
            minimum: min.map(Number::from),
            maximum: max.map(Number::from),
            multiple_of: vec![Number::from(step)],
            not_multiple_of: Vec::new(),
        })
    }

    #[test]
    fn the_simplest_integer_is_the_closest_to_zero() {
        for (min, max, step, nearest) in
            [(None, None, 1, 0), (Some(3), None, 1, 3), (None, Some(-3), 1, -3), (Some(7), Some(20), 5, 10)]
        {
            let whole = whole(min, max, step).expect("not empty");
            assert_eq!(whole.draw(&mut Simplest), Value::from(nearest));
        }
        assert!(whole(Some(11), Some(14), 5).is_none());
    }

    #[test]
    fn every_generated_integer_is_within_bounds() {
        let whole = whole(Some(-7), Some(1000), 7).expect("not empty");
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            let value = whole.draw(&mut random).as_i64().expect("an integer");
            assert!((-7..=1000).contains(&value) && value % 7 == 0, "{value}");
        }
    }

    #[test]
    fn multiples_of_a_decimal_are_exact() {
        let cent = NumberSpec::new(&NumberView {
            minimum: Some(Number::from(0)),
            exclusive_minimum: true,
            maximum: None,
            exclusive_maximum: false,
            multiple_of: vec![Number::from_f64(0.01).expect("finite")],
            not_multiple_of: Vec::new(),
            excludes_integers: false,
        })
        .expect("not empty");
        assert_eq!(cent.draw(&mut Simplest), Some(Value::from(0.01)));
        assert_eq!(cent.in_units(7), Value::from(0.07));
    }
}
