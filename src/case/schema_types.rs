//! The parts of `cases/schema.json` that no Rust type says: patterns of names, and the forms of JSON values.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::active::ForEach;
use super::checks::{Comparison, ConnectionCheck, ConnectionRule, Oracle, ValueCheck};
use super::client_response::ClientResponse;
use super::file::{EncodedBytes, RawFile};
use crate::verdict::Verdict;

/// Declares types that stand for a schema: `name` is that of the definition, and none inlines it.
macro_rules! schemas {
    ($($type:ident $name:literal = $schema:expr;)+) => {
        $(
            pub(super) struct $type;

            impl JsonSchema for $type {
                fn inline_schema() -> bool {
                    $name.is_empty()
                }

                fn schema_name() -> Cow<'static, str> {
                    if $name.is_empty() { stringify!($type).into() } else { $name.into() }
                }

                fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                    let schema: fn(&mut SchemaGenerator) -> Value = $schema;
                    Schema::try_from(schema(generator)).expect("a schema is an object")
                }
            }
        )+
    };
}

/// The names of lower-case words with hyphens between them.
const KEBAB: &str = "^[a-z0-9]+(-[a-z0-9]+)*$";

/// The schema of one of several names, each with its meaning.
fn names(all: impl Iterator<Item = (&'static str, &'static str)>) -> Value {
    let names = all.map(|(name, meaning)| json!({"const": name, "description": meaning}));
    json!({"oneOf": names.collect::<Vec<_>>()})
}

schemas! {
    Title "" = |_| json!({
        "type": "string", "minLength": 1, "maxLength": 70, "not": {"pattern": "\\b[Ss][Hh][Oo][Uu][Ll][Dd]\\b"},
    });
    RequirementId "requirement" = |_| json!({
        "description": "The id of a requirement in the catalogue.", "type": "string", "pattern": KEBAB,
    });
    Revisions "revisions" = |_| {
        let one = r"(\d{4}-\d{2}-\d{2}(\.\.(\d{4}-\d{2}-\d{2})?)?|\.\.\d{4}-\d{2}-\d{2})";
        json!({
            "description": "A revision (`2025-06-18`), a range with both ends (`2024-11-05..2025-06-18`), a range open on one side (`2025-06-18..`), or several of these separated by commas.",
            "type": "string",
            "pattern": format!(r"^\s*{one}\s*(,\s*{one}\s*)*$"),
            "examples": ["2025-06-18", "2024-11-05..2025-06-18", "2025-11-25..", "2024-10-07, 2025-11-25.."],
        })
    };
    VerdictName "verdict" = |_| json!({
        "description": "`pass`: the server is right. `fail`: it violates a MUST or the schema. `warn`: it violates a SHOULD, or a rule that the text states without a keyword. `skip`: the case does not apply. `error`: the case could not judge.",
        "enum": Vec::from([Verdict::Pass, Verdict::Fail, Verdict::Warn, Verdict::Skip, Verdict::Error].map(Verdict::as_str)),
    });
    SchemaValue "json-schema" = |_| json!({
        "description": "A JSON Schema (2020-12; formats are asserted, among them base64, absolute-uri, iso-8601, mime-type, clean-text and no-control). `\"$ref\": \"shapes/NAME\"` refers to the schema in `shapes/NAME.json`.",
        "type": ["object", "boolean"],
    });
    PathText "path" = |_| json!({
        "description": "A JSON pointer in which `*` matches each member or item; a leading `/**` matches at any depth.",
        "type": "string", "pattern": "^(/.*)?$", "examples": ["/tools/*", "/tools/*/inputSchema", "/**/_meta"],
    });
    Tag "" = |_| json!({"description": "A name.", "type": "string", "pattern": KEBAB});
    FaultName "" = |_| json!({"type": "string", "pattern": KEBAB});
    CaseOrArea "" = |_| json!({
        "description": "The id of a case, or an area.", "type": "string", "pattern": "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$",
    });
    MethodName "" = |_| json!({"description": "A method, such as `tools/list`.", "type": "string", "minLength": 1});
    CapabilityPath "" = |_| json!({
        "description": "A capability.", "type": "string", "pattern": r"^!?[^.!\s]+(\.[^.!\s]+)*$",
    });
    StepName "" = |_| json!({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"});
    StepReference "" = |_| json!({"description": "The name of a step.", "type": "string"});
    Object "" = |_| json!({"type": "object"});
    MetaValue "" = |_| json!({"anyOf": [{"const": false}, {"type": "object"}]});
    ErrorCode "" = |_| json!({
        "description": "An error code.", "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX,
    });
    StatusOrClass "" = |_| json!({
        "description": "A status or a class of statuses.",
        "anyOf": [{"type": "integer", "minimum": 100, "maximum": 599}, {"type": "string", "pattern": "^[1-5]xx$"}],
    });
    OracleName "" = |_| names(Oracle::ALL.iter().map(|oracle| (oracle.as_str(), oracle.rule())));
    CheckName "check" = |generator| {
        let values = ValueCheck::ALL.iter().map(|check| (check.as_str(), check.rule()));
        let connections = ConnectionCheck::ALL.iter().map(|check| (check.as_str(), check.rule()));
        json!({"anyOf": [names(values.chain(connections)), generator.subschema_for::<ConnectionRule>()]})
    };
    ComparisonName "" = |_| names(Comparison::ALL.iter().map(|comparison| (comparison.as_str(), comparison.rule())));
    Message "message" = |_| json!({
        "description": "A JSON-RPC message, pasted as it is; what it leaves out is added.",
        "type": "object",
        "properties": {
            "jsonrpc": {"description": "The version of JSON-RPC; by default 2.0."},
            "id": {"description": "The id; by default a fresh integer."},
            "method": {"description": "The method."},
            "params": {"description": "The parameters."},
        },
    });
    HttpBody "" = |generator| {
        let message = generator.subschema_for::<Message>();
        json!({"anyOf": [message, {"type": "array", "items": message}, {"type": "string"}]})
    };
    Headers "" = |_| json!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": r"^[A-Za-z0-9-]+\*?$"},
        "additionalProperties": {
            "description": "Its value, in which `${header}` inserts the one that the client would send; null leaves the header out, and a list repeats it. A name that ends in `*` means every header of the client that begins with it.",
            "anyOf": [
                {"type": "null"},
                {"type": "string"},
                {"type": "array", "minItems": 2, "items": {"description": "A value.", "type": "string"}},
            ],
        },
    });
    SavedPointers "" = |_| json!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": "^[A-Za-z0-9_-]+$"},
        "additionalProperties": {
            "description": "A JSON pointer into the response, or into the exchange of an `http` step.",
            "type": "string",
            "pattern": "^(/.*)?$",
            "examples": ["/result/nextCursor"],
        },
    });
    ClientResponses "" = |generator| json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "description": "The responses to requests of this method.",
            "type": "array",
            "minItems": 1,
            "items": generator.subschema_for::<ClientResponse>(),
        },
    });
}

