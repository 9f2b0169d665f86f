//! Checks of single arguments, with messages for the caller.

use serde_json::Value;

use crate::reference::message::{Object, quoted};

/// The first problem.
pub(super) type Check = Result<(), String>;

/// Checks that all required keys exist.
pub(super) fn require(arguments: &Object, keys: &[&str]) -> Check {
    match keys.iter().find(|key| !arguments.contains_key(**key)) {
        Some(key) => Err(format!("{key} is missing")),
        None => Ok(()),
    }
}

/// Checks that no other keys exist.
pub(super) fn allow_only(arguments: &Object, keys: &[&str]) -> Check {
    match arguments.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown argument {:?}", quoted(key))),
        None => Ok(()),
    }
}

/// Checks an argument if it exists.
pub(super) fn optional(arguments: &Object, key: &str, check: impl FnOnce(&Value) -> Check) -> Check {
    arguments.get(key).map_or(Ok(()), |value| check(value).map_err(|error| format!("{key} {error}")))
}

/// Checks a string and its length in characters.
pub(super) fn string(value: &Value, min: usize, max: usize) -> Check {
    let Value::String(string) = value else { return Err("must be a string".to_owned()) };
    if (min..=max).contains(&string.chars().count()) {
        return Ok(());
    }
    Err(format!("must have {min} to {max} characters"))
}

/// Checks a string enumeration.
pub(super) fn one_of(value: &Value, values: &[&str]) -> Check {
    match value.as_str() {
        Some(string) if values.contains(&string) => Ok(()),
        _ => Err(format!("must be one of {}", values.join(", "))),
    }
}

/// Checks a number.
pub(super) fn number(value: &Value) -> Check {
    if value.is_number() { Ok(()) } else { Err("must be a number".to_owned()) }
}

/// Checks a number without a fractional part, in any notation.
pub(super) fn integer(value: &Value) -> Check {
    let spelled_plainly = value.is_i64() || value.is_u64();
    if spelled_plainly || value.as_f64().is_some_and(|number| number.fract() == 0.0) {
        return Ok(());
    }
    Err("must be an integer".to_owned())
}

/// Checks an integer and its range.
pub(super) fn integer_in_range(value: &Value, min: u32, max: u32) -> Check {
    integer(value)?;
    let number = value.as_f64().unwrap_or(f64::MAX);
    if (f64::from(min)..=f64::from(max)).contains(&number) {
        return Ok(());
    }
    Err(format!("must be from {min} to {max}"))
}

/// Checks a boolean.
pub(super) fn boolean(value: &Value) -> Check {
    if value.is_boolean() { Ok(()) } else { Err("must be true or false".to_owned()) }
}

/// Checks an object, and returns it for further checks.
pub(super) fn object(value: &Value) -> Result<&Object, String> {
    value.as_object().ok_or_else(|| "must be an object".to_owned())
}

/// Checks an array, its length and its items.
pub(super) fn array(value: &Value, max: usize, check: impl Fn(&Value) -> Check) -> Check {
    let items = value.as_array().ok_or("must be an array")?;
    if items.len() > max {
        return Err(format!("must have at most {max} items"));
    }
    items.iter().try_for_each(|item| check(item).map_err(|error| format!("has an item that {error}")))
}

/// Checks a calendar date such as 2024-02-29.
pub(super) fn date(value: &Value) -> Check {
    let is_date = |string: &str| -> Option<bool> {
        let bytes = string.as_bytes();
        let shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return Some(false);
        }
        let part = |range: std::ops::Range<usize>| string.get(range)?.parse::<u32>().ok();
        let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        Some((1..=days).contains(&day))
    };
    match value.as_str() {
        Some(string) if is_date(string) == Some(true) => Ok(()),
        Some(_) => Err("must be a date such as 2024-02-29".to_owned()),
        None => Err("must be a string".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_dates_of_the_calendar_are_valid() {
        for good in ["2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01"] {
            assert_eq!(date(&json!(good)), Ok(()), "{good}");
        }
        for bad in ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-1-1", "2024-01-01T", "２024-01-1", ""]
        {
            assert!(date(&json!(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_without_a_fraction_is_an_integer_in_any_notation() {
        for good in [json!(1), json!(1.0), json!(-0.0), json!(1e300), json!(u64::MAX)] {
            assert_eq!(integer(&good), Ok(()), "{good}");
        }
        assert!(integer(&json!(1.5)).is_err() && integer(&json!("1")).is_err());
        assert!(integer_in_range(&json!(100.0), 1, 100).is_ok() && integer_in_range(&json!(1e300), 1, 100).is_err());
    }
}
