//! Shapes: the JSON Schemas that several cases share, each in a file of its own below `shapes/`.
//!
//! A schema refers to one by `"$ref": "shapes/NAME"`. When a case is parsed, the shapes that a schema refers to are
//! bundled into its `$defs`, so that nothing later has to know where a schema is from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::json_pointer;

/// The directory of the shapes below that of the cases, and how a reference to one begins.
pub(super) const PREFIX: &str = "shapes/";

/// What the address of a bundled shape begins with.
const BASE: &str = "json-schema:///";

/// Keywords whose value is data, in which a `$ref` refers to nothing.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "$comment"];

/// The shapes by name, and those that each of them refers to.
#[derive(Debug, Default)]
pub(super) struct Shapes(BTreeMap<String, Value>);

impl Shapes {
    /// Adds a shape, or replaces the one of this name.
    pub(super) fn insert(&mut self, name: &str, shape: Value) {
        self.0.insert(name.to_owned(), shape);
    }

    /// Whether there is a shape of this name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names of all shapes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The way from a shape back to itself, if there is one.
    pub(super) fn circle(&self, name: &str) -> Option<Vec<String>> {
        let mut pending = vec![vec![name.to_owned()]];
        let mut visited = BTreeSet::new();
        while let Some(way) = pending.pop() {
            let last = way.last().expect("a way begins at a shape");
            for next in self.0.get(last).map(references).unwrap_or_default() {
                let mut longer = way.clone();
                longer.push(next.clone());
                if next == name {
                    return Some(longer);
                }
                if visited.insert(next) {
                    pending.push(longer);
                }
            }
        }
        None
    }

    /// Adds the shapes that a schema refers to, and those that these refer to, to its `$defs`.
    pub(super) fn bundle(&self, schema: &mut Value) {
        let mut pending: Vec<String> = references(schema).into_iter().collect();
        if pending.is_empty() {
            return;
        }
        make_absolute(schema);
        let mut bundled = Map::new();
        while let Some(name) = pending.pop() {
            let key = format!("{PREFIX}{name}");
            let Some(shape) = self.0.get(&name).filter(|_| !bundled.contains_key(&key)) else { continue };
            pending.extend(references(shape));
            let mut shape = shape.clone();
            make_absolute(&mut shape);
            if let Value::Object(members) = &mut shape {
                members.insert("$id".to_owned(), Value::String(format!("{BASE}{key}")));
            }
            bundled.insert(key, shape);
        }
        let Value::Object(keywords) = schema else { return };
        if let Value::Object(definitions) = keywords.entry("$defs").or_insert_with(|| Value::Object(Map::new())) {
            definitions.extend(bundled);
        }
    }

    /// Bundles every schema of a case file.
    pub(super) fn bundle_case(&self, case: &mut Value) {
        for_each_schema(case, &mut |schema| self.bundle(schema));
    }
}

/// Calls a function with every JSON Schema in a case file.
fn for_each_schema(case: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    let mut visit_in = |part: Option<&mut Value>, names: &[&str]| {
        if let Some(Value::Object(members)) = part {
            for name in names {
                members.get_mut(*name).into_iter().for_each(&mut *visit);
            }
        }
    };
    visit_in(case.get_mut("needs"), &["tool", "client-request"]);
    visit_in(case.get_mut("watch"), &["matching"]);
    for rule in case.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
        visit_in(Some(rule), &["schema"]);
    }
    for together in case.get_mut("across-steps").and_then(Value::as_array_mut).into_iter().flatten() {
        visit_in(Some(together), &["matching"]);
    }
    for step in case.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        visit_in(step.get_mut("poll"), &["until"]);
        for response in step.get_mut("expect").and_then(Value::as_array_mut).into_iter().flatten() {
            visit_in(Some(response), &["schema", "exchange"]);
        }
    }
}

/// The name of the shape that a `$ref` refers to.
pub(super) fn shape_name(reference: &Value) -> Option<&str> {
    reference.as_str()?.strip_prefix(PREFIX)
}

/// The names of the shapes that a schema refers to.
fn references(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_reference(schema, "", &mut |_, name| {
        found.insert(name.to_owned());
    });
    found
}

/// Calls a function with the pointer of each reference to a shape, and the name of the shape.
pub(super) fn each_reference(schema: &Value, pointer: &str, visit: &mut impl FnMut(&str, &str)) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members.iter().filter(|(keyword, _)| !DATA.contains(&keyword.as_str())) {
                let here = json_pointer::join(pointer, keyword);
                match shape_name(value).filter(|_| keyword == "$ref") {
                    Some(name) => visit(&here, name),
                    None => each_reference(value, &here, visit),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_reference(item, &format!("{pointer}/{index}"), visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Makes the references to shapes absolute, as those of a bundle are.
fn make_absolute(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members.iter_mut().filter(|(keyword, _)| !DATA.contains(&keyword.as_str())) {
                match shape_name(value).filter(|_| keyword == "$ref") {
                    Some(name) => *value = Value::String(format!("{BASE}{PREFIX}{name}")),
                    None => make_absolute(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_absolute),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lazy_schema::LazySchema;
    use super::super::load::{CaseText, parse_shapes};
    use super::super::model::Source;
    use super::*;

    fn parsed(files: &[(&str, &Value)]) -> (Shapes, Vec<String>) {
        let text = |(name, value): &(&str, &Value)| CaseText {
            id: format!("{PREFIX}{name}"),
            file: format!("{name}.json"),
            source: Source::Embedded,
            text: value.to_string(),
        };
        let mut problems = Vec::new();
        let shapes = parse_shapes(&files.iter().map(text).collect::<Vec<_>>(), &mut problems);
        (shapes, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_shape_may_refer_to_another_and_to_its_own_definitions() {
        let tree = json!({
            "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}, "name": {"$ref": "shapes/name"}}}},
            "$ref": "#/$defs/node",
        });
        let (shapes, problems) = parsed(&[("tree", &tree), ("name", &json!({"type": "string"}))]);
        assert_eq!(problems, Vec::<String>::new());
        let mut schema = json!({
            "$defs": {"node": {"type": "array", "items": {"$ref": "shapes/tree"}}},
            "$ref": "#/$defs/node",
            "not": {"const": {"$ref": "shapes/tree"}},
        });
        shapes.bundle(&mut schema);
        let pattern = LazySchema::new(schema);
        assert!(pattern.fits(&json!([{"next": {"name": "a"}}])));
        assert!(!pattern.fits(&json!([{"next": {"name": 5}}])));
        assert!(!pattern.fits(&json!({"$ref": "shapes/tree"})));
    }

    #[test]
    fn what_is_wrong_with_a_shape_is_reported() {
        let (_, problems) = parsed(&[
            ("a", &json!({"items": {"$ref": "shapes/b"}})),
            ("b", &json!({"not": {"$ref": "shapes/a"}})),
            ("c", &json!({"typ": "string", "items": {"$ref": "shapes/d"}})),
        ]);
        assert_eq!(
            problems,
            [
                "a.json:1:1: the shape refers to itself: a -> b -> a",
                "b.json:1:1: the shape refers to itself: b -> a -> b",
                "c.json:1:33: unknown shape `d`",
                "c.json:1:2: the keyword `typ` checks nothing here (did you mean `type`?)",
            ]
        );
    }
}
