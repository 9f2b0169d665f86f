//! Whether a call was answered, once, by what the revision requires.

use std::time::Duration;

use serde_json::Value;

use super::call::Validity;
use super::exchange::{CONNECTION_DROPPED, ExchangeOutcome, FuzzExchange, FuzzedTool};
use super::message_text::{excerpt, skeleton};
use super::violation::OracleViolation;
use crate::case::Oracle;
use crate::fuzz::Grammar;
use crate::spec::Revision;
use crate::transcript::messages;
use crate::verdict::Verdict;
use crate::wire::{member, same_id};

/// The process exited.
pub(super) fn crash(exchange: &FuzzExchange, status: &str, stderr: &str) -> OracleViolation {
    let (verdict, cause) = verdict_of_end(exchange);
    if status == CONNECTION_DROPPED {
        return OracleViolation::new(
            Oracle::Crash,
            verdict,
            format!("the server closes the connection instead of answering {cause}"),
        )
        .actual(format!("no response: {status}"))
        .signature(status);
    }
    let last = failure_line(stderr);
    let said = last.map_or_else(String::new, |line| format!("; standard error: {}", excerpt(line, 200)));
    let signature = format!("{status} {}", skeleton(last.unwrap_or_default(), &exchange.call.arguments));
    OracleViolation::new(Oracle::Crash, verdict, format!("{cause} makes the server exit"))
        .actual(format!("the server exited before it answered ({status}){said}"))
        .signature(signature)
}

/// The line of standard error that says most about why a process exited: the last one that names a failure, or the
/// last line.
fn failure_line(stderr: &str) -> Option<&str> {
    let lines = || stderr.lines().filter(|line| !line.trim().is_empty());
    let mut failures =
        lines().filter(|line| ["panicked", "rror", "xception", "atal"].iter().any(|part| line.contains(part)));
    failures.next_back().or_else(|| lines().next_back())
}

/// The verdict of an end of the server, and what makes it end. The specification allows a server to give up at what is no
/// message, and no call of the tool is the cause. JSON that is deeply nested, or has large numbers, is a message.
fn verdict_of_end(exchange: &FuzzExchange) -> (Verdict, &'static str) {
    if matches!(exchange.call.validity, Validity::Malformed(Grammar::NotJson, _)) {
        (Verdict::Warn, "a line that is no JSON")
    } else {
        (Verdict::Fail, "a call")
    }
}

/// The server did not respond, and no argument asks it to take so long.
pub(super) fn hang(fuzzed_tool: &FuzzedTool, exchange: &FuzzExchange, waited: Duration) -> Option<OracleViolation> {
    if fuzzed_tool.asked_time.explains(&exchange.call.arguments.value(), waited) {
        return None;
    }
    let kind = exchange.call.kind.as_str();
    let violation = OracleViolation::new(Oracle::Hang, Verdict::Fail, "a call is never answered")
        .actual(format!("no response within {waited:.1?}, and none when the call was repeated"))
        .signature(if kind == "invalid" || kind == "malformed" { kind } else { "valid" });
    Some(violation)
}

/// A line that is no message.
pub(super) fn stdout_noise(line: &str) -> OracleViolation {
    OracleViolation::new(
        Oracle::StdoutNoise,
        Verdict::Fail,
        "a call makes the server write something to standard output that is no message",
    )
    .actual(format!("the line {}", excerpt(line, 200)))
    .signature("noise")
}

