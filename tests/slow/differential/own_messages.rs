//! What the program itself sends, compared with the official schemas: every message is valid, unless its case says
//! that it is deliberately wrong, and then it is wrong in the one respect that [`DELIBERATE`] names. The requests that the
//! program makes for no case have the headers that the revision asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mcp_conformance::spec::{Era, Revision};
use serde_json::{Map, Value};

use super::super::address::unused_address;
use super::Official;
use crate::support::{PROGRAM, program};

/// The cases whose messages are deliberately wrong, each with what is wrong: the location of the first error in the
/// message, or a word for what no schema of one message describes. An entry that no message needs fails the trial.
const DELIBERATE: &[(&str, &str)] = &[
    ("cancellation/without-params", ""),
    ("completion/incomplete-request", "/params"),
    ("jsonrpc/batch-answers", BATCH),
    ("jsonrpc/batch-invalid-members", BATCH),
    ("jsonrpc/batch-of-notifications", BATCH),
    ("jsonrpc/batch-rejected", BATCH),
    ("jsonrpc/batch-served", BATCH),
    ("jsonrpc/deep-nesting", UNKNOWN_METHOD),
    ("jsonrpc/error-id-readable", "/method"),
    ("jsonrpc/id-null", "/id"),
    ("jsonrpc/inner-envelope", "/params"),
    ("jsonrpc/inner-envelope", UNKNOWN_METHOD),
    ("jsonrpc/interleaved", UNKNOWN_METHOD),
    ("jsonrpc/invalid-params", ""),
    ("jsonrpc/invalid-params", "/params"),
    ("jsonrpc/invalid-request-id-object", "/id"),
    ("jsonrpc/invalid-request-method-number", "/method"),
    ("jsonrpc/invalid-request-no-method", ""),
    ("jsonrpc/invalid-request-version", "/jsonrpc"),
    ("jsonrpc/invalid-utf8-survived", NOT_JSON),
    ("jsonrpc/lone-surrogate", UNKNOWN_METHOD),
    ("jsonrpc/long-number", NOT_JSON),
    ("jsonrpc/long-parts", UNKNOWN_METHOD),
    ("jsonrpc/method-case", UNKNOWN_METHOD),
    ("jsonrpc/notification-unanswered", UNKNOWN_METHOD),
    ("jsonrpc/params-array", "/params"),
    ("jsonrpc/params-array", UNKNOWN_METHOD),
    ("jsonrpc/params-missing", ""),
    ("jsonrpc/params-missing", "/params"),
    ("jsonrpc/params-missing", UNKNOWN_METHOD),
    ("jsonrpc/params-null", "/params"),
    ("jsonrpc/params-null", UNKNOWN_METHOD),
    ("jsonrpc/parse-error-code", NOT_JSON),
    ("jsonrpc/parse-error-survived", NOT_JSON),
    ("jsonrpc/request-without-id", ""),
    ("jsonrpc/request-without-id", " and 1 more"),
    ("jsonrpc/request-without-id", UNKNOWN_METHOD),
    ("jsonrpc/rpc-method", UNKNOWN_METHOD),
    ("jsonrpc/unknown-method", UNKNOWN_METHOD),
    ("jsonrpc/unknown-method-result", UNKNOWN_METHOD),
    ("logging/request-level-invalid", "/params/_meta/io.modelcontextprotocol~1logLevel"),
    ("logging/set-level-invalid", "/params/level"),
    ("mrtr/malformed-map", "/params/inputResponses"),
    ("mrtr/malformed-values", "/params/inputResponses/input"),
    ("prompts/get/argument-type", "/params/arguments/code"),
    ("prompts/get/incomplete", ""),
    ("prompts/get/incomplete", "/params"),
    ("resources/read/incomplete", ""),
    ("resources/read/incomplete", "/params"),
    ("resources/read/malformed-uri", "/params"),
    ("resources/read/malformed-uri", "/params/uri"),
    ("sampling/content-checked", "/params/inputResponses/input"),
    ("stateless/initialize-error-names-versions", UNKNOWN_METHOD),
    ("stateless/initialize-not-modern", UNKNOWN_METHOD),
    ("stateless/missing-capabilities", "/params/_meta"),
    ("stateless/missing-meta", "/params"),
    ("stateless/missing-version", "/params/_meta"),
    ("stateless/removed-methods", UNKNOWN_METHOD),
    ("stdio/standard-error-closed", UNKNOWN_METHOD),
    ("subscriptions/filter-required", "/params"),
    ("tasks-extension/removed-methods", UNKNOWN_METHOD),
    ("tools/call/arguments-array", "/params/arguments"),
    ("tools/call/arguments-string", "/params/arguments"),
    ("tools/call/name-number", "/params/name"),
    ("tools/call/no-name", "/params"),
    ("tools/call/repeatable-after-errors", "/params"),
    ("tools/call/repeatable-after-errors", "/params/arguments"),
    ("tools/list/cursor-type", "/params/cursor"),
    // The response that sampling/content-checked gives to a request of the server.
    (RESPONSE, "/result/content"),
];

