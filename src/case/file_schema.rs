//! The JSON Schemas of case files and hint files, and their validation errors in plain words.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use super::problem::UnlocatedDiagnostic;
use crate::json_pointer;

/// The JSON Schema of case files, for completion in editors.
pub(crate) const SCHEMA: &str = include_str!("../../cases/schema.json");

/// The JSON Schema of hint files, for completion in editors.
pub(crate) const HINTS_SCHEMA: &str = include_str!("../../cases/hints-schema.json");

/// The kind of a file, which decides on its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Case,
    Hints,
}

struct CompiledSchema {
    schema: Value,
    validator: Validator,
}

impl CompiledSchema {
    fn parse(text: &str) -> Self {
        let schema: Value = serde_json::from_str(text).expect("the schema is JSON, which is tested");
        let validator = jsonschema::draft202012::new(&schema).expect("the schema compiles, which is tested");
        Self { schema, validator }
    }
}

fn compiled(kind: FileKind) -> &'static CompiledSchema {
    static CASE: OnceLock<CompiledSchema> = OnceLock::new();
    static HINTS: OnceLock<CompiledSchema> = OnceLock::new();
    match kind {
        FileKind::Case => CASE.get_or_init(|| CompiledSchema::parse(SCHEMA)),
        FileKind::Hints => HINTS.get_or_init(|| CompiledSchema::parse(HINTS_SCHEMA)),
    }
}

/// Everything in which a file violates its schema, except what is `reported` already.
pub(super) fn flaws(kind: FileKind, file: &Value, reported: &[UnlocatedDiagnostic]) -> Vec<UnlocatedDiagnostic> {
    let CompiledSchema { schema, validator } = compiled(kind);
    let reported: BTreeSet<&str> = reported.iter().map(|flaw| flaw.pointer.as_str()).collect();
    validator
        .iter_errors(file)
        .filter(|error| !is_reported(&reported, error))
        .flat_map(|error| explain(schema, &error))
        .collect()
}

/// Whether something that was reported, at one of these pointers, means the same as a validation error.
fn is_reported(reported: &BTreeSet<&str>, error: &ValidationError) -> bool {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        // These concern an object as a whole, for which something else may have been reported.
        ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. } => false,
        // Which members exclude each other is reported at the excess member, and a wrong type as such.
        ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::OneOfMultipleValid { .. } => {
            let within = reported.range(pointer..).next().is_some_and(|reported| reported.starts_with(pointer));
            within || !error.instance().is_object()
        }
        _ => reported.contains(pointer),
    }
}

/// A validation error in plain words.
pub(super) fn explain(schema: &Value, error: &ValidationError) -> Vec<UnlocatedDiagnostic> {
    let pointer = error.instance_path().as_str().to_owned();
    let at = error.schema_path().as_str();
    let around = at.rsplit_once('/').map_or("", |(around, _)| around);
    let message = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = schema.pointer(&format!("{around}/properties")).and_then(Value::as_object);
            return unexpected
                .iter()
                .map(|name| {
                    let flaw = UnlocatedDiagnostic::on_name(
                        json_pointer::join(&pointer, name),
                        format!("unknown member `{name}`"),
                    );
                    flaw.nearest(name, known.into_iter().flat_map(|known| known.keys().map(String::as_str)))
                })
                .collect();
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<_> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let Some(value) = error.instance().as_str() else {
                return vec![UnlocatedDiagnostic::at(pointer, format!("expected one of {}", quoted(&options)))];
            };
            let flaw = UnlocatedDiagnostic::at(
                pointer,
                format!("unknown value `{value}`: expected one of {}", quoted(&options)),
            );
            return vec![flaw.nearest(value, options)];
        }
        ValidationErrorKind::Required { property } => {
            format!("the member `{}` is missing", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::Type { kind } => {
            format!("expected {}, found {}", type_names(kind), article(JsonType::from(error.instance().as_ref())))
        }
        ValidationErrorKind::MinLength { .. }
        | ValidationErrorKind::MinProperties { .. }
        | ValidationErrorKind::MinItems { limit: 1 } => "it must not be empty".to_owned(),
        ValidationErrorKind::MaxLength { limit } => format!("it is longer than {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("it has fewer than {limit} items"),
        ValidationErrorKind::UniqueItems => "an item is repeated".to_owned(),
        ValidationErrorKind::FalseSchema => "it does not apply to a case of this kind".to_owned(),
        _ => match schema.pointer(&format!("{around}/description")).and_then(Value::as_str) {
            Some(description) => format!("invalid value; expected: {description}"),
            None => error.masked().to_string(),
        },
    };
    vec![UnlocatedDiagnostic::at(pointer, message)]
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => article(*kind).to_owned(),
        TypeKind::Multiple(types) => types.iter().map(article).collect::<Vec<_>>().join(" or "),
    }
}

