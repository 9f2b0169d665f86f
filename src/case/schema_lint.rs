//! Finds what is wrong with a JSON Schema in a case.
//!
//! JSON Schema ignores keywords that it does not know, so a misspelt one would check nothing. In a case it is an error.

use serde_json::{Value, json};

use super::format::FORMATS;
use super::lazy_schema::compile;
use super::problem::UnlocatedDiagnostic;
use super::shapes::{Shapes, each_reference};
use crate::json_pointer;

/// Keywords whose value is a schema.
const SUBSCHEMA: [&str; 10] = [
    "not",
    "if",
    "then",
    "else",
    "items",
    "contains",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
];

/// Keywords whose value is an array of schemas.
const SUBSCHEMA_ARRAY: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value is an object of schemas.
const SUBSCHEMA_OBJECT: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];

/// All other keywords that assert or describe something.
const OTHER_KEYWORDS: [&str; 32] = [
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "format",
    "$schema",
    "$id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$vocabulary",
    "$comment",
    "title",
    "description",
    "examples",
];

/// The formats that the specification of JSON Schema names and the compiler knows.
const STANDARD_FORMATS: [&str; 17] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Everything that is wrong with the schema at `pointer`.
pub(super) fn flaws(schema: &Value, pointer: &str, shapes: &Shapes) -> Vec<UnlocatedDiagnostic> {
    let mut flaws = Vec::new();
    each_reference(schema, pointer, &mut |here, name| {
        if !shapes.contains(name) {
            flaws.push(UnlocatedDiagnostic::at(here, format!("unknown shape `{name}`")).nearest(name, shapes.names()));
        }
    });
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        flaws.push(UnlocatedDiagnostic::at(
            format!("{pointer}{}", error.instance_path()),
            format!("not a valid JSON Schema: {error}"),
        ));
    }
    traverse(schema, pointer, &mut flaws);
    let mut bundled = schema.clone();
    shapes.bundle(&mut bundled);
    if flaws.is_empty()
        && let Err(error) = compile(&bundled)
    {
        flaws.push(UnlocatedDiagnostic::at(pointer, format!("the JSON Schema does not compile: {error}")));
    }
    flaws
}

fn traverse(schema: &Value, pointer: &str, flaws: &mut Vec<UnlocatedDiagnostic>) {
    let Value::Object(keywords) = schema else { return };
    for (keyword, value) in keywords {
        let here = json_pointer::join(pointer, keyword);
        let name = keyword.as_str();
        if SUBSCHEMA.contains(&name) {
            traverse(value, &here, flaws);
        } else if SUBSCHEMA_ARRAY.contains(&name) {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                traverse(item, &format!("{here}/{index}"), flaws);
            }
        } else if SUBSCHEMA_OBJECT.contains(&name) {
            for (member, inner) in value.as_object().into_iter().flatten() {
                let inside = json_pointer::join(&here, member);
                if name == "patternProperties" {
                    expression(member, &inside, true, flaws);
                }
                traverse(inner, &inside, flaws);
            }
        } else if !OTHER_KEYWORDS.contains(&name) {
            let known =
                SUBSCHEMA.iter().chain(&SUBSCHEMA_ARRAY).chain(&SUBSCHEMA_OBJECT).chain(&OTHER_KEYWORDS).copied();
            flaws.push(
                UnlocatedDiagnostic::on_name(here, format!("the keyword `{name}` checks nothing here"))
                    .nearest(name, known),
            );
        } else if let Some(text) = value.as_str() {
            match name {
                "pattern" => expression(text, &here, false, flaws),
                "format" => format(text, here, flaws),
                _ => {}
            }
        }
    }
}

fn expression(text: &str, pointer: &str, on_name: bool, flaws: &mut Vec<UnlocatedDiagnostic>) {
    if compile(&json!({"pattern": text})).is_err() {
        // The metaschema asserts the format `regex` too, in less plain words.
        flaws.retain(|flaw| flaw.pointer != pointer);
        let flaw = UnlocatedDiagnostic::at(pointer, format!("invalid regular expression `{text}`"));
        flaws.push(UnlocatedDiagnostic { on_name, ..flaw });
    }
}

fn format(name: &str, pointer: String, flaws: &mut Vec<UnlocatedDiagnostic>) {
    let known = || FORMATS.iter().map(|(name, _)| *name).chain(STANDARD_FORMATS);
    if !known().any(|known| known == name) {
        flaws.push(UnlocatedDiagnostic::at(pointer, format!("unknown format `{name}`")).nearest(name, known()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(schema: &Value) -> Vec<(String, String, Option<String>)> {
        flaws(schema, "/schema", &Shapes::default())
            .into_iter()
            .map(|flaw| (flaw.pointer, flaw.message, flaw.suggestion))
            .collect()
    }

    #[test]
    fn a_schema_with_every_kind_of_keyword_is_valid() {
        let schema = json!({
            "$defs": {"name": {"type": "string", "format": "clean-text", "pattern": "^[a-z]+$"}},
            "type": "object",
            "properties": {"name": {"$ref": "#/$defs/name"}, "unheard-of": {"enum": [{"whatever": 1}]}},
            "patternProperties": {"^x-": true},
            "required": ["name"],
            "anyOf": [{"not": {"const": {"free": "text"}}}],
            "additionalProperties": false,
        });
        assert_eq!(problems(&schema), []);
        for format in STANDARD_FORMATS {
            assert_eq!(problems(&json!({"format": format})), [], "{format}");
        }
    }

    #[test]
    fn every_mistake_is_reported_with_its_place() {
        let schema = json!({
            "requierd": ["a"],
            "properties": {"a": {"type": "strin"}, "b": {"pattern": "("}, "c": {"format": "base46"}},
            "patternProperties": {"[": {"minLenght": 1}},
        });
        let found = problems(&schema);
        let places: Vec<_> = found.iter().map(|(pointer, ..)| pointer.as_str()).collect();
        assert_eq!(
            places,
            [
                "/schema/properties/a/type",
                "/schema/requierd",
                "/schema/properties/b/pattern",
                "/schema/properties/c/format",
                "/schema/patternProperties/[",
                "/schema/patternProperties/[/minLenght",
            ]
        );
        assert_eq!(found[1].1, "the keyword `requierd` checks nothing here");
        assert_eq!(found[1].2.as_deref(), Some("required"));
        assert_eq!(found[2].1, "invalid regular expression `(`");
        assert_eq!(found[3].2.as_deref(), Some("base64"));
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_problems() {
        let found = problems(&json!({"$ref": "#/$defs/missing"}));
        assert!(found[0].1.starts_with("the JSON Schema does not compile: "), "{found:?}");
        let found = problems(&json!({"$ref": "https://example.com/schema"}));
        assert!(found[0].1.starts_with("the JSON Schema does not compile: "), "{found:?}");
    }
}
