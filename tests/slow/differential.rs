//! The passive cases compared with the official schemas, message by message.
//!
//! Every message that the built-in server sends, and complete messages that are made from the schemas, are mutated in
//! every way that a table lists, and judged twice: by the schema of their definition and by the passive cases.
//! [`JUSTIFIED_DIFFERENCES`] lists the differences between the two, each with its reason; any other difference fails the
//! trial. So does an entry of the list that no message needs.
//!
//! The official schemas are not part of this repository: `tests/differential/install.sh` installs them from published
//! packages. If they are missing, the trial is ignored unless `MCP_CONFORMANCE_SCHEMAS=required` is set. It writes
//! statistics to `target/tmp/differential.txt`. No schema of the draft 2024-10-07 was ever published.

mod justified;
mod mutate;
mod own_messages;
mod specimen;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use mcp_conformance::internals::case::Body;
use mcp_conformance::internals::check::{IndexedConnections, RecordedConnection, judge_passive};
use mcp_conformance::internals::transcript::{Entry, Event, SessionParameters, Transcript};
use mcp_conformance::internals::wire::Frame;
use mcp_conformance::reference::{FaultSet, serve};
use mcp_conformance::spec::{Era, Level, Revision};
use mcp_conformance::verdict::Verdict;
use serde_json::{Value, json};

use self::justified::JUSTIFIED_DIFFERENCES;
use self::mutate::{MutatedMessage, mutate};
use self::specimen::{forgotten_results, specimens};
use crate::support::reference::cases;
use crate::support::{Trial, trial};

/// How many mutated messages are judged for each definition, location, variant of the object there and mutation.
const MAX_EQUAL_MUTATIONS: usize = 2;
/// The minimum number of mutated messages per revision.
const MIN_MUTATED_MESSAGES: usize = 4_000;

pub(crate) fn trials() -> Vec<Trial> {
    let required = std::env::var_os("MCP_CONFORMANCE_SCHEMAS").is_some_and(|value| value == "required");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/schemas");
    let ignored = !required && !folder.is_dir();
    let schemas = folder.clone();
    vec![
        trial("differential/shapes", move || compare(&folder)).with_ignored_flag(ignored),
        trial("differential/own-messages", move || own_messages::are_valid(&schemas)).with_ignored_flag(ignored),
    ]
}

/// Which of the two is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stricter {
    /// The schema rejects what the cases accept.
    Schema,
    /// The cases reject what the schema accepts.
    Cases,
}

/// A mutated message on which the schema and the cases disagree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    stricter: Stricter,
    definition: String,
    location: String,
    mutation: &'static str,
}

fn compare(folder: &Path) -> Result<(), String> {
    let mut report = String::new();
    let mut unjustified = String::new();
    let mut needed = BTreeSet::new();
    for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_draft()) {
        let official = Official::read(folder, revision)?;
        unjustified += &forgotten_results(&official.document[official.definitions]);
        let mut messages = server_messages(revision);
        messages.extend(official.specimens(revision));
        let mut mutated = Vec::new();
        let mut counts: BTreeMap<(String, String, String, &str), usize> = BTreeMap::new();
        for message in &messages {
            for mutated_message in mutate(&message.message) {
                let MutatedMessage { location, variant, kind, .. } = &mutated_message;
                let equal = (message.definition.clone(), location.clone(), variant.clone(), *kind);
                let count = counts.entry(equal).or_default();
                *count += 1;
                if *count <= MAX_EQUAL_MUTATIONS {
                    mutated.push((message, mutated_message));
                }
            }
        }
        let chosen = mutated;
        if chosen.len() < MIN_MUTATED_MESSAGES {
            return Err(format!(
                "{revision}: only {} mutated messages, expected at least {MIN_MUTATED_MESSAGES}",
                chosen.len()
            ));
        }
        let mut differences: BTreeMap<Difference, (usize, String)> = BTreeMap::new();
        let (mut rejected, mut agreed) = (0, 0);
        for (original, mutated) in &chosen {
            let schema_problem = official.problem(&original.definition, &mutated.message);
            let case_finding = finding(original, &mutated.message, revision);
            rejected += usize::from(schema_problem.is_some());
            let stricter = match (&schema_problem, &case_finding) {
                (Some(_), None) => Stricter::Schema,
                (None, Some(_)) => Stricter::Cases,
                _ => {
                    agreed += 1;
                    continue;
                }
            };
            let difference = Difference {
                stricter,
                definition: original.definition.clone(),
                location: mutated.location.clone(),
                mutation: mutated.kind,
            };
            let problem = schema_problem.or(case_finding).unwrap_or_default();
            differences.entry(difference).or_insert((0, problem)).0 += 1;
        }
        for message in &messages {
            let by_schema = official.problem(&message.definition, &message.message).map(|problem| ("schema", problem));
            let by_case = finding(message, &message.message, revision).map(|problem| ("case", problem));
            for (judge, problem) in by_schema.into_iter().chain(by_case) {
                let _infallible = writeln!(
                    unjustified,
                    "{revision} a {judge} rejects an unmutated {}: {problem}\n{}",
                    message.definition, message.message
                );
            }
        }
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for (difference, (count, problem)) in &differences {
            if let Some(at) = JUSTIFIED_DIFFERENCES.iter().position(|justified| justified.covers(difference)) {
                needed.insert(at);
                *reasons.entry(JUSTIFIED_DIFFERENCES[at].4).or_default() += count;
            } else {
                let Difference { stricter, definition, location, mutation } = difference;
                let problem: String = problem.chars().take(160).collect();
                let _infallible = writeln!(
                    unjustified,
                    "{revision} stricter: {stricter:?} {count} {definition} {location} {mutation}: {problem}"
                );
            }
        }
        let _infallible = writeln!(
            report,
            "{revision}: {} messages, {} mutated, {rejected} of them rejected by the schema, {agreed} judged alike, {} not",
            messages.len(),
            chosen.len(),
            chosen.len() - agreed,
        );
        for (reason, count) in reasons {
            let _infallible = writeln!(report, "  {count:>5}  {reason}");
        }
    }
    for (at, justified) in JUSTIFIED_DIFFERENCES.iter().enumerate().filter(|(at, _)| !needed.contains(at)) {
        let _infallible =
            writeln!(unjustified, "no message needs entry {at}: {} {} {}", justified.1, justified.2, justified.3);
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential.txt");
    fs::write(&path, format!("{report}\n{unjustified}"))
        .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    if unjustified.is_empty() {
        Ok(())
    } else {
        Err(format!("unjustified differences ({}):\n{unjustified}", path.display()))
    }
}

