//! Hint files: example requests to a server that make it show what generated requests do not.
//!
//! An author commits one with the server. Each hint names a tool to call, a resource to read or a prompt to get, with
//! arguments that are meaningful to the server, and may name the requirements or cases that it is for.
//! `cases/hints-schema.json` is the schema of the file; every problem is reported with its line and column.

use std::path::Path;

use serde_json::{Map, Value};

use super::checker::revision_set;
use super::file_schema::{self, FileKind};
use super::jsonc::Document;
use super::load::read;
use super::model::Case;
use super::problem::{Diagnostic, LoadError, UnlocatedDiagnostic};
use crate::json_pointer;
use crate::spec::{Catalogue, Revision, RevisionSet};

/// An example request to a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// The requirements and cases that it is for, by id; empty where it only gives arguments that are served.
    pub purposes: Vec<String>,
    /// The revisions that it is used in.
    pub revisions: RevisionSet,
    /// The request.
    pub request: HintRequest,
}

/// The request of a hint.
#[derive(Debug, Clone, PartialEq)]
pub enum HintRequest {
    /// Calls a tool.
    Call {
        /// Its name.
        tool: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
    /// Reads a resource.
    Read {
        /// Its URI.
        uri: String,
    },
    /// Gets a prompt.
    Get {
        /// Its name.
        prompt: String,
        /// Its arguments, all of them strings.
        arguments: Map<String, Value>,
    },
}

impl Hint {
    /// Whether it is for a case in a revision: for the case itself, or for a requirement that it checks there.
    #[must_use]
    pub fn is_for(&self, case: &Case, revision: Revision) -> bool {
        let cites =
            |id: &String| case.requirements.iter().any(|own| own.id == *id && own.revisions().contains(revision));
        self.revisions.contains(revision) && self.purposes.iter().any(|id| *id == case.id || cites(id))
    }
}

impl HintRequest {
    /// The method of the request, and its params.
    #[must_use]
    pub fn method_and_params(&self) -> (&'static str, Map<String, Value>) {
        let with = |name: &str, value: &str, arguments: &Map<String, Value>, always: bool| {
            let mut params = Map::new();
            params.insert(name.to_owned(), Value::from(value));
            if always || !arguments.is_empty() {
                params.insert("arguments".to_owned(), Value::Object(arguments.clone()));
            }
            params
        };
        match self {
            Self::Call { tool, arguments } => ("tools/call", with("name", tool, arguments, true)),
            Self::Read { uri } => ("resources/read", with("uri", uri, &Map::new(), false)),
            Self::Get { prompt, arguments } => ("prompts/get", with("name", prompt, arguments, false)),
        }
    }

