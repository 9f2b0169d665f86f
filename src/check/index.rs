//! An index of a recorded connection: its requests with their responses, its tools, its lines.
//!
//! Built once per connection for all cases and checks. What a record means is not judged here.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use crate::spec::{Era, Revision, VersionName};
use crate::transcript::{Event, Exchange, HttpExchange, HttpExchangeEntries, Transcript, messages};
use crate::wire::{FramingError, Id};

/// A recorded connection, with its name.
#[derive(Debug, Clone)]
pub struct RecordedConnection {
    /// What the connection was for.
    pub label: String,
    /// Its record.
    pub transcript: Transcript,
}

/// The connections of one revision, indexed for passive cases.
#[derive(Debug)]
pub struct IndexedConnections<'a> {
    pub(super) connections: Vec<ConnectionIndex<'a>>,
}

impl<'a> IndexedConnections<'a> {
    /// Indexes the connections of one revision.
    ///
    /// What a server answers outside of the revision (to a request without the stateless `_meta`, or on a
    /// connection that agreed on another revision) is left to the cases that sent the request.
    #[must_use]
    pub fn new(connections: &'a [RecordedConnection], revision: Revision) -> Self {
        let mut connections: Vec<ConnectionIndex<'_>> =
            connections.iter().map(|connected| ConnectionIndex::new(connected, revision)).collect();
        let mut known = HashSet::new();
        for index in &mut connections {
            for (at, exchange) in index.exchanges.iter().enumerate() {
                let label = label_of(exchange.request);
                // A second response under the same id may be meant for another request. jsonrpc/answered-once judges it.
                let Some((_, response)) = exchange.responses.first() else { continue };
                if known.insert((label, response.get("result"), response.get("error"))) {
                    index.distinct_responses.push((at, 0));
                }
            }
        }
        Self { connections }
    }
}

/// A connection with its requests, their responses and its tools.
#[derive(Debug)]
pub(super) struct ConnectionIndex<'a> {
    pub(super) label: &'a str,
    pub(super) record: &'a Transcript,
    /// The client's requests that belong to the revision, with their responses.
    pub(super) exchanges: Vec<Exchange<'a>>,
    /// The responses that differ from all earlier ones, each as the number of its exchange and its number there:
    /// the same list is read many times and needs to be judged once.
    pub(super) distinct_responses: Vec<(usize, usize)>,
    /// Every request of the client.
    pub(super) all_exchanges: Vec<Exchange<'a>>,
    /// The responses that belong to no request.
    pub(super) strays: Vec<(usize, &'a Value)>,
    /// Where the HTTP exchanges of the connection itself are, without those that cases make.
    pub(super) http: Vec<HttpExchangeEntries>,
    pub(super) tools: BTreeMap<&'a str, &'a Value>,
    /// Whether the connection agreed on another revision than the one that is judged.
    pub(super) is_of_other_revision: bool,
}

/// Whether an exchange shows more than that the session is open: a result with members, for another request than the
/// one that opens it.
pub(super) fn is_served(exchange: &Exchange<'_>) -> bool {
    let has_members = |response: &Value| response["result"].as_object().is_some_and(|result| !result.is_empty());
    !matches!(method_of(exchange.request), "initialize" | "server/discover")
        && exchange.responses.iter().any(|(_, response)| has_members(response))
}