/// The official schema of a revision.
struct Official {
    document: Value,
    definitions: &'static str,
    validators: std::cell::RefCell<BTreeMap<String, Arc<Validator>>>,
}

impl Official {
    fn read(folder: &Path, revision: Revision) -> Result<Self, String> {
        let path = folder.join(format!("{revision}.json"));
        let text = fs::read_to_string(&path).map_err(|error| format!("failed to read {}: {error}", path.display()))?;
        let document: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let definitions = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
        Ok(Self { document, definitions, validators: std::cell::RefCell::default() })
    }

    /// Complete messages with every property that the schema defines.
    fn specimens(&self, revision: Revision) -> Vec<ServerMessage> {
        let client = json!({
            "roots": {}, "sampling": {"tools": {}, "context": {}}, "elicitation": {"form": {}, "url": {}},
        });
        let changing = json!({"listChanged": true, "subscribe": true});
        let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        let capabilities = json!({
            "tools": changing, "resources": changing, "prompts": changing, "logging": {}, "completions": {}, "tasks": tasks,
        });
        let opening = if revision.era() == Era::Stateless {
            json!({"supportedVersions": [revision.as_str()], "capabilities": capabilities})
        } else {
            json!({"protocolVersion": revision.as_str(), "capabilities": capabilities})
        };
        specimens(&self.document[self.definitions], revision.as_str())
            .into_iter()
            .map(|mut specimen| {
                if revision.era() == Era::Stateless {
                    let meta = &mut specimen.request["params"]["_meta"];
                    meta["io.modelcontextprotocol/protocolVersion"] = json!(revision.as_str());
                    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "differential", "version": "1.0.0"});
                    meta["io.modelcontextprotocol/clientCapabilities"] = client.clone();
                }
                specimen
            })
            .map(|specimen| ServerMessage {
                message: specimen.message,
                request: specimen.request,
                definition: specimen.definition.to_owned(),
                session_parameters: SessionParameters {
                    client_capabilities: client.clone(),
                    opening: Some(opening.clone()),
                    ..SessionParameters::default()
                },
            })
            .collect()
    }

    fn has(&self, definition: &str) -> bool {
        self.document[self.definitions].get(definition).is_some()
    }

    /// The validator of a definition, compiled once.
    fn validator(&self, definition: &str) -> Arc<Validator> {
        if let Some(validator) = self.validators.borrow().get(definition) {
            return Arc::clone(validator);
        }
        let mut schema = json!({"$ref": format!("#/{}/{definition}", self.definitions)});
        schema["$schema"] = self.document["$schema"].clone();
        schema[self.definitions] = self.document[self.definitions].clone();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .with_format("byte", is_base64)
            .build(&schema)
            .unwrap_or_else(|error| panic!("failed to compile {definition}: {error}"));
        let validator = Arc::new(validator);
        self.validators.borrow_mut().insert(definition.to_owned(), Arc::clone(&validator));
        validator
    }

    /// The first error of a message against its envelope and the definition of its kind, if any.
    fn problem(&self, definition: &str, message: &Value) -> Option<String> {
        let first = |definition: &str, value: &Value| {
            let validator = self.validator(definition);
            let error = validator.iter_errors(value).next()?;
            Some(format!("at `{}`: {error}", error.instance_path()))
        };
        if definition == "error" {
            let envelope = if self.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" };
            return first(envelope, message);
        }
        if message.get("method").is_some() || definition.ends_with("Notification") || definition.ends_with("Request") {
            let envelope = if definition.ends_with("Request") { "JSONRPCRequest" } else { "JSONRPCNotification" };
            return first(envelope, message).or_else(|| first(definition, message));
        }
        let envelope = if self.has("JSONRPCResultResponse") { "JSONRPCResultResponse" } else { "JSONRPCResponse" };
        first(envelope, message).or_else(|| first(definition, message.get("result")?))
    }
}

fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

/// A message of the server and the request that it belongs to.
struct ServerMessage {
    message: Value,
    /// The request that precedes it on its connection.
    request: Value,
    /// The name of its definition in the schema; `error` for an error.
    definition: String,
    session_parameters: SessionParameters,
}

/// The definition of the result of a method.
fn result_definition(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => "EmptyResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        _ => return None,
    })
}

/// The definition of a notification or request of the server.
fn message_definition(method: &str) -> Option<&'static str> {
    Some(match method {
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/resources/list_changed" => "ResourceListChangedNotification",
        "notifications/prompts/list_changed" => "PromptListChangedNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
        _ => return None,
    })
}

/// Every message that the built-in server sends to a client that requests all that it offers.
fn server_messages(revision: Revision) -> Vec<ServerMessage> {
    let mut requests = vec![
        json!({"method": "ping"}),
        json!({"method": "conformance/none"}),
        json!({"method": "resources/read", "params": {"uri": "conformance-none:///x"}}),
        json!({"method": "tools/call", "params": {"name": "add", "arguments": {"a": "x", "b": 2}}}),
        json!({"method": "tools/call", "params": {"name": "none"}}),
        json!({"method": "tools/call", "params": {"name": "fail", "arguments": {"outcome": "fails"}}}),
        json!({"method": "logging/setLevel", "params": {"level": "debug"}}),
        json!({"method": "resources/subscribe", "params": {"uri": "mock:///notes.txt"}}),
        json!({"method": "resources/unsubscribe", "params": {"uri": "mock:///notes.txt"}}),
        json!({"method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true}}}),
        json!({"method": "completion/complete", "params": {
            "ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "language", "value": "r"},
        }}),
    ];
    for uri in ["mock:///notes.txt", "mock:///pixels.png", "mock:///numbers/1"] {
        requests.push(json!({"method": "resources/read", "params": {"uri": uri}}));
    }
    for (name, arguments) in [("review", json!({"code": "1"})), ("picture", json!({})), ("briefing", json!({}))] {
        requests.push(json!({"method": "prompts/get", "params": {"name": name, "arguments": arguments}}));
    }
    let calls = [
        ("echo", json!({"text": "a"})),
        ("add", json!({"a": 1, "b": 2})),
        ("weather", json!({"city": "Ulm"})),
        ("count", json!({"to": 2})),
        ("grow", json!({})),
    ];
    let plain = ["image", "audio", "link", "embed_text", "embed_blob", "annotated", "log", "primes"];
    let calls = calls.into_iter().chain(plain.into_iter().map(|name| (name, json!({}))));
    for (number, (name, arguments)) in calls.enumerate() {
        let meta = json!({"progressToken": format!("token-{number}"), "io.modelcontextprotocol/logLevel": "debug"});
        requests.push(json!({"method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": meta}}));
    }
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        requests.extend(pages(method, revision));
    }
    exchange(requests, revision)
}

/// The requests for every page of a list.
fn pages(method: &str, revision: Revision) -> Vec<Value> {
    let mut requests = vec![json!({"method": method, "params": {}})];
    loop {
        let messages = exchange(requests.clone(), revision);
        let last = messages.iter().rev().find(|message| message.request["method"] == method);
        let Some(cursor) = last.and_then(|last| last.message.pointer("/result/nextCursor").cloned()) else {
            return requests;
        };
        requests.push(json!({"method": method, "params": {"cursor": cursor}}));
    }
}

