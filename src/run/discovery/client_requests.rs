//! Determines during the call of which tools the server makes requests of the client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::WaitOutcome;
use crate::inventory::{FirstCallOutcome, Inventory};
use crate::limits::{MAX_CALLS_FOR_REQUESTS, STREAM_END_TIMEOUT};
use crate::session::Session;
use crate::spec::Era;
use crate::transcript::{Entry, Event, messages};
use crate::wire::{MessageKind, same_id};

/// Calls each tool again, alone, during whose call the server made a request: several calls were in flight, and the
/// request may belong to any of them. In stateless revisions the results show it.
pub(super) async fn attribute(session: &mut Session, inventory: &mut Inventory, began: usize, timeout: Duration) {
    if session.revision.era() == Era::Stateless {
        return;
    }
    if session.is_slow() || inventory.has_slow_tools() {
        // Calls take long, and the streams of those that were made may show it as well, once they have ended.
        let from_streams = session.connection.wait(began, STREAM_END_TIMEOUT, requests_by_stream).await;
        if let WaitOutcome::Ready(by_tool) = from_streams {
            for (name, requests) in by_tool {
                if let Some(tool) = inventory.tools.iter_mut().find(|tool| tool.name == name) {
                    tool.client_requests = requests;
                }
            }
            return;
        }
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
        let (from, limit) = (session.connection.len(), session.response_timeout(timeout));
        session.request("tools/call", json!({ "name": name, "arguments": arguments }), limit).await;
        tool.client_requests = session.transcript_from(from).requests_to_client();
    }
}

/// The requests that the server made of the client, by the tool on the stream of whose call they came; `None` unless
/// all of them came on such streams.
fn requests_by_stream(entries: &[Arc<Entry>]) -> Option<BTreeMap<String, Vec<Value>>> {
    let mut tool_of_exchange = BTreeMap::new();
    let mut owners = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::HttpRequest(request) => {
                let name = request.carries.as_ref().and_then(|carried| carried.sent()?.pointer("/params/name"));
                tool_of_exchange.extend(name.and_then(Value::as_str).map(|name| (request.number, name)));
            }
            Event::HttpEnd(end) => {
                let messages = end.events.iter().filter_map(|event| event.message.as_ref());
                let ids = messages.filter(|message| message.get("method").is_some()).filter_map(|one| one.get("id"));
                owners.extend(ids.filter_map(|id| Some((id, *tool_of_exchange.get(&end.number)?))));
            }
            _ => {}
        }
    }
    let mut by_tool: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let received = entries.iter().filter_map(|entry| entry.received()).flat_map(messages);
    for request in received.filter(|message| is_request_of_tool(message)) {
        let (_, name) = owners.iter().find(|(id, _)| request.get("id").is_some_and(|own| same_id(own, id)))?;
        let mut without_id = request.clone();
        if let Value::Object(members) = &mut without_id {
            members.retain(|name, _| matches!(name.as_str(), "method" | "params"));
        }
        by_tool.entry((*name).to_owned()).or_default().push(without_id);
    }
    Some(by_tool)
}

/// Whether a message is a request of the kind that tools make of the client.
fn is_request_of_tool(message: &Value) -> bool {
    matches!(MessageKind::of(message), MessageKind::Request { method, .. } if method != "ping" && !method.starts_with("notifications/"))
}

/// The tools whose call was in flight when the server made a request.
fn tools_in_flight(session: &Session, began: usize) -> Vec<String> {
    let record = session.transcript_from(began);
    let is_request = |at: &usize| record.entries[*at].received().is_some_and(is_request_of_tool);
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
    names.truncate(MAX_CALLS_FOR_REQUESTS);
    names
}
