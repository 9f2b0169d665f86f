//! The checks of cancellation, by the server and by the client.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::index::{ConnectionIndex, id_of, method_of};
use super::violation::{CheckResult, Violation};
use crate::transcript::{Entry, Event, Exchange};
use crate::wire::{MessageKind, same_id, same_id_loosely};

const CANCELLED: &str = "notifications/cancelled";

/// How long after the client's response a cancellation can arrive that was sent before it, if messages are fast.
const MAX_CROSSING_TIME: Duration = Duration::from_secs(5);

/// How much later a response has to arrive over HTTP to have been sent later, if messages are fast: each travels on a
/// connection of its own.
const MAX_OVERTAKING_TIME: Duration = Duration::from_millis(250);

/// From when on after a cancellation a response is so late that it did not cross it, if messages are fast.
const MIN_LATENESS: Duration = Duration::from_secs(1);

/// How many times longer than the fastest request, there and back, a message may be on its way.
const TRAVEL_FACTOR: u32 = 4;

/// How long the fastest request took, there and back.
fn fastest_answer(index: &ConnectionIndex<'_>) -> Duration {
    let entries = &index.record.entries;
    let times = index.exchanges.iter().filter_map(|exchange| {
        let (at, _) = exchange.responses.first()?;
        Some(entries[*at].at.saturating_sub(entries[exchange.sent].at))
    });
    times.min().unwrap_or_default()
}

/// How long the server took to answer the first request of the connection, if that was before this request. What a process
/// does for the first time may need to be loaded, as long as what it opens with.
fn opening_time(index: &ConnectionIndex<'_>, request: &Exchange<'_>) -> Duration {
    let entries = &index.record.entries;
    let first = index.exchanges.iter().find_map(|exchange| Some((exchange.sent, exchange.responses.first()?.0)));
    let first = first.filter(|(_, answered)| *answered < request.sent);
    first.map(|(sent, answered)| entries[answered].at.saturating_sub(entries[sent].at)).unwrap_or_default()
}

/// How long a message may be on its way on this connection.
fn travel_time(index: &ConnectionIndex<'_>) -> Duration {
    fastest_answer(index) * TRAVEL_FACTOR
}

/// How much longer a call has to run to show that the end of another was not its own, if messages are fast.
const MIN_LONGER_RUN: Duration = Duration::from_millis(200);

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
    let crossing = MAX_CROSSING_TIME.max(travel_time(index));
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
        let late = answered.filter(|at| entries[position].at.saturating_sub(entries[*at].at) > crossing);
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

/// A request that the client cancelled while it was open.
struct CancelledRequest<'i, 'a> {
    exchange: &'i Exchange<'a>,
    /// The position of the cancellation.
    cancelled: usize,
    /// The position of the response, with it.
    response: Option<(usize, &'a Value)>,
    /// The position of the first response to a request that was sent after the cancellation.
    processed: Option<usize>,
}

impl CancelledRequest<'_, '_> {
    /// Whether the response was certainly sent after the server had read the cancellation: a later request was answered
    /// before, over HTTP by more than messages overtake each other.
    fn is_answered_after_later(&self, index: &ConnectionIndex<'_>) -> bool {
        let entries = &index.record.entries;
        let is_http = entries.iter().any(|entry| matches!(entry.event, Event::HttpRequest(_)));
        let overtaking = if is_http { MAX_OVERTAKING_TIME.max(fastest_answer(index)) } else { Duration::ZERO };
        let (Some((answered, _)), Some(processed)) = (self.response, self.processed) else { return false };
        answered > processed && entries[answered].at >= entries[processed].at + overtaking
    }

    /// Whether no request of its method was answered before it was sent.
    fn is_first_of_its_method(&self, index: &ConnectionIndex<'_>) -> bool {
        let is_earlier = |other: &&Exchange<'_>| {
            let answered = other.responses.first().is_some_and(|(at, _)| *at < self.exchange.sent);
            answered && method_of(other.request) == method_of(self.exchange.request)
        };
        !index.exchanges.iter().any(|other| is_earlier(&other))
    }

    /// How long after the cancellation the response arrived.
    fn delay(&self, entries: &[Arc<Entry>]) -> Option<Duration> {
        self.response.map(|(at, _)| entries[at].at.saturating_sub(entries[self.cancelled].at))
    }
}

