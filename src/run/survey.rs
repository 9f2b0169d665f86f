//! The first look at a server: its list of tools, page by page, and one plain call of each tool that
//! may be called. What comes back is there for every watching case to see.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::asking;
use super::hinted;
use super::listen::Listening;
use super::offer::{Called, Offer};
use super::others;
use super::plan::Plan;
use super::retry::{self, Served};
use super::session::Session;
use crate::client::Waited;
use crate::transcript::input_requests;
use crate::wire::Id;

/// How many pages of a list are read.
pub(super) const MOST_PAGES: usize = 64;

/// How many tools are called.
const MOST_CALLS: usize = 256;

/// How many calls are under way at once.
const IN_FLIGHT: usize = 4;

/// How often a call is made again because its result asks for input.
const MOST_ROUNDS: usize = 4;

/// How long calls that are still under way are waited for at first, once all others are answered.
const STRAGGLER_PATIENCE: Duration = Duration::from_millis(250);

/// How long after their start such calls are waited for in the end, when the cases are through.
const STRAGGLER_LIMIT: Duration = Duration::from_secs(1);

/// Lists the tools, calls each that may be called once, and follows the hints; also returns the calls that
/// are still under way.
pub(super) async fn survey(session: &mut Session, plan: &Plan) -> (Offer, Vec<Straggler>) {
    let (mut offer, stragglers) = look(session, plan).await;
    hinted::follow(session, plan, &mut offer).await;
    (offer, stragglers)
}

async fn look(session: &mut Session, plan: &Plan) -> (Offer, Vec<Straggler>) {
    let declared = session.terms.opening.is_none() || session.terms.declares("tools");
    let pages = list(session, plan).await;
    if !declared && session.unanswered == 0 {
        // Whether they ought to have been declared is judged; they are not called unasked.
        let others = others::look(session, plan.timeout).await;
        return (Offer { others, ..Offer::default() }, Vec::new());
    }
    let mut offer = Offer::read(&pages, plan.calls);
    let mut stragglers = Vec::new();
    if session.unanswered > 0 {
        // One more request, of another kind, tells a silent server from a slow list.
        let limit = plan.timeout.min(Duration::from_secs(2));
        let method = if session.revision.era() == crate::spec::Era::Stateless { "server/discover" } else { "ping" };
        if matches!(session.request(method, json!({}), limit).await, Waited::TimedOut) {
            offer.dead = Some("the server answers nothing any more after it was opened".to_owned());
        }
        return (offer, stragglers);
    }
    offer.others = others::look(session, plan.timeout).await;
    let listening = Listening::begin(session, &offer.others, plan.timeout).await;
    let began = session.connection.len();
    let mut under = call_each(session, plan, &mut offer, began).await;
    if session.connection.is_closed() {
        for call in under.drain(..) {
            offer.tools[call.tool].called = Some((Called::Ended, call.since.elapsed()));
        }
    }
    if !under.is_empty() && !session.connection.is_closed() {
        // A server that serves others meanwhile may take its time; one that is blocked is waited for.
        let limit = STRAGGLER_PATIENCE.min(plan.timeout);
        if matches!(session.request("tools/list", json!({}), limit).await, Waited::TimedOut) {
            session.unanswered = 0;
            settle(session, &mut offer, &mut under, began, plan.timeout).await;
        }
        for call in under {
            offer.tools[call.tool].called = Some((Called::Unanswered, call.since.elapsed()));
            stragglers.push(Straggler { id: call.id().clone(), since: call.since, from: began });
        }
    }
    asking::attribute(session, &mut offer, began, plan.timeout).await;
    if session.terms.declares("tools.listChanged") && !session.connection.is_closed() {
        // A list that the calls have changed ought to have been announced.
        list(session, plan).await;
    }
    if let Some(listening) = listening {
        listening.end(session, plan.timeout).await;
    }
    others::look_again(session, plan.timeout).await;
    (offer, stragglers)
}

/// A call that is still under way when the survey ends.
#[derive(Debug)]
pub(super) struct Straggler {
    id: Id,
    since: Instant,
    from: usize,
}

/// Gives calls that are still under way what is left of their time, then cancels them.
pub(super) async fn wait_for_stragglers(session: &Session, stragglers: Vec<Straggler>) {
    for straggler in stragglers {
        let left = STRAGGLER_LIMIT.saturating_sub(straggler.since.elapsed());
        let waited = first_of(session, straggler.from, std::slice::from_ref(&straggler.id), left).await;
        if waited == Waited::TimedOut {
            cancel(session, &straggler.id, "it took longer than the survey waits").await;
        }
    }
}

