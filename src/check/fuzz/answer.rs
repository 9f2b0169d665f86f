//! Whether a call was answered at all, once, and by what the revision asks for.

use std::time::Duration;

use serde_json::Value;

use super::words::{excerpt, skeleton};
use super::{Breach, DROPPED, Exchange, Fate, Standing, Subject};
use crate::case::Oracle;
use crate::spec::Revision;
use crate::verdict::Verdict;
use crate::wire::same_id;

/// The process ended.
pub(super) fn crash(exchange: &Exchange, status: &str, stderr: &str) -> Breach {
    if status == DROPPED {
        return Breach::new(Oracle::Crash, Verdict::Fail, "a call is answered by a closed connection")
            .actual(format!("no answer: {status}"))
            .signed(status);
    }
    let last = last_words(stderr);
    let said = last.map_or_else(String::new, |line| format!("; its last words: {}", excerpt(line, 200)));
    let signature = format!("{status} {}", skeleton(last.unwrap_or_default(), &exchange.call.arguments));
    Breach::new(Oracle::Crash, Verdict::Fail, "a call ends the server")
        .actual(format!("the server ended before it answered ({status}){said}"))
        .signed(signature)
}

/// The line of an error stream that says most about an end: the first of the last paragraph that names a failure.
fn last_words(stderr: &str) -> Option<&str> {
    let lines = || stderr.lines().filter(|line| !line.trim().is_empty());
    let mut telling =
        lines().filter(|line| ["panicked", "rror", "xception", "atal"].iter().any(|word| line.contains(word)));
    telling.next_back().or_else(|| lines().next_back())
}

/// No answer came.
pub(super) fn hang(exchange: &Exchange, waited: Duration) -> Breach {
    let kind = exchange.call.kind.as_str();
    Breach::new(Oracle::Hang, Verdict::Fail, "a call is never answered")
        .actual(format!("no answer within {waited:.1?}, tried again on a fresh process"))
        .signed(if kind == "invalid" || kind == "malformed" { kind } else { "valid" })
}

/// A line that is no message.
pub(super) fn noise(line: &str) -> Breach {
    Breach::new(Oracle::StdoutNoise, Verdict::Fail, "a call writes something to standard output that is no message")
        .actual(format!("the line {}", excerpt(line, 200)))
        .signed("noise")
}

/// An answer that is no proper response, or more than one.
pub(super) fn malformed(subject: &Subject, exchange: &Exchange) -> Option<Breach> {
    let breach = |message: &str, requirement: &'static str| {
        Breach::new(Oracle::MalformedAnswer, Verdict::Fail, message).speaking_for(requirement).signed(message)
    };
    let newer = subject.revision >= Revision::V2025_11_25;
    let Some(first) = exchange.answers.first() else {
        let answered = matches!(exchange.fate, Fate::Answered);
        return answered.then(|| breach("a call is answered by nothing that belongs to it", "jsonrpc-result-id-echo"));
    };
    if exchange.answers.len() > 1 {
        let found = breach("a call is answered twice", "jsonrpc-result-id-echo");
        return Some(found.actual(format!("{} responses with its id", exchange.answers.len())));
    }
    let id = first.get("id");
    if id.is_none_or(|id| !same_id(id, &exchange.id.into())) {
        let is_error = first.get("error").is_some();
        let requirement = match (is_error, newer) {
            (false, _) => "jsonrpc-result-id-echo",
            (true, false) => "jsonrpc-error-id-echo",
            (true, true) => "jsonrpc-error-id-echo-or-absent",
        };
        // An error without an id is what a message draws that could not be read, which is fair where it is odd.
        let odd = matches!(exchange.call.standing, Standing::Malformed(..));
        if is_error && id.is_none_or(Value::is_null) && (odd || newer && id.is_none()) {
            return None;
        }
        let got = id.map_or_else(|| "no id".to_owned(), |id| format!("the id {}", excerpt(&id.to_string(), 80)));
        let found = breach("a call is answered under another id than its own", requirement);
        return Some(found.actual(format!("{got}, sent was {}", exchange.id)));
    }
    let one_of = if newer { "jsonrpc-response-members" } else { "jsonrpc-response-one-of" };
    let found = match (first.get("result"), first.get("error")) {
        (Some(_), Some(_)) => breach("a response has both result and error", one_of),
        (None, None) => breach("a response has neither result nor error", one_of),
        (None, Some(error)) => {
            let sound = error.get("code").is_some_and(|code| code.is_i64() || code.is_u64())
                && error.get("message").is_some_and(Value::is_string);
            if sound {
                return None;
            }
            breach("an error has no integer code or no message", "jsonrpc-error-object")
        }
        (Some(_), None) => return None,
    };
    Some(found.actual(excerpt(&first.to_string(), 200)))
}

/// A result that is not what the revision calls one.
pub(super) fn result_shape(subject: &Subject, result: &Value) -> Option<Breach> {
    let breach = |message: &str, requirement: &'static str| {
        let found = Breach::new(Oracle::ResultShape, Verdict::Fail, message).speaking_for(requirement);
        Some(found.signed(message).actual(excerpt(&result.to_string(), 200)).showing(result))
    };
    if !result.is_object() {
        return breach("the result of a call is no object", "jsonrpc-result-object");
    }
    if subject.revision.is_draft() {
        if result.get("toolResult").is_none() {
            return breach("the result of a call has no toolResult", "tools-call-tool-result");
        }
        return None;
    }
    // What asks for more input, or stands for a task, is no final result.
    if result.get("resultType").is_some_and(|kind| kind != "complete") || result.get("task").is_some() {
        return None;
    }
    let Some(Value::Array(content)) = result.get("content") else {
        return breach("the result of a call has no content array", "tools-call-content-array");
    };
    if content.iter().any(|item| !item.get("type").is_some_and(Value::is_string)) {
        return breach("an item of content has no type", "tools-call-content-array");
    }
    let bare = |item: &Value| item["type"] == "text" && !item.get("text").is_some_and(Value::is_string);
    if content.iter().any(bare) {
        return breach("a text item of content has no text", "tools-call-content-array");
    }
    if result.get("isError").is_some_and(|flag| !flag.is_boolean()) {
        return breach("isError is no boolean", "tools-call-iserror-boolean");
    }
    None
}

/// A structured result that the tool's own schema refuses.
pub(super) fn output_schema(subject: &Subject, result: &Value) -> Option<Breach> {
    let validator = subject.output.as_ref()?;
    let complete = result.get("resultType").is_none_or(|kind| kind == "complete") && result.get("task").is_none();
    if result.get("isError") == Some(&Value::Bool(true)) || !complete {
        return None;
    }
    let Some(structured) = result.get("structuredContent") else {
        let message = "a tool with an outputSchema answers without structuredContent";
        let found = Breach::new(Oracle::OutputSchema, Verdict::Fail, message).speaking_for("structured-present");
        return Some(found.signed("absent").actual(excerpt(&result.to_string(), 200)).showing(result));
    };
    let error = validator.iter_errors(structured).next()?;
    let place = error.instance_path().to_string();
    let found = Breach::new(Oracle::OutputSchema, Verdict::Fail, "structuredContent does not fit the outputSchema")
        .speaking_for("structured-conforms");
    let place = if place.is_empty() { "the root".to_owned() } else { place };
    let signature = format!("{place} {}", error.schema_path());
    Some(found.signed(signature).actual(excerpt(&format!("at {place}: {error}"), 300)).showing(structured))
}
