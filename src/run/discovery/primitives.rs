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
use crate::run::pagination::Pages;
use crate::session::Session;
use crate::wire::Id;

/// The method that lists the tools.
pub(super) const TOOLS: &str = "tools/list";

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
    read(session, &mut primitives, str::to_owned, list_timeout(session, timeout)).await;
    show_some(session, &mut primitives, timeout).await;
    primitives
}

/// The same on a slow server, with the rest of the tools: the pages of all lists are read side by side. Returns whether more
/// pages of tools follow, because one did not come in time.
pub(super) async fn discover_beside_tools(
    session: &mut Session,
    tools: &mut Pages,
    timeout: Duration,
) -> (Primitives, bool) {
    let mut primitives = Primitives::default();
    let continues = read_lists(session, &mut primitives, str::to_owned, Some(tools), timeout).await;
    show_some(session, &mut primitives, timeout).await;
    (primitives, continues)
}

/// Reads or gets a few of the listed items.
async fn show_some(session: &mut Session, primitives: &mut Primitives, timeout: Duration) {
    primitives.use_listed_resource();
    read_and_get_some(session, primitives, list_timeout(session, timeout)).await;
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

/// The same with the tools, whose pages are read beside those of the others.
pub(super) async fn list_announced_again_beside_tools(session: &mut Session, timeout: Duration) {
    let (mut tools, announced) = (Pages::default(), |capability: &str| format!("{capability}.listChanged"));
    let limit = list_timeout(session, timeout);
    read_lists(session, &mut Primitives::default(), announced, Some(&mut tools), limit).await;
}

/// How long to wait for the next response: longer on a slow server.
fn list_timeout(session: &Session, timeout: Duration) -> Duration {
    let fastest = session.fastest.unwrap_or_default();
    LIST_TIMEOUT.max(fastest * FASTEST_ANSWER_FACTOR).min(timeout)
}

async fn send(session: &mut Session, method: &str, params: &Value) -> Id {
    send_message(session, &json!({ "method": method, "params": params })).await
}

async fn send_message(session: &mut Session, request: &Value) -> Id {
    let message = session.complete(request, true, None);
    session.send(&message, None).await;
    message["id"].clone()
}

/// Reads the lists whose capability, or the given member of it, was declared.
async fn read(session: &mut Session, primitives: &mut Primitives, needed: impl Fn(&str) -> String, limit: Duration) {
    read_lists(session, primitives, needed, None, limit).await;
}

/// Reads these lists, and the rest of the tools if there is one, side by side; returns whether more pages of tools follow.
async fn read_lists(
    session: &mut Session,
    primitives: &mut Primitives,
    needed: impl Fn(&str) -> String,
    mut tools: Option<&mut Pages>,
    limit: Duration,
) -> bool {
    let from = session.connection.len();
    // Each request with the list that it is for, which is that of the tools if there is no number.
    let mut pending: Vec<(Id, Option<usize>, Vec<Value>)> = Vec::new();
    if let Some(tools) = &tools {
        pending.push((send_message(session, &tools.next_request(TOOLS)).await, None, Vec::new()));
    }
    for (at, (method, capability, _)) in LISTS.into_iter().enumerate() {
        if session.parameters.declares(&needed(capability)) {
            pending.push((send(session, method, &json!({})).await, Some(at), Vec::new()));
        }
    }
    let mut continues = tools.is_some();
    while !pending.is_empty() {
        let ids: Vec<Id> = pending.iter().map(|(id, ..)| id.clone()).collect();
        let WaitOutcome::Ready((at, response)) = session.wait_for_first_response(from, &ids, limit).await else {
            return continues;
        };
        let (_, of, mut cursors) = pending.remove(at);
        let Some(of) = of else {
            let page = response.get("result").zip(tools.as_deref_mut());
            let request = page.and_then(|(result, tools)| tools.add(result).then(|| tools.next_request(TOOLS)));
            continues = request.is_some();
            if let Some(request) = request {
                pending.push((send_message(session, &request).await, None, Vec::new()));
            }
            continue;
        };
        let (method, _, member) = LISTS[of];
        let Some(result) = response.get("result").filter(|result| result.get(member).is_some()) else { continue };
        primitives.add(method, result);
        let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else {
            primitives.mark_complete(method);
            continue;
        };
        if cursors.len() + 1 < MAX_DISCOVERY_PAGES && !cursors.contains(cursor) {
            cursors.push(cursor.clone());
            pending.push((send(session, method, &json!({ "cursor": cursor })).await, Some(of), cursors));
        }
    }
    continues
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
