//! The checks of what the streams of a connection over HTTP carry together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::seen::{Seen, breach};
use super::watch::Index;
use crate::transcript::HttpExchange;

/// The streams that are no replay of another, each with its events.
fn streams<'i>(index: &'i Index<'_>) -> impl Iterator<Item = (&'i HttpExchange, &'i Vec<Value>)> {
    index.http.iter().filter_map(|exchange| {
        let resumes = exchange.value.pointer("/request/headers/last-event-id").is_some();
        let events = exchange.value.pointer("/body/events")?.as_array()?;
        (!resumes && !events.is_empty()).then_some((exchange, events))
    })
}

/// No two events of the streams of a session share an id.
pub(super) fn event_ids_unique(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut known: BTreeMap<&str, &HttpExchange> = BTreeMap::new();
    for (exchange, events) in streams(index) {
        let ids = events.iter().filter_map(|event| event.get("id")?.as_str()).filter(|id| !id.is_empty());
        for id in ids {
            let other = known.insert(id, exchange);
            seen.look(other.map(|other| {
                let positions: Vec<usize> = other.positions.iter().chain(&exchange.positions).copied().collect();
                breach(format!("two events have the id {id:?}"), "", &positions)
            }));
        }
    }
    seen
}

/// What tells a message of the server from every other: the id of a request, or the step of a progress.
fn mark_of(message: &Value) -> Option<String> {
    let method = message.get("method")?.as_str()?;
    if let Some(id) = message.get("id") {
        return Some(format!("the request {method} with the id {id}"));
    }
    let params = message.get("params")?;
    (method == "notifications/progress")
        .then(|| format!("the progress {} of the token {}", params["progress"], params["progressToken"]))
}

/// No message is sent on two streams. Only messages count that the server cannot have meant twice.
pub(super) fn sent_on_one(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut known: BTreeMap<String, &HttpExchange> = BTreeMap::new();
    for (exchange, events) in streams(index) {
        for mark in events.iter().filter_map(|event| mark_of(event.get("message")?)) {
            let other = known.get(&mark).copied().filter(|other| other.sent != exchange.sent);
            seen.look(other.map(|other| {
                let positions: Vec<usize> = other.positions.iter().chain(&exchange.positions).copied().collect();
                breach(format!("{mark} is sent on two streams"), "", &positions)
            }));
            known.entry(mark).or_insert(exchange);
        }
    }
    seen
}
