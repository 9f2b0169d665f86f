//! The record of one connection: every message and event in both directions, in order, with its time.
//!
//! Also pairs requests with responses, so that a check needs nothing but a transcript. Judges nothing.

mod challenge;
mod entry;
mod http;
mod message_summary;
mod saved;
mod stderr_text;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

#[cfg(feature = "http")]
pub(crate) use self::entry::BodyText;
#[cfg(feature = "http")]
pub(crate) use self::entry::SseEventSummary;
pub use self::entry::{Entry, Event, ShutdownStep, StepId};
pub(crate) use self::entry::{HttpEnd, HttpHead, HttpRequest, SetAside};
#[cfg(feature = "http")]
pub(crate) use self::http::exchange_to_json;
pub(crate) use self::http::{HttpExchange, HttpExchangeEntries, sessions_in, without_repeated};
#[cfg(feature = "http")]
pub(crate) use self::message_summary::summarize;
pub(crate) use self::saved::SavedConnection;
pub(crate) use self::saved::{ConnectionWriter, Mask, judged_line, opened_line};
pub use self::saved::{LineError, MAX_LINE_BYTES, SavedTranscript, TranscriptReader};
pub(crate) use self::stderr_text::{first_invalid_byte, stderr_text};
pub(crate) use crate::wire::messages;
use crate::wire::{Id, MessageKind, id_of, is_lost_id, same_id, same_id_loosely};

/// What client and server agreed on when the connection was opened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionParameters {
    /// The capabilities that the client declared.
    pub client_capabilities: Value,
    /// The result of `initialize` or `server/discover`, once it was received.
    pub opening: Option<Value>,
    /// Whether the server ended instead of opening the connection, twice, and the second time while the run had no other
    /// process of it.
    pub ended_alone: bool,
}

impl SessionParameters {
    /// The capability at a dotted path, such as `tools.listChanged`, if the server declared it. A member name may
    /// itself contain dots, as extension names do.
    #[must_use]
    pub fn capability(&self, path: &str) -> Option<&Value> {
        fn member<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
            value.get(path).or_else(|| {
                let (first, rest) = path.split_once('.')?;
                member(value.get(first)?, rest)
            })
        }
        member(self.opening.as_ref()?.get("capabilities")?, path)
    }

    /// Whether the server declared the capability: present, and not `false` or `null`.
    #[must_use]
    pub fn declares(&self, path: &str) -> bool {
        self.capability(path).is_some_and(|value| !matches!(value, Value::Bool(false) | Value::Null))
    }
}

/// The record of one connection, or a part of it.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    /// What happened, in order.
    pub entries: Vec<Arc<Entry>>,
    /// The parameters that were agreed on when the connection was opened.
    pub session_parameters: SessionParameters,
}

/// A request of the client with its responses.
#[derive(Debug, Clone)]
pub struct Exchange<'a> {
    /// The position of the request in the transcript.
    pub sent: usize,
    /// The request.
    pub request: &'a Value,
    /// The responses with their positions; more than one violates the protocol.
    pub responses: Vec<(usize, &'a Value)>,
    /// Whether the first response carries the id in another form, such as a string for a number.
    pub has_altered_id: bool,
}

