//! Values of another JSON type that validators convert, and the empty values of each type.

use serde_json::{Map, Value, json};

use super::edit::{Edits, edit};
use super::site::types_of;

/// The edits of a value with a declared type, or of one without any, by type.
pub(super) fn edits(keywords: &Map<String, Value>, current: &Value) -> Vec<Edits> {
    if keywords.contains_key("enum") || keywords.contains_key("const") {
        return Vec::new();
    }
    let types = types_of(keywords);
    if types.is_empty() {
        return if keywords.contains_key("$ref") { Vec::new() } else { vec![any(current)] };
    }
    let mut edits: Vec<Edits> = types
        .iter()
        .map(|name| match *name {
            "integer" | "number" => numbers(current),
            "string" => strings(current),
            "boolean" => booleans(),
            "array" => arrays(current),
            "object" => objects(current),
            _ => nulls(),
        })
        .collect();
    if types.len() > 1 {
        edits.insert(0, any_of_types(&types));
    }
    edits
}

/// An array of a value, for validators that unwrap it.
fn wrapped(current: &Value) -> Value {
    json!([current])
}

fn numbers(current: &Value) -> Edits {
    let text = if current.is_number() { current.to_string() } else { "5".to_owned() };
    vec![
        edit("text-to-number", text.clone()),
        edit("boolean-to-number", true),
        edit("null-is-absent", Value::Null),
        edit("empty-text-to-number", ""),
        edit("array-of-one-to-value", wrapped(current)),
        edit("object-to-value", json!({})),
        edit("text-to-number-with-space", format!(" {text} ")),
        edit("text-to-number-in-part", format!("{text}px")),
        edit("text-to-number-by-literal", "0x10"),
        edit("text-to-number-by-literal", "1e1"),
        edit("word-to-number", "NaN"),
        edit("word-to-number", "ten"),
        edit("boolean-to-number", false),
    ]
}

fn strings(current: &Value) -> Edits {
    let mut edits = vec![
        edit("number-to-text", 123_456),
        edit("null-is-absent", Value::Null),
        edit("boolean-to-text", true),
        edit("array-of-one-to-value", wrapped(current)),
        edit("object-to-value", json!({})),
        edit("number-to-text", 0),
        edit("array-to-text", json!(["a", "b"])),
    ];
    if let Some(size) = current.as_str().map(|text| text.chars().count()).filter(|size| (1..=15).contains(size)) {
        let power = 10_i64.pow(u32::try_from(size - 1).unwrap_or(0));
        edits.insert(1, edit("number-to-text", power));
    }
    edits
}

fn booleans() -> Edits {
    vec![
        edit("text-to-boolean", "true"),
        edit("number-to-boolean", 1),
        edit("null-is-absent", Value::Null),
        edit("number-to-boolean", 0),
        edit("text-to-boolean", "false"),
        edit("empty-text-to-boolean", ""),
        edit("array-of-one-to-value", json!([true])),
        edit("word-to-boolean", "yes"),
        edit("any-text-is-true", "abc"),
        edit("false-is-empty", false),
        edit("object-to-value", json!({})),
    ]
}

fn arrays(current: &Value) -> Edits {
    let first = current.get(0).cloned().unwrap_or_else(|| json!("a"));
    vec![
        edit("value-to-array", first),
        edit("text-to-array", current.to_string()),
        edit("null-is-absent", Value::Null),
        edit("object-is-array", json!({})),
        edit("object-is-array", json!({"0": current.get(0)})),
        edit("empty-array-rejected", json!([])),
        edit("text-is-array", "abc"),
        edit("text-to-array-by-commas", "a,b"),
        edit("empty-text-is-array", ""),
        edit("value-to-array", true),
        edit("value-to-array", 0),
    ]
}

fn objects(current: &Value) -> Edits {
    vec![
        edit("array-is-object", json!([])),
        edit("null-is-object", Value::Null),
        edit("text-to-object", current.to_string()),
        edit("empty-object-rejected", json!({})),
        edit("array-of-one-to-value", wrapped(current)),
        edit("value-is-object", "abc"),
        edit("value-is-object", 1),
        edit("value-is-object", true),
    ]
}

fn nulls() -> Edits {
    vec![
        edit("empty-text-to-null", ""),
        edit("word-to-null", "null"),
        edit("zero-to-null", 0),
        edit("false-to-null", false),
        edit("empty-to-null", json!([])),
        edit("empty-to-null", json!({})),
    ]
}

/// A value of each type, the least likely first.
const ONE_OF_EACH: [fn() -> Value; 9] = [
    || Value::Null,
    || json!(1.5),
    || json!(1),
    || json!("a"),
    || json!(true),
    || json!([]),
    || json!({}),
    || json!(""),
    || json!(15),
];

fn any_of_types(types: &[&str]) -> Edits {
    let name = |value: &Value| {
        let first = types.first().is_some_and(|first| super::site::is_of_type(value, first));
        let any = types.iter().any(|name| super::site::is_of_type(value, name));
        match (first, any) {
            (true, _) => "type-list-last-only",
            (false, true) => "type-list-first-only",
            (false, false) => "type-list-ignored",
        }
    };
    ONE_OF_EACH.iter().map(|value| value()).map(|value| edit(name(&value), value)).collect()
}

/// Values for a subschema without a type, which others may restrict.
fn any(current: &Value) -> Edits {
    let mut edits: Edits = ONE_OF_EACH.iter().map(|value| edit("untyped-value-restricted", value())).collect();
    edits.push(edit("untyped-value-restricted", wrapped(current)));
    edits
}
