//! Makes arguments that are likely to be meaningful to a tool: the simplest valid ones, with strings replaced by
//! values that suit their property names, such as a time zone for `timezone`.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::fuzz::{ToolSchema, quick_arguments};
use crate::limits::{MAX_EXAMPLE_SETS, MAX_FILES_OF_FOLDER, MAX_FOLDER_ENTRIES, SHORT_WAITS};

/// String values by parts of property names. The first match is used, so specific names come first.
const VALUES_BY_NAME: [(&[&str], &str); 20] = [
    (&["timezone", "time_zone", "tz"], "UTC"),
    (&["datetime", "timestamp"], "2025-01-15T12:00:00Z"),
    (&["date", "day"], "2025-01-15"),
    (&["time"], "12:00"),
    (&["email", "mail"], "someone@example.com"),
    (&["url", "uri", "link"], "https://example.com/"),
    (&["path", "file", "dir", "folder", "root"], "."),
    (&["branch", "commit", "revision", "ref"], "HEAD"),
    (&["city", "location", "place", "address"], "Helsinki"),
    (&["country"], "Finland"),
    (&["lang", "locale"], "en"),
    (&["currency"], "EUR"),
    (&["uuid"], "00000000-0000-4000-8000-000000000000"),
    (&["expression", "formula"], "1 + 1"),
    (&["color", "colour"], "#336699"),
    (&["regex", "pattern", "glob"], ".*"),
    (&["query", "search", "term", "keyword"], "test"),
    (&["message", "text", "content", "prompt", "input"], "hello"),
    (&["name", "title", "label"], "test"),
    (&["id", "key"], "1"),
];

/// Several sets of valid arguments for a tool: the simplest ones that do not wait long, the simplest ones, then likely ones, then one for each branch of its
/// schema. `known_paths` are paths that the server can access.
pub(in crate::run) fn arguments(schema: &ToolSchema, known_paths: &[String]) -> Vec<Map<String, Value>> {
    let mut made: Vec<Map<String, Value>> = Vec::new();
    let mut add = |value: Value| {
        if let Value::Object(arguments) = value
            && made.len() < MAX_EXAMPLE_SETS
            && !made.contains(&arguments)
        {
            made.push(arguments);
        }
    };
    let minimal = schema.minimal().ok();
    if let Some(minimal) = &minimal {
        quick_arguments(schema, &SHORT_WAITS).into_iter().for_each(&mut add);
        add(minimal.clone());
        add(with_likely_values(schema, minimal, None));
        for path in known_paths {
            add(with_likely_values(schema, minimal, Some(path)));
        }
    }
    if let Some(minimal) = &minimal {
        add(with_small_numbers(schema, &with_likely_values(schema, minimal, known_paths.last().map(String::as_str))));
    }
    let obligations = schema.valid().coverage_goals();
    let satisfying =
        obligations.iter().take(2 * MAX_EXAMPLE_SETS).filter_map(|obligation| schema.valid().cover(obligation));
    for satisfying in satisfying
        .filter(|satisfying| is_moderate(satisfying) && names_only_what_is_listed(schema.schema(), satisfying))
    {
        add(with_likely_values(schema, &satisfying, known_paths.last().map(String::as_str)));
    }
    made
}

/// Valid arguments with a path, if the tool needs one.
pub(in crate::run) fn with_path(schema: &ToolSchema, path: &str) -> Option<Value> {
    let arguments = with_likely_values(schema, &schema.minimal().ok()?, Some(path));
    arguments.as_object()?.values().any(|value| value == path).then_some(arguments)
}

/// The arguments with each top-level string replaced by a value that suits its name, if the schema permits it and
/// suggests nothing itself.
fn with_likely_values(schema: &ToolSchema, arguments: &Value, path: Option<&str>) -> Value {
    let mut guessed = arguments.clone();
    let names: Vec<String> = arguments.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    for name in names {
        if !arguments[&name].is_string() || has_suggested_values(schema.schema(), &name) {
            continue;
        }
        let Some(value) = likely_value(&name) else { continue };
        let value = path.filter(|_| value == ".").unwrap_or(value);
        let before = std::mem::replace(&mut guessed[&name], json!(value));
        if !schema.is_valid(&guessed) {
            guessed[&name] = before;
        }
    }
    guessed
}

