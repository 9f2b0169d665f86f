//! What is wrong with an inputSchema itself.

use serde_json::Value;

use super::Breach;
use super::words::excerpt;
use crate::case::Oracle;
use crate::fuzz::{Site, ToolSchema};

/// Bounds, each with the types that it speaks of.
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

/// A schema that nothing satisfies.
#[must_use]
pub fn unsatisfiable(schema: &ToolSchema) -> Option<Breach> {
    schema.is_unsatisfiable().then(|| {
        Breach::of_many(
            Oracle::SchemaContradiction,
            "an inputSchema contradicts itself",
            "no arguments satisfy it, so nobody can call the tool as it asks to be called",
        )
    })
}

/// A tool that was called so often with arguments that its schema admits, and never with success.
///
/// `said` is what most of the calls were answered by.
#[must_use]
pub fn never_succeeds(schema: &Value, calls: u64, said: Option<&str>) -> Breach {
    let said = said.map_or_else(String::new, |said| format!(", most are answered by {}", excerpt(said, 160)));
    let names = to_be_named(schema);
    let remedy = if names.is_empty() { "--seed-value NAME=VALUE".to_owned() } else { names.join(" ") };
    Breach::of_many(
        Oracle::NeverSucceeds,
        "no call that the inputSchema admits succeeds, so little of the tool was tested",
        format!(
            "none of {calls} calls with valid arguments succeeded{said}; to test it, name values that it takes, with \
             {remedy} or as `examples` in the inputSchema"
        ),
    )
}

/// The options that name a value for each property that is required and whose values are not listed.
fn to_be_named(schema: &Value) -> Vec<String> {
    const MOST: usize = 4;
    let open = |name: &&str| {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        let says = |keyword| property.is_some_and(|property| property.get(keyword).is_some());
        !says("enum") && !says("const") && property.is_none_or(|property| property["type"] != "boolean")
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let names = required.filter_map(Value::as_str).filter(open).take(MOST);
    // As it is to be typed: what a shell would take apart is quoted.
    let typed = |name: &str| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if plain { format!("--seed-value {name}=…") } else { format!("--seed-value '{name}=…'") }
    };
    names.map(typed).collect()
}

/// Whether a keyword without effect is a bound that its author can hardly have meant: one of another type than the
/// one beside it, or one beside a list of values.
#[must_use]
pub fn misplaced_bound(schema: &Value, site: &Site) -> bool {
    let Some((_, types)) = BOUNDS.iter().find(|(keyword, _)| *keyword == site.keyword) else { return false };
    // Beside a list of values a bound says nothing, unless it takes some of them away.
    if schema.pointer(&site.pointer).is_some_and(|beside| beside.get("enum").or(beside.get("const")).is_some()) {
        return true;
    }
    let Some(beside) = schema.pointer(&site.pointer).and_then(|subschema| subschema.get("type")) else { return false };
    match beside {
        Value::String(one) => !types.contains(&one.as_str()),
        Value::Array(several) => !several.iter().filter_map(Value::as_str).any(|one| types.contains(&one)),
        _ => false,
    }
}

/// The breach that misplaced bounds make.
#[must_use]
pub fn lints(misplaced: &[String]) -> Option<Breach> {
    (!misplaced.is_empty()).then(|| {
        Breach::of_many(
            Oracle::SchemaWithoutEffect,
            "a bound in an inputSchema bounds nothing",
            format!("without effect: {}", misplaced.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bound_is_misplaced_beside_a_type_that_it_does_not_speak_of() {
        let schema = json!({"properties": {"n": {"type": "integer", "minLength": 1, "minimum": 1}}});
        let site =
            |keyword: &str| Site { pointer: "/properties/n".to_owned(), keyword: keyword.to_owned(), name: None };
        assert!(misplaced_bound(&schema, &site("minLength")));
        assert!(!misplaced_bound(&schema, &site("minimum")));
    }
}
