//! The checks of a single value that a JSON Schema cannot say.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::act::shortened;
use super::asked;
use super::watch::{Index, Subject, method_of};
use crate::case::ValueCheck;
use crate::fuzz::is_bounded;
use crate::spec::Revision;

/// What a check saw of a value.
pub(super) enum Look {
    /// The rule holds.
    Holds,
    /// It does not, for this reason.
    Breach(String),
}

impl From<Option<String>> for Look {
    fn from(problem: Option<String>) -> Self {
        problem.map_or(Self::Holds, Self::Breach)
    }
}

/// Holds a check against a value: `None` if it does not apply or cannot tell.
pub(super) fn check(check: ValueCheck, subject: &Subject<'_>, index: &Index<'_>, revision: Revision) -> Option<Look> {
    match check {
        ValueCheck::JsonSchema => valid_schema(subject.value),
        ValueCheck::StructuredConforms => structured_conforms(subject, index, revision),
        ValueCheck::StructuredPresent => structured_present(subject, index),
        ValueCheck::StructuredText => structured_text(subject.value),
        ValueCheck::JsonSchemaInItsDialect => valid_in_its_dialect(subject.value),
        ValueCheck::JsonSchemaInAnyDialect => valid_in_any_dialect(subject.value),
        ValueCheck::NoRemoteRef => Some(no_remote_reference(subject.value)),
        ValueCheck::HeaderNamesUnique => header_names_unique(subject.value),
        ValueCheck::ToolKnown => tool_known(subject, index),
        ValueCheck::ImageMagic => image_magic(subject.value),
        ValueCheck::AskedDeclared => asked::declared(subject.value, subject.request, index),
        ValueCheck::ToolUsesBalanced => asked::tool_uses_balanced(subject.value),
    }
}

/// Whether a schema names something outside of itself.
fn has_remote_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef")
                && value.as_str().is_some_and(|target| !target.starts_with('#')))
                || has_remote_reference(value)
        }),
        Value::Array(items) => items.iter().any(has_remote_reference),
        _ => false,
    }
}

const DIALECTS: [&str; 5] = [
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-04/schema",
];

/// Whether the dialect that a schema names, if it names one, is one that we know.
fn knows_dialect(schema: &Value) -> bool {
    match schema.get("$schema") {
        Some(Value::String(name)) => {
            let name = name.trim_end_matches('#');
            DIALECTS.iter().any(|known| {
                name.strip_prefix("https://")
                    .or_else(|| name.strip_prefix("http://"))
                    .is_some_and(|rest| rest == *known)
            })
        }
        _ => true,
    }
}

fn valid_schema(schema: &Value) -> Option<Look> {
    if !schema.is_object() || !knows_dialect(schema) {
        return None;
    }
    if schema.get("$schema").is_some_and(|dialect| !dialect.is_string()) {
        return Some(Look::Breach("at `/$schema`: it is no string".to_owned()));
    }
    let problem = jsonschema::meta::validate(schema).err();
    Some(Look::from(problem.map(|error| describe(&error))))
}

/// A validation error in words, with its place.
fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    format!("at `{}`: {}", error.instance_path(), shortened(&error.to_string(), 200))
}

const META_SCHEMAS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
];

/// Whether some dialect other than the one that a schema names allows it.
fn valid_elsewhere(schema: &Value) -> bool {
    META_SCHEMAS.iter().any(|dialect| {
        let mut other = schema.clone();
        other["$schema"] = Value::from(*dialect);
        jsonschema::meta::is_valid(&other)
    })
}

fn valid_in_any_dialect(schema: &Value) -> Option<Look> {
    match valid_schema(schema)? {
        // What another dialect allows is told by another check.
        Look::Breach(_) if valid_elsewhere(schema) => None,
        look => Some(look),
    }
}

fn valid_in_its_dialect(schema: &Value) -> Option<Look> {
    match valid_schema(schema)? {
        // What no dialect allows is told by another check.
        Look::Breach(_) if !valid_elsewhere(schema) => None,
        look => Some(look),
    }
}

fn no_remote_reference(schema: &Value) -> Look {
    Look::from(remote_reference(schema).map(|target| format!("a reference to {}", shortened(&target, 120))))
}

/// A reference in a schema that leads to the network.
fn remote_reference(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(members) => members.iter().find_map(|(name, value)| match value.as_str() {
            Some(target) if matches!(name.as_str(), "$ref" | "$dynamicRef") => {
                let remote =
                    target.starts_with("http://") || target.starts_with("https://") || target.starts_with("//");
                (remote && !target.contains("//json-schema.org/")).then(|| target.to_owned())
            }
            _ if matches!(name.as_str(), "const" | "enum" | "default" | "examples") => None,
            _ => remote_reference(value),
        }),
        Value::Array(items) => items.iter().find_map(remote_reference),
        _ => None,
    }
}

/// The headers that properties reached through `properties` alone are annotated with.
fn header_names(schema: &Value, names: &mut Vec<String>) {
    for property in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|map| map.values()) {
        names.extend(property.get("x-mcp-header").and_then(Value::as_str).map(str::to_ascii_lowercase));
        header_names(property, names);
    }
}

