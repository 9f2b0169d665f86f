//! The beginning of long strings: what is long is mostly the text of a few of them, and the rest of a message can be
//! judged without it.

use serde_json::Value;

/// The longest string of a shortened message, in bytes. A multiple of 4, so that Base64 stays Base64.
pub(super) const MAX_SHORTENED_STRING_BYTES: usize = 64 << 10;

/// The length of the beginning of a string that a shortened message keeps.
fn kept_bytes(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default()
}

/// How many bytes are beyond the longest strings of a shortened message.
pub(super) fn long_string_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() - kept_bytes(text, MAX_SHORTENED_STRING_BYTES),
        Value::Array(items) => items.iter().map(long_string_bytes).sum(),
        Value::Object(members) => members.values().map(long_string_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// A copy with the beginning of long strings, and the number of bytes that were left out.
pub(super) fn with_short_strings(value: &Value) -> (Value, usize) {
    match value {
        Value::String(text) => {
            let kept = kept_bytes(text, MAX_SHORTENED_STRING_BYTES);
            (Value::String(text[..kept].to_owned()), text.len() - kept)
        }
        Value::Array(items) => {
            let (items, left_out): (Vec<_>, Vec<_>) = items.iter().map(with_short_strings).unzip();
            (Value::Array(items), left_out.iter().sum())
        }
        Value::Object(members) => {
            let mut left_out = 0;
            let mut short = |(name, member): (&String, &Value)| {
                let (member, length) = with_short_strings(member);
                left_out += length;
                (name.clone(), member)
            };
            let members = members.iter().map(&mut short).collect();
            (Value::Object(members), left_out)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => (value.clone(), 0),
    }
}

/// Leaves out all but the beginning of strings, of this many bytes at most; returns the number of bytes that were left out.
pub(super) fn shorten_strings(value: &mut Value, most: usize) -> usize {
    match value {
        Value::String(text) => {
            let kept = kept_bytes(text, most);
            let left_out = text.len() - kept;
            if left_out > 0 {
                // A copy leaves a gap that the next long string fits into; the beginning in its old place would not.
                *text = text[..kept].to_owned();
            }
            left_out
        }
        Value::Array(items) => items.iter_mut().map(|item| shorten_strings(item, most)).sum(),
        Value::Object(members) => members.values_mut().map(|member| shorten_strings(member, most)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