fn article(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::file::CaseFile;
    use super::super::schema_types::simplify;
    use super::*;

    /// The schema of the types of case files.
    fn generated() -> String {
        let mut schema = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| settings.contract = schemars::generate::Contract::Deserialize)
            .into_generator()
            .into_root_schema_for::<CaseFile>()
            .to_value();
        simplify(&mut schema);
        let kinds = ["watch", "rules", "provoked-by"];
        let of_steps =
            ["steps", "for-each", "process", "once", "client-capabilities", "client-responses", "across-steps"];
        let kind = |required: &[&str], foreign: &[&[&str]]| {
            let foreign = foreign.concat().into_iter().map(|name| (name.to_owned(), json!(false)));
            json!({"required": required, "properties": foreign.collect::<serde_json::Map<_, _>>()})
        };
        schema["oneOf"] = json!([
            kind(&["watch", "rules"], &[&of_steps, &["fuzz"]]),
            kind(&["steps"], &[&kinds, &["fuzz"]]),
            kind(&["fuzz"], &[&kinds, &of_steps, &["needs"]]),
        ]);
        // What it is comes first, and the definitions last.
        let mut ordered = serde_json::Map::new();
        for name in [
            "$schema",
            "title",
            "description",
            "type",
            "additionalProperties",
            "required",
            "properties",
            "oneOf",
            "$defs",
        ] {
            ordered.insert(name.to_owned(), schema[name].take());
        }
        assert!(schema.as_object().is_some_and(|rest| rest.values().all(Value::is_null)), "{schema}");
        let text = serde_json::to_string_pretty(&ordered).expect("it is JSON") + "\n";
        // The layout of the files below `cases`, see `data/case-files-are-formatted`, with short lists on one line.
        let layout = dprint_plugin_json::configuration::ConfigurationBuilder::new()
            .line_width(120)
            .indent_width(2)
            .prefer_single_line(true)
            .build();
        let formatted = dprint_plugin_json::format_text(Path::new("schema.json"), &text, &layout);
        formatted.expect("it is JSON").unwrap_or(text)
    }

    #[test]
    fn the_schema_of_case_files_is_generated_from_their_types() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/schema.json");
        let generated = generated();
        if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
            std::fs::write(path, generated).expect("it can be written");
            return;
        }
        let diff = similar::TextDiff::from_lines(SCHEMA, &generated).unified_diff().context_radius(1).to_string();
        assert!(SCHEMA == generated, "cases/schema.json is outdated (UPDATE_GOLDEN=1 rewrites it):\n{diff}");
    }

    #[test]
    fn the_schemas_describe_every_member_and_are_closed() {
        fn traverse(schema: &Value, path: &str) {
            if let Some(properties) = schema["properties"].as_object() {
                for (name, member) in properties.iter().filter(|(_, member)| member.is_object()) {
                    assert!(member["description"].is_string(), "{path}/{name} has no description");
                    traverse(member, &format!("{path}/{name}"));
                }
                let is_message = path == "/$defs/message";
                assert!(is_message || schema["additionalProperties"] == json!(false), "{path} is open");
            }
        }
        for kind in [FileKind::Case, FileKind::Hints] {
            traverse(&compiled(kind).schema, "");
            for (name, definition) in compiled(kind).schema["$defs"].as_object().expect("it has definitions") {
                traverse(definition, &format!("/$defs/{name}"));
            }
        }
    }
}
