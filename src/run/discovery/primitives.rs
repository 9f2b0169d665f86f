//! Discovers the server's resources, resource templates and prompts, and reads or gets a few of them. Passive cases
//! judge the messages.
//!
//! All requests are concurrent and have a short timeout, because nothing else depends on them: missing responses are
//! ignored.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::WaitOutcome;
use crate::inventory::Primitives;
use crate::limits::{FASTEST_ANSWER_FACTOR, LIST_TIMEOUT, MAX_DISCOVERY_PAGES, MAX_FIRST_READS};
use crate::session::Session;
use crate::wire::Id;

/// Each list method with its capability and the member that contains the items.
const LISTS: [(&str, &str, &str); 3] = [
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resources", "resourceTemplates"),
    ("prompts/list", "prompts", "prompts"),
];

/// Reads the declared lists, and reads or gets a few of their items.
pub(super) async fn discover(session: &mut Session, timeout: Duration) -> Primitives {
    let mut primitives = Primitives::default();
    if session.parameters.opening.is_none() || session.connection.is_closed() {
        return primitives;
    }
    list(session, &mut primitives, list_timeout(session, timeout)).await;
    primitives.use_listed_resource();
    read_and_get_some(session, &mut primitives, list_timeout(session, timeout)).await;
    primitives
}

/// Reads the declared lists only.
pub(in crate::run) async fn list_only(session: &mut Session, timeout: Duration) -> Primitives {
    let mut primitives = Primitives::default();
    if session.parameters.opening.is_some() && !session.connection.is_closed() {
        read(session, &mut primitives, str::to_owned, list_timeout(session, timeout)).await;
    }
    primitives
}

/// Reads those lists again whose changes the server promised to announce.
pub(super) async fn list_announced_again(session: &mut Session, timeout: Duration) {
    if session.parameters.opening.is_some() && !session.connection.is_closed() {
        let announced = |capability: &str| format!("{capability}.listChanged");
        read(session, &mut Primitives::default(), announced, list_timeout(session, timeout)).await;
    }
}

/// How long to wait for the next response: longer on a slow server.
fn list_timeout(session: &Session, timeout: Duration) -> Duration {
    let fastest = session.fastest.unwrap_or_default();
    LIST_TIMEOUT.max(fastest * FASTEST_ANSWER_FACTOR).min(timeout)
}

async fn send(session: &mut Session, method: &str, params: &Value) -> Id {
    let message = session.complete(&json!({ "method": method, "params": params }), true, None);
    session.send(&message, None).await;
    message["id"].clone()
}

/// Reads the pages of all declared lists concurrently.
async fn list(session: &mut Session, primitives: &mut Primitives, limit: Duration) {
    read(session, primitives, str::to_owned, limit).await;
}

/// Reads the lists whose capability, or the given member of it, was declared.
async fn read(session: &mut Session, primitives: &mut Primitives, needed: impl Fn(&str) -> String, limit: Duration) {
    let from = session.connection.len();
    let mut pending: Vec<(Id, usize, Vec<Value>)> = Vec::new();
    for (at, (method, capability, _)) in LISTS.into_iter().enumerate() {
        if session.parameters.declares(&needed(capability)) {
            pending.push((send(session, method, &json!({})).await, at, Vec::new()));
        }
    }
    while !pending.is_empty() {
        let ids: Vec<Id> = pending.iter().map(|(id, ..)| id.clone()).collect();
        let WaitOutcome::Ready((at, response)) = session.wait_for_first_response(from, &ids, limit).await else {
            return;
        };
        let (_, of, mut cursors) = pending.remove(at);
        let (method, _, member) = LISTS[of];
        let Some(result) = response.get("result").filter(|result| result.get(member).is_some()) else { continue };
        primitives.add(method, result);
        let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else {
            primitives.mark_complete(method);
            continue;
        };
        if cursors.len() + 1 < MAX_DISCOVERY_PAGES && !cursors.contains(cursor) {
            cursors.push(cursor.clone());
            pending.push((send(session, method, &json!({ "cursor": cursor })).await, of, cursors));
        }
    }
}

/// Reads the first few resources again.
pub(super) async fn read_resources_again(session: &mut Session, primitives: &Primitives, timeout: Duration) {
    read_and_get_some(session, &mut primitives.without_prompts(), list_timeout(session, timeout)).await;
}

/// Reads the first few resources and gets the first few prompts, concurrently.
async fn read_and_get_some(session: &mut Session, primitives: &mut Primitives, limit: Duration) {
    let from = session.connection.len();
    let mut pending: Vec<(Id, Option<usize>)> = Vec::new();
    for uri in primitives.resources.iter().take(MAX_FIRST_READS) {
        pending.push((send(session, "resources/read", &json!({ "uri": uri })).await, None));
    }
    for (at, prompt) in primitives.prompts().iter().enumerate().take(MAX_FIRST_READS) {
        let params = if prompt.arguments.is_empty() {
            json!({ "name": prompt.name })
        } else {
            json!({ "name": prompt.name, "arguments": prompt.arguments })
        };
        pending.push((send(session, "prompts/get", &params).await, Some(at)));
    }
    while !pending.is_empty() {
        let ids: Vec<Id> = pending.iter().map(|(id, _)| id.clone()).collect();
        let WaitOutcome::Ready((at, response)) = session.wait_for_first_response(from, &ids, limit).await else {
            return;
        };
        if let (_, Some(prompt)) = pending.remove(at) {
            primitives.record_get(prompt, response.get("result").is_some());
        }
    }
}
