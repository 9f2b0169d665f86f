//! The HTTP exchanges of a transcript, as JSON values for cases.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Transcript;
use super::challenge::read_challenges;
use super::entry::{Entry, Event, HttpEnd, HttpHead, HttpRequest, SetAside, SseEventSummary, StepId};
use crate::wire::{Id, JsonText, id_of, messages, method_of, reports_rate_limit, same_id, without_room};

/// An HTTP exchange as a JSON value, as cases match it.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpExchange {
    /// The position of the request in the transcript.
    pub sent: usize,
    /// The positions of all entries that belong to it.
    pub positions: Vec<usize>,
    /// The step of a case that made the request directly.
    pub step_id: Option<StepId>,
    /// The value: `{"request": {"method", "target", "headers", "message"?}, "status"?, "headers"?, "body"?}`.
    pub value: Value,
}

impl Transcript {
    /// The HTTP exchanges of the record, in the order of their requests.
    #[must_use]
    pub fn http_exchanges(&self) -> Vec<HttpExchange> {
        self.http_exchanges_of(|_| true)
    }

    /// The HTTP exchanges whose step is chosen, in the order of their requests. Those of the connection itself have none.
    #[must_use]
    pub fn http_exchanges_of(&self, is_chosen: impl Fn(Option<StepId>) -> bool) -> Vec<HttpExchange> {
        let mut exchanges: Vec<HttpExchange> = Vec::new();
        let mut by_number: HashMap<usize, usize> = HashMap::new();
        for (position, entry) in self.entries.iter().enumerate() {
            let (number, part) = match &entry.event {
                Event::HttpRequest(request) if !is_chosen(request.step_id) => {
                    by_number.remove(&request.number);
                    continue;
                }
                Event::HttpRequest(request) => {
                    let mut positions = vec![position];
                    if let Some(carried) = &request.carries {
                        let at = self.entries[..position].iter().rposition(|entry| Arc::ptr_eq(entry, carried));
                        positions.extend(at);
                        positions.sort_unstable();
                    }
                    let (sent, step_id) = (positions[0], request.step_id);
                    let value = exchange_to_json(request, None, None);
                    by_number.insert(request.number, exchanges.len());
                    exchanges.push(HttpExchange { sent, positions, step_id, value });
                    continue;
                }
                Event::HttpHead(head) if by_number.contains_key(&head.number) => (head.number, head_value(head)),
                Event::HttpEnd(end) if by_number.contains_key(&end.number) => (end.number, end_value(end)),
                Event::Sent { frame, .. } => {
                    frame.json().into_iter().for_each(|message| mark_cancelled(&mut exchanges, message));
                    continue;
                }
                _ => continue,
            };
            let Some(exchange) = by_number.get(&number).and_then(|at| exchanges.get_mut(*at)) else { continue };
            exchange.positions.push(position);
            if let (Value::Object(whole), Value::Object(part)) = (&mut exchange.value, part) {
                whole.extend(part);
            }
            if matches!(entry.event, Event::HttpEnd(_)) {
                exchange.value = without_room(exchange.value.take());
            }
        }
        exchanges
    }
}

/// Marks the request that a message cancels.
fn mark_cancelled(exchanges: &mut [HttpExchange], message: &Value) {
    if method_of(message) != Some("notifications/cancelled") {
        return;
    }
    let Some(id) = message.pointer("/params/requestId") else { return };
    let is_it = |exchange: &HttpExchange| {
        let own = exchange.value.pointer("/request/message").and_then(id_of);
        own.is_some_and(|own| same_id(own, id))
    };
    if let Some(exchange) = exchanges.iter_mut().rev().find(|exchange| is_it(exchange)) {
        exchange.value["request"]["cancelled"] = json!(true);
    }
}

