//! Tests of the rules with parameters with hand-made records.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::{check_named, check_rule};
use super::index::ConnectionIndex;
use super::violation::CheckResult;
use super::{IndexedConnections, RecordedConnection};
use crate::case::{ConnectionCheck, ConnectionRule};
use crate::spec::Revision;
use crate::transcript::{Entry, Event, SessionParameters, StepId, Transcript};
use crate::wire::Frame;

const REVISION: Revision = Revision::V2025_11_25;

/// The number of things that a rule checks on a connection, and what the server did where it violates the rule; what
/// the client sends is `true`.
fn run(rule: Value, capabilities: Value, messages: &[(bool, Value)]) -> (usize, Vec<String>) {
    let rule: ConnectionRule = serde_json::from_value(rule).expect("a rule");
    let events = messages.iter().map(|(is_sent, message)| {
        let frame = Frame::from_value(message);
        if *is_sent { Event::Sent { frame, step_id: None } } else { Event::Received(frame) }
    });
    run_on_events(events, capabilities, |connection| check_rule(&rule, connection))
}

/// The same of a check of what happened on a connection.
fn run_on_events(
    events: impl Iterator<Item = Event>,
    capabilities: Value,
    check: impl Fn(&ConnectionIndex<'_>) -> CheckResult,
) -> (usize, Vec<String>) {
    let entry = |(at, event)| Arc::new(Entry { at: Duration::from_secs(at as u64), event });
    let entries = events.enumerate().map(entry);
    let mut opening = json!({ "protocolVersion": REVISION.as_str() });
    opening["capabilities"] = capabilities;
    let session_parameters =
        SessionParameters { client_capabilities: json!({}), opening: Some(opening), ..SessionParameters::default() };
    let transcript = Transcript { entries: entries.collect(), session_parameters };
    let connected = [RecordedConnection { label: "main".to_owned(), transcript }];
    let watched = IndexedConnections::new(&connected, REVISION);
    let checked = check(&watched.connections[0]);
    (checked.count, checked.violations.into_iter().map(|violation| violation.actual).collect())
}

/// How many things a rule checks, and how many violate it, on a server without capabilities.
fn count(rule: &Value, messages: &[(bool, Value)]) -> (usize, usize) {
    let (count, violations) = run(rule.clone(), json!({}), messages);
    (count, violations.len())
}

fn exchange(id: i64, method: &str, params: Value, result: Value) -> [(bool, Value); 2] {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    let mut response = json!({"jsonrpc": "2.0", "id": id});
    response["result"] = result;
    [(true, request), (false, response)]
}

fn notification(method: &str, params: Value) -> (bool, Value) {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    message["params"] = params;
    (false, message)
}

/// A page of the tool list, requested by a cursor if it is not the first.
fn page(id: i64, cursor: Option<&str>, tools: Value, next: Option<&str>) -> [(bool, Value); 2] {
    let mut result = json!({"cacheScope": "private"});
    result["tools"] = tools;
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    exchange(id, "tools/list", params, result)
}

#[test]
fn items_of_a_list_are_unique_from_its_first_page_to_its_last() {
    let rule = |except: &str| json!({"unique": {"within": "list", "methods": ["tools/list"], "path": "/tools/*/name", "except": except}});
    let (overlap, identical) = (rule("page-overlap"), rule("identical"));
    let two_pages =
        |first: Value, second: Value| [page(1, None, first, Some("c")), page(2, Some("c"), second, None)].concat();
    let different = two_pages(json!([{"name": "a"}]), json!([{"name": "b"}]));
    assert_eq!((count(&overlap, &different), count(&identical, &different)), ((2, 0), (2, 0)));
    let overlapping = two_pages(json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "b"}]));
    assert_eq!((count(&overlap, &overlapping), count(&identical, &overlapping)), ((3, 0), (3, 0)));
    let repeated = two_pages(json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "a"}]));
    assert_eq!((count(&overlap, &repeated), count(&identical, &repeated)), ((3, 1), (3, 0)));
    let redefined = two_pages(json!([{"name": "a"}]), json!([{"name": "a", "title": "A"}]));
    assert_eq!((count(&overlap, &redefined), count(&identical, &redefined)), ((2, 1), (2, 1)));
    let (_, violations) = run(overlap.clone(), json!({}), &redefined);
    assert_eq!(violations, ["two tools have the name `a`"]);
    let two_lists = [page(1, None, json!([{"name": "a"}]), None), page(2, None, json!([{"name": "a"}]), None)].concat();
    assert_eq!(count(&overlap, &two_lists), (2, 0), "each list is checked by itself");
}

