//! Determines during the call of which tools the server makes requests of the client.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::WaitOutcome;
use crate::inventory::{Inventory, Tool};
use crate::limits::{MAX_CALLS_FOR_REQUESTS, STREAM_END_TIMEOUT};
use crate::session::Session;
use crate::spec::Era;
use crate::transcript::{Entry, Event, messages};
use crate::wire::{MessageKind, same_id};

/// The tools that are left to call again, alone: the server made a request while calls of them were in flight, and it may
/// belong to any of these. Several sessions may share them; a clone is the same list.
#[derive(Debug, Clone)]
pub(in crate::run) struct Attribution(Arc<Mutex<VecDeque<String>>>);

/// The requests that the server made of the client during the calls of tools, by the name of the tool.
pub(in crate::run) type RequestsByTool = BTreeMap<String, Vec<Value>>;

impl Attribution {
    /// Finds the tools to call again. In stateless revisions none is, because the results show it.
    pub(super) async fn prepare(session: &Session, inventory: &mut Inventory, began: usize) -> Self {
        let names = tools_to_call(session, inventory, began).await;
        for tool in inventory.tools.iter_mut().filter(|tool| names.contains(&tool.name)) {
            tool.may_ask_client = true;
        }
        Self(Arc::new(Mutex::new(names.into())))
    }

    /// How many tools are left.
    pub(in crate::run) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Leaves out the tools that are left: nobody waits for calls of them.
    pub(in crate::run) fn give_up(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes the next tool of those that are wanted.
    fn next<'i>(&self, inventory: &'i Inventory, is_wanted: impl Fn(&Tool) -> bool) -> Option<&'i Tool> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tool_of = |name: &String| inventory.tools.iter().find(|tool| tool.name == *name && is_wanted(tool));
        let (at, tool) = names.iter().enumerate().find_map(|(at, name)| Some((at, tool_of(name)?)))?;
        names.remove(at);
        Some(tool)
    }

    /// Calls tools that are wanted, one after the other, as long as any is left and the session answers.
    pub(in crate::run) async fn make_calls(
        &self,
        session: &mut Session,
        inventory: &Inventory,
        timeout: Duration,
        is_wanted: impl Fn(&Tool) -> bool + Sync,
    ) -> RequestsByTool {
        let mut requests = RequestsByTool::new();
        while !session.connection.is_closed() && session.unanswered == 0 {
            let Some(tool) = self.next(inventory, &is_wanted) else { break };
            let arguments = tool.arguments.clone().unwrap_or_else(|| json!({}));
            let (from, limit) = (session.connection.len(), session.response_timeout(timeout));
            session.request("tools/call", json!({ "name": tool.name, "arguments": arguments }), limit).await;
            requests.insert(tool.name.clone(), session.transcript_from(from).requests_to_client());
        }
        requests
    }
}

/// The names of the tools to call again, unless the streams of their calls show what belongs to each.
async fn tools_to_call(session: &Session, inventory: &mut Inventory, began: usize) -> Vec<String> {
    if session.revision.era() == Era::Stateless {
        return Vec::new();
    }
    if session.is_slow() || inventory.has_slow_tools() {
        // Calls take long, and the streams of those that were made may show it as well, once they have ended.
        let limit = session.answer_times().at_least_fastest(STREAM_END_TIMEOUT);
        let from_streams = session.connection.wait(began, limit, requests_by_stream).await;
        if let WaitOutcome::Ready(by_tool) = from_streams {
            inventory.set_client_requests(by_tool);
            return Vec::new();
        }
    }
    let mut names = tools_in_flight(session, began);
    names.retain(|name| inventory.tools.iter().any(|tool| tool.name == *name && tool.is_usable()));
    names
}

/// The requests that the server made of the client, by the tool on the stream of whose call they came; `None` unless
/// all of them came on such streams.
fn requests_by_stream(entries: &[Arc<Entry>]) -> Option<RequestsByTool> {
    let mut tool_of_exchange = BTreeMap::new();
    let mut owners = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::HttpRequest(request) => {
                let name = request.carries.as_ref().and_then(|carried| carried.sent()?.pointer("/params/name"));
                tool_of_exchange.extend(name.and_then(Value::as_str).map(|name| (request.number, name)));
            }
            Event::HttpEnd(end) => {
                let messages = end.events.iter().filter_map(|event| Some(event.message.as_ref()?.value()));
                let requests = messages.filter(|message| message.get("method").is_some());
                let ids = requests.filter_map(|message| message.get("id").cloned());
                owners.extend(ids.filter_map(|id| Some((id, *tool_of_exchange.get(&end.number)?))));
            }
            _ => {}
        }
    }
    let mut by_tool = RequestsByTool::new();
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
