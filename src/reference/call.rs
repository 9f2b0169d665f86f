//! The behaviour of each tool: argument validation against its schema, then the result.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Value, json};

use super::content;
use super::fault::{Fault, FaultSet};
use super::message::{INTERNAL_ERROR, Object, RpcError, notification, object};
use super::resource;
use super::revision::Revision;

/// The log levels, least severe first.
pub(super) const LOG_LEVELS: &[&str] =
    &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The position of a level in [`LOG_LEVELS`].
pub(super) fn severity(level: &str) -> Option<usize> {
    LOG_LEVELS.iter().position(|known| *known == level)
}

/// The context of a request while it is processed: what may be reported, and what has been reported.
#[derive(Debug)]
pub(super) struct CallContext {
    pub(super) revision: Revision,
    /// The token for progress notifications, if the client sent one.
    pub(super) progress_token: Option<Value>,
    /// The least severe level to log; without one, nothing is logged.
    pub(super) min_log_severity: Option<usize>,
    /// The notifications to send before the response.
    pub(super) notifications: Vec<Value>,
}

impl CallContext {
    fn progress(&mut self, progress: u64, total: u64) {
        let Some(token) = &self.progress_token else {
            return;
        };
        let mut params = json!({"progressToken": token, "progress": progress, "total": total});
        if self.revision >= Revision::V2025_03_26 {
            params["message"] = json!(format!("Counted to {progress}"));
        }
        if self.revision.is_modern() {
            // A new trace, which a server may start.
            params["_meta"] = json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
        }
        self.notifications.push(notification("notifications/progress", &params));
    }

    fn log(&mut self, level: &str, text: &str) {
        if self.min_log_severity.is_some_and(|from| severity(level) >= Some(from)) {
            let params = json!({"level": level, "logger": "mock", "data": text});
            self.notifications.push(notification("notifications/message", &params));
        }
    }
}

/// The output of a tool, before it takes the form that the revision has for results.
#[derive(Debug, PartialEq)]
pub(super) struct ToolOutput {
    content: Vec<Value>,
    structured: Option<Value>,
    failed: bool,
    /// An `input_required` result, which replaces everything else.
    input_request: Option<Object>,
}

impl ToolOutput {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![content::text(text)])
    }

    pub(super) fn blocks(content: Vec<Value>) -> Self {
        Self { content, structured: None, failed: false, input_request: None }
    }

    /// Structured content and its serialized form as a text block.
    pub(super) fn structured(value: Value) -> Self {
        Self {
            content: vec![content::text(value.to_string())],
            structured: Some(value),
            failed: false,
            input_request: None,
        }
    }

    /// A result that requests input from the client.
    pub(super) fn input_required(result: Object) -> Self {
        Self { input_request: Some(result), ..Self::blocks(Vec::new()) }
    }

    /// A tool error, as opposed to a protocol error.
    pub(super) fn failure(text: impl Into<String>) -> Self {
        Self { failed: true, ..Self::text(text) }
    }

    /// The result of `tools/call`. In the 2024-10-07 draft it has a single value of any type instead of content.
    pub(super) fn into_result(self, revision: Revision) -> Object {
        if let Some(result) = self.input_request {
            return result;
        }
        if revision == Revision::V2024_10_07 {
            return object(json!({"toolResult": self.into_draft_value()}));
        }
        let mut result = object(json!({"content": self.content, "isError": self.failed}));
        if let Some(structured) = self.structured.filter(|_| revision >= Revision::V2025_06_18) {
            result.insert("structuredContent".to_owned(), structured);
        }
        result
    }

    fn into_draft_value(self) -> Value {
        let text = match self.content.as_slice() {
            [block] => block.get("text").cloned(),
            _ => None,
        };
        match (self.failed, self.structured, text) {
            (true, _, text) => json!({"error": text}),
            (false, Some(structured), _) => structured,
            (false, None, Some(text)) => text,
            (false, None, None) => json!(self.content),
        }
    }
}

/// The first violation of a tool's schema by its arguments, or nothing if they are valid.
///
/// # Errors
///
/// Fails if the schema does not compile, which only a fault can cause.
pub(super) fn violation(schema: &Value, arguments: &Value, faults: &FaultSet) -> Result<Option<String>, RpcError> {
    let validator = validator(schema)?;
    let first = validator.iter_errors(arguments).find(|error| !is_ignored(error.kind(), faults));
    Ok(first.map(|error| {
        let place = error.instance_path().to_string();
        let place = place.strip_prefix('/').unwrap_or("arguments");
        match error.kind() {
            // The validator's own message is about schemas and does not help a caller.
            ValidationErrorKind::FalseSchema => format!("{place}: the tool takes no such argument"),
            _ => format!("{place}: {}", error.masked()),
        }
    }))
}

