//! The checks of what a JSON Schema refers to: regular expressions, and other places in itself.

use serde_json::Value;

use super::text::shortened;
use super::violation::ValueResult;

/// Members whose value is an instance, not a schema.
const INSTANCES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Checks every `pattern` and the names of `patternProperties`; `None` if there are none.
///
/// Only mistakes that every dialect of regular expressions rejects are reported.
pub(super) fn patterns_valid(schema: &Value) -> Option<ValueResult> {
    let mut patterns = Vec::new();
    collect_patterns(schema, false, &mut patterns);
    let problem = patterns.iter().find(|pattern| is_malformed(pattern));
    let problem = problem.map(|pattern| format!("the pattern `{}`", shortened(pattern, 120)));
    (!patterns.is_empty()).then(|| ValueResult::from(problem))
}

/// Collects the patterns of a schema. The members of `properties` and the like are names of users, not keywords.
fn collect_patterns<'a>(schema: &'a Value, names_are_free: bool, patterns: &mut Vec<&'a str>) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                if names_are_free {
                    collect_patterns(value, false, patterns);
                    continue;
                }
                match (name.as_str(), value) {
                    ("pattern", Value::String(pattern)) => patterns.push(pattern),
                    ("patternProperties", Value::Object(by_pattern)) => {
                        patterns.extend(by_pattern.keys().map(String::as_str));
                        collect_patterns(value, true, patterns);
                    }
                    (name, _) if INSTANCES.contains(&name) => {}
                    (name, _) => collect_patterns(value, has_free_names(name), patterns),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_patterns(item, false, patterns)),
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

/// Whether no dialect of regular expressions accepts a pattern: a group or class is not closed, a group is closed that
/// is not open, an escape has no character, or a quantifier has nothing to repeat.
fn is_malformed(pattern: &str) -> bool {
    let mut characters = pattern.chars().peekable();
    let (mut open_groups, mut in_class, mut is_start) = (0_usize, false, true);
    while let Some(character) = characters.next() {
        let begins = std::mem::take(&mut is_start);
        match character {
            '\\' if characters.next().is_none() => return true,
            // The guard has taken the escaped character.
            '\\' => {}
            ']' if in_class => in_class = false,
            _ if in_class => {}
            '[' => {
                in_class = true;
                // A bracket at the start belongs to the class in most dialects, but ends it in that of ECMA-262.
                characters.next_if_eq(&'^');
                if characters.peek() == Some(&']') {
                    return false;
                }
            }
            '(' => {
                open_groups += 1;
                is_start = true;
                // The question mark of `(?:`, `(?=` and the like is no quantifier.
                is_start &= characters.next_if_eq(&'?').is_none();
            }
            ')' if open_groups == 0 => return true,
            ')' => open_groups -= 1,
            '|' => is_start = true,
            '*' | '+' | '?' if begins => return true,
            _ => {}
        }
    }
    in_class || open_groups > 0
}

/// Checks every reference to another place in the same schema; `None` if there are none, or if the schema has
/// resources of its own (`$id`), against which references are resolved.
pub(super) fn references_resolve(schema: &Value) -> Option<ValueResult> {
    let mut references = Vec::new();
    let mut anchors = Vec::new();
    let mut has_id = false;
    collect_references(schema, false, &mut references, &mut anchors, &mut has_id);
    if references.is_empty() || has_id {
        return None;
    }
    let dangling = references.iter().find(|reference| !resolves(schema, reference, &anchors));
    let dangling = dangling.map(|reference| format!("a reference to `{}`", shortened(reference, 120)));
    Some(ValueResult::from(dangling))
}

fn collect_references<'a>(
    schema: &'a Value,
    names_are_free: bool,
    references: &mut Vec<&'a str>,
    anchors: &mut Vec<&'a str>,
    has_id: &mut bool,
) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                let keyword = if names_are_free { "" } else { name.as_str() };
                match (keyword, value) {
                    ("$ref", Value::String(reference)) if reference.starts_with('#') => references.push(reference),
                    ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => anchors.push(anchor),
                    ("$id" | "id", Value::String(_)) => *has_id = true,
                    (keyword, _) if INSTANCES.contains(&keyword) => {}
                    (keyword, _) => {
                        collect_references(value, has_free_names(keyword), references, anchors, has_id);
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_references(item, false, references, anchors, has_id);
            }
        }
        _ => {}
    }
}

/// Whether a reference such as `#/$defs/x` or `#anchor` points to something in the schema.
fn resolves(schema: &Value, reference: &str, anchors: &[&str]) -> bool {
    let fragment = reference.trim_start_matches('#');
    // What an encoded character stands for depends on the implementation, so such a reference is not judged.
    if fragment.is_empty() || fragment.contains('%') {
        return true;
    }
    if fragment.starts_with('/') {
        return schema.pointer(fragment).is_some();
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
        for pattern in [
            "^a+$",
            "(?<=a)b",
            "(?<name>a)\\k<name>",
            "\\p{Letter}",
            "[\\w-]+",
            "^(?!x)",
            "\\/",
            "\\u0041",
            "\\cA",
            "{",
        ] {
            assert_eq!(violates(patterns_valid(&json!({"pattern": pattern}))), Some(false), "{pattern}");
        }
        for pattern in ["*.txt", "a|*", "(", ")", "[a-", "a\\"] {
            assert_eq!(violates(patterns_valid(&json!({"pattern": pattern}))), Some(true), "{pattern}");
        }
        assert_eq!(violates(patterns_valid(&json!({"properties": {"pattern": {"type": "string"}}}))), None);
        assert_eq!(violates(patterns_valid(&json!({"default": {"pattern": "("}}))), None);
    }

    #[test]
    fn references_within_the_schema_are_judged() {
        let schema = |reference: &str| json!({"properties": {"x": {"$ref": reference}}, "$defs": {"a b": {"$anchor": "here"}, "c/d": true}});
        for reference in ["#", "#/$defs/a%20b", "#/$defs/c~1d", "#here", "#/properties/x"] {
            assert_eq!(violates(references_resolve(&schema(reference))), Some(false), "{reference}");
        }
        for reference in ["#/$defs/missing", "#nowhere"] {
            assert_eq!(violates(references_resolve(&schema(reference))), Some(true), "{reference}");
        }
        assert_eq!(violates(references_resolve(&schema("other.json#/x"))), None);
        assert_eq!(violates(references_resolve(&json!({"$id": "x", "$ref": "#/a"}))), None);
        assert_eq!(violates(references_resolve(&json!({"properties": {"$ref": {"type": "string"}}}))), None);
    }
}