/// Reads the pages of `tools/list` until they end, repeat themselves or become too many.
pub(super) async fn list(session: &mut Session, plan: &Plan) -> Vec<Value> {
    let mut pages: Vec<Value> = Vec::new();
    let mut cursors: Vec<Value> = Vec::new();
    let mut params = json!({});
    while pages.len() < MOST_PAGES {
        let Waited::Came(response) = session.request("tools/list", params, plan.timeout).await else { break };
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

/// A call that is under way.
struct Under {
    tool: usize,
    request: Value,
    /// How often it was made again because its result asked for input.
    rounds: usize,
    since: Instant,
}

impl Under {
    fn id(&self) -> &Id {
        &self.request["id"]
    }
}

/// Calls each tool that may be called once, with a progress token, a few at a time; returns the calls
/// that are still under way when all others are answered.
async fn call_each(session: &mut Session, plan: &Plan, offer: &mut Offer, began: usize) -> Vec<Under> {
    let mut waiting: Vec<usize> =
        (0..offer.tools.len()).filter(|at| offer.tools[*at].barred.is_none()).take(MOST_CALLS).collect();
    waiting.reverse();
    let mut under: Vec<Under> = Vec::new();
    let mut answered_one = false;
    loop {
        while under.len() < IN_FLIGHT
            && let Some(tool) = waiting.pop()
        {
            let name = &offer.tools[tool].name;
            let request = send_call(session, name, offer.tools[tool].arguments.as_ref(), tool).await;
            under.push(Under { tool, request, rounds: 0, since: Instant::now() });
        }
        if under.is_empty() {
            return under;
        }
        // Until anything is answered the full time is given, and while more calls are to come as well.
        let limit = if answered_one && waiting.is_empty() { STRAGGLER_PATIENCE } else { plan.timeout };
        if !take_answer(session, offer, &mut under, began, limit.min(plan.timeout)).await {
            if !answered_one && !session.connection.is_closed() {
                session.unanswered += 1;
            }
            return under;
        }
        answered_one = true;
    }
}

/// Takes the answer of one of the calls that are under way, if one comes in time.
async fn take_answer(
    session: &mut Session,
    offer: &mut Offer,
    under: &mut Vec<Under>,
    began: usize,
    limit: Duration,
) -> bool {
    let ids: Vec<Id> = under.iter().map(|call| call.id().clone()).collect();
    let Waited::Came((at, response)) = first_of(session, began, &ids, limit).await else { return false };
    session.unanswered = 0;
    let call = under.remove(at);
    let served = Served { request: call.request.clone(), response };
    if call.rounds < MOST_ROUNDS
        && let Some(again) = retry::plain(&served, &session.replies)
    {
        let asked = served.response.get("result").into_iter().flat_map(input_requests);
        offer.tools[call.tool].asked.extend(asked.map(|(_, request)| request.clone()));
        let request = session.complete(&again, true, None);
        session.send(&request, None).await;
        under.push(Under { request, rounds: call.rounds + 1, ..call });
        return true;
    }
    let how = match served.response.get("result") {
        Some(result) if result.get("isError") != Some(&Value::Bool(true)) && !served.requests_input() => Called::Served,
        _ if is_lacking(&offer.tools[call.tool].definition, &served.response) => Called::Lacking,
        _ => Called::Refused,
    };
    offer.tools[call.tool].called = Some((how, call.since.elapsed()));
    true
}

/// Whether a tool refuses a client for what that lacks: a capability that it did not declare (2026-07-28,
/// `basic/index#error-codes`), a page that the user has visited (2025-11-25, `client/elicitation`), or that it
/// calls the tool as a task (2025-11-25, `basic/utilities/tasks`).
fn is_lacking(definition: &Value, response: &Value) -> bool {
    const MISSING_CAPABILITY: i64 = -32_021;
    const PAGE_FIRST: i64 = -32_042;
    let code = response.pointer("/error/code").and_then(Value::as_i64);
    matches!(code, Some(MISSING_CAPABILITY | PAGE_FIRST))
        || definition.pointer("/execution/taskSupport").is_some_and(|support| support == "required")
}

/// Waits for the calls that are under way to be answered, one after the other.
async fn settle(session: &mut Session, offer: &mut Offer, under: &mut Vec<Under>, began: usize, limit: Duration) {
    while !under.is_empty() && take_answer(session, offer, under, began, limit).await {}
}

async fn send_call(session: &mut Session, name: &str, arguments: Option<&Value>, number: usize) -> Value {
    let message = json!({
        "method": "tools/call",
        "params": {
            "name": name,
            "arguments": arguments.cloned().unwrap_or_else(|| json!({})),
            "_meta": { "progressToken": format!("survey-{number}") },
        },
    });
    let message = session.complete(&message, true, None);
    session.send(&message, None).await;
    message
}

/// Tells the server that an answer is no longer waited for.
pub(super) async fn cancel(session: &Session, id: &Id, reason: &str) {
    let params = json!({ "requestId": id, "reason": reason });
    session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }), None).await;
}

/// Waits for the first answer to any of several ids.
pub(super) async fn first_of(session: &Session, from: usize, ids: &[Id], limit: Duration) -> Waited<(usize, Value)> {
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