impl Transcript {
    /// The client's requests with their responses, in the order of sending.
    ///
    /// A response belongs to the request with the same id. A response with an altered id (the same text in
    /// another JSON type, or null right after the request) belongs to the oldest unanswered request that
    /// it fits.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange<'_>> {
        let mut exchanges: Vec<Exchange<'_>> = Vec::new();
        let mut by_id: HashMap<IdKey<'_>, Vec<usize>> = HashMap::new();
        let mut unpaired: Vec<(usize, &Value, &Id)> = Vec::new();
        for (position, entry) in self.entries.iter().enumerate() {
            if let Some(value) = entry.sent() {
                for request in messages(value).filter(|message| expects_response(message)) {
                    by_id.entry(IdKey::of(own_id(request))).or_default().push(exchanges.len());
                    exchanges.push(Exchange { sent: position, request, responses: Vec::new(), has_altered_id: false });
                }
            } else if let Some(value) = entry.received() {
                for response in messages(value) {
                    let MessageKind::Response { id: Some(id) } = MessageKind::of(response) else { continue };
                    let keyed = by_id.get(&IdKey::of(id)).map(Vec::as_slice).unwrap_or_default();
                    if !assign_response(&mut exchanges, keyed, position, response, id) {
                        unpaired.push((position, response, id));
                    }
                }
            }
        }
        for (position, response, id) in unpaired {
            // Such an id identifies nothing: it can only belong to the message sent last before it.
            let last_sent =
                self.entries[..position].iter().rposition(|entry| matches!(entry.event, Event::Sent { .. }));
            let open = exchanges
                .iter_mut()
                .filter(|exchange| exchange.sent < position && exchange.responses.is_empty())
                .find(|exchange| {
                    if is_lost_id(id) {
                        Some(exchange.sent) == last_sent
                            && self.is_body_for(position, exchange.sent).unwrap_or(true)
                            && !allows_null_id_response(&self.entries[..exchange.sent])
                    } else {
                        same_id_loosely(own_id(exchange.request), id)
                    }
                });
            if let Some(exchange) = open {
                exchange.responses.push((position, response));
                exchange.has_altered_id = true;
            }
        }
        exchanges
    }

    /// The requests that the server made of the client, except `ping`, each with method and params: requests
    /// that it sent and input requests in its results.
    #[must_use]
    pub fn requests_to_client(&self) -> Vec<Value> {
        let mut requests = Vec::new();
        for message in self.entries.iter().filter_map(|entry| entry.received()).flat_map(messages) {
            match MessageKind::of(message) {
                MessageKind::Request { method, .. } if method != "ping" && !method.starts_with("notifications/") => {
                    let mut request = serde_json::json!({ "method": method });
                    if let Some(params) = message.get("params") {
                        request["params"] = params.clone();
                    }
                    requests.push(request);
                }
                MessageKind::Response { .. } => {
                    let result = message.get("result").unwrap_or(&Value::Null);
                    requests.extend(input_requests(result).map(|(_, request)| request.clone()));
                }
                _ => {}
            }
        }
        requests
    }

    /// Whether the client answered a request of the server with an error between two positions. The error by which the
    /// server then answers the client may be that one, relayed.
    #[must_use]
    pub fn has_client_error(&self, from: usize, to: usize) -> bool {
        let between = || self.entries.iter().take(to).skip(from + 1);
        let requested = |id: &Id| {
            between().filter_map(|entry| entry.received()).flat_map(messages).any(
                |message| matches!(MessageKind::of(message), MessageKind::Request { id: own, .. } if same_id(own, id)),
            )
        };
        between().filter_map(|entry| entry.sent()).flat_map(messages).any(|message| {
            message.get("error").is_some()
                && matches!(MessageKind::of(message), MessageKind::Response { id: Some(id) } if requested(id))
        })
    }

    /// Whether a message at this position is in the body of a response with an HTTP error status. For a notification or
    /// a response, the transport permits such a body with an error without an id: it refuses the message, and is no
    /// response to it.
    #[must_use]
    pub fn is_rejected_by_status(&self, position: usize) -> bool {
        let Some(Event::HttpEnd(end)) = self.entries.get(position + 1).map(|entry| &entry.event) else { return false };
        self.entries[..position].iter().rev().any(
            |entry| matches!(&entry.event, Event::HttpHead(head) if head.number == end.number && head.status >= 400),
        )
    }

    /// Whether the message at a position is the body of the response to the HTTP request that carried the message sent at
    /// another one: without an id it can belong to no other. `None` if it is no such body.
    #[must_use]
    pub fn is_body_for(&self, position: usize, sent: usize) -> Option<bool> {
        // The end of a response is recorded right after its body.
        let Event::HttpEnd(end) = &self.entries.get(position + 1)?.event else { return None };
        end.message.as_ref()?;
        let carried = self.entries[..position].iter().rev().find_map(|entry| match &entry.event {
            Event::HttpRequest(request) if request.number == end.number => request.carries.as_ref(),
            _ => None,
        });
        // A record of one case lacks the request if an earlier case sent it.
        Some(carried.is_some_and(|carried| self.entries.get(sent).is_some_and(|entry| Arc::ptr_eq(entry, carried))))
    }

    /// The responses that belong to no request of the client, with their positions.
    #[must_use]
    pub fn unmatched_responses(&self) -> Vec<(usize, &Value)> {
        self.unmatched_responses_among(&self.exchanges())
    }

    /// As [`Transcript::unmatched_responses`], for a caller that already has the exchanges of this record.
    #[must_use]
    pub fn unmatched_responses_among(&self, exchanges: &[Exchange<'_>]) -> Vec<(usize, &Value)> {
        let owned: HashSet<*const Value> = exchanges
            .iter()
            .flat_map(|exchange| exchange.responses.iter().map(|(_, response)| std::ptr::from_ref(*response)))
            .collect();
        let mut strays = Vec::new();
        for (position, entry) in self.entries.iter().enumerate() {
            for message in entry.received().into_iter().flat_map(messages) {
                if matches!(MessageKind::of(message), MessageKind::Response { .. })
                    && !owned.contains(&std::ptr::from_ref(message))
                {
                    strays.push((position, message));
                }
            }
        }
        strays
    }

    /// Whether the server closed its standard output or its process ended within the record.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.event, Event::Closed | Event::Exited { .. }))
    }
}

