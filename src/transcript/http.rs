//! The HTTP exchanges of a transcript, as JSON values for cases.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Transcript;
use super::challenge::read_challenges;
use super::entry::{Entry, Event, HttpEnd, HttpHead, HttpRequest, SetAside, SseEventSummary, StepId};
use crate::wire::{Id, id_of, messages, method_of, reports_rate_limit, same_id};

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

/// Where the entries of an HTTP exchange are in a transcript.
#[derive(Debug, Clone)]
pub(crate) struct HttpExchangeEntries {
    /// The position of the request.
    pub(crate) sent: usize,
    positions: Vec<usize>,
    step_id: Option<StepId>,
    /// Whether a message cancels the request.
    is_cancelled: bool,
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
        self.http_entries_of(is_chosen).iter().map(|entries| entries.read(self)).collect()
    }

    /// Where the HTTP exchanges whose step is chosen are, in the order of their requests.
    #[must_use]
    pub(crate) fn http_entries_of(&self, is_chosen: impl Fn(Option<StepId>) -> bool) -> Vec<HttpExchangeEntries> {
        let mut exchanges: Vec<HttpExchangeEntries> = Vec::new();
        let mut by_number: HashMap<usize, usize> = HashMap::new();
        for (position, entry) in self.entries.iter().enumerate() {
            let number = match &entry.event {
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
                    by_number.insert(request.number, exchanges.len());
                    exchanges.push(HttpExchangeEntries { sent, positions, step_id, is_cancelled: false });
                    continue;
                }
                Event::HttpHead(head) => head.number,
                Event::HttpEnd(end) => end.number,
                Event::Sent { frame, .. } => {
                    frame.json().into_iter().for_each(|message| self.mark_cancelled(&mut exchanges, message));
                    continue;
                }
                _ => continue,
            };
            if let Some(exchange) = by_number.get(&number).and_then(|at| exchanges.get_mut(*at)) {
                exchange.positions.push(position);
            }
        }
        exchanges
    }

    /// Marks the request that a message cancels.
    fn mark_cancelled(&self, exchanges: &mut [HttpExchangeEntries], message: &Value) {
        if method_of(message) != Some("notifications/cancelled") {
            return;
        }
        let Some(id) = message.pointer("/params/requestId") else { return };
        let is_it = |exchange: &HttpExchangeEntries| {
            let own = exchange.request(self).and_then(message_of);
            own.as_deref().and_then(id_of).is_some_and(|own| same_id(own, id))
        };
        if let Some(exchange) = exchanges.iter_mut().rev().find(|exchange| is_it(exchange)) {
            exchange.is_cancelled = true;
        }
    }
}

impl HttpExchangeEntries {
    /// The request.
    fn request<'t>(&self, record: &'t Transcript) -> Option<&'t HttpRequest> {
        self.positions.iter().find_map(|position| match &record.entries.get(*position)?.event {
            Event::HttpRequest(request) => Some(request),
            _ => None,
        })
    }

    /// The exchange as a value.
    #[must_use]
    pub(crate) fn read(&self, record: &Transcript) -> HttpExchange {
        let mut value = self.request(record).map_or(Value::Null, |request| exchange_to_json(request, None, None));
        if self.is_cancelled {
            value["request"]["cancelled"] = json!(true);
        }
        for entry in self.positions.iter().filter_map(|position| record.entries.get(*position)) {
            let part = match &entry.event {
                Event::HttpHead(head) => head_value(head),
                Event::HttpEnd(end) => end_value(end),
                _ => continue,
            };
            if let (Value::Object(whole), Value::Object(part)) = (&mut value, part) {
                whole.extend(part);
            }
        }
        HttpExchange { sent: self.sent, positions: self.positions.clone(), step_id: self.step_id, value }
    }
}

/// The message that a request carries.
fn message_of(request: &HttpRequest) -> Option<Cow<'_, Value>> {
    let carried = request.carries.as_ref().and_then(|carried| carried.sent()).map(Cow::Borrowed);
    carried.or_else(|| request.body.as_ref().map(|body| Cow::Owned(body.value())))
}

/// An exchange as a JSON value, as far as it is known.
#[must_use]
pub(crate) fn exchange_to_json(request: &HttpRequest, head: Option<&HttpHead>, end: Option<&HttpEnd>) -> Value {
    let mut own = json!({
        "method": request.method, "target": request.target, "headers": object(&request.headers),
    });
    if let Some(message) = message_of(request) {
        own["message"] = message.into_owned();
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
