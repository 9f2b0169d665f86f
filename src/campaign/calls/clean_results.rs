//! What calls of a tool brought that keeps every rule, so that the same is not judged again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::campaign::limits::MAX_JUDGED_RESULTS;
use crate::check::fuzz::FuzzExchange;

/// What is known of the results of one tool, with the messages of the server before them.
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

    /// Whether what a call brought need not be judged: the same kept every rule, or after much else did, something of the
    /// same shape.
    pub(in crate::campaign) fn include(&self, exchange: &FuzzExchange) -> bool {
        let brought = brought_by(exchange);
        let known = self.known();
        known.values.contains(&hash_of(&brought))
            || known.values.len() >= MAX_JUDGED_RESULTS && known.shapes.contains(&shape_of(brought))
    }

    /// Remembers what a call brought, which keeps every rule.
    pub(in crate::campaign) fn add(&self, exchange: &FuzzExchange) {
        let brought = brought_by(exchange);
        let mut known = self.known();
        if known.values.len() < MAX_JUDGED_RESULTS {
            known.values.insert(hash_of(&brought));
            known.shapes.insert(shape_of(brought));
        }
    }
}

/// The result of a call and the messages of the server before it, without ids.
fn brought_by(exchange: &FuzzExchange) -> Vec<&Value> {
    let messages = exchange.other.messages.iter().flat_map(|message| [message.get("method"), message.get("params")]);
    let result = exchange.responses.first().and_then(|response| response.get("result"));
    messages.flatten().chain(result).collect()
}

fn hash_of(values: &[&Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    values.hash(&mut hasher);
    hasher.finish()
}

/// A hash of the types in values and the names of their members.
fn shape_of(mut pending: Vec<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
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
        let brought = |result: Value| FuzzExchange::answered(json!({}), vec![json!({ "result": result })]);
        let result = |text: String| brought(json!({ "content": [{ "type": "text", "text": text }] }));
        clean.add(&result("0".to_owned()));
        assert!(clean.include(&result("0".to_owned())) && !clean.include(&result("1".to_owned())));
        for number in 1..MAX_JUDGED_RESULTS {
            clean.add(&result(number.to_string()));
        }
        assert!(clean.include(&result("other".to_owned())));
        assert!(!clean.include(&brought(json!({ "content": [{ "type": "image", "data": "x" }] }))));
    }

    #[test]
    fn the_same_result_with_another_message_before_it_is_not_known() {
        let clean = CleanResults::default();
        let after = |id: u64, level: &str| {
            let mut exchange = FuzzExchange::answered(json!({}), vec![json!({ "result": {} })]);
            let request = json!({ "id": id, "method": "roots/list", "params": { "level": level } });
            exchange.other.messages.push(request);
            exchange
        };
        clean.add(&after(1, "info"));
        assert!(clean.include(&after(2, "info")) && !clean.include(&after(2, "warn")));
    }
}
