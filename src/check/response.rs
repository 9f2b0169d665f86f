//! The checks of requests and responses: that each request has one response, under its id.

use std::collections::BTreeSet;

use serde_json::Value;

use super::index::{ConnectionIndex, method_of, name_of};
use super::text::shortened;
use super::violation::{CheckResult, Violation};
use crate::case::ResponseMember;
use crate::transcript::{Event, Exchange, is_malformed_request, messages};
use crate::wire::{Frame, MessageKind, before_lone_surrogate, is_lost_id};

/// Checks that no request has two responses, and that every response belongs to a request.
pub(super) fn answered_once(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for exchange in answered_exchanges(index) {
        let positions: Vec<usize> =
            std::iter::once(exchange.sent).chain(exchange.responses.iter().map(|(at, _)| *at)).collect();
        let count = exchange.responses.len();
        // An id that the client used more than once may be answered more than once.
        let same_id = |other: &&Exchange<'_>| other.request.get("id") == exchange.request.get("id");
        // Errors for messages that could not be read have such an id, and would all be responses to such a request.
        let is_lost = exchange.request.get("id").is_none_or(is_lost_id);
        let has_too_many = !is_lost && count > 1 && count > index.exchanges.iter().filter(same_id).count();
        checked.record(
            has_too_many.then(|| Violation::new(format!("{count} responses"), name_of(exchange.request), &positions)),
        );
    }
    let client_sent_malformed = client_sent_malformed(index);
    // Each request without a response may be what one response without a usable id belongs to.
    let mut attributed = 0;
    for &(position, response) in &index.strays {
        let has_no_usable_id = response.get("id").is_none_or(is_lost_id);
        let is_open = |other: &&Exchange<'_>| other.sent < position && other.responses.is_empty();
        let is_awaited = has_no_usable_id && index.exchanges.iter().filter(is_open).count() > attributed;
        attributed += usize::from(is_awaited);
        let is_excused = has_no_usable_id
            && (client_sent_malformed || is_awaited || index.record.is_rejected_by_status(position))
            || follows_notification(index, position, response)
            || is_rounded_id(index, response);
        if !is_excused {
            let id = response.get("id").map_or_else(|| "no id".to_owned(), |id| format!("id {id}"));
            checked.record(Some(Violation::new(
                format!("a response with {id}, which is the id of no request"),
                "",
                &[position],
            )));
        }
    }
    checked
}

/// Whether a response has the id of a request as a double, which is what JavaScript makes of an integer beyond 2^53.
/// Only one case sends such ids, and judges them with a warning.
fn is_rounded_id(index: &ConnectionIndex<'_>, response: &Value) -> bool {
    let Some(received) = response.get("id") else { return false };
    index.exchanges.iter().filter_map(|exchange| exchange.request.get("id")).any(|sent| is_rounded(sent, received))
}

/// Whether two ids are different integers beyond 2^53 that are the same double, except for the sign: 2^63 as a double
/// is what becomes of the largest integer of 64 bits, and some processors convert it back to -2^63 (seen in Go).
fn is_rounded(sent: &Value, received: &Value) -> bool {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    let as_double = |id: &Value| id.as_f64().map(f64::abs).filter(|id| *id > MAX_SAFE_INTEGER).map(f64::to_bits);
    as_double(sent).is_some_and(|double| as_double(received) == Some(double))
}

fn answered_exchanges<'i, 'a>(index: &'i ConnectionIndex<'a>) -> impl Iterator<Item = &'i Exchange<'a>> {
    index.exchanges.iter().filter(|exchange| !exchange.responses.is_empty())
}

/// Whether the client sent anything on this connection whose id a response cannot repeat.
fn client_sent_malformed(index: &ConnectionIndex<'_>) -> bool {
    index.record.entries.iter().any(|entry| match &entry.event {
        Event::Sent { frame: frame @ Frame { value: Ok(value), .. }, step_id: Some(_) } => {
            value.is_array()
                || frame.may_be_unreadable()
                || messages(value).any(|message| match MessageKind::of(message) {
                    MessageKind::Request { id, .. } => is_malformed_request(message, id),
                    MessageKind::Notification { .. } | MessageKind::Response { .. } => false,
                    MessageKind::Batch(_) | MessageKind::Unknown => true,
                })
        }
        Event::Sent { frame: Frame { value: Err(_), .. }, .. } => true,
        _ => false,
    })
}

