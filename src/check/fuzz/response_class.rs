//! Classifies responses by their outcome and their content.

use serde_json::Value;

use super::call::Arguments;
use super::exchange::{ExchangeOutcome, FuzzExchange};
use super::message_text::skeleton;
use crate::text::first_chars;
use crate::verdict::CallOutcome;
use crate::wire::member;

/// The outcome of a call.
#[must_use]
pub(crate) fn outcome(exchange: &FuzzExchange) -> CallOutcome {
    match &exchange.outcome {
        ExchangeOutcome::TimedOut { .. } => return CallOutcome::NoResponse,
        ExchangeOutcome::Exited { .. } => return CallOutcome::Closed,
        ExchangeOutcome::Answered => {}
    }
    match exchange.responses.first() {
        Some(response) => outcome_of(response),
        None if exchange.call.is_unparsable() => CallOutcome::OtherError,
        None => CallOutcome::Malformed,
    }
}

/// The outcome that a response is.
pub(super) fn outcome_of(response: &Value) -> CallOutcome {
    match (member(response, "result"), member(response, "error")) {
        (Some(result @ Value::Object(_)), None) => {
            let draft_error = member(result, "toolResult").is_some_and(|value| member(value, "error").is_some());
            if member(result, "isError") == Some(&Value::Bool(true)) || draft_error {
                CallOutcome::ToolError
            } else {
                CallOutcome::Success
            }
        }
        (None, Some(error @ Value::Object(_))) => match member(error, "code").and_then(Value::as_i64) {
            Some(-32602) => CallOutcome::InvalidParams,
            Some(_) => CallOutcome::OtherError,
            None => CallOutcome::Malformed,
        },
        _ => CallOutcome::Malformed,
    }
}

/// The class of a response that is this outcome: the outcome, the code, and the message or the structure without the parts that
/// vary.
#[must_use]
pub(crate) fn response_class(exchange: &FuzzExchange, outcome: CallOutcome) -> String {
    match (&exchange.outcome, exchange.responses.first()) {
        (ExchangeOutcome::Exited { status, .. }, _) => format!("{}: {status}", outcome.as_str()),
        (_, Some(response)) => class_of_response(response, outcome, &exchange.call.arguments),
        (_, None) => outcome.as_str().to_owned(),
    }
}

/// The message of an error, or the text of a tool error.
fn message_of(response: &Value, outcome: CallOutcome) -> Option<&str> {
    match (member(response, "error"), member(response, "result")) {
        (Some(error), _) => member(error, "message").and_then(Value::as_str),
        (None, Some(result)) if outcome == CallOutcome::ToolError => text_of(result),
        _ => None,
    }
}

fn class_of_response(response: &Value, outcome: CallOutcome, arguments: &Arguments) -> String {
    let mut class = outcome.as_str().to_owned();
    let message = || skeleton(message_of(response, outcome).unwrap_or_default(), arguments);
    if let Some(error) = member(response, "error") {
        if let Some(code) = member(error, "code").and_then(Value::as_i64) {
            class.extend([" ", code.to_string().as_str()]);
        }
        class.extend([": ", message().as_str()]);
    } else if let Some(result) = member(response, "result") {
        let content = if outcome == CallOutcome::ToolError { message() } else { structure(result) };
        class.extend([": ", content.as_str()]);
    }
    class
}

/// The first text of a result.
pub(super) fn text_of(result: &Value) -> Option<&str> {
    let content = member(result, "content").and_then(Value::as_array);
    let text = content.and_then(|items| items.iter().find_map(|item| member(item, "text")?.as_str()));
    text.or_else(|| result.pointer("/toolResult/error")?.as_str())
}

/// The types of the content items and the members of the structured content.
fn structure(result: &Value) -> String {
    const MAX_MEMBERS: usize = 12;
    let mut parts: Vec<String> = Vec::new();
    for item in member(result, "content").and_then(Value::as_array).into_iter().flatten() {
        let kind = member(item, "type").and_then(Value::as_str).unwrap_or("no type");
        if parts.last().is_none_or(|last| last != kind) && parts.len() < MAX_MEMBERS {
            parts.push(first_chars(kind, 20).to_owned());
        }
    }
    if parts.is_empty() {
        parts.push("no content".to_owned());
    }
    let structured = member(result, "structuredContent").or_else(|| member(result, "toolResult"));
    if let Some(Value::Object(members)) = structured {
        let names: Vec<String> =
            members.keys().take(MAX_MEMBERS).map(|name| first_chars(name, 20).to_owned()).collect();
        parts.push(format!("{{{}}}", names.join(", ")));
    }
    parts.join(" ")
}
