//! The checks of what subscriptions of the stateless era deliver.
//!
//! What a server sends after a subscription was cancelled, but before it answers a later request, may have been sent
//! before it read the cancellation and is not judged.

use serde_json::Value;

use super::index::{ConnectionIndex, method_of};
use super::list::{List, PROMPTS, RESOURCES, TOOLS};
use super::subscription_opening::{ACKNOWLEDGED, subscription_id, subscriptions};
use super::text::shortened;
use super::violation::{CheckResult, Violation};
use crate::transcript::Exchange;
use crate::wire::{same_id, same_id_loosely};

const UPDATED: &str = "notifications/resources/updated";

fn filter_of<'a>(subscription: &Exchange<'a>) -> Option<&'a Value> {
    subscription.request.pointer("/params/notifications")
}

fn uris(filter: &Value) -> impl Iterator<Item = &str> {
    filter.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a filter requests a notification; for an update, whether it names the URI or one that contains it.
fn requests(filter: &Value, message: &Value) -> bool {
    let method = method_of(message);
    if method == UPDATED {
        let uri = message.pointer("/params/uri").and_then(Value::as_str).unwrap_or_default();
        return uris(filter).any(|requested| uri.starts_with(requested.trim_end_matches('/')));
    }
    let list = [&TOOLS, &PROMPTS, &RESOURCES].into_iter().find(|list| list.notification == method);
    list.is_some_and(|list| filter.get(list.filter_member) == Some(&Value::Bool(true)))
}

/// Whether a message announces a change.
fn is_change(message: &Value) -> bool {
    let method = method_of(message);
    method == UPDATED || [TOOLS, PROMPTS, RESOURCES].iter().any(|list| list.notification == method)
}

/// The position at which the client cancelled a request.
fn cancelled_at(index: &ConnectionIndex<'_>, id: &Value) -> Option<usize> {
    index.record.entries.iter().position(|entry| {
        entry.sent().is_some_and(|sent| {
            method_of(sent) == "notifications/cancelled"
                && sent.pointer("/params/requestId").is_some_and(|of| same_id(of, id))
        })
    })
}

/// The position from which a cancelled subscription delivers nothing: the first response to a request that was sent
/// after the cancellation.
fn silent_from(index: &ConnectionIndex<'_>, subscription: &Exchange<'_>) -> Option<usize> {
    let cancelled = cancelled_at(index, subscription.request.get("id")?)?;
    let later = index.exchanges.iter().filter(|exchange| exchange.sent > cancelled);
    later.filter_map(|exchange| exchange.responses.first().map(|(at, _)| *at)).min()
}

/// Whether a subscription was open from one position to another: acknowledged before, neither answered nor cancelled
/// until after it.
fn is_open_during(index: &ConnectionIndex<'_>, subscription: &Exchange<'_>, from: usize, to: usize) -> bool {
    let Some(id) = subscription.request.get("id") else { return false };
    let is_acknowledged = index.received().any(|(at, message)| {
        at < from && method_of(message) == ACKNOWLEDGED && subscription_id(message).is_some_and(|of| same_id(of, id))
    });
    is_acknowledged
        && subscription.responses.first().is_none_or(|(at, _)| *at > to)
        && cancelled_at(index, id).is_none_or(|at| at > to)
}

/// Checks that a subscription to something that the server declares is acknowledged.
pub(super) fn accepted(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let session_parameters = &index.record.session_parameters;
    for subscription in subscriptions(index) {
        let (Some(id), Some(filter)) = (subscription.request.get("id"), filter_of(subscription)) else { continue };
        let lists = [&TOOLS, &PROMPTS, &RESOURCES];
        let requests_list = lists
            .iter()
            .any(|list| session_parameters.declares(list.capability) && filter.get(list.filter_member).is_some());
        let requests_resource = session_parameters.declares("resources.subscribe") && uris(filter).next().is_some();
        if !requests_list && !requests_resource {
            continue;
        }
        let is_acknowledged = index.received().any(|(at, message)| {
            at > subscription.sent
                && method_of(message) == ACKNOWLEDGED
                && subscription_id(message).is_some_and(|of| same_id_loosely(id, of))
        });
        let rejection = subscription.responses.first().filter(|(_, response)| response.get("error").is_some());
        // An error after a cancellation may be its effect.
        let is_late = rejection.is_some_and(|(at, _)| cancelled_at(index, id).is_some_and(|cancelled| *at > cancelled));
        // Over HTTP each request has its own response, so that the responses to others prove nothing.
        let had_time = match index.http.iter().find(|entries| entries.sent == subscription.sent) {
            Some(entries) => {
                let own = entries.read(index.record);
                let body = own.value.get("body");
                let events = body.and_then(|body| body["events"].as_array());
                body.is_some_and(|body| body["complete"] == true) || events.is_some_and(|events| !events.is_empty())
            }
            None => index.exchanges.iter().any(|other| other.sent > subscription.sent && !other.responses.is_empty()),
        };
        match rejection {
            Some(_) if is_late && !is_acknowledged => {}
            Some((at, response)) if !is_late => {
                let code = response.pointer("/error/code").map_or_else(|| "no code".to_owned(), Value::to_string);
                checked.record(Some(Violation::new(
                    format!("an error with {code}"),
                    "subscriptions/listen",
                    &[subscription.sent, *at],
                )));
            }
            _ if is_acknowledged => checked.record(None),
            _ if had_time => {
                checked.record(Some(Violation::new(
                    "no acknowledgement",
                    "subscriptions/listen",
                    &[subscription.sent],
                )));
            }
            _ => {}
        }
    }
    checked
}

/// Checks that notifications of a subscription carry the id of its request.
pub(super) fn id_in_notifications(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, message) in index.received().filter(|(_, message)| is_change(message)) {
        let mut before = subscriptions(index).filter(|subscription| subscription.sent < position).peekable();
        if before.peek().is_none() {
            continue;
        }
        let id = subscription_id(message);
        let is_known =
            before.any(|subscription| id.zip(subscription.request.get("id")).is_some_and(|(id, own)| same_id(id, own)));
        checked.record((!is_known).then(|| {
            let tag = id.map_or_else(|| "without an id".to_owned(), |id| format!("with the id {id}"));
            Violation::new(format!("{} {tag}", method_of(message)), method_of(message), &[position])
        }));
    }
    checked
}

