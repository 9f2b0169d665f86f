//! Whether the server accepts valid arguments and rejects invalid ones, with the right error.

use serde_json::Value;

use super::call::{Arguments, Validity};
use super::environment::is_environmental;
use super::exchange::FuzzExchange;
use super::message_text::{excerpt, skeleton};
use super::response_class::{outcome_of, text_of};
use super::violation::OracleViolation;
use crate::case::Oracle;
use crate::fuzz::{Constraint, Grammar};
use crate::json_pointer::{InstanceStep, instance_steps};
use crate::transcript::is_input_required;
use crate::verdict::{CallKind, CallOutcome, Verdict};
use crate::wire::{HTTP_STATUS_MEMBER, member};

const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
/// Errors by which a server requires something of the client before it serves a valid call: a URL mode elicitation, or
/// a capability.
const CLIENT_ACTION_REQUIRED: [i64; 2] = [-32042, -32021];

/// Keywords that a validator may treat as annotations.
const ANNOTATIONS: [&str; 3] = ["format", "contentEncoding", "contentMediaType"];

/// Whether a server may accept arguments that violate this keyword.
pub(super) fn is_annotation(constraint: &Constraint) -> bool {
    ANNOTATIONS.contains(&constraint.keyword.as_str())
}

/// A call with invalid arguments that the server served.
pub(super) fn invalid_arguments_accepted(exchange: &FuzzExchange, response: &Value) -> Option<OracleViolation> {
    let Validity::Violates(constraint) = &exchange.call.validity else { return None };
    // A server may ask for input before it looks at the arguments.
    let asks_first = member(response, "result").is_some_and(is_input_required);
    if outcome_of(response) != CallOutcome::Success || asks_first || is_annotation(constraint) {
        return None;
    }
    let Arguments::Json(arguments) = &exchange.call.arguments else { return None };
    let verdict = if is_beyond_conversion(constraint, arguments) { Verdict::Fail } else { Verdict::Warn };
    let message = match verdict {
        Verdict::Fail if constraint.keyword == "required" => {
            "arguments without a required property are accepted".to_owned()
        }
        Verdict::Fail => "arguments of the wrong JSON type are accepted".to_owned(),
        _ => format!("arguments that violate `{}` are accepted", constraint.keyword),
    };
    Some(
        OracleViolation::new(Oracle::InvalidAccepted, verdict, message)
            .actual(format!("a success, although the arguments violate {constraint}"))
            .signature(format!("{} {}", constraint.keyword, verdict.as_str())),
    )
}

/// Whether no lenient server can convert the arguments to valid ones: a required property is missing, or a plain value
/// is replaced by an object or an array.
fn is_beyond_conversion(constraint: &Constraint, arguments: &Value) -> bool {
    match constraint.keyword.as_str() {
        "required" => constraint.pointer.is_empty(),
        "type" => {
            let Some(location) = instance_location(&constraint.pointer) else { return false };
            arguments.pointer(&location).is_some_and(|value| value.is_object() || value.is_array())
        }
        _ => false,
    }
}

/// The instance location that a schema location applies to, if it is reached through `properties` alone.
fn instance_location(pointer: &str) -> Option<String> {
    instance_steps(pointer).try_fold(String::new(), |location, step| match step {
        InstanceStep::Member(token) => Some(format!("{location}/{token}")),
        InstanceStep::Item | InstanceStep::Other => None,
    })
}

/// Phrases by which validation libraries report invalid arguments.
const VALIDATION_PHRASES: [&str; 8] = [
    "Input validation error",
    "Invalid arguments for tool",
    "Invalid input",
    "invalid_type",
    "validation error for",
    "is a required property",
    "is not of type",
    "ZodError",
];

/// Phrases by which SDKs report that the result of a tool is invalid, in lower case.
const RESULT_PHRASES: [&str; 4] =
    ["tools/call result", "output validation error", "invalid structured content", "has an output schema but"];

/// Phrases of a value that is well-formed and names nothing that exists, in lower case.
const LOOKUP_PHRASES: [&str; 3] = ["not found", "does not exist", "no such"];

/// What an unknown one of is a member that the schema may forbid, and no value that names nothing, in lower case.
const MEMBER_WORDS: [&str; 5] = ["member", "propert", "argument", "parameter", "keyword"];

/// Whether a text in lower case says that something is unknown that is no member of the arguments.
fn names_unknown_value(lower: &str) -> bool {
    let after = lower.match_indices("unknown ").map(|(at, found)| lower[at + found.len()..].trim_start());
    after.into_iter().any(|rest| !MEMBER_WORDS.iter().any(|word| rest.starts_with(word)))
}

/// Whether a rejection is not about the schema of the arguments: the result is invalid, a value names nothing that exists,
/// or something outside of the server failed.
pub(super) fn is_about_something_else(message: &str) -> bool {
    let lower = message.to_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    let names_schema = VALIDATION_PHRASES.iter().any(|phrase| message.contains(phrase));
    mentions(&RESULT_PHRASES)
        || !names_schema && (mentions(&LOOKUP_PHRASES) || names_unknown_value(&lower) || is_environmental(message))
}

