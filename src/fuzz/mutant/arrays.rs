//! Variations of arrays: counts, positions, uniqueness and `contains`.

use serde_json::{Map, Value, json};

use super::edit::{Edits, edit};

/// Longer arrays are not made.
const MAX_ITEMS: usize = 300;
/// How many different items of valid instances are used.
const MAX_KNOWN: usize = 12;

/// The edits of an array, by keyword; `known` are items of other valid instances.
pub(super) fn edits(keywords: &Map<String, Value>, items: &[Value], known: &[Value]) -> Vec<Edits> {
    let mut different: Vec<Value> = Vec::new();
    for item in items.iter().chain(known).take(MAX_KNOWN) {
        if !different.contains(item) {
            different.push(item.clone());
        }
    }
    for item in similar(items.first().or(known.first())) {
        if !different.contains(&item) {
            different.push(item);
        }
    }
    let size =
        |keyword: &str| keywords.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let mut edits = Vec::new();
    if let Some(least) = size("minItems").filter(|size| *size < MAX_ITEMS) {
        edits.push(fewest(least, &different));
    }
    if let Some(most) = size("maxItems").filter(|size| *size < MAX_ITEMS) {
        edits.push(vec![
            edit("max-items-exclusive", of_length(most, &different)),
            edit("max-items-one-too-high", of_length(most + 1, &different)),
            edit("max-items-ignored", of_length(most * 2 + 5, &different)),
        ]);
    }
    if let Some(prefix) = keywords.get("prefixItems").or(keywords.get("items")).and_then(Value::as_array) {
        edits.push(prefixes(prefix.len(), items));
    }
    if keywords.get("items").is_some_and(Value::is_object) {
        edits.push(positions(&different));
    }
    if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
        edits.push(duplicates(&different));
        edits.push(representations());
    }
    if let Some(wanted) = keywords.get("contains") {
        let (least, most) = (size("minContains").unwrap_or(1), size("maxContains").unwrap_or(2));
        edits.push(contained(wanted, &different, least.min(MAX_ITEMS), most.min(MAX_ITEMS)));
    }
    edits.push(vec![edit("empty-array-rejected", json!([])), edit("long-array-rejected", of_length(64, &different))]);
    edits
}

/// Values that differ from each other and resemble an item.
fn similar(item: Option<&Value>) -> Vec<Value> {
    match item {
        Some(Value::String(_)) => ('a'..='z').map(|c| Value::from(c.to_string())).collect(),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => (0..32).map(Value::from).collect(),
        Some(Value::Number(_)) => (0..32).map(|at| json!(f64::from(at) + 0.5)).collect(),
        Some(Value::Bool(_)) => vec![json!(true), json!(false)],
        _ => Vec::new(),
    }
}

/// An array of so many items, different ones as far as there are.
fn of_length(length: usize, different: &[Value]) -> Vec<Value> {
    if different.is_empty() {
        return vec![Value::Null; length];
    }
    different.iter().cycle().take(length).cloned().collect()
}

fn fewest(least: usize, different: &[Value]) -> Edits {
    let mut edits = vec![edit("min-items-exclusive", of_length(least, different))];
    if let Some(less) = least.checked_sub(1) {
        edits.push(edit("min-items-one-too-low", of_length(less, different)));
        edits.push(edit("min-items-ignored", json!([])));
    }
    edits
}

/// Shorter and longer arrays than the number of schemas for the first items, and the first items exchanged.
fn prefixes(schemas: usize, items: &[Value]) -> Edits {
    let mut edits = Vec::new();
    let mut longer = items.to_vec();
    longer.truncate(schemas);
    if longer.len() == schemas {
        for extra in [json!(1), json!("a"), Value::Null] {
            edits.push(edit("items-after-prefix-ignored", [longer.clone(), vec![extra]].concat()));
        }
    }
    for length in 0..schemas.min(items.len()) {
        edits.push(edit("prefix-requires-all", items[..length].to_vec()));
    }
    for at in 0..schemas.min(items.len()) {
        for other in [json!({"unexpected": true}), json!("a"), json!(1)] {
            let mut wrong = items[..schemas.min(items.len())].to_vec();
            wrong[at] = other;
            edits.push(edit("prefix-ignored", wrong));
        }
    }
    edits
}