/// The requests that the client cancelled before they were answered, each once.
fn cancelled_requests<'i, 'a>(index: &'i ConnectionIndex<'a>) -> Vec<CancelledRequest<'i, 'a>> {
    let mut found: Vec<CancelledRequest<'i, 'a>> = Vec::new();
    for (cancelled, entry) in index.record.entries.iter().enumerate() {
        let Some(message) = entry.sent().filter(|message| method_of(message) == CANCELLED) else { continue };
        let Some(id) = message.pointer("/params/requestId") else { continue };
        let is_it = |request: &Value| id_of(request).is_some_and(|own| same_id(own, id));
        // An id may be used again.
        let Some(exchange) = index.exchanges.iter().rfind(|e| e.sent < cancelled && is_it(e.request)) else { continue };
        let response = exchange.responses.first().copied();
        let is_open = response.is_none_or(|(at, _)| at > cancelled);
        if !is_open || found.iter().any(|known| known.exchange.sent == exchange.sent) {
            continue;
        }
        let later = index.exchanges.iter().filter(|exchange| exchange.sent > cancelled);
        let processed = later.filter_map(|exchange| exchange.responses.first().map(|(at, _)| *at)).min();
        found.push(CancelledRequest { exchange, cancelled, response, processed });
    }
    found
}

/// Checks that a request which the client cancelled while it was open gets no response. A response that arrives before
/// any later request is answered may have been sent before the server read the cancellation; over HTTP, so may one that
/// arrives shortly after.
pub(super) fn no_response_after_cancellation(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for request in cancelled_requests(index) {
        match (request.response, request.processed) {
            (Some((answered, _)), Some(processed)) if request.is_answered_after_later(index) => {
                let actual = "a response, after later requests were answered";
                let positions = [request.exchange.sent, request.cancelled, processed, answered];
                checked.record(Some(Violation::new(actual, method_of(request.exchange.request), &positions)));
            }
            (None, Some(_)) => checked.record(None),
            _ => {}
        }
    }
    checked
}

/// Checks that the server does not run a cancelled request to its end, and answers it then: the response arrives so late
/// after the cancellation that the two cannot have crossed. What [`no_response_after_cancellation`] finds is left to it.
pub(super) fn cancelled_request_stops(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let entries = &index.record.entries;
    for request in cancelled_requests(index) {
        let loading =
            if request.is_first_of_its_method(index) { opening_time(index, request.exchange) } else { Duration::ZERO };
        let lateness = MIN_LATENESS.max(travel_time(index)).max(loading);
        match (request.response, request.delay(entries)) {
            (Some(_), _) if request.is_answered_after_later(index) => {}
            (Some((answered, _)), Some(delay)) if delay > lateness => {
                let actual = format!("a response {:.1} seconds after the cancellation", delay.as_secs_f64());
                let positions = [request.exchange.sent, request.cancelled, answered];
                checked.record(Some(Violation::new(actual, method_of(request.exchange.request), &positions)));
            }
            (None, _) if request.processed.is_some() => checked.record(None),
            _ => {}
        }
    }
    checked
}

/// Checks that a cancellation is not answered by an error in the place of the response. That it was the cancellation which
/// led to the error is shown by another call with the same arguments that ran for longer without one.
pub(super) fn cancellation_not_answered(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let entries = &index.record.entries;
    let lateness = MIN_LATENESS.max(travel_time(index));
    let much_longer = MIN_LONGER_RUN.max(travel_time(index));
    let cancelled = cancelled_requests(index);
    let ran_for = |exchange: &Exchange<'_>| {
        let until = cancelled.iter().find(|request| request.exchange.sent == exchange.sent).map(|own| own.cancelled);
        let until = until.or_else(|| exchange.responses.first().map(|(at, _)| *at))?;
        Some(entries[until].at.saturating_sub(entries[exchange.sent].at))
    };
    for request in &cancelled {
        let Some((answered, response)) = request.response else {
            if request.processed.is_some() {
                checked.record(None);
            }
            continue;
        };
        let is_error =
            response.get("error").is_some() || response.pointer("/result/isError") == Some(&Value::Bool(true));
        let took = entries[answered].at.saturating_sub(entries[request.exchange.sent].at);
        let content = call_content(request.exchange.request);
        let longer = index.exchanges.iter().find(|other| {
            call_content(other.request) == content && ran_for(other).is_some_and(|ran| ran >= took + much_longer)
        });
        let is_late = request.delay(entries).is_some_and(|delay| delay > lateness);
        if let Some(longer) = longer.filter(|_| is_error && !is_late && !request.is_answered_after_later(index)) {
            let actual = "an error at once, although the same call runs for longer when it is not cancelled";
            let positions = [longer.sent, request.exchange.sent, request.cancelled, answered];
            checked.record(Some(Violation::new(actual, method_of(request.exchange.request), &positions)));
        }
    }
    checked
}

/// What distinguishes a call from others: its method, and its parameters without metadata.
fn call_content(request: &Value) -> (&str, Option<Value>) {
    let mut params = request.get("params").cloned();
    if let Some(params) = params.as_mut().and_then(Value::as_object_mut) {
        params.shift_remove("_meta");
    }
    (method_of(request), params)
}