/// Checks that the server announces nothing that no subscription requested.
pub(super) fn delivers_only_requested(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, message) in index.received().filter(|(_, message)| is_change(message)) {
        let id = subscription_id(message);
        let before: Vec<&Exchange<'_>> =
            subscriptions(index).filter(|subscription| subscription.sent < position).collect();
        let own = before
            .iter()
            .find(|subscription| id.zip(subscription.request.get("id")).is_some_and(|(id, own)| same_id(id, own)));
        // A notification without an id may belong to any subscription; `id_in_notifications` reports that it has none.
        let candidates = own.map_or(before.as_slice(), std::slice::from_ref);
        if candidates.is_empty() {
            continue;
        }
        let is_requested = candidates
            .iter()
            .any(|subscription| filter_of(subscription).is_some_and(|filter| requests(filter, message)));
        checked.record((!is_requested).then(|| {
            let uri = message.pointer("/params/uri").and_then(Value::as_str).unwrap_or_default();
            let actual = format!("{} {}", method_of(message), shortened(uri, 80));
            Violation::new(actual.trim_end(), method_of(message), &[candidates[0].sent, position])
        }));
    }
    checked
}

/// Checks that a subscription which the client cancelled delivers nothing more.
pub(super) fn ends_when_cancelled(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for subscription in subscriptions(index) {
        let (Some(id), Some(from)) = (subscription.request.get("id"), silent_from(index, subscription)) else {
            continue;
        };
        let late = index.received().find(|(at, message)| {
            *at > from
                && method_of(message).starts_with("notifications/")
                && subscription_id(message).is_some_and(|of| same_id(of, id))
        });
        // Silence proves nothing about a subscription that never was open.
        let is_acknowledged = index.received().any(|(_, message)| {
            method_of(message) == ACKNOWLEDGED && subscription_id(message).is_some_and(|of| same_id(of, id))
        });
        if late.is_none() && !is_acknowledged {
            continue;
        }
        checked.record(late.map(|(at, message)| {
            let method = shortened(method_of(message), 60);
            Violation::new(format!("{method} after the cancellation"), method, &[subscription.sent, from, at])
        }));
    }
    checked
}

/// Checks that a list which changed while a client subscribed to its changes was announced.
pub(super) fn list_change_announced(index: &ConnectionIndex<'_>, list: &List) -> CheckResult {
    let mut checked = CheckResult::default();
    if !index.record.session_parameters.declares(list.capability) {
        return checked;
    }
    for pair in list.complete_readings(index).windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let end = before.last_response;
        let is_subscribed = subscriptions(index).any(|subscription| {
            let requested =
                filter_of(subscription).and_then(|filter| filter.get(list.filter_member)) == Some(&Value::Bool(true));
            // The list may have changed before the client subscribed, unless the client subscribed right after the
            // first reading and called no tool in between.
            let is_undisturbed =
                !index.exchanges_of("tools/call").any(|call| call.sent > end && call.sent < subscription.sent);
            requested
                && subscription.sent > end
                && is_undisturbed
                && is_open_during(index, subscription, after.first_request, after.last_response)
        });
        if before.keys != after.keys && is_subscribed {
            let is_announced =
                index.received().any(|(at, message)| at > end && method_of(message) == list.notification);
            checked.record((!is_announced).then(|| {
                let positions = [before.first_request, after.first_request, after.last_response];
                Violation::new("the list changed without a notification", list.method, &positions)
            }));
        }
    }
    checked
}

