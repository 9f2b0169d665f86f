//! Requests: which revision applies, and what happens to the result.
//!
//! Owns faults that affect requests of any method. [`super::method`] processes the methods.

use serde_json::{Value, json};

use super::connection::{Connection, NoResult, Output, Request};
use super::fault::Fault;
use super::injection::serialization;
use super::message::{INTERNAL_ERROR, INVALID_REQUEST, Object, RpcError, notification, response};
use super::revision::Revision;

impl Connection<'_> {
    /// The revision that applies to a request: that of its own metadata, or else that of the session.
    pub(super) fn revision_of(&self, method: &str, params: Option<&Value>) -> Revision {
        const MARKS: &[&str] = &["protocolVersion", "clientInfo", "clientCapabilities", "logLevel"];
        let meta = params.and_then(|params| params.get("_meta")).and_then(Value::as_object);
        let is_marked = |meta: &Object| {
            meta.keys()
                .any(|key| key.strip_prefix("io.modelcontextprotocol/").is_some_and(|name| MARKS.contains(&name)))
        };
        let version = params.and_then(|params| params.get("protocolVersion"));
        match (method, version.and_then(Value::as_str)) {
            _ if meta.is_some_and(is_marked) => Revision::V2026_07_28,
            ("initialize", Some(version)) => {
                let known = Revision::ALL.iter().any(|revision| revision.name() == version);
                if !known && self.is_enabled(Fault::FallbackOldest) {
                    return Revision::V2024_11_05;
                }
                let declares_nothing = params.and_then(|params| params.get("capabilities")) == Some(&json!({}));
                if declares_nothing && self.is_enabled(Fault::VersionDependsOnCapabilities) {
                    let asked = Revision::by_handshake(version);
                    let other = [Revision::V2024_11_05, Revision::V2025_03_26];
                    return if asked == other[0] { other[1] } else { other[0] };
                }
                Revision::by_handshake(version)
            }
            // A client may send ping before the handshake, when there is no revision yet.
            ("initialize", None) => Revision::V2025_11_25,
            ("ping", _) if self.session.is_none() => Revision::V2025_11_25,
            _ => self.revision(),
        }
    }

    /// Processes a request, and answers it unless the response is deferred or a fault prevents it.
    pub(super) fn request(&mut self, request: &Request) {
        if self.handle_by_fault(request) {
            return;
        }
        let used = self.history.used_ids.contains(&request.id);
        if self.faults.is_active(Fault::ReusedIdRejected, request.revision) && !used {
            self.history.used_ids.push(request.id.clone());
        }
        let refused_id = request.id.is_string()
            && self.faults.is_active(Fault::StringIdRejected, request.revision)
            && !self.opens(&request.method)
            || used;
        let result = if refused_id || self.batch.is_some() && request.method == "initialize" {
            Err(RpcError::new(INVALID_REQUEST, "Invalid request").into())
        } else {
            self.serve(request)
        };
        let message = match result {
            Ok(_) if self.returns_array(request) => {
                json!({"jsonrpc": "2.0", "id": request.id, "result": []})
            }
            Ok(result) => response(&request.id, result),
            Err(NoResult::Error(error)) => error.into_message(Some(&request.id), false),
            Err(NoResult::Deferred) => return,
            Err(NoResult::Frozen) => {
                self.output.push(Output::Freeze);
                return;
            }
            Err(NoResult::Crashed) => {
                self.output.push(Output::Crash);
                return;
            }
            Err(NoResult::Closed) => {
                self.closed = true;
                return;
            }
        };
        self.respond(message, &request.method, request.revision);
        if self.is_enabled(Fault::LateCancelCrash) {
            self.history.answered_ids.push(request.id.clone());
        }
        for message in std::mem::take(&mut self.after_response) {
            self.send(message, request.revision);
        }
        if self.is_enabled(Fault::Floods) {
            let params = json!({"level": "info", "data": "There is more where this came from."});
            let mut line = notification("notifications/message", &params).to_string().into_bytes();
            line.push(b'\n');
            self.output.push(Output::Flood(line));
        }
    }

    /// Whether a fault returns an array as the result. In 2026-07-28, which has no ping, it affects `tools/list`
    /// with an unknown member.
    fn returns_array(&self, request: &Request) -> bool {
        let unusual = || {
            let params = request.params.as_ref().and_then(Value::as_object);
            params.is_some_and(|params| params.keys().any(|key| key != "cursor" && key != "_meta"))
        };
        self.faults.is_active(Fault::ResultArray, request.revision)
            && match request.method.as_str() {
                "ping" => true,
                "tools/list" => request.revision.is_modern() && unusual(),
                _ => false,
            }
    }

    /// Handles a request by a fault that makes the whole server unusable; false if there is none.
    fn handle_by_fault(&mut self, request: &Request) -> bool {
        let (id, lists) = (&request.id, request.method == "tools/list");
        let ignored = [(Fault::EmptyIdIgnored, id == &json!("")), (Fault::ZeroIdIgnored, id == &json!(0))];
        if ignored.into_iter().any(|(fault, applies)| applies && self.is_enabled(fault)) {
            return !self.opens(&request.method);
        }
        let retries = request.params.as_ref().is_some_and(|params| params.get("requestState").is_some());
        if self.input_requested && !retries && self.is_enabled(Fault::MrtrBlocksOtherRequests) {
            return true;
        }
        let bytes = |text: Value| Output::Bytes(format!("{text}\n").into_bytes());
        let output = if self.is_enabled(Fault::AnswersGarbage) {
            Output::Bytes(b"{]\xff\x00 not a message >>\n".to_vec())
        } else if self.is_enabled(Fault::AnswersEmptyObject) {
            bytes(response(id, Object::new()))
        } else if self.is_enabled(Fault::AnswersSameError) {
            bytes(RpcError::new(INTERNAL_ERROR, "Internal error").into_message(Some(id), false))
        } else if self.is_enabled(Fault::HugeLine) && lists {
            let (begin, end) = serialization::huge(id);
            Output::Huge { begin, end }
        } else if self.is_enabled(Fault::DeepNesting) && lists {
            Output::Bytes(serialization::nested(id))
        } else if self.is_enabled(Fault::DiesOnCall) && request.method == "tools/call" {
            self.closed = true;
            return true;
        } else {
            return false;
        };
        self.output.push(output);
        true
    }
}
