//! The JSON types of the values that a JSON Schema says anything about.
//!
//! `{"required": ["a"]}` says nothing about `null`: in JSON Schema `null` is valid against it, and invalid against its
//! negation. Neither is evidence about a server.

use serde_json::Value;

/// Keywords that apply to objects alone.
const OBJECT_KEYWORDS: [&str; 11] = [
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
];

/// Keywords that apply to arrays alone.
const ARRAY_KEYWORDS: [&str; 9] = [
    "items",
    "prefixItems",
    "contains",
    "unevaluatedItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
];

/// Keywords that apply to strings alone.
const STRING_KEYWORDS: [&str; 4] = ["pattern", "format", "minLength", "maxLength"];

/// Keywords that apply to numbers alone.
const NUMBER_KEYWORDS: [&str; 5] = ["multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// The prefix of an absolute reference to a schema that is bundled below `$defs`.
const BUNDLED: &str = "json-schema:///";

/// How many references lead to each other before a schema counts as one about every type.
const MAX_REFERENCES: usize = 16;

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JsonTypes(u8);

impl JsonTypes {
    const NONE: Self = Self(0);
    const OBJECT: Self = Self(1);
    const ARRAY: Self = Self(2);
    const STRING: Self = Self(4);
    const NUMBER: Self = Self(8);
    const ALL: Self = Self(31);

    /// The types of the values that a schema constrains.
    pub(super) fn constrained_by(schema: &Value) -> Self {
        constrained(schema, schema, 0)
    }

    /// Whether the type of a value is one of them.
    pub(super) fn include(self, value: &Value) -> bool {
        let own = match value {
            Value::Object(_) => Self::OBJECT.0,
            Value::Array(_) => Self::ARRAY.0,
            Value::String(_) => Self::STRING.0,
            Value::Number(_) => Self::NUMBER.0,
            Value::Null | Value::Bool(_) => 16,
        };
        self.0 & own != 0
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

fn constrained(schema: &Value, root: &Value, references: usize) -> JsonTypes {
    let keywords = match schema {
        Value::Object(keywords) if references <= MAX_REFERENCES => keywords,
        Value::Bool(true) => return JsonTypes::NONE,
        _ => return JsonTypes::ALL,
    };
    let of = |subschema: &Value| constrained(subschema, root, references);
    keywords.iter().fold(JsonTypes::NONE, |types, (keyword, value)| {
        let own = match keyword.as_str() {
            "type" | "const" | "enum" | "$dynamicRef" => JsonTypes::ALL,
            "not" | "then" | "else" => of(value),
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array().into_iter().flatten().map(of).fold(JsonTypes::NONE, JsonTypes::union)
            }
            "$ref" => referred(value, root).map_or(JsonTypes::ALL, |target| constrained(target, root, references + 1)),
            name if OBJECT_KEYWORDS.contains(&name) => JsonTypes::OBJECT,
            name if ARRAY_KEYWORDS.contains(&name) => JsonTypes::ARRAY,
            name if STRING_KEYWORDS.contains(&name) => JsonTypes::STRING,
            name if NUMBER_KEYWORDS.contains(&name) => JsonTypes::NUMBER,
            _ => JsonTypes::NONE,
        };
        types.union(own)
    })
}

/// The schema that a reference leads to, if it is in the same document.
fn referred<'s>(reference: &Value, root: &'s Value) -> Option<&'s Value> {
    let reference = reference.as_str()?;
    match reference.strip_prefix(BUNDLED) {
        Some(name) => root.get("$defs")?.get(name),
        None => root.pointer(reference.strip_prefix('#')?),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_with_keywords_of_one_type_constrains_that_type_alone() {
        let rows = [
            (json!({"required": ["a"]}), JsonTypes::OBJECT),
            (json!({"not": {"required": ["a"], "properties": {"a": {"const": 1}}}}), JsonTypes::OBJECT),
            (json!({"items": {"type": "string"}}), JsonTypes::ARRAY),
            (json!({"pattern": "a"}), JsonTypes::STRING),
            (json!({"not": {"minimum": 1}}), JsonTypes::NUMBER),
            (json!({"type": "object", "required": ["a"]}), JsonTypes::ALL),
            (json!({"anyOf": [{"required": ["a"]}, {"const": 5}]}), JsonTypes::ALL),
            (json!({"if": {"type": "string"}, "then": {"not": {"pattern": "a"}}}), JsonTypes::STRING),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"required": ["a"]}}}), JsonTypes::OBJECT),
            (json!({"$ref": "json-schema:///shapes/a", "$defs": {"shapes/a": {"minLength": 1}}}), JsonTypes::STRING),
            (json!({"$ref": "#"}), JsonTypes::ALL),
            (json!(true), JsonTypes::NONE),
            (json!(false), JsonTypes::ALL),
        ];
        for (schema, expected) in rows {
            assert_eq!(JsonTypes::constrained_by(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_value_is_of_one_type() {
        for value in [json!(null), json!(true), json!(1), json!("a"), json!([]), json!({})] {
            assert!(JsonTypes::ALL.include(&value) && !JsonTypes::NONE.include(&value), "{value}");
            assert_eq!(JsonTypes::OBJECT.include(&value), value.is_object(), "{value}");
        }
    }
}