#[test]
fn a_single_value_of_a_connection_proves_nothing() {
    let rule = json!({"unique": {"within": "connection", "methods": ["tools/call"], "path": "/task/taskId"}});
    let created = |id: i64, task: &str| exchange(id, "tools/call", json!({}), json!({"task": {"taskId": task}}));
    assert_eq!(count(&rule, &created(1, "x")), (0, 0));
    assert_eq!(count(&rule, &[created(1, "x"), created(2, "y")].concat()), (1, 0));
    assert_eq!(count(&rule, &[created(1, "x"), created(2, "x")].concat()), (1, 1));
}

#[test]
fn a_value_is_the_same_on_all_pages() {
    let rule = json!({"same-across-pages": {"methods": ["tools/list"], "path": "/cacheScope"}});
    let mut pages = [page(1, None, json!([]), Some("c")), page(2, Some("c"), json!([]), None)].concat();
    assert_eq!(count(&rule, &pages), (1, 0));
    assert_eq!(count(&rule, &pages[..2]), (0, 0), "a single page proves nothing");
    pages[3].1["result"]["cacheScope"] = json!("public");
    let (_, violations) = run(rule.clone(), json!({}), &pages);
    assert_eq!(violations, ["cacheScope of the first page is \"private\", of a later page \"public\""]);
    pages[3].1["result"].as_object_mut().expect("an object").remove("cacheScope");
    assert_eq!(count(&rule, &pages), (1, 1));
}

#[test]
fn a_capability_is_declared_before_it_is_used() {
    let flag = json!({"requires-capability": {
        "capability": "tools.listChanged", "kind": "notification", "methods": ["notifications/tools/list_changed"],
    }});
    let changed = [notification("notifications/tools/list_changed", json!({}))];
    for (capabilities, violations) in
        [(json!({"tools": {"listChanged": true}}), 0), (json!({"tools": {"listChanged": false}}), 1), (json!({}), 1)]
    {
        assert_eq!(run(flag.clone(), capabilities, &changed).1.len(), violations);
    }
    let embedded = json!({"requires-capability": {
        "capability": "resources", "kind": "result", "methods": ["tools/call"], "matching": {"required": ["resource"]},
    }});
    let with = |result: Value| exchange(1, "tools/call", json!({"name": "t"}), result);
    assert_eq!(count(&embedded, &with(json!({}))), (0, 0));
    assert_eq!(count(&embedded, &with(json!({"resource": 1}))), (1, 1));
    assert_eq!(run(embedded, json!({"resources": {}}), &with(json!({"resource": 1}))), (1, Vec::new()));
}

#[test]
fn a_notification_comes_after_the_request_that_has_the_same_value() {
    let rule = json!({"only-after-request": {
        "notifications": ["notifications/progress"],
        "equal": {"notification": "/params/progressToken", "request": "/params/_meta/progressToken"},
    }});
    let [request, response] = exchange(1, "tools/call", json!({"_meta": {"progressToken": 7}}), json!({}));
    let progress = |token: Value| notification("notifications/progress", json!({"progressToken": token}));
    let with = |token: Value| [request.clone(), progress(token), response.clone()];
    assert_eq!(count(&rule, &with(json!(7))), (1, 0));
    assert_eq!(count(&rule, &with(json!("7"))), (1, 1));
    assert_eq!(count(&rule, &[progress(json!(7)), request.clone()]), (1, 1));
    assert_eq!(count(&rule, &[request.clone(), notification("notifications/progress", json!({}))]), (0, 0));
}