const BATCH: &str = "batch";
const NOT_JSON: &str = "no JSON";
const UNKNOWN_METHOD: &str = "unknown method";
const RESPONSE: &str = "response";

/// The beginning of the methods of an extension, which the schema of the revision does not have.
const EXTENSION_METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

/// Fails unless what the program sends to the built-in server is valid, in each revision, over both transports.
pub(super) fn are_valid(folder: &Path) -> Result<(), String> {
    let (mut problems, mut needed) = (String::new(), BTreeSet::new());
    for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_draft()) {
        let official = Official::read(folder, revision)?;
        for over_http in [false, true] {
            let lines = transcript(revision, over_http)?;
            let sent = sent_messages(&lines);
            if sent.len() < 500 {
                return Err(format!("{revision}: only {} messages", sent.len()));
            }
            for message in &sent {
                let Some((what, described)) = official.deviation(message) else { continue };
                let case = message.case.unwrap_or(RESPONSE);
                match DELIBERATE.iter().position(|(known, deviation)| *known == case && *deviation == what) {
                    Some(at) => _ = needed.insert(at),
                    None => _ = writeln!(problems, "{revision} {case}: {what}: {described}"),
                }
            }
            if over_http && revision >= Revision::V2025_06_18 {
                problems += &wrong_headers(&lines, revision);
            }
        }
    }
    for (at, (case, what)) in DELIBERATE.iter().enumerate().filter(|(at, _)| !needed.contains(at)) {
        let _infallible = writeln!(problems, "no message needs entry {at}: {case} {what}");
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Judges the built-in server in a revision; the lines of the transcript.
fn transcript(revision: Revision, over_http: bool) -> Result<Vec<Value>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let options = ["--quiet", "--fuzz", "off", "--save-transcript", "t.jsonl", "--revision", revision.as_str()];
    let mut arguments: Vec<String> = options.map(str::to_owned).to_vec();
    let mut server = vec!["--".to_owned(), PROGRAM.to_owned(), "serve".to_owned()];
    if over_http {
        let address = unused_address().to_string();
        arguments.extend(["--url".to_owned(), format!("http://{address}/mcp")]);
        server.extend(["--http".to_owned(), address]);
    }
    arguments.extend(server);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    program(folder.path(), &arguments)?.with_code(0)?;
    let text = fs::read_to_string(folder.path().join("t.jsonl")).map_err(|error| error.to_string())?;
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))).collect()
}

/// A message that the client sent.
struct SentMessage<'l> {
    /// The case that it was sent for.
    case: Option<&'l str>,
    /// Nothing if it is no JSON.
    message: Option<&'l Value>,
    /// The method of the server's request that it responds to.
    answers: Option<&'l str>,
}

fn sent_messages(lines: &[Value]) -> Vec<SentMessage<'_>> {
    let mut asked: BTreeMap<(String, String), &str> = BTreeMap::new();
    let mut sent = Vec::new();
    for line in lines.iter().filter(|line| line.get("http").is_none() && line.get("event").is_none()) {
        let message = line.get("message");
        let key = |id: &Value| (line["connection"].to_string(), id.to_string());
        let id = message.and_then(|message| message.get("id"));
        let method = message.and_then(|message| message.get("method")?.as_str());
        if line["direction"] == "server-to-client" {
            if let (Some(id), Some(method)) = (id, method) {
                asked.insert(key(id), method);
            }
            continue;
        }
        let answers = id.filter(|_| method.is_none()).and_then(|id| asked.get(&key(id)).copied());
        sent.push(SentMessage { case: line["case"].as_str(), message, answers });
    }
    sent
}

impl Official {
    /// What is wrong with a message of the client, with a description: the location of the first error, or a word. An
    /// error beside it is described as a second one.
    fn deviation(&self, sent: &SentMessage<'_>) -> Option<(String, String)> {
        let Some(message) = sent.message else { return Some((NOT_JSON.to_owned(), String::new())) };
        let described = || message.to_string().chars().take(200).collect::<String>();
        if message.is_array() {
            return Some((BATCH.to_owned(), described()));
        }
        let method = message.get("method").and_then(Value::as_str);
        let errors = match (method, sent.answers) {
            (Some(method), _) => match self.definition_of(method) {
                Some(definition) => {
                    let is_request = message.get("id").is_some();
                    let envelope = if is_request { "JSONRPCRequest" } else { "JSONRPCNotification" };
                    let mut errors = self.errors(envelope, message);
                    errors.extend(self.errors(&definition, message));
                    errors.sort();
                    errors.dedup();
                    errors
                }
                None if EXTENSION_METHODS.contains(&method) => Vec::new(),
                None => return Some((UNKNOWN_METHOD.to_owned(), described())),
            },
            (None, Some(method)) => self.errors_of_response(method, message),
            (None, None) if message.get("result").or(message.get("error")).is_some() => {
                self.errors_of_response("", message)
            }
            (None, None) => self.errors("JSONRPCRequest", message),
        };
        match errors.as_slice() {
            [] => None,
            [one] => Some((one.clone(), described())),
            [first, ..] => Some((format!("{first} and {} more", errors.len() - 1), described())),
        }
    }