fn header_names_unique(schema: &Value) -> Option<Look> {
    let mut names = Vec::new();
    header_names(schema, &mut names);
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name.clone());
    let problem = twice.map(|name| format!("two properties are annotated with `{}`", shortened(&name, 80)));
    (!names.is_empty()).then(|| Look::from(problem))
}

fn tool_of<'a>(subject: &Subject<'_>, index: &Index<'a>) -> Option<&'a Value> {
    let request = subject.request?;
    if method_of(request) != "tools/call" {
        return None;
    }
    index.tools.get(request.pointer("/params/name")?.as_str()?).copied()
}

/// A result that is final and no failure: interim and extension results have rules of their own.
fn is_success(result: &Value) -> bool {
    result.get("isError") != Some(&Value::Bool(true))
        && result.get("resultType").is_none_or(|kind| kind == "complete")
        && result.get("task").is_none()
}

/// Whether a well-formed call of a listed tool is told that there is no such method or tool.
fn tool_known(subject: &Subject<'_>, index: &Index<'_>) -> Option<Look> {
    let tool = tool_of(subject, index)?;
    let arguments = subject.request?.pointer("/params/arguments");
    let only_as_task = tool.pointer("/execution/taskSupport").is_some_and(|support| support == "required");
    // One that may not become a task is refused so.
    let as_task = subject.request?.pointer("/params/task").is_some();
    if only_as_task || as_task || !arguments.is_none_or(Value::is_object) {
        return None;
    }
    let unknown = subject.value.pointer("/error/code").and_then(Value::as_i64) == Some(-32601);
    Some(Look::from(unknown.then(|| "an error with code -32601".to_owned())))
}

fn structured_conforms(subject: &Subject<'_>, index: &Index<'_>, revision: Revision) -> Option<Look> {
    let schema = tool_of(subject, index)?.get("outputSchema")?;
    let structured = subject.value.get("structuredContent")?;
    if !is_success(subject.value) || has_remote_reference(schema) || !knows_dialect(schema) {
        return None;
    }
    // A schema of the server may be built to keep its reader busy for ever.
    if !is_bounded(schema) {
        return None;
    }
    let look = |options: &jsonschema::ValidationOptions<'_>| -> Option<Look> {
        let validator = options.build(schema).ok()?;
        Some(Look::from(validator.iter_errors(structured).next().map(|error| describe(&error))))
    };
    if schema.get("$schema").is_some() {
        return look(&jsonschema::options());
    }
    let newest = look(&jsonschema::options().with_draft(jsonschema::Draft::Draft202012))?;
    match newest {
        // This revision names no default dialect, so either reading of the schema may be meant.
        Look::Breach(_) if revision == Revision::V2025_06_18 => {
            match look(&jsonschema::options().with_draft(jsonschema::Draft::Draft7))? {
                Look::Holds => Some(Look::Holds),
                Look::Breach(_) => Some(newest),
            }
        }
        look => Some(look),
    }
}

fn structured_present(subject: &Subject<'_>, index: &Index<'_>) -> Option<Look> {
    tool_of(subject, index)?.get("outputSchema")?;
    if !is_success(subject.value) {
        return None;
    }
    let missing = subject.value.get("structuredContent").is_none();
    Some(Look::from(missing.then(|| "a successful result without structuredContent".to_owned())))
}

fn structured_text(result: &Value) -> Option<Look> {
    let structured = result.get("structuredContent")?;
    if !is_success(result) {
        return None;
    }
    let mut texts = result
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|item| item.get("text").and_then(Value::as_str));
    // The specification's own example of an array carries prose, so for what is no object any text will do.
    let copied = texts.any(|text| {
        (!structured.is_object() && !text.trim().is_empty())
            || serde_json::from_str::<Value>(text).is_ok_and(|value| same_json(&value, structured))
    });
    Some(Look::from((!copied).then(|| "no text item parses to the value of structuredContent".to_owned())))
}

/// Whether two values are the same JSON, numbers by value.
fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_json(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(name, x)| y.get(name).is_some_and(|y| same_json(x, y)))
        }
        _ => a == b,
    }
}

fn image_magic(item: &Value) -> Option<Look> {
    let mime = item.get("mimeType")?.as_str()?.to_ascii_lowercase();
    let data = item.get("data")?.as_str()?;
    let end = data.len().min(64) / 4 * 4;
    let head = STANDARD.decode(data.get(..end)?).ok()?;
    let found = [
        (b"\x89PNG\r\n\x1a\n".as_slice(), "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ]
    .into_iter()
    .find(|(magic, _)| head.starts_with(magic))
    .map(|(_, mime)| mime)
    .or_else(|| (head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP")).then_some("image/webp"))?;
    let named = mime.split(';').next().unwrap_or_default().trim();
    let same = named == found || (named == "image/jpg" && found == "image/jpeg");
    Some(Look::from((!same).then(|| format!("the bytes are {found}, mimeType says {named}"))))
}
