//! The checks of what a JSON Schema refers to: regular expressions, and other places in itself.

use serde_json::Value;

use super::ecma_pattern;
use super::text::shortened;
use super::violation::ValueResult;
use crate::json_pointer;

/// Members whose value is an instance, not a schema.
const INSTANCES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Checks every `pattern` and the names of `patternProperties`; `None` if there are none.
pub(super) fn patterns_valid(schema: &Value) -> Option<ValueResult> {
    let mut patterns = Vec::new();
    collect_patterns(schema, "", false, &mut patterns);
    let mut problems = patterns.iter().filter_map(|(pointer, pattern)| {
        ecma_pattern::problem(pattern)
            .map(|problem| format!("at `{pointer}`: `{}` has {problem}", shortened(pattern, 120)))
    });
    let first = problems.next().map(|first| match problems.count() {
        0 => first,
        others => format!("{first}; {others} more in this schema"),
    });
    (!patterns.is_empty()).then(|| ValueResult::from(first))
}

/// Collects the patterns of a schema with their JSON Pointers. The members of `properties` and the like are names of
/// users, not keywords.
fn collect_patterns<'a>(schema: &'a Value, pointer: &str, names_are_free: bool, patterns: &mut Vec<(String, &'a str)>) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                let at = json_pointer::join(pointer, name);
                if names_are_free {
                    collect_patterns(value, &at, false, patterns);
                    continue;
                }
                match (name.as_str(), value) {
                    ("pattern", Value::String(pattern)) => patterns.push((at, pattern)),
                    ("patternProperties", Value::Object(by_pattern)) => {
                        patterns.extend(by_pattern.keys().map(|key| (at.clone(), key.as_str())));
                        collect_patterns(value, &at, true, patterns);
                    }
                    (name, _) if INSTANCES.contains(&name) => {}
                    (name, _) => collect_patterns(value, &at, has_free_names(name), patterns),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_patterns(item, &format!("{pointer}/{index}"), false, patterns);
            }
        }
        _ => {}
    }
}

/// Whether the members of a keyword's value are names of users.
fn has_free_names(keyword: &str) -> bool {
    matches!(
        keyword,
        "properties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" | "patternProperties"
    )
}

/// Checks every reference to another place in the same schema; `None` if there are none, or if the schema has
/// resources of its own (`$id`), against which references are resolved.
///
/// A reference to another document without a host (`other.json`) leads nowhere: a schema in a message has no address.
pub(super) fn references_resolve(schema: &Value) -> Option<ValueResult> {
    let mut found = References::default();
    found.collect(schema, "", false);
    if found.targets.is_empty() || found.has_id {
        return None;
    }
    let dangling = found.targets.iter().find(|(_, reference)| !resolves(schema, reference, &found.anchors));
    let dangling =
        dangling.map(|(pointer, reference)| format!("at `{pointer}`: a reference to `{}`", shortened(reference, 120)));
    Some(ValueResult::from(dangling))
}

/// What a schema refers to, and what can be referred to in it.
#[derive(Default)]
struct References<'a> {
    /// The JSON Pointer to each reference, and where it leads.
    targets: Vec<(String, &'a str)>,
    anchors: Vec<&'a str>,
    has_id: bool,
}

impl<'a> References<'a> {
    fn collect(&mut self, schema: &'a Value, pointer: &str, names_are_free: bool) {
        match schema {
            Value::Object(members) => {
                for (name, value) in members {
                    let at = json_pointer::join(pointer, name);
                    let keyword = if names_are_free { "" } else { name.as_str() };
                    match (keyword, value) {
                        ("$ref" | "$dynamicRef", Value::String(reference)) if !has_address(reference) => {
                            self.targets.push((at, reference));
                        }
                        ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => self.anchors.push(anchor),
                        ("$id" | "id", Value::String(_)) => self.has_id = true,
                        (keyword, _) if INSTANCES.contains(&keyword) => {}
                        (keyword, _) => self.collect(value, &at, has_free_names(keyword)),
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.collect(item, &format!("{pointer}/{index}"), false);
                }
            }
            _ => {}
        }
    }
}

/// Whether a reference names where its document is: it begins with a scheme, or with a host.
fn has_address(reference: &str) -> bool {
    let document = reference.split('#').next().unwrap_or_default();
    document.contains(':') || document.starts_with("//")
}

/// Whether a reference such as `#/$defs/x` or `#anchor` points to a schema in the schema.
fn resolves(schema: &Value, reference: &str, anchors: &[&str]) -> bool {
    let Some(fragment) = reference.strip_prefix('#') else { return reference.is_empty() };
    // What an encoded character stands for depends on the implementation, so such a reference is not judged.
    if fragment.is_empty() || fragment.contains('%') {
        return true;
    }
    if fragment.starts_with('/') {
        return schema.pointer(fragment).is_some_and(|target| target.is_object() || target.is_boolean());
    }
    anchors.contains(&fragment)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn violates(result: Option<ValueResult>) -> Option<bool> {
        result.map(|result| matches!(result, ValueResult::Violates(_)))
    }

    #[test]
    fn patterns_are_judged_where_they_are_keywords() {
        assert_eq!(violates(patterns_valid(&json!({"properties": {"x": {"pattern": "^(a"}}}))), Some(true));
        assert_eq!(violates(patterns_valid(&json!({"patternProperties": {"[a": {}}}))), Some(true));
        assert_eq!(violates(patterns_valid(&json!({"properties": {"pattern": {"type": "string"}}}))), None);
        assert_eq!(violates(patterns_valid(&json!({"default": {"pattern": "("}}))), None);
        assert_eq!(violates(patterns_valid(&json!({"pattern": "^a$"}))), Some(false));
    }

    #[test]
    fn a_malformed_pattern_is_named_with_its_place() {
        let schema =
            json!({"properties": {"a/b": {"items": [{"pattern": "(?i)x"}]}}, "patternProperties": {"x++": {}}});
        let Some(ValueResult::Violates(actual)) = patterns_valid(&schema) else { panic!("no violation") };
        assert!(actual.starts_with("at `/properties/a~1b/items/0/pattern`: `(?i)x` has `(?i)`"), "{actual}");
        assert!(actual.ends_with("; 1 more in this schema"), "{actual}");
        let Some(ValueResult::Violates(actual)) = patterns_valid(&json!({"patternProperties": {"x++": {}}})) else {
            panic!("no violation")
        };
        assert!(actual.starts_with("at `/patternProperties`: `x++` has a possessive"), "{actual}");
    }

    #[test]
    fn references_within_the_schema_are_judged() {
        let schema = |reference: &str| json!({"properties": {"x": {"$ref": reference}}, "$defs": {"a b": {"$anchor": "here"}, "c/d": true}});
        for reference in ["#", "#/$defs/a%20b", "#/$defs/c~1d", "#here", "#/properties/x"] {
            assert_eq!(violates(references_resolve(&schema(reference))), Some(false), "{reference}");
        }
        for reference in ["#/$defs/missing", "#nowhere", "other.json#/x", "Thing", "#/properties/x/$ref"] {
            assert_eq!(violates(references_resolve(&schema(reference))), Some(true), "{reference}");
        }
        assert_eq!(violates(references_resolve(&schema("https://example.com/x#/y"))), None);
        assert_eq!(violates(references_resolve(&json!({"$id": "x", "$ref": "#/a"}))), None);
        assert_eq!(violates(references_resolve(&json!({"properties": {"$ref": {"type": "string"}}}))), None);
    }
}
