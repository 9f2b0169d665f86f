//! Limits the number of cases to which a schema expands.
//!
//! Ten independent `anyOf` of two branches are a thousand cases in the canonical form, and twenty a
//! million. The canonical form gives up on them by itself, but only after seconds. Such schemas are
//! simplified first: the result accepts other instances than the schema, so everything generated from
//! it must be checked against the schema.

use std::collections::HashMap;

use serde_json::Value;

/// The maximum number of cases; a schema with more is simplified.
const MAX_CASES: u64 = 256;
/// Keywords that simplification removes.
const CONDITIONAL_KEYWORDS: [&str; 6] = ["if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"];
/// How many conditions are satisfied one at a time.
const MAX_VARIANTS: usize = 30;
/// How many references are followed.
const MAX_REFERENCES: usize = 64;

/// The simplified variants of a schema, and its number of cases.
pub(super) struct Expansion {
    /// The simplified schemas, the plainest first; empty if the schema has few enough cases.
    pub(super) variants: Vec<Value>,
    /// The largest number of cases for any one value.
    pub(super) cases: u64,
}

/// Simplifies a schema if it expands to too many cases.
pub(super) fn limit_expansion(schema: &Value) -> Expansion {
    let mut count = CaseCounter::of(schema);
    let cases = count.all(schema);
    if cases <= MAX_CASES {
        return Expansion { variants: Vec::new(), cases };
    }
    let conditions = conditions(schema);
    let mut chosen: Vec<&[String]> = vec![&[]];
    // Schemas with a case for each value of a property need one condition at a time.
    chosen.extend(conditions.chunks(1).take(MAX_VARIANTS));
    chosen.push(&conditions);
    let variants = chosen
        .into_iter()
        .map(|required| {
            let mut variant = schema.clone();
            for pointer in required {
                require_condition(&mut variant, pointer);
            }
            simplify(&mut variant);
            variant
        })
        .collect();
    Expansion { variants, cases }
}

/// The pointers of the conditions on the root.
fn conditions(schema: &Value) -> Vec<String> {
    let parts = schema.get("allOf").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().enumerate();
    let root = [(String::new(), schema)];
    root.into_iter()
        .chain(parts.map(|(position, part)| (format!("/allOf/{position}"), part)))
        .filter(|(_, part)| part.get("if").is_some())
        .map(|(pointer, _)| pointer)
        .collect()
}

/// Replaces a condition by its `if` and `then`, both required.
fn require_condition(schema: &mut Value, pointer: &str) {
    let Some(keywords) = schema.pointer_mut(pointer).and_then(Value::as_object_mut) else {
        return;
    };
    let branches: Vec<Value> =
        ["if", "then"].into_iter().filter_map(|keyword| keywords.shift_remove(keyword)).collect();
    match keywords.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(parts) => parts.extend(branches),
        None => {
            keywords.insert("allOf".to_owned(), Value::Array(branches));
        }
    }
}

struct CaseCounter<'s> {
    document: &'s Value,
    known: HashMap<*const Value, u64>,
    most: u64,
}

impl<'s> CaseCounter<'s> {
    fn of(document: &'s Value) -> Self {
        Self { document, known: HashMap::new(), most: 1 }
    }

    /// The largest number of cases anywhere in a schema.
    fn all(&mut self, schema: &'s Value) -> u64 {
        let mut pending = vec![schema];
        while let Some(value) = pending.pop() {
            match value {
                Value::Object(entries) => {
                    self.cases(value, 0);
                    pending.extend(entries.values());
                }
                Value::Array(items) => pending.extend(items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        self.most
    }

    /// The number of cases of `schema` for one value.
    fn cases(&mut self, schema: &'s Value, hops: usize) -> u64 {
        let Some(keywords) = schema.as_object() else {
            return 1;
        };
        let key = std::ptr::from_ref(schema);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        self.known.insert(key, 1);
        let mut total = 1_u64;
        for (keyword, value) in keywords {
            let factor = match (keyword.as_str(), value) {
                ("allOf", Value::Array(parts)) => {
                    parts.iter().map(|part| self.cases(part, hops)).fold(1, u64::saturating_mul)
                }
                ("anyOf" | "oneOf", Value::Array(branches)) => {
                    branches.iter().map(|branch| self.cases(branch, hops)).fold(0, u64::saturating_add).max(1)
                }
                ("if", condition) if keywords.contains_key("then") || keywords.contains_key("else") => {
                    let part = |name| keywords.get(name);
                    let then = part("then").map_or(1, |then| self.cases(then, hops));
                    let otherwise = part("else").map_or(1, |otherwise| self.cases(otherwise, hops));
                    let condition = self.cases(condition, hops);
                    condition.saturating_mul(then.saturating_add(otherwise))
                }
                ("dependentRequired" | "dependentSchemas" | "dependencies", Value::Object(entries)) => {
                    entries.values().map(|entry| self.cases(entry, hops).saturating_add(1)).fold(1, u64::saturating_mul)
                }
                ("not", negated) => self.cases(negated, hops),
                ("$ref", Value::String(reference)) if hops < MAX_REFERENCES => {
                    let pointer = reference.strip_prefix('#');
                    match pointer.and_then(|pointer| self.document.pointer(pointer)) {
                        Some(target) => self.cases(target, hops + 1),
                        None => 1,
                    }
                }
                _ => 1,
            };
            total = total.saturating_mul(factor);
        }
        self.known.insert(key, total);
        self.most = self.most.max(total);
        total
    }
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            // A property with the name of a keyword loses its schema too. This does no harm, since everything
            // generated from the simplified schema is checked.
            for keyword in CONDITIONAL_KEYWORDS {
                keywords.shift_remove(keyword);
            }
            for (keyword, value) in keywords.iter_mut() {
                if let ("anyOf" | "oneOf", Value::Array(branches)) = (keyword.as_str(), &mut *value) {
                    branches.truncate(1);
                }
                simplify(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn alternatives_multiply_and_too_many_are_simplified() {
        let either = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        let few = json!({"allOf": [either, either, either]});
        assert_eq!(limit_expansion(&few).cases, 8);
        assert!(limit_expansion(&few).variants.is_empty());
        let many = json!({"allOf": vec![either; 20]});
        let expansion = limit_expansion(&many);
        assert_eq!(expansion.cases, 1 << 20);
        assert_eq!(limit_expansion(&expansion.variants[0]).cases, 1);
    }

    #[test]
    fn conditions_are_satisfied_one_at_a_time_and_all_together() {
        let cases: Vec<Value> = (0..12)
            .map(|kind| {
                let then = json!({"required": [format!("p{kind}")]});
                json!({"if": {"properties": {"kind": {"const": kind}}}, "then": then})
            })
            .collect();
        let expansion = limit_expansion(&json!({"allOf": cases}));
        assert_eq!(expansion.variants.len(), 14);
        assert_eq!(
            expansion.variants[2]["allOf"][1],
            json!({"allOf": [
                {"properties": {"kind": {"const": 1}}},
                {"required": ["p1"]}
            ]})
        );
        assert_eq!(expansion.variants[2]["allOf"][0], json!({}));
    }

    #[test]
    fn references_count_and_cycles_end() {
        let schema = json!({
            "$ref": "#/$defs/a",
            "anyOf": [{"type": "null"}, {"type": "object"}],
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {}, {}]}}
        });
        assert_eq!(limit_expansion(&schema).cases, 6);
    }
}