/// Checks that a resource which changed while a client subscribed to its updates was announced. A resource that
/// differs each time that it is read is not judged.
pub(super) fn resource_updates_announced(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    if !index.record.session_parameters.declares("resources.subscribe") {
        return checked;
    }
    let reads: Vec<(&str, usize, usize, &Value)> = index
        .exchanges
        .iter()
        .filter(|exchange| method_of(exchange.request) == "resources/read")
        .filter_map(|exchange| {
            let uri = exchange.request.pointer("/params/uri")?.as_str()?;
            let (at, response) = exchange.responses.first()?;
            Some((uri, exchange.sent, *at, response.pointer("/result/contents")?))
        })
        .collect();
    for (number, (uri, sent, at, contents)) in reads.iter().enumerate() {
        let earlier: Vec<_> = reads[..number].iter().filter(|(other, ..)| other == uri).collect();
        let [.., (_, _, _, first), (_, _, known, second)] = earlier.as_slice() else { continue };
        if first != second || second == contents {
            continue;
        }
        let requests_it = |subscription: &Exchange<'_>| {
            filter_of(subscription).is_some_and(|filter| uris(filter).any(|of| of == *uri))
        };
        if subscriptions(index)
            .any(|subscription| requests_it(subscription) && is_open_during(index, subscription, *known, *at))
        {
            let is_announced = index.received().any(|(at, message)| {
                at > *known
                    && method_of(message) == UPDATED
                    && message.pointer("/params/uri").and_then(Value::as_str).is_some_and(|of| of.starts_with(uri))
            });
            checked.record(
                (!is_announced).then(|| {
                    Violation::new("the resource changed without a notification", *uri, &[*known, *sent, *at])
                }),
            );
        }
    }
    checked
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::check::{IndexedConnections, RecordedConnection};
    use crate::spec::Revision;
    use crate::transcript::{Entry, Event, SessionParameters, Transcript};
    use crate::wire::Frame;

    fn record(messages: &[(bool, Value)]) -> Vec<RecordedConnection> {
        let entries = messages.iter().map(|(is_sent, message)| {
            let frame = Frame::from_value(message);
            let event = if *is_sent { Event::Sent { frame, step_id: None } } else { Event::Received(frame) };
            Arc::new(Entry { at: Duration::ZERO, event })
        });
        let lists = json!({"listChanged": true});
        let capabilities = json!({"tools": lists, "prompts": lists, "resources": {"subscribe": true}});
        let session_parameters = SessionParameters {
            client_capabilities: json!({}),
            opening: Some(json!({"capabilities": capabilities})),
            ..SessionParameters::default()
        };
        vec![RecordedConnection {
            label: String::new(),
            transcript: Transcript { entries: entries.collect(), session_parameters },
        }]
    }

    fn request(id: i64, method: &str, mut params: Value) -> (bool, Value) {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        (true, json!({"id": id, "method": method, "params": params}))
    }

    fn subscribe(id: i64, filter: &Value) -> (bool, Value) {
        request(id, "subscriptions/listen", json!({"notifications": filter}))
    }

    fn notification(id: i64, method: &str) -> (bool, Value) {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        (false, json!({"method": method, "params": {"_meta": meta, "uri": "a:///b/c"}}))
    }

    fn listed(id: i64, names: &[&str]) -> [(bool, Value); 2] {
        let tools: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        [request(id, "tools/list", json!({})), (false, json!({"id": id, "result": {"tools": tools}}))]
    }

    /// How many things a check checked, and how many of them are violations.
    fn run(check: impl Fn(&ConnectionIndex<'_>) -> CheckResult, messages: &[(bool, Value)]) -> (usize, usize) {
        let connected = record(messages);
        let checked = check(&IndexedConnections::new(&connected, Revision::V2026_07_28).connections[0]);
        (checked.count, checked.violations.len())
    }

    #[test]
    fn a_notification_carries_the_id_and_was_requested() {
        let tools = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:///b"]});
        let with = |message| [subscribe(1, &tools), notification(1, ACKNOWLEDGED), message];
        assert_eq!(run(id_in_notifications, &with(notification(1, TOOLS.notification))), (1, 0));
        assert_eq!(run(id_in_notifications, &with(notification(2, TOOLS.notification))), (1, 1));
        assert_eq!(run(delivers_only_requested, &with(notification(1, TOOLS.notification))), (1, 0));
        assert_eq!(run(delivers_only_requested, &with(notification(1, PROMPTS.notification))), (1, 1));
        assert_eq!(
            run(delivers_only_requested, &with(notification(1, UPDATED))),
            (1, 0),
            "it is a part of what was requested"
        );
        assert_eq!(
            run(id_in_notifications, &[notification(1, UPDATED)]),
            (0, 0),
            "there is no subscription, which is another rule"
        );
    }

    #[test]
    fn a_subscription_is_judged_once_the_server_had_time_to_accept_it() {
        let requested = subscribe(1, &json!({"toolsListChanged": true}));
        let other = [request(2, "ping", json!({})), (false, json!({"id": 2, "result": {}}))];
        let rejection = (false, json!({"id": 1, "error": {"code": -32601, "message": ""}}));
        assert_eq!(run(accepted, &[requested.clone(), notification(1, ACKNOWLEDGED)]), (1, 0));
        let cancel = (true, json!({"method": "notifications/cancelled", "params": {"requestId": 1}}));
        assert_eq!(run(accepted, &[requested.clone(), rejection.clone()]), (1, 1));
        assert_eq!(run(accepted, &[requested.clone(), cancel, rejection]), (0, 0), "the error may be its effect");
        assert_eq!(run(accepted, std::slice::from_ref(&requested)), (0, 0));
        assert_eq!(run(accepted, &[&[requested], other.as_slice()].concat()), (1, 1));
        assert_eq!(
            run(accepted, &[subscribe(1, &json!({"resourcesListChanged": true}))]),
            (0, 0),
            "it was not declared"
        );
    }

    #[test]
    fn a_notification_after_a_cancellation_may_have_been_sent_before_it() {
        let cancel = (true, json!({"method": "notifications/cancelled", "params": {"requestId": 1}}));
        let requested = subscribe(1, &json!({"toolsListChanged": true}));
        let begin = [requested.clone(), notification(1, ACKNOWLEDGED), cancel.clone()];
        let late = notification(1, TOOLS.notification);
        let mut messages = begin.to_vec();
        messages.push(late.clone());
        assert_eq!(run(ends_when_cancelled, &messages), (0, 0));
        messages.extend(listed(2, &["a"]));
        assert_eq!(run(ends_when_cancelled, &messages), (1, 0));
        messages.push(late);
        assert_eq!(run(ends_when_cancelled, &messages), (1, 1));
        let unacknowledged = [[requested, cancel].as_slice(), &listed(2, &["a"])].concat();
        assert_eq!(run(ends_when_cancelled, &unacknowledged), (0, 0), "there may be no subscription that could end");
    }

    #[test]
    fn a_list_that_changed_during_a_subscription_is_announced() {
        let open = [subscribe(1, &json!({"toolsListChanged": true})), notification(1, ACKNOWLEDGED)];
        let with = |between: &[(bool, Value)]| {
            [listed(2, &["a"]).as_slice(), &open, between, &listed(3, &["a", "b"])].concat()
        };
        let tools = |index: &ConnectionIndex<'_>| list_change_announced(index, &TOOLS);
        assert_eq!(run(tools, &with(&[])), (1, 1));
        assert_eq!(run(tools, &with(&[notification(1, TOOLS.notification)])), (1, 0));
        let without_subscription = [listed(2, &["a"]), listed(3, &["b"])].concat();
        assert_eq!(run(tools, &without_subscription), (0, 0));
    }

    #[test]
    fn a_resource_that_differs_each_time_is_not_judged() {
        let read = |id: i64, text: &str| {
            let read = request(id, "resources/read", json!({"uri": "a:///b"}));
            [read, (false, json!({"id": id, "result": {"contents": [{"text": text}]}}))]
        };
        let open = [subscribe(1, &json!({"resourceSubscriptions": ["a:///b"]})), notification(1, ACKNOWLEDGED)];
        let with = |texts: [&str; 3], between: &[(bool, Value)]| {
            let [first, second, third] = [read(2, texts[0]), read(3, texts[1]), read(4, texts[2])];
            [first.as_slice(), &open, &second, between, &third].concat()
        };
        assert_eq!(run(resource_updates_announced, &with(["x", "x", "y"], &[])), (1, 1));
        assert_eq!(run(resource_updates_announced, &with(["x", "x", "y"], &[notification(1, UPDATED)])), (1, 0));
        assert_eq!(run(resource_updates_announced, &with(["x", "y", "z"], &[])), (0, 0));
        assert_eq!(run(resource_updates_announced, &with(["x", "x", "x"], &[])), (0, 0));
    }
}