/// Whether one of the last messages of a case may be answered without a usable id: a line that is not a
/// message or may not be readable, an array, a notification, or a malformed request.
#[must_use]
pub(crate) fn allows_null_id_response(before: &[Arc<Entry>]) -> bool {
    const LAST: usize = 2;
    let sent = before.iter().rev().filter_map(|entry| match &entry.event {
        Event::Sent { frame, step_id: Some(_) } => Some(frame),
        _ => None,
    });
    sent.take(LAST).any(|frame| match frame.json() {
        Some(_) if frame.may_be_unreadable() => true,
        Some(value) => match MessageKind::of(value) {
            MessageKind::Request { id, .. } => is_malformed_request(value, id),
            MessageKind::Response { .. } => false,
            MessageKind::Notification { .. } | MessageKind::Batch(_) | MessageKind::Unknown => true,
        },
        None => true,
    })
}

/// Whether a request with a method is malformed nevertheless, so that a server that reads it as a whole may answer it
/// without its id, as JSON-RPC 2.0 does with requests that cannot be read.
#[must_use]
pub(crate) fn is_malformed_request(request: &Value, id: &Id) -> bool {
    !(id.is_string() || id.is_i64() || id.is_u64())
        || request.get("jsonrpc").is_none_or(|version| version != "2.0")
        || request.get("params").is_some_and(|params| !params.is_object())
}

/// A hash key for ids: ids that are equal by [`same_id`] have equal keys.
#[derive(PartialEq, Eq, Hash)]
enum IdKey<'a> {
    /// The bits of the nearest float, which `1` and `1.0` share.
    Number(u64),
    Other(&'a Id),
}

impl<'a> IdKey<'a> {
    fn of(id: &'a Id) -> Self {
        match id.as_f64() {
            // Adding zero turns negative zero into zero.
            Some(float) => Self::Number((float + 0.0).to_bits()),
            None => Self::Other(id),
        }
    }
}

/// Assigns a response to the request with its id, among those with its key: to the first unanswered one, or else
/// to the last one.
fn assign_response<'a>(
    exchanges: &mut [Exchange<'a>],
    keyed: &[usize],
    position: usize,
    response: &'a Value,
    id: &Id,
) -> bool {
    let mut same = keyed.iter().copied().filter(|at| same_id(own_id(exchanges[*at].request), id));
    let open = same.clone().find(|at| exchanges[*at].responses.is_empty());
    let Some(at) = open.or_else(|| same.next_back()) else { return false };
    exchanges[at].responses.push((position, response));
    true
}

fn own_id(request: &Value) -> &Id {
    id_of(request).unwrap_or(&Value::Null)
}

