//! The first look at a server: its list of tools, page by page, and one plain call of each tool that
//! may be called. What comes back is there for every watching case to see.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::offer::{Called, Offer};
use super::plan::Plan;
use super::session::Session;
use crate::client::Waited;
use crate::wire::Id;

/// How many pages of a list are read.
pub(super) const MOST_PAGES: usize = 64;

/// How many tools are called.
const MOST_CALLS: usize = 64;

/// How many calls are under way at once.
const IN_FLIGHT: usize = 4;

/// How long calls that are still under way are waited for once all others are answered.
const STRAGGLER_PATIENCE: Duration = Duration::from_secs(1);

/// Lists the tools and calls each that may be called once.
pub(super) async fn survey(session: &mut Session, plan: &Plan) -> Offer {
    if !session.terms.declares("tools") {
        return Offer::default();
    }
    let pages = list(session, plan).await;
    let mut offer = Offer::read(&pages, plan.calls);
    if session.unanswered > 0 {
        // One more request, of another kind, tells a silent server from a slow list.
        let limit = plan.timeout.min(Duration::from_secs(2));
        let method = if session.revision.era() == crate::spec::Era::Stateless { "server/discover" } else { "ping" };
        if matches!(session.request(method, json!({}), limit).await, Waited::TimedOut) {
            offer.dead = Some("the server answers nothing any more after it was opened".to_owned());
        }
        return offer;
    }
    call_each(session, plan, &mut offer).await;
    offer
}

/// Reads the pages of `tools/list` until they end, repeat themselves or become too many.
async fn list(session: &mut Session, plan: &Plan) -> Vec<Value> {
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
    id: Id,
    since: Instant,
}

/// Calls each tool that may be called once, with a progress token, a few at a time.
async fn call_each(session: &mut Session, plan: &Plan, offer: &mut Offer) {
    let mut waiting: Vec<usize> =
        (0..offer.tools.len()).filter(|at| offer.tools[*at].barred.is_none()).take(MOST_CALLS).collect();
    waiting.reverse();
    let mut under: Vec<Under> = Vec::new();
    let began = session.connection.len();
    let mut answered_one = false;
    loop {
        while under.len() < IN_FLIGHT
            && let Some(tool) = waiting.pop()
        {
            let id = send_call(session, &offer.tools[tool].name, offer.tools[tool].arguments.as_ref(), tool).await;
            under.push(Under { tool, id, since: Instant::now() });
        }
        if under.is_empty() {
            return;
        }
        // Until anything is answered the full time is given; then only stragglers are left.
        let limit = if answered_one { STRAGGLER_PATIENCE.min(plan.timeout) } else { plan.timeout };
        let ids: Vec<Id> = under.iter().map(|call| call.id.clone()).collect();
        match first_of(session, began, &ids, limit).await {
            Waited::Came((at, response)) => {
                answered_one = true;
                session.unanswered = 0;
                let call = under.remove(at);
                let how = match response.get("result") {
                    Some(result) if result.get("isError") != Some(&Value::Bool(true)) => Called::Served,
                    _ => Called::Refused,
                };
                offer.tools[call.tool].called = Some((how, call.since.elapsed()));
            }
            Waited::TimedOut => {
                for call in under.drain(..) {
                    offer.tools[call.tool].called = Some((Called::Unanswered, call.since.elapsed()));
                    cancel(session, &call.id).await;
                }
                if !answered_one {
                    session.unanswered += 1;
                    return;
                }
            }
            Waited::Closed => return,
        }
    }
}

async fn send_call(session: &mut Session, name: &str, arguments: Option<&Value>, number: usize) -> Id {
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
    message["id"].clone()
}

async fn cancel(session: &Session, id: &Id) {
    let params = json!({ "requestId": id, "reason": "it took longer than the survey waits" });
    session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }), None).await;
}

/// Waits for the first answer to any of several ids.
async fn first_of(session: &Session, from: usize, ids: &[Id], limit: Duration) -> Waited<(usize, Value)> {
    session
        .connection
        .wait(from, limit, |entries| {
            entries.iter().filter_map(|entry| entry.received()).flat_map(crate::transcript::messages).find_map(|message| {
                let id = message.get("id").filter(|_| message.get("method").is_none())?;
                let at = ids.iter().position(|wanted| {
                    crate::wire::same_id(wanted, id) || (!id.is_null() && crate::wire::same_id_loosely(wanted, id))
                })?;
                Some((at, message.clone()))
            })
        })
        .await
}
