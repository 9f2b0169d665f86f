//! Values out of results, for later calls whose properties are called alike.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::fuzz::Exchange;

/// How many names are kept, and how many values of each.
const NAMES: usize = 64;
const VALUES: usize = 8;
/// Longer texts are no ids.
const LONGEST: usize = 200;

/// Values that results held, by the name of their member.
#[derive(Debug, Default)]
pub(super) struct Pool {
    values: BTreeMap<String, Vec<Value>>,
}

impl Pool {
    /// Learns from an answer.
    pub(super) fn learn(&mut self, exchange: &Exchange) {
        let Some(result) = exchange.answers.first().and_then(|answer| answer.get("result")) else { return };
        if let Some(structured) = result.get("structuredContent") {
            self.take(structured);
        } else if let Some(text) = result.pointer("/content/0/text").and_then(Value::as_str)
            && text.len() < 8_192
            && text.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            self.take(&value);
        }
        for item in result.get("content").and_then(Value::as_array).into_iter().flatten().take(8) {
            if let Some(uri) = item.get("uri").or_else(|| item.pointer("/resource/uri")) {
                self.add("uri", uri);
            }
        }
    }

    fn take(&mut self, value: &Value) {
        const MOST: usize = 200;
        let mut pending = vec![value];
        let mut seen = 0;
        while let Some(value) = pending.pop() {
            seen += 1;
            if seen > MOST {
                return;
            }
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        match member {
                            Value::String(_) | Value::Number(_) => self.add(name, member),
                            _ => pending.push(member),
                        }
                    }
                }
                Value::Array(items) => pending.extend(items),
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &str, value: &Value) {
        if value.as_str().is_some_and(|text| text.is_empty() || text.len() > LONGEST) {
            return;
        }
        let name = plain(name);
        if !self.values.contains_key(&name) && self.values.len() >= NAMES {
            return;
        }
        let values = self.values.entry(name).or_default();
        if !values.contains(value) {
            if values.len() >= VALUES {
                // The first ones stay: fewer calls lead to them.
                values.remove(VALUES / 2);
            }
            values.push(value.clone());
        }
    }

    /// The values that a property of this name may take.
    pub(super) fn of(&self, name: &str) -> Vec<Value> {
        let name = plain(name);
        let alike = |known: &str| {
            known == name || (name.len() > 2 && known.ends_with(&name)) || (known.len() > 1 && name.ends_with(known))
        };
        self.values.iter().filter(|(known, _)| alike(known)).flat_map(|(_, values)| values.clone()).collect()
    }
}

/// A name without what only spells it: `draftId` and `draft_id` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_names_that_are_alike() {
        let mut pool = Pool::default();
        pool.take(&serde_json::json!({"draftId": "d-1", "items": [{"id": 7}]}));
        assert!(pool.of("draft_id").contains(&"d-1".into()));
        assert!(pool.of("itemId").contains(&7.into()));
        assert!(pool.of("colour").is_empty());
    }
}
