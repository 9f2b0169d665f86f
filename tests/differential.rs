//! Our own shape rules held against the official schemas, message by message.
//!
//! Every message that the built-in server writes is deformed in every way that a table knows, and judged
//! twice: by the schema of its definition and by the watching cases. The two differ in places, each with
//! its reason in [`JUSTIFIED`]; any other difference fails the trial.
//!
//! The official schemas are no part of this repository. The trial is ignored unless `MCP_SCHEMAS` names a
//! folder that holds them as `<revision>.json`; it leaves its figures in `target/tmp/differential.txt`.

mod deform;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use libtest_mimic::Trial;
use mcp_conformance::internals::case::Body;
use mcp_conformance::internals::check::{IndexedConnections, RecordedConnection, judge_passive};
use mcp_conformance::internals::transcript::{Entry, Event, SessionParameters, Transcript};
use mcp_conformance::internals::wire::Frame;
use mcp_conformance::reference::{FaultSet, serve};
use mcp_conformance::spec::{Era, Level, Revision};
use mcp_conformance::verdict::Verdict;
use serde_json::{Value, json};

use self::deform::deform;
use crate::builtin::cases;
use crate::trial;

/// How many deformed messages are judged in a revision, as far as there are so many.
const MOST: usize = 12_000;
/// How many there have to be.
const LEAST: usize = 5_000;

pub(crate) fn trials() -> Vec<Trial> {
    let folder = std::env::var_os("MCP_SCHEMAS").map(PathBuf::from);
    let ignored = folder.is_none();
    let compared = move || compare(&folder.ok_or("MCP_SCHEMAS names no folder")?);
    vec![trial("differential/shapes", compared).with_ignored_flag(ignored)]
}

/// What differs, and which of the two is the stricter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    /// Our rules let pass what the schema refuses.
    OursLaxer,
    /// Our rules refuse what the schema lets pass.
    OursStricter,
}

/// A difference that is right: the side, the definition (`*` for any), the beginning of the place (positions
/// as `*`), the deformation (`*` for any), and the reason.
struct Justified(Side, &'static str, &'static str, &'static str, &'static str);

