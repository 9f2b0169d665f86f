//! The checks of what the streams of a connection over HTTP carry together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::index::{ConnectionIndex, id_of, name_of};
use super::violation::{CheckResult, Violation};
use crate::transcript::HttpExchange;

/// The streams that do not resume another one and have events.
pub(super) fn streams(index: &ConnectionIndex<'_>) -> impl Iterator<Item = HttpExchange> {
    index.http_exchanges().filter(|exchange| {
        let resumes = exchange.value.pointer("/request/headers/last-event-id").is_some();
        !resumes && !events_of(exchange).is_empty()
    })
}

/// The events of an exchange.
pub(super) fn events_of(exchange: &HttpExchange) -> &[Value] {
    exchange.value.pointer("/body/events").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What distinguishes a message of the server from all others: the id of a request, or the value of the progress of one
/// request. Progress with a token that no request has, or more than one, may repeat in another call.
fn identity_of(message: &Value, index: &ConnectionIndex<'_>) -> Option<String> {
    let method = message.get("method")?.as_str()?;
    if let Some(id) = message.get("id") {
        return Some(format!("the request {method} with the id {id}"));
    }
    let params = message.get("params")?;
    let token = params.get("progressToken").filter(|_| method == "notifications/progress")?;
    let own = |request: &Value| request.pointer("/params/_meta/progressToken") == Some(token);
    let requests = index.all_exchanges.iter().filter(|exchange| own(exchange.request)).count();
    (requests == 1).then(|| format!("progress {} of the token {}", params["progress"], token))
}

/// Checks that no message is sent on two streams. Only messages are compared that a server does not repeat.
pub(super) fn messages_on_one_stream(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut known: BTreeMap<String, (usize, Vec<usize>)> = BTreeMap::new();
    for exchange in streams(index) {
        for identity in events_of(&exchange).iter().filter_map(|event| identity_of(event.get("message")?, index)) {
            let other = known.get(&identity).filter(|(sent, _)| *sent != exchange.sent);
            checked.record(other.map(|(_, positions)| {
                let positions: Vec<usize> = positions.iter().chain(&exchange.positions).copied().collect();
                Violation::new(format!("{identity} is sent on two streams"), "", &positions)
            }));
            known.entry(identity).or_insert_with(|| (exchange.sent, exchange.positions.clone()));
        }
    }
    checked
}

/// Checks that the server ends no stream of a request without the response. A client that cancels a request wants none,
/// and a stream whose events have ids may go on after a resumption.
pub(super) fn streams_carry_responses(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for exchange in index.http_exchanges() {
        let Some(request) = streamed_request(&exchange) else { continue };
        let body = &exchange.value["body"];
        let can_be_resumed =
            body["events"].as_array().is_some_and(|events| events.iter().any(|event| event.get("id").is_some()));
        if can_be_resumed || exchange.value.pointer("/request/cancelled").is_some() {
            continue;
        }
        let is_unanswered = body.get("unanswered-id").is_some();
        checked.record(is_unanswered.then(|| {
            let count = body["events"].as_array().map_or(0, Vec::len);
            let how = if body["complete"] == Value::Bool(true) { "ends" } else { "breaks off" };
            let problem = format!("the stream {how} after {count} events without the response");
            Violation::new(problem, name_of(request), &exchange.positions)
        }));
    }
    checked
}

/// The request of a POST that the server answered with a stream, and ended or broke off.
fn streamed_request(exchange: &HttpExchange) -> Option<&Value> {
    let kind = exchange.value.pointer("/headers/content-type")?.as_str()?.to_ascii_lowercase();
    let body = exchange.value.get("body")?;
    let is_ended = body["complete"] == Value::Bool(true) || body.get("failure").is_some();
    let request = exchange.value.pointer("/request/message")?;
    (kind.starts_with("text/event-stream") && is_ended && request.get("method").is_some() && id_of(request).is_some())
        .then_some(request)
}
