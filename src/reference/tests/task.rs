//! A conversation about tasks, in which each request depends on earlier responses.

use serde_json::{Value, json};

use crate::reference::connection::Connection;
use crate::reference::connection_state::Output;
use crate::reference::fault::{Fault, FaultSet};
use crate::reference::interception;
use crate::reference::revision::Revision;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A client, and the messages that it has received.
struct TaskClient<'a> {
    connection: Connection<'a>,
    revision: Revision,
    received: Vec<Value>,
    next_id: i64,
}

impl TaskClient<'_> {
    fn send(&mut self, message: &Value) {
        let outputs = self.connection.receive(message.to_string().as_bytes());
        self.receive(outputs);
    }

    fn receive(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            let Output::Bytes(bytes) = output else { continue };
            let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.received.extend(lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()));
        }
    }

    /// Sends a request and returns its response, if any; `capabilities` is for stateless requests.
    fn ask(&mut self, method: &str, mut params: Value, capabilities: &Value) -> Value {
        self.next_id += 1;
        if self.revision.is_modern() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            });
        }
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.received.iter().rev().find(|message| message["id"] == id && message.get("method").is_none());
        answer.cloned().unwrap_or_default()
    }

    fn cancel(&mut self, id: i64) {
        let params = json!({"requestId": id});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    /// Responds to the last request of the server.
    fn answer(&mut self) {
        let elicited = self.received.iter().rev().find(|message| message["method"] == "elicitation/create");
        if let Some(id) = elicited.map(|message| message["id"].clone()) {
            self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}}));
        }
    }

    fn open(&mut self) {
        let params = json!({
            "protocolVersion": self.revision.name(),
            "capabilities": {"roots": {}, "elicitation": {}, "extensions": { EXTENSION: {} }},
            "clientInfo": {"name": "talk", "version": "1"},
        });
        self.ask("initialize", params, &json!({}));
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// The id of the task in a response.
    fn task(answer: &Value) -> Value {
        let place = answer.pointer("/result/task/taskId").or_else(|| answer.pointer("/result/taskId"));
        place.cloned().unwrap_or_else(|| json!("none"))
    }

    fn with_handshake(&mut self) {
        let none = json!({});
        let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments, "task": {"ttl": 1000}});
        for name in ["withdraw", "batch", "interview"] {
            self.ask("tools/call", json!({"name": name, "arguments": {}}), &none);
        }
        self.ask("tools/call", call("echo", json!({"text": "a"})), &none);
        let mut first = call("research", json!({"topic": "a"}));
        first["_meta"] = json!({"progressToken": "talk"});
        let first = Self::task(&self.ask("tools/call", first, &none));
        let other = Self::task(&self.ask("tools/call", call("research", json!({"topic": "a"})), &none));
        let related = json!({"io.modelcontextprotocol/related-task": {"taskId": other}});
        self.ask("tasks/result", json!({"taskId": first}), &none);
        self.ask("tasks/get", json!({"taskId": first, "_meta": related}), &none);
        for _ in 0..3 {
            self.ask("tasks/get", json!({"taskId": first}), &none);
        }
        self.ask("tasks/result", json!({"taskId": first}), &none);
        for _ in 0..2 {
            self.ask("tasks/cancel", json!({"taskId": other}), &none);
        }
        let failing = Self::task(&self.ask("tools/call", call("research", json!({"topic": 1})), &none));
        for _ in 0..2 {
            self.ask("tasks/get", json!({"taskId": failing}), &none);
        }
        let interview = Self::task(&self.ask("tools/call", call("interview", json!({})), &none));
        for _ in 0..2 {
            self.ask("tasks/get", json!({"taskId": interview}), &none);
        }
        self.ask("tasks/result", json!({"taskId": interview}), &none);
        let waiting = self.next_id;
        self.answer();
        self.ask("tasks/get", json!({"taskId": interview}), &none);
        self.cancel(waiting);
        self.ask("ping", json!({}), &none);
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            self.ask(method, json!({"taskId": "nobody"}), &none);
        }
        self.ask("tasks/list", json!({}), &none);
        self.ask("tasks/list", json!({"cursor": "made-up"}), &none);
    }

    fn without_handshake(&mut self) {
        let (none, both) = (json!({}), json!({"elicitation": {}, "extensions": { EXTENSION: {} }}));
        let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
        self.ask("tools/list", json!({}), &both);
        for name in ["batch", "interview"] {
            self.ask("tools/call", call(name, json!({})), &none);
            self.ask("tools/call", call(name, json!({})), &json!({"tasks": {}}));
            self.ask("tools/call", json!({"name": name, "task": {}}), &none);
        }
        let first = Self::task(&self.ask("tools/call", call("research", json!({"topic": "a"})), &both));
        self.ask("tools/call", call("research", json!({"topic": "b"})), &both);
        let observed = json!({"notifications": {"taskIds": [first]}});
        self.ask("subscriptions/listen", observed.clone(), &none);
        self.ask("subscriptions/listen", observed, &both);
        self.ask("subscriptions/listen", json!({"notifications": {}}), &both);
        self.cancel(self.next_id);
        for capabilities in [&none, &both, &both, &both] {
            self.ask("tasks/get", json!({"taskId": first}), capabilities);
        }
        let failing = Self::task(&self.ask("tools/call", call("research", json!({"topic": 1})), &both));
        for _ in 0..2 {
            self.ask("tasks/get", json!({"taskId": failing}), &both);
        }
        let interview = Self::task(&self.ask("tools/call", call("interview", json!({})), &both));
        for round in ["word-1", "word-2"] {
            for _ in 0..2 {
                self.ask("tasks/get", json!({"taskId": interview}), &both);
            }
            let responses = json!({ round: {"action": "decline"} });
            self.ask("tasks/update", json!({"taskId": interview, "inputResponses": responses}), &both);
        }
        self.ask("tasks/result", json!({"taskId": interview}), &both);
        self.ask("tasks/cancel", json!({"taskId": interview}), &both);
        self.ask("tasks/get", json!({"taskId": "nobody"}), &both);
    }
}