impl<'a> ConnectionIndex<'a> {
    fn new(connected: &'a RecordedConnection, revision: Revision) -> Self {
        let record = &connected.transcript;
        let all_exchanges = record.exchanges();
        let strays = record.unmatched_responses_among(&all_exchanges);
        let opening = record.session_parameters.opening.as_ref();
        let is_of_other_revision =
            revision.era() == Era::Handshake && opening.is_none_or(|opening| names_other_revision(opening, revision));
        let is_of_revision = |exchange: &&Exchange<'_>| {
            !is_of_other_revision && (revision.era() == Era::Handshake || is_stateless(exchange.request))
        };
        let exchanges: Vec<Exchange<'_>> = all_exchanges.iter().filter(is_of_revision).cloned().collect();
        let mut tools = BTreeMap::new();
        for exchange in exchanges.iter().filter(|exchange| method_of(exchange.request) == "tools/list") {
            for (_, response) in &exchange.responses {
                for tool in response.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten() {
                    if let Some(name) = tool.get("name").and_then(Value::as_str) {
                        tools.insert(name, tool);
                    }
                }
            }
        }
        let http = record.http_entries_of(|step_id| step_id.is_none());
        Self {
            label: &connected.label,
            record,
            exchanges,
            distinct_responses: Vec::new(),
            all_exchanges,
            strays,
            http,
            tools,
            is_of_other_revision,
        }
    }

    /// Every line of standard output as a value: `{"text", "bytes", "framing-error", "json"}`. Few cases are about lines, and
    /// all lines together take as much memory as the record, so that each is made when it is read.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, Value)> {
        self.record.entries.iter().enumerate().filter_map(|(position, entry)| {
            let Event::Received(frame) = &entry.event else { return None };
            let mut line = json!({ "text": frame.text(), "bytes": frame.bytes, "framing-error": null });
            match &frame.value {
                Ok(value) => {
                    line["json"] = value.clone();
                    line["framing-error"] = json!(frame.defect.as_ref().map(FramingError::word));
                }
                Err(damage) => line["framing-error"] = json!(damage.word()),
            }
            Some((position, line))
        })
    }

    /// The HTTP exchanges of the connection itself, each made when it is read: together they take as much memory as the record.
    pub(super) fn http_exchanges(&self) -> impl Iterator<Item = HttpExchange> {
        self.http.iter().map(|entries| entries.read(self.record))
    }

    /// The messages that the server wrote, batches split into their elements, with their positions.
    pub(super) fn received(&self) -> impl Iterator<Item = (usize, &'a Value)> {
        self.record.entries.iter().enumerate().flat_map(|(position, entry)| {
            entry.received().into_iter().flat_map(messages).map(move |one| (position, one))
        })
    }

    /// The requests of a method.
    pub(super) fn exchanges_of<'i>(&'i self, method: &'i str) -> impl Iterator<Item = &'i Exchange<'a>> {
        self.exchanges.iter().filter(move |exchange| method_of(exchange.request) == method)
    }
}

/// Whether the result of an opening is of another revision. A result of `initialize` that names no version of the
/// protocol is judged in the revision that was requested.
fn names_other_revision(opening: &Value, revision: Revision) -> bool {
    match VersionName::of(&opening["protocolVersion"]) {
        VersionName::Invalid => opening.get("supportedVersions").is_some(),
        name => !name.means(revision),
    }
}

/// Whether a request names its revision itself, as the stateless era requires.
fn is_stateless(request: &Value) -> bool {
    request.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some()
}

/// The method of a request or notification.
pub(super) fn method_of(message: &Value) -> &str {
    message.get("method").and_then(Value::as_str).unwrap_or_default()
}

/// The id of a request.
pub(super) fn id_of(request: &Value) -> Option<&Id> {
    request.get("id").filter(|id| !id.is_null())
}

/// How a finding about a request names it: by its method, and the tool, prompt or task name in it.
pub(super) fn name_of(request: &Value) -> String {
    match request.pointer("/params/name").and_then(Value::as_str) {
        Some(name) => format!("{} {name}", method_of(request)),
        None => method_of(request).to_owned(),
    }
}

/// How a finding about a response names it: by the tool that was called, or the method.
pub(super) fn label_of(request: &Value) -> String {
    let method = method_of(request);
    match request.pointer("/params/name").and_then(Value::as_str) {
        Some(name) if method == "tools/call" => format!("tool {name}"),
        _ => method.to_owned(),
    }
}
