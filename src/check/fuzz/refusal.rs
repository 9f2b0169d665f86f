//! How a tool refuses arguments in its own words, so that it is seen where it refuses valid arguments in the same way.

use std::collections::BTreeSet;

use serde_json::Value;

use super::argument_validity::{is_about_something_else, is_annotation, valid_refused};
use super::call::{Arguments, Validity};
use super::exchange::FuzzExchange;
use super::message_text::strings;
use super::response_class::{outcome_of, text_of};
use super::violation::OracleViolation;
use crate::text::first_chars;
use crate::verdict::{CallKind, CallOutcome};
use crate::wire::member;

/// The text of a refusal without what varies from call to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The text, without the names of members, numbers, quotations and what was sent.
    pub shape: String,
    /// What comes before the first name of a member, if it speaks of invalid arguments.
    pub opening: Option<String>,
    /// The names of members that the text has, which are those of the schema.
    pub names: BTreeSet<String>,
}

/// The refusal of a call that is not valid, or is, as a result with `isError`. Of a text that names no member of the schema
/// nothing is known: it may be about anything.
#[must_use]
pub(crate) fn refusal(exchange: &FuzzExchange, names: &BTreeSet<String>) -> Option<Refusal> {
    let text = refusal_text(exchange).filter(|text| names.iter().any(|name| text.contains(name.as_str())))?;
    let judged = match &exchange.call.validity {
        Validity::Violates(constraint) => !is_annotation(constraint),
        Validity::Valid => exchange.call.kind != CallKind::Handler && !is_about_something_else(text),
        _ => false,
    };
    if !judged {
        return None;
    }
    let refusal = Refusal::of(text, &exchange.call.arguments, names);
    Some(refusal).filter(|refusal| !refusal.names.is_empty())
}

/// A refusal of valid arguments, whose text is known to refuse invalid ones, as a violation.
#[must_use]
pub(crate) fn refused_like_invalid(exchange: &FuzzExchange) -> Option<OracleViolation> {
    let is_valid = exchange.call.validity == Validity::Valid && exchange.call.kind != CallKind::Handler;
    let text = refusal_text(exchange).filter(|text| is_valid && !is_about_something_else(text))?;
    Some(valid_refused(text, &exchange.call.arguments))
}

/// The text of a result that says that the tool failed.
fn refusal_text(exchange: &FuzzExchange) -> Option<&str> {
    let response = exchange.responses.first()?;
    let is_refused = outcome_of(response) == CallOutcome::ToolError;
    member(response, "result").filter(|_| is_refused).and_then(text_of)
}

/// Words by which a text says that it is about arguments, in lower case.
const WORDS_OF_VALIDATION: [&str; 5] = ["invalid", "validation", "argument", "parameter", "schema"];

impl Refusal {
    fn of(text: &str, arguments: &Arguments, known: &BTreeSet<String>) -> Self {
        const MAX_TEXT_CHARS: usize = 400;
        let mut text = first_chars(text, MAX_TEXT_CHARS).to_owned();
        if let Arguments::Json(value) = arguments {
            let mut sent = Vec::new();
            strings(value, &mut sent);
            sent.retain(|string| string.len() <= text.len() && !known.contains(*string));
            sent.sort_by_key(|string| std::cmp::Reverse(string.len()));
            for string in sent {
                if text.contains(string) {
                    text = text.replace(string, "*");
                }
            }
        }
        let mut refusal = Self { shape: String::with_capacity(text.len()), opening: None, names: BTreeSet::new() };
        for part in split_words(&text) {
            let is_value = part.starts_with(|c: char| c.is_ascii_digit() || c == '*')
                || !part.is_ascii()
                || ["true", "false", "null", "True", "False", "None"].contains(&part);
            if known.contains(part) {
                if refusal.names.is_empty() {
                    let lower = refusal.shape.to_lowercase();
                    let speaks = WORDS_OF_VALIDATION.iter().any(|word| lower.contains(word));
                    refusal.opening = speaks.then(|| refusal.shape.clone());
                }
                refusal.names.insert(part.to_owned());
                refusal.shape.push('@');
            } else if !is_value {
                refusal.shape.push_str(part);
            } else if !refusal.shape.ends_with('*') {
                refusal.shape.push('*');
            }
        }
        refusal
    }
}

/// The words and numbers of a text, and the single characters between them. A sign belongs to the number that it begins.
fn split_words(text: &str) -> Vec<&str> {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let signed = matches!(first, '-' | '+') && after.starts_with(|c: char| c.is_ascii_digit());
        let is_number = first.is_ascii_digit() || signed;
        let end = if is_number {
            after.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '+'))).map(|at| at + first.len_utf8())
        } else if is_inner(first) {
            rest.find(|c: char| !is_inner(c))
        } else {
            Some(first.len_utf8())
        };
        let (part, others) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(if signed { &part[1..] } else { part });
        rest = others;
    }
    parts
}

/// The members that a schema describes, at any depth, each with its schema.
#[must_use]
pub(crate) fn described_members(schema: &Value) -> Vec<(&str, &Value)> {
    const MAX_MEMBERS: usize = 1_000;
    let mut described: Vec<(&str, &Value)> = Vec::new();
    let mut pending = vec![schema];
    while let Some(value) = pending.pop().filter(|_| described.len() < MAX_MEMBERS) {
        match value {
            Value::Object(members) => {
                for (keyword, value) in members {
                    if let ("properties", Value::Object(properties)) = (keyword.as_str(), value) {
                        described.extend(properties.iter().map(|(name, of)| (name.as_str(), of)));
                        // A member may have the name of a keyword.
                        pending.extend(properties.values());
                    } else {
                        pending.push(value);
                    }
                }
            }
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal_of(text: &str, arguments: Value) -> Refusal {
        let names = ["page", "limit", "owner"].map(str::to_owned).into();
        Refusal::of(text, &Arguments::Json(arguments), &names)
    }

    #[test]
    fn refusals_for_one_reason_have_one_shape() {
        let same = [
            (
                ("page: 0 is less than 1", json!({"page": 0})),
                ("limit: -2.5e+3 is less than 100", json!({"limit": -2500})),
            ),
            (
                ("page: 'abc' is no integer", json!({"page": "abc"})),
                ("page: '5.0' is no integer", json!({"page": 5.0})),
            ),
            (("`owner` is missing", json!({})), ("`page` is missing", json!({"owner": "someone"}))),
        ];
        for ((a, sent_a), (b, sent_b)) in same {
            let (a, b) = (refusal_of(a, sent_a), refusal_of(b, sent_b));
            assert_eq!(a.shape, b.shape);
        }
        let (missing, long) = (refusal_of("page is missing", json!({})), refusal_of("page is too long", json!({})));
        assert_ne!(missing.shape, long.shape);
        assert!(refusal_of("homepage is missing", json!({})).names.is_empty());
    }

    #[test]
    fn an_opening_speaks_of_arguments_before_the_first_name() {
        let opening = |text| refusal_of(text, json!({})).opening;
        assert_eq!(opening("Invalid arguments: page: is missing").as_deref(), Some("Invalid arguments: "));
        assert_eq!(opening("Error: page is an invalid argument"), None);
    }

    #[test]
    fn names_are_those_of_every_depth() {
        let item = json!({"type": "object", "properties": {"b": {}, "properties": {"type": "string"}}});
        let schema = json!({"properties": {"a": {"type": "array", "items": item}}});
        let names: BTreeSet<&str> = described_members(&schema).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "properties"].into());
    }
}