#[test]
fn the_absence_of_messages_proves_something_only_if_the_rule_says_so() {
    let rule = |absence: &str| {
        json!({"only-after-request": {
            "notifications": ["notifications/resources/updated"], "request": "subscriptions/listen", "absence": absence,
        }})
    };
    let answered = exchange(1, "tools/list", json!({}), json!({"tools": []}));
    assert_eq!(count(&rule("pass"), &exchange(1, "ping", json!({}), json!({}))), (0, 0), "an empty result");
    assert_eq!((count(&rule("pass"), &answered), count(&rule("skip"), &answered)), ((1, 0), (0, 0)));
    let updated = notification("notifications/resources/updated", json!({}));
    assert_eq!(count(&rule("pass"), &[answered.to_vec(), vec![updated.clone()]].concat()), (1, 1));
    let subscription = exchange(2, "subscriptions/listen", json!({}), json!({}));
    assert_eq!(count(&rule("pass"), &[answered, subscription.clone()].concat()), (0, 0));
    assert_eq!(count(&rule("pass"), &[subscription.to_vec(), vec![updated]].concat()), (1, 0));
    let pings = json!({"at-most-per-second": {"count": 20, "method": "ping", "absence": "pass"}});
    assert_eq!(count(&pings, &exchange(1, "tools/list", json!({}), json!({"tools": []}))), (1, 0));
    assert_eq!(count(&pings, &exchange(1, "initialize", json!({}), json!({"serverInfo": {}}))), (0, 0));
}

#[test]
fn a_changed_list_is_announced_if_the_server_declares_it() {
    let rule = json!({"list-changes-announced": {"lists": ["tools", "prompts"], "to": "all-clients"}});
    let (before, after) = (page(1, None, json!([{"name": "a"}]), None), page(2, None, json!([{"name": "b"}]), None));
    let declared = || json!({"tools": {"listChanged": true}});
    let silent = [before.clone(), after.clone()].concat();
    assert_eq!(run(rule.clone(), declared(), &silent).1, ["the list changed without a notification"]);
    assert_eq!(count(&rule, &silent), (0, 0), "it is not declared");
    let announced =
        [before.to_vec(), vec![notification("notifications/tools/list_changed", json!({}))], after.to_vec()].concat();
    assert_eq!(run(rule, declared(), &announced), (1, Vec::new()));
}

#[test]
fn a_line_that_a_parser_may_refuse_is_answered_without_an_id() {
    let refused = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}});
    let judged = |notification: &str| {
        let step_id = Some(StepId { execution: 1, step: 1 });
        let [asked, answered] = exchange(2, "ping", json!({}), json!({}));
        let events = [
            Event::Sent { frame: Frame::parse(notification.as_bytes()), step_id },
            Event::Received(Frame::from_value(&refused)),
            Event::Sent { frame: Frame::from_value(&asked.1), step_id },
            Event::Received(Frame::from_value(&answered.1)),
        ];
        run_on_events(events.into_iter(), json!({}), |connection| {
            check_named(ConnectionCheck::NoResponseToNotification, connection, REVISION)
        })
    };
    let nested = |depth: usize| {
        let params = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/conformance","params":{{"text":{params}}}}}"#)
    };
    assert_eq!(judged(&nested(100)), (0, Vec::new()));
    assert_eq!(judged(&nested(1)), (1, vec!["a response".to_owned()]));
}

#[test]
fn a_response_has_the_id_of_its_request() {
    let mut messages = exchange(1, "ping", json!({}), json!({}));
    assert_eq!(count(&json!({"id-of-request": "result"}), &messages), (1, 0));
    assert_eq!(count(&json!({"id-of-request": "error"}), &messages), (0, 0));
    messages[1].1["id"] = json!("1");
    assert_eq!(count(&json!({"id-of-request": "result"}), &messages), (1, 1));
}

#[test]
fn a_result_without_an_id_is_no_response_to_the_request_that_waits_for_one() {
    let [asked, answered] = exchange(1, "ping", json!({}), json!({}));
    let without_id = (answered.0, json!({"jsonrpc": "2.0", "result": {}}));
    let refused = (answered.0, json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}));
    let rule = json!({"id-of-request": "result"});
    assert_eq!(count(&rule, &[asked.clone(), without_id.clone()]), (1, 1));
    assert_eq!(count(&rule, &[asked.clone(), answered, without_id]), (1, 0), "answered-once judges it");
    assert_eq!(count(&json!({"id-of-request": "error"}), &[asked, refused]), (0, 0), "it may be about another line");
}
