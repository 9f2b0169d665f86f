//! Signs that a request was answered: what among the entries of a connection belongs to it.
//!
//! They are functions of the entries; how long to wait for a better sign is decided by the session.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::limits::{MAX_MESSAGES_AHEAD, RESPONSES_PER_REQUEST};
use crate::transcript::{Entry, Event, messages};
use crate::wire::{Frame, FramingError, Id, MessageKind, is_lost_id, same_id, same_id_loosely};

/// A sign that a request was answered.
pub(super) enum ResponseSign {
    /// A response with its id.
    Exact(Value),
    /// A response with an altered copy of its id.
    Loose(Value),
    /// A message with its id that has neither a result nor an error: malformed, but a response.
    Malformed(Value),
    /// A message that cannot be read.
    Unreadable(FramingError),
    /// A response with an id that no request has.
    Foreign,
    /// The HTTP response ended without a JSON-RPC response.
    Over,
}

/// Whether there is a response with an id that nothing sent contains, in any form, or that too few requests have for
/// all responses with it. `earlier` are the entries of the connection before.
pub(super) fn has_foreign_response(entries: &[Arc<Entry>], earlier: &[Arc<Entry>]) -> bool {
    let all = || earlier.iter().chain(entries);
    find_response(entries, |got| {
        let sent: usize = all().map(|entry| sent_with_id(entry, got)).sum();
        let is_it = |message: &&Value| is_response_to(message, |id| same_id(id, got));
        let responses = all().filter_map(|entry| entry.received()).flat_map(messages).filter(is_it).count();
        sent == 0 || responses > sent * RESPONSES_PER_REQUEST
    })
    .is_some()
}

/// How many messages of an entry were sent with an id, in any form.
fn sent_with_id(entry: &Entry, id: &Id) -> usize {
    match &entry.event {
        Event::Sent { frame, .. } => match frame.json() {
            Some(value) => {
                let ids = messages(value).filter_map(|message| message.get("id"));
                ids.filter(|own| same_id(own, id) || same_id_loosely(own, id)).count()
            }
            // A lenient server may find an id in a line that is not a message.
            None => usize::from(String::from_utf8_lossy(&frame.raw()).contains(&id.to_string())),
        },
        _ => 0,
    }
}

/// The best sign of a response among the entries. `earlier` are the entries of the connection before.
pub(super) fn sign_of(entries: &[Arc<Entry>], earlier: &[Arc<Entry>], id: &Id) -> Option<ResponseSign> {
    let unreadable = || {
        entries.iter().find_map(|entry| match &entry.event {
            Event::Received(Frame { value: Err(damage), .. }) if damage.is_own_limit() => Some(damage.clone()),
            _ => None,
        })
    };
    let loose = || loose_response_to(entries, earlier, id).map(ResponseSign::Loose);
    let over = || is_over(entries, id).then_some(ResponseSign::Over);
    let exact = response_to(entries, id).map(ResponseSign::Exact);
    let malformed = || malformed_response_to(entries, id).map(ResponseSign::Malformed);
    exact.or_else(loose).or_else(|| unreadable().map(ResponseSign::Unreadable)).or_else(malformed).or_else(over)
}

/// A message with exactly this id that has neither a method nor a result nor an error.
pub(super) fn malformed_response_to(entries: &[Arc<Entry>], id: &Id) -> Option<Value> {
    let is_it = |message: &&Value| {
        matches!(MessageKind::of(message), MessageKind::Unknown)
            && message.get("method").is_none()
            && message.get("id").is_some_and(|got| same_id(got, id))
    };
    entries.iter().filter_map(|entry| entry.received()).flat_map(messages).find(is_it).cloned()
}

/// Whether the HTTP response to a request ended without a JSON-RPC response that has an id: nothing else can arrive.
pub(super) fn is_over(entries: &[Arc<Entry>], id: &Id) -> bool {
    let is_unanswered = entries.iter().any(|entry| match &entry.event {
        Event::HttpEnd(end) => end.unanswered.as_ref().is_some_and(|own| same_id(own, id)),
        _ => false,
    });
    is_unanswered || has_body_without_id(entries, id)
}

/// Whether the body of the HTTP response to a request is a JSON-RPC response without an id.
fn has_body_without_id(entries: &[Arc<Entry>], id: &Id) -> bool {
    let has_no_id = |value: &Value| {
        messages(value).any(|message| matches!(MessageKind::of(message), MessageKind::Response { id: None }))
    };
    entries.windows(2).any(|pair| match &pair[1].event {
        Event::HttpEnd(end) => is_carried_by(entries, id, end.number) && pair[0].received().is_some_and(has_no_id),
        _ => false,
    })
}

