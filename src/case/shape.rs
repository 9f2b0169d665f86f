//! The closed schema of case files, and its errors in the words of someone who writes one.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use super::fault::Flaw;
use super::place::escape;

/// The closed JSON Schema of case files, from which editors complete them.
pub const SCHEMA: &str = include_str!("../../cases/schema.json");

/// The closed JSON Schema of hint files, from which editors complete them.
pub const HINTS_SCHEMA: &str = include_str!("../../cases/hints-schema.json");

/// What a file is, and so the closed schema that it has to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Case,
    Hints,
}

struct Closed {
    schema: Value,
    validator: Validator,
}

impl Closed {
    fn of(text: &str) -> Self {
        let schema: Value = serde_json::from_str(text).expect("the closed schema is JSON, which is tested");
        let validator = jsonschema::draft202012::new(&schema).expect("the closed schema compiles, which is tested");
        Self { schema, validator }
    }
}

fn closed(form: Form) -> &'static Closed {
    static CASE: OnceLock<Closed> = OnceLock::new();
    static HINTS: OnceLock<Closed> = OnceLock::new();
    match form {
        Form::Case => CASE.get_or_init(|| Closed::of(SCHEMA)),
        Form::Hints => HINTS.get_or_init(|| Closed::of(HINTS_SCHEMA)),
    }
}

/// Everything in which a file differs from its closed schema, but for what was `told` already.
pub(super) fn flaws(form: Form, file: &Value, told: &[Flaw]) -> Vec<Flaw> {
    let Closed { schema, validator } = closed(form);
    let told: BTreeSet<&str> = told.iter().map(|flaw| flaw.pointer.as_str()).collect();
    validator
        .iter_errors(file)
        .filter(|error| !is_told(&told, error))
        .flat_map(|error| explain(schema, &error))
        .collect()
}

/// Whether what was told, by its pointers, says in plainer words what an error of the closed schema says.
fn is_told(told: &BTreeSet<&str>, error: &ValidationError) -> bool {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        // These are of an object, at whose pointer something else may have been told.
        ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. } => false,
        // Which members go together is told at the member that is too much; of what is no object, its type is told.
        ValidationErrorKind::OneOfNotValid { .. } | ValidationErrorKind::OneOfMultipleValid { .. } => {
            let within = told.range(pointer..).next().is_some_and(|told| told.starts_with(pointer));
            within || !error.instance().is_object()
        }
        _ => told.contains(pointer),
    }
}

