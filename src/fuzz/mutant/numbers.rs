//! Variations of numbers: bounds, sizes, representations and multiples.

use serde_json::{Map, Number, Value};

use super::edit::{Edits, edit};
use super::site::types_of;

/// Factors for `multipleOf`: products with these are rounded by doubles more often than not.
const FACTORS: [i64; 12] = [1, 3, 7, 29, 57, 110, 115, 435, 1_999, 13_667, 36_057, -3];
/// Integers at which representations end, if a schema allows them. Numbers that a double does not represent exactly are
/// left out, since RFC 8259 lets an implementation limit what it reads to these.
const LARGE: [(&str, i64); 5] = [
    ("integer-of-32-bits", 1 << 31),
    ("integer-of-32-bits", -(1 << 31) - 1),
    ("integer-of-32-bits-without-sign", 1 << 32),
    ("integer-of-53-bits", (1 << 53) - 1),
    ("integer-of-53-bits", -(1 << 53) + 1),
];

/// The edits of a number, by keyword.
pub(super) fn edits(keywords: &Map<String, Value>, current: &Value) -> Vec<Edits> {
    let types = types_of(keywords);
    let is_numeric = current.is_number();
    if !is_numeric && !types.contains(&"integer") && !types.contains(&"number") {
        return Vec::new();
    }
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_number);
    let mut edits = Vec::new();
    edits.extend(bound("minimum").map(minimum));
    edits.extend(bound("maximum").map(maximum));
    edits.extend(bound("exclusiveMinimum").map(exclusive_minimum));
    edits.extend(bound("exclusiveMaximum").map(exclusive_maximum));
    let factor = bound("multipleOf").and_then(Number::as_i64).filter(|factor| *factor > 1);
    if let Some(factor) = factor {
        // What is no multiple is rejected whatever the bound.
        let is_multiple = |value: &Value| value.as_i64().is_some_and(|value| value % factor == 0);
        for list in &mut edits {
            list.retain(|edit: &super::edit::Edit| is_multiple(&edit.value));
        }
        edits.push(multiples_beyond(bound("minimum"), bound("maximum"), factor));
    }
    edits.extend(bound("multipleOf").map(multiples));
    if types == ["integer"] {
        // Only a validator that also takes fractions for integers would accept a fraction beyond a bound.
        let is_whole = |value: &Value| value.as_f64().is_none_or(|number| number.fract() == 0.0);
        let is_rounded = |mutant: &str| ["minimum-rounded", "maximum-rounded"].contains(&mutant);
        let can_tell = |edit: &super::edit::Edit| !is_rounded(edit.mutant) || is_whole(&edit.value);
        for list in &mut edits {
            list.retain(can_tell);
        }
    }
    edits.push(representations(current, keywords.contains_key("multipleOf")));
    let nearest = |value: i64| factor.map_or(value, |factor| value - value % factor);
    edits.push(LARGE.iter().map(|(name, value)| edit(name, nearest(*value))).collect());
    edits
}

/// The multiples next to the bounds, outside of them.
fn multiples_beyond(minimum: Option<&Number>, maximum: Option<&Number>, factor: i64) -> Edits {
    let below =
        minimum.and_then(Number::as_i64).map(|bound| bound.saturating_sub(1).div_euclid(factor).saturating_mul(factor));
    let above = maximum.and_then(Number::as_i64).and_then(|bound| (bound.div_euclid(factor) + 1).checked_mul(factor));
    let mut edits: Edits = below.into_iter().map(|value| edit("minimum-ignored", value)).collect();
    edits.extend(above.into_iter().map(|value| edit("maximum-ignored", value)));
    edits
}

fn minimum(bound: &Number) -> Edits {
    let mut edits = vec![];
    edits.extend(plus(bound, 0).map(|value| edit("minimum-exclusive", value)));
    edits.extend(plus(bound, -1).map(|value| edit("minimum-one-too-low", value)));
    edits.extend(just_below(bound).map(|value| edit("minimum-rounded", value)));
    edits.push(edit("bounds-skip-zero", 0));
    edits.extend(plus(bound, 1).map(|value| edit("minimum-one-too-high", value)));
    edits.extend(plus(bound, -1_000_000_007).map(|value| edit("minimum-ignored", value)));
    edits.push(edit("minimum-of-32-bits", -(1_i64 << 32) + 1));
    edits.push(edit("negative-zero-rejected", -0.0));
    edits
}

fn maximum(bound: &Number) -> Edits {
    let mut edits = vec![];
    edits.extend(plus(bound, 0).map(|value| edit("maximum-exclusive", value)));
    edits.extend(plus(bound, 1).map(|value| edit("maximum-one-too-high", value)));
    edits.extend(just_above(bound).map(|value| edit("maximum-rounded", value)));
    edits.extend(plus(bound, -1).map(|value| edit("maximum-one-too-low", value)));
    edits.extend(plus(bound, 1_000_000_007).map(|value| edit("maximum-ignored", value)));
    edits.push(edit("maximum-of-32-bits", (1_i64 << 32) + 1));
    edits.push(edit("bounds-skip-zero", 0));
    edits
}