/// A list that has items.
pub(super) struct NonEmpty<T>(PhantomData<T>);

/// A list of distinct items that has some.
pub(super) struct Distinct<T>(PhantomData<T>);

/// A list of distinct items that may have none.
pub(super) struct DistinctOrNone<T>(PhantomData<T>);

macro_rules! lists {
    ($($type:ident $list:tt)+) => {
        $(
            impl<T: JsonSchema> JsonSchema for $type<T> {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    format!("{}{}", stringify!($type), T::schema_name()).into()
                }

                fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                    let mut schema = json_schema!($list);
                    schema.insert("items".to_owned(), generator.subschema_for::<T>().into());
                    schema
                }
            }
        )+
    };
}

lists! {
    NonEmpty {"type": "array", "minItems": 1}
    Distinct {"type": "array", "minItems": 1, "uniqueItems": true}
    DistinctOrNone {"type": "array", "uniqueItems": true}
}

impl JsonSchema for ForEach {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "for-each".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`tool`: every listed tool that may be called (`${tool}`). `resource`: every listed resource (`${resource}`). `prompt`: every listed prompt (`${prompt}`). `{\"page\": METHOD}`: every page of a list but the first (`${page.cursor}`).",
            "anyOf": [
                {"enum": ["tool", "resource", "prompt"]},
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["page"],
                    "properties": {
                        "page": {"description": "The method of the list.", "type": "string", "minLength": 1, "examples": ["tools/list"]},
                    },
                },
            ],
        })
    }
}

impl JsonSchema for RawFile {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "raw".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Both notations are parsed by `EncodedBytes`.
        let _: fn(EncodedBytes) -> Self = Self::Bytes;
        json_schema!({
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "additionalProperties": false,
                    "minProperties": 1,
                    "maxProperties": 1,
                    "properties": {
                        "hex": {
                            "description": "Pairs of hexadecimal digits, with single spaces between them or not.",
                            "type": "string",
                            "pattern": "^([0-9A-Fa-f]{2} ?)*$",
                        },
                        "base64": {
                            "description": "Base64 with padding.",
                            "type": "string",
                            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
                        },
                    },
                },
            ],
        })
    }
}

