//! Small checks of one argument each, in the words that a caller is told.

use serde_json::Value;

use crate::reference::message::{Object, quoted};

/// What was found wrong first.
pub(super) type Check = Result<(), String>;

/// Every required key is there.
pub(super) fn has(arguments: &Object, keys: &[&str]) -> Check {
    match keys.iter().find(|key| !arguments.contains_key(**key)) {
        Some(key) => Err(format!("{key} is missing")),
        None => Ok(()),
    }
}

/// No key is there but these.
pub(super) fn has_only(arguments: &Object, keys: &[&str]) -> Check {
    match arguments.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("there is no argument {:?}", quoted(key))),
        None => Ok(()),
    }
}

/// Checks an argument if it is there.
pub(super) fn optional(arguments: &Object, key: &str, check: impl FnOnce(&Value) -> Check) -> Check {
    arguments.get(key).map_or(Ok(()), |value| check(value).map_err(|told| format!("{key} {told}")))
}

/// A string of so many characters.
pub(super) fn text(value: &Value, least: usize, most: usize) -> Check {
    let Value::String(text) = value else { return Err("must be a string".to_owned()) };
    if (least..=most).contains(&text.chars().count()) {
        return Ok(());
    }
    Err(format!("must have {least} to {most} characters"))
}

/// One of some words.
pub(super) fn word(value: &Value, words: &[&str]) -> Check {
    match value.as_str() {
        Some(text) if words.contains(&text) => Ok(()),
        _ => Err(format!("must be one of {}", words.join(", "))),
    }
}

/// A number.
pub(super) fn number(value: &Value) -> Check {
    if value.is_number() { Ok(()) } else { Err("must be a number".to_owned()) }
}

/// A number without a fraction, however it is spelled.
pub(super) fn whole(value: &Value) -> Check {
    let spelled_plainly = value.is_i64() || value.is_u64();
    if spelled_plainly || value.as_f64().is_some_and(|number| number.fract() == 0.0) {
        return Ok(());
    }
    Err("must be an integer".to_owned())
}

/// An integer of a range.
pub(super) fn whole_within(value: &Value, least: u32, most: u32) -> Check {
    whole(value)?;
    let number = value.as_f64().unwrap_or(f64::MAX);
    if (f64::from(least)..=f64::from(most)).contains(&number) {
        return Ok(());
    }
    Err(format!("must be from {least} to {most}"))
}

/// True or false.
pub(super) fn truth(value: &Value) -> Check {
    if value.is_boolean() { Ok(()) } else { Err("must be true or false".to_owned()) }
}

/// An object, whose members are checked further.
pub(super) fn object(value: &Value) -> Result<&Object, String> {
    value.as_object().ok_or_else(|| "must be an object".to_owned())
}

/// An array of at most so many items, each of which is checked.
pub(super) fn list(value: &Value, most: usize, check: impl Fn(&Value) -> Check) -> Check {
    let items = value.as_array().ok_or("must be an array")?;
    if items.len() > most {
        return Err(format!("must have at most {most} items"));
    }
    items.iter().try_for_each(|item| check(item).map_err(|told| format!("has an item that {told}")))
}

/// A calendar date such as 2024-02-29.
pub(super) fn date(value: &Value) -> Check {
    let is_date = |text: &str| -> Option<bool> {
        let bytes = text.as_bytes();
        let shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return Some(false);
        }
        let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
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
        Some(text) if is_date(text) == Some(true) => Ok(()),
        Some(_) => Err("must be a date such as 2024-02-29".to_owned()),
        None => Err("must be a string".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for good in ["2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01"] {
            assert_eq!(date(&json!(good)), Ok(()), "{good}");
        }
        for bad in ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-1-1", "2024-01-01T", "２024-01-1", ""]
        {
            assert!(date(&json!(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_without_a_fraction_is_an_integer_however_it_is_spelled() {
        for good in [json!(1), json!(1.0), json!(-0.0), json!(1e300), json!(u64::MAX)] {
            assert_eq!(whole(&good), Ok(()), "{good}");
        }
        assert!(whole(&json!(1.5)).is_err() && whole(&json!("1")).is_err());
        assert!(whole_within(&json!(100.0), 1, 100).is_ok() && whole_within(&json!(1e300), 1, 100).is_err());
    }
}
