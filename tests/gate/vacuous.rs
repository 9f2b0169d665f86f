//! Schemas of cases that decide about a value of another type than they have in mind.
//!
//! `{"not": {"required": ["a"]}}` rejects `null`, and `{"required": ["a"]}` accepts it, though neither is about it. The judge
//! leaves out a rule whose schema as a whole is about values of other types; inside of one, a `not` has to state the type.

use std::collections::BTreeSet;

use mcp_conformance::internals::case::{Body, LazySchema, ValueRule, Watch, WatchKind};
use serde_json::{Value, json};

use crate::support::reference::cases;
use crate::support::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("data/no-schema-is-vacuous-below-not", no_schema_is_vacuous_below_not),
        trial("data/a-planted-vacuous-schema-is-found", a_planted_vacuous_schema_is_found),
    ]
}

/// The JSON types.
const TYPES: [&str; 6] = ["object", "array", "string", "number", "boolean", "null"];

/// The keywords that apply to values of one type alone.
const KEYWORDS: [(&str, &[&str]); 4] = [
    (
        "object",
        &["required", "properties", "patternProperties", "additionalProperties", "propertyNames", "minProperties"],
    ),
    ("array", &["items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"]),
    ("string", &["pattern", "format", "minLength", "maxLength"]),
    ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
];

/// The rules of passive cases that are schemas, each with the id of its case and what it judges.
fn rules() -> Vec<(String, WatchKind, LazySchema)> {
    let mut found = Vec::new();
    for case in cases() {
        let Body::Passive(passive) = &case.body else { continue };
        let Watch::Values(values) = &passive.watch else { continue };
        for rule in &values.rules {
            if let ValueRule::Schema(schema) = &rule.check {
                found.push((case.id.clone(), values.kind.clone(), schema.clone()));
            }
        }
    }
    found
}

fn no_schema_is_vacuous_below_not() -> Result<(), String> {
    let mut vacuous = Vec::new();
    for (case, kind, schema) in rules() {
        // All but the messages in an exchange was written by this project, so its types are known.
        let only_below_message = matches!(kind, WatchKind::Exchange(_) | WatchKind::Line);
        for place in vacuous_places(schema.schema()) {
            if !only_below_message || place.contains("/message/") {
                vacuous.push(format!("{case} at {place}"));
            }
        }
    }
    if vacuous.is_empty() { Ok(()) } else { Err(format!("state the type at:\n{}", vacuous.join("\n"))) }
}

fn a_planted_vacuous_schema_is_found() -> Result<(), String> {
    let rows = [
        (json!({"properties": {"a": {"not": {"required": ["b"]}}}}), 1),
        (json!({"properties": {"a": {"not": {"type": "object", "required": ["b"]}}}}), 0),
        (json!({"properties": {"a": {"if": {"type": "string"}, "then": {"not": {"pattern": "b"}}}}}), 0),
        (json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"not": {"pattern": "b"}}}}), 1),
        (json!({"not": {"not": {"properties": {"a": {"pattern": "b"}}}}}), 0),
        (json!({"not": {"properties": {"a": {"pattern": "b"}}}}), 1),
        (json!({"not": {"required": ["a"]}}), 0),
        (json!({"anyOf": [{"not": {"minimum": 5}}, {"type": "string"}]}), 1),
    ];
    for (schema, expected) in rows {
        let found = vacuous_places(&schema);
        if found.len() != expected {
            return Err(format!("{schema}: {found:?}"));
        }
    }
    Ok(())
}

/// The places of keywords below an odd number of `not` that decide about values of other types as well.
fn vacuous_places(schema: &Value) -> Vec<String> {
    let lazy = LazySchema::new(schema.clone());
    let samples = [json!({}), json!([]), json!("text"), json!(5), json!(true), json!(null)].into_iter().zip(TYPES);
    // Values of other types are not judged by the schema at all.
    let judged = samples.filter(|(sample, _)| lazy.constrains(sample)).map(|(_, name)| name).collect();
    let mut search = Search { root: schema, known: BTreeSet::new(), found: Vec::new() };
    search.visit(schema, "", false, &judged);
    search.found
}

struct Search<'s> {
    root: &'s Value,
    /// The references that were followed, each with whether it was negated.
    known: BTreeSet<(String, bool)>,
    found: Vec<String>,
}

impl<'s> Search<'s> {
    /// Visits a schema whose instance has one of some types.
    fn visit(&mut self, schema: &'s Value, place: &str, negated: bool, types: &BTreeSet<&'s str>) {
        let Value::Object(keywords) = schema else { return };
        let types = narrowed(types, schema);
        let any: BTreeSet<&str> = TYPES.into_iter().collect();
        for (name, value) in keywords {
            let here = format!("{place}/{name}");
            let of = KEYWORDS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(of, _)| *of);
            if let Some(of) = of.filter(|of| negated && types.iter().any(|own| own != of)) {
                self.found.push(format!("{here} (not only for {of})"));
            }
            match name.as_str() {
                "not" => self.visit(value, &here, !negated, &types),
                "then" => {
                    let narrowed =
                        keywords.get("if").map_or_else(|| types.clone(), |condition| narrowed(&types, condition));
                    self.visit(value, &here, negated, &narrowed);
                }
                "else" => self.visit(value, &here, negated, &types),
                "allOf" | "anyOf" | "oneOf" => {
                    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.visit(item, &format!("{here}/{at}"), negated, &types);
                    }
                }
                "properties" | "patternProperties" => {
                    for (member, inner) in value.as_object().into_iter().flatten() {
                        self.visit(inner, &format!("{here}/{member}"), negated, &any);
                    }
                }
                "prefixItems" => {
                    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.visit(item, &format!("{here}/{at}"), negated, &any);
                    }
                }
                "items" | "contains" | "additionalProperties" => self.visit(value, &here, negated, &any),
                "propertyNames" => self.visit(value, &here, negated, &BTreeSet::from(["string"])),
                "$ref" => self.follow(value, &here, negated, &types),
                _ => {}
            }
        }
    }

    /// Visits the schema that a reference leads to, once.
    fn follow(&mut self, reference: &Value, place: &str, negated: bool, types: &BTreeSet<&'s str>) {
        let text = reference.as_str().unwrap_or_default();
        let target = match text.strip_prefix("json-schema:///") {
            Some(name) => self.root.get("$defs").and_then(|definitions| definitions.get(name)),
            None => self.root.pointer(text.strip_prefix('#').unwrap_or("/")),
        };
        if let Some(target) = target
            && self.known.insert((text.to_owned(), negated))
        {
            self.visit(target, place, negated, types);
        }
    }
}

/// The types that are left where a schema holds.
fn narrowed<'s>(types: &BTreeSet<&'s str>, schema: &Value) -> BTreeSet<&'s str> {
    let mut left = types.clone();
    if let Some(named) = schema.get("type") {
        let names: Vec<&str> = match named {
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            name => name.as_str().into_iter().collect(),
        };
        left.retain(|own| names.iter().any(|name| name == own || *name == "integer" && *own == "number"));
    }
    let allowed =
        schema.get("enum").and_then(Value::as_array).cloned().or_else(|| Some(vec![schema.get("const")?.clone()]));
    if let Some(allowed) = allowed {
        left.retain(|own| allowed.iter().any(|value| type_of(value) == *own));
    }
    left
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    }
}