/// A response that is malformed, or more than one response.
pub(super) fn malformed(fuzzed_tool: &FuzzedTool, exchange: &FuzzExchange) -> Option<OracleViolation> {
    let violation = |message: &str, requirement: &'static str| {
        OracleViolation::new(Oracle::MalformedResponse, Verdict::Fail, message)
            .of_requirement(requirement)
            .signature(message)
    };
    let is_new_schema = fuzzed_tool.revision >= Revision::V2025_11_25;
    let Some(first) = exchange.responses.first() else {
        let is_answered = matches!(exchange.outcome, ExchangeOutcome::Answered);
        return is_answered.then(|| violation("a call gets no response with its id", "jsonrpc-result-id-echo"));
    };
    if exchange.responses.len() > 1 {
        let found = violation("a call gets more than one response", "jsonrpc-result-id-echo");
        return Some(found.actual(format!("{} responses with its id", exchange.responses.len())));
    }
    let id = member(first, "id");
    if id.is_none_or(|id| !same_id(id, &exchange.id.into())) {
        let is_error = member(first, "error").is_some();
        let requirement = match (is_error, is_new_schema) {
            (false, _) => "jsonrpc-result-id-echo",
            (true, false) => "jsonrpc-error-id-echo",
            (true, true) => "jsonrpc-error-id-echo-or-absent",
        };
        // A server cannot read the id of a message that it cannot parse, so such an error need not have one.
        let is_malformed = matches!(exchange.call.validity, Validity::Malformed(..));
        if is_error && id.is_none_or(Value::is_null) && (is_malformed || is_new_schema && id.is_none()) {
            return None;
        }
        let received = id.map_or_else(|| "no id".to_owned(), |id| format!("the id {}", excerpt(&id.to_string(), 80)));
        let found = violation("the response to a call has another id", requirement);
        return Some(found.actual(format!("the response has {received}, the request {}", exchange.id)));
    }
    let one_of = if is_new_schema { "jsonrpc-response-members" } else { "jsonrpc-response-one-of" };
    let found = match (member(first, "result"), member(first, "error")) {
        (Some(_), Some(_)) => violation("a response has both result and error", one_of),
        (None, None) => violation("a response has neither result nor error", one_of),
        (None, Some(error)) => {
            let is_well_formed = member(error, "code").is_some_and(|code| code.is_i64() || code.is_u64())
                && member(error, "message").is_some_and(Value::is_string);
            if is_well_formed {
                return None;
            }
            violation("an error has no integer code or no string message", "jsonrpc-error-object")
        }
        (Some(_), None) => return None,
    };
    Some(found.actual(excerpt(&first.to_string(), 200)))
}

/// A result that does not have the shape that the revision requires.
pub(super) fn result_shape(fuzzed_tool: &FuzzedTool, result: &Value) -> Option<OracleViolation> {
    let violation = |message: &str, requirement: &'static str| {
        let found = OracleViolation::new(Oracle::ResultShape, Verdict::Fail, message).of_requirement(requirement);
        Some(found.signature(message).actual(excerpt(&result.to_string(), 200)).value(result))
    };
    if !result.is_object() {
        return violation("the result of a call is not an object", "jsonrpc-result-object");
    }
    if fuzzed_tool.revision.is_draft() {
        if member(result, "toolResult").is_none() {
            return violation("the result of a call has no toolResult", "tools-call-tool-result");
        }
        return None;
    }
    // A result that requests input or creates a task is not the final one.
    if member(result, "resultType").is_some_and(|kind| kind != "complete") || member(result, "task").is_some() {
        return None;
    }
    let Some(Value::Array(content)) = member(result, "content") else {
        return violation("the result of a call has no content array", "tools-call-content-array");
    };
    if content.iter().any(|item| !member(item, "type").is_some_and(Value::is_string)) {
        return violation("a content item has no type", "tools-call-content-array");
    }
    let has_no_text = |item: &Value| {
        member(item, "type").is_some_and(|kind| kind == "text") && !member(item, "text").is_some_and(Value::is_string)
    };
    if content.iter().any(has_no_text) {
        return violation("a text content item has no text", "tools-call-content-array");
    }
    if member(result, "isError").is_some_and(|flag| !flag.is_boolean()) {
        return violation("isError is not a boolean", "tools-call-iserror-boolean");
    }
    None
}

/// A structured result that does not conform to the tool's `outputSchema`.
pub(super) fn output_schema(fuzzed_tool: &FuzzedTool, result: &Value) -> Option<OracleViolation> {
    let validator = fuzzed_tool.output.as_ref()?;
    let is_final = result.get("resultType").is_none_or(|kind| kind == "complete") && result.get("task").is_none();
    if result.get("isError") == Some(&Value::Bool(true)) || !is_final {
        return None;
    }
    let Some(structured) = result.get("structuredContent") else {
        let message = "a tool with an outputSchema returns no structuredContent";
        let found =
            OracleViolation::new(Oracle::OutputSchema, Verdict::Fail, message).of_requirement("structured-present");
        return Some(found.signature("absent").actual(excerpt(&result.to_string(), 200)).value(result));
    };
    let error = validator.iter_errors(structured).next()?;
    let path = error.instance_path().to_string();
    let found = OracleViolation::new(
        Oracle::OutputSchema,
        Verdict::Fail,
        "structuredContent does not conform to the outputSchema",
    )
    .of_requirement("structured-conforms");
    let path = if path.is_empty() { "the root".to_owned() } else { path };
    let signature = format!("{path} {}", error.schema_path());
    Some(found.signature(signature).actual(excerpt(&format!("at {path}: {error}"), 300)).value(structured))
}

/// Whether a line is no JSON-RPC message at all; `value` is what it was parsed to.
#[must_use]
pub(crate) fn is_noise(value: Option<&Value>) -> bool {
    let Some(value) = value else { return true };
    let is_message =
        |message: &Value| ["method", "result", "error", "id"].iter().any(|name| member(message, name).is_some());
    !messages(value).all(is_message)
}