/// The `oneOf` of an object that has exactly one of these members.
pub(super) fn one_of_required(members: &[&str]) -> Value {
    members.iter().map(|member| json!({"required": [member]})).collect()
}

/// A comparison of two steps needs two of them.
pub(super) fn two_steps_where_compared(schema: &mut Schema) {
    let comparing = ["same", "same-set", "same-order", "same-set-between", "differ", "disjoint", "logs-follow-level"];
    schema.insert("if".to_owned(), json!({"properties": {"check": {"enum": comparing}}}));
    schema.insert("then".to_owned(), json!({"properties": {"steps": {"minItems": 2}}}));
}

/// Makes one object with exactly one of several members of an enum whose variants are such objects.
pub(super) fn one_member(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.remove("oneOf") else { return };
    let (variants, names): (Vec<Value>, Vec<Value>) =
        variants.into_iter().partition(|variant| variant.get("properties").is_some());
    let mut properties = serde_json::Map::new();
    for variant in variants {
        for (name, property) in variant["properties"].as_object().into_iter().flatten() {
            let mut property = property.clone();
            property["description"] = variant["description"].clone();
            properties.insert(name.clone(), property);
        }
    }
    let required: Vec<&str> = properties.keys().map(String::as_str).collect();
    let one_of = one_of_required(&required);
    let object = json!({
        "type": "object", "additionalProperties": false, "oneOf": one_of, "properties": properties,
    });
    if names.is_empty() {
        object.as_object().into_iter().flatten().for_each(|(name, value)| {
            schema.insert(name.clone(), value.clone());
        });
    } else {
        schema.insert("oneOf".to_owned(), json!([vec![object], names].concat()));
    }
}

/// Writes a generated schema as people read it: an optional member is not null, and an enum is a list of names whose
/// meanings are in its description.
pub(super) fn simplify(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Object(members) => {
            members.values_mut().for_each(simplify);
            for numeric in ["uint", "uint16", "uint32", "uint64", "int64"] {
                if members.get("format").is_some_and(|format| format == numeric) {
                    members.shift_remove("format");
                }
            }
            if members
                .get("default")
                .is_some_and(|default| default.is_null() || default.is_object() || default.is_array())
            {
                members.shift_remove("default");
            }
            let without_null = members
                .get("type")
                .and_then(Value::as_array)
                .and_then(|types| (types.len() == 2 && types[1] == "null").then(|| types[0].clone()));
            if let Some(only) = without_null {
                members.insert("type".to_owned(), only);
            }
            if let Some(Value::Array(names)) = members.get_mut("enum") {
                names.retain(|name| !name.is_null());
            }
            let optional = members.get("anyOf").and_then(Value::as_array).and_then(|either| match either.as_slice() {
                [Value::Object(only), null] if *null == json!({"type": "null"}) => Some(only.clone()),
                _ => None,
            });
            if let Some(only) = optional {
                members.shift_remove("anyOf");
                for (name, value) in only {
                    members.entry(name).or_insert(value);
                }
            }
            join_names(members);
            if let Some(Value::String(description)) = members.get_mut("description") {
                *description = description.replace('\n', " ");
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Makes one `enum` of a `oneOf` of constants.
fn join_names(members: &mut serde_json::Map<String, Value>) {
    let Some(Value::Array(variants)) = members.get("oneOf") else { return };
    let variants =
        variants.iter().map(|variant| Some((variant.get("const")?.clone(), variant.get("description")?.as_str()?)));
    let Some(variants) = variants.collect::<Option<Vec<_>>>() else { return };
    let meanings: Vec<String> = variants
        .iter()
        .map(|(name, meaning)| format!("`{}`: {}.", name.as_str().unwrap_or_default(), meaning.trim_end_matches('.')))
        .collect();
    let names: Vec<Value> = variants.iter().map(|(name, _)| name.clone()).collect();
    let described = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{described} {}", meanings.join(" ")).trim().to_owned();
    members.insert("description".to_owned(), json!(description));
    members.shift_remove("oneOf");
    members.shift_remove("type");
    members.insert("enum".to_owned(), Value::Array(names));
}
