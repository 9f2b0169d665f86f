//! HTTP requests, responses and event streams as a transcript records them, and as JSON values for cases.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::challenge::read_challenges;
use super::{Entry, Event, StepId, Transcript};
use crate::wire::Id;

/// An HTTP request of the client.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpRequest {
    /// Its number on the connection, from 0.
    pub number: usize,
    /// The method, such as `POST`.
    pub method: String,
    /// The path and query.
    pub target: String,
    /// The headers that the client chooses, names in lower case; secret values are masked.
    pub headers: Vec<(String, String)>,
    /// The entry of the message in the request body, if there is one.
    pub carries: Option<Arc<Entry>>,
    /// The step of a case that made this request directly; none for requests that carry the connection's messages.
    pub step_id: Option<StepId>,
    /// The body of a request that a case makes directly: a message or a string.
    pub body: Option<Value>,
}

/// The head of an HTTP response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpHead {
    /// The number of the request.
    pub number: usize,
    /// The status code.
    pub status: u16,
    /// The headers in the order received, names in lower case.
    pub headers: Vec<(String, String)>,
}

impl HttpHead {
    /// The value of a header; the first value if there are several.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The end of an HTTP response, or of what the client read of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpEnd {
    /// The number of the request.
    pub number: usize,
    /// The number of body bytes that were read.
    pub bytes: usize,
    /// The beginning of a body that is neither a message nor a stream; of any body if a case made the request.
    pub text: String,
    /// The message in the body, if there is one; for an ordinary request only its small members.
    pub message: Option<Value>,
    /// The events of a stream, the first thousand at most.
    pub events: Vec<SseEventSummary>,
    /// The number of comment lines in a stream.
    pub comments: usize,
    /// Why the response was not read to its end, or did not arrive at all.
    pub failure: Option<String>,
    /// Whether the server ended the response; otherwise the client did.
    pub complete: bool,
    /// The id of the request that the response should have answered and did not.
    pub unanswered: Option<Id>,
    /// How URLs in the response relate to the server's URL, if a case made the request.
    pub standing: Option<Value>,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEventSummary {
    /// The type, where the event names one.
    pub event: Option<String>,
    /// The id, where the event sets one.
    pub id: Option<String>,
    /// The reconnection time as written, where the event sets one.
    pub retry: Option<String>,
    /// `none`, `empty`, `message` (JSON) or `other`.
    pub data: &'static str,
    /// The message in the event; for an ordinary request only its small members.
    pub message: Option<Value>,
    /// The beginning of data that is not JSON.
    pub text: Option<String>,
}

/// The largest member of a message, in bytes of text, that is kept in the summary of its HTTP response.
const MAX_SUMMARY_STRING_BYTES: usize = 1_000;

/// The small members of a message, which show its kind and the request it belongs to: the message itself is
/// recorded separately.
#[must_use]
pub(crate) fn summarize(message: &Value) -> Value {
    let is_small = |value: &Value| match value {
        Value::String(text) => text.len() <= MAX_SUMMARY_STRING_BYTES,
        Value::Array(_) | Value::Object(_) => has_few_parts(value, &mut 40),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    match message {
        Value::Object(members) => {
            let kept = |(name, value): (&String, &Value)| {
                let value = if is_small(value) { value.clone() } else { small_members(value, &is_small) };
                (name.clone(), value)
            };
            Value::Object(members.iter().map(kept).collect())
        }
        Value::Array(items) => Value::Array(items.iter().take(40).map(summarize).collect()),
        other => other.clone(),
    }
}

/// A value without its large members.
fn small_members(value: &Value, is_small: &dyn Fn(&Value) -> bool) -> Value {
    match value {
        Value::Object(members) => {
            let small = members.iter().filter(|(_, value)| is_small(value)).take(20);
            Value::Object(small.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    }
}

/// Whether a value has at most the given number of parts, and short strings only.
fn has_few_parts(value: &Value, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        Value::String(text) => text.len() <= MAX_SUMMARY_STRING_BYTES,
        Value::Array(items) => items.iter().all(|item| has_few_parts(item, left)),
        Value::Object(members) => members.values().all(|member| has_few_parts(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

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
        let mut exchanges: Vec<(usize, HttpExchange)> = Vec::new();
        for (position, entry) in self.entries.iter().enumerate() {
            let (number, part) = match &entry.event {
                Event::HttpRequest(request) => {
                    let mut positions = vec![position];
                    if let Some(carried) = &request.carries {
                        let at = self.entries[..position].iter().rposition(|entry| Arc::ptr_eq(entry, carried));
                        positions.extend(at);
                        positions.sort_unstable();
                    }
                    let (sent, step_id) = (positions[0], request.step_id);
                    let value = exchange_to_json(request, None, None);
                    exchanges.push((request.number, HttpExchange { sent, positions, step_id, value }));
                    continue;
                }
                Event::HttpHead(head) => (head.number, head_value(head)),
                Event::HttpEnd(end) => (end.number, end_value(end)),
                _ => continue,
            };
            // Responses end soon after their requests, so searching from the end is fast.
            let Some((_, exchange)) = exchanges.iter_mut().rev().find(|(own, _)| *own == number) else { continue };
            exchange.positions.push(position);
            if let (Value::Object(whole), Value::Object(part)) = (&mut exchange.value, part) {
                whole.extend(part);
            }
        }
        exchanges.into_iter().map(|(_, exchange)| exchange).collect()
    }
}

/// An exchange as a JSON value, as far as it is known.
#[must_use]
pub(crate) fn exchange_to_json(request: &HttpRequest, head: Option<&HttpHead>, end: Option<&HttpEnd>) -> Value {
    let mut own = json!({
        "method": request.method, "target": request.target, "headers": object(&request.headers),
    });
    if let Some(message) = request.carries.as_ref().and_then(|carried| carried.sent()).or(request.body.as_ref()) {
        own["message"] = message.clone();
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
    value
}

/// A record without the requests that the server rejected with status 429, and without the messages that only
/// these requests carried: they say nothing about the server's behaviour.
#[must_use]
pub(crate) fn without_rate_limited(entries: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let limited: BTreeSet<usize> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::HttpHead(head) if head.status == 429 => Some(head.number),
            _ => None,
        })
        .collect();
    if limited.is_empty() {
        return entries.to_vec();
    }
    let carried = |of_limited: bool| -> Vec<&Arc<Entry>> {
        let of = |entry: &&Arc<Entry>| matches!(&entry.event, Event::HttpRequest(request) if limited.contains(&request.number) == of_limited);
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
        Event::HttpRequest(request) => !limited.contains(&request.number),
        Event::HttpHead(head) => !limited.contains(&head.number),
        Event::HttpEnd(end) => !limited.contains(&end.number),
        Event::Sent { .. } => !holds(&lost, entry) || holds(&served, entry),
        _ => true,
    };
    entries.iter().filter(is_kept).cloned().collect()
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
    if !end.text.is_empty() {
        value["text"] = json!(end.text);
    }
    if let Some(message) = &end.message {
        value["message"] = message.clone();
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
        value["message"] = message.clone();
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