/// A call with valid arguments that the server rejects as invalid.
pub(super) fn valid_arguments_rejected(exchange: &FuzzExchange, response: &Value) -> Option<OracleViolation> {
    // A handler may have limits that its schema does not state.
    if exchange.call.validity != Validity::Valid || exchange.call.kind == CallKind::Handler {
        return None;
    }
    let message = match outcome_of(response) {
        CallOutcome::InvalidParams => response.pointer("/error/message").and_then(Value::as_str).unwrap_or_default(),
        CallOutcome::ToolError => {
            let text = text_of(member(response, "result")?)?;
            VALIDATION_PHRASES.iter().any(|phrase| text.contains(phrase)).then_some(text)?
        }
        _ => return None,
    };
    (!is_about_something_else(message)).then(|| valid_refused(message, &exchange.call.arguments))
}

/// The violation that valid arguments are refused with a message.
pub(super) fn valid_refused(message: &str, arguments: &Arguments) -> OracleViolation {
    OracleViolation::new(
        Oracle::ValidRejected,
        Verdict::Warn,
        "arguments that the inputSchema allows are rejected as invalid",
    )
    .actual(format!("the server says: {}", excerpt(message, 300)))
    .signature(skeleton(before_echo(message), arguments))
}

/// A message up to where Pydantic repeats the value in Python's notation, which would make a cause of each value.
fn before_echo(message: &str) -> &str {
    message.split_once(", input_value=").map_or(message, |(before, _)| before)
}

/// An error whose code does not fit its cause.
pub(super) fn error_class(exchange: &FuzzExchange, error: &Value) -> Option<OracleViolation> {
    let code = member(error, "code").and_then(Value::as_i64)?;
    let message = member(error, "message").and_then(Value::as_str).unwrap_or_default();
    let actual = || match member(error, HTTP_STATUS_MEMBER) {
        Some(_) => format!("{}, without a JSON-RPC message", excerpt(message, 300)),
        None => format!("the error {code}: {}", excerpt(message, 300)),
    };
    // The arguments did not cause it.
    if code == INTERNAL_ERROR && is_environmental(message) {
        return None;
    }
    if code == INTERNAL_ERROR {
        let found =
            OracleViolation::new(Oracle::InternalError, Verdict::Warn, "arguments cause an internal error (-32603)");
        return Some(found.actual(actual()).signature(skeleton(message, &exchange.call.arguments)));
    }
    let (expected, requirement) = match &exchange.call.validity {
        Validity::Violates(_) if code != INVALID_PARAMS && code != INVALID_REQUEST => {
            ("-32602, or a result with isError: true", "errors-invalid-params")
        }
        Validity::Malformed(Grammar::OtherJson, _) if code != INVALID_PARAMS && code != INVALID_REQUEST => {
            ("-32602", "errors-invalid-params")
        }
        Validity::Valid if code != INVALID_PARAMS && !CLIENT_ACTION_REQUIRED.contains(&code) => {
            ("a result, with isError: true if the tool fails", "robust-error-code")
        }
        _ => return None,
    };
    let mut found =
        OracleViolation::new(Oracle::ErrorClass, Verdict::Warn, "the code of an error does not match its cause")
            .of_requirement(requirement)
            .actual(actual())
            .signature(format!("{code} {requirement}"));
    expected.clone_into(&mut found.expected);
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::call::Call;
    use super::*;

    #[test]
    fn a_rejection_about_a_result_or_a_lookup_is_not_about_the_schema() {
        for message in [
            "MCP error -32602: Invalid tools/call result: expected array",
            "Output validation error: 'name' is a required property",
            "Context not found",
            "connect ECONNREFUSED 127.0.0.1:80",
            "Unknown timezone Mars/Base",
            "unknown key: color",
        ] {
            assert!(is_about_something_else(message), "{message}");
        }
        for message in [
            "Invalid arguments for tool add: a: Required",
            "Input validation error: 'x' is not found in enum",
            "billing: unknown member 'extra'",
            "Unknown property: extra",
        ] {
            assert!(!is_about_something_else(message), "{message}");
        }
    }

    #[test]
    fn values_that_pydantic_repeats_are_no_causes_of_their_own() {
        let refused = |value: &str, sent: Value| {
            let message = format!(
                "1 validation error for call[echo]\nextra\n  Unexpected keyword argument [type=unexpected_keyword_argument, input_value={value}, input_type=int]"
            );
            valid_refused(&message, &Arguments::Json(json!({ "extra": sent })))
        };
        assert!(refused("0", json!(0)).has_same_cause_as(&refused("{'a': [0]}", json!({"a": [0]}))));
    }

    #[test]
    fn a_result_that_asks_for_input_does_not_accept_the_arguments() {
        let constraint = Constraint { pointer: String::new(), keyword: "required".to_owned(), name: None };
        let call = Call {
            kind: CallKind::Invalid,
            validity: Validity::Violates(Arc::new(constraint)),
            arguments: Arguments::Json(json!({})),
            choices: None,
        };
        let exchange = FuzzExchange { call: Arc::new(call), ..FuzzExchange::answered(json!({}), Vec::new()) };
        let accepted = |result: Value| invalid_arguments_accepted(&exchange, &json!({"result": result})).is_some();
        assert!(accepted(json!({"content": []})));
        assert!(!accepted(json!({"resultType": "input_required", "inputRequests": {}})));
    }

    #[test]
    fn a_schema_location_is_an_instance_location_if_it_is_reached_through_properties() {
        assert_eq!(instance_location("").as_deref(), Some(""));
        assert_eq!(instance_location("/properties/a/properties/b").as_deref(), Some("/a/b"));
        assert_eq!(instance_location("/properties/a/items"), None);
    }
}
