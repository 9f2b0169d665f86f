//! The instance path of each subschema: where in an instance it applies.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::json_pointer;

/// The maximum length of a path.
const MAX_STEPS: usize = 24;

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    /// To the entry of this name.
    Name(String),
    /// To an entry whose name matches this pattern.
    Pattern(String),
    /// To an entry that no schema names.
    Entry,
    /// To the element at this position.
    Slot(usize),
    /// To an element beyond those with a schema of their own.
    Item,
}

/// For the pointer of each subschema, the shortest path to a value to which it may apply.
///
/// Leaves out subschemas that only apply negated or to names. A path may lead through a branch that
/// is not taken, so instances that are generated along it must be checked.
pub(super) fn instance_paths(schema: &Value) -> HashMap<String, Vec<PathStep>> {
    let mut paths = HashMap::new();
    let mut pending = VecDeque::from([(String::new(), Vec::new())]);
    while let Some((pointer, path)) = pending.pop_front() {
        if path.len() > MAX_STEPS || paths.contains_key(&pointer) {
            continue;
        }
        let Some(subschema) = schema.pointer(&pointer) else {
            continue;
        };
        if let Some(keywords) = subschema.as_object() {
            for (keyword, value) in keywords {
                follow(&pointer, &path, keyword, value, &mut pending);
            }
        }
        paths.insert(pointer, path);
    }
    paths
}

fn follow(
    pointer: &str,
    path: &[PathStep],
    keyword: &str,
    value: &Value,
    pending: &mut VecDeque<(String, Vec<PathStep>)>,
) {
    let mut go = |tokens: &[&str], step: Option<PathStep>| {
        let mut target = pointer.to_owned();
        for token in tokens {
            json_pointer::push(&mut target, token);
        }
        let mut path = path.to_vec();
        path.extend(step);
        pending.push_back((target, path));
    };
    match (keyword, value) {
        ("$ref", Value::String(reference)) => {
            if let Some(target) = reference.strip_prefix('#') {
                pending.push_back((target.to_owned(), path.to_vec()));
            }
        }
        ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
            for position in 0..branches.len() {
                go(&[keyword, &position.to_string()], None);
            }
        }
        ("prefixItems" | "items", Value::Array(slots)) => {
            for position in 0..slots.len() {
                go(&[keyword, &position.to_string()], Some(PathStep::Slot(position)));
            }
        }
        ("dependentSchemas" | "dependencies", Value::Object(entries)) => {
            for name in entries.keys() {
                go(&[keyword, name], None);
            }
        }
        ("properties", Value::Object(entries)) => {
            for name in entries.keys() {
                go(&[keyword, name], Some(PathStep::Name(name.clone())));
            }
        }
        ("patternProperties", Value::Object(entries)) => {
            for pattern in entries.keys() {
                go(&[keyword, pattern], Some(PathStep::Pattern(pattern.clone())));
            }
        }
        ("then" | "else", _) => go(&[keyword], None),
        ("additionalProperties" | "unevaluatedProperties", Value::Object(_)) => {
            go(&[keyword], Some(PathStep::Entry));
        }
        ("items" | "additionalItems" | "unevaluatedItems" | "contains", _) => {
            go(&[keyword], Some(PathStep::Item));
        }
        _ => {}
    }
}
