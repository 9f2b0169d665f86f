//! Mutations of a message, one at a time.

use std::collections::BTreeSet;

use mcp_conformance::internals::json_pointer::{join, unescape};
use serde_json::{Value, json};

/// A message with one thing changed.
pub(super) struct MutatedMessage {
    pub(super) message: Value,
    /// The pointer to the change, with array indexes as `*`.
    pub(super) location: String,
    pub(super) kind: &'static str,
    /// The `type` of the innermost object around the change that has one, such as `image`.
    pub(super) variant: String,
}

/// Every mutation of a message at every location.
pub(super) fn mutate(message: &Value) -> Vec<MutatedMessage> {
    let mut locations = Vec::new();
    collect(message, "", "", &mut locations);
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (pointer, location) in &locations {
        let Some(value) = message.pointer(pointer) else { continue };
        let variant = variant_of(message, pointer);
        let mut add = |kind: &'static str, changed: Option<Value>| {
            let mut copy = message.clone();
            match changed {
                Some(changed) if changed != *value => {
                    if let Some(target) = copy.pointer_mut(pointer) {
                        *target = changed;
                    }
                }
                Some(_) => return,
                None => {
                    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
                    let name = unescape(name);
                    match copy.pointer_mut(parent) {
                        Some(Value::Object(members)) => {
                            members.shift_remove(&name);
                        }
                        _ => return,
                    }
                }
            }
            if known.insert(copy.to_string()) {
                found.push(MutatedMessage {
                    message: copy,
                    location: location.clone(),
                    kind,
                    variant: variant.clone(),
                });
            }
        };
        add("dropped", None);
        for (kind, other) in [
            ("null", Value::Null),
            ("boolean", json!(true)),
            ("integer", json!(7)),
            ("negative", json!(-3)),
            ("fraction", json!(1.5)),
            ("text", json!("conformance")),
            ("empty text", json!("")),
            ("empty array", json!([])),
            ("array of numbers", json!([5])),
            ("empty object", json!({})),
        ] {
            add(kind, Some(other));
        }
        add("number as text", value.is_number().then(|| json!(value.to_string())).or(Some(value.clone())));
        add("wrapped in an array", Some(json!([value])));
        match value {
            Value::Object(members) => {
                let mut more = members.clone();
                more.insert("conformanceUnknown".to_owned(), json!({"a": [1]}));
                add("unknown member", Some(Value::Object(more)));
            }
            Value::Array(items) => {
                for (kind, item) in [("null item", Value::Null), ("number item", json!(5)), ("object item", json!({}))]
                {
                    let mut more = items.clone();
                    more.push(item);
                    add(kind, Some(Value::Array(more)));
                }
            }
            _ => {}
        }
    }
    found
}

/// The `type` of the innermost object around a value that has one.
fn variant_of(message: &Value, pointer: &str) -> String {
    let mut around = pointer;
    while let Some((parent, _)) = around.rsplit_once('/') {
        if let Some(kind) = message.pointer(parent).and_then(|parent| parent["type"].as_str()) {
            return kind.to_owned();
        }
        around = parent;
    }
    String::new()
}

/// The pointer to every value in a message, and the same pointer with array indexes as `*`.
fn collect(value: &Value, pointer: &str, location: &str, locations: &mut Vec<(String, String)>) {
    if !pointer.is_empty() {
        locations.push((pointer.to_owned(), location.to_owned()));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                collect(member, &join(pointer, name), &join(location, name), locations);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &format!("{pointer}/{at}"), &format!("{location}/*"), locations);
            }
        }
        _ => {}
    }
}