/// Whether the HTTP request with a number carries the request with an id.
fn is_carried_by(entries: &[Arc<Entry>], id: &Id, number: usize) -> bool {
    entries.iter().any(|entry| match &entry.event {
        Event::HttpRequest(request) if request.number == number => {
            let carried = request.carries.as_ref().and_then(|entry| entry.sent());
            carried.into_iter().flat_map(messages).any(|message| message.get("id").is_some_and(|own| own == id))
        }
        _ => false,
    })
}

/// How long a request was answered after it was sent; `entries` begin with it.
pub(super) fn answer_time(entries: &[Arc<Entry>], id: &Id) -> Option<Duration> {
    let has_id = |message: &Value| message.get("id").is_some_and(|own| same_id(own, id));
    let sent = entries.iter().find(|entry| entry.sent().is_some_and(|value| messages(value).any(has_id)))?;
    let is_response = |message: &Value| is_response_to(message, |own| same_id(own, id));
    let answered =
        entries.iter().find(|entry| entry.received().is_some_and(|value| messages(value).any(is_response)))?;
    Some(answered.at.saturating_sub(sent.at))
}

/// How long a request was answered after it was sent, if it says something about others: an extreme message takes as long as it
/// takes.
pub(super) fn usual_answer_time(entries: &[Arc<Entry>], id: &Id) -> Option<Duration> {
    let has_id = |message: &Value| message.get("id").is_some_and(|own| same_id(own, id));
    let is_extreme = |entry: &Arc<Entry>| match &entry.event {
        Event::Sent { frame, .. } => {
            frame.json().is_some_and(|value| messages(value).any(has_id)) && frame.may_be_unreadable()
        }
        _ => false,
    };
    answer_time(entries, id).filter(|_| !entries.iter().any(is_extreme))
}

/// How long a request was answered after it was sent, or after the last response to a request that was sent before it, if
/// that came later: a server may serve one at a time.
pub(super) fn answer_time_among_others(entries: &[Arc<Entry>], id: &Id) -> Option<Duration> {
    let whole = answer_time(entries, id)?;
    let has_id = |message: &Value, id: &Id| message.get("id").is_some_and(|own| same_id(own, id));
    let sent = |id: &Id| {
        let is_it = |entry: &Arc<Entry>| entry.sent().is_some_and(|value| messages(value).any(|one| has_id(one, id)));
        entries.iter().position(is_it)
    };
    let (own, mut before) = (sent(id)?, None);
    for entry in &entries[own..] {
        for message in entry.received().into_iter().flat_map(messages) {
            let MessageKind::Response { id: Some(answered) } = MessageKind::of(message) else { continue };
            if same_id(answered, id) {
                return Some(before.map_or(whole, |before| whole.min(entry.at.saturating_sub(before))));
            }
            if sent(answered).is_some_and(|other| other < own) {
                before = Some(entry.at);
            }
        }
    }
    Some(whole)
}

/// How many of the messages sent before a request follow the last one of them that is answered: a server that serves one
/// at a time serves them first. `known` are all entries of the connection.
pub(super) fn messages_ahead(earlier: &[Arc<Entry>], known: &[Arc<Entry>]) -> usize {
    let answered = |message: &Value| {
        known.iter().rev().filter_map(|entry| entry.received()).flat_map(messages).any(|received| {
            matches!(MessageKind::of(received), MessageKind::Response { id: Some(id) } if message.get("id") == Some(id))
        })
    };
    sent(earlier)
        .rev()
        .take(MAX_MESSAGES_AHEAD)
        .take_while(|entry| !entry.sent().is_some_and(|value| messages(value).any(answered)))
        .count()
}

/// How many messages were sent.
pub(super) fn messages_sent(entries: &[Arc<Entry>]) -> usize {
    sent(entries).count()
}

fn sent(entries: &[Arc<Entry>]) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
    entries.iter().filter(|entry| matches!(entry.event, Event::Sent { .. }))
}

/// The response with exactly this id.
pub(super) fn response_to(entries: &[Arc<Entry>], id: &Id) -> Option<Value> {
    find_response(entries, |got| same_id(got, id))
}