const JUSTIFIED: &[Justified] = &[
    Justified(
        Side::OursStricter,
        "*",
        "/id",
        "*",
        "an answer carries the id of its request, which a schema of one message cannot say",
    ),
    Justified(
        Side::OursStricter,
        "*",
        "/result/resultType",
        "*",
        "a client knows two types of results, and has to refuse any other; the schema takes any string",
    ),
    Justified(
        Side::OursStricter,
        "*",
        "/result/protocolVersion",
        "*",
        "a version that was agreed to before is agreed to again; the schema takes any string",
    ),
    Justified(
        Side::OursStricter,
        "*",
        "/result/capabilities/extensions",
        "*",
        "identifiers of extensions have a prefix, by the page; the schema takes any name",
    ),
    Justified(
        Side::OursStricter,
        "CallToolResult",
        "/result/content/*/mimeType",
        "*",
        "a MIME type is type/subtype, by RFC 6838, and that of the bytes; the schema takes any string",
    ),
    Justified(
        Side::OursStricter,
        "GetPromptResult",
        "/result/messages/*/content/mimeType",
        "*",
        "a MIME type is type/subtype, by RFC 6838, and that of the bytes; the schema takes any string",
    ),
    Justified(
        Side::OursStricter,
        "GetPromptResult",
        "/result/messages/*/content/resource/mimeType",
        "dropped",
        "the page of prompts wants the mimeType of an embedded resource, by a MUST; the schema does not",
    ),
    Justified(
        Side::OursStricter,
        "ListResourcesResult",
        "/result/resources/*/annotations/lastModified",
        "*",
        "lastModified is an ISO 8601 time, by the page; the schema takes any string",
    ),
    Justified(
        Side::OursStricter,
        "ListToolsResult",
        "/result/tools/*/inputSchema",
        "*",
        "an inputSchema is a valid JSON Schema, by the page; the schema looks at its root alone",
    ),
    Justified(
        Side::OursStricter,
        "ListToolsResult",
        "/result/tools/*/outputSchema",
        "*",
        "an outputSchema is a valid JSON Schema, by the page; the schema looks at its root alone",
    ),
    Justified(
        Side::OursStricter,
        "ProgressNotification",
        "/params/_meta/traceparent",
        "*",
        "a traceparent has the format of the W3C, by the page; the schema takes anything",
    ),
    Justified(
        Side::OursStricter,
        "ProgressNotification",
        "/params/progressToken",
        "*",
        "progress is reported on tokens of requests, which a schema of one message cannot say",
    ),
    Justified(
        Side::OursStricter,
        "SubscriptionsAcknowledgedNotification",
        "/params/_meta/io.modelcontextprotocol~1subscriptionId",
        "*",
        "an acknowledgement carries the id of its request, which a schema of one message cannot say",
    ),
    Justified(
        Side::OursStricter,
        "ToolListChangedNotification",
        "/params/_meta/io.modelcontextprotocol~1subscriptionId",
        "*",
        "what is listened for carries the id of its request, which a schema of one message cannot say",
    ),
    Justified(
        Side::OursLaxer,
        "*",
        "/method",
        "*",
        "under another method it is another message, to which its definition does not apply",
    ),
    Justified(
        Side::OursLaxer,
        "ListToolsResult",
        "/result/tools/*/icons/*/src",
        "*",
        "what the src of an icon may be is a rule of its own on the page, a SHOULD, and judged by tools/definition/icon-scheme as a warning",
    ),
    Justified(
        Side::OursLaxer,
        "ListPromptsResult",
        "/result/prompts/*/icons/*/src",
        "*",
        "what the src of an icon may be is a rule of its own on the page, a SHOULD, and judged by tools/definition/icon-scheme as a warning",
    ),
    Justified(
        Side::OursLaxer,
        "ListResourcesResult",
        "/result/resources/*/icons/*/src",
        "*",
        "what the src of an icon may be is a rule of its own on the page, a SHOULD, and judged by tools/definition/icon-scheme as a warning",
    ),
    Justified(
        Side::OursLaxer,
        "InitializeResult",
        "/result/serverInfo/icons/*/src",
        "*",
        "what the src of an icon may be is a rule of its own on the page, a SHOULD, and judged by tools/definition/icon-scheme as a warning",
    ),
    Justified(
        Side::OursLaxer,
        "*",
        "/result/_meta/io.modelcontextprotocol~1serverInfo/icons/*/src",
        "*",
        "what the src of an icon may be is a rule of its own on the page, a SHOULD, and judged by tools/definition/icon-scheme as a warning",
    ),
    Justified(
        Side::OursLaxer,
        "CallToolResult",
        "/result/content/*/icons/*/src",
        "*",
        "what the src of an icon may be is a rule of its own on the page, a SHOULD, and judged by tools/definition/icon-scheme as a warning",
    ),
    Justified(
        Side::OursLaxer,
        "GetPromptResult",
        "/result/messages/*/content/icons/*/src",
        "*",
        "what the src of an icon may be is a rule of its own on the page, a SHOULD, and judged by tools/definition/icon-scheme as a warning",
    ),
];

impl Justified {
    fn covers(&self, difference: &Difference) -> bool {
        let Self(side, definition, place, deformation, _) = self;
        let any = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        *side == difference.side
            && any(definition, &difference.definition)
            && (any(place, &difference.place) || difference.place.starts_with(&format!("{place}/")))
            && any(deformation, difference.deformation)
    }
}

/// Where a deformed message is judged in two ways.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    side: Side,
    definition: String,
    place: String,
    deformation: &'static str,
}

