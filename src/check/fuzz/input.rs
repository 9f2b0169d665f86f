//! Whether what the schema admits is served, and what it forbids is refused, with the right error.

use serde_json::Value;

use super::class::{of_response, text_of};
use super::words::{excerpt, skeleton};
use super::{Arguments, Breach, Exchange, Standing};
use crate::case::Oracle;
use crate::event::CallOutcome;
use crate::fuzz::{Grammar, Site};
use crate::verdict::Verdict;

const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
/// Errors of the protocol by which a server asks for something before it serves a call that is in order: a visit
/// to a page, or a capability.
const ASKS: [i64; 2] = [-32042, -32021];

/// Keywords that need not be asserted, so that nothing follows where they are not.
const ANNOTATIONS: [&str; 3] = ["format", "contentEncoding", "contentMediaType"];

/// Whether nothing follows where arguments break this keyword and are accepted.
pub(super) fn need_not_be_asserted(site: &Site) -> bool {
    ANNOTATIONS.contains(&site.keyword.as_str())
}

/// A call that the schema forbids and the server served.
pub(super) fn accepted(exchange: &Exchange, response: &Value) -> Option<Breach> {
    let Standing::Breaks(site) = &exchange.call.standing else { return None };
    if of_response(response) != CallOutcome::Success || need_not_be_asserted(site) {
        return None;
    }
    let Arguments::Json(arguments) = &exchange.call.arguments else { return None };
    let verdict = if nobody_converts(site, arguments) { Verdict::Fail } else { Verdict::Warn };
    let message = match verdict {
        Verdict::Fail if site.keyword == "required" => "arguments without a required property are accepted".to_owned(),
        Verdict::Fail => "arguments of a wrong JSON type are accepted".to_owned(),
        _ => format!("arguments that break `{}` are accepted", site.keyword),
    };
    Some(
        Breach::new(Oracle::InvalidAccepted, verdict, message)
            .actual(format!("a success, though the arguments break {site} and nothing else"))
            .signed(format!("{} {}", site.keyword, verdict.as_str())),
    )
}

/// Whether no server of good will makes sense of what is wrong: a property that is required is missing, or an
/// object or a list stands for a plain value.
fn nobody_converts(site: &Site, arguments: &Value) -> bool {
    match site.keyword.as_str() {
        "required" => site.pointer.is_empty(),
        "type" => {
            let Some(place) = instance_place(&site.pointer) else { return false };
            arguments.pointer(&place).is_some_and(|value| value.is_object() || value.is_array())
        }
        _ => false,
    }
}

/// The place in an instance that a place in a schema speaks of, where it is reached by properties alone.
fn instance_place(pointer: &str) -> Option<String> {
    let mut steps = pointer.split('/').skip(1);
    let mut place = String::new();
    while let Some(step) = steps.next() {
        if step != "properties" {
            return None;
        }
        place.push('/');
        place.push_str(steps.next()?);
    }
    Some(place)
}

/// Words by which libraries of validation say that arguments are invalid.
const REFUSALS: [&str; 8] = [
    "Input validation error",
    "Invalid arguments for tool",
    "Invalid input",
    "invalid_type",
    "validation error for",
    "is a required property",
    "is not of type",
    "ZodError",
];

/// A call that the schema admits and the server calls invalid.
pub(super) fn refused(exchange: &Exchange, response: &Value) -> Option<Breach> {
    if exchange.call.standing != Standing::Valid {
        return None;
    }
    let words = match of_response(response) {
        CallOutcome::InvalidParams => response.pointer("/error/message").and_then(Value::as_str).unwrap_or_default(),
        CallOutcome::ToolError => {
            let text = text_of(response.get("result")?)?;
            REFUSALS.iter().any(|words| text.contains(words)).then_some(text)?
        }
        _ => return None,
    };
    Some(
        Breach::new(Oracle::ValidRefused, Verdict::Warn, "arguments that the inputSchema admits are called invalid")
            .actual(format!("the server says: {}", excerpt(words, 300)))
            .signed(skeleton(words, &exchange.call.arguments)),
    )
}

/// An error whose code does not fit its cause.
pub(super) fn error_class(exchange: &Exchange, error: &Value) -> Option<Breach> {
    let code = error.get("code").and_then(Value::as_i64)?;
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let said = || format!("the error {code}: {}", excerpt(message, 300));
    let words = skeleton(message, &exchange.call.arguments);
    if code == INTERNAL {
        let found = Breach::new(Oracle::InternalError, Verdict::Warn, "arguments lead to an internal error (-32603)");
        return Some(found.actual(said()).signed(words));
    }
    let (expected, requirement) = match &exchange.call.standing {
        Standing::Breaks(_) if code != INVALID_PARAMS && code != INVALID_REQUEST => {
            ("-32602, or a result with isError: true", "errors-invalid-params")
        }
        Standing::Malformed(Grammar::OtherJson, _) if code != INVALID_PARAMS && code != INVALID_REQUEST => {
            ("-32602", "errors-invalid-params")
        }
        Standing::Valid if code != INVALID_PARAMS && !ASKS.contains(&code) => {
            ("a result, with isError: true where the tool fails", "robust-error-code")
        }
        _ => return None,
    };
    let mut found = Breach::new(Oracle::ErrorClass, Verdict::Warn, "an error has a code that does not fit its cause")
        .speaking_for(requirement)
        .actual(said())
        .signed(format!("{code} {requirement}"));
    expected.clone_into(&mut found.expected);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_schema_is_one_in_an_instance_by_way_of_properties() {
        assert_eq!(instance_place("").as_deref(), Some(""));
        assert_eq!(instance_place("/properties/a/properties/b").as_deref(), Some("/a/b"));
        assert_eq!(instance_place("/properties/a/items"), None);
    }
}