/// An exchange as a JSON value, as far as it is known.
#[must_use]
pub(crate) fn exchange_to_json(request: &HttpRequest, head: Option<&HttpHead>, end: Option<&HttpEnd>) -> Value {
    let mut own = json!({
        "method": request.method, "target": request.target, "headers": object(&request.headers),
    });
    let carried = request.carries.as_ref().and_then(|carried| carried.sent()).cloned();
    if let Some(message) = carried.or_else(|| request.body.as_ref().map(JsonText::value)) {
        own["message"] = message;
    }
    let mut value = json!({ "request": own });
    if let Some(head) = head {
        value["status"] = json!(head.status);
        value["headers"] = object(&head.headers);
        if let Some(challenges) = challenges(head) {
            value["challenges"] = challenges;
        }
    }
    if let (Some(end), Value::Object(whole)) = (end, &mut value)
        && let Value::Object(part) = end_value(end)
    {
        whole.extend(part);
    }
    value
}

fn end_value(end: &HttpEnd) -> Value {
    let mut value = json!({ "body": body(end) });
    if let Some(standing) = &end.standing {
        value["url-relation"] = standing.clone();
    }
    if let Some(listens_at) = end.listens_at {
        value["listens-at"] = json!(listens_at);
    }
    if let Some(half_closed) = end.half_closed {
        value["half-closed"] = json!(half_closed);
    }
    value
}

/// A record without the requests that the server rejected because of its rate limit (with status 429 or 503, or an error
/// that says so), without those that were made again for another reason, and without the messages that only these
/// requests carried: they say nothing about the server's behaviour.
#[must_use]
pub(crate) fn without_repeated(entries: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let left_out: BTreeSet<usize> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::HttpHead(head) if is_rate_limit(head) => Some(head.number),
            Event::HttpEnd(end) if end.set_aside.is_some() => Some(end.number),
            _ => None,
        })
        .collect();
    let errors = |entry: &Arc<Entry>| -> Vec<Id> {
        let reported = entry.received().into_iter().flat_map(messages).filter(|message| reports_rate_limit(message));
        reported.filter_map(|message| message.get("id").cloned()).collect()
    };
    let ids: Vec<Id> = entries.iter().flat_map(errors).collect();
    if left_out.is_empty() && ids.is_empty() {
        return entries.to_vec();
    }
    let is_rejected = |message: &Value| {
        message.get("method").is_some() && id_of(message).is_some_and(|own| ids.iter().any(|id| same_id(own, id)))
    };
    let carried = |of_left_out: bool| -> Vec<&Arc<Entry>> {
        let of = |entry: &&Arc<Entry>| matches!(&entry.event, Event::HttpRequest(request) if left_out.contains(&request.number) == of_left_out);
        entries
            .iter()
            .filter(of)
            .filter_map(|entry| match &entry.event {
                Event::HttpRequest(request) => request.carries.as_ref(),
                _ => None,
            })
            .collect()
    };
    let (lost, served) = (carried(true), carried(false));
    let holds = |list: &[&Arc<Entry>], entry: &Arc<Entry>| list.iter().any(|own| Arc::ptr_eq(own, entry));
    let is_kept = |entry: &&Arc<Entry>| match &entry.event {
        Event::HttpRequest(request) => !left_out.contains(&request.number),
        Event::HttpHead(head) => !left_out.contains(&head.number),
        Event::HttpEnd(end) => !left_out.contains(&end.number),
        Event::Sent { frame, .. } if frame.json().is_some_and(is_rejected) => false,
        Event::Sent { .. } => !holds(&lost, entry) || holds(&served, entry),
        Event::Received(_) => errors(entry).is_empty(),
        _ => true,
    };
    entries.iter().filter(is_kept).cloned().collect()
}

