//! The prompts of the reference server, and the completion of their arguments.

use serde_json::{Value, json};

use super::content;
use super::message::{INVALID_PARAMS, Object, RpcError, object, quoted};
use super::resource;
use super::revision::Revision;

/// The prompt with arguments.
const REVIEW: &str = "review";
/// The name, title and description of each prompt.
const PROMPTS: &[(&str, &str, &str)] = &[
    (REVIEW, "Review", "Asks for a review of some code."),
    ("picture", "Picture", "Shows a picture and plays a sound."),
    ("briefing", "Briefing", "Hands out the notes."),
    ("greeting", "Greeting", "Says hello."),
    ("farewell", "Farewell", "Says goodbye."),
];
/// The additional prompt after the lists have changed.
pub(super) const GROWTH: (&str, &str, &str) = ("growth", "Growth", "Says how the list grew.");
const LANGUAGES: &[&str] = &["c", "python", "rust"];
/// The maximum number of values in a completion.
const MAX_COMPLETION_VALUES: usize = 100;

/// Whether the server supports completion in this revision. It does not do so in every revision that has it.
pub(super) fn supports_completion(revision: Revision) -> bool {
    revision >= Revision::V2025_06_18
}

/// The list of prompts in a revision.
pub(super) fn listed(revision: Revision) -> Vec<Value> {
    PROMPTS
        .iter()
        .map(|(name, title, description)| {
            let mut prompt = json!({"name": name, "description": description});
            if *name == REVIEW {
                prompt["arguments"] = json!([
                    {"name": "code", "description": "The code.", "required": true},
                    {"name": "language", "description": "What it is written in."},
                ]);
            }
            if revision >= Revision::V2025_06_18 {
                prompt["title"] = json!(title);
            }
            if revision >= Revision::V2025_11_25 {
                prompt["icons"] = json!([content::icon()]);
            }
            prompt
        })
        .collect()
}

fn invalid(text: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_PARAMS, text)
}

/// What faults leave unchecked in `prompts/get`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PromptLeniency {
    /// Accept unknown names.
    pub(super) name: bool,
    /// Accept missing required arguments.
    pub(super) missing: bool,
    /// Accept arguments that are not strings.
    pub(super) types: bool,
}

/// The result of `prompts/get`.
pub(super) fn get(params: &Object, revision: Revision, leniency: PromptLeniency) -> Result<Object, RpcError> {
    let name = params.get("name").and_then(Value::as_str).ok_or_else(|| invalid("name must be a string"))?;
    let known = PROMPTS.iter().chain([&GROWTH]).find(|(known, ..)| *known == name);
    let description = match known {
        Some((.., description)) => *description,
        None if leniency.name => "Nothing.",
        None => return Err(invalid(format!("Unknown prompt: {}", quoted(name)))),
    };
    let empty = Object::new();
    let arguments = match params.get("arguments") {
        None => &empty,
        Some(Value::Object(arguments)) if leniency.types || arguments.values().all(Value::is_string) => arguments,
        Some(_) if leniency.types => &empty,
        Some(_) => return Err(invalid("arguments must be an object of strings")),
    };
    let messages = match name {
        REVIEW => {
            let code = match arguments.get("code") {
                Some(code) => code.as_str().unwrap_or_default(),
                None if leniency.missing => "",
                None => return Err(invalid("the argument code is missing")),
            };
            vec![message("user", &content::text(format!("Please review this code: {}", quoted(code))))]
        }
        "picture" => {
            let mut messages = vec![message("user", &content::image())];
            if revision >= Revision::V2025_03_26 {
                messages.push(message("user", &content::audio()));
            }
            messages
        }
        "briefing" => {
            let notes = resource::contents(resource::NOTES).unwrap_or_default();
            let mut messages = vec![message("user", &content::embedded(&notes))];
            if revision >= Revision::V2025_06_18 {
                messages.push(message("assistant", &content::link(&resource::notes(revision))));
            }
            messages
        }
        "greeting" => vec![message("assistant", &content::text("Hello."))],
        _ => vec![message("assistant", &content::text("Goodbye."))],
    };
    Ok(object(json!({"description": description, "messages": messages})))
}

fn message(role: &str, content: &Value) -> Value {
    json!({"role": role, "content": content})
}

/// The result of `completion/complete`.
pub(super) fn complete(params: &Object) -> Result<Object, RpcError> {
    let member = |pointer: &str| -> Result<&str, RpcError> {
        let (of, name) = pointer.split_once('/').unwrap_or_default();
        let value = params.get(of).and_then(|value| value.get(name)).and_then(Value::as_str);
        value.ok_or_else(|| invalid(format!("{of}.{name} must be a string")))
    };
    let (argument, prefix) = (member("argument/name")?, member("argument/value")?);
    let all: Vec<String> = match member("ref/type")? {
        "ref/prompt" => {
            let name = member("ref/name")?;
            if !PROMPTS.iter().any(|(known, ..)| *known == name) {
                return Err(invalid(format!("Unknown prompt: {}", quoted(name))));
            }
            match (name, argument) {
                (REVIEW, "code") => vec![String::from("fn main() {}")],
                (REVIEW, "language") => LANGUAGES.iter().map(|language| (*language).to_owned()).collect(),
                _ => return Err(invalid("Unknown argument")),
            }
        }
        "ref/resource" => match (member("ref/uri")?, argument) {
            (resource::NUMBERS_TEMPLATE, "number") => (0..1000).map(|number: u32| number.to_string()).collect(),
            _ => return Err(invalid("Unknown resource template")),
        },
        _ => return Err(invalid("Unknown kind of reference")),
    };
    let fitting: Vec<&String> = all.iter().filter(|value| value.starts_with(prefix)).collect();
    let values = &fitting[..fitting.len().min(MAX_COMPLETION_VALUES)];
    let more = fitting.len() > values.len();
    Ok(object(json!({"completion": {"values": values, "total": fitting.len(), "hasMore": more}})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_prompt_is_returned_by_prompts_get() {
        for revision in Revision::ALL.iter().copied().skip(1) {
            for prompt in listed(revision) {
                let params = object(json!({"name": prompt["name"], "arguments": {"code": "1 + 1"}}));
                let result = get(&params, revision, PromptLeniency::default()).expect("it is listed");
                assert!(result["messages"].as_array().is_some_and(|messages| !messages.is_empty()));
            }
        }
    }

    #[test]
    fn a_completion_has_a_hundred_values_at_most() {
        let reference = json!({"type": "ref/resource", "uri": resource::NUMBERS_TEMPLATE});
        let params = object(json!({"ref": reference, "argument": {"name": "number", "value": ""}}));
        let result = complete(&params).expect("the template is listed");
        assert_eq!(result["completion"]["values"].as_array().map(Vec::len), Some(MAX_COMPLETION_VALUES));
        assert_eq!((&result["completion"]["total"], &result["completion"]["hasMore"]), (&json!(1000), &json!(true)));
    }

    #[test]
    fn missing_and_unknown_names_are_rejected() {
        for params in [json!({}), json!({"name": "none"}), json!({"name": "review"})] {
            let rejected = get(&object(params), Revision::V2025_11_25, PromptLeniency::default());
            assert_eq!(rejected.expect_err("it is incomplete").code, INVALID_PARAMS);
        }
        assert_eq!(complete(&Object::new()).expect_err("it is empty").code, INVALID_PARAMS);
    }
}
