//! Messages of a server without the parts that vary, so that messages with the same cause are equal.

use std::borrow::Cow;

use serde_json::Value;

use super::call::Arguments;
use crate::text::{first_chars, shortened};

/// The greatest length of a skeleton, in bytes.
const MAX_SKELETON_BYTES: usize = 160;
/// Shorter strings of the arguments are not searched for.
const MIN_STRING_BYTES: usize = 3;

/// A message without the parts that vary from call to call: strings of the arguments, quotations and numbers.
#[must_use]
pub(crate) fn skeleton(message: &str, arguments: &Arguments) -> String {
    const MAX_MESSAGE_CHARS: usize = 2_000;
    let mut text = Cow::Borrowed(first_chars(message, MAX_MESSAGE_CHARS));
    if let Arguments::Json(value) = arguments {
        let mut sent = Vec::new();
        strings(value, &mut sent);
        sent.retain(|string| string.len() <= text.len());
        sent.sort_by_key(|string| std::cmp::Reverse(string.len()));
        for string in sent {
            if text.contains(string) {
                text = Cow::Owned(text.replace(string, "*"));
            }
        }
    }
    let mut skeleton = String::with_capacity(text.len().min(MAX_SKELETON_BYTES) + 4);
    let mut quote: Option<char> = None;
    for c in text.chars() {
        if skeleton.len() >= MAX_SKELETON_BYTES {
            break;
        }
        match quote {
            Some(end) if c == end => {
                quote = None;
                skeleton.push('…');
                skeleton.push(c);
            }
            Some(_) => {}
            None if matches!(c, '"' | '`') => {
                quote = Some(c);
                skeleton.push(c);
            }
            None if c.is_ascii_digit() => {
                if !skeleton.ends_with('#') {
                    skeleton.push('#');
                }
            }
            None if c.is_whitespace() || c.is_control() => {
                if !skeleton.ends_with(' ') {
                    skeleton.push(' ');
                }
            }
            None if !c.is_ascii() || c == '*' => {
                if !skeleton.ends_with('*') {
                    skeleton.push('*');
                }
            }
            None => skeleton.push(c),
        }
    }
    skeleton.trim().to_owned()
}

/// The strings in a value, without the names of members.
pub(super) fn strings<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    const MAX_STRINGS: usize = 64;
    /// Enough for most values, so that neither list grows.
    const USUAL_STRINGS: usize = 8;
    found.reserve(USUAL_STRINGS);
    let mut pending = Vec::with_capacity(USUAL_STRINGS);
    pending.push(value);
    while let Some(value) = pending.pop() {
        if found.len() >= MAX_STRINGS {
            return;
        }
        match value {
            Value::String(text) if text.len() >= MIN_STRING_BYTES => found.push(text),
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
}

/// The beginning of a text, as one line.
#[must_use]
pub(crate) fn excerpt(text: &str, max_chars: usize) -> String {
    shortened(text, max_chars).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_that_vary_are_removed() {
        let first = skeleton("no city \"Ulm\" in row 17: Ulm-Mitte", &Arguments::Json(json!({"city": "Ulm-Mitte"})));
        let second = skeleton("no city \"Bern\" in row 4: Bern-Ost", &Arguments::Json(json!({"city": "Bern-Ost"})));
        assert_eq!(first, second);
        assert_eq!(first, "no city \"…\" in row #: *");
    }
}
