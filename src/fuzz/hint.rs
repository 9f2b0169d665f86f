//! The values that a schema's author suggests: `default`, `examples`, `const`, the first of `enum`.
//!
//! The canonical form drops annotations, so suggestions are collected from the original schema by
//! their path in an instance, and checked against the compiled schema when used.

use std::collections::HashMap;

use serde_json::Value;

/// How deep suggestions are searched in instances.
const MAX_DEPTH: usize = 8;
/// How many suggestions are kept for one path.
const MAX_PER_PATH: usize = 8;
/// How many subschemas are visited in all.
const MAX_VISITS: usize = 4_096;

/// Suggested values by path.
#[derive(Debug, Clone, Default)]
pub(super) struct Hints {
    by_path: HashMap<String, Vec<Value>>,
}

impl Hints {
    /// The path step from an array to its elements.
    pub(super) const ITEMS: &str = "[]";
    /// The path step from an object to an entry without a schema of its own.
    pub(super) const ENTRIES: &str = "{}";

    /// Collects the suggestions of the original schema.
    pub(super) fn collect(schema: &Value) -> Self {
        let mut collector = Collector { document: schema, hints: Self::default(), visits: MAX_VISITS };
        collector.traverse(schema, &mut String::new(), 0, &mut Vec::new());
        collector.hints
    }

    /// The suggestions for a path, best first.
    pub(super) fn at(&self, path: &str) -> Option<&[Value]> {
        self.by_path.get(path).map(Vec::as_slice)
    }

    /// Appends a step to a path.
    pub(super) fn descend(path: &mut String, step: &str) {
        path.push('\u{1f}');
        path.push_str(step);
    }
}

struct Collector<'s> {
    document: &'s Value,
    hints: Hints,
    visits: usize,
}

impl<'s> Collector<'s> {
    fn traverse(&mut self, schema: &'s Value, path: &mut String, depth: usize, references: &mut Vec<&'s str>) {
        let (Some(keywords), Some(left)) = (schema.as_object(), self.visits.checked_sub(1)) else {
            return;
        };
        self.visits = left;
        if depth > MAX_DEPTH {
            return;
        }
        let listed = |keyword: &str| keywords.get(keyword).and_then(Value::as_array);
        let suggestions = keywords
            .get("default")
            .into_iter()
            .chain(listed("examples").into_iter().flatten())
            .chain(keywords.get("const"))
            .chain(listed("enum").and_then(|values| values.first()));
        let mut suggestions = suggestions.peekable();
        if suggestions.peek().is_some() {
            let kept = self.hints.by_path.entry(path.clone()).or_default();
            let suggestions = suggestions.filter(|value| !is_remote(value));
            kept.extend(suggestions.take(MAX_PER_PATH.saturating_sub(kept.len())).cloned());
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str)
            && let Some(pointer) = reference.strip_prefix('#')
            && !references.contains(&reference)
            && let Some(target) = self.document.pointer(pointer)
        {
            references.push(reference);
            self.traverse(target, path, depth, references);
            references.pop();
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in listed(keyword).into_iter().flatten() {
                self.traverse(branch, path, depth, references);
            }
        }
        for keyword in ["if", "then", "else"] {
            if let Some(branch) = keywords.get(keyword) {
                self.traverse(branch, path, depth, references);
            }
        }
        if let Some(properties) = keywords.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                self.step(property, path, name, depth, references);
            }
        }
        if let Some(items) = keywords.get("items") {
            if let Some(slots) = items.as_array() {
                self.slots(slots, path, depth, references);
            } else {
                self.step(items, path, Hints::ITEMS, depth, references);
            }
        }
        if let Some(slots) = listed("prefixItems") {
            self.slots(slots, path, depth, references);
        }
        if let Some(entries) = keywords.get("additionalProperties") {
            self.step(entries, path, Hints::ENTRIES, depth, references);
        }
    }

    fn slots(&mut self, slots: &'s [Value], path: &mut String, depth: usize, references: &mut Vec<&'s str>) {
        for (position, slot) in slots.iter().enumerate() {
            self.step(slot, path, &position.to_string(), depth, references);
        }
    }

    fn step(&mut self, schema: &'s Value, path: &mut String, step: &str, depth: usize, references: &mut Vec<&'s str>) {
        let length = path.len();
        Hints::descend(path, step);
        self.traverse(schema, path, depth + 1, references);
        path.truncate(length);
    }
}

