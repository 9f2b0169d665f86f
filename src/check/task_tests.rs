//! Tests of the checks of tasks and of cancellation with hand-made records.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::connection::check_named;
use super::{IndexedConnections, RecordedConnection};
use crate::case::ConnectionCheck;
use crate::case::ConnectionCheck::{
    CancelledRequestStops, NoResponseAfterCancellation, ServerCancelsNoTaskRequest, ServerCancelsOnlyOwnRequests,
    ServerCancelsOnlySubscriptions, TaskFailureReported, TaskIdsUnguessable, TaskInputKeysNotReused,
    TaskInputNamesTask, TaskProgressEndsWithTask, TaskResultAfterEnd, TaskResultNamesTask, TaskStatusFinal,
    TaskTimestampsConsistent, TasksListed, TimedOutRequestsCancelled,
};
use crate::spec::Revision;
use crate::transcript::{Entry, Event, HttpRequest, SessionParameters, Transcript};
use crate::wire::Frame;

/// How many things a check checked, and how many violate it; what the client sends is `true`.
fn run(check: ConnectionCheck, revision: Revision, messages: &[(bool, Value)]) -> (usize, usize) {
    run_events(check, revision, events_every(Duration::from_secs(1), messages))
}

/// Messages that follow each other after the same time.
fn events_every(pause: Duration, messages: &[(bool, Value)]) -> Vec<Arc<Entry>> {
    let entry = |at: Duration, (is_sent, message): &(bool, Value)| {
        let frame = Frame::from_value(message);
        let event = if *is_sent { Event::Sent { frame, step_id: None } } else { Event::Received(frame) };
        Arc::new(Entry { at, event })
    };
    messages.iter().zip(0..).map(|(message, at)| entry(pause * at, message)).collect()
}

fn run_events(check: ConnectionCheck, revision: Revision, entries: Vec<Arc<Entry>>) -> (usize, usize) {
    let opening = json!({ "protocolVersion": revision.as_str(), "capabilities": {} });
    let session_parameters =
        SessionParameters { client_capabilities: json!({}), opening: Some(opening), ..SessionParameters::default() };
    let transcript = Transcript { entries, session_parameters };
    let connected = [RecordedConnection { label: "main".to_owned(), transcript }];
    let watched = IndexedConnections::new(&connected, revision);
    let checked = check_named(check, &watched.connections[0], revision);
    (checked.count, checked.violations.len())
}

fn legacy(check: ConnectionCheck, messages: &[(bool, Value)]) -> (usize, usize) {
    run(check, Revision::V2025_11_25, messages)
}

fn request(id: i64, method: &str, params: Value) -> (bool, Value) {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    (true, request)
}

fn result(id: i64, result: Value) -> (bool, Value) {
    let mut response = json!({"jsonrpc": "2.0", "id": id});
    response["result"] = result;
    (false, response)
}

fn task(id: &str, status: &str) -> Value {
    let time = "2025-11-25T10:30:00Z";
    json!({"taskId": id, "status": status, "createdAt": time, "lastUpdatedAt": time, "ttl": null})
}

/// A call that creates a task.
fn create(id: i64, name: &str) -> [(bool, Value); 2] {
    let params = json!({"name": "a", "task": {}, "_meta": {"progressToken": name}});
    [request(id, "tools/call", params), result(id, json!({"task": task(name, "working")}))]
}

/// A request for the status of a task.
fn get(id: i64, name: &str, status: &str) -> [(bool, Value); 2] {
    [request(id, "tasks/get", json!({"taskId": name})), result(id, task(name, status))]
}

const LONG: &str = "0b1c2d3e4f5061728394a5b6c7d8e9f0";
const OTHER: &str = "f0e9d8c7b6a5948372615040f3e2d1c0";