/// Whether a message of the client, well-formed or not, has an id that a response could repeat.
fn expects_response(message: &Value) -> bool {
    id_of(message).is_some() && message.get("result").is_none() && message.get("error").is_none()
}

/// Whether a result asks the client for input instead of completing the request.
#[must_use]
pub(crate) fn is_input_required(result: &Value) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "input_required")
}

/// The input requests of a result with their keys; empty unless the result asks for input.
pub(crate) fn input_requests(result: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let requests = result.get("inputRequests").filter(|_| is_input_required(result)).and_then(Value::as_object);
    requests.into_iter().flatten().map(|(key, request)| (key.as_str(), request))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wire::Frame;
    use serde_json::json;

    fn transcript(events: &[(bool, Value)]) -> Transcript {
        let entries = events
            .iter()
            .map(|(is_client, value)| {
                let frame = Frame::from_value(value);
                let event = if *is_client { Event::Sent { frame, step_id: None } } else { Event::Received(frame) };
                Arc::new(Entry { at: Duration::ZERO, event })
            })
            .collect();
        Transcript { entries, session_parameters: SessionParameters::default() }
    }

    #[test]
    fn a_request_is_malformed_by_its_version_its_id_or_its_params() {
        let is_malformed = |request: Value| is_malformed_request(&request, &request["id"]);
        assert!(!is_malformed(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})));
        assert!(!is_malformed(json!({"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {}})));
        for request in [
            json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
            json!({"id": 1, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}),
        ] {
            assert!(is_malformed(request.clone()), "{request}");
        }
    }

    #[test]
    fn responses_are_paired_with_requests_in_any_order() {
        let record = transcript(&[
            (true, json!({"id": 1, "method": "a"})),
            (true, json!({"id": 2, "method": "b"})),
            (false, json!({"id": 2, "result": {}})),
            (false, json!({"id": 1, "result": {}})),
            (false, json!({"id": 1, "result": {}})),
            (false, json!({"id": 7, "result": {}})),
        ]);
        let exchanges = record.exchanges();
        assert_eq!(exchanges[0].responses.len(), 2);
        assert_eq!(exchanges[1].responses.len(), 1);
        assert_eq!(record.unmatched_responses().len(), 1);
    }

    #[test]
    fn number_ids_are_paired_by_value_and_large_ones_are_distinguished() {
        let record = transcript(&[
            (true, json!({"id": 1, "method": "a"})),
            (true, json!({"id": 9_007_199_254_740_992_u64, "method": "b"})),
            (true, json!({"id": 9_007_199_254_740_993_u64, "method": "c"})),
            (false, json!({"id": 1.0, "result": {}})),
            (false, json!({"id": 9_007_199_254_740_993_u64, "result": {}})),
        ]);
        let answered: Vec<usize> = record.exchanges().iter().map(|exchange| exchange.responses.len()).collect();
        assert_eq!(answered, [1, 0, 1]);
        assert!(record.exchanges().iter().all(|exchange| !exchange.has_altered_id));
    }

    #[test]
    fn the_body_of_an_http_response_belongs_to_the_message_in_its_request() {
        let mut record = transcript(&[
            (true, json!([])),
            (true, json!([{"id": 1, "method": "a"}, {}])),
            (false, json!({"id": null, "error": {"code": -32700, "message": ""}})),
        ]);
        assert_eq!(record.is_body_for(2, 1), None, "without HTTP");
        let entry = |event: Event| Arc::new(Entry { at: Duration::ZERO, event });
        let end = |message: Option<Value>| {
            let message = message.map(Into::into);
            entry(Event::HttpEnd(Box::new(HttpEnd { number: 1, message, ..HttpEnd::default() })))
        };
        record.entries.push(end(Some(json!({}))));
        for (number, at) in [(1, 1), (0, 0)] {
            let carries = Some(Arc::clone(&record.entries[at]));
            let request = HttpRequest { number, carries, ..HttpRequest::default() };
            record.entries.insert(at + 1, entry(Event::HttpRequest(request)));
        }
        assert_eq!([0, 2].map(|sent| record.is_body_for(4, sent)), [Some(false), Some(true)]);
        let later = Transcript { entries: record.entries[4..].to_vec(), ..record.clone() };
        assert_eq!(later.is_body_for(0, 0), Some(false), "its request was sent before the record began");
        // The end of a stream is not that of a body.
        record.entries[5] = end(None);
        assert_eq!(record.is_body_for(4, 2), None);
    }

    #[test]
    fn an_http_request_that_the_client_cancels_is_marked() {
        let mut record = transcript(&[
            (true, json!({"id": "a", "method": "tools/call"})),
            (true, json!({"id": "b", "method": "tools/call"})),
            (true, json!({"method": "notifications/cancelled", "params": {"requestId": "a"}})),
        ]);
        for (number, at) in [(1, 1), (0, 0)] {
            let carries = Some(Arc::clone(&record.entries[at]));
            let event = Event::HttpRequest(HttpRequest { number, carries, ..HttpRequest::default() });
            record.entries.insert(at + 1, Arc::new(Entry { at: Duration::ZERO, event }));
        }
        let exchanges = record.http_exchanges();
        let cancelled: Vec<bool> =
            exchanges.iter().map(|exchange| exchange.value["request"]["cancelled"] == json!(true)).collect();
        assert_eq!(cancelled, [true, false]);
    }

    #[test]
    fn an_altered_id_is_paired_and_marked() {
        let record = transcript(&[(true, json!({"id": 1, "method": "a"})), (false, json!({"id": "1", "result": {}}))]);
        let exchanges = record.exchanges();
        assert!(exchanges[0].has_altered_id);
        assert_eq!(exchanges[0].responses.len(), 1);
    }

    #[test]
    fn a_null_id_is_paired_with_the_message_sent_right_before_it() {
        let two = transcript(&[
            (true, json!({"id": 1, "method": "a"})),
            (true, json!({"method": "b"})),
            (false, json!({"id": null, "error": {"code": -32700, "message": ""}})),
        ]);
        assert_eq!(two.unmatched_responses().len(), 1);
        let one = transcript(&[
            (true, json!({"id": 1, "method": "a"})),
            (true, json!({"id": 2, "method": "b"})),
            (false, json!({"id": null, "error": {"code": -32602, "message": ""}})),
        ]);
        assert!(one.exchanges()[1].has_altered_id);
        assert!(one.exchanges()[0].responses.is_empty());
    }

    #[test]
    fn a_null_id_belongs_to_a_line_that_may_not_be_readable_rather_than_to_the_next_request() {
        let nested = |depth: usize| {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","b":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
            Frame::parse(br#"{"jsonrpc":"2.0","id":1,"method":"a","b":[]}"#).with_raw(line.into_bytes())
        };
        let altered = |first: Frame| {
            let mut record = transcript(&[
                (true, json!({"id": 2, "method": "b"})),
                (false, json!({"id": null, "error": {"code": -32700, "message": ""}})),
            ]);
            let sent = Event::Sent { frame: first, step_id: Some(StepId { execution: 0, step: 0 }) };
            record.entries.insert(0, Arc::new(Entry { at: Duration::ZERO, event: sent }));
            record.exchanges()[1].has_altered_id
        };
        assert!(altered(nested(3)) && !altered(nested(100)));
        let long = json!({"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"text": "x".repeat(70_000)}});
        assert!(!altered(Frame::from_value(&long)));
    }

    #[test]
    fn a_capability_is_found_by_its_path_even_if_a_name_contains_dots() {
        let capabilities = json!({"tools": {"listChanged": true}, "extensions": {"com.example/x": {}, "a.b": null}});
        let session_parameters = SessionParameters {
            client_capabilities: json!({}),
            opening: Some(json!({ "capabilities": capabilities })),
            ..SessionParameters::default()
        };
        assert!(session_parameters.declares("tools.listChanged"));
        assert!(session_parameters.declares("extensions.com.example/x"));
        assert!(!session_parameters.declares("extensions.a.b"));
        assert!(!session_parameters.declares("extensions.com.example/y"));
    }
}
