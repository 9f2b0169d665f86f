//! One message that was sent for a step with how the server responded, and both as text for findings.

use std::fmt::Write as _;

use serde_json::Value;

use super::execution::Execution;
use super::text::shortened;
use crate::case::{ExpectedResponse, Outcome};
use crate::transcript::{HttpExchange, Transcript};
use crate::verdict::Verdict;

/// One message that was sent for a step, and how the server responded.
pub(super) struct StepExchange<'a> {
    /// The position of the message.
    pub(super) sent: usize,
    pub(super) outcome: Outcome,
    /// The position of the response, or of what ended the connection.
    pub(super) position: Option<usize>,
    pub(super) response: Option<&'a Value>,
    /// The HTTP exchange that contained it.
    pub(super) http: Option<&'a HttpExchange>,
    /// Whether the step made the HTTP request itself, so that its status and headers are judged too.
    pub(super) is_http_step: bool,
}

impl StepExchange<'_> {
    /// The HTTP status.
    pub(super) fn status(&self) -> Option<u16> {
        self.http?.value.get("status")?.as_u64().and_then(|status| u16::try_from(status).ok())
    }

    /// Whether the server responded at all.
    pub(super) fn is_response(&self) -> bool {
        self.outcome != Outcome::NoResponse || self.is_http_step && self.status().is_some()
    }

    /// The method of the request.
    fn method<'r>(&'r self, record: &'r Transcript) -> Option<&'r str> {
        let sent = record.entries.get(self.sent).and_then(|entry| entry.sent());
        let message = sent.or_else(|| self.http?.value.pointer("/request/message"));
        message?.get("method")?.as_str()
    }

    /// The method of the request, if the server answers no request of it at all: that is a finding of its own, and says
    /// nothing about anything else that a case is about.
    pub(super) fn silent_method<'r>(&'r self, execution: &'r Execution) -> Option<&'r str> {
        let method = self.method(&execution.transcript).filter(|_| self.outcome == Outcome::NoResponse);
        method.filter(|method| execution.silent_methods.contains(*method))
    }
}

/// The responses that pass, as text.
pub(super) fn expectation(rows: &[&ExpectedResponse], title: &str) -> String {
    let mut alternatives = Vec::new();
    for row in rows.iter().filter(|row| row.verdict.is_none_or(|verdict| verdict == Verdict::Pass)) {
        let mut text = row.outcome.iter().map(|outcome| outcome_name(*outcome)).collect::<Vec<_>>().join(" or ");
        if !row.code.is_empty() {
            let codes: Vec<String> = row.code.iter().map(i64::to_string).collect();
            if text.is_empty() {
                text.push_str("an error");
            }
            let _infallible = write!(text, " with code {}", codes.join(" or "));
        }
        if !row.status.is_empty() {
            let wanted: Vec<String> = row.status.iter().map(ToString::to_string).collect();
            let before = if text.is_empty() { "" } else { " with " };
            let _infallible = write!(text, "{before}HTTP status {}", wanted.join(" or "));
        }
        if !text.is_empty() && !alternatives.contains(&text) {
            alternatives.push(text);
        }
    }
    if alternatives.is_empty() { title.to_owned() } else { alternatives.join(", or ") }
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Result => "a result",
        Outcome::Success => "a result without isError",
        Outcome::ToolError => "a result with isError true",
        Outcome::InputRequired => "a result that requests input",
        Outcome::Error => "an error",
        Outcome::Malformed => "a malformed response",
        Outcome::NoResponse => "no response",
        Outcome::HttpError => "an HTTP error status without a message",
        Outcome::Closed => "a closed connection",
        Outcome::StdinClosed => "a process that exits when its input is closed",
        Outcome::Sigterm => "a process that exits on SIGTERM",
        Outcome::Sigkill => "a process that has to be killed",
    }
}

/// A description of a response, with the code and the message of an error.
pub(super) fn describe(step_exchange: &StepExchange<'_>) -> String {
    let outcome = describe_outcome(step_exchange);
    match step_exchange.http.filter(|_| step_exchange.is_http_step) {
        None => outcome,
        Some(http) => match (step_exchange.status(), step_exchange.outcome) {
            (Some(status), Outcome::NoResponse | Outcome::HttpError) => {
                let text = http.value.pointer("/body/text").and_then(Value::as_str).unwrap_or_default();
                let kind =
                    http.value.pointer("/headers/content-type").and_then(Value::as_str).unwrap_or("no content type");
                match text.trim() {
                    "" => format!("HTTP status {status} ({kind}) without a message"),
                    text => format!("HTTP status {status} ({kind}): {}", shortened(text, 160)),
                }
            }
            (Some(status), _) => format!("HTTP status {status} with {outcome}"),
            (None, _) => {
                let trouble = http.value.pointer("/body/failure").and_then(Value::as_str);
                trouble.map_or(outcome, |trouble| shortened(trouble, 160))
            }
        },
    }
}

fn describe_outcome(step_exchange: &StepExchange<'_>) -> String {
    let error = step_exchange.response.and_then(|response| response.get("error"));
    match (step_exchange.outcome, error) {
        (Outcome::Error, Some(error)) => {
            let code = error.get("code").map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            format!("an error with {code}: {}", shortened(message, 160))
        }
        (outcome, _) => outcome_name(outcome).to_owned(),
    }
}
