//! The checks of cancellation, by the server and by the client.

use std::time::Duration;

use serde_json::Value;

use super::index::{ConnectionIndex, id_of, method_of};
use super::violation::{CheckResult, Violation};
use crate::transcript::Event;
use crate::wire::{MessageKind, same_id, same_id_loosely};

const CANCELLED: &str = "notifications/cancelled";

/// How long after the client's response a cancellation can arrive that was sent before it.
const MAX_CROSSING_TIME: Duration = Duration::from_secs(5);

/// How much later a response has to arrive over HTTP to have been sent later: each travels on a connection of its own.
const MAX_OVERTAKING_TIME: Duration = Duration::from_millis(250);

/// The cancellations that the server sent, each with the id that it names.
fn cancellations<'i, 'a>(index: &'i ConnectionIndex<'a>) -> impl Iterator<Item = (usize, &'a Value)> + 'i {
    index
        .received()
        .filter(|(_, message)| method_of(message) == CANCELLED)
        .filter_map(|(position, message)| Some((position, message.pointer("/params/requestId")?)))
}

/// The server's request with an id, before a position.
fn request_before<'a>(index: &ConnectionIndex<'a>, id: &Value, before: usize) -> Option<(usize, &'a Value)> {
    index.received().filter(|(position, _)| *position < before).find(|(_, message)| {
        matches!(MessageKind::of(message), MessageKind::Request { id: own, .. } if same_id(own, id) || same_id_loosely(own, id))
    })
}

/// Checks that the server cancels only its own requests, while they are open.
pub(super) fn only_own_requests(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let entries = &index.record.entries;
    for (position, id) in cancellations(index) {
        let Some((sent, _)) = request_before(index, id, position) else {
            checked.record(Some(Violation::new(
                format!("the request {id}, which the server never sent"),
                CANCELLED,
                &[position],
            )));
            continue;
        };
        let answered = (sent..position).find(|at| {
            let response =
                entries[*at].sent().filter(|message| matches!(MessageKind::of(message), MessageKind::Response { .. }));
            response.and_then(id_of).is_some_and(|own| same_id(own, id))
        });
        let late = answered.filter(|at| entries[position].at.saturating_sub(entries[*at].at) > MAX_CROSSING_TIME);
        checked.record(late.map(|at| {
            Violation::new(
                format!("the request {id}, which the client answered long before"),
                CANCELLED,
                &[sent, at, position],
            )
        }));
    }
    checked
}

/// Checks that the server cancels a request that the client leaves unanswered, once it has stopped waiting: the call that it
/// belongs to has ended. The client responds at once or never, so that what it sends meanwhile shows that it does not respond.
/// Roots are not judged: a server may request them for later, and need not wait for them.
pub(super) fn timed_out_requests_cancelled(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let entries = &index.record.entries;
    for (position, request) in index.received() {
        let MessageKind::Request { id, method: "elicitation/create" | "sampling/createMessage" } =
            MessageKind::of(request)
        else {
            continue;
        };
        let open = index.exchanges.iter().filter(|exchange| {
            exchange.sent < position && exchange.responses.first().is_none_or(|(at, _)| *at > position)
        });
        let Some(call) = open.max_by_key(|exchange| exchange.sent) else { continue };
        let Some((ended, _)) = call.responses.first() else { continue };
        let sent_meanwhile = || entries[position..*ended].iter().filter_map(|entry| entry.sent());
        let is_response = |message: &Value| matches!(MessageKind::of(message), MessageKind::Response { id: Some(own) } if same_id(own, id));
        if sent_meanwhile().next().is_none() || sent_meanwhile().any(is_response) {
            continue;
        }
        let is_cancelled = cancellations(index).any(|(at, own)| at > position && same_id(own, id));
        checked.record((!is_cancelled).then(|| {
            let actual = "the call ended without a response of the client and without a cancellation";
            Violation::new(actual, method_of(request), &[call.sent, position, *ended])
        }));
    }
    checked
}

/// Checks that the server uses no cancellation for its requests that ask for a task.
pub(super) fn no_task_request(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, id) in cancellations(index) {
        if let Some((sent, request)) = request_before(index, id, position) {
            let asks_for_task = request.pointer("/params/task").is_some_and(Value::is_object);
            checked.record(
                asks_for_task.then(|| Violation::new("a request that asks for a task", CANCELLED, &[sent, position])),
            );
        }
    }
    checked
}

/// Checks that the server cancels nothing but subscriptions.
pub(super) fn only_subscriptions(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, id) in cancellations(index) {
        let is_subscription = index.exchanges.iter().any(|exchange| {
            let own = id_of(exchange.request);
            method_of(exchange.request) == "subscriptions/listen"
                && exchange.sent < position
                && own.is_some_and(|own| same_id(own, id) || same_id_loosely(own, id))
        });
        checked.record(
            (!is_subscription)
                .then(|| Violation::new(format!("{id}, which is not a subscription"), CANCELLED, &[position])),
        );
    }
    checked
}

/// Checks that a request which the client cancelled while it was open gets no response. A response that arrives before
/// any later request is answered may have been sent before the server read the cancellation; over HTTP, so may one that
/// arrives shortly after.
pub(super) fn no_response_after_cancellation(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let entries = &index.record.entries;
    let is_http = entries.iter().any(|entry| matches!(entry.event, Event::HttpRequest(_)));
    let overtaking = if is_http { MAX_OVERTAKING_TIME } else { Duration::ZERO };
    for (cancelled_at, entry) in entries.iter().enumerate() {
        let Some(message) = entry.sent().filter(|message| method_of(message) == CANCELLED) else { continue };
        let Some(id) = message.pointer("/params/requestId") else { continue };
        let is_it = |request: &Value| id_of(request).is_some_and(|own| same_id(own, id));
        let Some(cancelled) = index.exchanges.iter().find(|e| e.sent < cancelled_at && is_it(e.request)) else {
            continue;
        };
        let answered = cancelled.responses.first().map(|(at, _)| *at);
        let processed = index
            .exchanges
            .iter()
            .filter(|exchange| exchange.sent > cancelled_at)
            .filter_map(|exchange| exchange.responses.first().map(|(at, _)| *at))
            .min();
        match (answered, processed) {
            (Some(answered), Some(processed))
                if answered > processed && entries[answered].at >= entries[processed].at + overtaking =>
            {
                let actual = "a response, after later requests were answered";
                let positions = [cancelled.sent, cancelled_at, processed, answered];
                checked.record(Some(Violation::new(actual, method_of(cancelled.request), &positions)));
            }
            (None, Some(_)) => checked.record(None),
            _ => {}
        }
    }
    checked
}
