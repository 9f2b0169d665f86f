//! The tool `search`: an enumeration, a range, a list of unique items, a date and a choice of three filters.

use serde_json::{Value, json};

use super::arguments::{
    Check, allow_only, array, boolean, date, integer_in_range, number, object, one_of, optional, require, string,
};
use crate::reference::call::ToolOutput;
use crate::reference::message::Object;

const SORTS: [&str; 5] = ["name", "size", "date", "owner", "rank"];
const KINDS: [&str; 3] = ["file", "folder", "link"];

pub(super) fn input() -> Value {
    let range = json!({
        "type": "object",
        "properties": {"kind": {"const": "range"}, "from": {"type": "number"}, "to": {"type": "number"}},
        "required": ["kind", "from"],
        "additionalProperties": false,
    });
    let matching = json!({
        "type": "object",
        "properties": {"kind": {"const": "match"}, "text": {"type": "string"}, "fold": {"type": "boolean"}},
        "required": ["kind", "text"],
        "additionalProperties": false,
    });
    let kinds = json!({"type": "array", "items": {"type": "string", "enum": KINDS}, "minItems": 1});
    let any = json!({
        "type": "object",
        "properties": {"kind": {"const": "any"}, "of": kinds},
        "required": ["kind", "of"],
        "additionalProperties": false,
    });
    let tag = json!({"type": "string", "maxLength": 12});
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 64, "description": "What to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
            "sort": {"type": "string", "enum": SORTS},
            "tags": {"type": "array", "items": tag, "uniqueItems": true, "maxItems": 5},
            "after": {"type": "string", "format": "date"},
            "filter": {"oneOf": [range, matching, any]},
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

pub(super) fn output() -> Value {
    let hit = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 0}},
        "required": ["name", "size"],
    });
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "total": {"type": "integer", "minimum": 0},
            "hits": {"type": "array", "items": hit},
        },
        "required": ["query", "total", "hits"],
    })
}

pub(super) fn check(arguments: &Object) -> Check {
    require(arguments, &["query"])?;
    allow_only(arguments, &["query", "limit", "sort", "tags", "after", "filter"])?;
    optional(arguments, "query", |value| string(value, 1, 64))?;
    optional(arguments, "limit", |value| integer_in_range(value, 1, 100))?;
    optional(arguments, "sort", |value| one_of(value, &SORTS))?;
    optional(arguments, "tags", tags)?;
    optional(arguments, "after", date)?;
    optional(arguments, "filter", filter)
}

fn tags(value: &Value) -> Check {
    array(value, 5, |tag| string(tag, 0, 12))?;
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    if (1..items.len()).any(|at| items[..at].contains(&items[at])) {
        return Err("must not contain duplicates".to_owned());
    }
    Ok(())
}

fn filter(value: &Value) -> Check {
    let members = object(value)?;
    match members.get("kind").and_then(Value::as_str) {
        Some("range") => {
            require(members, &["from"])?;
            allow_only(members, &["kind", "from", "to"])?;
            optional(members, "from", number)?;
            optional(members, "to", number)
        }
        Some("match") => {
            require(members, &["text"])?;
            allow_only(members, &["kind", "text", "fold"])?;
            optional(members, "text", |value| string(value, 0, usize::MAX))?;
            optional(members, "fold", boolean)
        }
        Some("any") => {
            require(members, &["of"])?;
            allow_only(members, &["kind", "of"])?;
            optional(members, "of", |value| {
                if value.as_array().is_some_and(Vec::is_empty) {
                    return Err("must contain at least one kind".to_owned());
                }
                array(value, usize::MAX, |kind| one_of(kind, &KINDS))
            })
        }
        _ => Err("must be a filter of the kind range, match or any".to_owned()),
    }
}

/// Returns as many hits as the query has letters, but at most `limit` and at most three.
pub(super) fn run(arguments: &Object) -> ToolOutput {
    let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
    let limit = arguments.get("limit").and_then(Value::as_f64).unwrap_or(10.0);
    let total = query.chars().filter(|letter| letter.is_alphabetic()).count();
    let hits: Vec<Value> = (1_u32..=3)
        .take(total)
        .filter(|place| f64::from(*place) <= limit)
        .map(|place| json!({"name": format!("{query}-{place}"), "size": place * 10}))
        .collect();
    ToolOutput::structured(json!({"query": query, "total": total, "hits": hits}))
}
