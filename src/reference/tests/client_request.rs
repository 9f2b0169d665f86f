//! The part of the conversation with requests to the client and subscriptions.

use serde_json::{Value, json};

use super::Script;
use crate::reference::input_required::initial_state;
use crate::reference::pagination::cursor;
use crate::reference::revision::Revision;

/// The capabilities of a client that supports all requests.
fn all_capabilities() -> Value {
    json!({"roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}})
}

/// The capabilities of clients that support few requests.
fn few_capabilities() -> [Value; 3] {
    let others = json!({"sampling": {}, "elicitation": {"url": {}}});
    [json!({}), json!({"sampling": {}, "elicitation": {}}), others]
}

/// A response that is valid for every request.
fn valid_response() -> Value {
    json!({
        "roots": [{"uri": "file:///nowhere"}],
        "role": "assistant",
        "content": {"type": "text", "text": "x", "word": "x"},
        "action": "accept",
    })
}

/// A sampling result that uses tools.
fn tool_use_response() -> Value {
    let uses = ["a", "b"].map(|id| json!({"type": "tool_use", "id": id, "name": "look_up", "input": {}}));
    json!({"role": "assistant", "content": uses})
}

/// The tools that make requests to the client in a revision.
fn tools(revision: Revision) -> Vec<&'static str> {
    let since = [
        ("ask_roots", Revision::V2024_11_05),
        ("ask_model", Revision::V2024_11_05),
        ("ask_user", Revision::V2025_06_18),
        ("ask_user_on_page", Revision::V2025_11_25),
        ("ask_model_with_tools", Revision::V2025_11_25),
    ];
    let there = since.into_iter().filter(|(_, since)| revision >= *since).map(|(tool, _)| tool);
    there.chain((revision == Revision::V2025_11_25).then_some("ask_user_first")).collect()
}

impl Script {
    pub(super) fn client_requests(&mut self) {
        if self.revision.is_modern() {
            self.input_requests();
            self.subscriptions();
        } else {
            self.requests_to_client();
        }
    }

    /// Repeats the handshake with other capabilities.
    fn reopen(&mut self, capabilities: &Value) {
        let client = json!({"name": "script", "version": "1"});
        let version = self.revision.name();
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
        self.ask("initialize", params);
        self.notify("notifications/initialized");
    }

    fn requests_to_client(&mut self) {
        self.reopen(&all_capabilities());
        let answers = [
            json!({"result": valid_response()}),
            json!({"result": tool_use_response()}),
            json!({"result": {"action": "decline", "roots": []}}),
            json!({"result": {"action": "accept", "content": 5}}),
            json!({"error": {"code": -1, "message": "no"}}),
        ];
        for answer in answers {
            for tool in tools(self.revision) {
                self.ask("tools/call", json!({"name": tool}));
            }
            // Responses to unknown or already answered requests have no effect.
            for question in 1..40 {
                let mut message = json!({"jsonrpc": "2.0", "id": format!("question-{question}")});
                for (name, value) in answer.as_object().into_iter().flatten() {
                    message[name] = value.clone();
                }
                self.line(&message);
            }
        }
        // A request that the client leaves unanswered until the server stops waiting.
        self.ask("tools/call", json!({"name": "ask_model"}));
        for _ in 0..4 {
            self.ask("ping", json!({}));
        }
        for capabilities in few_capabilities() {
            self.reopen(&capabilities);
            for position in (12..24).step_by(4) {
                self.ask("tools/list", json!({"cursor": cursor("tools", position, 0)}));
            }
        }
        self.notify("notifications/roots/list_changed");
        self.ask("tools/list", json!({}));
    }

    fn call_with(&mut self, params: Value, capabilities: &Value) {
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
        self.ask_with("tools/call", params, &meta);
    }

    fn input_requests(&mut self) {
        for tool in tools(self.revision) {
            for capabilities in few_capabilities().into_iter().chain([all_capabilities()]) {
                self.call_with(json!({"name": tool}), &capabilities);
            }
            let first = json!({"name": tool, "requestState": initial_state(tool, 0)});
            self.call_with(first.clone(), &all_capabilities());
            self.ask("tools/list", json!({}));
            let with = |answers: Value| {
                let mut params = first.clone();
                params["inputResponses"] = answers;
                params
            };
            let decline = json!({"action": "decline"});
            for answer in
                [valid_response(), tool_use_response(), decline, json!({"action": "accept", "content": 5}), json!(5)]
            {
                self.call_with(with(json!({"input": answer})), &all_capabilities());
            }
            self.call_with(with(json!("text")), &all_capabilities());
            self.call_with(with(json!({"conformance-unused": {}, "input": valid_response()})), &all_capabilities());
            for (name, value) in [
                ("requestState", json!("altered")),
                ("requestState", json!("é")),
                ("requestState", json!(initial_state("ask_nobody", 0))),
                ("requestState", json!(initial_state(tool, 2))),
            ] {
                let mut params = with(json!({"input": tool_use_response()}));
                params[name] = value;
                self.call_with(params, &all_capabilities());
            }
        }
    }

    fn subscriptions(&mut self) {
        let all_capabilities = json!({
            "toolsListChanged": true,
            "promptsListChanged": true,
            "resourcesListChanged": true,
            "resourceSubscriptions": ["mock:///notes.txt"],
        });
        self.ask("subscriptions/listen", json!({"notifications": {}}));
        self.ask("subscriptions/listen", json!({"notifications": all_capabilities}));
        let first = self.next_id;
        self.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
        self.call("grow", &json!({}));
        for listen in [first, self.next_id - 1] {
            let params = json!({"requestId": listen});
            self.line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        }
        self.call("no_arguments", &json!({}));
        self.ask("resources/list", json!({}));
    }
}
