//! What a transcript keeps of a message in the record of its HTTP response, next to the message itself.

use serde_json::Value;

/// The largest member of a message, in bytes of text, that is kept in the summary of its HTTP response.
const MAX_SUMMARY_STRING_BYTES: usize = 1_000;

/// The small members of a message, which show its kind and the request it belongs to: the message itself is
/// recorded separately.
#[must_use]
pub(crate) fn summarize(message: &Value) -> Value {
    let is_small = |value: &Value| match value {
        Value::String(text) => text.len() <= MAX_SUMMARY_STRING_BYTES,
        Value::Array(_) | Value::Object(_) => has_few_parts(value, &mut 40),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    match message {
        Value::Object(members) => {
            let kept = |(name, value): (&String, &Value)| {
                let value = if is_small(value) { value.clone() } else { small_members(value, &is_small) };
                (name.clone(), value)
            };
            Value::Object(members.iter().map(kept).collect())
        }
        Value::Array(items) => Value::Array(items.iter().take(40).map(summarize).collect()),
        other => other.clone(),
    }
}

/// A value without its large members.
fn small_members(value: &Value, is_small: &dyn Fn(&Value) -> bool) -> Value {
    match value {
        Value::Object(members) => {
            let small = members.iter().filter(|(_, value)| is_small(value)).take(20);
            Value::Object(small.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    }
}

/// Whether a value has at most the given number of parts, and short strings only.
fn has_few_parts(value: &Value, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        Value::String(text) => text.len() <= MAX_SUMMARY_STRING_BYTES,
        Value::Array(items) => items.iter().all(|item| has_few_parts(item, left)),
        Value::Object(members) => members.values().all(|member| has_few_parts(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}
