//! Searches for arguments that a tool or a prompt serves: which values to try next, and what an error message says about
//! them. It sends nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::argument_variants::variants;
use super::example_arguments::likely_value;
use super::suggested_values::{is_remote_url, quoted_values, readings, suggested_values};
use crate::fuzz::{Dialect, ToolSchema};
use crate::inventory::{KnownValues, Prompt, Tool};
use crate::limits::{MAX_SEARCH_ATTEMPTS, MAX_SEARCH_VALUES};

/// Parts of the names of tools that destroy something. What no annotation declares harmless is not searched for.
const DESTROYING: [&str; 20] = [
    "delete",
    "remove",
    "rm",
    "erase",
    "drop",
    "destroy",
    "purge",
    "clear",
    "reset",
    "wipe",
    "truncate",
    "kill",
    "stop",
    "uninstall",
    "revoke",
    "overwrite",
    "rename",
    "move",
    "mv",
    "unlink",
];

/// Parts of the names of tools that only read. Others get the path of a file or folder only if an annotation declares
/// them harmless.
const READING: [&str; 24] = [
    "read", "get", "show", "view", "list", "ls", "cat", "head", "tail", "stat", "info", "search", "find", "grep",
    "tree", "status", "log", "diff", "describe", "inspect", "count", "load", "open", "fetch",
];

/// The search for arguments of one tool or prompt.
#[derive(Debug)]
pub(super) struct ArgumentSearch {
    schema: Arc<ToolSchema>,
    /// The words of its name.
    words: Vec<String>,
    /// The description of the tool.
    description: String,
    /// Whether values that are paths may be tried.
    may_use_paths: bool,
    /// The arguments that were tried.
    tried: Vec<Value>,
    /// The properties that are given besides the required ones, because a message named them.
    named: BTreeSet<String>,
    /// The values that error messages suggested, by property, the latest first.
    suggested: BTreeMap<String, Vec<Value>>,
}

