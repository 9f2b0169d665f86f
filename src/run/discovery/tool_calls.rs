//! Calls each tool that may be called once, a few at a time. Passive cases judge the messages.

use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Value, json};

use super::client_requests::Attribution;
use crate::client::WaitOutcome;
use crate::inventory::{FirstCallOutcome, Inventory, Tool};
use crate::limits::{
    FIRST_CALL_TIME, MAX_CALLS_IN_FLIGHT, MAX_DISCOVERY_INPUT_ROUNDS, MAX_FIRST_CALLS, MAX_SLOW_CALLS_IN_FLIGHT,
    SLOW_CALL, TIMEOUTS_OF_ONLY_TOOLS, UNANSWERED_CALL_TIMEOUT,
};
use crate::plan::Plan;
use crate::run::input_retry::{self, AnsweredRequest};
use crate::session::Session;
use crate::transcript::{Event, input_requests, messages};
use crate::wire::{Id, MessageKind};

/// A call that is still in flight when discovery ends.
#[derive(Debug)]
pub(in crate::run) struct UnansweredCall {
    /// The index of the tool.
    tool: usize,
    id: Id,
    since: Instant,
    from: usize,
}

/// Waits for the remaining time of calls that are in flight, and cancels those that are not answered; returns the calls
/// that are left to make then.
pub(super) async fn wait_for_unanswered(
    session: &mut Session,
    unanswered_calls: Vec<UnansweredCall>,
    inventory: &mut Inventory,
    timeout: Duration,
) -> Option<Attribution> {
    let limit = if inventory.tools.iter().any(Tool::is_served) {
        timeout * FIRST_CALL_TIME.0 / FIRST_CALL_TIME.1
    } else {
        timeout * TIMEOUTS_OF_ONLY_TOOLS
    };
    let (began, mut any_answered) = (unanswered_calls.iter().map(|call| call.from).min(), false);
    for call in unanswered_calls {
        let left = limit.saturating_sub(call.since.elapsed());
        match session.wait_for_first_response(call.from, std::slice::from_ref(&call.id), left).await {
            WaitOutcome::Ready((_, response)) if !requests_input(&response) => {
                let tool = &mut inventory.tools[call.tool];
                if tool.is_served() {
                    // A hint was served meanwhile.
                    continue;
                }
                tool.first_call = Some((outcome_of(&tool.definition, &response), call.since.elapsed()));
                session.record_call_among_others(call.from, &call.id);
                any_answered = true;
            }
            WaitOutcome::Ready(_) | WaitOutcome::Closed => {}
            WaitOutcome::TimedOut => session.cancel(&call.id, "the call exceeded the discovery timeout").await,
        }
    }
    // What the server asked of the client may belong to these calls.
    let began = began.filter(|_| any_answered)?;
    Some(Attribution::prepare(session, inventory, began).await)
}

/// How long a call may usually take on this server: twice as long as the fastest call so far.
fn usual_duration(inventory: &Inventory) -> Duration {
    let first_calls = inventory.tools.iter().filter_map(|tool| tool.first_call);
    let answered =
        first_calls.filter(|(how, _)| !matches!(how, FirstCallOutcome::Unanswered | FirstCallOutcome::Ended));
    answered.map(|(_, duration)| duration * 2).min().unwrap_or_default()
}

/// Whether a response asks the client for input, so that it is not the last one.
fn requests_input(response: &Value) -> bool {
    response.pointer("/result/resultType").is_some_and(|kind| kind == "input_required")
}

/// The outcome of a tool's first call that was answered without a request for input.
fn outcome_of(definition: &Value, response: &Value) -> FirstCallOutcome {
    match response.get("result") {
        Some(result) if result.get("isError") != Some(&Value::Bool(true)) => FirstCallOutcome::Served,
        _ if is_missing_client_feature(definition, response) => FirstCallOutcome::MissingClientFeature,
        _ => FirstCallOutcome::Failed,
    }
}

