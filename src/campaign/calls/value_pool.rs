//! Collects values from results, for later calls with similarly named properties.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::check::fuzz::Call;
use crate::json_pointer;

/// The maximum number of names, and of values per name.
const MAX_NAMES: usize = 64;
const MAX_VALUES_PER_NAME: usize = 8;
/// Longer strings are not identifiers.
const MAX_STRING_LENGTH: usize = 200;

/// The location of a value in a result, so that it can be obtained from another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::campaign) struct Origin {
    /// The tool that returned it.
    pub(in crate::campaign) tool: usize,
    /// The pointer into the result, or into the JSON in its first text content.
    pub(in crate::campaign) pointer: String,
    pub(in crate::campaign) in_text: bool,
}

impl Origin {
    /// Extracts the value at this location from a result.
    pub(super) fn extract(&self, result: &Value) -> Option<Value> {
        if self.in_text {
            parsed(result)?.pointer(&self.pointer).cloned()
        } else {
            result.pointer(&self.pointer).cloned()
        }
    }
}

/// A value from a result.
#[derive(Debug, Clone)]
pub(super) struct PooledValue {
    pub(in crate::campaign) value: Value,
    pub(in crate::campaign) origin: Origin,
    /// The call that returned it.
    pub(in crate::campaign) source: Arc<Call>,
}

/// Parses the JSON in the first text content of a result.
fn parsed(result: &Value) -> Option<Value> {
    let text = result.pointer("/content/0/text")?.as_str()?;
    let is_json = text.len() < 8_192 && text.starts_with(['{', '[']);
    is_json.then(|| serde_json::from_str(text).ok())?
}

/// Values from results, by member name.
#[derive(Debug, Clone, Default)]
pub(in crate::campaign) struct ValuePool {
    values: BTreeMap<String, Vec<PooledValue>>,
}

impl ValuePool {
    /// Collects the values of a result.
    pub(in crate::campaign) fn learn(&mut self, tool: usize, result: &Value, call: &Arc<Call>) {
        let origin = |pointer: &str, in_text| Origin { tool, pointer: pointer.to_owned(), in_text };
        if let Some(structured) = result.get("structuredContent") {
            self.collect(structured, &origin("/structuredContent", false), call);
        } else if let Some(value) = parsed(result) {
            self.collect(&value, &origin("", true), call);
        }
        for (at, item) in result.get("content").and_then(Value::as_array).into_iter().flatten().take(8).enumerate() {
            for place in ["/uri", "/resource/uri"] {
                if let Some(uri) = item.pointer(place) {
                    let origin = origin(&format!("/content/{at}{place}"), false);
                    self.add("uri", uri, origin, call);
                }
            }
        }
    }

    fn collect(&mut self, value: &Value, origin: &Origin, source: &Arc<Call>) {
        const MAX_VISITED: usize = 200;
        let mut pending = vec![(value, origin.pointer.clone())];
        let mut visited = 0;
        while let Some((value, pointer)) = pending.pop() {
            visited += 1;
            if visited > MAX_VISITED {
                return;
            }
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        let pointer = json_pointer::join(&pointer, name);
                        match member {
                            Value::String(_) | Value::Number(_) => {
                                self.add(name, member, Origin { pointer, ..origin.clone() }, source);
                            }
                            _ => pending.push((member, pointer)),
                        }
                    }
                }
                Value::Array(items) => {
                    pending.extend(items.iter().enumerate().map(|(at, item)| (item, format!("{pointer}/{at}"))));
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &str, value: &Value, origin: Origin, source: &Arc<Call>) {
        if value.as_str().is_some_and(|text| text.is_empty() || text.len() > MAX_STRING_LENGTH) {
            return;
        }
        self.insert(&normalized(name), PooledValue { value: value.clone(), origin, source: Arc::clone(source) });
    }

    fn insert(&mut self, name: &str, pooled: PooledValue) {
        if !self.values.contains_key(name) && self.values.len() >= MAX_NAMES {
            return;
        }
        let values = self.values.entry(name.to_owned()).or_default();
        if !values.iter().any(|known| known.value == pooled.value) {
            if values.len() >= MAX_VALUES_PER_NAME {
                // Keep the first values: fewer calls lead to them.
                values.remove(MAX_VALUES_PER_NAME / 2);
            }
            values.push(pooled);
        }
    }

    /// Adds the values of another pool.
    pub(in crate::campaign) fn merge(&mut self, other: &Self) {
        for (name, values) in &other.values {
            for pooled in values {
                self.insert(name, pooled.clone());
            }
        }
    }

    /// The values for a property with this name.
    pub(super) fn values_for(&self, name: &str) -> Vec<PooledValue> {
        let name = normalized(name);
        let alike = |known: &str| {
            known == name || (name.len() > 2 && known.ends_with(&name)) || (known.len() > 1 && name.ends_with(known))
        };
        self.values.iter().filter(|(known, _)| alike(known)).flat_map(|(_, values)| values.clone()).collect()
    }
}

/// Normalizes the spelling of a name: `draftId` and `draft_id` are equal.
fn normalized(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::fuzz::{Arguments, Validity};
    use crate::verdict::CallKind;

    #[test]
    fn values_are_found_by_similar_names_and_extracted_again() {
        let mut pool = ValuePool::default();
        let structured = serde_json::json!({"draftId": "d-1", "items": [{"id": 7}]});
        let origin = Origin { tool: 3, pointer: "/structuredContent".to_owned(), in_text: false };
        let arguments = Arguments::Json(serde_json::json!({}));
        let call = Call { kind: CallKind::Valid, validity: Validity::Valid, arguments, choices: None };
        pool.collect(&structured, &origin, &Arc::new(call));
        let draft = pool.values_for("draft_id");
        assert!(draft.iter().any(|pooled| pooled.value == "d-1"));
        assert!(pool.values_for("colour").is_empty());
        let item = pool.values_for("itemId").into_iter().find(|pooled| pooled.value == 7).expect("it was collected");
        let later = serde_json::json!({"structuredContent": {"draftId": "d-2", "items": [{"id": 8}]}});
        assert_eq!(item.origin.extract(&later), Some(8.into()));
        let result = serde_json::json!({"content": [{"type": "text", "text": "{\"id\": 5}"}]});
        let in_text = Origin { tool: 0, pointer: "/id".to_owned(), in_text: true };
        assert_eq!(in_text.extract(&result), Some(5.into()));
    }
}
