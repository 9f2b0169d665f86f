//! Variations of recursive values: valid and invalid parts at several depths.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::instance_path::PathStep;
use super::edit::{Edits, edit};
use super::site::Site;

/// How deep values are nested, and the mutants that do not look there.
const DEPTHS: [(usize, &str, &str); 4] = [
    (2, "depth-of-two-only", "depth-of-two-rejected"),
    (4, "depth-of-four-only", "depth-of-four-rejected"),
    (8, "depth-of-eight-only", "depth-of-eight-rejected"),
    (16, "depth-of-sixteen-only", "depth-of-sixteen-rejected"),
];

/// The maximum number of edits of a node that are moved into another node.
const MAX_INNER: usize = 48;
/// How many of these belong to one mutant.
const MAX_INNER_OF_A_MUTANT: usize = 3;

/// For each site whose schema refers to one around it, the site around it and its edits. `of_site` has the edits of a
/// site itself.
pub(super) fn edits(sites: &[Site<'_>], of_site: impl Fn(&Site<'_>) -> Edits) -> Vec<(usize, Edits)> {
    let mut found = Vec::new();
    for inner in sites {
        let Some(target) = inner.keywords.get("$ref").and_then(Value::as_str).and_then(|uri| uri.strip_prefix('#'))
        else {
            continue;
        };
        let outer = sites.iter().position(|site| site.pointer == target);
        let Some((at, outer)) = outer.map(|at| (at, &sites[at])) else { continue };
        if let Some(steps) = inner.steps.strip_prefix(outer.steps.as_slice()).filter(|steps| !steps.is_empty()) {
            found.push((at, nested(outer.current, steps)));
            found.push((at, inner_edits(outer.current, steps, of_site(outer))));
        }
    }
    found
}

/// What is varied in the outermost node, varied in one inside it.
fn inner_edits(node: &Value, steps: &[PathStep], outer: Edits) -> Edits {
    let mut edits: Edits = Vec::new();
    let mut counts: HashMap<&'static str, usize> = HashMap::new();
    for edit in outer.into_iter().filter(|edit| edit.value.is_object()) {
        let count = counts.entry(edit.mutant).or_default();
        *count += 1;
        if *count <= MAX_INNER_OF_A_MUTANT && edits.len() < MAX_INNER {
            edits.extend(place(node, steps, Some(edit.value)).map(|value| super::edit::edit("outermost-only", value)));
        }
    }
    edits
}

fn nested(node: &Value, steps: &[PathStep]) -> Edits {
    let mut edits = Vec::new();
    let leaf = place(node, steps, None).unwrap_or_else(|| node.clone());
    for (depth, unseen, rejected) in DEPTHS {
        edits.extend(deep(node, steps, depth, leaf.clone()).map(|value| edit(rejected, value)));
        for member in leaf.as_object().into_iter().flat_map(|members| members.keys()) {
            for wrong in [json!({"unexpected": true}), json!(-1), json!("x")] {
                let mut broken = leaf.clone();
                broken[member] = wrong;
                edits.extend(deep(node, steps, depth, broken).map(|value| edit(unseen, value)));
            }
        }
        edits.extend(deep(node, steps, depth, json!(1)).map(|value| edit(unseen, value)));
    }
    edits
}

/// A value inside so many nodes.
fn deep(node: &Value, steps: &[PathStep], depth: usize, leaf: Value) -> Option<Value> {
    (0..depth).try_fold(leaf, |inner, _| place(node, steps, Some(inner)))
}

/// The node with this value at the end of the path, or with nothing there.
fn place(node: &Value, steps: &[PathStep], value: Option<Value>) -> Option<Value> {
    let (step, rest) = steps.split_first()?;
    let mut node = node.clone();
    match step {
        PathStep::Name(name) => {
            let members = node.as_object_mut()?;
            match (rest.is_empty(), value) {
                (true, Some(value)) => {
                    members.insert(name.clone(), value);
                }
                (true, None) => {
                    members.shift_remove(name);
                }
                (false, value) => {
                    let empty =
                        if matches!(rest[0], PathStep::Item | PathStep::Slot(_)) { json!([]) } else { json!({}) };
                    let inner = place(members.get(name).unwrap_or(&empty), rest, value)?;
                    members.insert(name.clone(), inner);
                }
            }
        }
        PathStep::Item | PathStep::Slot(_) => {
            let items = node.as_array_mut()?;
            items.clear();
            if rest.is_empty() {
                items.extend(value);
            }
        }
        PathStep::Pattern(_) | PathStep::Entry => {
            let members = node.as_object_mut()?;
            members.clear();
            if let (true, Some(value)) = (rest.is_empty(), value) {
                members.insert("a".to_owned(), value);
            }
        }
    }
    Some(node)
}