/// The arguments with each number set to a small one, so that slow operations take less time.
fn with_small_numbers(schema: &ToolSchema, arguments: &Value) -> Value {
    const SMALL: [i64; 2] = [2, 1];
    let mut guessed = arguments.clone();
    let properties = schema.schema().get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        if !matches!(kind, "number" | "integer") || !guessed.is_object() {
            continue;
        }
        let fitting = SMALL.into_iter().find_map(|number| {
            let mut with = guessed.clone();
            with[name] = json!(number);
            schema.is_valid(&with).then_some(with)
        });
        guessed = fitting.unwrap_or(guessed);
    }
    guessed
}

/// The value that suits an argument of this name.
pub(super) fn likely_value(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    VALUES_BY_NAME.iter().find(|(parts, _)| parts.iter().any(|part| name.contains(part))).map(|(_, value)| *value)
}

/// Whether the schema suggests values for a property.
fn has_suggested_values(schema: &Value, name: &str) -> bool {
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    property
        .is_some_and(|property| ["default", "examples", "const", "enum"].iter().any(|one| property.get(one).is_some()))
}

/// Whether the arguments have only properties that the schema lists.
pub(super) fn names_only_what_is_listed(schema: &Value, arguments: &Value) -> bool {
    let listed = |name: &String| schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
    arguments.as_object().is_some_and(|arguments| arguments.keys().all(listed))
}

/// Whether a person might write such a value: no huge numbers, long strings or long lists.
pub(super) fn is_moderate(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() <= 10_000.0),
        Value::String(text) => text.len() <= 100,
        Value::Array(items) => items.len() <= 8 && items.iter().all(is_moderate),
        Value::Object(members) => members.len() <= 16 && members.values().all(is_moderate),
        Value::Null | Value::Bool(_) => true,
    }
}

/// Paths that the server can access, the most useful last: the last folder among words of its command line and values of its
/// variables, and a file in it.
pub(in crate::run) fn known_paths(words: &[impl AsRef<OsStr>], directory: Option<&Path>) -> Vec<String> {
    // An argument of a call is a JSON string, so only Unicode names can be given in one.
    let words: Vec<&str> = words.iter().filter_map(|word| word.as_ref().to_str()).collect();
    let below = |word: &str| match directory {
        Some(directory) => directory.join(word),
        None => Path::new(word).to_owned(),
    };
    let Some(folder) = words.into_iter().rev().find(|word| below(word).is_dir()) else { return Vec::new() };
    let entries = std::fs::read_dir(below(folder)).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let first = names.filter(|name| !name.starts_with('.')).min();
    let file = first.map(|name| Path::new(folder).join(name).display().to_string());
    std::iter::once(folder.to_owned()).chain(file).collect()
}

