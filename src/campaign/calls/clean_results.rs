//! The results of a tool that keep every rule, so that equal ones are not judged again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::campaign::limits::MAX_JUDGED_RESULTS;

/// What is known of the results of one tool.
#[derive(Debug, Default)]
pub(in crate::campaign) struct CleanResults(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    values: HashSet<u64>,
    shapes: HashSet<u64>,
}

impl CleanResults {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a result need not be judged: an equal one kept every rule, or after many different ones did, one of the same
    /// shape.
    pub(in crate::campaign) fn include(&self, result: &Value) -> bool {
        let known = self.known();
        known.values.contains(&hash_of(result))
            || known.values.len() >= MAX_JUDGED_RESULTS && known.shapes.contains(&shape_of(result))
    }

    /// Remembers a result that keeps every rule.
    pub(in crate::campaign) fn add(&self, result: &Value) {
        let mut known = self.known();
        if known.values.len() < MAX_JUDGED_RESULTS {
            known.values.insert(hash_of(result));
            known.shapes.insert(shape_of(result));
        }
    }
}

fn hash_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A hash of the types in a value and the names of its members.
fn shape_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        std::mem::discriminant(value).hash(&mut hasher);
        match value {
            Value::Array(items) => {
                items.len().hash(&mut hasher);
                pending.extend(items);
            }
            Value::Object(members) => {
                members.len().hash(&mut hasher);
                for (name, member) in members {
                    name.hash(&mut hasher);
                    pending.push(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_equal_result_is_known_and_after_many_one_of_the_same_shape() {
        let clean = CleanResults::default();
        let result = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
        clean.add(&result("0".to_owned()));
        assert!(clean.include(&result("0".to_owned())) && !clean.include(&result("1".to_owned())));
        for number in 1..MAX_JUDGED_RESULTS {
            clean.add(&result(number.to_string()));
        }
        assert!(clean.include(&result("other".to_owned())));
        assert!(!clean.include(&json!({ "content": [{ "type": "image", "data": "x" }] })));
    }
}