/// The properties of a schema whose default is a URL on another machine.
pub(super) fn remote_defaults(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let away = properties.into_iter().flatten().filter(|(_, property)| property.get("default").is_some_and(is_remote));
    away.map(|(name, _)| name.clone()).collect()
}

/// Whether a suggestion contains a URL on another machine: thousands of calls with it would reach people who never
/// asked for them, and would be slow.
fn is_remote(value: &Value) -> bool {
    match value {
        Value::String(text) => host_of(text).is_some_and(|host| !is_local(host)),
        Value::Array(items) => items.iter().any(is_remote),
        Value::Object(members) => members.values().any(is_remote),
        _ => false,
    }
}

/// Whether a text may be a host name or an address at one.
fn is_host(text: &str) -> bool {
    let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_name = ending.len() > 1 && ending.bytes().all(|byte| byte.is_ascii_alphabetic());
    text.contains('@') || is_name && !text.contains(['/', ' '])
}

/// The host of a URI, if it has one.
fn host_of(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, _)) => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    Some(host)
}

/// Whether a host is this machine, or a name that is reserved and belongs to no one.
fn is_local(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let reserved = ["localhost", "invalid", "test", "example"];
    host.is_empty()
        || host == "::1"
        || host.starts_with("127.")
        || reserved.iter().any(|name| host == *name || host.ends_with(&format!(".{name}")))
}

/// The string properties of the root whose description quotes values, with these values.
pub(super) fn quoted_in_descriptions(schema: &Value) -> Vec<(String, Vec<Value>)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let texts = properties.into_iter().flatten().filter(|(_, property)| {
        let is_text = property.get("type").is_none_or(|kind| kind == "string");
        is_text && property.get("enum").is_none() && property.get("const").is_none()
    });
    texts
        .filter_map(|(name, property)| {
            let values = quoted(property.get("description")?.as_str()?);
            (!values.is_empty()).then(|| (name.clone(), values))
        })
        .collect()
}

/// The strings in quotation marks in a description, except addresses on other machines.
fn quoted(description: &str) -> Vec<Value> {
    const LONGEST: usize = 64;
    let mut values = Vec::new();
    let mut rest = description;
    let mut before = ' ';
    while let Some(mark) = rest.chars().next() {
        let after = &rest[mark.len_utf8()..];
        let opens = matches!(mark, '\'' | '"' | '`') && !before.is_alphanumeric();
        let closed = opens.then(|| after.split_once(mark)).flatten();
        let closed = closed.filter(|(_, beyond)| !beyond.starts_with(char::is_alphanumeric));
        match closed {
            Some((text, beyond)) if !text.is_empty() && text.len() <= LONGEST && !text.contains('\n') => {
                let value = Value::from(text);
                if values.len() < MAX_PER_PATH && !is_remote(&value) && !is_host(text) && !values.contains(&value) {
                    values.push(value);
                }
                (rest, before) = (beyond, mark);
            }
            _ => (rest, before) = (after, mark),
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn suggestions_that_lead_to_other_machines_are_dropped() {
        for near in ["http://localhost:3000/a", "http://127.0.0.1", "http://[::1]:80/", "file:///tmp/a", "a b", "a://"]
        {
            assert!(!is_remote(&json!(near)), "{near}");
        }
        for away in ["https://raw.githubusercontent.com/a", "http://u:p@[2001:db8::1]:80/", "ws://192.0.2.1"] {
            assert!(is_remote(&json!({"list": [away]})), "{away}");
        }
        let schema = json!({"properties": {"url": {"default": "https://elsewhere.example.org/a", "examples": ["http://localhost/"]}}});
        let mut path = String::new();
        Hints::descend(&mut path, "url");
        assert_eq!(Hints::collect(&schema).at(&path), Some(&[json!("http://localhost/")][..]));
    }

    #[test]
    fn quoted_values_in_descriptions_are_found() {
        let schema = json!({"properties": {
            "zone": {"type": "string", "description": "An IANA name (e.g., 'America/New_York', \"UTC\"). Don't guess, it's `Etc/UTC`"},
            "page": {"type": "string", "description": "An address such as 'https://mcp.dev/a', 'mcp.dev' or 'a@mcp.dev'"},
            "count": {"type": "integer", "description": "How many, '5' by default"},
            "mode": {"type": "string", "enum": ["a"], "description": "'a'"},
        }});
        let zone = vec![json!("America/New_York"), json!("UTC"), json!("Etc/UTC")];
        assert_eq!(quoted_in_descriptions(&schema), [("zone".to_owned(), zone)]);
    }
}
