//! Requests: which revision applies, and what happens to the result.
//!
//! Owns faults that affect requests of any method. [`super::method`] processes the methods.

use serde_json::{Value, json};

use super::connection::Connection;
use super::connection_state::{NoResult, Output, Request};
use super::fault::Fault;
use super::injection::serialization;
use super::injection::silence::is_unanswered;
use super::message::{INTERNAL_ERROR, INVALID_REQUEST, Object, RpcError, notification, response};
use super::revision::Revision;

/// Every which request exceeds the rate limit with [`Fault::RateLimitError`], and the code of the error.
const RATE_LIMIT: u64 = 8;
const RATE_LIMIT_EXCEEDED: i64 = -32_000;

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
            _ if self.state.pinned_to_handshake => Revision::V2025_11_25,
            _ if meta.is_some_and(is_marked) => Revision::V2026_07_28,
            ("initialize", Some(version)) => {
                let known = Revision::ALL.iter().any(|revision| revision.name() == version);
                if !known && self.state.is_enabled(Fault::FallbackOldest) {
                    return Revision::V2024_11_05;
                }
                let declares_nothing = params.and_then(|params| params.get("capabilities")) == Some(&json!({}));
                if declares_nothing && self.state.is_enabled(Fault::VersionDependsOnCapabilities) {
                    let asked = Revision::by_handshake(version);
                    let other = [Revision::V2024_11_05, Revision::V2025_03_26];
                    return if asked == other[0] { other[1] } else { other[0] };
                }
                Revision::by_handshake(version)
            }
            // A client may send ping before the handshake, when there is no revision yet.
            ("initialize", None) => Revision::V2025_11_25,
            ("ping", _) if self.state.session.is_none() => Revision::V2025_11_25,
            _ => self.state.revision(),
        }
    }

    /// Processes a request, and answers it unless the response is deferred or a fault prevents it.
    pub(super) fn request(&mut self, request: &Request) {
        if self.handle_by_fault(request) {
            return;
        }
        let used = self.used_ids.contains(&request.id);
        let remembers = [Fault::ReusedIdRejected, Fault::CancellationWedges];
        if remembers.iter().any(|fault| self.state.faults.is_active(*fault, request.revision)) && !used {
            self.used_ids.push(request.id.clone());
        }
        let refused_id = request.id.is_string()
            && self.state.faults.is_active(Fault::StringIdRejected, request.revision)
            && !self.state.opens(&request.method)
            || used && self.state.faults.is_active(Fault::ReusedIdRejected, request.revision);
        let result = if refused_id || self.state.batch.is_some() && request.method == "initialize" {
            Err(RpcError::new(INVALID_REQUEST, "Invalid request").into())
        } else if let Some(error) =
            self.state.user.reject(&request.method, request.params.as_ref(), request.revision, self.state.faults)
        {
            Err(error.into())
        } else {
            self.methods.serve(&mut self.state, request).map(|mut result| {
                self.state.user.restrict(&request.method, &mut result, self.state.faults);
                result
            })
        };
        let message = match result {
            Ok(_) if self.returns_array(request) => {
                json!({"jsonrpc": "2.0", "id": request.id, "result": []})
            }
            Ok(_) if request.method == "resources/templates/list" && self.state.is_enabled(Fault::ResultNull) => {
                json!({"jsonrpc": "2.0", "id": request.id, "result": null})
            }
            Ok(result) => response(&request.id, result),
            Err(NoResult::Error(error)) => error.into_message(Some(&request.id), false),
            Err(NoResult::Deferred) => return,
            Err(NoResult::Frozen) => {
                self.state.output.push(Output::Freeze);
                return;
            }
            Err(NoResult::Crashed) => {
                self.state.output.push(Output::Crash);
                return;
            }
            Err(NoResult::Closed) => {
                self.closed = true;
                return;
            }
        };
        self.state.respond(message, &request.method, request.revision);
        if self.state.is_enabled(Fault::LateCancelCrash)
            || self.state.is_enabled(Fault::CancelledCallExits) && request.method == "tools/call"
        {
            self.answered_ids.push(request.id.clone());
        }
        for message in std::mem::take(&mut self.state.after_response) {
            self.state.send(message, request.revision);
        }
        if request.method == "ping" && !self.holds_output {
            self.methods.time_out(&mut self.state);
        }
        if self.state.is_enabled(Fault::Floods) {
            let params = json!({"level": "info", "data": "There is more where this came from."});
            let mut line = notification("notifications/message", &params).to_string().into_bytes();
            line.push(b'\n');
            self.state.output.push(Output::Flood(line));
        }
    }

    /// Whether a fault returns an array as the result. In 2026-07-28, which has no ping, it affects `tools/list`
    /// with an unknown member.
    fn returns_array(&self, request: &Request) -> bool {
        let unusual = || {
            let params = request.params.as_ref().and_then(Value::as_object);
            params.is_some_and(|params| params.keys().any(|key| key != "cursor" && key != "_meta"))
        };
        self.state.faults.is_active(Fault::ResultArray, request.revision)
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
        if ignored.into_iter().any(|(fault, applies)| applies && self.state.is_enabled(fault)) {
            return !self.state.opens(&request.method);
        }
        let opens = self.state.opens(&request.method);
        let name = request.params.as_ref().and_then(|params| params.get("name")?.as_str());
        let tool = name.filter(|_| request.method == "tools/call");
        let last_call = std::mem::replace(&mut self.last_call, tool.map(str::to_owned));
        if last_call.as_deref() == Some("count") && self.state.is_active_for(request, Fault::CallEatsInput) {
            return true;
        }
        if is_unanswered(&request.method, tool, opens, |fault| self.state.is_active_for(request, fault)) {
            return true;
        }
        let retries = request.params.as_ref().is_some_and(|params| params.get("requestState").is_some());
        if self.state.input_requested && !retries && self.state.is_enabled(Fault::MrtrBlocksOtherRequests) {
            return true;
        }
        let is_blocked = request.method == "ping" && self.methods.awaits_client();
        if is_blocked && self.state.is_active_for(request, Fault::WaitsForClient) {
            return true;
        }
        if !opens {
            self.state.requests_since_opening += 1;
        }
        let exceeds_rate_limit = !opens && self.state.requests_since_opening.is_multiple_of(RATE_LIMIT);
        let bytes = |text: Value| Output::Bytes(format!("{text}\n").into_bytes());
        let output = if self.state.is_enabled(Fault::AnswersGarbage) {
            Output::Bytes(b"{]\xff\x00 not a message >>\n".to_vec())
        } else if self.state.is_enabled(Fault::AnswersEmptyObject)
            || !opens && self.state.is_enabled(Fault::EmptyAfterOpening)
        {
            bytes(response(id, Object::new()))
        } else if self.state.is_enabled(Fault::AnswersSameError)
            || !opens && self.state.is_enabled(Fault::ErrorsAfterOpening)
        {
            bytes(RpcError::new(INTERNAL_ERROR, "Internal error").into_message(Some(id), false))
        } else if exceeds_rate_limit && self.state.is_enabled(Fault::RateLimitError) {
            let error = RpcError::new(RATE_LIMIT_EXCEEDED, "Rate limit exceeded, try again later");
            bytes(error.into_message(Some(id), false))
        } else if self.state.is_enabled(Fault::HugeLine) && lists {
            let (begin, end) = serialization::huge(id);
            Output::Huge { begin, end }
        } else if self.state.is_enabled(Fault::DeepNesting) && lists {
            Output::Bytes(serialization::nested(id))
        } else if self.state.is_enabled(Fault::DiesOnCall) && request.method == "tools/call"
            || self.state.is_enabled(Fault::LongToolNameCrash) && has_long_tool_name(request)
            || self.state.is_enabled(Fault::ReadIncompleteExits) && lacks(request, "resources/read", "uri")
            || self.state.is_enabled(Fault::PromptIncompleteExits) && lacks(request, "prompts/get", "name")
        {
            self.closed = true;
            return true;
        } else {
            return false;
        };
        self.state.output.push(output);
        true
    }
}

/// Whether a request with a method lacks a member of its params.
fn lacks(request: &Request, method: &str, member: &str) -> bool {
    request.method == method && request.params.as_ref().and_then(|params| params.get(member)).is_none()
}

fn has_long_tool_name(request: &Request) -> bool {
    let name = request.params.as_ref().and_then(|params| params.get("name")?.as_str());
    request.method == "tools/call" && name.is_some_and(|name| name.len() > 255)
}