#[test]
fn ids_are_hard_to_guess() {
    assert_eq!(legacy(TaskIdsUnguessable, &[create(1, LONG), create(2, OTHER)].concat()), (2, 0));
    let counted = [create(1, "a-task-of-the-server-1"), create(2, "a-task-of-the-server-2")].concat();
    assert_eq!(legacy(TaskIdsUnguessable, &counted), (2, 2));
}

#[test]
fn only_a_status_requested_after_the_end_is_judged() {
    let back = [create(1, LONG), get(2, LONG, "completed"), get(3, LONG, "working")].concat();
    assert_eq!(legacy(TaskStatusFinal, &back), (1, 1));
    // Both were requested before either was answered, so the second status may be the older one.
    let [first, ended] = get(2, LONG, "completed");
    let [second, working] = get(3, LONG, "working");
    assert_eq!(legacy(TaskStatusFinal, &[first, second, ended, working]), (0, 0));
}

#[test]
fn times_are_valid_and_consistent() {
    assert_eq!(legacy(TaskTimestampsConsistent, &[create(1, LONG), get(2, LONG, "working")].concat()), (2, 0));
    for (name, time) in [
        ("createdAt", json!(5)),
        ("createdAt", json!("2025-11-25T10:31:00Z")),
        ("lastUpdatedAt", json!("2024-01-01T00:00:00Z")),
    ] {
        let mut later = get(2, LONG, "working");
        later[1].1["result"][name] = time;
        let all = [create(1, LONG), later].concat();
        assert_eq!(legacy(TaskTimestampsConsistent, &all), (2, 1), "{name}");
    }
}

#[test]
fn a_result_is_early_if_the_task_is_still_working_afterwards() {
    let wait = request(2, "tasks/result", json!({"taskId": LONG}));
    let given = result(2, json!({"content": [], "_meta": {"io.modelcontextprotocol/related-task": {"taskId": LONG}}}));
    let early =
        [create(1, LONG).to_vec(), vec![wait.clone(), given.clone()], get(3, LONG, "working").to_vec()].concat();
    assert_eq!(legacy(TaskResultAfterEnd, &early), (1, 1));
    let right = [create(1, LONG).to_vec(), vec![wait.clone(), given.clone()], get(3, LONG, "failed").to_vec()].concat();
    assert_eq!(legacy(TaskResultAfterEnd, &right), (1, 0));
    assert_eq!(legacy(TaskResultNamesTask, &right), (1, 0));
    let bare = [wait, result(2, json!({"content": []}))];
    assert_eq!(legacy(TaskResultNamesTask, &bare), (1, 1));
}

#[test]
fn a_task_is_expected_in_the_list_only_while_it_exists() {
    let listed = |items: Value| [request(2, "tasks/list", json!({})), result(2, json!({"tasks": items}))];
    let gone = [
        request(3, "tasks/get", json!({"taskId": LONG})),
        (false, json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": ""}})),
    ];
    let there = get(3, LONG, "working");
    assert_eq!(legacy(TasksListed, &[create(1, LONG), listed(json!([])), there.clone()].concat()), (1, 1));
    assert_eq!(legacy(TasksListed, &[create(1, LONG), listed(json!([task(LONG, "working")])), there].concat()), (1, 0));
    assert_eq!(legacy(TasksListed, &[create(1, LONG), listed(json!([])), gone].concat()), (0, 0));
}

#[test]
fn a_failure_is_reported_with_a_message() {
    let end = [request(3, "tasks/result", json!({"taskId": LONG})), result(3, json!({"content": [], "isError": true}))];
    let with_status = |status: &str| legacy(TaskFailureReported, &[get(2, LONG, status), end.clone()].concat());
    assert_eq!(with_status("completed"), (1, 1));
    assert_eq!(with_status("failed"), (1, 1));
    assert_eq!(with_status("cancelled"), (1, 0));
}

#[test]
fn a_request_for_a_task_names_it() {
    let wait = request(3, "tasks/result", json!({"taskId": LONG}));
    let server_request = |meta: Value| {
        (false, json!({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"_meta": meta}}))
    };
    let all =
        |meta: Value| [get(2, LONG, "input_required").to_vec(), vec![wait.clone(), server_request(meta)]].concat();
    assert_eq!(legacy(TaskInputNamesTask, &all(json!({}))), (1, 1));
    let named = json!({"io.modelcontextprotocol/related-task": {"taskId": LONG}});
    assert_eq!(legacy(TaskInputNamesTask, &all(named)), (1, 0));
}

