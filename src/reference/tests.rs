//! A scripted conversation in every revision, with the conforming server and with each fault.

mod client_request;
mod task;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use self::task::task_conversation;
use super::connection::Connection;
use super::connection_state::Output;
use super::fault::{Fault, FaultSet, Surroundings};
use super::interception;
use super::pagination::cursor;
use super::revision::Revision;
use super::server::{ignores_sigterm, serve, stderr_noise};

/// Builds the messages of a client of one revision.
struct Script {
    revision: Revision,
    lines: Vec<Vec<u8>>,
    next_id: i64,
}

impl Script {
    fn new(revision: Revision) -> Self {
        Self { revision, lines: Vec::new(), next_id: 1 }
    }

    fn raw(&mut self, line: impl Into<Vec<u8>>) {
        self.lines.push(line.into());
    }

    fn line(&mut self, value: &Value) {
        self.raw(value.to_string());
    }

    fn notify(&mut self, method: &str) {
        self.line(&json!({"jsonrpc": "2.0", "method": method}));
    }

    /// The metadata that a request of this revision needs.
    fn meta(&self) -> Value {
        if self.revision.is_modern() {
            json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "script", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            })
        } else {
            json!({})
        }
    }

    fn with_meta(&self, mut params: Value, extra: &Value) -> Value {
        let mut meta = self.meta();
        for (key, value) in extra.as_object().into_iter().flatten() {
            meta[key] = value.clone();
        }
        if meta != json!({}) {
            params["_meta"] = meta;
        }
        params
    }

    /// Adds a request that the revision allows.
    fn ask(&mut self, method: &str, params: Value) {
        self.ask_with(method, params, &json!({}));
    }

    fn ask_with(&mut self, method: &str, params: Value, meta: &Value) {
        let params = self.with_meta(params, meta);
        let id = self.next_request_id();
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn next_request_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    fn call(&mut self, name: &str, arguments: &Value) {
        let meta = json!({"progressToken": format!("token-{name}")});
        self.ask_with("tools/call", json!({"name": name, "arguments": arguments}), &meta);
    }

    fn open(&mut self) {
        if self.revision.is_modern() {
            self.call("no_arguments", &json!({}));
            for key in ["protocolVersion", "clientCapabilities", "clientInfo"] {
                let mut params = self.with_meta(json!({}), &json!({}));
                let meta = params["_meta"].as_object_mut().expect("modern requests have _meta");
                meta.remove(&format!("io.modelcontextprotocol/{key}"));
                self.line(&json!({"jsonrpc": "2.0", "id": key, "method": "tools/list", "params": params}));
            }
            self.line(&json!({"jsonrpc": "2.0", "id": "bare", "method": "tools/list", "params": {}}));
            let old = json!({"io.modelcontextprotocol/protocolVersion": "1999-01-01"});
            self.ask_with("tools/list", json!({}), &old);
            self.ask("tools/list", json!({}));
            self.ask("server/discover", json!({}));
            self.ask("ping", json!({}));
            return;
        }
        let opening = |version: &str| {
            json!({
                "protocolVersion": version,
                "capabilities": {"roots": {}},
                "clientInfo": {"name": "script", "version": "1"},
            })
        };
        let mut bare = opening(self.revision.name());
        bare["capabilities"] = json!({});
        self.ask("initialize", bare);
        self.ask("initialize", opening("1999-01-01"));
        self.ask("initialize", opening(self.revision.name()));
        self.ask("ping", json!({}));
        self.notify("notifications/initialized");
    }

    /// The whole conversation.
    fn full(mut self) -> Vec<Vec<u8>> {
        self.open();
        self.ids_and_unknown_keys();
        self.lists();
        self.calls();
        self.invalid_messages();
        self.client_requests();
        self.final_requests();
        self.lines
    }

    fn ids_and_unknown_keys(&mut self) {
        let large = [json!(9_007_199_254_740_991_i64), json!(9_007_199_254_740_993_i64), Value::Null];
        let ids = [json!("s"), json!(""), json!(0), json!(-7)].into_iter().chain(large);
        for id in ids.chain([json!("é"), json!(70), json!("70"), json!(70)]) {
            let params = self.with_meta(json!({}), &json!({}));
            self.line(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params}));
        }
        for method in ["no/such", "rpc.discover", "TOOLS/LIST"] {
            self.ask(method, json!({}));
        }
        self.ask("tools/list", json!({"surplus": 1}));
        self.ask_with("tools/list", json!({}), &json!({"com.example/key": 1}));
        self.ask_with("tools/list", json!({}), &json!({"io.modelcontextprotocol/unheard-of": [1]}));
        self.notify("notifications/unheard-of");
        let cancelled = json!({"requestId": "unheard-of"});
        self.line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
        self.ask("ping", json!({}));
        self.ask("resources/list", json!({}));
        self.ask("resources/templates/list", json!({}));
        self.ask("resources/read", json!({"uri": "mock:///notes.txt"}));
        self.ask("resources/read", json!({"uri": "mock:///nowhere"}));
        self.ask("resources/read", json!({"uri": "mock:///pixels.png"}));
        self.ask("resources/read", json!({"uri": "data:text/plain,x"}));
        self.ask("resources/read", json!({"uri": "mock:///numbers/7"}));
        self.ask("resources/read", json!({"uri": "mock:///notes.txt/../../etc/passwd"}));
        self.ask("resources/subscribe", json!({"uri": "mock:///notes.txt"}));
        self.ask("resources/unsubscribe", json!({"uri": "mock:///notes.txt"}));
        for list in ["resources", "prompts"] {
            self.ask(&format!("{list}/list"), json!({"cursor": "made-up"}));
            self.ask(&format!("{list}/list"), json!({"cursor": cursor(list, 4, 0)}));
        }
        self.prompts();
    }

    /// Requests that are only answered once, or that affect what follows.
    fn final_requests(&mut self) {
        let stranger = json!({"io.modelcontextprotocol/clientInfo": {"name": "somebody-else", "version": "1"}});
        if self.revision.is_modern() {
            self.ask_with("tools/list", json!({}), &stranger);
            self.ask_with("tools/list", json!({}), &json!({"io.modelcontextprotocol/logLevel": "verbose"}));
            self.ask("subscriptions/listen", json!({"notifications": {"resourcesListChanged": true}}));
            self.ask("subscriptions/listen", json!({}));
        } else {
            self.ask("logging/setLevel", json!({"level": "verbose"}));
        }
        self.ask("resources/read", json!({"uri": 5}));
        self.ask("resources/read", json!({}));
        self.ask("prompts/get", json!({}));
        self.ask("tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
        let cancelled = json!({"requestId": self.next_id});
        self.line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
        self.ask("tools/list", json!({}));
    }

    fn prompts(&mut self) {
        self.ask("prompts/list", json!({}));
        for prompt in ["picture", "briefing", "greeting", "nobody"] {
            self.ask("prompts/get", json!({"name": prompt}));
        }
        let with_option = json!({"code": "1", "language": "c"});
        for arguments in
            [json!({"code": "1"}), with_option, json!({"code": "{{7*7777}}"}), json!({"code": 1}), json!({})]
        {
            self.ask("prompts/get", json!({"name": "review", "arguments": arguments}));
        }
        let argument = json!({"name": "language", "value": ""});
        let long = json!({"name": "language", "value": "x".repeat(4001)});
        for reference in ["review", "nobody"].map(|name| json!({"type": "ref/prompt", "name": name})) {
            self.ask("completion/complete", json!({"ref": reference, "argument": argument}));
            self.ask("completion/complete", json!({"ref": reference, "argument": argument, "context": {}}));
            self.ask("completion/complete", json!({"ref": reference, "argument": long}));
        }
        self.ask("completion/complete", json!({"argument": argument}));
    }

    fn lists(&mut self) {
        if !self.revision.is_modern() {
            let id = self.next_request_id();
            self.line(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
            self.ask("tools/list", json!({"_meta": {}}));
        }
        for _ in 0..2 {
            self.ask("tools/list", json!({}));
            for position in (4..32).step_by(4) {
                self.ask("tools/list", json!({"cursor": cursor("tools", position, 0)}));
            }
        }
        let mut altered = cursor("tools", 4, 0);
        altered.pop();
        let long = "x".repeat(4001);
        for cursor in [json!("made-up"), json!(altered), json!(5), json!(""), json!(long)] {
            self.ask("tools/list", json!({"cursor": cursor}));
        }
    }

    fn calls(&mut self) {
        for name in ["image", "audio", "link", "embed_text", "embed_blob", "annotated"] {
            self.call(name, &json!({}));
        }
        self.call("echo", &json!({"text": "Hello, café"}));
        self.call("add", &json!({"a": 1, "b": 2}));
        self.call("weather", &json!({"city": "Oslo"}));
        self.call("count", &json!({"to": 3}));
        self.ask_with("tools/call", json!({"name": "count", "arguments": {"to": 2}}), &json!({}));
        self.ask_with("tools/call", json!({"name": "count", "arguments": {"to": 2}}), &json!({"progressToken": 7}));
        self.call("log", &json!({}));
        let loud = json!({"io.modelcontextprotocol/logLevel": "debug"});
        if self.revision.is_modern() {
            self.ask_with("tools/call", json!({"name": "log"}), &loud);
            let quiet = json!({"io.modelcontextprotocol/logLevel": "error"});
            self.ask_with("tools/call", json!({"name": "log"}), &quiet);
        } else {
            self.ask("logging/setLevel", json!({"level": "error"}));
            self.call("log", &json!({}));
            self.call("grow", &json!({}));
        }
        self.call("fail", &json!({"outcome": "fails"}));
        self.ask("tools/call", json!({"name": "no_arguments"}));
        for (name, arguments) in [
            ("no_such_tool", json!({})),
            ("ECHO", json!({"text": "x"})),
            ("echo", json!({})),
            ("echo", json!({"text": {}})),
            ("weather", json!({"city": "Oslo", "unit": "kelvin"})),
            ("no_arguments", json!({"surplus": 1})),
            ("echo", json!([])),
            ("echo", json!("text")),
        ] {
            self.call(name, &arguments);
        }
        let long = "x".repeat(5_000);
        for params in [json!({}), json!({"name": 5}), json!({"name": long})] {
            self.ask("tools/call", params);
        }
    }

    fn large_messages(&mut self) {
        let mut nested = json!([]);
        for _ in 0..520 {
            nested = json!([nested]);
        }
        let members: serde_json::Map<String, Value> = (0..1_001).map(|at| (format!("m{at}"), json!(at))).collect();
        for part in [json!("x".repeat(101_000)), nested, json!({"x".repeat(1_025): 1}), json!(members)] {
            let mut params = self.with_meta(json!({}), &json!({}));
            params["conformance"] = part;
            self.line(&json!({"jsonrpc": "2.0", "id": 906, "method": "tools/list", "params": params}));
        }
        let params = self.with_meta(json!({}), &json!({}));
        self.line(&json!({"jsonrpc": "2.0", "id": "x".repeat(300), "method": "tools/list", "params": params}));
        self.line(&json!({"jsonrpc": "2.0", "id": 907, "method": "x".repeat(1_025), "params": params}));
    }

    /// Requests whose envelope is unusual.
    fn unusual_envelopes(&mut self) {
        for params in [None, Some(json!({}))] {
            let mut request = json!({"jsonrpc": "2.0", "id": 908, "method": "prompts/get"});
            if let Some(params) = params {
                request["params"] = params;
            }
            self.line(&request);
        }
        let params = self.with_meta(json!({"id": 909}), &json!({}));
        self.line(&json!({"jsonrpc": "2.0", "id": 910, "method": "tools/list", "params": params}));
        let params = self.with_meta(json!({}), &json!({}));
        self.line(&json!({"jsonrpc": "2.0", "method": "tools/list", "params": params}));
    }

    fn invalid_messages(&mut self) {
        self.large_messages();
        self.unusual_envelopes();
        let call = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        self.line(&json!([call(900), {"jsonrpc": "2.0", "method": "notifications/x"}, call(901)]));
        self.line(&json!([{"jsonrpc": "2.0", "method": "notifications/x"}]));
        self.line(&json!([1, {"jsonrpc": "2.0", "method": "notifications/x"}]));
        self.line(&json!([]));
        self.line(&json!({"jsonrpc": "2.0", "id": 902}));
        self.line(&json!({"jsonrpc": "2.0", "id": 903, "method": 5}));
        let params = self.with_meta(json!({}), &json!({}));
        self.line(&json!({"jsonrpc": "1.0", "id": 904, "method": "tools/list", "params": params}));
        self.line(&json!({"jsonrpc": "2.0", "id": {}, "method": "tools/list", "params": params}));
        self.line(&json!({"jsonrpc": "2.0", "id": 905, "method": "tools/list", "params": []}));
        self.line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
        self.raw(br#"{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"\ud800"}}"#.to_vec());
        self.raw(br#"{"jsonrpc":"2.0","id":"x-\ud800","method":"ping"}"#.to_vec());
        self.raw([vec![b'['; 2_000], vec![b']'; 2_000]].concat());
        self.raw(vec![b'7'; 5_000]);
        self.raw(br#"{"jsonrpc":"2.0","method":"tools/list","params":{},"id":1}"#.to_vec());
        self.raw(b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": ".to_vec());
        self.raw(b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\xff\"}".to_vec());
        self.ask("tools/list", json!({}));
    }
}

/// The output for each line of a script, and the delayed responses at the end; evaluated lazily.
fn outputs_by_line<'a>(script: &'a [Vec<u8>], faults: &'a FaultSet) -> impl Iterator<Item = Vec<Output>> {
    let mut connection = Connection::new(faults, interception::none());
    let mut lines = script.iter().map(Some).chain([None]);
    std::iter::from_fn(move || match lines.next()? {
        Some(line) => Some(connection.receive(line)),
        None => Some(connection.flush_delayed()),
    })
}

/// The output of the whole conversation.
fn run_script(revision: Revision, faults: &FaultSet) -> Vec<Output> {
    outputs_by_line(&Script::new(revision).full(), faults).flatten().collect()
}

/// Every message of a conversation without faults.
fn messages(revision: Revision) -> Vec<Value> {
    let mut messages = Vec::new();
    for output in run_script(revision, &FaultSet::none()) {
        let Output::Bytes(bytes) = output else { panic!("the server conforms") };
        for line in bytes.strip_suffix(b"\n").expect("lines end").split(|byte| *byte == b'\n') {
            messages.push(serde_json::from_slice(line).expect("every line is JSON"));
        }
    }
    messages
}

fn respond_once(line: &Value) -> Value {
    let faults = FaultSet::none();
    let outputs = Connection::new(&faults, interception::none()).receive(line.to_string().as_bytes());
    match outputs.as_slice() {
        [Output::Bytes(bytes)] => serde_json::from_slice(bytes).expect("the answer is JSON"),
        other => panic!("one answer, not {other:?}"),
    }
}

/// Faults that only show in timing, at the end of input or outside the output of the connection.
const NOT_IN_SCRIPTED_CONVERSATION: &[Fault] = &[
    Fault::InitializeModern,
    Fault::InitializeErrorWithoutVersions,
    Fault::NullParamsCrash,
    Fault::UnknownMemberRejectedByCalls,
    Fault::InputBeforeValidation,
    Fault::IdleNotifications,
    Fault::IgnoresEof,
    Fault::IgnoresSigterm,
    Fault::NoNewline,
    Fault::RequestBeforeInitializeExits,
    Fault::SigtermWaitsForEof,
    Fault::LeavesProcess,
    Fault::StderrLatin1,
    Fault::LocaleOutput,
    Fault::SplitCharactersLost,
    Fault::OneLinePerRead,
    Fault::StderrNeeded,
    Fault::SlowStart,
    Fault::StderrNoise,
    Fault::WritesInPieces,
    Fault::WritesTogether,
    Fault::SlowAnswers,
    Fault::SlowerAnswers,
    Fault::SlowInTurn,
    Fault::Pauses,
    Fault::SlowCalls,
    Fault::SlowTool,
    Fault::LastingTool,
    Fault::RunningCallExits,
    Fault::LateCancellationExits,
    Fault::ManyCallsExit,
    Fault::ManyCallsUnanswered,
    Fault::RunningCallAnswered,
    Fault::CancelledTwiceExits,
    Fault::CancellationWaits,
];

#[test]
fn every_fault_shows_in_exactly_the_revisions_that_it_lists() {
    let mut wrong = Vec::new();
    for revision in Revision::ALL {
        let script = Script::new(*revision).full();
        let conforming: Vec<_> = outputs_by_line(&script, &FaultSet::none()).collect();
        let tasks_without_fault = task_conversation(*revision, &FaultSet::none());
        for fault in Fault::all().iter().filter(|fault| !fault.is_http_only()) {
            // The effect of an unknown version is decided before a revision is negotiated.
            let of_unknown = [
                Fault::UnknownVersionRejected,
                Fault::UnknownVersionEchoed,
                Fault::OlderVersionEchoed,
                Fault::MadeUpVersionOffered,
                Fault::FallbackOldest,
            ];
            let before = of_unknown.contains(fault) && !revision.is_modern();
            // The stateless server lists and rejects another version.
            let elsewhere = *fault == Fault::UnusableVersionListed && *revision == Revision::V2025_11_25;
            let expected = (fault.revisions().contains(revision) || before || elsewhere)
                && !NOT_IN_SCRIPTED_CONVERSATION.contains(fault);
            // The first initialize of the script is answered in 2025-11-25, whatever follows.
            let opening_only = !revision.is_modern()
                && fault.revisions().contains(&Revision::V2025_11_25)
                && !fault.revisions().contains(revision);
            let faults = FaultSet::from(*fault);
            let shown = !outputs_by_line(&script, &faults).eq(conforming.iter().cloned())
                || task_conversation(*revision, &faults) != tasks_without_fault;
            if shown != expected && !(shown && opening_only) {
                wrong.push(format!("{fault} in {revision}: expected {expected}, shown {shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faults_together_do_not_bring_the_server_down() {
    let ending: BTreeSet<&str> = BTreeSet::from([
        "array-params-crash",
        "null-params-crash",
        "parse-error-exits",
        "method-number-exits",
        "long-cursor-crash",
        "long-tool-name-crash",
        "completion-crash",
        "read-crash",
        "read-incomplete-exits",
        "prompt-incomplete-exits",
        "late-cancel-crash",
        "cancelled-call-exits",
        "surrogate-escape-exits",
        "deep-input-exits",
        "second-initialize-exits",
        "request-before-initialize-exits",
        "cancellation-without-params-exits",
        "dies-on-call",
        "never-answers",
        "answers-garbage",
        "answers-empty-object",
        "answers-same-error",
    ]);
    let all: FaultSet =
        Fault::all().iter().copied().filter(|fault| !fault.is_http_only() && !ending.contains(fault.name())).collect();
    for revision in Revision::ALL {
        assert!(!run_script(*revision, &all).is_empty(), "{revision}");
    }
}

#[test]
fn initialize_agrees_to_each_revision_of_the_handshake_and_falls_back_to_the_last() {
    let requested = ["2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let fallbacks = ["1999-01-01", "2099-12-31", "2026-07-28", ""];
    for (version, agreed) in
        requested.into_iter().map(|v| (v, v)).chain(fallbacks.into_iter().map(|v| (v, "2025-11-25")))
    {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "script", "version": "1"},
        });
        let response = respond_once(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(response["result"]["protocolVersion"], agreed, "{version}");
        assert!(response["result"]["capabilities"]["tools"].is_object());
    }
}

#[test]
fn discover_needs_no_handshake_and_lists_the_version_in_use() {
    let script = Script::new(Revision::V2026_07_28);
    let params = json!({"_meta": script.meta()});
    let response = respond_once(&json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": params}));
    assert_eq!(response["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(response["result"]["resultType"], "complete");
}

#[test]
fn a_request_without_handshake_and_metadata_is_rejected() {
    let response = respond_once(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert_eq!(response["error"]["code"], -32_602);
}

#[test]
fn one_connection_serves_requests_with_and_without_handshake() {
    let faults = FaultSet::none();
    let mut connection = Connection::new(&faults, interception::none());
    let mut script = Script::new(Revision::V2024_11_05);
    script.open();
    script.ask("tools/list", json!({}));
    script.revision = Revision::V2026_07_28;
    script.ask("tools/list", json!({}));
    let outputs: Vec<Output> = script.lines.iter().flat_map(|line| connection.receive(line)).collect();
    let lists: Vec<Value> = outputs[outputs.len() - 2..]
        .iter()
        .map(|output| match output {
            Output::Bytes(bytes) => serde_json::from_slice(bytes).expect("the answer is JSON"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(lists[0]["result"].get("resultType").is_none());
    assert_eq!(lists[1]["result"]["resultType"], "complete");
}

#[test]
fn every_request_of_the_conversation_is_answered_exactly_once() {
    for revision in Revision::ALL {
        let mut requested = Vec::new();
        for line in Script::new(*revision).full() {
            if let Ok(Value::Object(message)) = serde_json::from_slice(&line)
                && let (Some(id), Some(Value::String(_))) = (message.get("id"), message.get("method"))
                && !(id.is_object() || id.is_null())
                // A subscription with a filter stays open.
                && message
                    .get("params")
                    .and_then(|params| params.get("notifications"))
                    .is_none_or(|filter| *filter == json!({}))
            {
                requested.push(id.clone());
            }
        }
        let mut answered: Vec<Value> = messages(*revision)
            .into_iter()
            .filter(|message| message.get("method").is_none())
            .filter_map(|message| message.get("id").cloned())
            .collect();
        // The messages without a method and with a numeric method have ids as well.
        for id in requested.iter().chain(&[json!(902), json!(903)]) {
            let place = answered.iter().position(|other| other == id);
            answered.remove(place.unwrap_or_else(|| panic!("{revision}: {id} has no answer")));
        }
        assert!(answered.iter().all(Value::is_null), "{revision}: {answered:?}");
    }
}

#[test]
fn a_waiting_call_is_answered_after_the_client_responds_unless_it_was_cancelled() {
    for cancelled in [false, true] {
        let faults = FaultSet::none();
        let mut connection = Connection::new(&faults, interception::none());
        let mut script = Script::new(Revision::V2025_06_18);
        script.open();
        script.line(&json!({
            "jsonrpc": "2.0",
            "id": "call",
            "method": "tools/call",
            "params": {"name": "ask_roots"},
        }));
        if cancelled {
            let params = json!({"requestId": "call"});
            script.line(&json!({
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": params,
            }));
        }
        for line in &script.lines {
            connection.receive(line);
        }
        let response = json!({"jsonrpc": "2.0", "id": "question-1", "result": {"roots": []}});
        let outputs = connection.receive(response.to_string().as_bytes());
        assert_eq!(outputs.is_empty(), cancelled, "{outputs:?}");
    }
}

async fn serve_lines(lines: &[u8], faults: FaultSet) -> Vec<u8> {
    let mut written = Vec::new();
    serve(lines, &mut written, &faults).await.expect("memory does not fail");
    written
}

#[tokio::test]
async fn a_last_line_without_an_ending_is_answered() {
    let line = br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#;
    let written = serve_lines(line, FaultSet::none()).await;
    assert_eq!(written, b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"result\":{}}\n");
}

#[tokio::test]
async fn concurrent_requests_are_confused_as_each_fault_describes() {
    let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let call = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {}});
    let other = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "no/such"});
    for (fault, first, second, ids) in [
        (Fault::SwappedIds, ping(json!(1)), other(json!(2)), json!([2, 1])),
        (Fault::SwappedIds, call(json!(1)), call(json!(2)), json!([1, 2])),
        (Fault::CallsSwapped, call(json!(1)), call(json!(2)), json!([2, 1])),
        (Fault::CallsSwapped, ping(json!(1)), other(json!(2)), json!([1, 2])),
        (Fault::IdKindsConfused, ping(json!(7)), ping(json!("7")), json!([7, 7])),
        (Fault::IdKindsConfused, ping(json!("7")), ping(json!(8)), json!(["7", 8])),
    ] {
        let lines = format!("{first}\n{second}\n");
        let written = serve_lines(lines.as_bytes(), FaultSet::from(fault)).await;
        let text = String::from_utf8(written).expect("the answers are text");
        let answered: Vec<Value> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].take()).collect();
        assert_eq!(json!(answered), ids, "{fault}");
    }
}

#[test]
fn a_connection_can_be_served_on_another_thread() {
    fn is_send(_: impl Send) {}
    is_send(serve(&b""[..], Vec::new(), &FaultSet::none()));
}

#[tokio::test]
async fn a_delayed_response_is_sent_if_no_other_request_arrives() {
    let (client, server) = tokio::io::duplex(1 << 10);
    let faults = FaultSet::from(Fault::SwappedIds);
    let (reader, writer) = tokio::io::split(server);
    let conversation = async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut reader, mut writer) = tokio::io::split(client);
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        writer.write_all(line).await.expect("the pipe is open");
        let mut response = vec![0; 36];
        reader.read_exact(&mut response).await.expect("the response arrives");
        assert_eq!(response, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    };
    tokio::select! {
        _ = serve(reader, writer, &faults) => panic!("the connection is still open"),
        () = conversation => {}
    }
}

#[tokio::test]
async fn faults_of_standard_streams_show_in_their_surroundings() {
    let ping = |id: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n");
    let ids = |written: Vec<u8>| -> Vec<Value> {
        let text = String::from_utf8(written).expect("the answers are text");
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].take()).collect()
    };
    let both = [ping("é"), ping("2")].concat();
    for (fault, surroundings, answered) in [
        (Fault::LocaleOutput, Surroundings::default(), json!(["é", "2"])),
        (Fault::LocaleOutput, Surroundings { has_no_locale: true, ..Surroundings::default() }, json!(["?", "2"])),
        (Fault::StderrNeeded, Surroundings::default(), json!(["é", "2"])),
        (Fault::StderrNeeded, Surroundings { has_no_standard_error: true, ..Surroundings::default() }, json!([])),
        (Fault::OneLinePerRead, Surroundings::default(), json!(["é"])),
        (Fault::SplitCharactersLost, Surroundings::default(), json!(["é", "2"])),
    ] {
        let faults = FaultSet::from(fault).started_in(surroundings);
        assert_eq!(json!(ids(serve_lines(both.as_bytes(), faults).await)), answered, "{fault}");
    }
    let line = ping("é");
    let (first, second) = line.as_bytes().split_at(line.find('é').expect("it is there") + 1);
    let mut written = Vec::new();
    let reader = tokio::io::AsyncReadExt::chain(first, second);
    serve(reader, &mut written, &FaultSet::from(Fault::SplitCharactersLost)).await.expect("the streams are in memory");
    assert_eq!(json!(ids(written)), json!(["\u{fffd}\u{fffd}"]));
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_input_does_not_return() {
    for fault in [Fault::IgnoresEof, Fault::IgnoresSigterm] {
        let faults = FaultSet::from(fault);
        let ended = serve(&b""[..], Vec::new(), &faults);
        assert!(tokio::time::timeout(Duration::from_millis(50), ended).await.is_err());
        assert_eq!(ignores_sigterm(&faults), fault == Fault::IgnoresSigterm);
    }
}

#[tokio::test]
async fn faults_with_large_output_write_the_documented_amount() {
    let opening = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let written = serve_lines(opening, FaultSet::from(Fault::NoNewline)).await;
    assert_eq!(written.iter().position(|byte| *byte == b'\n'), Some(written.len() - 1));
    assert!(written.len() > 8 << 20);
    assert!(stderr_noise(&FaultSet::none()).is_none());
    let noise = stderr_noise(&FaultSet::from(Fault::StderrNoise)).expect("there is noise");
    assert!(noise.len() > 1_000_000);
    let flood = serve_lines(opening, FaultSet::from(Fault::Floods)).await;
    assert!(flood.len() < 1 << 20, "the end of input ends the flood");
}

#[tokio::test]
async fn a_slow_server_waits_before_its_first_byte() {
    let began = std::time::Instant::now();
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    serve_lines(line, FaultSet::from(Fault::SlowStart)).await;
    assert!(began.elapsed() >= Duration::from_millis(500));
}