    /// The request in few words: `tools/call add {"a":1}`.
    #[must_use]
    pub fn describe(&self) -> String {
        let (name, arguments) = match self {
            Self::Call { tool, arguments } => (tool, Some(arguments)),
            Self::Read { uri } => (uri, None),
            Self::Get { prompt, arguments } => (prompt, Some(arguments)),
        };
        let method = self.method_and_params().0;
        match arguments.filter(|arguments| !arguments.is_empty()) {
            Some(arguments) => format!("{method} {name} {}", Value::Object(arguments.clone())),
            None => format!("{method} {name}"),
        }
    }
}

/// Reads a hint file. `cases` are the ids of every case that a hint may be for.
///
/// # Errors
/// When the file cannot be read or is invalid; every problem in it is reported.
pub fn load_hints(path: &Path, cases: &[&str]) -> Result<Vec<Hint>, LoadError> {
    let file = path.display().to_string();
    let text = read(path, &file).map_err(|fault| LoadError { faults: vec![fault] })?;
    parse_hints(&file, &text, cases)
}

/// Parses the text of a hint file, which messages call `file`.
///
/// # Errors
/// When it is invalid; every problem is reported.
pub fn parse_hints(file: &str, text: &str, cases: &[&str]) -> Result<Vec<Hint>, LoadError> {
    let document = Document::read(file, text).map_err(|fault| LoadError { faults: vec![fault] })?;
    let mut flaws = document.flaws.clone();
    let mut hints = Vec::new();
    let listed = document.value.get("hints").and_then(Value::as_array);
    for (index, hint) in listed.into_iter().flatten().enumerate() {
        if let Value::Object(hint) = hint {
            hints.extend(hint_of(hint, &format!("/hints/{index}"), cases, &mut flaws));
        }
    }
    flaws.extend(file_schema::flaws(FileKind::Hints, &document.value, &flaws));
    if flaws.is_empty() {
        return Ok(hints);
    }
    let mut faults: Vec<Diagnostic> = document.locate_all(flaws);
    faults.sort();
    Err(LoadError { faults })
}

/// The hint in an object, if it is valid; what the schema cannot express is reported.
fn hint_of(hint: &Map<String, Value>, at: &str, cases: &[&str], flaws: &mut Vec<UnlocatedDiagnostic>) -> Option<Hint> {
    let revisions = revision_set(hint, at, flaws);
    let purposes: Vec<String> = hint
        .get("for")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect();
    for (index, id) in purposes.iter().enumerate() {
        if Catalogue::embedded().get(id).is_none() && !cases.contains(&id.as_str()) {
            let known = Catalogue::embedded().iter().map(|requirement| requirement.id.as_str());
            let flaw = UnlocatedDiagnostic::at(
                format!("{at}/for/{index}"),
                format!("`{id}` is neither a requirement nor a case"),
            );
            flaws.push(flaw.nearest(id, known.chain(cases.iter().copied())));
        }
    }
    let named: Vec<&str> = ["call", "read", "get"].into_iter().filter(|name| hint.contains_key(*name)).collect();
    let [one] = named.as_slice() else {
        let message = match named.get(1) {
            None => "the hint has none of `call`, `read` and `get`".to_owned(),
            Some(second) => format!("the hint has both `{}` and `{second}`: a hint is one request", named[0]),
        };
        flaws.push(UnlocatedDiagnostic::at(at, message));
        return None;
    };
    let arguments = match hint.get("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return None,
    };
    let name = hint.get(*one)?.as_str()?.to_owned();
    let request = match *one {
        "call" => HintRequest::Call { tool: name, arguments },
        "get" => {
            for (argument, value) in arguments.iter().filter(|(_, value)| !value.is_string()) {
                let pointer = json_pointer::join(&format!("{at}/arguments"), argument);
                flaws.push(UnlocatedDiagnostic::at(
                    pointer,
                    format!("the arguments of a prompt are strings, but this is {value}"),
                ));
            }
            HintRequest::Get { prompt: name, arguments }
        }
        _ => {
            if hint.contains_key("arguments") {
                flaws.push(UnlocatedDiagnostic::on_name(
                    format!("{at}/arguments"),
                    "reading a resource takes no arguments",
                ));
            }
            HintRequest::Read { uri: name }
        }
    };
    Some(Hint { purposes, revisions: revisions?, request })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CASES: [&str; 2] = ["content/image", "tools/call/unknown-tool"];

    fn reported(text: &str) -> Vec<String> {
        let error = parse_hints("h.jsonc", text, &CASES).expect_err("it has a fault");
        error.faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_hint_is_for_a_tool_a_resource_or_a_prompt() {
        let text = r#"// What this server shows.
        {
          "$schema": "cases/hints-schema.json",
          "hints": [
            {"for": ["content/image", "tool-name-string"], "call": "draw", "arguments": {"size": 3}},
            {"read": "file:///a", "revisions": "2025-06-18.."},
            {"get": "review", "arguments": {"code": "x"},},
          ],
        }"#;
        let hints = parse_hints("h.jsonc", text, &CASES).expect("it is sound");
        let requests: Vec<String> = hints.iter().map(|hint| hint.request.describe()).collect();
        assert_eq!(
            requests,
            [r#"tools/call draw {"size":3}"#, "resources/read file:///a", r#"prompts/get review {"code":"x"}"#]
        );
        assert_eq!(hints[0].purposes, ["content/image", "tool-name-string"]);
        assert_eq!(hints[0].revisions, RevisionSet::ALL);
        assert!(!hints[1].revisions.contains(Revision::V2025_03_26));
        assert_eq!(Value::Object(hints[1].request.method_and_params().1), json!({"uri": "file:///a"}));
        assert_eq!(
            Value::Object(hints[2].request.method_and_params().1),
            json!({"name": "review", "arguments": {"code": "x"}})
        );
    }

    #[test]
    fn every_mistake_is_reported_with_its_place() {
        let text = r#"{
  "hints": [
    {"call": "a", "read": "b"},
    {"for": ["content/imgae"], "call": "a"},
    {"arguments": {}},
    {"read": "x", "arguments": {}},
    {"get": "p", "arguments": {"n": 1}},
    {"call": 5, "argumnets": {}},
    {"call": "a", "revisions": "2025-13-01"}
  ]
}"#;
        assert_eq!(
            reported(text),
            [
                "h.jsonc:3:5: the hint has both `call` and `read`: a hint is one request",
                "h.jsonc:4:14: `content/imgae` is neither a requirement nor a case (did you mean `content/image`?)",
                "h.jsonc:5:5: the hint has none of `call`, `read` and `get`",
                "h.jsonc:6:19: reading a resource takes no arguments",
                "h.jsonc:7:37: the arguments of a prompt are strings, but this is 1",
                "h.jsonc:8:14: expected a string, found a number",
                "h.jsonc:8:17: unknown member `argumnets` (did you mean `arguments`?)",
                "h.jsonc:9:32: `2025-13-01` is not a revision; use 2024-10-07, 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28 (did you mean `2025-03-26`?)",
            ]
        );
    }

    #[test]
    fn a_file_of_another_form_is_rejected() {
        assert_eq!(reported("[]"), ["h.jsonc:1:1: expected an object, found an array"]);
        assert_eq!(reported("{}"), ["h.jsonc:1:1: the member `hints` is missing"]);
        assert_eq!(reported("{\"hints\": [}"), ["h.jsonc:1:12: unexpected close brace"]);
    }

    #[test]
    fn a_hint_is_for_its_cases_and_for_those_of_its_requirements() {
        let cases = super::super::load(None, &[]).expect("our cases are sound");
        let image = cases.iter().find(|case| case.id == "content/image").expect("a built-in case");
        let hint = |purpose: &str, revisions: &str| Hint {
            purposes: vec![purpose.to_owned()],
            revisions: revisions.parse().expect("a set"),
            request: HintRequest::Read { uri: "x".to_owned() },
        };
        let revision = image.revisions.iter().last().expect("it runs somewhere");
        assert!(hint("content/image", "2024-11-05..").is_for(image, revision));
        assert!(hint(&image.requirements[0].id, "2024-11-05..").is_for(image, revision));
        assert!(!hint("content/audio", "2024-11-05..").is_for(image, revision));
        assert!(!hint("content/image", "2024-11-05").is_for(image, revision));
    }
}
