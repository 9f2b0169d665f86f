//! What a transcript keeps of a message in the record of its HTTP response, next to the message itself.

use serde_json::Value;

/// The largest member of a message, in bytes of text, that is kept in the summary of its HTTP response.
const MAX_SUMMARY_STRING_BYTES: usize = 1_000;

/// The maximum number of values, each in the others, of a member that is kept.
const MAX_PARTS: usize = 40;

/// The same of a member of a result, of which the most messages are, and which shows least: some servers repeat who they are in
/// each.
const MAX_RESULT_PARTS: usize = 8;

/// The small members of a message, which show its kind and the request it belongs to: the message itself is
/// recorded separately.
#[must_use]
pub(crate) fn summarize(message: &Value) -> Value {
    match message {
        Value::Object(members) => {
            let kept = |(name, value): (&String, &Value)| {
                let parts = if name == "result" { MAX_RESULT_PARTS } else { MAX_PARTS };
                let is_small = |value: &Value| has_few_parts(value, &mut { parts });
                let value = if is_small(value) { value.clone() } else { small_members(value, &is_small) };
                (name.clone(), value)
            };
            Value::Object(members.iter().map(kept).collect())
        }
        Value::Array(items) => Value::Array(items.iter().take(MAX_PARTS).map(summarize).collect()),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_keeps_its_smallest_members_and_an_error_more() {
        let about =
            json!({ "name": "a", "icons": [{ "src": "b", "sizes": ["8x8", "16x16", "32x32"], "theme": "dark" }] });
        let few = json!({ "subscription": 5 });
        let message =
            |member: &str| json!({ "jsonrpc": "2.0", "id": 1, member: { "about": about, "few": few, "code": 2 } });
        assert_eq!(summarize(&message("error")), message("error"));
        let kept = json!({ "jsonrpc": "2.0", "id": 1, "result": { "few": few, "code": 2 } });
        assert_eq!(summarize(&message("result")), kept);
    }

    #[test]
    fn long_strings_and_lists_are_left_out() {
        let items: Vec<usize> = (0..100).collect();
        let long = "x".repeat(MAX_SUMMARY_STRING_BYTES + 1);
        let message = json!({ "id": 1, "method": "a", "params": { "items": items, "text": long, "token": "t" } });
        assert_eq!(summarize(&message), json!({ "id": 1, "method": "a", "params": { "token": "t" } }));
        assert_eq!(summarize(&json!([{ "id": 1, "result": long }])), json!([{ "id": 1, "result": null }]));
    }
}