/// Whether this is an altered copy of an id: of another type, and not the id of another request, be it sent later.
pub(super) fn is_altered_copy(got: &Id, id: &Id, earlier: &[Arc<Entry>], entries: &[Arc<Entry>]) -> bool {
    let mut sent = earlier.iter().chain(entries).filter_map(|entry| entry.sent()).flat_map(messages);
    same_id_loosely(id, got) && !sent.any(|message| message.get("id").is_some_and(|own| same_id(own, got)))
}

/// A response with an altered copy of the id: another type, or none if nothing else is pending.
fn loose_response_to(entries: &[Arc<Entry>], earlier: &[Arc<Entry>], id: &Id) -> Option<Value> {
    let sent = entries.iter().filter(|entry| entry.sent().is_some()).count();
    let others: Vec<&Value> = bodies_for_others(entries, id);
    find_response_in(entries, |message, got| {
        if is_lost_id(got) {
            same_id_loosely(id, got) && sent <= 1 && !others.iter().any(|other| std::ptr::eq(*other, message))
        } else {
            is_altered_copy(got, id, earlier, entries)
        }
    })
}

/// The bodies of HTTP responses to other requests: the entry for the end of an HTTP response directly follows its
/// body and identifies the request.
fn bodies_for_others<'a>(entries: &'a [Arc<Entry>], id: &Id) -> Vec<&'a Value> {
    entries
        .windows(2)
        .filter_map(|pair| match &pair[1].event {
            Event::HttpEnd(end) if !is_carried_by(entries, id, end.number) => pair[0].received(),
            _ => None,
        })
        .collect()
}

/// The last response whose id is wanted.
pub(super) fn find_response(entries: &[Arc<Entry>], wanted: impl Fn(&Id) -> bool) -> Option<Value> {
    find_response_in(entries, |_, id| wanted(id))
}

fn find_response_in(entries: &[Arc<Entry>], wanted: impl Fn(&Value, &Id) -> bool) -> Option<Value> {
    entries
        .iter()
        .rev()
        .filter_map(|entry| entry.received())
        .flat_map(messages)
        .find_map(|message| is_response_to(message, |id| wanted(message, id)).then(|| message.clone()))
}

fn is_response_to(message: &Value, wanted: impl Fn(&Id) -> bool) -> bool {
    matches!(MessageKind::of(message), MessageKind::Response { id: Some(id) } if wanted(id))
}

/// Whether a request like this one, with the same method and parameters, was sent later and answered: then the server has
/// passed this one over, unless it serves some of them much later than others, as it may with calls.
pub(super) fn is_overtaken(entries: &[Arc<Entry>], id: &Id) -> bool {
    let requests: Vec<&Value> = entries
        .iter()
        .filter_map(|entry| entry.sent())
        .flat_map(messages)
        .filter(|message| message.get("method").is_some() && message.get("id").is_some())
        .collect();
    let Some(own) = requests.iter().position(|request| request.get("id").is_some_and(|sent| same_id(sent, id))) else {
        return false;
    };
    let is_answered = |request: &Value| {
        let is_response =
            |message: &Value| is_response_to(message, |got| request.get("id").is_some_and(|id| same_id(got, id)));
        entries.iter().filter_map(|entry| entry.received()).flat_map(messages).any(is_response)
    };
    requests[own + 1..].iter().any(|later| asks_the_same(requests[own], later) && is_answered(later))
}

