//! Values that the server has shown or that belong to its command line, for arguments that are named alike.

use std::collections::BTreeMap;

use serde_json::Value;

/// The maximum number of names, and of values per name.
const MAX_NAMES: usize = 128;
const MAX_VALUES_PER_NAME: usize = 8;

/// The maximum length of a string; longer ones are texts, not values.
const MAX_STRING_LENGTH: usize = 200;

/// The maximum number of values to visit in one result.
const MAX_VISITED: usize = 400;

/// The maximum size of a text that is read as JSON.
const MAX_JSON_TEXT: usize = 64 << 10;

/// Values by name, and the paths that the server may access.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct KnownValues {
    by_name: BTreeMap<String, Vec<Value>>,
    /// The values that results of calls contained; another session may not have them.
    from_results: Vec<Value>,
    /// Folders: those on the server's command line, then its working folder.
    pub(crate) folders: Vec<String>,
    /// A file in each of the folders that has one.
    pub(crate) files: Vec<String>,
}

impl KnownValues {
    /// No values yet, and the paths of these folders and files.
    pub(crate) fn of_paths(folders: Vec<String>, files: Vec<String>) -> Self {
        Self { folders, files, ..Self::default() }
    }

    /// Adds the values in the result of a call: in its structured content or in the JSON of its texts, and its URIs.
    pub(crate) fn add_result(&mut self, result: &Value) {
        if let Some(structured) = result.get("structuredContent") {
            self.add_members(structured);
        }
        for item in result.get("content").and_then(Value::as_array).into_iter().flatten().take(16) {
            let text = item.get("text").and_then(Value::as_str).filter(|text| text.len() <= MAX_JSON_TEXT);
            if let Some(json) = text.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
                self.add_members(&json);
            }
            for uri in ["/uri", "/resource/uri"].into_iter().filter_map(|pointer| item.pointer(pointer)) {
                self.add_of_result("uri", uri);
            }
        }
    }

    /// Adds the strings and numbers among the members of a value, by their names; an item of a list has the name of the
    /// list.
    fn add_members(&mut self, value: &Value) {
        let mut pending = vec![(String::new(), value)];
        for _ in 0..MAX_VISITED {
            let Some((name, value)) = pending.pop() else { return };
            match value {
                Value::Object(members) => {
                    pending.extend(members.iter().rev().map(|(name, member)| (name.clone(), member)));
                }
                Value::Array(items) => pending.extend(items.iter().rev().map(|item| (name.clone(), item))),
                _ => self.add_of_result(&name, value),
            }
        }
    }

    fn add_of_result(&mut self, name: &str, value: &Value) {
        self.add(name, value);
        if self.from_results.len() < MAX_NAMES * MAX_VALUES_PER_NAME && !self.from_results.contains(value) {
            self.from_results.push(value.clone());
        }
    }

    /// Whether arguments contain a value that the result of a call contained, and that the definition of the tool does not
    /// name.
    pub(crate) fn depend_on_results(&self, arguments: &Value, definition: &Value) -> bool {
        let definition = definition.to_string();
        let is_named =
            |value: &Value| definition.contains(value.as_str().map_or(value.to_string(), str::to_owned).as_str());
        let members = arguments.as_object().into_iter().flatten().map(|(_, value)| value);
        let mut values = members.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        values.any(|value| self.from_results.contains(value) && !is_named(value))
    }

    /// Adds a value under a name, unless it is empty or too long.
    pub(crate) fn add(&mut self, name: &str, value: &Value) {
        let name = normalized(name);
        let is_usable = match value {
            Value::String(text) => !text.is_empty() && text.len() <= MAX_STRING_LENGTH,
            Value::Number(_) => true,
            _ => false,
        };
        if name.is_empty() || !is_usable || (!self.by_name.contains_key(&name) && self.by_name.len() >= MAX_NAMES) {
            return;
        }
        let values = self.by_name.entry(name).or_default();
        if values.len() < MAX_VALUES_PER_NAME && !values.contains(value) {
            values.push(value.clone());
        }
    }

    /// The values for an argument of this name: those of the same name, then those of similar names, as `id` and
    /// `record_id` are.
    pub(crate) fn values_for(&self, name: &str) -> Vec<Value> {
        let name = normalized(name);
        let same = self.by_name.get(&name).into_iter().flatten();
        let singular = |known: &str| known.strip_suffix('s').unwrap_or(known).to_owned();
        let is_similar = |known: &str| {
            known != name
                && (singular(known) == singular(&name)
                    || (name.len() > 1 && known.ends_with(&name))
                    || (known.len() > 1 && name.ends_with(known)))
        };
        let similar = self.by_name.iter().filter(|(known, _)| is_similar(known)).flat_map(|(_, values)| values);
        same.chain(similar).cloned().collect()
    }
}

/// The letters and digits of a name in lower case: `recordId` and `record_id` are one name.
fn normalized(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_found_by_the_same_name_and_by_similar_ones() {
        let mut known = KnownValues::default();
        known.add_result(&json!({"structuredContent": {"records": [{"id": "r-1"}, {"id": "r-2"}], "total": 2}}));
        known.add_result(&json!({"content": [{"type": "text", "text": "{\"zones\": [\"UTC\"]}"}]}));
        known.add_result(&json!({"content": [{"type": "resource_link", "uri": "note://1"}]}));
        assert_eq!(known.values_for("record_id"), ["r-1", "r-2"]);
        assert_eq!(known.values_for("id"), ["r-1", "r-2"]);
        assert_eq!(known.values_for("zone"), ["UTC"]);
        assert_eq!(known.values_for("Total"), [json!(2)]);
        assert_eq!(known.values_for("resourceUri"), ["note://1"]);
        assert!(known.values_for("colour").is_empty());
        assert!(known.depend_on_results(&json!({"n": 1, "ids": ["r-2"]}), &json!({})));
        assert!(!known.depend_on_results(&json!({"id": "r-2"}), &json!({"description": "Such as r-2"})));
        assert!(!known.depend_on_results(&json!({"n": 1, "ids": ["r-3"]}), &json!({})));
    }

    #[test]
    fn texts_and_empty_strings_are_no_values() {
        let mut known = KnownValues::default();
        known.add("text", &json!("x".repeat(MAX_STRING_LENGTH + 1)));
        known.add("text", &json!(""));
        known.add("text", &json!(true));
        assert!(known.values_for("text").is_empty());
    }
}
