//! The JSON Schema of `mcp-conformance.toml`, which is generated from the options.

use clap::{Arg, Command};
use serde_json::{Map, Value, json};

use super::keys::{AUTO, KeyKind, OFF, PROFILE_TABLE, SERVER_KEYS, SERVER_TABLE, definition, keys, options};

const SCHEMA: &str = include_str!("../../../docs/src/reference/mcp-conformance.schema.json");

fn help(option: &Arg) -> String {
    let text = option.get_long_help().or_else(|| option.get_help()).map(ToString::to_string).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn string() -> Value {
    json!({"type": "string"})
}

/// One string, or several.
fn strings() -> Value {
    json!({"type": ["string", "array"], "items": string()})
}

fn property(option: &Arg, kind: KeyKind) -> Value {
    let names: Vec<String> = option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let mut schema = match kind {
        KeyKind::Flag => json!({"type": "boolean"}),
        KeyKind::Number => json!({"type": "integer", "minimum": 0}),
        KeyKind::Calls => json!({"anyOf": [{"type": "integer", "minimum": 0}, {"enum": [AUTO, OFF]}]}),
        KeyKind::Text if names.is_empty() => string(),
        KeyKind::Text => json!({"enum": names}),
        KeyKind::Path => string(),
        KeyKind::List | KeyKind::Reports => strings(),
        KeyKind::Values => json!({"type": "object"}),
    };
    schema["description"] = help(option).into();
    schema
}

fn server(command: &Command) -> Value {
    let mut properties = Map::new();
    for name in SERVER_KEYS {
        let mut schema = match name {
            "command" => json!({"type": "array", "items": string(), "minItems": 1}),
            "env" | "header" => json!({"type": "object", "additionalProperties": string()}),
            "insecure" => json!({"type": "boolean"}),
            _ => string(),
        };
        let option = command.get_arguments().find(|option| option.get_long() == Some(name));
        schema["description"] = match name {
            "command" => "The program that starts the server, and each of its arguments.".into(),
            "env" => "Environment variables for the server, in addition to the inherited ones; `${NAME}` is the value of a variable of mcp-conformance.".into(),
            "header" => "Headers of every request, whose values are never shown; `${NAME}` is the value of an environment variable.".into(),
            "cwd" => "Working directory of the server, relative to the file; by default the folder of the file.".into(),
            _ => option.map(help).expect("it is an option").into(),
        };
        properties.insert(name.to_owned(), schema);
    }
    json!({
        "description": "The server: a command, a URL, or a URL with the command that starts the server.",
        "type": "object",
        "additionalProperties": false,
        "anyOf": [{"required": ["command"]}, {"required": ["url"]}],
        "properties": properties,
    })
}

fn generated() -> Value {
    let command = definition();
    let keys = keys(&command);
    let mut properties = Map::new();
    for (name, option) in options(&command) {
        let key = keys.iter().find(|key| key.name == name).expect("each option has its key");
        properties.insert(name.to_owned(), property(option, key.kind));
    }
    properties.insert(SERVER_TABLE.to_owned(), json!({"$ref": "#/$defs/server"}));
    let profile = json!({
        "description": "Settings for `--profile`, which replace those of the file.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties.clone(),
    });
    properties.insert(
        PROFILE_TABLE.to_owned(),
        json!({
            "description": "Profiles by name.",
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/profile"},
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of mcp-conformance",
        "description": "The file mcp-conformance.toml. A key has the name of an option of the command line.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "$defs": {"server": server(&command), "profile": profile},
    })
}

#[test]
fn the_schema_is_generated_from_the_options() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/reference/mcp-conformance.schema.json");
    let generated = serde_json::to_string_pretty(&generated()).expect("it is JSON") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(path, generated).expect("it can be written");
        return;
    }
    let diff = similar::TextDiff::from_lines(SCHEMA, &generated).unified_diff().context_radius(1).to_string();
    assert!(SCHEMA == generated, "the schema is outdated (UPDATE_GOLDEN=1 rewrites it):\n{diff}");
}
