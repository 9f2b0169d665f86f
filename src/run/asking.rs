//! Determines during the call of which tools the server makes requests of the client.

use std::time::Duration;

use serde_json::{Value, json};

use super::inventory::{FirstCallOutcome, Inventory};
use super::session::Session;
use crate::spec::Era;
use crate::wire::MessageKind;

/// How many tools are called once more to see which requests belong to them.
const MAX_CALLS: usize = 12;

/// Calls each tool again, alone, during whose call the server made a request: several calls were in flight, and the
/// request may belong to any of them. In stateless revisions the results show it.
pub(super) async fn attribute(session: &mut Session, inventory: &mut Inventory, began: usize, timeout: Duration) {
    if session.revision.era() == Era::Stateless {
        return;
    }
    for name in tools_in_flight(session, began) {
        let Some(tool) = inventory.tools.iter_mut().find(|tool| tool.name == name) else { continue };
        if tool.exclusion.is_some()
            || tool
                .first_call
                .is_none_or(|(how, _)| matches!(how, FirstCallOutcome::Ended | FirstCallOutcome::Unanswered))
        {
            continue;
        }
        if session.connection.is_closed() || session.unanswered > 0 {
            return;
        }
        let arguments = tool.arguments.clone().unwrap_or_else(|| json!({}));
        let from = session.connection.len();
        session.request("tools/call", json!({ "name": name, "arguments": arguments }), timeout).await;
        tool.client_requests = session.transcript_from(from).requests_to_client();
    }
}

/// The tools whose call was in flight when the server made a request.
fn tools_in_flight(session: &Session, began: usize) -> Vec<String> {
    let record = session.transcript_from(began);
    let is_request = |at: &usize| {
        record.entries[*at].received().is_some_and(|message| {
            matches!(MessageKind::of(message), MessageKind::Request { method, .. } if method != "ping" && !method.starts_with("notifications/"))
        })
    };
    let requests: Vec<usize> = (0..record.entries.len()).filter(is_request).collect();
    let name_of = |request: &Value| request.pointer("/params/name").and_then(Value::as_str).map(str::to_owned);
    let mut names = Vec::new();
    for exchange in record.exchanges() {
        let until = exchange.responses.first().map_or(record.entries.len(), |(at, _)| *at);
        let during = requests.iter().any(|at| (exchange.sent..until).contains(at));
        if let Some(name) = name_of(exchange.request).filter(|name| during && !names.contains(name)) {
            names.push(name);
        }
    }
    names.truncate(MAX_CALLS);
    names
}
