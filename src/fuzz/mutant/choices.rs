//! Variations of the values of `enum` and `const`.

use serde_json::{Map, Value, json};

use super::edit::{Edits, edit};

/// How many values of an enumeration are varied.
const MAX_VARIED: usize = 4;
/// How many values of an enumeration are sent as they are.
const MAX_VALUES: usize = 24;

/// The edits of a listed value, by keyword.
pub(super) fn edits(keywords: &Map<String, Value>) -> Vec<Edits> {
    let mut edits = Vec::new();
    if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
        let mut own: Edits =
            values.iter().take(MAX_VALUES).map(|value| edit("enum-value-missing", value.clone())).collect();
        edits.push(std::mem::take(&mut own));
        let varied: Vec<Edits> = values.iter().rev().take(MAX_VARIED).map(variations).collect();
        edits.push(interleave(varied));
        edits.push(others(values));
    }
    if let Some(value) = keywords.get("const") {
        edits.push(variations(value));
        edits.push(others(std::slice::from_ref(value)));
    }
    edits
}

/// The first of each list, then the second of each, and so on.
pub(super) fn interleave<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut merged = Vec::new();
    loop {
        let before = merged.len();
        merged.extend(lists.iter_mut().filter_map(Iterator::next));
        if merged.len() == before {
            return merged;
        }
    }
}

/// Values that resemble a listed one.
fn variations(value: &Value) -> Edits {
    match value {
        Value::String(text) => texts(text),
        Value::Number(number) => {
            let mut edits = vec![edit("enum-by-text", number.to_string())];
            match number.as_f64() {
                Some(1.0) => edits.push(edit("enum-true-is-one", true)),
                Some(0.0) => edits.push(edit("enum-true-is-one", false)),
                _ => {}
            }
            edits.extend(number.as_i64().filter(|whole| whole.abs() < 1 << 53).map(|whole| {
                #[expect(clippy::cast_precision_loss, reason = "it is less than 2^53")]
                let real = whole as f64;
                edit("enum-one-is-not-1.0", real)
            }));
            edits.extend(super::numbers::plus(number, 1).map(|value| edit("enum-as-range", value)));
            edits
        }
        Value::Bool(is_true) => vec![
            edit("enum-by-text", is_true.to_string()),
            edit("enum-true-is-one", i64::from(*is_true)),
            edit("const-any-of-type", !is_true),
        ],
        Value::Null => vec![edit("enum-by-text", "null"), edit("enum-null-is-empty", "")],
        Value::Array(items) => arrays(items),
        Value::Object(members) => objects(members),
    }
}

fn texts(text: &str) -> Edits {
    let upper = text.to_uppercase();
    let mut capital: String = text.chars().take(1).flat_map(char::to_uppercase).collect();
    capital.extend(text.chars().skip(1));
    let mut shorter = text.to_owned();
    shorter.pop();
    let mut edits = vec![
        edit("enum-ignores-case", if upper == text { text.to_lowercase() } else { upper }),
        edit("enum-trimmed", format!(" {text}")),
        edit("enum-by-prefix", shorter),
        edit("enum-by-substring", format!("{text}x")),
        edit("enum-ignores-case", capital),
        edit("enum-trimmed", format!("{text}\n")),
    ];
    if let Ok(number) = text.parse::<i64>() {
        edits.push(edit("enum-by-text", number));
    }
    edits
}

fn arrays(items: &[Value]) -> Edits {
    let mut edits = Vec::new();
    for (at, item) in items.iter().enumerate().take(MAX_VARIED) {
        let other = match item {
            Value::Bool(is_true) => json!(i64::from(*is_true)),
            Value::Number(number) if number.as_f64() == Some(1.0) => json!(true),
            Value::Number(number) if number.as_f64() == Some(0.0) => json!(false),
            _ => continue,
        };
        let mut varied = items.to_vec();
        varied[at] = other;
        edits.push(edit("const-nested-zero-is-false", varied));
    }
    let mut longer = items.to_vec();
    longer.push(Value::Null);
    edits.push(edit("const-by-prefix", longer));
    edits.push(edit("const-by-prefix", items.iter().skip(1).cloned().collect::<Vec<_>>()));
    edits.push(edit("const-ignores-order", items.iter().rev().cloned().collect::<Vec<_>>()));
    edits
}

fn objects(members: &Map<String, Value>) -> Edits {
    let reversed: Map<String, Value> =
        members.iter().rev().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut edits = vec![edit("const-by-text", reversed)];
    let mut larger = members.clone();
    larger.insert("extra".to_owned(), Value::Null);
    edits.push(edit("const-by-part", larger));
    if let Some(name) = members.keys().next() {
        let mut smaller = members.clone();
        smaller.shift_remove(name);
        edits.push(edit("const-by-part", smaller));
        let mut other = members.clone();
        other.insert(name.clone(), json!("other"));
        edits.push(edit("const-by-names", other));
    }
    edits
}

/// Values that no list has.
fn others(values: &[Value]) -> Edits {
    let texts = values.iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let mut edits = vec![edit("enum-ignored", "not-one-of-these")];
    if texts.len() > 1 {
        edits.push(edit("enum-by-commas", texts[..2].join(",")));
        edits.push(edit("enum-as-set", json!(texts[..1])));
    }
    edits.push(edit("null-is-absent", Value::Null));
    edits.push(edit("enum-by-position", 0));
    edits.push(edit("enum-finds-inherited-names", "constructor"));
    edits.push(edit("enum-finds-inherited-names", "toString"));
    edits.push(edit("enum-accepts-empty", ""));
    edits
}