fn compare(folder: &Path) -> Result<(), String> {
    let mut report = String::new();
    let mut unjustified = String::new();
    for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_draft()) {
        let official = Official::read(folder, revision)?;
        let written = written(revision);
        let mut deformed = Vec::new();
        for message in &written {
            deformed.extend(deform(&message.message).into_iter().map(|one| (message, one)));
        }
        // Every n-th, so that each kind of message has its share.
        let step = deformed.len().div_ceil(MOST).max(1);
        let chosen: Vec<_> = deformed.iter().step_by(step).collect();
        if chosen.len() < LEAST {
            return Err(format!("{revision}: only {} deformed messages", chosen.len()));
        }
        let mut differences: BTreeMap<Difference, (usize, String)> = BTreeMap::new();
        let (mut refused, mut agreed) = (0, 0);
        for (written, deformed) in &chosen {
            let theirs = official.problem(&written.definition, &deformed.message);
            let ours = finding(written, &deformed.message, revision);
            refused += usize::from(theirs.is_some());
            let side = match (&theirs, &ours) {
                (Some(_), None) => Side::OursLaxer,
                (None, Some(_)) => Side::OursStricter,
                _ => {
                    agreed += 1;
                    continue;
                }
            };
            let difference = Difference {
                side,
                definition: written.definition.clone(),
                place: deformed.place.clone(),
                deformation: deformed.kind,
            };
            let told = theirs.or(ours).unwrap_or_default();
            differences.entry(difference).or_insert((0, told)).0 += 1;
        }
        for message in &written {
            if let Some(problem) = official.problem(&message.definition, &message.message) {
                return Err(format!(
                    "{revision}: the schema refuses what is not deformed: {problem}\n{}",
                    message.message
                ));
            }
            if let Some(problem) = finding(message, &message.message, revision) {
                return Err(format!("{revision}: we refuse what is not deformed: {problem}\n{}", message.message));
            }
        }
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for (difference, (count, told)) in &differences {
            if let Some(justified) = JUSTIFIED.iter().find(|justified| justified.covers(difference)) {
                *reasons.entry(justified.4).or_default() += count;
            } else {
                let Difference { side, definition, place, deformation } = difference;
                let told: String = told.chars().take(160).collect();
                let _infallible =
                    writeln!(unjustified, "{revision} {side:?} {count} {definition} {place} {deformation}: {told}");
            }
        }
        let _infallible = writeln!(
            report,
            "{revision}: {} messages, {} deformed, {refused} of them refused by the schema, {agreed} judged alike, {} not",
            written.len(),
            chosen.len(),
            chosen.len() - agreed,
        );
        for (reason, count) in reasons {
            let _infallible = writeln!(report, "  {count:>5}  {reason}");
        }
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential.txt");
    fs::write(&path, format!("{report}\n{unjustified}"))
        .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    if unjustified.is_empty() { Ok(()) } else { Err(format!("without a reason ({}):\n{unjustified}", path.display())) }
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

    fn has(&self, definition: &str) -> bool {
        self.document[self.definitions].get(definition).is_some()
    }

    /// The validator of a definition, made once.
    fn validator(&self, definition: &str) -> Arc<Validator> {
        if let Some(known) = self.validators.borrow().get(definition) {
            return Arc::clone(known);
        }
        let mut schema = json!({"$ref": format!("#/{}/{definition}", self.definitions)});
        schema["$schema"] = self.document["$schema"].clone();
        schema[self.definitions] = self.document[self.definitions].clone();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .with_format("byte", is_base64)
            .build(&schema)
            .unwrap_or_else(|error| panic!("{definition} is no definition: {error}"));
        let validator = Arc::new(validator);
        self.validators.borrow_mut().insert(definition.to_owned(), Arc::clone(&validator));
        validator
    }

    /// What the schema has against a message, if anything: its envelope, and the definition of its kind.
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

/// A message of the server and what it was written for.
struct Written {
    message: Value,
    /// What precedes it on its connection: the request that it answers or that it belongs to.
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

/// Every message that the built-in server writes in a conversation that asks for all it has.
fn written(revision: Revision) -> Vec<Written> {
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
    converse(requests, revision)
}

/// The requests for every page of a list.
fn pages(method: &str, revision: Revision) -> Vec<Value> {
    let mut requests = vec![json!({"method": method, "params": {}})];
    loop {
        let answered = converse(requests.clone(), revision);
        let last = answered.iter().rev().find(|written| written.request["method"] == method);
        let Some(cursor) = last.and_then(|last| last.message.pointer("/result/nextCursor").cloned()) else {
            return requests;
        };
        requests.push(json!({"method": method, "params": {"cursor": cursor}}));
    }
}

/// Asks all of this on one connection, one after the other, and sorts what comes back.
fn converse(requests: Vec<Value>, revision: Revision) -> Vec<Written> {
    let stateless = revision.era() == Era::Stateless;
    let client = json!({"name": "differential", "version": "1.0.0"});
    let opening = if stateless {
        json!({"method": "server/discover"})
    } else {
        let params = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client});
        json!({"method": "initialize", "params": params})
    };
    let mut asked = vec![opening];
    asked.extend(requests);
    let mut input = String::new();
    for (id, request) in asked.iter_mut().enumerate() {
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
    runtime.block_on(serve(input.as_bytes(), &mut output, &FaultSet::none())).expect("it serves what is in memory");
    let lines = String::from_utf8(output).expect("it writes UTF-8");
    let messages: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("it writes JSON")).collect();
    let session_parameters =
        SessionParameters { client_capabilities: json!({}), opening: messages[0].get("result").cloned() };
    let mut found = Vec::new();
    let mut next = 0;
    for message in messages {
        // What comes on its own precedes the answer of its request, or follows that of a subscription.
        let of_method = message.get("method").and_then(Value::as_str);
        let request = match (&message["id"], of_method) {
            (id, None) => {
                let id = id.as_u64().and_then(|id| usize::try_from(id).ok()).expect("it answers by our ids");
                next = id + 1;
                asked[id].clone()
            }
            (_, Some("notifications/resources/updated")) => asked[next - 1].clone(),
            (_, Some("notifications/progress")) => {
                let own = |asked: &&Value| {
                    asked.pointer("/params/_meta/progressToken") == message.pointer("/params/progressToken")
                };
                asked.iter().find(own).cloned().unwrap_or_default()
            }
            (_, Some(_)) if subscription_of(&message).is_some() => {
                asked.iter().find(|asked| asked.get("id") == subscription_of(&message)).cloned().unwrap_or_default()
            }
            (_, Some(_)) => asked[next.min(asked.len() - 1)].clone(),
        };
        let definition = match of_method {
            Some(method) => message_definition(method),
            None if message.get("error").is_some() => Some("error"),
            None => request["method"].as_str().and_then(result_definition),
        };
        if let Some(definition) = definition {
            found.push(Written {
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

/// The id of the request that a notification is listened for by, if it names one.
fn subscription_of(message: &Value) -> Option<&Value> {
    message.get("params")?.get("_meta")?.get(SUBSCRIPTION)
}

/// What the watching cases find wrong with the shape of a message, if anything.
fn finding(written: &Written, message: &Value, revision: Revision) -> Option<String> {
    let entry = |at: u64, event| Arc::new(Entry { at: Duration::from_millis(at), event });
    let received = |at, message: &Value| entry(at, Event::Received(Frame::parse(message.to_string().as_bytes())));
    let mut entries = vec![entry(0, Event::Sent { frame: Frame::from_value(&written.request), step_id: None })];
    let subscribed = written.request["method"] == "subscriptions/listen";
    if subscription_of(&written.message).is_some()
        && written.message["method"].as_str().is_some_and(|it| it != ACKNOWLEDGED)
    {
        // What is listened for comes behind the acknowledgement.
        let mut params = written.request["params"].clone();
        params["_meta"] = json!({ SUBSCRIPTION: written.request["id"] });
        entries.push(received(0, &json!({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})));
    }
    entries.push(received(1, message));
    if written.message.get("method").is_some() && !subscribed {
        // What the notification belongs to is answered after it; a subscription goes on.
        let answer = json!({"jsonrpc": "2.0", "id": written.request["id"], "error": {"code": -32603, "message": "x"}});
        entries.push(entry(2, Event::Received(Frame::from_value(&answer))));
    }
    let transcript = Transcript { entries, session_parameters: written.session_parameters.clone() };
    let connected = [RecordedConnection { label: String::new(), transcript }];
    let watched = IndexedConnections::new(&connected, revision);
    cases().iter().filter(|case| case.runs_in(revision)).find_map(|case| {
        let Body::Passive(passive) = &case.body else { return None };
        let judged = judge_passive(case, passive, revision, &watched);
        let binds = |level| matches!(level, Level::Must | Level::Schema);
        let found = judged.findings.iter().find(|finding| finding.verdict == Verdict::Fail || binds(finding.level))?;
        Some(format!("{}: {}", case.id, found.message))
    })
}
