//! Finds out which tools lead the server to ask its client for something.

use std::time::Duration;

use serde_json::{Value, json};

use super::inventory::{FirstCallOutcome, Inventory};
use super::session::Session;
use crate::spec::Era;
use crate::wire::Kind;

/// How many tools are called once more to see what they ask for.
const MOST_CALLS: usize = 12;

/// Calls each tool again, alone, during whose call the server asked for something: several calls were under
/// way, so that what was asked for may belong to any of them. In the stateless era the results tell.
pub(super) async fn attribute(session: &mut Session, inventory: &mut Inventory, began: usize, timeout: Duration) {
    if session.revision.era() == Era::Stateless {
        return;
    }
    for name in suspects(session, began) {
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
        tool.client_requests = session.transcript_from(from).asked();
    }
}

/// The tools whose call was under way when the server asked for something.
fn suspects(session: &Session, began: usize) -> Vec<String> {
    let record = session.transcript_from(began);
    let asks = |at: &usize| {
        record.entries[*at].received().is_some_and(|message| {
            matches!(Kind::of(message), Kind::Request { method, .. } if method != "ping" && !method.starts_with("notifications/"))
        })
    };
    let asked: Vec<usize> = (0..record.entries.len()).filter(asks).collect();
    let name_of = |request: &Value| request.pointer("/params/name").and_then(Value::as_str).map(str::to_owned);
    let mut names = Vec::new();
    for exchange in record.exchanges() {
        let until = exchange.responses.first().map_or(record.entries.len(), |(at, _)| *at);
        let during = asked.iter().any(|at| (exchange.sent..until).contains(at));
        if let Some(name) = name_of(exchange.request).filter(|name| during && !names.contains(name)) {
            names.push(name);
        }
    }
    names.truncate(MOST_CALLS);
    names
}