/// Replaces values that differ between conversations by placeholders.
fn mask(value: &mut Value, known: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| mask(member, known)),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, known)),
        Value::String(text) if text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit()) => {
            let at = known.iter().position(|id| id == text).unwrap_or_else(|| {
                known.push(text.clone());
                known.len() - 1
            });
            *text = format!("task number {at}");
        }
        Value::String(text) if text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T' => {
            "some time".clone_into(text);
        }
        _ => {}
    }
}

/// All messages that the client receives in the conversation.
pub(super) fn task_conversation(revision: Revision, faults: &FaultSet) -> Vec<Value> {
    let mut client = TaskClient {
        connection: Connection::new(faults, interception::none()),
        revision,
        received: Vec::new(),
        next_id: 0,
    };
    if revision.is_modern() {
        client.without_handshake();
    } else {
        client.open();
        client.with_handshake();
    }
    let last = client.connection.flush_delayed();
    client.receive(last);
    let mut known = Vec::new();
    client.received.iter_mut().for_each(|message| mask(message, &mut known));
    client.received
}

/// The statuses of tasks in received messages, in order, without adjacent duplicates.
fn statuses(received: &[Value], place: &str) -> Vec<String> {
    let mut all: Vec<String> =
        received.iter().filter_map(|message| message.pointer(place)?.as_str().map(str::to_owned)).collect();
    all.dedup();
    all
}

#[test]
fn a_conversation_is_deterministic() {
    for revision in Revision::ALL {
        assert_eq!(
            task_conversation(*revision, &FaultSet::none()),
            task_conversation(*revision, &FaultSet::none()),
            "{revision}"
        );
    }
}

#[test]
fn tasks_work_request_input_fail_and_are_cancelled() {
    let legacy = task_conversation(Revision::V2025_11_25, &FaultSet::none());
    let observed = statuses(&legacy, "/params/status");
    assert_eq!(observed, ["completed", "failed", "input_required"]);
    let shown = statuses(&legacy, "/result/status");
    assert_eq!(
        shown,
        ["working", "completed", "cancelled", "working", "failed", "working", "input_required", "working"]
    );
    let modern = task_conversation(Revision::V2026_07_28, &FaultSet::none());
    assert_eq!(statuses(&modern, "/params/status"), ["completed"]);
    let ended = modern.iter().find(|message| message["method"] == "notifications/cancelled");
    assert!(ended.is_some(), "the subscription to a task ends with it");
}

#[test]
fn there_are_no_tasks_before_2025_11_25() {
    let received = task_conversation(Revision::V2025_06_18, &FaultSet::none());
    assert_eq!(statuses(&received, "/result/task/taskId"), Vec::<String>::new());
    assert!(received.iter().any(|message| message.pointer("/error/code") == Some(&json!(-32_601))));
}

#[test]
fn a_server_without_tasks_treats_every_call_as_a_plain_one() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let received = task_conversation(revision, &FaultSet::from(Fault::WithoutTasks));
        assert!(received.iter().all(|message| message.pointer("/result/task").is_none()));
        assert!(received.iter().all(|message| message.pointer("/result/resultType") != Some(&json!("task"))));
    }
}