impl ArgumentSearch {
    /// The search for arguments of a tool; `None` if it must not be searched for, or has no schema.
    pub(in crate::run) fn of_tool(tool: &Tool) -> Option<Self> {
        let hint = |name: &str| tool.definition.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool);
        let is_declared_harmless = hint("readOnlyHint") == Some(true) || hint("destructiveHint") == Some(false);
        let words = words(&tool.name);
        let contains = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        if !is_declared_harmless && contains(&DESTROYING) {
            return None;
        }
        let may_use_paths = is_declared_harmless || contains(&READING);
        let description = tool.definition.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self {
            schema: Arc::clone(tool.schema.as_ref()?),
            words,
            description,
            may_use_paths,
            tried: tool.arguments.iter().cloned().collect(),
            named: BTreeSet::new(),
            suggested: BTreeMap::new(),
        })
    }

    /// The search for arguments of a prompt; `None` if its arguments are not usable as names.
    pub(super) fn of_prompt(prompt: &Prompt) -> Option<Self> {
        let properties: Map<String, Value> =
            prompt.arguments.keys().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
        let required: Vec<&String> = prompt.arguments.keys().collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Some(Self {
            schema: Arc::new(ToolSchema::compile(&schema, Dialect::Draft202012).ok()?),
            words: words(&prompt.name),
            description: String::new(),
            may_use_paths: true,
            tried: vec![Value::Object(prompt.arguments.clone())],
            named: BTreeSet::new(),
            suggested: BTreeMap::new(),
        })
    }

    /// The next arguments to try; `None` if there are no others.
    pub(in crate::run) fn next(&mut self, known: &KnownValues) -> Option<Value> {
        if self.tried.len() > MAX_SEARCH_ATTEMPTS {
            return None;
        }
        let next = self.candidates(known).into_iter().find(|one| !self.tried.contains(one))?;
        self.tried.push(next.clone());
        Some(next)
    }

    /// Takes the values and properties that an error message names into account.
    pub(super) fn learn(&mut self, arguments: &Value, message: &str) {
        let sent = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let properties = self.properties();
        let message_words: BTreeSet<String> =
            message.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').map(str::to_lowercase).collect();
        let named: Vec<String> =
            properties.iter().filter(|name| message_words.contains(&name.to_lowercase())).cloned().collect();
        self.named.extend(named.iter().cloned());
        let sent_values: Vec<(&String, String)> = arguments
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name, sent(value)?)))
            .collect();
        let values: Vec<Value> = suggested_values(message)
            .into_iter()
            // What was sent is no suggestion, nor is the path that it became.
            .filter(|value| !sent_values.iter().any(|(_, sent)| is_echo(value, sent)))
            .filter(|value| !properties.contains(value) && (self.may_use_paths || !is_path(value)))
            .flat_map(|value| readings(&value))
            .collect();
        if values.is_empty() {
            return;
        }
        let quoted = sent_values.iter().filter(|(_, sent)| sent.len() > 1 && message.contains(sent.as_str()));
        let mut targets: Vec<String> = quoted.map(|(name, _)| (*name).clone()).collect();
        if targets.is_empty() {
            targets = named;
        }
        if targets.is_empty() {
            targets = sent_values.into_iter().map(|(name, _)| name.clone()).collect();
        }
        for name in targets {
            let known = self.suggested.entry(name).or_default();
            known.retain(|value| !values.contains(value));
            known.splice(0..0, values.iter().cloned());
            known.truncate(MAX_SEARCH_VALUES);
        }
    }

    /// The properties that the root of the schema lists.
    fn properties(&self) -> BTreeSet<String> {
        let properties = self.schema.schema().get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// Everything to try, the most likely first.
    fn candidates(&self, known: &KnownValues) -> Vec<Value> {
        let Ok(minimal) = self.schema.minimal() else { return Vec::new() };
        let required = minimal.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let listed = self.properties();
        // Without a property whose default is on another machine, the call would lead there.
        let local = self.schema.remote_defaults();
        let named = self.named.iter().filter(|name| listed.contains(*name)).cloned();
        let given: BTreeSet<String> = required.chain(named).chain(local).collect();
        let values: Vec<(String, Vec<Value>)> =
            given.into_iter().map(|name| (name.clone(), self.values_for(&name, &minimal, known))).collect();
        let longest = values.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let with = |choose: &dyn Fn(&str, &[Value]) -> Option<Value>| {
            let mut arguments = minimal.clone();
            for (name, values) in &values {
                if let Some(value) = choose(name, values) {
                    arguments[name] = value;
                }
            }
            arguments
        };
        // The best values of all properties, then the next best of each, then those of one property alone.
        let mut made: Vec<Value> =
            (0..longest.min(3)).map(|at| with(&|_, values| values.get(at).or(values.last()).cloned())).collect();
        for (varied, all) in &values {
            made.extend(all.iter().skip(1).map(|value| {
                with(&|name, values| if name == varied { Some(value.clone()) } else { values.first().cloned() })
            }));
        }
        let best = made.first().unwrap_or(&minimal).clone();
        made.extend(variants(&self.schema, &best, MAX_SEARCH_ATTEMPTS));
        made.retain(|arguments| self.schema.is_valid(arguments) && !leads_elsewhere(arguments));
        made
    }

    /// The values to try for a property, the most likely first, all of them valid on their own.
    fn values_for(&self, name: &str, minimal: &Value, known: &KnownValues) -> Vec<Value> {
        let property = self.schema.schema().get("properties").and_then(|properties| properties.get(name));
        let listed = |keyword: &str| {
            property.and_then(|one| one.get(keyword)).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let text = |keyword: &str| property.and_then(|one| one.get(keyword)).and_then(Value::as_str);
        let description = text("description").unwrap_or_default();
        let read =
            |values: Vec<String>| values.into_iter().filter(|value| !is_path(value)).flat_map(|value| readings(&value));
        let paths = self.paths_for(name, known);
        let mut values: Vec<Value> = self.suggested.get(name).cloned().unwrap_or_default();
        values.extend(listed("examples").into_iter().chain(listed("enum")));
        values.extend(read(quoted_values(description)));
        values.extend(paths);
        values.extend(known.values_for(name));
        let is_url = |text: &str| words(text).iter().any(|word| matches!(word.as_str(), "url" | "uri"));
        if is_url(name) || is_url(description) {
            // A URL that contains its data needs no network.
            values.extend([json!("data:text/plain,hello"), json!("http://localhost:9/")]);
        }
        values.extend(likely_value(name).or_else(|| likely_value(description)).map(Value::from));
        values.extend(read(suggested_values(description)));
        if !is_path_name(name) {
            values.extend(suggested_values(&self.description).iter().take(3).map(|value| Value::from(value.as_str())));
        }
        values.extend([json!("test"), json!(1)]);
        let mut fitting: Vec<Value> = Vec::new();
        for value in values {
            let in_list = json!([value]);
            let fits = [value, in_list].into_iter().find(|value| {
                let mut arguments = minimal.clone();
                arguments[name] = value.clone();
                self.schema.is_valid(&arguments)
            });
            if let Some(value) = fits.filter(|value| !fitting.contains(value)) {
                fitting.push(value);
            }
        }
        fitting.truncate(MAX_SEARCH_VALUES);
        fitting
    }

    /// The paths to try for a property, if it is named like one.
    fn paths_for(&self, name: &str, known: &KnownValues) -> Vec<Value> {
        const FOLDERS: [&str; 8] = ["dir", "directory", "folder", "root", "repo", "repository", "workspace", "tree"];
        if !self.may_use_paths || !is_path_name(name) {
            return Vec::new();
        }
        let is_folder = |words: &[String]| words.iter().any(|word| FOLDERS.contains(&word.as_str()) || word == "list");
        let own = words(name);
        let folders_first = is_folder(&own) || (!own.iter().any(|word| word == "file") && is_folder(&self.words));
        let (first, second) =
            if folders_first { (&known.folders, &known.files) } else { (&known.files, &known.folders) };
        let longest = first.len().max(second.len());
        // One of each kind in turn.
        (0..longest).flat_map(|at| [first.get(at), second.get(at)]).flatten().map(|path| json!(path)).collect()
    }
}

/// Whether arguments contain a URL of another machine, which is never called.
fn leads_elsewhere(arguments: &Value) -> bool {
    match arguments {
        Value::String(text) => is_remote_url(text),
        Value::Array(items) => items.iter().any(leads_elsewhere),
        Value::Object(members) => members.values().any(leads_elsewhere),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether an argument of this name is a path.
fn is_path_name(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "filepath",
        "dir",
        "directory",
        "folder",
        "root",
        "repo",
        "repository",
        "workspace",
        "cwd",
    ];
    words(name).iter().any(|word| NAMES.contains(&word.as_str()))
}

/// Whether a value in a message is one that was sent, or the path that it became.
fn is_echo(value: &str, sent: &str) -> bool {
    value == sent || value.strip_suffix(sent).is_some_and(|before| before.ends_with('/'))
}

fn is_path(value: &str) -> bool {
    value.starts_with(['/', '~']) || value.starts_with("file:")
}

/// The words of a name in lower case: those of `readFile`, `read_file` and `read-file` are `read` and `file`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        let starts = !character.is_alphanumeric() || (character.is_uppercase() && was_lower);
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CallPolicy;

    fn search(definition: &Value) -> Option<ArgumentSearch> {
        ArgumentSearch::of_tool(&Tool::new(definition, CallPolicy::NonDestructive).expect("it has a name"))
    }

    fn tool(name: &str, properties: &Value, required: &[&str]) -> Value {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"name": name, "inputSchema": schema})
    }

    /// How many attempts it takes until `serves` accepts the arguments; the error messages of others are learnt.
    fn attempts(
        search: &mut ArgumentSearch,
        known: &KnownValues,
        serves: impl Fn(&Value) -> Result<(), String>,
    ) -> Option<usize> {
        for attempt in 1.. {
            let arguments = search.next(known)?;
            match serves(&arguments) {
                Ok(()) => return Some(attempt),
                Err(message) => search.learn(&arguments, &message),
            }
        }
        None
    }

    #[test]
    fn values_of_error_messages_are_tried_next() {
        let none = KnownValues::default();
        let mut floor = search(&tool("lift", &json!({"floor": {"type": "integer"}}), &["floor"])).expect("a search");
        let serves = |arguments: &Value| match arguments["floor"].as_i64() {
            Some(41 | 42) => Ok(()),
            _ => Err("floor: expected one of 41, 42".to_owned()),
        };
        assert_eq!(attempts(&mut floor, &none, serves), Some(2));
        let mut missing = search(&tool("now", &json!({"zone": {"type": "string"}}), &[])).expect("a search");
        missing.learn(&json!({}), "zone is missing, try Europe/Paris");
        assert_eq!(missing.next(&none), Some(json!({"zone": "Europe/Paris"})));
    }

    #[test]
    fn values_of_descriptions_results_and_folders_are_tried_first() {
        let mut known = KnownValues::of_paths(vec!["/srv".to_owned()], vec!["/srv/a".to_owned()]);
        known.add("id", &json!("r-17"));
        let zone = json!({"zone": {"type": "string", "description": "An IANA name (e.g., 'Africa/Lagos')"}});
        let rows = [
            (tool("now", &zone, &["zone"]), json!({"zone": "Africa/Lagos"})),
            (tool("record", &json!({"recordId": {"type": "string"}}), &["recordId"]), json!({"recordId": "r-17"})),
            (tool("read_file", &json!({"path": {"type": "string"}}), &["path"]), json!({"path": "/srv/a"})),
            (tool("list_files", &json!({"path": {"type": "string"}}), &["path"]), json!({"path": "/srv"})),
            (
                tool(
                    "show",
                    &json!({"files": {"type": "array", "items": {"type": "string"}, "minItems": 1}}),
                    &["files"],
                ),
                json!({"files": ["/srv/a"]}),
            ),
        ];
        for (definition, wanted) in rows {
            let mut search = search(&definition).unwrap_or_else(|| panic!("{definition} is searched"));
            assert_eq!(search.next(&known), Some(wanted), "{definition}");
        }
    }

    #[test]
    fn the_search_ends_and_repeats_nothing() {
        let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "number"}});
        let mut search = search(&tool("x", &properties, &["a", "b", "n"])).expect("a search");
        let mut tried = Vec::new();
        while let Some(arguments) = search.next(&KnownValues::default()) {
            assert!(!tried.contains(&arguments), "{arguments}");
            search.learn(&arguments, &format!("a: try {}", tried.len()));
            tried.push(arguments);
        }
        assert!(tried.len() <= MAX_SEARCH_ATTEMPTS);
    }

    #[test]
    fn tools_that_may_do_harm_get_no_real_paths() {
        let known = KnownValues::of_paths(vec!["/srv".to_owned()], vec!["/srv/a".to_owned()]);
        let path = json!({"path": {"type": "string"}});
        assert!(search(&tool("delete_file", &path, &["path"])).is_none());
        let mut declared = tool("delete_file", &path, &["path"]);
        declared["annotations"] = json!({"destructiveHint": false});
        assert!(search(&declared).is_some());
        let mut write = search(&tool("writeFile", &path, &["path"])).expect("a search");
        while let Some(arguments) = write.next(&known) {
            assert!(!arguments["path"].as_str().is_some_and(is_path), "{arguments}");
            write.learn(&arguments, "allowed directories: /srv");
        }
    }

    #[test]
    fn a_name_is_split_into_words() {
        for name in ["readFile", "read_file", "read-file", "Read file"] {
            assert_eq!(words(name), ["read", "file"], "{name}");
        }
    }
}