/// Calls each callable tool once; returns the calls that take longer than the server needs for other requests, and so
/// are still in flight. `began` is the position in the transcript before the calls.
pub(super) async fn call_tools(
    session: &mut Session,
    plan: &Plan,
    inventory: &mut Inventory,
    began: usize,
) -> Vec<UnansweredCall> {
    let mut unanswered_calls = Vec::new();
    let mut pending = call_each_tool(session, plan, inventory, began).await;
    if session.connection.is_closed() {
        for call in pending.drain(..) {
            inventory.tools[call.tool].first_call = Some((FirstCallOutcome::Ended, call.since.elapsed()));
        }
    }
    if !pending.is_empty() && !session.connection.is_closed() {
        // A server that handles other requests meanwhile may take its time; a blocked server is waited for.
        let limit = UNANSWERED_CALL_TIMEOUT.min(plan.timeout);
        if matches!(session.request("tools/list", json!({}), limit).await, WaitOutcome::TimedOut) {
            session.unanswered = 0;
            let limit = session.response_timeout(plan.timeout);
            wait_for_pending(session, inventory, &mut pending, began, limit).await;
        }
        for call in pending {
            inventory.tools[call.tool].first_call = Some((FirstCallOutcome::Unanswered, call.since.elapsed()));
            unanswered_calls.push(UnansweredCall {
                tool: call.tool,
                id: call.id().clone(),
                since: call.since,
                from: began,
            });
        }
    }
    unanswered_calls
}

/// A call that is in flight.
struct FirstCall {
    tool: usize,
    request: Value,
    /// How often it was repeated because its result asked for input.
    rounds: usize,
    since: Instant,
}

impl FirstCall {
    fn id(&self) -> &Id {
        &self.request["id"]
    }
}

/// Calls each callable tool once, with a progress token, a few at a time; returns the calls still in flight when all
/// others are answered.
async fn call_each_tool(session: &mut Session, plan: &Plan, inventory: &mut Inventory, began: usize) -> Vec<FirstCall> {
    let mut waiting: Vec<usize> = (0..inventory.tools.len())
        .filter(|at| inventory.tools[*at].exclusion.is_none())
        .take(MAX_FIRST_CALLS)
        .collect();
    waiting.reverse();
    let mut pending: Vec<FirstCall> = Vec::new();
    let mut answered_one = false;
    // Over HTTP, the stream of a call shows which requests of the server belong to it, however many calls are in flight.
    let is_http = session.connection.is_http();
    // A slow server is asked once more, one call at a time, which of them it is.
    let mut max_in_flight = if session.is_slow() { MAX_SLOW_CALLS_IN_FLIGHT } else { MAX_CALLS_IN_FLIGHT };
    loop {
        while pending.len() < max_in_flight
            && let Some(tool) = waiting.pop()
        {
            let name = &inventory.tools[tool].name;
            let request = send_call(session, name, inventory.tools[tool].arguments.as_ref(), tool).await;
            pending.push(FirstCall { tool, request, rounds: 0, since: Instant::now() });
        }
        if pending.is_empty() {
            return pending;
        }
        // Slow calls must not delay the others.
        let can_send_more = !waiting.is_empty() && max_in_flight < MAX_SLOW_CALLS_IN_FLIGHT;
        if can_send_more && !take_response(session, inventory, &mut pending, began, SLOW_CALL).await {
            if session.connection.is_closed() {
                return pending;
            }
            max_in_flight += if is_http { max_in_flight } else { MAX_CALLS_IN_FLIGHT };
            continue;
        }
        if can_send_more {
            answered_one = true;
            continue;
        }
        // Allow the full time until the first response, and while more calls are waiting.
        let is_last = answered_one && waiting.is_empty();
        let timeout = session.response_timeout(plan.timeout);
        let limit = if is_last { UNANSWERED_CALL_TIMEOUT.max(usual_duration(inventory)).min(timeout) } else { timeout };
        if !take_response(session, inventory, &mut pending, began, limit).await {
            if !answered_one && !session.connection.is_closed() {
                session.connection.record(Event::TimedOut { waited: limit });
                session.unanswered += 1;
            }
            return pending;
        }
        answered_one = true;
    }
}

