//! The checks of a connection that are about who answers whom, and by which id.

use std::collections::BTreeSet;

use serde_json::Value;

use super::act::shortened;
use super::seen::{Seen, breach, name_of};
use super::watch::{Index, method_of};
use crate::transcript::{Event, Exchange, messages};
use crate::wire::{Frame, Id, Kind};

/// Whether each request has one answer, and each answer a request.
pub(super) fn answered_once(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in exchanges_with_answers(index) {
        let positions: Vec<usize> =
            std::iter::once(exchange.sent).chain(exchange.responses.iter().map(|(at, _)| *at)).collect();
        let count = exchange.responses.len();
        // An id that we sent more than once may be answered more than once.
        let same_id = |other: &&Exchange<'_>| other.request.get("id") == exchange.request.get("id");
        let is_too_many = count > 1 && count > index.exchanges.iter().filter(same_id).count();
        seen.look(is_too_many.then(|| breach(format!("{count} responses"), name_of(exchange.request), &positions)));
    }
    let malformed = sent_malformed(index);
    for &(position, response) in &index.strays {
        let unusable = response.get("id").is_none_or(Id::is_null);
        let excused = unusable && malformed || follows_notification(index, position, response);
        if !excused {
            let id = response.get("id").map_or_else(|| "no id".to_owned(), |id| format!("id {id}"));
            seen.look(Some(breach(format!("a response with {id}, which no request carries"), "", &[position])));
        }
    }
    seen
}

fn exchanges_with_answers<'i, 'a>(index: &'i Index<'a>) -> impl Iterator<Item = &'i Exchange<'a>> {
    index.exchanges.iter().filter(|exchange| !exchange.responses.is_empty())
}

/// Whether we sent anything on this connection that carries no id that could be echoed.
fn sent_malformed(index: &Index<'_>) -> bool {
    index.record.entries.iter().any(|entry| match &entry.event {
        Event::Sent { frame: Frame { value: Ok(value), .. }, mark: Some(_) } => {
            value.is_array()
                || messages(value).any(|message| match Kind::of(message) {
                    Kind::Request { id, .. } => !(id.is_string() || id.is_i64() || id.is_u64()),
                    Kind::Notification { .. } | Kind::Response { .. } => false,
                    Kind::Batch(_) | Kind::Unknown => true,
                })
        }
        Event::Sent { frame: Frame { value: Err(_), .. }, .. } => true,
        _ => false,
    })
}

/// Whether a response without a usable id comes where only a notification can have drawn it: that is
/// the business of another rule.
fn follows_notification(index: &Index<'_>, position: usize, response: &Value) -> bool {
    response.get("id").is_none_or(Id::is_null)
        && index.record.entries[..position].iter().any(|entry| {
            matches!(&entry.event, Event::Sent { mark: Some(_), .. })
                && entry.sent().is_some_and(|sent| matches!(Kind::of(sent), Kind::Notification { .. }))
        })
}

/// Whether an answer with this member carries the id of its request, in the same type.
pub(super) fn id_echo(index: &Index<'_>, member: &str) -> Seen {
    let mut seen = Seen::default();
    for exchange in exchanges_with_answers(index) {
        let well_formed = matches!(Kind::of(exchange.request), Kind::Request { id, .. } if id.is_string() || id.is_i64() || id.is_u64())
            && exchange.request.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
        let (position, response) = exchange.responses[0];
        if !well_formed || response.get(member).is_none() {
            continue;
        }
        let (sent, got) = (&exchange.request["id"], response.get("id").unwrap_or(&Value::Null));
        seen.look(exchange.loose.then(|| {
            breach(
                format!("the request has id {sent}, its answer has id {got}"),
                name_of(exchange.request),
                &[exchange.sent, position],
            )
        }));
    }
    seen
}

/// Whether nothing answers a notification.
pub(super) fn notifications_unanswered(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let malformed = sent_malformed(index);
    for (position, entry) in index.record.entries.iter().enumerate() {
        let Some(method) = entry.sent().and_then(|sent| match Kind::of(sent) {
            Kind::Notification { method } => Some(method),
            _ => None,
        }) else {
            continue;
        };
        let served_after = index.exchanges.iter().any(|e| e.sent > position && !e.responses.is_empty());
        if !served_after || malformed {
            continue;
        }
        let reply =
            index.strays.iter().find(|(at, response)| *at > position && response.get("id").is_none_or(Id::is_null));
        seen.look(reply.map(|(at, _)| breach("a response", method, &[position, *at])));
    }
    seen
}

/// Whether the requests of the server have ids that an answer can carry, each its own.
pub(super) fn server_request_ids(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut known = BTreeSet::new();
    for (position, message) in index.received() {
        let Kind::Request { id, method } = Kind::of(message) else { continue };
        if method.starts_with("notifications/") {
            continue;
        }
        let problem = if !(id.is_string() || id.is_i64() || id.is_u64()) {
            Some(format!("{method} has id {id}"))
        } else if !known.insert(id.to_string()) {
            Some(format!("{method} uses id {id} again"))
        } else {
            None
        };
        seen.look(problem.map(|problem| breach(problem, method, &[position])));
    }
    seen
}

/// Whether the prompts that the survey asked for without arguments, which none of them requires, were
/// served. An error that says what is amiss with the server or the client is no refusal.
pub(super) fn prompts_got(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for exchange in index.exchanges.iter().filter(|exchange| method_of(exchange.request) == "prompts/get") {
        let of_survey = matches!(index.record.entries[exchange.sent].event, Event::Sent { mark: None, .. });
        let plain = exchange.request.pointer("/params/arguments").is_none();
        let Some((position, response)) = exchange.responses.first().filter(|_| of_survey && plain) else { continue };
        let code = response.pointer("/error/code").and_then(Value::as_i64);
        let refused = code.is_some_and(|code| !matches!(code, -32603 | -32042 | -32021));
        let name = exchange.request.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        seen.look(refused.then(|| {
            let subject = format!("prompts/get {}", shortened(name, 60));
            breach("the prompt is refused", subject, &[exchange.sent, *position])
        }));
    }
    seen
}
