//! The constraints of a schema: the keyword occurrences that can be violated one at a time.
//!
//! The instances that violate exactly one constraint are those that the schema without it accepts and
//! the schema with it rejects: a subtraction, the same for every keyword and at any depth. An empty
//! difference proves that the constraint has no effect.

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use crate::json_pointer;

/// One occurrence of an assertion keyword.
///
/// `required` occurs once for each name. A subschema that is `false` counts as an occurrence of the
/// keyword `false`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Constraint {
    /// The JSON pointer of the schema object that holds the keyword.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// The name, for `required`.
    pub name: Option<String>,
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.pointer, self.keyword)?;
        match &self.name {
            Some(name) => write!(formatter, " {name:?}"),
            None => Ok(()),
        }
    }
}

/// Keywords that are assertions or contain some.
const ASSERTION_KEYWORDS: [&str; 36] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "propertyNames",
    "type",
    "unevaluatedItems",
    "uniqueItems",
];

/// Keywords whose value is one subschema.
const SUBSCHEMA_KEYWORDS: [&str; 14] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "extends",
    "disallow",
];

/// Keywords whose value is a list of subschemas.
const SUBSCHEMA_LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value is an object of subschemas.
const SUBSCHEMA_MAP_KEYWORDS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Every constraint in a schema, in document order.
pub(super) fn constraints(schema: &Value) -> Vec<Constraint> {
    let mut constraints = Vec::new();
    collect(schema, &mut String::new(), &mut constraints);
    constraints
}

