//! A message deformed in every way that a table knows, one at a time.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// A message with one thing changed.
pub(super) struct Deformed {
    pub(super) message: Value,
    /// The pointer to the change, positions as `*`.
    pub(super) place: String,
    pub(super) kind: &'static str,
}

/// Every deformation of a message at every place.
pub(super) fn deform(message: &Value) -> Vec<Deformed> {
    let mut places = Vec::new();
    collect(message, "", "", &mut places);
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (pointer, place) in &places {
        let Some(value) = message.pointer(pointer) else { continue };
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
                    let name = name.replace("~1", "/").replace("~0", "~");
                    match copy.pointer_mut(parent) {
                        Some(Value::Object(members)) => {
                            members.shift_remove(&name);
                        }
                        _ => return,
                    }
                }
            }
            if known.insert(copy.to_string()) {
                found.push(Deformed { message: copy, place: place.clone(), kind });
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

/// The pointer to every value within a message, and the same with positions as `*`.
fn collect(value: &Value, pointer: &str, place: &str, places: &mut Vec<(String, String)>) {
    if !pointer.is_empty() {
        places.push((pointer.to_owned(), place.to_owned()));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(member, &format!("{pointer}/{name}"), &format!("{place}/{name}"), places);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &format!("{pointer}/{at}"), &format!("{place}/*"), places);
            }
        }
        _ => {}
    }
}
