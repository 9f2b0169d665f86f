//! Size limits that a schema must satisfy before it is compiled.
//!
//! A schema comes from the server under test, so it may be built to exhaust its reader. The
//! traversals here use no recursion and stop at the first limit that is exceeded.

use std::{collections::HashMap, thread};

use serde_json::Value;

use super::schema_error::SchemaError;
use crate::percent;

/// The maximum depth of a schema; the deepest of several hundred real ones has 15 levels.
const MAX_DEPTH: usize = 64;
/// The maximum number of schemas that apply one through another, whether they are nested or refer to
/// each other.
const MAX_CHAIN: usize = 128;
/// Deeper schemas are compiled on a separate stack.
const MAX_SHALLOW_DEPTH: usize = 16;
/// The size of that stack; it is only reserved, and used as far as needed.
const STACK_BYTES: usize = 256 << 20;
/// The maximum number of values in a schema; the largest of several hundred real ones has 367.
const MAX_VALUES: usize = 20_000;
/// The maximum length of all strings in a schema, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// The maximum number of subschemas that may check a single value, counted along every path of
/// references: doubling references take exponential time in any validator.
const MAX_PATHS: u64 = 20_000;

/// Runs work that recurses into a schema of the given depth on a large enough stack.
///
/// Building the canonical form of a schema takes many stack frames per level, and the stack of the
/// calling thread may be small.
///
/// # Errors
///
/// When the schema is deep and no thread can be started for it.
pub(super) fn with_stack_for<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> Result<T, SchemaError> {
    if depth <= MAX_SHALLOW_DEPTH {
        return Ok(work());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|_| SchemaError::TooDeep { limit: MAX_SHALLOW_DEPTH })?;
        match thread.join() {
            Ok(done) => Ok(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Whether a schema is small enough to be validated in reasonable time.
#[must_use]
pub fn is_bounded(schema: &Value) -> bool {
    check(schema).is_ok()
}

/// Rejects a schema that is too deep, too large, or multiplies through its references; returns its
/// depth.
pub(super) fn check(schema: &Value) -> Result<usize, SchemaError> {
    let mut deepest = 0_usize;
    let mut pending = vec![(schema, 1_usize)];
    let mut values = 0_usize;
    let mut text = 0_usize;
    while let Some((value, depth)) = pending.pop() {
        values += 1;
        deepest = deepest.max(depth);
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep { limit: MAX_DEPTH });
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(entries) => {
                for (key, entry) in entries {
                    text += key.len();
                    pending.push((entry, depth + 1));
                }
            }
            Value::String(string) => text += string.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if values + pending.len() > MAX_VALUES {
            return Err(SchemaError::TooLarge { what: "values", limit: MAX_VALUES });
        }
        if text > MAX_TEXT_BYTES {
            return Err(SchemaError::TooLarge { what: "bytes of text", limit: MAX_TEXT_BYTES });
        }
    }
    let mut paths = Paths { document: schema, named: named(schema), known: HashMap::new(), too_long: false };
    let reachable = paths.follow(schema, 0);
    if paths.too_long || reachable.length > MAX_CHAIN {
        return Err(SchemaError::TooDeep { limit: MAX_CHAIN });
    }
    if reachable.count > MAX_PATHS {
        return Err(SchemaError::Multiplies);
    }
    Ok(deepest.max(reachable.length))
}

/// The subschemas that are reachable from a subschema through nesting and references.
#[derive(Debug, Clone, Copy)]
struct Reachable {
    /// Their number, counted along every path.
    count: u64,
    /// Their number on the longest path.
    length: usize,
}

impl Reachable {
    const ONE: Self = Self { count: 1, length: 1 };

    fn add(&mut self, part: Self) {
        self.count = self.count.saturating_add(part.count);
        self.length = self.length.max(part.length + 1);
    }
}

struct Paths<'s> {
    document: &'s Value,
    named: HashMap<&'s str, &'s Value>,
    known: HashMap<*const Value, Reachable>,
    too_long: bool,
}

/// Every subschema with a name, by its anchor and by the last part of its identifier.
fn named(schema: &Value) -> HashMap<&str, &Value> {
    let mut names = HashMap::new();
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(entries) => {
                for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                    if let Some(name) = entries.get(keyword).and_then(Value::as_str) {
                        names.insert(last_part(name), value);
                    }
                }
                pending.extend(entries.values());
            }
            Value::Array(items) => pending.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    names
}

