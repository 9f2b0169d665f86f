//! The checks of what the streams of a connection over HTTP carry together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::index::ConnectionIndex;
use super::violation::{CheckResult, Violation};
use crate::transcript::HttpExchange;

/// The streams that do not resume another one, each with its events.
pub(super) fn streams<'i>(index: &'i ConnectionIndex<'_>) -> impl Iterator<Item = (&'i HttpExchange, &'i Vec<Value>)> {
    index.http.iter().filter_map(|exchange| {
        let resumes = exchange.value.pointer("/request/headers/last-event-id").is_some();
        let events = exchange.value.pointer("/body/events")?.as_array()?;
        (!resumes && !events.is_empty()).then_some((exchange, events))
    })
}

/// What distinguishes a message of the server from all others: the id of a request, or the value of progress.
fn identity_of(message: &Value) -> Option<String> {
    let method = message.get("method")?.as_str()?;
    if let Some(id) = message.get("id") {
        return Some(format!("the request {method} with the id {id}"));
    }
    let params = message.get("params")?;
    (method == "notifications/progress")
        .then(|| format!("progress {} of the token {}", params["progress"], params["progressToken"]))
}

/// Checks that no message is sent on two streams. Only messages are compared that a server does not repeat.
pub(super) fn messages_on_one_stream(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut known: BTreeMap<String, &HttpExchange> = BTreeMap::new();
    for (exchange, events) in streams(index) {
        for identity in events.iter().filter_map(|event| identity_of(event.get("message")?)) {
            let other = known.get(&identity).copied().filter(|other| other.sent != exchange.sent);
            checked.record(other.map(|other| {
                let positions: Vec<usize> = other.positions.iter().chain(&exchange.positions).copied().collect();
                Violation::new(format!("{identity} is sent on two streams"), "", &positions)
            }));
            known.entry(identity).or_insert(exchange);
        }
    }
    checked
}
