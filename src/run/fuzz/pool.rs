//! Values out of results, for later calls whose properties are called alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::check::fuzz::Call;

/// How many names are kept, and how many values of each.
const NAMES: usize = 64;
const VALUES: usize = 8;
/// Longer texts are no ids.
const LONGEST: usize = 200;

/// Where in a result a value stood, so that it can be had again from another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The tool that returned it.
    pub(super) tool: usize,
    /// Its place in the result, or in the JSON that the first text of the result holds.
    pub(super) pointer: String,
    pub(super) in_text: bool,
}

impl Origin {
    /// The value that a result has at this place.
    pub(super) fn of(&self, result: &Value) -> Option<Value> {
        if self.in_text {
            parsed(result)?.pointer(&self.pointer).cloned()
        } else {
            result.pointer(&self.pointer).cloned()
        }
    }
}

/// A value out of a result.
#[derive(Debug, Clone)]
pub(super) struct Learnt {
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// The call that returned it.
    pub(super) source: Arc<Call>,
}

/// The JSON that the first text of a result holds.
fn parsed(result: &Value) -> Option<Value> {
    let text = result.pointer("/content/0/text")?.as_str()?;
    let is_json = text.len() < 8_192 && text.starts_with(['{', '[']);
    is_json.then(|| serde_json::from_str(text).ok())?
}

/// Values that results held, by the name of their member.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    values: BTreeMap<String, Vec<Learnt>>,
}

impl Pool {
    /// Learns from a result of a tool.
    pub(super) fn learn(&mut self, tool: usize, result: &Value, call: &Arc<Call>) {
        let origin = |pointer: &str, in_text| Origin { tool, pointer: pointer.to_owned(), in_text };
        if let Some(structured) = result.get("structuredContent") {
            self.take(structured, &origin("/structuredContent", false), call);
        } else if let Some(value) = parsed(result) {
            self.take(&value, &origin("", true), call);
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

    fn take(&mut self, value: &Value, origin: &Origin, source: &Arc<Call>) {
        const MOST: usize = 200;
        let mut pending = vec![(value, origin.pointer.clone())];
        let mut seen = 0;
        while let Some((value, pointer)) = pending.pop() {
            seen += 1;
            if seen > MOST {
                return;
            }
            match value {
                Value::Object(members) => {
                    for (name, member) in members {
                        let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
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
        if value.as_str().is_some_and(|text| text.is_empty() || text.len() > LONGEST) {
            return;
        }
        self.keep(&plain(name), Learnt { value: value.clone(), origin, source: Arc::clone(source) });
    }

    fn keep(&mut self, name: &str, learnt: Learnt) {
        if !self.values.contains_key(name) && self.values.len() >= NAMES {
            return;
        }
        let values = self.values.entry(name.to_owned()).or_default();
        if !values.iter().any(|known| known.value == learnt.value) {
            if values.len() >= VALUES {
                // The first ones stay: fewer calls lead to them.
                values.remove(VALUES / 2);
            }
            values.push(learnt);
        }
    }

    /// Learns what another one knows.
    pub(super) fn join(&mut self, other: &Self) {
        for (name, values) in &other.values {
            for learnt in values {
                self.keep(name, learnt.clone());
            }
        }
    }

    /// The values that a property of this name may take.
    pub(super) fn of(&self, name: &str) -> Vec<Learnt> {
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
    use crate::check::fuzz::{Arguments, Standing};
    use crate::verdict::CallKind;

    #[test]
    fn values_are_found_by_names_that_are_alike_and_again_where_they_stood() {
        let mut pool = Pool::default();
        let structured = serde_json::json!({"draftId": "d-1", "items": [{"id": 7}]});
        let origin = Origin { tool: 3, pointer: "/structuredContent".to_owned(), in_text: false };
        let arguments = Arguments::Json(serde_json::json!({}));
        let call = Call { kind: CallKind::Valid, standing: Standing::Valid, arguments, tape: None };
        pool.take(&structured, &origin, &Arc::new(call));
        let draft = pool.of("draft_id");
        assert!(draft.iter().any(|learnt| learnt.value == "d-1"));
        assert!(pool.of("colour").is_empty());
        let item = pool.of("itemId").into_iter().find(|learnt| learnt.value == 7).expect("it was learnt");
        let later = serde_json::json!({"structuredContent": {"draftId": "d-2", "items": [{"id": 8}]}});
        assert_eq!(item.origin.of(&later), Some(8.into()));
        let told = serde_json::json!({"content": [{"type": "text", "text": "{\"id\": 5}"}]});
        let in_text = Origin { tool: 0, pointer: "/id".to_owned(), in_text: true };
        assert_eq!(in_text.of(&told), Some(5.into()));
    }
}
