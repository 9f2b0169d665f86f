//! Variations of objects: required, additional and misspelt members, names, dependencies and conditions.

use serde_json::{Map, Value, json};

use super::edit::{Edits, edit};

/// How many members are removed or renamed, one at a time.
const MAX_MEMBERS: usize = 24;
/// Larger objects are not made.
const MAX_ENTRIES: usize = 64;
/// Names of additional members that servers treat in another way.
const UNUSUAL_NAMES: [&str; 6] = ["_extra", "$extra", "__proto__", "constructor", "", "ключ"];

/// The edits of an object, by keyword. `elsewhere` are the members that objects at the same place have in other instances.
pub(super) fn edits(
    keywords: &Map<String, Value>,
    members: &Map<String, Value>,
    elsewhere: &Map<String, Value>,
) -> Vec<Edits> {
    let required: Vec<&str> =
        keywords.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let declared = keywords.get("properties").and_then(Value::as_object);
    let is_open = keywords.get("additionalProperties") != Some(&Value::Bool(false));
    let mut edits = vec![missing(&required, members, is_open), unknown(members)];
    edits.push(misspelt(declared, members));
    edits.push(alone(&required, members));
    edits.push(dependent(keywords, &required, members));
    edits.push(conditions(keywords, members));
    edits.push(of_others(members, elsewhere));
    edits.push(counts(keywords, &required, members));
    if let Some(names) = keywords.get("propertyNames").and_then(Value::as_object) {
        edits.push(renamed(names, members));
    }
    if let Some(patterns) = keywords.get("patternProperties").and_then(Value::as_object) {
        edits.push(matched(patterns, declared, members));
    }
    edits.retain(|own| !own.is_empty());
    edits
}

fn without(members: &Map<String, Value>, name: &str) -> Map<String, Value> {
    let mut rest = members.clone();
    rest.shift_remove(name);
    rest
}

fn with(members: &Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    let mut more = members.clone();
    more.insert(name.to_owned(), value);
    more
}

