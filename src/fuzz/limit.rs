//! How large a schema may be before it is looked at any closer.
//!
//! A schema comes from the server under test, so it may be built to exhaust whoever reads it. The
//! walks here use no recursion and stop at the first bound that is crossed.

use std::collections::HashMap;

use serde_json::Value;

use super::schema::SchemaError;

/// Deeper schemas are refused; the deepest of several hundred real ones has 15 levels.
const DEPTH: usize = 96;
/// Schemas of more values are refused; the largest of several hundred real ones has 367.
const VALUES: usize = 20_000;
/// Schemas with more text are refused.
const TEXT: usize = 4 << 20;
/// A single value may be checked by at most this many subschemas, counted along every path of
/// references: doubling references cost exponential time in any validator.
const PATHS: u64 = 20_000;

/// Refuses a schema that is too deep, too large, or multiplies through its references.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    let mut pending = vec![(schema, 1_usize)];
    let mut values = 0_usize;
    let mut text = 0_usize;
    while let Some((value, depth)) = pending.pop() {
        values += 1;
        if depth > DEPTH {
            return Err(SchemaError::TooDeep { limit: DEPTH });
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
        if values + pending.len() > VALUES {
            return Err(SchemaError::TooLarge {
                what: "values",
                limit: VALUES,
            });
        }
        if text > TEXT {
            return Err(SchemaError::TooLarge {
                what: "bytes of text",
                limit: TEXT,
            });
        }
    }
    let mut paths = Paths {
        document: schema,
        known: HashMap::new(),
    };
    if paths.count(schema, 0) > PATHS {
        return Err(SchemaError::Multiplies);
    }
    Ok(())
}

/// Counts the subschemas that apply to one and the same value.
struct Paths<'s> {
    document: &'s Value,
    known: HashMap<*const Value, u64>,
}

impl<'s> Paths<'s> {
    /// The largest count at `schema` or anywhere below it.
    ///
    /// Steps into a value count as well as those that stay on it: a schema cannot be told to be
    /// harmless by either alone. A cycle counts once; instances bound how often it is taken.
    fn count(&mut self, schema: &'s Value, hops: usize) -> u64 {
        let Some(keywords) = schema.as_object() else {
            return 1;
        };
        let key = std::ptr::from_ref(schema);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        // A chain of references longer than any schema is deep has to be walked no further.
        if hops > DEPTH * 2 {
            return 1;
        }
        self.known.insert(key, 1);
        let mut total = 1_u64;
        if let Some(pointer) = keywords.get("$ref").and_then(Value::as_str)
            && let Some(target) = pointer
                .strip_prefix('#')
                .and_then(|pointer| self.document.pointer(pointer))
        {
            total = total.saturating_add(self.count(target, hops + 1));
        }
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(branches)) => {
                    for branch in branches {
                        total = total.saturating_add(self.count(branch, hops + 1));
                    }
                }
                (
                    "properties" | "patternProperties" | "dependentSchemas" | "dependencies",
                    Value::Object(entries),
                ) => {
                    for entry in entries.values() {
                        total = total.saturating_add(self.count(entry, hops + 1));
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
                ) => total = total.saturating_add(self.count(value, hops + 1)),
                _ => {}
            }
        }
        self.known.insert(key, total);
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn a_deep_schema_is_refused_without_descending_into_it() {
        let mut schema = json!({});
        for _ in 0..200 {
            schema = json!({"not": schema});
        }
        assert!(matches!(check(&schema), Err(SchemaError::TooDeep { .. })));
    }

    #[test]
    fn references_that_double_at_every_step_are_refused() {
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
    fn a_schema_that_refers_to_itself_is_no_such_thing() {
        let schema = json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        assert!(check(&schema).is_ok());
    }
}