/// Whether a response without a usable id can only be a response to a notification, which is left to another check.
fn follows_notification(index: &ConnectionIndex<'_>, position: usize, response: &Value) -> bool {
    response.get("id").is_none_or(is_lost_id)
        && index.record.entries[..position].iter().any(|entry| {
            matches!(&entry.event, Event::Sent { step_id: Some(_), .. })
                && entry.sent().is_some_and(|sent| matches!(MessageKind::of(sent), MessageKind::Notification { .. }))
        })
}

/// Whether a message is so long that a server may refuse it without reading it up to its id.
fn is_large(index: &ConnectionIndex<'_>, position: usize) -> bool {
    const LARGE: usize = 1 << 16;
    match &index.record.entries[position].event {
        Event::Sent { frame, .. } => frame.bytes > LARGE,
        _ => false,
    }
}

/// Checks that responses with a member have the id of their request, in value and JSON type.
pub(super) fn id_of_request(index: &ConnectionIndex<'_>, member: ResponseMember) -> CheckResult {
    let member = match member {
        ResponseMember::Result => "result",
        ResponseMember::Error => "error",
    };
    let mut checked = CheckResult::default();
    for exchange in answered_exchanges(index) {
        let is_well_formed = matches!(MessageKind::of(exchange.request), MessageKind::Request { id, .. } if id.is_string() || id.is_i64() || id.is_u64())
            && exchange.request.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
        let (position, response) = exchange.responses[0];
        if !is_well_formed || response.get(member).is_none() {
            continue;
        }
        let (sent, received) = (&exchange.request["id"], response.get("id").unwrap_or(&Value::Null));
        // What a parser makes of these ids is left to the cases that send them.
        let has_lone_surrogate = sent.as_str().is_some_and(|sent| before_lone_surrogate(sent).is_some());
        if exchange.has_altered_id && (is_rounded(sent, received) || has_lone_surrogate) {
            continue;
        }
        // The body of an HTTP error is about the HTTP request, and the transport text lets it have no id.
        if is_lost_id(received) && index.record.is_rejected_by_status(position) {
            continue;
        }
        if is_lost_id(received) && is_large(index, exchange.sent) {
            continue;
        }
        checked.record(exchange.has_altered_id.then(|| {
            Violation::new(
                format!("the request has the id {sent}, its response has the id {received}"),
                name_of(exchange.request),
                &[exchange.sent, position],
            )
        }));
    }
    if member == "result" && !client_sent_malformed(index) {
        results_without_id(index).for_each(|violation| checked.record(Some(violation)));
    }
    checked
}

/// The results without a usable id that came while a request waited for its response. An error may be about what could not be read;
/// a result is always that of a request.
fn results_without_id(index: &ConnectionIndex<'_>) -> impl Iterator<Item = Violation> {
    index.strays.iter().filter_map(|&(position, response)| {
        let is_open = |other: &&Exchange<'_>| other.sent < position && other.responses.is_empty();
        let waiting = index.exchanges.iter().rfind(is_open)?;
        let is_without_id = response.get("result").is_some() && response.get("id").is_none_or(is_lost_id);
        let may_echo = waiting.request.get("id").is_none_or(is_lost_id);
        (is_without_id && !may_echo && !follows_notification(index, position, response)).then(|| {
            Violation::new(
                "a result without the id of any request".to_owned(),
                name_of(waiting.request),
                &[waiting.sent, position],
            )
        })
    })
}

/// Checks that the server sends no response to a notification.
pub(super) fn no_response_to_notification(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let client_sent_malformed = client_sent_malformed(index);
    for (position, entry) in index.record.entries.iter().enumerate() {
        let Some(method) = entry.sent().and_then(|sent| match MessageKind::of(sent) {
            MessageKind::Notification { method } => Some(method),
            _ => None,
        }) else {
            continue;
        };
        let is_later_request_answered = index.exchanges.iter().any(|e| e.sent > position && !e.responses.is_empty());
        if !is_later_request_answered || client_sent_malformed {
            continue;
        }
        // What comes while a request stays without a response may be the response to that one.
        let may_be_of_request =
            |at| index.exchanges.iter().any(|e| position < e.sent && e.sent < at && e.responses.is_empty());
        let response = index.strays.iter().find(|(at, response)| {
            *at > position
                && response.get("id").is_none_or(is_lost_id)
                && !index.record.is_rejected_by_status(*at)
                && !may_be_of_request(*at)
        });
        checked.record(response.map(|(at, _)| Violation::new("a response", method, &[position, *at])));
    }
    checked
}