fn exclusive_minimum(bound: &Number) -> Edits {
    let mut edits = vec![];
    edits.extend(plus(bound, 0).map(|value| edit("exclusive-minimum-inclusive", value)));
    edits.extend(just_above(bound).map(|value| edit("exclusive-minimum-too-high", value)));
    edits.extend(plus(bound, 1).map(|value| edit("exclusive-minimum-too-high", value)));
    edits.extend(just_below(bound).map(|value| edit("minimum-rounded", value)));
    edits.extend(plus(bound, -1).map(|value| edit("exclusive-minimum-ignored", value)));
    edits
}

fn exclusive_maximum(bound: &Number) -> Edits {
    let mut edits = vec![];
    edits.extend(plus(bound, 0).map(|value| edit("exclusive-maximum-inclusive", value)));
    edits.extend(just_below(bound).map(|value| edit("exclusive-maximum-too-low", value)));
    edits.extend(plus(bound, -1).map(|value| edit("exclusive-maximum-too-low", value)));
    edits.extend(just_above(bound).map(|value| edit("maximum-rounded", value)));
    edits.extend(plus(bound, 1).map(|value| edit("exclusive-maximum-ignored", value)));
    edits
}

fn multiples(factor: &Number) -> Edits {
    let mut edits = vec![];
    if let Some(factor) = factor.as_i64() {
        edits.push(edit("multiple-of-ignored", factor.saturating_add(1)));
        edits.push(edit("multiple-of-ignored", factor.saturating_mul(2).saturating_sub(1)));
    }
    let size = factor.as_f64().unwrap_or(1.0);
    edits.push(edit("multiple-of-truncated", size * 1.5));
    edits.push(edit("multiple-of-truncated", size + 0.1));
    edits.push(edit("multiple-of-truncated", size * 0.5));
    edits.extend(FACTORS.iter().filter_map(|by| Some(edit("multiple-of-by-doubles", times(factor, *by)?))));
    edits.push(edit("multiple-of-rejects-zero", 0));
    edits
}

/// The same number in another form. Whether such a number is a multiple of
/// another one depends on how it is read, so that nothing is said of it `with_multiples`.
fn representations(current: &Value, with_multiples: bool) -> Edits {
    let mut edits = vec![];
    if let Some(whole) = current.as_i64().filter(|whole| whole.unsigned_abs() < 1 << 53) {
        #[expect(clippy::cast_precision_loss, reason = "it is less than 2^53")]
        let real = whole as f64;
        edits.push(edit("integral-fraction-rejected", real));
        if !with_multiples {
            edits.push(edit("fraction-truncated", real + 0.5));
            edits.push(edit("fraction-rounded", real + 0.000_1));
        }
    }
    if !with_multiples {
        edits.push(edit("number-is-integer", 0.5));
        edits.push(edit("exponent-rejected", 1e-7));
        // An integer too, as it is written with an exponent.
        edits.push(edit("exponent-rejected", 1e16));
    }
    edits.push(edit(
        "negative-rejected",
        if with_multiples { current.as_i64().and_then(i64::checked_abs).map_or(-1, |size| -size) } else { -1 },
    ));
    edits.push(edit("negative-zero-rejected", -0.0));
    edits.push(edit("zero-is-empty", 0));
    edits
}

/// An integer, as far as JSON numbers are read exactly.
fn integer(value: i128) -> Option<Value> {
    let negative = i64::try_from(value).ok().map(Value::from);
    negative.or_else(|| u64::try_from(value).ok().map(Value::from))
}

/// A number plus an integer.
pub(super) fn plus(number: &Number, delta: i64) -> Option<Value> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    if let Some(whole) = whole {
        return integer(whole + i128::from(delta));
    }
    let delta = i32::try_from(delta).map(f64::from).ok()?;
    Number::from_f64(number.as_f64()? + delta).map(Value::Number)
}

/// A number slightly below another one.
fn just_below(number: &Number) -> Option<Value> {
    let number = number.as_f64()?;
    Number::from_f64(number - (number.abs() * 1e-9).max(1e-6)).map(Value::Number)
}

/// A number slightly above another one.
fn just_above(number: &Number) -> Option<Value> {
    let number = number.as_f64()?;
    Number::from_f64(number + (number.abs() * 1e-9).max(1e-6)).map(Value::Number)
}

/// A product as a person writes it: 19.99 for 1999 times 0.01.
fn times(factor: &Number, by: i64) -> Option<Value> {
    if let Some(factor) = factor.as_i64() {
        return factor.checked_mul(by).map(Value::from);
    }
    let text = factor.to_string();
    let (whole, fraction) = text.split_once('.')?;
    let scale = u32::try_from(fraction.len()).ok()?;
    let digits: i64 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(by)?;
    let divisor = 10_i64.checked_pow(scale)?;
    let sign = if product < 0 { "-" } else { "" };
    let (whole, rest) =
        (product.unsigned_abs() / divisor.unsigned_abs(), product.unsigned_abs() % divisor.unsigned_abs());
    let width = fraction.len();
    let written: f64 = format!("{sign}{whole}.{rest:0width$}").parse().ok()?;
    Number::from_f64(written).map(Value::Number)
}