fn collect(schema: &Value, pointer: &mut String, constraints: &mut Vec<Constraint>) {
    let mut add = |keyword: &str, name: Option<String>| {
        constraints.push(Constraint { pointer: pointer.clone(), keyword: keyword.to_owned(), name });
    };
    let Some(keywords) = schema.as_object() else {
        if *schema == Value::Bool(false) {
            add("false", None);
        }
        return;
    };
    for (keyword, value) in keywords {
        if keyword == "required" {
            for name in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
                add(keyword, Some(name.to_owned()));
            }
        } else if ASSERTION_KEYWORDS.contains(&keyword.as_str()) || keyword == "unevaluatedProperties" {
            add(keyword, None);
        }
    }
    for (keyword, value) in keywords {
        let name = keyword.as_str();
        let length = pointer.len();
        match value {
            Value::Object(_) if SUBSCHEMA_KEYWORDS.contains(&name) => {
                json_pointer::push(pointer, keyword);
                collect(value, pointer, constraints);
            }
            // `additionalProperties: false` is a constraint already.
            Value::Bool(false) if matches!(name, "items" | "then" | "else") => {
                json_pointer::push(pointer, keyword);
                collect(value, pointer, constraints);
            }
            Value::Array(branches) if SUBSCHEMA_LIST_KEYWORDS.contains(&name) => {
                for (position, branch) in branches.iter().enumerate() {
                    let length = pointer.len();
                    json_pointer::push(pointer, keyword);
                    json_pointer::push(pointer, &position.to_string());
                    collect(branch, pointer, constraints);
                    pointer.truncate(length);
                }
            }
            Value::Object(entries) if SUBSCHEMA_MAP_KEYWORDS.contains(&name) => {
                for (entry, subschema) in entries {
                    let length = pointer.len();
                    json_pointer::push(pointer, keyword);
                    json_pointer::push(pointer, entry);
                    collect(subschema, pointer, constraints);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        pointer.truncate(length);
    }
}

/// The schema without one constraint, or `None` if it does not contain it.
pub(super) fn relax(schema: &Value, constraint: &Constraint, dialect: Dialect) -> Option<Value> {
    let mut relaxed = schema.clone();
    let subschema = relaxed.pointer_mut(&constraint.pointer)?;
    if constraint.keyword == "false" {
        *subschema = Value::Bool(true);
        return Some(relaxed);
    }
    let keywords = subschema.as_object_mut()?;
    if let Some(name) = &constraint.name {
        let names = keywords.get_mut(&constraint.keyword)?.as_array_mut()?;
        let position = names.iter().position(|known| known == name.as_str())?;
        names.remove(position);
        // Draft 4 has no empty list of required names.
        if names.is_empty() {
            keywords.shift_remove(&constraint.keyword);
        }
        return Some(relaxed);
    }
    let listed = keywords.shift_remove(&constraint.keyword)?;
    if keywords.get("type").is_some_and(|types| is_implied_by_values(types, &constraint.keyword, &listed)) {
        // A type next to a list of its values adds nothing, and would exclude values of every other type.
        keywords.shift_remove("type");
    }
    if dialect == Dialect::Draft4 {
        // In this draft the exclusive bound is a flag of the other keyword and must not occur alone.
        match constraint.keyword.as_str() {
            "maximum" => keywords.shift_remove("exclusiveMaximum"),
            "minimum" => keywords.shift_remove("exclusiveMinimum"),
            _ => None,
        };
    }
    Some(relaxed)
}

/// Whether every value of an `enum` or `const` is of the type next to it.
fn is_implied_by_values(types: &Value, keyword: &str, listed: &Value) -> bool {
    let types: Vec<&str> = match types {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return false,
    };
    let is_of = |value: &Value| {
        let own: &[&str] = match value {
            Value::Null => &["null"],
            Value::Bool(_) => &["boolean"],
            Value::Number(number) if number.is_f64() => &["number"],
            Value::Number(_) => &["integer", "number"],
            Value::String(_) => &["string"],
            Value::Array(_) => &["array"],
            Value::Object(_) => &["object"],
        };
        types.iter().any(|known| own.contains(known))
    };
    match (keyword, listed) {
        ("enum", Value::Array(values)) => values.iter().all(is_of),
        ("const", value) => is_of(value),
        _ => false,
    }
}

/// A schema that asserts one constraint and nothing else.
///
/// Subtracting it is much faster than subtracting a whole schema. `None` for keywords whose
/// meaning depends on other places: references and `unevaluated*`.
pub(super) fn alone(schema: &Value, constraint: &Constraint) -> Option<Value> {
    if constraint.keyword == "false" {
        return Some(Value::Bool(false));
    }
    let keywords = schema.pointer(&constraint.pointer)?.as_object()?;
    let keyword = constraint.keyword.as_str();
    if keyword.starts_with('$') || keyword.starts_with("unevaluated") {
        return None;
    }
    if let Some(name) = &constraint.name {
        return Some(json!({keyword: [name]}));
    }
    let mut alone_schema = Map::new();
    alone_schema.insert(keyword.to_owned(), keywords.get(keyword)?.clone());
    for sibling in siblings(keyword) {
        if let Some(value) = keywords.get(*sibling) {
            alone_schema.insert((*sibling).to_owned(), accept_all(sibling, value));
        }
    }
    let alone_schema = Value::Object(alone_schema);
    (!has_references(&alone_schema)).then_some(alone_schema)
}

/// The sibling keywords that affect the meaning of a keyword.
fn siblings(keyword: &str) -> &'static [&'static str] {
    match keyword {
        "additionalProperties" => &["properties", "patternProperties"],
        "items" => &["prefixItems"],
        "additionalItems" => &["items"],
        "contains" | "minContains" | "maxContains" => &["contains", "minContains", "maxContains"],
        "if" => &["then", "else"],
        "maximum" => &["exclusiveMaximum"],
        "minimum" => &["exclusiveMinimum"],
        "exclusiveMaximum" => &["maximum"],
        "exclusiveMinimum" => &["minimum"],
        _ => &[],
    }
}

/// A sibling of which only the keys matter, with subschemas that accept everything.
fn accept_all(sibling: &str, value: &Value) -> Value {
    match (sibling, value) {
        ("properties" | "patternProperties", Value::Object(entries)) => {
            let open = |name: &String| (name.clone(), json!({}));
            Value::Object(entries.keys().map(open).collect())
        }
        ("prefixItems" | "items", Value::Array(slots)) => Value::Array(vec![json!({}); slots.len()]),
        // In newer drafts an exclusive bound is a number, not a flag.
        _ => value.clone(),
    }
}

fn has_references(schema: &Value) -> bool {
    match schema {
        Value::Object(entries) => {
            entries.iter().any(|(key, value)| key.ends_with("ef") && key.starts_with('$') || has_references(value))
        }
        Value::Array(items) => items.iter().any(has_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constraint_is_found_once_and_required_by_name() {
        let schema = json!({
            "type": "object",
            "properties": {"a/b": {"type": "string", "maxLength": 3}, "no": false},
            "required": ["a/b", "c"],
            "additionalProperties": false
        });
        let found: Vec<String> = constraints(&schema).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                " type",
                " required \"a/b\"",
                " required \"c\"",
                " additionalProperties",
                "/properties/a~1b type",
                "/properties/a~1b maxLength",
                "/properties/no false",
            ]
        );
    }

    #[test]
    fn relaxing_removes_one_constraint_and_nothing_else() {
        let schema = json!({"required": ["a", "b"], "maximum": 3, "exclusiveMaximum": true});
        let constraint = |keyword: &str, name: Option<&str>| Constraint {
            pointer: String::new(),
            keyword: keyword.to_owned(),
            name: name.map(str::to_owned),
        };
        assert_eq!(
            relax(&schema, &constraint("required", Some("a")), Dialect::Draft4),
            Some(json!({"required": ["b"], "maximum": 3, "exclusiveMaximum": true}))
        );
        assert_eq!(
            relax(&schema, &constraint("maximum", None), Dialect::Draft4),
            Some(json!({"required": ["a", "b"]}))
        );
        assert_eq!(relax(&schema, &constraint("minimum", None), Dialect::Draft4), None);
        let listed = json!({"type": "string", "enum": ["a", "b"], "minLength": 1});
        assert_eq!(relax(&listed, &constraint("enum", None), Dialect::Draft7), Some(json!({"minLength": 1})));
        let mixed = json!({"type": "string", "enum": ["a", null]});
        assert_eq!(relax(&mixed, &constraint("enum", None), Dialect::Draft7), Some(json!({"type": "string"})));
    }
}
