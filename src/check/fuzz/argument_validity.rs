//! Whether the server accepts valid arguments and rejects invalid ones, with the right error.

use serde_json::Value;

use super::call::{Arguments, Validity};
use super::exchange::FuzzExchange;
use super::message_text::{excerpt, skeleton};
use super::response_class::{outcome_of, text_of};
use super::violation::OracleViolation;
use crate::case::Oracle;
use crate::event::CallOutcome;
use crate::fuzz::{Constraint, Grammar};
use crate::verdict::Verdict;

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
    if outcome_of(response) != CallOutcome::Success || is_annotation(constraint) {
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
    let mut steps = pointer.split('/').skip(1);
    let mut location = String::new();
    while let Some(step) = steps.next() {
        if step != "properties" {
            return None;
        }
        location.push('/');
        location.push_str(steps.next()?);
    }
    Some(location)
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

/// A call with valid arguments that the server rejects as invalid.
pub(super) fn valid_arguments_rejected(exchange: &FuzzExchange, response: &Value) -> Option<OracleViolation> {
    if exchange.call.validity != Validity::Valid {
        return None;
    }
    let message = match outcome_of(response) {
        CallOutcome::InvalidParams => response.pointer("/error/message").and_then(Value::as_str).unwrap_or_default(),
        CallOutcome::ToolError => {
            let text = text_of(response.get("result")?)?;
            VALIDATION_PHRASES.iter().any(|phrase| text.contains(phrase)).then_some(text)?
        }
        _ => return None,
    };
    Some(
        OracleViolation::new(
            Oracle::ValidRejected,
            Verdict::Warn,
            "arguments that the inputSchema allows are rejected as invalid",
        )
        .actual(format!("the server says: {}", excerpt(message, 300)))
        .signature(skeleton(message, &exchange.call.arguments)),
    )
}

/// An error whose code does not fit its cause.
pub(super) fn error_class(exchange: &FuzzExchange, error: &Value) -> Option<OracleViolation> {
    let code = error.get("code").and_then(Value::as_i64)?;
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let actual = || format!("the error {code}: {}", excerpt(message, 300));
    let signature = skeleton(message, &exchange.call.arguments);
    if code == INTERNAL_ERROR {
        let found =
            OracleViolation::new(Oracle::InternalError, Verdict::Warn, "arguments cause an internal error (-32603)");
        return Some(found.actual(actual()).signature(signature));
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
    use super::*;

    #[test]
    fn a_schema_location_is_an_instance_location_if_it_is_reached_through_properties() {
        assert_eq!(instance_location("").as_deref(), Some(""));
        assert_eq!(instance_location("/properties/a/properties/b").as_deref(), Some("/a/b"));
        assert_eq!(instance_location("/properties/a/items"), None);
    }
}