/// What is wrong by an error of a closed schema, in plain words.
pub(super) fn explain(schema: &Value, error: &ValidationError) -> Vec<Flaw> {
    let pointer = error.instance_path().as_str().to_owned();
    let at = error.schema_path().as_str();
    let around = at.rsplit_once('/').map_or("", |(around, _)| around);
    let message = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = schema.pointer(&format!("{around}/properties")).and_then(Value::as_object);
            return unexpected
                .iter()
                .map(|name| {
                    let flaw = Flaw::on_name(format!("{pointer}/{}", escape(name)), format!("unknown member `{name}`"));
                    flaw.nearest(name, known.into_iter().flat_map(|known| known.keys().map(String::as_str)))
                })
                .collect();
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<_> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let Some(word) = error.instance().as_str() else {
                return vec![Flaw::at(pointer, format!("expected one of {}", quoted(&options)))];
            };
            let flaw = Flaw::at(pointer, format!("unknown word `{word}`: here stands one of {}", quoted(&options)));
            return vec![flaw.nearest(word, options)];
        }
        ValidationErrorKind::Required { property } => {
            format!("the member `{}` is missing", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::Type { kind } => {
            format!("expected {}, found {}", kinds(kind), article(JsonType::from(error.instance().as_ref())))
        }
        ValidationErrorKind::MinLength { .. }
        | ValidationErrorKind::MinProperties { .. }
        | ValidationErrorKind::MinItems { limit: 1 } => "it is empty".to_owned(),
        ValidationErrorKind::MaxLength { limit } => format!("it is longer than {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("it has fewer than {limit} items"),
        ValidationErrorKind::UniqueItems => "an item stands here twice".to_owned(),
        ValidationErrorKind::FalseSchema => "it has no place in a case of this kind".to_owned(),
        _ => match schema.pointer(&format!("{around}/description")).and_then(Value::as_str) {
            Some(description) => format!("it does not fit what stands here: {description}"),
            None => error.masked().to_string(),
        },
    };
    vec![Flaw::at(pointer, message)]
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn kinds(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => article(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(article).collect::<Vec<_>>().join(" or "),
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
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::super::asking::{InputResponses, Reply, RequestState, Retry};
    use super::super::checks::{Check, Comparison, ConnectionRule};
    use super::super::model::{
        CaseFile, Each, Needs, Otherwise, Outcome, Poll, Process, Row, Rule, Shutdown, Step, Together, Watch, WatchKind,
    };
    use super::*;
    use crate::verdict::Verdict;

    /// The names that a type knows, as it tells them when it meets one that it does not know.
    fn names<T: DeserializeOwned>(unknown: Value) -> BTreeSet<String> {
        let error = serde_json::from_value::<T>(unknown).err().expect("nothing has this name").to_string();
        let (_, known) = error.split_once("expected").expect("it tells what it expected");
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    fn members<T: DeserializeOwned>() -> BTreeSet<String> {
        names::<T>(json!({"no such member": 1}))
    }

    fn words<T: DeserializeOwned>() -> BTreeSet<String> {
        names::<T>(json!("no such word"))
    }

    fn at(pointer: &str) -> BTreeSet<String> {
        match closed(Form::Case).schema.pointer(pointer) {
            Some(Value::Object(members)) => members.keys().cloned().collect(),
            Some(Value::Array(words)) => words.iter().map(|word| word.as_str().expect("a class").to_owned()).collect(),
            _ => panic!("nothing stands at {pointer}"),
        }
    }

    #[test]
    fn the_closed_schema_and_the_types_know_the_same_members() {
        assert_eq!(members::<CaseFile>(), at("/properties"));
        assert_eq!(members::<Needs>(), at("/$defs/needs/properties"));
        assert_eq!(members::<Watch>(), at("/$defs/watch/properties"));
        assert_eq!(members::<Rule>(), at("/$defs/rule/properties"));
        assert_eq!(members::<Retry>(), at("/$defs/retry/properties"));
        assert_eq!(members::<Step>(), at("/$defs/step/properties"));
        assert_eq!(members::<Poll>(), at("/$defs/step/properties/poll/properties"));
        assert_eq!(members::<Row>(), at("/$defs/row/properties"));
        assert_eq!(members::<Otherwise>(), at("/$defs/otherwise/properties"));
        assert_eq!(members::<Together>(), at("/$defs/together/properties"));
    }

    #[test]
    fn the_closed_schema_and_the_types_know_the_same_words() {
        assert_eq!(words::<Verdict>(), at("/$defs/verdict/enum"));
        assert_eq!(words::<WatchKind>(), at("/$defs/watch/properties/kind/enum"));
        assert_eq!(words::<Process>(), at("/properties/process/enum"));
        assert_eq!(words::<Each>(), at("/properties/for-each/enum"));
        assert_eq!(words::<Shutdown>(), at("/$defs/step/properties/shutdown/enum"));
        assert_eq!(words::<Outcome>(), at("/$defs/row/properties/outcome/items/enum"));
        assert_eq!(words::<Reply>(), at("/$defs/reply/properties"));
        assert_eq!(words::<InputResponses>(), at("/$defs/retry/properties/input-responses/enum"));
        assert_eq!(words::<RequestState>(), at("/$defs/retry/properties/request-state/enum"));
        let checks: BTreeSet<_> = Check::names(false).chain(Check::names(true)).map(str::to_owned).collect();
        assert_eq!(checks, at("/$defs/check-name/enum"));
        let rules: BTreeSet<_> = ConnectionRule::NAMES.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(rules, at("/$defs/connection-rule/properties"));
        let comparisons: BTreeSet<_> = Comparison::ALL.iter().map(|check| check.as_str().to_owned()).collect();
        assert_eq!(comparisons, at("/$defs/together/properties/check/enum"));
    }

    #[test]
    fn the_closed_schema_describes_every_member_and_is_closed() {
        fn walk(schema: &Value, path: &str) {
            if let Some(properties) = schema["properties"].as_object() {
                for (name, member) in properties.iter().filter(|(_, member)| member.is_object()) {
                    assert!(member["description"].is_string(), "{path}/{name} has no description");
                    walk(member, &format!("{path}/{name}"));
                }
                let pasted = path == "/$defs/message";
                assert!(pasted || schema["additionalProperties"] == json!(false), "{path} is open");
            }
        }
        for form in [Form::Case, Form::Hints] {
            walk(&closed(form).schema, "");
            for (name, definition) in closed(form).schema["$defs"].as_object().expect("it has definitions") {
                walk(definition, &format!("/$defs/{name}"));
            }
        }
    }
}