/// The validator of a schema. Compilation takes longer than the rest of a call, so each schema is compiled
/// once.
fn validator(schema: &Value) -> Result<Arc<Validator>, RpcError> {
    static COMPILED: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let text = schema.to_string();
    if let Some(validator) = compiled.get(&text) {
        return Ok(Arc::clone(validator));
    }
    let validator = jsonschema::options().build(schema).map_err(|_| RpcError::new(INTERNAL_ERROR, "Internal error"))?;
    let validator = Arc::new(validator);
    compiled.insert(text, Arc::clone(&validator));
    Ok(validator)
}

/// Whether a fault makes the server ignore this kind of violation.
fn is_ignored(kind: &ValidationErrorKind, faults: &FaultSet) -> bool {
    let fault = match kind {
        ValidationErrorKind::Required { .. } => Fault::MissingArgumentSucceeds,
        ValidationErrorKind::Type { .. } => Fault::WrongTypeSucceeds,
        ValidationErrorKind::Enum { .. } => Fault::EnumUnchecked,
        // A schema without properties reports extra ones as `FalseSchema`.
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::FalseSchema => {
            Fault::ExtraArgumentAccepted
        }
        _ => return false,
    };
    faults.contains(fault)
}

/// Whether an argument is a plain word rather than an arbitrary string.
pub(super) fn is_plain_word(argument: &Value) -> bool {
    argument.as_str().is_some_and(|text| text.len() > 3 && text.chars().all(char::is_alphabetic))
}

/// Runs a tool that needs only its arguments. A missing required argument, which only a fault lets through,
/// counts as empty.
pub(super) fn run(name: &str, arguments: &Object, context: &mut CallContext) -> ToolOutput {
    let word = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    match name {
        "echo" => ToolOutput::text(word("text")),
        "add" => ToolOutput::structured(json!({"sum": sum(arguments.get("a"), arguments.get("b"))})),
        "weather" => {
            let degrees = if word("unit") == "fahrenheit" { "73 °F" } else { "23 °C" };
            ToolOutput::text(format!("It is fine in {}, at {degrees}.", word("city")))
        }
        "image" => ToolOutput::blocks(vec![content::image()]),
        "audio" => ToolOutput::blocks(vec![content::audio()]),
        "link" => ToolOutput::blocks(vec![
            content::text("The notes are a resource:"),
            content::link(&resource::notes(context.revision)),
        ]),
        "embed_text" => embed(resource::NOTES),
        "embed_blob" => embed(resource::PIXELS),
        "annotated" => {
            let mut block = content::text("This is for both of you.");
            block["annotations"] = content::annotations(context.revision);
            ToolOutput::blocks(vec![block])
        }
        "count" => {
            let to = arguments.get("to").and_then(Value::as_u64).unwrap_or(2).min(9);
            for number in 1..=to {
                context.progress(number, to);
            }
            ToolOutput::text(format!("Counted to {to}."))
        }
        "log" => {
            context.log("debug", "Looking around.");
            context.log("info", "All is well.");
            context.log("error", "This is an example of an error.");
            ToolOutput::text("Wrote three log messages.")
        }
        "no_arguments" => ToolOutput::text("There are no arguments in this café."),
        "fail" if word("outcome") == "fails" => ToolOutput::failure("It fails as requested."),
        "fail" => ToolOutput::text("It works."),
        "primes" => ToolOutput::structured(json!([2, 3, 5, 7])),
        "research" => ToolOutput::text(format!("There is much to be said about {}.", word("topic"))),
        "interview" => ToolOutput::text("Thank you for the interview."),
        "batch" => ToolOutput::text("The whole batch is done."),
        "erase" => ToolOutput::text("ERASED: a destructive tool was called."),
        "grown" => ToolOutput::text("The list grew."),
        _ => ToolOutput::text("Done."),
    }
}

fn embed(uri: &str) -> ToolOutput {
    ToolOutput::blocks(resource::contents(uri).as_ref().map(content::embedded).into_iter().collect())
}

/// The sum of two numbers, as an integer if both are integers and it does not overflow.
fn sum(a: Option<&Value>, b: Option<&Value>) -> Value {
    let whole = |value: Option<&Value>| value.and_then(Value::as_i64);
    if let Some(sum) = whole(a).zip(whole(b)).and_then(|(a, b)| a.checked_add(b)) {
        return json!(sum);
    }
    let real = |value: Option<&Value>| value.and_then(Value::as_f64).unwrap_or_default();
    let sum = real(a) + real(b);
    // JSON has no infinity.
    json!(sum.clamp(f64::MIN, f64::MAX))
}
