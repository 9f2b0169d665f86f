//! Discovers the server's tools: reads the pages of the list and makes one plain call of each tool that may be
//! called. Passive cases judge the messages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::asking;
use super::hint_requests;
use super::inventory::{FirstCallOutcome, Inventory};
use super::plan::Plan;
use super::primitives;
use super::retry::{self, AnsweredRequest};
use super::session::Session;
use super::subscription::ChangeSubscription;
use crate::client::WaitOutcome;
use crate::transcript::input_requests;
use crate::wire::Id;

/// The maximum number of pages per list.
pub(super) const MAX_PAGES: usize = 64;

/// The maximum number of tools to call.
const MAX_CALLS: usize = 256;

/// The maximum number of calls in flight.
const MAX_IN_FLIGHT: usize = 4;

/// How often to repeat a call whose result asks for input.
const MAX_ROUNDS: usize = 4;

/// How long to wait for the remaining calls once all others are answered.
const UNANSWERED_CALL_TIMEOUT: Duration = Duration::from_millis(250);

/// The maximum duration of such calls, checked when the cases have finished.
const MAX_CALL_DURATION: Duration = Duration::from_secs(1);

/// Lists the tools, calls each callable tool once, and sends the hint requests; also returns the calls that are still
/// in flight.
pub(super) async fn discover(session: &mut Session, plan: &Plan) -> (Inventory, Vec<UnansweredCall>) {
    let (mut inventory, unanswered_calls) = discover_plainly(session, plan).await;
    hint_requests::send_all(session, plan, &mut inventory).await;
    (inventory, unanswered_calls)
}

async fn discover_plainly(session: &mut Session, plan: &Plan) -> (Inventory, Vec<UnansweredCall>) {
    let declared = session.parameters.opening.is_none() || session.parameters.declares("tools");
    let pages = list_tools(session, plan).await;
    if !declared && session.unanswered == 0 {
        // Whether they should have been declared is judged; without that they are not called.
        let primitives = primitives::discover(session, plan.timeout).await;
        return (Inventory { primitives, ..Inventory::default() }, Vec::new());
    }
    let mut inventory = Inventory::from_pages(&pages, plan.calls);
    let mut unanswered_calls = Vec::new();
    if session.unanswered > 0 {
        // One more request, of another kind, distinguishes a silent server from a slow list.
        let limit = plan.timeout.min(Duration::from_secs(2));
        let method = if session.revision.era() == crate::spec::Era::Stateless { "server/discover" } else { "ping" };
        if matches!(session.request(method, json!({}), limit).await, WaitOutcome::TimedOut) {
            inventory.stop_reason = Some("the server stopped answering after the session was opened".to_owned());
        }
        return (inventory, unanswered_calls);
    }
    inventory.primitives = primitives::discover(session, plan.timeout).await;
    let subscription = ChangeSubscription::open(session, &inventory.primitives, plan.timeout).await;
    let began = session.connection.len();
    let mut pending = call_each_tool(session, plan, &mut inventory, began).await;
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
            wait_for_pending(session, &mut inventory, &mut pending, began, plan.timeout).await;
        }
        for call in pending {
            inventory.tools[call.tool].first_call = Some((FirstCallOutcome::Unanswered, call.since.elapsed()));
            unanswered_calls.push(UnansweredCall { id: call.id().clone(), since: call.since, from: began });
        }
    }
    asking::attribute(session, &mut inventory, began, plan.timeout).await;
    if session.parameters.declares("tools.listChanged") && !session.connection.is_closed() {
        // If the calls changed the list, the server should have announced it.
        list_tools(session, plan).await;
    }
    if let Some(subscription) = subscription {
        subscription.close(session, plan.timeout).await;
    }
    primitives::list_announced_again(session, plan.timeout).await;
    (inventory, unanswered_calls)
}

/// A call that is still in flight when discovery ends.
#[derive(Debug)]
pub(super) struct UnansweredCall {
    id: Id,
    since: Instant,
    from: usize,
}

/// Waits for the remaining time of calls that are in flight, then cancels them.
pub(super) async fn wait_for_unanswered(session: &Session, unanswered_calls: Vec<UnansweredCall>) {
    for unanswered_call in unanswered_calls {
        let left = MAX_CALL_DURATION.saturating_sub(unanswered_call.since.elapsed());
        let waited =
            wait_for_first_response(session, unanswered_call.from, std::slice::from_ref(&unanswered_call.id), left)
                .await;
        if waited == WaitOutcome::TimedOut {
            cancel(session, &unanswered_call.id, "the call exceeded the discovery timeout").await;
        }
    }
}

