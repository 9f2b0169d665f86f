//! Values as keys of hash tables.

use std::hash::{Hash, Hasher};

use serde_json::Value;

/// How many bytes of a text enter its hash.
const SAMPLE: usize = 64;

/// A value that is equal to equal values, and whose hash is that of its size and its first level: most of the time that
/// passive cases take would go into the hashes of long lists otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampled<'a>(pub(super) &'a Value);

impl Hash for Sampled<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            Value::Null => state.write_u8(0),
            Value::Bool(value) => state.write_u8(1 + u8::from(*value)),
            Value::Number(number) => number.hash(state),
            Value::String(text) => {
                state.write_usize(text.len());
                state.write(&text.as_bytes()[..text.len().min(SAMPLE)]);
            }
            Value::Array(items) => items.len().hash(state),
            // Objects are equal in any order of their members, and so is a sum.
            Value::Object(members) => {
                state.write_usize(members.iter().map(|(name, value)| name.len() * size(value)).sum());
            }
        }
    }
}

/// Between 1 and the size of a text or list, or the value of a small number.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(number) => {
            number.as_u64().and_then(|number| u8::try_from(number).ok()).map_or(3, |number| usize::from(number) + 1)
        }
        Value::String(text) => text.len() + text.bytes().take(SAMPLE).map(usize::from).sum::<usize>() + 1,
        Value::Array(items) => items.len() + 1,
        Value::Object(members) => members.len() + 1,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_are_one_key_in_any_order_of_members() {
        let values = [
            json!({"a": 1, "b": [1, {"c": null}]}),
            json!({"b": [1, {"c": null}], "a": 1}),
            json!({"a": 1, "b": [1, {"c": false}]}),
            json!({"a": 1.5, "b": "1"}),
        ];
        let keys: HashSet<Sampled<'_>> = values.iter().map(Sampled).collect();
        assert_eq!(keys.len(), 3);
    }

    #[test]
    fn values_that_differ_outside_the_sample_are_two_keys() {
        let list = |last: i32| Value::from((0..20).chain([last]).collect::<Vec<_>>());
        let (one, other) = (list(1), list(2));
        assert_eq!(HashSet::from([Sampled(&one), Sampled(&other)]).len(), 2);
    }
}