/// An invalid item at each place of an array.
fn positions(different: &[Value]) -> Edits {
    let mut edits = Vec::new();
    let good = |count: usize| of_length(count, different);
    for bad in [json!({"unexpected": true}), json!(1), json!("x"), Value::Null] {
        edits.push(edit("items-first-only", [good(1), vec![bad.clone()]].concat()));
        edits.push(edit("items-last-only", [vec![bad.clone()], good(1)].concat()));
        edits.push(edit("items-ends-only", [good(1), vec![bad.clone()], good(2)[1..].to_vec()].concat()));
        edits.push(edit("items-beyond-ten-ignored", [good(12), vec![bad]].concat()));
    }
    edits
}

fn duplicates(different: &[Value]) -> Edits {
    let [first, second, ..] = different else {
        return different.iter().map(|item| edit("unique-ignored", json!([item, item]))).collect();
    };
    let mut edits = vec![
        edit("unique-neighbours-only", json!([first, second, first])),
        edit("unique-ignored", json!([first, first])),
        edit("unique-first-only", json!([second, first, first])),
    ];
    let long = of_length(different.len().min(20), different);
    edits.push(edit("unique-few-only", [long.clone(), vec![long[0].clone()]].concat()));
    edits
}

/// Items that are equal, or different, only in their representation.
fn representations() -> Edits {
    [
        ("unique-one-is-not-1.0", json!([1, 1.0])),
        ("unique-true-is-one", json!([1, true])),
        ("unique-true-is-one", json!([0, false])),
        ("unique-by-text", json!([3, "3"])),
        ("unique-nested-zero-is-false", json!([[0], [false]])),
        ("unique-objects-ignored", json!([{"a": 1}, {"a": 1}])),
        ("unique-arrays-ignored", json!([[1], [1]])),
        ("unique-by-order-of-keys", json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}])),
        ("unique-ignores-case", json!(["a", "A"])),
        ("unique-trimmed", json!(["a", "a "])),
        ("unique-normalized", json!(["\u{e9}", "e\u{301}"])),
        ("unique-by-text", json!([null, "null"])),
        ("unique-null-ignored", json!([null, null])),
    ]
    .into_iter()
    .map(|(mutant, value)| edit(mutant, value))
    .collect()
}

/// Arrays with items that `contains` wants and does not want, in different numbers.
fn contained(wanted: &Value, different: &[Value], least: usize, most: usize) -> Edits {
    let bound = |keyword: &str| wanted.get(keyword).and_then(Value::as_i64);
    let mut matching: Vec<Value> = wanted.get("const").into_iter().cloned().collect();
    matching.extend(wanted.get("enum").and_then(Value::as_array).into_iter().flatten().cloned());
    matching.extend(bound("minimum").map(Value::from));
    matching.extend(bound("maximum").map(Value::from));
    matching.extend(different.iter().take(4).cloned());
    let mut others: Vec<Value> = different.iter().take(4).cloned().collect();
    others.extend(bound("minimum").map(|bound| Value::from(bound.saturating_sub(1))));
    others.extend([json!(0), json!("other"), Value::Null]);
    let mut edits = vec![edit("contains-accepts-empty", json!([]))];
    for item in &matching {
        edits.push(edit("max-contains-ignored", vec![item.clone(); most + 1]));
        edits.push(edit("max-contains-exclusive", vec![item.clone(); most]));
        edits.push(edit("min-contains-one-too-high", vec![item.clone(); least]));
        edits.extend(least.checked_sub(1).map(|less| edit("min-contains-one-too-low", vec![item.clone(); less])));
        for other in others.iter().take(3) {
            edits.push(edit("contains-first-only", json!([other, item])));
            edits.push(edit("contains-all", json!([item, other])));
        }
    }
    edits.extend(others.iter().map(|other| edit("contains-ignored", json!([other]))));
    edits
}