/// Reads the pages of `tools/list` until they end, repeat or exceed the maximum.
pub(super) async fn list_tools(session: &mut Session, plan: &Plan) -> Vec<Value> {
    let mut pages: Vec<Value> = Vec::new();
    let mut cursors: Vec<Value> = Vec::new();
    let mut params = json!({});
    while pages.len() < MAX_PAGES {
        let WaitOutcome::Ready(response) = session.request("tools/list", params, plan.timeout).await else { break };
        let Some(result) = response.get("result") else { break };
        pages.push(result.clone());
        let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else { break };
        if cursors.contains(cursor) {
            break;
        }
        cursors.push(cursor.clone());
        params = json!({ "cursor": cursor });
    }
    pages
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
    let mut waiting: Vec<usize> =
        (0..inventory.tools.len()).filter(|at| inventory.tools[*at].exclusion.is_none()).take(MAX_CALLS).collect();
    waiting.reverse();
    let mut pending: Vec<FirstCall> = Vec::new();
    let mut answered_one = false;
    loop {
        while pending.len() < MAX_IN_FLIGHT
            && let Some(tool) = waiting.pop()
        {
            let name = &inventory.tools[tool].name;
            let request = send_call(session, name, inventory.tools[tool].arguments.as_ref(), tool).await;
            pending.push(FirstCall { tool, request, rounds: 0, since: Instant::now() });
        }
        if pending.is_empty() {
            return pending;
        }
        // Allow the full time until the first response, and while more calls are waiting.
        let limit = if answered_one && waiting.is_empty() { UNANSWERED_CALL_TIMEOUT } else { plan.timeout };
        if !take_response(session, inventory, &mut pending, began, limit.min(plan.timeout)).await {
            if !answered_one && !session.connection.is_closed() {
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
    let ids: Vec<Id> = pending.iter().map(|call| call.id().clone()).collect();
    let WaitOutcome::Ready((at, response)) = wait_for_first_response(session, began, &ids, limit).await else {
        return false;
    };
    session.unanswered = 0;
    let call = pending.remove(at);
    let served = AnsweredRequest { request: call.request.clone(), response };
    if call.rounds < MAX_ROUNDS
        && let Some(retried) = retry::plain(&served, &session.replies)
    {
        let requests = served.response.get("result").into_iter().flat_map(input_requests);
        inventory.tools[call.tool].client_requests.extend(requests.map(|(_, request)| request.clone()));
        let request = session.complete(&retried, true, None);
        session.send(&request, None).await;
        pending.push(FirstCall { request, rounds: call.rounds + 1, ..call });
        return true;
    }
    let how = match served.response.get("result") {
        Some(result) if result.get("isError") != Some(&Value::Bool(true)) && !served.requests_input() => {
            FirstCallOutcome::Served
        }
        _ if is_missing_client_feature(&inventory.tools[call.tool].definition, &served.response) => {
            FirstCallOutcome::MissingClientFeature
        }
        _ => FirstCallOutcome::Failed,
    };
    inventory.tools[call.tool].first_call = Some((how, call.since.elapsed()));
    true
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

/// Cancels a request.
pub(super) async fn cancel(session: &Session, id: &Id, reason: &str) {
    let params = json!({ "requestId": id, "reason": reason });
    session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }), None).await;
}

/// Waits for the first response to any of several ids.
pub(super) async fn wait_for_first_response(
    session: &Session,
    from: usize,
    ids: &[Id],
    limit: Duration,
) -> WaitOutcome<(usize, Value)> {
    session
        .connection
        .wait(from, limit, |entries| {
            entries.iter().filter_map(|entry| entry.received()).flat_map(crate::transcript::messages).find_map(
                |message| {
                    let id = message.get("id").filter(|_| message.get("method").is_none())?;
                    let at = ids.iter().position(|wanted| {
                        crate::wire::same_id(wanted, id) || (!id.is_null() && crate::wire::same_id_loosely(wanted, id))
                    })?;
                    Some((at, message.clone()))
                },
            )
        })
        .await
}