/// Sends all requests on one connection, one after the other, and assigns the messages of the server to them.
fn exchange(requests: Vec<Value>, revision: Revision) -> Vec<ServerMessage> {
    let stateless = revision.era() == Era::Stateless;
    let client = json!({"name": "differential", "version": "1.0.0"});
    let opening = if stateless {
        json!({"method": "server/discover"})
    } else {
        let params = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client});
        json!({"method": "initialize", "params": params})
    };
    let mut sent = vec![opening];
    sent.extend(requests);
    let mut input = String::new();
    for (id, request) in sent.iter_mut().enumerate() {
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!(id);
        if stateless {
            let mut meta = request.pointer("/params/_meta").cloned().unwrap_or_else(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(revision.as_str());
            meta["io.modelcontextprotocol/clientInfo"] = client.clone();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            if request.get("params").is_none() {
                request["params"] = json!({});
            }
            request["params"]["_meta"] = meta;
        } else if let Some(meta) = request.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
            meta.shift_remove("io.modelcontextprotocol/logLevel");
        }
        let _infallible = writeln!(input, "{request}");
    }
    let mut output = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(serve(input.as_bytes(), &mut output, &FaultSet::none())).expect("the server reads from memory");
    let lines = String::from_utf8(output).expect("the server writes UTF-8");
    let messages: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("the server writes JSON")).collect();
    let session_parameters = SessionParameters {
        client_capabilities: json!({}),
        opening: messages[0].get("result").cloned(),
        ..SessionParameters::default()
    };
    let mut found = Vec::new();
    let mut next = 0;
    for message in messages {
        // A notification precedes the response to its request, or follows that to a subscription.
        let of_method = message.get("method").and_then(Value::as_str);
        let request = match (&message["id"], of_method) {
            (id, None) => {
                let id =
                    id.as_u64().and_then(|id| usize::try_from(id).ok()).expect("a response has the id of a request");
                next = id + 1;
                sent[id].clone()
            }
            (_, Some("notifications/resources/updated")) => sent[next - 1].clone(),
            (_, Some("notifications/progress")) => {
                let has_token = |request: &&Value| {
                    request.pointer("/params/_meta/progressToken") == message.pointer("/params/progressToken")
                };
                sent.iter().find(has_token).cloned().unwrap_or_default()
            }
            (_, Some(_)) if subscription_of(&message).is_some() => {
                sent.iter().find(|request| request.get("id") == subscription_of(&message)).cloned().unwrap_or_default()
            }
            (_, Some(_)) => sent[next.min(sent.len() - 1)].clone(),
        };
        let definition = match of_method {
            Some(method) => message_definition(method),
            None if message.get("error").is_some() => Some("error"),
            None => request["method"].as_str().and_then(result_definition),
        };
        if let Some(definition) = definition {
            found.push(ServerMessage {
                message,
                request,
                definition: definition.to_owned(),
                session_parameters: session_parameters.clone(),
            });
        }
    }
    found
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The id of the subscription that a notification belongs to, if it names one.
fn subscription_of(message: &Value) -> Option<&Value> {
    message.get("params")?.get("_meta")?.get(SUBSCRIPTION)
}

/// The first finding of the passive cases on a message, if any.
fn finding(original: &ServerMessage, message: &Value, revision: Revision) -> Option<String> {
    let entry = |at: u64, event| Arc::new(Entry { at: Duration::from_millis(at), event });
    let received = |at, message: &Value| entry(at, Event::Received(Frame::parse(message.to_string().as_bytes())));
    let mut entries = vec![entry(0, Event::Sent { frame: Frame::from_value(&original.request), step_id: None })];
    let subscribed = original.request["method"] == "subscriptions/listen";
    let follows_acknowledgement = subscription_of(&original.message).is_some()
        && original.message["method"].as_str().is_some_and(|method| method != ACKNOWLEDGED)
        || original.definition == "SubscriptionsListenResult";
    if follows_acknowledgement {
        // A notification of a subscription follows the acknowledgement, and so does the result that ends it.
        let mut params = original.request["params"].clone();
        params["_meta"] = json!({ SUBSCRIPTION: original.request["id"] });
        entries.push(received(0, &json!({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})));
    }
    entries.push(received(1, message));
    if original.message.get("method").is_some() && !subscribed {
        // The request of the notification is answered after it; a subscription continues.
        let response =
            json!({"jsonrpc": "2.0", "id": original.request["id"], "error": {"code": -32603, "message": "x"}});
        entries.push(entry(2, Event::Received(Frame::from_value(&response))));
    }
    let transcript = Transcript { entries, session_parameters: original.session_parameters.clone() };
    let recorded = [RecordedConnection { label: String::new(), transcript }];
    let connections = IndexedConnections::new(&recorded, revision);
    cases().iter().filter(|case| case.runs_in(revision)).find_map(|case| {
        let Body::Passive(passive) = &case.body else { return None };
        let judged = judge_passive(case, passive, revision, &connections);
        let is_binding = |level| matches!(level, Level::Must | Level::Schema);
        let found =
            judged.findings.iter().find(|finding| finding.verdict == Verdict::Fail || is_binding(finding.level))?;
        Some(format!("{}: {}", case.id, found.message))
    })
}