/// Whether two requests have the same method and the same parameters besides `_meta`, and are no calls. Null stands for no
/// parameters.
fn asks_the_same(one: &Value, other: &Value) -> bool {
    let params = |request: &Value| {
        let given = request.get("params").filter(|params| !params.is_null());
        let mut params = given.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        params.as_object_mut().map(|params| params.shift_remove("_meta"));
        params
    };
    let is_call = one.get("method").is_some_and(|method| method == "tools/call");
    !is_call && one.get("method") == other.get("method") && params(one) == params(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(event: Event) -> Arc<Entry> {
        Arc::new(Entry { at: Duration::ZERO, event })
    }

    #[test]
    fn the_response_to_a_pending_request_is_no_altered_response_to_another() {
        let id = json!("271828");
        let earlier = [entry(Event::Sent { frame: Frame::from_value(&json!({ "id": 271_828 })), step_id: None })];
        let received = [entry(Event::Received(Frame::from_value(&json!({ "id": 271_828, "result": {} }))))];
        assert!(matches!(sign_of(&received, &[], &id), Some(ResponseSign::Loose(_))));
        assert!(sign_of(&received, &earlier, &id).is_none());
        // A server that serves one request at a time may come to the later one first.
        let [sent] = earlier;
        let [received] = received;
        assert!(sign_of(&[sent, received], &[], &id).is_none());
    }

    #[test]
    fn an_answer_that_was_not_waited_for_at_once_took_no_longer() {
        let at = |millis: u64, event: Event| Arc::new(Entry { at: Duration::from_millis(millis), event });
        let sent =
            |id: i64| Event::Sent { frame: Frame::from_value(&json!({ "id": id, "method": "ping" })), step_id: None };
        let received = Event::Received(Frame::from_value(&json!({ "id": 1, "result": {} })));
        let entries = [at(10, sent(1)), at(20, sent(2)), at(2_010, received)];
        assert_eq!(answer_time(&entries, &json!(1)), Some(Duration::from_secs(2)));
        assert_eq!(answer_time(&entries, &json!(2)), None);
    }

    #[test]
    fn a_request_is_overtaken_by_the_answer_to_a_later_one_that_asks_the_same() {
        let sent = |message: Value| entry(Event::Sent { frame: Frame::from_value(&message), step_id: None });
        let answer = |id: i64| entry(Event::Received(Frame::from_value(&json!({ "id": id, "result": {} }))));
        let own = json!({ "jsonrpc": "1.0", "id": 1, "method": "ping" });
        let same = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping", "params": { "_meta": {} } });
        let overtaken = |messages: &[Value], answered: i64| {
            let entries: Vec<Arc<Entry>> = messages.iter().cloned().map(sent).chain([answer(answered)]).collect();
            is_overtaken(&entries, &json!(1))
        };
        assert!(overtaken(&[own.clone(), same.clone()], 2));
        let with_null = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": null });
        assert!(overtaken(&[with_null, same.clone()], 2), "null stands for no parameters");
        assert!(!overtaken(&[own.clone(), same.clone()], 1), "the later one is not answered");
        assert!(!overtaken(&[same, own.clone()], 2), "it was sent before");
        let other = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping", "params": { "more": 1 } });
        assert!(!overtaken(&[own, other], 2), "it asks for something else");
        let call = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "a" } });
        assert!(!overtaken(&[call(1), call(2)], 2), "one call may take longer than another");
    }

    #[test]
    fn a_request_behind_others_takes_the_time_after_them() {
        let at = |seconds: u64, event: Event| Arc::new(Entry { at: Duration::from_secs(seconds), event });
        let sent =
            |id: i64| Event::Sent { frame: Frame::from_value(&json!({ "id": id, "method": "ping" })), step_id: None };
        let received = |id: i64| Event::Received(Frame::from_value(&json!({ "id": id, "result": {} })));
        let seconds = |entries: &[Arc<Entry>], id: i64| {
            answer_time_among_others(entries, &json!(id)).map(|duration| duration.as_secs())
        };
        // One at a time.
        let in_turn = [
            at(0, sent(1)),
            at(0, sent(2)),
            at(0, sent(3)),
            at(2, received(1)),
            at(4, received(2)),
            at(6, received(3)),
        ];
        assert_eq!([1, 2, 3].map(|id| seconds(&in_turn, id)), [Some(2); 3]);
        // What is sent later, and answered sooner, does not make it any faster.
        let overtaken = [at(0, sent(1)), at(5, sent(2)), at(6, received(2)), at(7, received(1))];
        assert_eq!([1, 2, 3].map(|id| seconds(&overtaken, id)), [Some(7), Some(1), None]);
    }

    #[test]
    fn messages_after_the_last_answered_request_are_ahead() {
        let sent = |message: Value| entry(Event::Sent { frame: Frame::from_value(&message), step_id: None });
        let response = |id: i64| entry(Event::Received(Frame::from_value(&json!({ "id": id, "result": {} }))));
        let request = |id: i64| sent(json!({ "id": id, "method": "ping" }));
        let notification = || sent(json!({ "method": "notifications/roots/list_changed" }));
        let mut known = vec![request(1), response(1), request(2), notification(), request(3), request(4)];
        assert_eq!(messages_ahead(&known[..5], &known), 3);
        assert_eq!(messages_ahead(&known[..2], &known), 0);
        known.push(response(2));
        assert_eq!(messages_ahead(&known[..5], &known), 2);
        known.push(response(3));
        assert_eq!(messages_ahead(&known[..5], &known), 0);
        let all: Vec<_> = (0..100).map(request).collect();
        assert_eq!(messages_ahead(&all, &all), MAX_MESSAGES_AHEAD);
    }
}
