//! What is wrong with the JSON Schemas that stand in a case.
//!
//! JSON Schema lets keywords pass that it does not know, so a slip of the pen would check nothing. In
//! a case such a slip is a fault.

use serde_json::{Value, json};

use super::fault::Flaw;
use super::format::FORMATS;
use super::pattern::compile;
use super::place::escape;

/// Keywords whose value is a schema.
const ONE: [&str; 10] = [
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
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value has schemas for members.
const NAMED: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];

/// Keywords of other kinds that check something or explain.
const OTHER: [&str; 32] = [
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
pub(super) fn flaws(schema: &Value, pointer: &str) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        flaws.push(Flaw::at(format!("{pointer}{}", error.instance_path()), format!("no valid JSON Schema: {error}")));
    }
    walk(schema, pointer, &mut flaws);
    if flaws.is_empty()
        && let Err(error) = compile(schema)
    {
        flaws.push(Flaw::at(pointer, format!("the JSON Schema does not compile: {error}")));
    }
    flaws
}

fn walk(schema: &Value, pointer: &str, flaws: &mut Vec<Flaw>) {
    let Value::Object(keywords) = schema else { return };
    for (keyword, value) in keywords {
        let here = format!("{pointer}/{}", escape(keyword));
        let name = keyword.as_str();
        if ONE.contains(&name) {
            walk(value, &here, flaws);
        } else if SEVERAL.contains(&name) {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                walk(item, &format!("{here}/{index}"), flaws);
            }
        } else if NAMED.contains(&name) {
            for (member, inner) in value.as_object().into_iter().flatten() {
                let inside = format!("{here}/{}", escape(member));
                if name == "patternProperties" {
                    expression(member, &inside, true, flaws);
                }
                walk(inner, &inside, flaws);
            }
        } else if !OTHER.contains(&name) {
            let known = ONE.iter().chain(&SEVERAL).chain(&NAMED).chain(&OTHER).copied();
            flaws.push(Flaw::on_name(here, format!("the keyword `{name}` checks nothing here")).nearest(name, known));
        } else if let Some(text) = value.as_str() {
            match name {
                "pattern" => expression(text, &here, false, flaws),
                "format" => format(text, here, flaws),
                _ => {}
            }
        }
    }
}

fn expression(text: &str, pointer: &str, on_name: bool, flaws: &mut Vec<Flaw>) {
    if compile(&json!({"pattern": text})).is_err() {
        // The schema of schemas asks for the format `regex` too, and has less to say.
        flaws.retain(|flaw| flaw.pointer != pointer);
        let flaw = Flaw::at(pointer, format!("bad regular expression `{text}`"));
        flaws.push(Flaw { on_name, ..flaw });
    }
}

fn format(name: &str, pointer: String, flaws: &mut Vec<Flaw>) {
    let known = || FORMATS.iter().map(|(name, _)| *name).chain(STANDARD_FORMATS);
    if !known().any(|known| known == name) {
        flaws.push(Flaw::at(pointer, format!("unknown format `{name}`")).nearest(name, known()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(schema: &Value) -> Vec<(String, String, Option<String>)> {
        flaws(schema, "/schema").into_iter().map(|flaw| (flaw.pointer, flaw.message, flaw.suggestion)).collect()
    }

    #[test]
    fn a_schema_that_uses_every_kind_of_keyword_is_fine() {
        let schema = json!({
            "$defs": {"name": {"type": "string", "format": "clean-text", "pattern": "^[a-z]+$"}},
            "type": "object",
            "properties": {"name": {"$ref": "#/$defs/name"}, "unheard-of": {"enum": [{"whatever": 1}]}},
            "patternProperties": {"^x-": true},
            "required": ["name"],
            "anyOf": [{"not": {"const": {"free": "text"}}}],
            "additionalProperties": false,
        });
        assert_eq!(told(&schema), []);
        for format in STANDARD_FORMATS {
            assert_eq!(told(&json!({"format": format})), [], "{format}");
        }
    }

    #[test]
    fn every_slip_is_told_with_its_place() {
        let schema = json!({
            "requierd": ["a"],
            "properties": {"a": {"type": "strin"}, "b": {"pattern": "("}, "c": {"format": "base46"}},
            "patternProperties": {"[": {"minLenght": 1}},
        });
        let faults = told(&schema);
        let places: Vec<_> = faults.iter().map(|(pointer, ..)| pointer.as_str()).collect();
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
        assert_eq!(faults[1].1, "the keyword `requierd` checks nothing here");
        assert_eq!(faults[1].2.as_deref(), Some("required"));
        assert_eq!(faults[2].1, "bad regular expression `(`");
        assert_eq!(faults[3].2.as_deref(), Some("base64"));
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_told() {
        let faults = told(&json!({"$ref": "#/$defs/missing"}));
        assert!(faults[0].1.starts_with("the JSON Schema does not compile: "), "{faults:?}");
        let faults = told(&json!({"$ref": "https://example.com/schema"}));
        assert!(faults[0].1.starts_with("the JSON Schema does not compile: "), "{faults:?}");
    }
}