/// The part after the last separator of a reference or identifier.
fn last_part(name: &str) -> &str {
    let name = name.trim_end_matches(['#', '/']);
    name.rsplit(['#', '/', ':']).next().unwrap_or(name)
}

impl<'s> Paths<'s> {
    /// The target of a reference within the document. Wrong if names are not unique, which matters
    /// little for an estimate.
    fn resolve(&self, reference: &str) -> Option<&'s Value> {
        match reference.split_once('#') {
            Some(("", pointer)) if pointer.is_empty() || pointer.starts_with('/') => {
                self.document.pointer(&percent::decode(pointer))
            }
            _ => self.named.get(last_part(reference)).copied(),
        }
    }

    /// Counts what `schema` applies to a value or to a part of it.
    ///
    /// Steps into a value count as well as those that stay on it: neither alone shows that a schema is
    /// harmless. A cycle counts once, since instances limit how often it is followed.
    fn follow(&mut self, schema: &'s Value, hops: usize) -> Reachable {
        let mut reachable = Reachable::ONE;
        let Some(keywords) = schema.as_object() else {
            return reachable;
        };
        let key = std::ptr::from_ref(schema);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        if hops > MAX_CHAIN {
            self.too_long = true;
            return reachable;
        }
        self.known.insert(key, reachable);
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    if let Some(target) = self.resolve(reference) {
                        reachable.add(self.follow(target, hops + 1));
                    }
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(branches)) => {
                    for branch in branches {
                        reachable.add(self.follow(branch, hops + 1));
                    }
                }
                ("properties" | "patternProperties" | "dependentSchemas" | "dependencies", Value::Object(entries)) => {
                    for entry in entries.values() {
                        reachable.add(self.follow(entry, hops + 1));
                    }
                }
                (
                    "not"
                    | "if"
                    | "then"
                    | "else"
                    | "items"
                    | "contains"
                    | "additionalProperties"
                    | "additionalItems"
                    | "propertyNames"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    Value::Object(_),
                ) => reachable.add(self.follow(value, hops + 1)),
                _ => {}
            }
        }
        self.known.insert(key, reachable);
        reachable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn a_deep_schema_is_rejected_without_recursion() {
        let mut schema = json!({});
        for _ in 0..200 {
            schema = json!({"not": schema});
        }
        assert!(matches!(check(&schema), Err(SchemaError::TooDeep { .. })));
    }

    #[test]
    fn references_that_double_at_every_step_are_rejected() {
        let mut definitions = Map::new();
        for step in 0..40 {
            let next = format!("#/$defs/s{}", step + 1);
            let body = json!({"allOf": [{"$ref": next}, {"$ref": next}]});
            definitions.insert(format!("s{step}"), body);
        }
        definitions.insert("s40".to_owned(), json!({"type": "object"}));
        let schema = json!({"$defs": definitions, "$ref": "#/$defs/s0"});
        assert!(matches!(check(&schema), Err(SchemaError::Multiplies)));
    }

    #[test]
    fn doubling_is_detected_for_every_kind_of_reference() {
        for (own, reference) in [("$anchor", "#"), ("$id", "")] {
            let mut definitions = Map::new();
            for step in 0..40 {
                let next = format!("{reference}s{}", step + 1);
                let body = json!({own: format!("s{step}"), "anyOf": [{"$ref": next}, {"$ref": next}]});
                definitions.insert(format!("d{step}"), body);
            }
            definitions.insert("d40".to_owned(), json!({own: "s40"}));
            let schema = json!({"$defs": definitions, "$ref": "#/%24defs/d0"});
            assert!(matches!(check(&schema), Err(SchemaError::Multiplies)), "{own}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_accepted() {
        let schema = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        assert!(check(&schema).is_ok());
    }
}
