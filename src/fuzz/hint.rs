//! The values that a schema's author suggests: `default`, `examples`, `const`, the first of `enum`.
//!
//! The canonical form drops annotations, so they are collected from the schema as written, by the
//! place in an instance where they apply, and checked against the compiled schema when used.

use std::collections::HashMap;

use serde_json::Value;

/// How deep into instances suggestions are looked for.
const DEPTH: usize = 8;
/// How many suggestions one place keeps.
const KEPT: usize = 8;
/// How many subschemas are looked at in all.
const VISITS: usize = 4_096;

/// Suggested values by place.
#[derive(Debug, Clone, Default)]
pub(super) struct Hints {
    by_path: HashMap<String, Vec<Value>>,
}

impl Hints {
    /// The step from an array to its elements.
    pub(super) const ITEMS: &str = "[]";
    /// The step from an object to an entry that has no schema of its own.
    pub(super) const ENTRIES: &str = "{}";

    /// Collects the suggestions of a schema as written.
    pub(super) fn collect(schema: &Value) -> Self {
        let mut collector = Collector { document: schema, hints: Self::default(), visits: VISITS };
        collector.walk(schema, &mut String::new(), 0, &mut Vec::new());
        collector.hints
    }

    /// The suggestions for a place, best first.
    pub(super) fn at(&self, path: &str) -> Option<&[Value]> {
        self.by_path.get(path).map(Vec::as_slice)
    }

    /// Goes one step down.
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
    fn walk(&mut self, schema: &'s Value, path: &mut String, depth: usize, references: &mut Vec<&'s str>) {
        let (Some(keywords), Some(left)) = (schema.as_object(), self.visits.checked_sub(1)) else {
            return;
        };
        self.visits = left;
        if depth > DEPTH {
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
            kept.extend(suggestions.take(KEPT.saturating_sub(kept.len())).cloned());
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str)
            && let Some(pointer) = reference.strip_prefix('#')
            && !references.contains(&reference)
            && let Some(target) = self.document.pointer(pointer)
        {
            references.push(reference);
            self.walk(target, path, depth, references);
            references.pop();
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in listed(keyword).into_iter().flatten() {
                self.walk(branch, path, depth, references);
            }
        }
        for keyword in ["if", "then", "else"] {
            if let Some(branch) = keywords.get(keyword) {
                self.walk(branch, path, depth, references);
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
        self.walk(schema, path, depth + 1, references);
        path.truncate(length);
    }
}
