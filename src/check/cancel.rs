//! The checks of a connection that are about cancellation, of either side.

use std::time::Duration;

use serde_json::Value;

use super::seen::{Seen, breach};
use super::task::id_of;
use super::watch::{Index, method_of};
use crate::wire::{Kind, same_id, same_id_loosely};

const CANCELLED: &str = "notifications/cancelled";

/// How long after our answer a cancellation may come that crossed it.
const CROSSING: Duration = Duration::from_secs(5);

/// The cancellations that the server sent, each with the id that it names.
fn cancellations<'i, 'a>(index: &'i Index<'a>) -> impl Iterator<Item = (usize, &'a Value)> + 'i {
    index
        .received()
        .filter(|(_, message)| method_of(message) == CANCELLED)
        .filter_map(|(position, message)| Some((position, message.pointer("/params/requestId")?)))
}

/// The request of the server that goes by an id, before a position.
fn request_before<'a>(index: &Index<'a>, id: &Value, before: usize) -> Option<(usize, &'a Value)> {
    index.received().filter(|(position, _)| *position < before).find(|(_, message)| {
        matches!(Kind::of(message), Kind::Request { id: own, .. } if same_id(own, id) || same_id_loosely(own, id))
    })
}

/// Whether the server cancels its own requests only, while they are open.
pub(super) fn own(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let entries = &index.record.entries;
    for (position, id) in cancellations(index) {
        let Some((sent, _)) = request_before(index, id, position) else {
            seen.look(Some(breach(format!("the request {id}, which the server never sent"), CANCELLED, &[position])));
            continue;
        };
        let answered = (sent..position).find(|at| {
            let answer = entries[*at].sent().filter(|message| matches!(Kind::of(message), Kind::Response { .. }));
            answer.and_then(id_of).is_some_and(|own| same_id(own, id))
        });
        let late = answered.filter(|at| entries[position].at.saturating_sub(entries[*at].at) > CROSSING);
        seen.look(late.map(|at| {
            breach(format!("the request {id}, which was answered long before"), CANCELLED, &[sent, at, position])
        }));
    }
    seen
}

/// Whether the server cancels none of its requests so that it had asked to become tasks.
pub(super) fn no_task(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, id) in cancellations(index) {
        if let Some((sent, request)) = request_before(index, id, position) {
            let augmented = request.pointer("/params/task").is_some_and(Value::is_object);
            seen.look(augmented.then(|| breach("a request that was to become a task", CANCELLED, &[sent, position])));
        }
    }
    seen
}

/// Whether the server cancels nothing but subscriptions.
pub(super) fn only_listen(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, id) in cancellations(index) {
        let listen = index.exchanges.iter().any(|exchange| {
            let own = id_of(exchange.request);
            method_of(exchange.request) == "subscriptions/listen"
                && exchange.sent < position
                && own.is_some_and(|own| same_id(own, id) || same_id_loosely(own, id))
        });
        seen.look((!listen).then(|| breach(format!("{id}, which is no subscription"), CANCELLED, &[position])));
    }
    seen
}

/// Whether a request of ours that was cancelled while it was open stays without an answer. One that comes
/// before anything else that was sent later is answered may have been under way already.
pub(super) fn silent(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (told, entry) in index.record.entries.iter().enumerate() {
        let Some(message) = entry.sent().filter(|message| method_of(message) == CANCELLED) else { continue };
        let Some(id) = message.pointer("/params/requestId") else { continue };
        let of_it = |request: &Value| id_of(request).is_some_and(|own| same_id(own, id));
        let Some(cancelled) = index.exchanges.iter().find(|e| e.sent < told && of_it(e.request)) else { continue };
        let answered = cancelled.responses.first().map(|(at, _)| *at);
        let processed = index
            .exchanges
            .iter()
            .filter(|exchange| exchange.sent > told)
            .filter_map(|exchange| exchange.responses.first().map(|(at, _)| *at))
            .min();
        match (answered, processed) {
            (Some(answered), Some(processed)) if answered > processed => {
                let actual = "an answer, after later requests were answered";
                let positions = [cancelled.sent, told, processed, answered];
                seen.look(Some(breach(actual, method_of(cancelled.request), &positions)));
            }
            (None, Some(_)) => seen.look(None),
            _ => {}
        }
    }
    seen
}
