//! The checks of a single value that a JSON Schema cannot express.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::client_request;
use super::index::{ConnectionIndex, method_of};
use super::schema_reference;
use super::text::shortened;
use super::violation::ValueResult;
use crate::case::ValueCheck;
use crate::fuzz::is_bounded;
use crate::spec::{Revision, VersionName};

/// A value that a case selects, and where it was found.
pub(super) struct Selected<'a> {
    pub(super) value: &'a Value,
    /// How a finding names it.
    pub(super) label: String,
    /// The positions of the entries that contain it.
    pub(super) positions: Vec<usize>,
    /// The request whose response it is a part of.
    pub(super) request: Option<&'a Value>,
}

/// Checks a value; `None` if the check does not apply to it or cannot decide.
pub(super) fn check(
    check: ValueCheck,
    selected: &Selected<'_>,
    index: &ConnectionIndex<'_>,
    revision: Revision,
) -> Option<ValueResult> {
    match check {
        ValueCheck::JsonSchema => valid_schema(selected.value),
        ValueCheck::StructuredContentConforms => structured_content_conforms(selected, index, revision),
        ValueCheck::StructuredContentPresent => structured_content_present(selected, index),
        ValueCheck::StructuredContentInText => structured_content_in_text(selected.value),
        ValueCheck::JsonSchemaInDeclaredDialect => valid_in_declared_dialect(selected.value),
        ValueCheck::JsonSchemaInAnyDialect => valid_in_any_dialect(selected.value),
        ValueCheck::PatternsValid => schema_reference::patterns_valid(selected.value),
        ValueCheck::ReferencesResolve => schema_reference::references_resolve(selected.value),
        ValueCheck::NoRemoteReference => Some(no_remote_reference(selected.value)),
        ValueCheck::HeaderNamesUnique => header_names_unique(selected.value),
        ValueCheck::ToolKnown => tool_known(selected, index),
        ValueCheck::ImageMatchesMimeType => image_matches_mime_type(selected.value),
        ValueCheck::ClientRequestDeclared => client_request::declared(selected.value, selected.request, index),
        ValueCheck::ProtocolVersion => protocol_version(selected.value),
        ValueCheck::ToolUsesHaveResults => client_request::tool_uses_have_results(selected.value),
    }
}

/// Checks that a string names a version of the protocol.
fn protocol_version(value: &Value) -> Option<ValueResult> {
    let text = value.as_str()?;
    let is_version = matches!(VersionName::of(value), VersionName::Valid(_));
    Some(ValueResult::from((!is_version).then(|| format!("`{}` is no version of the protocol", shortened(text, 60)))))
}

/// Whether a schema refers to anything outside itself.
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

/// Whether the dialect that a schema declares, if it declares one, is known here.
fn is_dialect_known(schema: &Value) -> bool {
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

fn valid_schema(schema: &Value) -> Option<ValueResult> {
    if !schema.is_object() || !is_dialect_known(schema) {
        return None;
    }
    if schema.get("$schema").is_some_and(|dialect| !dialect.is_string()) {
        return Some(ValueResult::Violates("at `/$schema`: it is not a string".to_owned()));
    }
    let problem = jsonschema::meta::validate(schema).err();
    Some(ValueResult::from(problem.map(|error| describe(&error))))
}

/// A validation error as text, with its location.
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

/// Whether a schema is valid in some dialect other than the one that it declares.
fn is_valid_in_other_dialect(schema: &Value) -> bool {
    META_SCHEMAS.iter().any(|dialect| {
        let mut other = schema.clone();
        other["$schema"] = Value::from(*dialect);
        jsonschema::meta::is_valid(&other)
    })
}

fn valid_in_any_dialect(schema: &Value) -> Option<ValueResult> {
    match valid_schema(schema)? {
        // `json-schema-in-declared-dialect` reports a schema that is valid in another dialect.
        ValueResult::Violates(_) if is_valid_in_other_dialect(schema) => None,
        result => Some(result),
    }
}

fn valid_in_declared_dialect(schema: &Value) -> Option<ValueResult> {
    match valid_schema(schema)? {
        // `json-schema-in-any-dialect` reports a schema that is valid in no dialect.
        ValueResult::Violates(_) if !is_valid_in_other_dialect(schema) => None,
        result => Some(result),
    }
}

fn no_remote_reference(schema: &Value) -> ValueResult {
    ValueResult::from(remote_reference(schema).map(|target| format!("a reference to {}", shortened(&target, 120))))
}

/// A reference in a schema that points to the network.
fn remote_reference(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(members) => members.iter().find_map(|(name, value)| match value.as_str() {
            Some(target) if matches!(name.as_str(), "$ref" | "$dynamicRef") => {
                let is_remote =
                    target.starts_with("http://") || target.starts_with("https://") || target.starts_with("//");
                (is_remote && !target.contains("//json-schema.org/")).then(|| target.to_owned())
            }
            _ if matches!(name.as_str(), "const" | "enum" | "default" | "examples") => None,
            _ => remote_reference(value),
        }),
        Value::Array(items) => items.iter().find_map(remote_reference),
        _ => None,
    }
}