    /// The definition of the requests or notifications of a method that a client sends.
    fn definition_of(&self, method: &str) -> Option<String> {
        let definitions = self.document[self.definitions].as_object().into_iter().flatten();
        let is_of =
            |definition: &Value| definition.pointer("/properties/method/const").is_some_and(|own| own == method);
        let is_message = |name: &str| name.ends_with("Request") || name.ends_with("Notification");
        let mut names = definitions.filter(|(name, definition)| is_message(name) && is_of(definition));
        names.next().map(|(name, _)| name.clone())
    }

    /// The locations of the errors of a value, without those that enclose others.
    fn errors(&self, definition: &str, value: &Value) -> Vec<String> {
        let validator = self.validator(definition);
        validator.iter_errors(value).map(|error| error.instance_path().to_string()).collect()
    }

    fn errors_of_response(&self, method: &str, message: &Value) -> Vec<String> {
        let envelope = |names: [&'static str; 2]| if self.has(names[0]) { names[0] } else { names[1] };
        let Some(result) = message.get("result") else {
            return self.errors(envelope(["JSONRPCErrorResponse", "JSONRPCError"]), message);
        };
        let mut errors = self.errors(envelope(["JSONRPCResultResponse", "JSONRPCResponse"]), message);
        let definition = match method {
            "roots/list" => "ListRootsResult",
            "sampling/createMessage" => "CreateMessageResult",
            "elicitation/create" => "ElicitResult",
            _ => "Result",
        };
        let of_result = self.errors(definition, result);
        errors.extend(of_result.into_iter().map(|location| format!("/result{location}")));
        errors
    }
}

/// What the headers of requests lack that the program makes for no case.
fn wrong_headers(lines: &[Value], revision: Revision) -> String {
    let mut problems = String::new();
    let mut sent: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["direction"] == "client-to-server") {
        let connection = line["connection"].as_str().unwrap_or_default();
        let Some(http) = line.get("http") else {
            sent.entry(connection).or_default().push(line);
            continue;
        };
        let carried = http["carries"].as_u64().and_then(|at| usize::try_from(at).ok());
        let carried = carried.and_then(|at| sent.get(connection)?.get(at).copied());
        let Some(headers) = http["headers"].as_object().filter(|_| line.get("case").is_none()) else { continue };
        let Some(carried) = carried.filter(|carried| carried.get("case").is_none()) else { continue };
        for (name, expected) in expected_headers(&carried["message"], revision) {
            let actual = headers.get(name).and_then(Value::as_str);
            if actual != Some(&expected) {
                let _infallible =
                    writeln!(problems, "{revision} {name}: {actual:?} instead of {expected:?}: {carried}");
            }
        }
        problems += &missing_session(headers, &carried["message"], revision);
    }
    problems
}

/// The headers of a request that carries a message.
fn expected_headers(message: &Value, revision: Revision) -> Vec<(&'static str, String)> {
    let method = message["method"].as_str().unwrap_or_default();
    let mut expected = vec![
        ("accept", "application/json, text/event-stream".to_owned()),
        ("content-type", "application/json".to_owned()),
    ];
    if method != "initialize" {
        expected.push(("mcp-protocol-version", revision.as_str().to_owned()));
    }
    if revision.era() == Era::Stateless && !method.is_empty() {
        expected.push(("mcp-method", method.to_owned()));
        let name = match method {
            "tools/call" | "prompts/get" => message.pointer("/params/name"),
            "resources/read" => message.pointer("/params/uri"),
            _ => None,
        };
        expected.extend(name.and_then(Value::as_str).map(|name| ("mcp-name", name.to_owned())));
    }
    expected
}

/// A line if a request after the handshake names no session: the built-in server gives each client one.
fn missing_session(headers: &Map<String, Value>, message: &Value, revision: Revision) -> String {
    let has_session = headers.contains_key("mcp-session-id");
    let needs_session = revision.era() == Era::Handshake && message["method"] != "initialize";
    if has_session == needs_session { String::new() } else { format!("{revision} mcp-session-id: {message}\n") }
}