#[test]
fn progress_ends_with_the_task() {
    let progress = (
        false,
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": LONG, "progress": 1}}),
    );
    let during = [create(1, LONG).to_vec(), vec![progress.clone()], get(2, LONG, "completed").to_vec()].concat();
    assert_eq!(legacy(TaskProgressEndsWithTask, &during), (1, 0));
    let after = [create(1, LONG).to_vec(), get(2, LONG, "completed").to_vec(), vec![progress]].concat();
    assert_eq!(legacy(TaskProgressEndsWithTask, &after), (1, 1));
}

#[test]
fn a_key_is_used_for_one_request() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let poll = |id: i64, text: &str| {
        let input_requests = json!({"a": {"method": "elicitation/create", "params": {"message": text}}});
        let state = json!({"taskId": LONG, "status": "input_required", "inputRequests": input_requests});
        [request(id, "tasks/get", json!({"taskId": LONG, "_meta": meta})), result(id, state)]
    };
    let modern = |messages: &[(bool, Value)]| run(TaskInputKeysNotReused, Revision::V2026_07_28, messages);
    assert_eq!(modern(&[poll(1, "x"), poll(2, "x")].concat()), (2, 0));
    assert_eq!(modern(&[poll(1, "x"), poll(2, "y")].concat()), (2, 1));
}

fn cancelled(is_sent: bool, id: &Value) -> (bool, Value) {
    (is_sent, json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
}

#[test]
fn a_server_cancels_only_its_own_open_requests() {
    let server_request = (false, json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}));
    let response = (true, json!({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}));
    let cancel = cancelled(false, &json!("q"));
    assert_eq!(legacy(ServerCancelsOnlyOwnRequests, &[server_request.clone(), cancel.clone()]), (1, 0));
    assert_eq!(legacy(ServerCancelsOnlyOwnRequests, std::slice::from_ref(&cancel)), (1, 1));
    // A cancellation that arrives one second after the response may have been sent before it, six seconds after not.
    assert_eq!(
        legacy(ServerCancelsOnlyOwnRequests, &[server_request.clone(), response.clone(), cancel.clone()]),
        (1, 0)
    );
    let pause = std::iter::repeat_n(request(1, "ping", json!({})), 6);
    let late: Vec<_> = [server_request, response].into_iter().chain(pause).chain([cancel]).collect();
    assert_eq!(legacy(ServerCancelsOnlyOwnRequests, &late), (1, 1));
}

#[test]
fn a_request_that_timed_out_is_cancelled() {
    let call = request(1, "tools/call", json!({}));
    let asked = (false, json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}}));
    let ping = [request(2, "ping", json!({})), result(2, json!({}))];
    let (response, end) = ((true, json!({"jsonrpc": "2.0", "id": "q", "result": {}})), result(1, json!({})));
    let timed_out = [vec![call.clone(), asked.clone()], ping.to_vec(), vec![end.clone()]].concat();
    assert_eq!(legacy(TimedOutRequestsCancelled, &timed_out), (1, 1));
    let cancel = cancelled(false, &json!("q"));
    assert_eq!(legacy(TimedOutRequestsCancelled, &[timed_out.clone(), vec![cancel]].concat()), (1, 0));
    // Nothing shows that the client does not respond, or it does, or the call is still open.
    assert_eq!(legacy(TimedOutRequestsCancelled, &[call.clone(), asked.clone(), end.clone()]), (0, 0));
    let answered = [vec![call, asked], ping.to_vec(), vec![response, end]].concat();
    assert_eq!(legacy(TimedOutRequestsCancelled, &answered), (0, 0));
    assert_eq!(legacy(TimedOutRequestsCancelled, &timed_out[..4]), (0, 0));
}