/// The parts of a record before and after the server ended an HTTP session: ids and streams of one session mean nothing in
/// the next. A message that was sent again in the next one is part of that.
#[must_use]
pub(crate) fn sessions_in(entries: &[Arc<Entry>]) -> Vec<Vec<Arc<Entry>>> {
    let numbers = |reason: SetAside| -> BTreeSet<usize> {
        let ends = entries.iter().filter_map(|entry| match &entry.event {
            Event::HttpEnd(end) if end.set_aside == Some(reason) => Some(end.number),
            _ => None,
        });
        ends.collect()
    };
    let (renewals, ended) = (numbers(SetAside::SessionRenewal), numbers(SetAside::SessionEnded));
    let carried_by_ended = entries.iter().filter_map(|entry| match &entry.event {
        Event::HttpRequest(request) if ended.contains(&request.number) => request.carries.as_ref(),
        _ => None,
    });
    let sent_again: Vec<&Arc<Entry>> = carried_by_ended.collect();
    let is_sent_again = |entry: &Arc<Entry>| sent_again.iter().any(|own| Arc::ptr_eq(own, entry));
    let mut parts = vec![Vec::new()];
    for entry in entries {
        if let Event::HttpRequest(request) = &entry.event {
            let opens = request.body.as_ref().is_some_and(|body| method_of(&body.value()) == Some("initialize"));
            if opens && renewals.contains(&request.number) {
                parts.push(Vec::new());
            }
            let carried = request.carries.iter().filter(|carried| is_sent_again(carried));
            if let Some(part) = parts.last_mut().filter(|_| !ended.contains(&request.number)) {
                part.extend(carried.cloned());
            }
        }
        if let Some(part) = parts.last_mut().filter(|_| !is_sent_again(entry)) {
            part.push(Arc::clone(entry));
        }
    }
    parts
}

fn is_rate_limit(head: &HttpHead) -> bool {
    head.status == 429 || head.status == 503 && head.header("retry-after").is_some()
}

fn head_value(head: &HttpHead) -> Value {
    let mut value = json!({ "status": head.status, "headers": object(&head.headers) });
    if let Some(challenges) = challenges(head) {
        value["challenges"] = challenges;
    }
    value
}

/// The challenges in the `WWW-Authenticate` header of a response, if it has one: the parameters of each scheme.
fn challenges(head: &HttpHead) -> Option<Value> {
    let headers = object(&head.headers);
    headers.get("www-authenticate")?.as_str().map(|text| Value::Object(read_challenges(text)))
}

fn body(end: &HttpEnd) -> Value {
    let mut value = json!({
        "bytes": end.bytes,
        "complete": end.complete,
        "comments": end.comments,
        "events": end.events.iter().map(event_to_json).collect::<Vec<Value>>(),
    });
    let text = end.text();
    if !text.is_empty() {
        value["text"] = json!(text);
    }
    if let Some(message) = &end.message {
        value["message"] = message.value();
    }
    if !end.defects.is_empty() {
        value["defects"] = json!(end.defects);
    }
    if let Some(failure) = &end.failure {
        value["failure"] = json!(failure);
    }
    if let Some(id) = &end.unanswered {
        value["unanswered-id"] = id.clone();
    }
    value
}

fn event_to_json(summary: &SseEventSummary) -> Value {
    let mut value = json!({ "data": summary.data });
    for (name, text) in [("event", &summary.event), ("id", &summary.id), ("retry", &summary.retry)] {
        if let Some(text) = text {
            value[name] = json!(text);
        }
    }
    if let Some(message) = &summary.message {
        value["message"] = message.value();
    }
    if let Some(text) = &summary.text {
        value["text"] = json!(text);
    }
    value
}

/// Headers as an object: repeated headers are joined by a comma and a space, as RFC 9110 allows.
fn object(headers: &[(String, String)]) -> Value {
    let mut joined = Map::new();
    for (name, value) in headers {
        match joined.get_mut(name) {
            Some(Value::String(text)) => {
                text.push_str(", ");
                text.push_str(value);
            }
            _ => {
                joined.insert(name.clone(), Value::String(value.clone()));
            }
        }
    }
    Value::Object(joined)
}