/// Checks that the ids of the server's requests are strings or integers and are never used twice.
pub(super) fn server_request_ids_valid(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut known = BTreeSet::new();
    for (position, message) in index.received() {
        let MessageKind::Request { id, method } = MessageKind::of(message) else { continue };
        if method.starts_with("notifications/") {
            continue;
        }
        let problem = if !(id.is_string() || id.is_i64() || id.is_u64()) {
            Some(format!("{method} has the id {id}"))
        } else if !known.insert(id.to_string()) {
            Some(format!("{method} uses the id {id} again"))
        } else {
            None
        };
        checked.record(problem.map(|problem| Violation::new(problem, method, &[position])));
    }
    checked
}

/// Checks that the server returns the prompts that discovery requested without arguments, since they require none.
/// An internal error of the server, or an error about what the client lacks, is no rejection.
pub(super) fn prompts_served(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for exchange in index.exchanges.iter().filter(|exchange| method_of(exchange.request) == "prompts/get") {
        let is_of_discovery = matches!(index.record.entries[exchange.sent].event, Event::Sent { step_id: None, .. });
        let has_no_arguments = exchange.request.pointer("/params/arguments").is_none();
        let Some((position, response)) = exchange.responses.first().filter(|_| is_of_discovery && has_no_arguments)
        else {
            continue;
        };
        let code = response.pointer("/error/code").and_then(Value::as_i64);
        let is_rejected = code.is_some_and(|code| !matches!(code, -32603 | -32042 | -32021));
        let name = exchange.request.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        checked.record(is_rejected.then(|| {
            let subject = format!("prompts/get {}", shortened(name, 60));
            Violation::new("the server rejects the prompt", subject, &[exchange.sent, *position])
        }));
    }
    checked
}

/// Checks that the server was not abandoned because it answered nothing any more.
pub(super) fn keeps_answering(index: &ConnectionIndex<'_>) -> CheckResult {
    /// How many of the requests without a response are shown.
    const MAX_SHOWN: usize = 3;
    let mut checked = CheckResult::default();
    let abandoned = index.record.entries.iter().position(|entry| matches!(entry.event, Event::Abandoned));
    let Some(abandoned) = abandoned else {
        // The response to the first request only shows that the server can be opened.
        if index.all_exchanges.iter().skip(1).any(|exchange| !exchange.responses.is_empty()) {
            checked.record(None);
        }
        return checked;
    };
    let before = index.all_exchanges.iter().filter(|exchange| exchange.sent < abandoned);
    let unanswered: Vec<_> =
        before.rev().take_while(|exchange| exchange.responses.is_empty()).take(MAX_SHOWN).collect();
    let methods: Vec<String> =
        unanswered.iter().rev().map(|exchange| format!("`{}`", method_of(exchange.request))).collect();
    let positions: Vec<usize> = unanswered.iter().rev().map(|exchange| exchange.sent).chain([abandoned]).collect();
    let actual = format!("no response to {}, and none to anything later", methods.join(", "));
    checked.record(Some(Violation::new(actual, "", &positions)));
    checked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_integers_beyond_2_53_are_rounded() {
        let (sent, largest) = (json!(9_007_199_254_740_993_u64), json!(i64::MAX));
        assert!(is_rounded(&sent, &json!(9_007_199_254_740_992_u64)));
        assert!(is_rounded(&largest, &json!(9_223_372_036_854_776_000_u64)));
        assert!(is_rounded(&largest, &json!(i64::MIN)));
        assert!(!is_rounded(&json!(-7), &json!(7)));
        assert!(!is_rounded(&sent, &json!(9_007_199_254_740_996_u64)));
        assert!(!is_rounded(&json!(7), &json!(7)));
        assert!(!is_rounded(&sent, &json!("9007199254740992")));
    }
}