/// Only these members.
fn only(members: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let kept = members.iter().filter(|(name, _)| names.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The object without required members. In one that `is_open`, a longer name is not forbidden by itself.
fn missing(required: &[&str], members: &Map<String, Value>, is_open: bool) -> Edits {
    let mut edits: Edits =
        required.iter().rev().take(MAX_MEMBERS).map(|name| edit("required-ignored", without(members, name))).collect();
    if let [first, _, ..] = required {
        edits.push(edit("required-first-only", only(members, &[*first])));
    }
    if !required.is_empty() {
        edits.push(edit("required-all-or-none", json!({})));
    }
    for name in required.iter().take(MAX_MEMBERS).filter(|_| is_open) {
        let other = rename(members, name, &format!("{name}_"));
        edits.push(edit("required-by-prefix", other));
    }
    edits
}

/// The object with an additional member. Its values are of several kinds, as a text breaks a format that the schema asks
/// of additional members.
fn unknown(members: &Map<String, Value>) -> Edits {
    let known = members.values().next_back().cloned().unwrap_or(json!(0));
    let mut edits = vec![
        edit("additional-ignored", with(members, "extra", json!("a"))),
        edit("additional-ignored", with(members, "extra", json!(0))),
        edit("additional-null-ignored", with(members, "extra", Value::Null)),
        edit("additional-value-restricted", with(members, "extra", json!({"a": [1]}))),
        edit("additional-value-restricted", with(members, "extra", json!(1))),
    ];
    for value in [json!("a"), known, json!(0)] {
        let named = |name: &&str| edit("additional-unusual-name", with(members, name, value.clone()));
        edits.extend(UNUSUAL_NAMES.iter().map(named));
    }
    edits
}

/// The object with one member under another name, at its place.
fn rename(members: &Map<String, Value>, from: &str, to: &str) -> Map<String, Value> {
    let renamed = |name: &String| if name == from { to.to_owned() } else { name.clone() };
    members.iter().map(|(name, value)| (renamed(name), value.clone())).collect()
}

fn misspelt(declared: Option<&Map<String, Value>>, members: &Map<String, Value>) -> Edits {
    let mut edits = Vec::new();
    for name in declared.into_iter().flat_map(Map::keys).take(MAX_MEMBERS) {
        let value = members.get(name).cloned().unwrap_or(Value::Null);
        let upper = name.to_uppercase();
        let other_case = if upper == *name { name.to_lowercase() } else { upper };
        if other_case != *name {
            // The member itself is optional, or the arguments break two keywords.
            edits.push(edit("names-ignore-case", with(&without(members, name), &other_case, value.clone())));
            edits.push(edit("names-ignore-case", with(members, &other_case, value.clone())));
        }
        if edits.len() < 6 {
            edits.push(edit("names-trimmed", with(members, &format!("{name} "), value)));
        }
    }
    edits
}

/// Each optional member with nothing but the required ones, and all without each of them.
fn alone(required: &[&str], members: &Map<String, Value>) -> Edits {
    let mut edits =
        vec![edit("every-property-required", only(members, required)), edit("all-options-rejected", members.clone())];
    for name in members.keys().filter(|name| !required.contains(&name.as_str())).take(MAX_MEMBERS) {
        let names: Vec<&str> = required.iter().copied().chain([name.as_str()]).collect();
        // The required members alone may be refused, by an `anyOf` say.
        edits.push(edit("every-property-required", only(members, &names)));
        edits.push(edit("option-needs-others", only(members, &names)));
        edits.push(edit("option-required", without(members, name)));
    }
    edits
}

fn dependent(keywords: &Map<String, Value>, required: &[&str], members: &Map<String, Value>) -> Edits {
    let mut edits = Vec::new();
    for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
        let dependencies = keywords.get(keyword).and_then(Value::as_object);
        for (name, needed) in dependencies.into_iter().flatten().take(MAX_MEMBERS) {
            let needed: Vec<&str> = needed.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let of = |names: &[&str]| only(members, &[required, names].concat());
            edits.push(edit("dependency-ignored", of(&[name])));
            for other in &needed {
                edits.push(edit("dependency-ignored", without(members, other)));
                edits.push(edit("dependency-both-ways", of(&[other])));
            }
            edits.push(edit("dependency-rejected", of(&[&[name.as_str()], needed.as_slice()].concat())));
        }
    }
    edits
}

/// The object with a member that objects of another branch or under another condition have.
fn of_others(members: &Map<String, Value>, elsewhere: &Map<String, Value>) -> Edits {
    let mut edits = Vec::new();
    for (name, value) in elsewhere.iter().filter(|(name, _)| !members.contains_key(*name)).take(MAX_MEMBERS) {
        edits.push(edit("branch-members-mixed", with(members, name, value.clone())));
        edits.push(edit("null-counts-as-absent", with(members, name, Value::Null)));
    }
    edits
}

/// Objects that meet the condition of `if`, that do not, and that lack its property, each without one of the others.
fn conditions(keywords: &Map<String, Value>, members: &Map<String, Value>) -> Edits {
    let Some(tested) = keywords.get("if").and_then(|schema| schema.get("properties")).and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut edits = Vec::new();
    for (name, test) in tested.iter().take(2) {
        let mut values: Vec<Value> = test.get("const").into_iter().cloned().collect();
        values.extend(test.get("enum").and_then(Value::as_array).into_iter().flatten().take(4).cloned());
        let declared = keywords.get("properties").and_then(|properties| properties.get(name));
        let listed = declared.and_then(|schema| schema.get("enum")).and_then(Value::as_array);
        let met = values.len();
        values.extend(
            listed.into_iter().flatten().filter(|value| !values.contains(value)).take(3).cloned().collect::<Vec<_>>(),
        );
        let mut bases: Vec<(&'static str, Map<String, Value>)> = Vec::new();
        for (at, value) in values.into_iter().enumerate() {
            let mutant = if at < met { "then-ignored" } else { "else-ignored" };
            bases.push((mutant, with(members, name, value)));
        }
        bases.push(("condition-needs-the-property", without(members, name)));
        for (mutant, base) in bases {
            let others: Vec<&String> = base.keys().filter(|other| *other != name).take(8).collect();
            edits.extend(others.iter().map(|other| edit(mutant, without(&base, other))));
            edits.extend(others.iter().map(|other| edit("null-counts-as-absent", with(&base, other, Value::Null))));
            edits.push(edit(mutant, only(&base, &[name])));
            edits.push(edit(mutant, base.clone()));
        }
    }
    edits
}

fn counts(keywords: &Map<String, Value>, required: &[&str], members: &Map<String, Value>) -> Edits {
    let size =
        |keyword: &str| keywords.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let of_size = |size: usize| -> Map<String, Value> {
        let mut made: Map<String, Value> = only(members, required);
        for (name, value) in members {
            if made.len() < size {
                made.insert(name.clone(), value.clone());
            }
        }
        let value = members.values().next_back().cloned().unwrap_or(json!("a"));
        for c in ('a'..='z').chain('A'..='Z') {
            if made.len() < size {
                made.insert(c.to_string(), value.clone());
            }
        }
        made
    };
    let mut edits = Vec::new();
    if let Some(least) = size("minProperties").filter(|size| *size < MAX_ENTRIES) {
        edits.push(edit("min-properties-exclusive", of_size(least)));
        edits.extend(least.checked_sub(1).map(|less| edit("min-properties-ignored", of_size(less))));
    }
    if let Some(most) = size("maxProperties").filter(|size| *size < MAX_ENTRIES) {
        edits.push(edit("max-properties-exclusive", of_size(most)));
        edits.push(edit("max-properties-one-too-high", of_size(most + 1)));
    }
    edits
}

/// A member under names that `propertyNames` forbids or allows.
fn renamed(names: &Map<String, Value>, members: &Map<String, Value>) -> Edits {
    let Some(name) = members.keys().next_back() else { return Vec::new() };
    let texts = super::text::edits(names, name).into_iter().chain(super::choices::edits(names)).flatten();
    let mut edits = Vec::new();
    for text in texts {
        if let Some(other) = text.value.as_str().filter(|other| !members.contains_key(*other)) {
            edits.push(edit("property-names-ignored", rename(members, name, other)));
        }
    }
    edits
}

/// Values of the wrong type for members whose names match a pattern.
fn matched(
    patterns: &Map<String, Value>,
    declared: Option<&Map<String, Value>>,
    members: &Map<String, Value>,
) -> Edits {
    let mut edits = Vec::new();
    let known: Vec<&String> = declared.into_iter().flat_map(Map::keys).collect();
    for name in members.keys().take(MAX_MEMBERS) {
        let mutant =
            if known.contains(&name) { "patterns-of-unknown-names-only" } else { "pattern-properties-ignored" };
        for value in [json!("x"), json!({"unexpected": true}), json!(1.5), Value::Null] {
            edits.push(edit(mutant, with(members, name, value)));
        }
        edits.push(edit("additional-ignored-after-a-match", with(members, "unexpected~", json!("a"))));
    }
    for pattern in patterns.keys() {
        let value = members.values().next_back().cloned().unwrap_or(json!("a"));
        for other in super::text::misread(pattern).into_iter().flatten() {
            if let Some(name) = other.value.as_str().filter(|name| !members.contains_key(*name)) {
                edits.push(edit(other.mutant, with(members, name, value.clone())));
            }
        }
        let plain: String = pattern.chars().filter(|c| c.is_alphanumeric() || "_-".contains(*c)).collect();
        for (mutant, name) in
            [("pattern-properties-anchored", format!("x{plain}")), ("pattern-properties-ignored", plain)]
        {
            edits.push(edit(mutant, with(members, &name, json!({"unexpected": true}))));
            edits.push(edit("additional-rejects-pattern-names", with(members, &name, json!("a"))));
            edits.push(edit("additional-rejects-pattern-names", with(members, &name, json!(1))));
        }
    }
    edits
}
