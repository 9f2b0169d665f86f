//! Whether an `inputSchema` itself is satisfiable and its keywords have an effect.

use serde_json::Value;

use super::violation::OracleViolation;
use crate::case::Oracle;
use crate::fuzz::{Constraint, ToolSchema};
use crate::shell::quote_shell_words;

/// Keywords that limit values, each with the types that it applies to.
const BOUNDS: [(&str, &[&str]); 15] = [
    ("minimum", &["integer", "number"]),
    ("maximum", &["integer", "number"]),
    ("exclusiveMinimum", &["integer", "number"]),
    ("exclusiveMaximum", &["integer", "number"]),
    ("multipleOf", &["integer", "number"]),
    ("minLength", &["string"]),
    ("maxLength", &["string"]),
    ("pattern", &["string"]),
    ("minItems", &["array"]),
    ("maxItems", &["array"]),
    ("uniqueItems", &["array"]),
    ("minProperties", &["object"]),
    ("maxProperties", &["object"]),
    ("propertyNames", &["object"]),
    ("contains", &["array"]),
];

/// A schema that no value satisfies.
#[must_use]
pub(crate) fn unsatisfiable(schema: &ToolSchema) -> Option<OracleViolation> {
    schema.is_unsatisfiable().then(|| {
        OracleViolation::from_many_calls(
            Oracle::SchemaContradiction,
            "an inputSchema contradicts itself",
            "no arguments satisfy it, so no client can call the tool with valid arguments",
        )
    })
}

/// What helps to call a tool with success that rejects all generated arguments.
#[must_use]
pub(crate) fn values_remedy(schema: &Value) -> String {
    let names = seed_value_options(schema);
    let options = if names.is_empty() { "--seed-value NAME=VALUE".to_owned() } else { names.join(" ") };
    format!(
        "give values that it accepts: {options}, `examples` in its inputSchema, or a call that succeeds in a hints file (--hints)"
    )
}

/// The command line options that give a value to each required property whose values are not listed.
fn seed_value_options(schema: &Value) -> Vec<String> {
    const MAX_OPTIONS: usize = 4;
    let is_unlisted = |name: &&str| {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        let has = |keyword| property.is_some_and(|property| property.get(keyword).is_some());
        !has("enum") && !has("const") && property.is_none_or(|property| property["type"] != "boolean")
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let names = required.filter_map(Value::as_str).filter(is_unlisted).take(MAX_OPTIONS);
    names.map(|name| format!("--seed-value {}=…", quote_shell_words([name]))).collect()
}

/// Whether a keyword without effect is a mistake of its author: it applies to another type than the schema's, or the
/// schema lists its values.
#[must_use]
pub(crate) fn is_misplaced_keyword(schema: &Value, constraint: &Constraint) -> bool {
    let Some((_, types)) = BOUNDS.iter().find(|(keyword, _)| *keyword == constraint.keyword) else { return false };
    // With a list of values a limit has no effect, unless it excludes some of them.
    if schema
        .pointer(&constraint.pointer)
        .is_some_and(|subschema| subschema.get("enum").or(subschema.get("const")).is_some())
    {
        return true;
    }
    let Some(declared) = schema.pointer(&constraint.pointer).and_then(|subschema| subschema.get("type")) else {
        return false;
    };
    match declared {
        Value::String(one) => !types.contains(&one.as_str()),
        Value::Array(several) => !several.iter().filter_map(Value::as_str).any(|one| types.contains(&one)),
        _ => false,
    }
}

/// The violation by misplaced limits.
#[must_use]
pub(crate) fn misplaced_keywords(misplaced: &[String]) -> Option<OracleViolation> {
    (!misplaced.is_empty()).then(|| {
        OracleViolation::from_many_calls(
            Oracle::SchemaWithoutEffect,
            "a keyword in an inputSchema has no effect",
            format!("without effect: {}", misplaced.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_is_misplaced_if_it_applies_to_another_type() {
        let schema = json!({"properties": {"n": {"type": "integer", "minLength": 1, "minimum": 1}}});
        let constraint =
            |keyword: &str| Constraint { pointer: "/properties/n".to_owned(), keyword: keyword.to_owned(), name: None };
        assert!(is_misplaced_keyword(&schema, &constraint("minLength")));
        assert!(!is_misplaced_keyword(&schema, &constraint("minimum")));
    }

    #[test]
    fn the_values_that_cannot_be_guessed_are_asked_for() {
        let schema = json!({
            "properties": {"id": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "deep": {"type": "boolean"}},
            "required": ["id", "kind", "deep"],
        });
        assert!(values_remedy(&schema).contains("accepts: --seed-value id=…, "), "{}", values_remedy(&schema));
        assert!(values_remedy(&json!({})).contains("--seed-value NAME=VALUE"));
        let quoted = values_remedy(&json!({"properties": {"it's": {"type": "string"}}, "required": ["it's"]}));
        assert!(quoted.contains("--seed-value \"it's\"=…, "), "{quoted}");
    }
}