#[test]
fn task_requests_and_requests_other_than_subscriptions_are_not_cancelled() {
    let server_request =
        |params: Value| (false, json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}));
    let cancel = cancelled(false, &json!("q"));
    assert_eq!(legacy(ServerCancelsNoTaskRequest, &[server_request(json!({})), cancel.clone()]), (1, 0));
    assert_eq!(legacy(ServerCancelsNoTaskRequest, &[server_request(json!({"task": {}})), cancel]), (1, 1));
    let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    let of = |method: &str| {
        run(
            ServerCancelsOnlySubscriptions,
            Revision::V2026_07_28,
            &[request(1, method, meta.clone()), cancelled(false, &json!(1))],
        )
    };
    assert_eq!((of("subscriptions/listen"), of("tools/call")), ((1, 0), (1, 1)));
}

#[test]
fn a_response_to_a_cancelled_request_counts_only_after_later_responses() {
    let (call, ping) = (request(1, "tools/call", json!({})), request(2, "ping", json!({})));
    let (late, other) = (result(1, json!({})), result(2, json!({})));
    let cancel = cancelled(true, &json!(1));
    let begun = [call, cancel, ping];
    let with = |rest: &[(bool, Value)]| legacy(NoResponseAfterCancellation, &[begun.as_slice(), rest].concat());
    assert_eq!(with(std::slice::from_ref(&other)), (1, 0));
    assert_eq!(with(&[other.clone(), late.clone()]), (1, 1));
    assert_eq!(with(&[late, other]), (0, 0));
}

#[test]
fn the_first_call_of_a_process_may_take_as_long_as_its_opening() {
    let (call, ping) = (request(1, "tools/call", json!({})), request(2, "ping", json!({})));
    let opening = [request(0, "initialize", json!({})), result(0, json!({}))];
    let earlier = [request(3, "tools/call", json!({})), result(3, json!({}))];
    let cancelled_call = [ping, result(2, json!({})), call, cancelled(true, &json!(1)), result(1, json!({}))];
    // Everything is quick, except the opening, and the response to the cancelled call.
    let stops = |opening_seconds: u64, before: &[(bool, Value)]| {
        let messages = [&opening, before, &cancelled_call].concat();
        let mut entries = events_every(Duration::from_millis(1), &messages);
        let end = entries.len() - 1;
        for (at, entry) in entries.iter_mut().enumerate().skip(1) {
            let response = if at == end { 2 } else { 0 };
            Arc::make_mut(entry).at += Duration::from_secs(opening_seconds + response);
        }
        run_events(CancelledRequestStops, Revision::V2025_11_25, entries)
    };
    assert_eq!(stops(1, &[]), (1, 1));
    assert_eq!(stops(3, &[]), (0, 0));
    assert_eq!(stops(3, &earlier), (1, 1));
}

#[test]
fn over_http_a_response_to_a_cancelled_request_may_be_overtaken_by_a_later_one() {
    let messages = [
        request(1, "tools/call", json!({})),
        cancelled(true, &json!(1)),
        request(2, "ping", json!({})),
        result(2, json!({})),
        result(1, json!({})),
    ];
    let over_http = |pause: u64| {
        let mut entries = events_every(Duration::from_millis(pause), &messages);
        entries.insert(0, Arc::new(Entry { at: Duration::ZERO, event: Event::HttpRequest(HttpRequest::default()) }));
        run_events(NoResponseAfterCancellation, Revision::V2025_11_25, entries)
    };
    assert_eq!((over_http(249), over_http(250)), ((0, 0), (1, 1)));
}
