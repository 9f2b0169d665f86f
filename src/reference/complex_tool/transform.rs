//! The tool `transform`: free text, unbounded numbers, nested steps, and an open object.

use serde_json::{Value, json};

use super::arguments::{Check, allow_only, array, integer, number, object, one_of, optional, require, string};
use crate::reference::call::ToolOutput;
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
    require(arguments, &["text"])?;
    optional(arguments, "text", |value| string(value, 0, usize::MAX))?;
    optional(arguments, "repeat", integer)?;
    optional(arguments, "factor", number)?;
    optional(arguments, "steps", |value| array(value, 8, step))?;
    optional(arguments, "options", |value| {
        match object(value)?.values().find(|option| !option.is_string() && !option.is_boolean()) {
            Some(_) => Err("must have string or boolean values only".to_owned()),
            None => Ok(()),
        }
    })
}

fn step(value: &Value) -> Check {
    let members = object(value)?;
    require(members, &["op"])?;
    allow_only(members, &["op", "code", "inner"])?;
    optional(members, "op", |value| one_of(value, &OPERATIONS))?;
    optional(members, "code", code)?;
    optional(members, "inner", |value| array(value, 4, step))
}

fn code(value: &Value) -> Check {
    let shaped = |string: &str| {
        let bytes = string.as_bytes();
        bytes.len() == 6
            && bytes[..2].iter().all(u8::is_ascii_uppercase)
            && bytes[2] == b'-'
            && bytes[3..].iter().all(u8::is_ascii_digit)
    };
    match value.as_str() {
        Some(string) if shaped(string) => Ok(()),
        _ => Err("must be a code such as AB-123".to_owned()),
    }
}

pub(super) fn run(arguments: &Object) -> ToolOutput {
    let mut string = arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    for step in arguments.get("steps").and_then(Value::as_array).into_iter().flatten() {
        apply(step, &mut string);
    }
    let length = string.chars().count();
    let mut result = json!({"text": string, "length": length});
    if let Some(repeat) = arguments.get("repeat") {
        result["repeat"] = repeat.clone();
    }
    ToolOutput::structured(result)
}

fn apply(step: &Value, string: &mut String) {
    match step["op"].as_str() {
        Some("upper") => *string = string.to_uppercase(),
        Some("lower") => *string = string.to_lowercase(),
        Some("trim") => *string = string.trim().to_owned(),
        Some("reverse") => *string = string.chars().rev().collect(),
        _ => {}
    }
    for inner in step["inner"].as_array().into_iter().flatten() {
        apply(inner, string);
    }
}