/// Handles the next response to a call in flight, if one arrives in time.
async fn take_response(
    session: &mut Session,
    inventory: &mut Inventory,
    pending: &mut Vec<FirstCall>,
    began: usize,
    limit: Duration,
) -> bool {
    let Some((at, response)) = next_response(session, pending, began, limit).await else { return false };
    session.unanswered = 0;
    let call = pending.remove(at);
    let served = AnsweredRequest { request: call.request.clone(), response };
    if call.rounds < MAX_DISCOVERY_INPUT_ROUNDS
        && let Some(retried) = input_retry::plain(&served, &session.replies)
    {
        let requests = served.response.get("result").into_iter().flat_map(input_requests);
        inventory.tools[call.tool].client_requests.extend(requests.map(|(_, request)| request.clone()));
        let request = session.complete(&retried, true, None);
        session.send(&request, None).await;
        pending.push(FirstCall { request, rounds: call.rounds + 1, ..call });
        return true;
    }
    let tool = &mut inventory.tools[call.tool];
    let how = match outcome_of(&tool.definition, &served.response) {
        FirstCallOutcome::Served if served.requests_input() => FirstCallOutcome::Failed,
        how => how,
    };
    tool.first_call = Some((how, call.since.elapsed()));
    session.record_call_among_others(began, call.id());
    true
}

/// The next response to a call in flight with its position. A server that asks the client something within the limit is at
/// work, and gets the time again; no more often than there are calls.
async fn next_response(
    session: &Session,
    pending: &[FirstCall],
    began: usize,
    limit: Duration,
) -> Option<(usize, Value)> {
    let ids: Vec<Id> = pending.iter().map(|call| call.id().clone()).collect();
    for _ in pending {
        let before = session.connection.len();
        match session.wait_for_first_response(began, &ids, limit).await {
            WaitOutcome::Ready(response) => return Some(response),
            WaitOutcome::Closed => return None,
            WaitOutcome::TimedOut => {}
        }
        let is_request = |message: &Value| matches!(MessageKind::of(message), MessageKind::Request { .. });
        let entries = session.connection.entries_from(before);
        if !entries.iter().filter_map(|entry| entry.received()).flat_map(messages).any(is_request) {
            return None;
        }
    }
    None
}

/// Whether a tool rejects the call because the client lacks something: a capability (2026-07-28,
/// `basic/index#error-codes`), a page that the user has visited (2025-11-25, `client/elicitation`), or a call as a
/// task (2025-11-25, `basic/utilities/tasks`).
fn is_missing_client_feature(definition: &Value, response: &Value) -> bool {
    const MISSING_CAPABILITY: i64 = -32_021;
    const URL_ELICITATION_REQUIRED: i64 = -32_042;
    let code = response.pointer("/error/code").and_then(Value::as_i64);
    matches!(code, Some(MISSING_CAPABILITY | URL_ELICITATION_REQUIRED))
        || definition.pointer("/execution/taskSupport").is_some_and(|support| support == "required")
}

/// Waits for the responses to the calls in flight.
async fn wait_for_pending(
    session: &mut Session,
    inventory: &mut Inventory,
    pending: &mut Vec<FirstCall>,
    began: usize,
    limit: Duration,
) {
    while !pending.is_empty() && take_response(session, inventory, pending, began, limit).await {}
}

async fn send_call(session: &mut Session, name: &str, arguments: Option<&Value>, number: usize) -> Value {
    let message = json!({
        "method": "tools/call",
        "params": {
            "name": name,
            "arguments": arguments.cloned().unwrap_or_else(|| json!({})),
            "_meta": { "progressToken": format!("discovery-{number}") },
        },
    });
    let message = session.complete(&message, true, None);
    session.send(&message, None).await;
    message
}
