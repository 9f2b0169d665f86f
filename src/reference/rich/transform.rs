//! The tool `transform`: free text, unbounded numbers, steps within steps, and an open object.

use serde_json::{Value, json};

use super::arguments::{Check, has, has_only, list, number, object, optional, text, whole, word};
use crate::reference::call::Reply;
use crate::reference::message::Object;

const OPERATIONS: [&str; 5] = ["upper", "lower", "trim", "reverse", "group"];

pub(super) fn input() -> Value {
    let step = json!({
        "type": "object",
        "properties": {
            "op": {"type": "string", "enum": OPERATIONS},
            "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
            "inner": {"type": "array", "items": {"$ref": "#/$defs/step"}, "maxItems": 4},
        },
        "required": ["op"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "repeat": {"type": "integer"},
            "factor": {"type": "number"},
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}, "maxItems": 8},
            "options": {"type": "object", "additionalProperties": {"type": ["string", "boolean"]}},
        },
        "required": ["text"],
        "$defs": {"step": step},
    })
}

pub(super) fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "length": {"type": "integer", "minimum": 0},
            "repeat": {"type": "integer"},
        },
        "required": ["text", "length"],
        "additionalProperties": false,
    })
}

pub(super) fn check(arguments: &Object) -> Check {
    has(arguments, &["text"])?;
    optional(arguments, "text", |value| text(value, 0, usize::MAX))?;
    optional(arguments, "repeat", whole)?;
    optional(arguments, "factor", number)?;
    optional(arguments, "steps", |value| list(value, 8, step))?;
    optional(arguments, "options", |value| {
        match object(value)?.values().find(|option| !option.is_string() && !option.is_boolean()) {
            Some(_) => Err("must hold strings and truths only".to_owned()),
            None => Ok(()),
        }
    })
}

fn step(value: &Value) -> Check {
    let members = object(value)?;
    has(members, &["op"])?;
    has_only(members, &["op", "code", "inner"])?;
    optional(members, "op", |value| word(value, &OPERATIONS))?;
    optional(members, "code", code)?;
    optional(members, "inner", |value| list(value, 4, step))
}

fn code(value: &Value) -> Check {
    let shaped = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() == 6
            && bytes[..2].iter().all(u8::is_ascii_uppercase)
            && bytes[2] == b'-'
            && bytes[3..].iter().all(u8::is_ascii_digit)
    };
    match value.as_str() {
        Some(text) if shaped(text) => Ok(()),
        _ => Err("must be a code such as AB-123".to_owned()),
    }
}

pub(super) fn run(arguments: &Object) -> Reply {
    let mut text = arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    for step in arguments.get("steps").and_then(Value::as_array).into_iter().flatten() {
        apply(step, &mut text);
    }
    let length = text.chars().count();
    let mut result = json!({"text": text, "length": length});
    if let Some(repeat) = arguments.get("repeat") {
        result["repeat"] = repeat.clone();
    }
    Reply::structured(result)
}

fn apply(step: &Value, text: &mut String) {
    match step["op"].as_str() {
        Some("upper") => *text = text.to_uppercase(),
        Some("lower") => *text = text.to_lowercase(),
        Some("trim") => *text = text.trim().to_owned(),
        Some("reverse") => *text = text.chars().rev().collect(),
        _ => {}
    }
    for inner in step["inner"].as_array().into_iter().flatten() {
        apply(inner, text);
    }
}