/// The `x-mcp-header` names of the properties that are reached through `properties` alone.
fn header_names(schema: &Value, names: &mut Vec<String>) {
    for property in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|map| map.values()) {
        names.extend(property.get("x-mcp-header").and_then(Value::as_str).map(str::to_ascii_lowercase));
        header_names(property, names);
    }
}

fn header_names_unique(schema: &Value) -> Option<ValueResult> {
    let mut names = Vec::new();
    header_names(schema, &mut names);
    let duplicate =
        names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name.clone());
    let problem = duplicate.map(|name| format!("two properties have the x-mcp-header `{}`", shortened(&name, 80)));
    (!names.is_empty()).then(|| ValueResult::from(problem))
}

fn tool_of<'a>(selected: &Selected<'_>, index: &ConnectionIndex<'a>) -> Option<&'a Value> {
    let request = selected.request?;
    if method_of(request) != "tools/call" {
        return None;
    }
    index.tools.get(request.pointer("/params/name")?.as_str()?).copied()
}

/// Whether a result is final and not an error: interim results and those of extensions have rules of their own.
fn is_success(result: &Value) -> bool {
    result.get("isError") != Some(&Value::Bool(true))
        && result.get("resultType").is_none_or(|kind| kind == "complete")
        && result.get("task").is_none()
}

/// Checks that a well-formed call to a listed tool is not answered as if the method or tool did not exist.
fn tool_known(selected: &Selected<'_>, index: &ConnectionIndex<'_>) -> Option<ValueResult> {
    let tool = tool_of(selected, index)?;
    let arguments = selected.request?.pointer("/params/arguments");
    let only_as_task = tool.pointer("/execution/taskSupport").is_some_and(|support| support == "required");
    // A tool that cannot become a task is rejected with this code.
    let as_task = selected.request?.pointer("/params/task").is_some();
    if only_as_task || as_task || !arguments.is_none_or(Value::is_object) {
        return None;
    }
    let is_unknown = selected.value.pointer("/error/code").and_then(Value::as_i64) == Some(-32601);
    if is_unknown && is_client_error_relayed(selected, index) {
        return None;
    }
    Some(ValueResult::from(is_unknown.then(|| "an error with code -32601".to_owned())))
}

/// Whether the client refused a request of the server while it processed the call: the error may be that of the client.
fn is_client_error_relayed(selected: &Selected<'_>, index: &ConnectionIndex<'_>) -> bool {
    let (Some(from), Some(to)) = (selected.positions.iter().min(), selected.positions.iter().max()) else {
        return false;
    };
    index.record.has_client_error(*from, *to)
}

fn structured_content_conforms(
    selected: &Selected<'_>,
    index: &ConnectionIndex<'_>,
    revision: Revision,
) -> Option<ValueResult> {
    let schema = tool_of(selected, index)?.get("outputSchema")?;
    let structured = selected.value.get("structuredContent")?;
    if !is_success(selected.value) || has_remote_reference(schema) || !is_dialect_known(schema) {
        return None;
    }
    // A malicious schema could take unbounded time to validate.
    if !is_bounded(schema) {
        return None;
    }
    let validate = |options: &jsonschema::ValidationOptions<'_>| -> Option<ValueResult> {
        let validator = options.build(schema).ok()?;
        Some(ValueResult::from(validator.iter_errors(structured).next().map(|error| describe(&error))))
    };
    if schema.get("$schema").is_some() {
        return validate(&jsonschema::options());
    }
    let newest = validate(&jsonschema::options().with_draft(jsonschema::Draft::Draft202012))?;
    match newest {
        // This revision names no default dialect, so either one may be meant.
        ValueResult::Violates(_) if revision == Revision::V2025_06_18 => {
            match validate(&jsonschema::options().with_draft(jsonschema::Draft::Draft7))? {
                ValueResult::Conforms => Some(ValueResult::Conforms),
                ValueResult::Violates(_) => Some(newest),
            }
        }
        result => Some(result),
    }
}

fn structured_content_present(selected: &Selected<'_>, index: &ConnectionIndex<'_>) -> Option<ValueResult> {
    tool_of(selected, index)?.get("outputSchema")?;
    if !is_success(selected.value) {
        return None;
    }
    let is_missing = selected.value.get("structuredContent").is_none();
    Some(ValueResult::from(is_missing.then(|| "a successful result without structuredContent".to_owned())))
}

fn structured_content_in_text(result: &Value) -> Option<ValueResult> {
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
    // The specification's example of an array has prose as its text, so any text is accepted unless the content is an
    // object.
    let is_copied = texts.any(|text| {
        (!structured.is_object() && !text.trim().is_empty())
            || serde_json::from_str::<Value>(text).is_ok_and(|value| same_json(&value, structured))
    });
    Some(ValueResult::from(
        (!is_copied).then(|| "no text item contains the value of structuredContent as JSON".to_owned()),
    ))
}

/// Whether two JSON values are equal; numbers are compared by value.
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

fn image_matches_mime_type(item: &Value) -> Option<ValueResult> {
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
    Some(ValueResult::from((!same).then(|| format!("the data is {found}, but mimeType is {named}"))))
}