/// The first file of each kind in a folder, by their extensions, without those that are known.
pub(in crate::run) fn files_of_each_kind(folder: &str, directory: Option<&Path>, known: &[String]) -> Vec<String> {
    let path = directory.map_or_else(|| Path::new(folder).to_owned(), |directory| directory.join(folder));
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().take(MAX_FOLDER_ENTRIES);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    let kind = |name: &str| Path::new(name).extension().map(OsStr::to_owned);
    let mut kinds: Vec<_> = known.iter().filter(|path| *path != folder).map(|path| kind(path)).collect();
    let mut found = Vec::new();
    for name in names {
        if found.len() < MAX_FILES_OF_FOLDER && !kinds.contains(&kind(&name)) {
            kinds.push(kind(&name));
            found.push(Path::new(folder).join(name).display().to_string());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Dialect;

    fn made(schema: &Value, known_paths: &[String]) -> Vec<Value> {
        let schema = ToolSchema::compile(schema, Dialect::Draft202012).expect("a usable schema");
        arguments(&schema, known_paths).into_iter().map(Value::Object).collect()
    }

    #[test]
    fn strings_get_values_that_suit_their_names() {
        let schema = json!({
            "type": "object",
            "properties": {
                "source_timezone": {"type": "string"},
                "time": {"type": "string"},
                "size": {"type": "integer"},
                "lang": {"type": "string", "examples": ["fi"]},
                "path": {"type": "string"}
            },
            "required": ["source_timezone", "time", "size", "lang", "path"]
        });
        let made = made(&schema, &["/srv".to_owned()]);
        let wanted = json!({"source_timezone": "UTC", "time": "12:00", "size": 0, "lang": "fi", "path": "."});
        assert_eq!(made[1], wanted);
        assert_eq!(made[2]["path"], "/srv");
        assert!(made.len() <= MAX_EXAMPLE_SETS);
    }

    #[test]
    fn a_tool_that_waits_by_default_is_told_to_wait_less() {
        let steps = json!({"type": "number", "default": 5});
        let properties = json!({"duration": {"type": "number", "default": 10}, "steps": steps});
        let made = made(&json!({"type": "object", "properties": properties}), &[]);
        assert_eq!(made[..2], [json!({"duration": 0.1}), json!({})]);
    }

    #[test]
    fn a_value_that_the_schema_forbids_is_not_used() {
        let schema =
            json!({"type": "object", "properties": {"time": {"type": "string", "maxLength": 2}}, "required": ["time"]});
        assert!(made(&schema, &[]).iter().all(|made| made["time"] != "12:00"));
    }

    #[test]
    fn the_first_file_of_each_kind_in_a_folder_is_known() {
        let folder = tempfile::TempDir::new().expect("a folder");
        for name in ["b.txt", "a.txt", "c.json", "d", ".hidden"] {
            std::fs::write(folder.path().join(name), "x").expect("the file can be written");
        }
        let path = folder.path().display().to_string();
        let known = [path.clone(), format!("{path}/a.txt")];
        assert_eq!(files_of_each_kind(&path, None, &known), [format!("{path}/c.json"), format!("{path}/d")]);
        assert_eq!(files_of_each_kind(".", Some(folder.path()), &[]), ["./a.txt", "./c.json", "./d"]);
    }

    #[test]
    fn a_folder_on_the_command_line_and_a_file_in_it_are_known_paths() {
        let folder = tempfile::TempDir::new().expect("a folder");
        for name in ["b.txt", "a.txt", ".hidden"] {
            std::fs::write(folder.path().join(name), "x").expect("a file");
        }
        let path = folder.path().display().to_string();
        let words = ["server".to_owned(), "--root".to_owned(), path.clone()];
        assert_eq!(known_paths(&words, None), [path.clone(), format!("{path}/a.txt")]);
        assert_eq!(known_paths(&words[..2], None), Vec::<String>::new());
        let below = ["server".to_owned(), ".".to_owned()];
        assert_eq!(known_paths(&below, Some(folder.path())), [".", "./a.txt"]);
    }

    #[test]
    fn small_numbers_are_tried_as_well() {
        let schema = json!({
            "type": "object",
            "properties": {"duration": {"type": "number", "default": 10}, "steps": {"type": "integer", "minimum": 5}}
        });
        let made = made(&schema, &[]);
        assert_eq!(made[..3], [json!({"duration": 0.1}), json!({}), json!({"duration": 2})]);
    }

    #[test]
    fn each_branch_of_a_schema_gets_arguments() {
        let schema = json!({"type": "object", "properties": {"kind": {"enum": ["a", "b", "c"]}}, "required": ["kind"]});
        let kinds: Vec<Value> = made(&schema, &[]).into_iter().map(|made| made["kind"].clone()).collect();
        assert_eq!(kinds, ["a", "b", "c"]);
    }
}
