//! Outgoing messages: responses, notifications and requests, with fault injection, as lines or in a batch.
//!
//! Owns delayed responses and the ids of requests to the client.

use serde_json::{Value, json};

use super::connection_state::{ConnectionState, Output};
use super::fault::Fault;
use super::injection::envelope::{self, Outgoing};
use super::injection::serialization;
use super::message::{RpcError, object};
use super::revision::Revision;

impl ConnectionState<'_> {
    /// Sends an error that answers no valid request.
    pub(super) fn reject(&mut self, id: Option<&Value>, error: RpcError) {
        let revision = self.revision();
        // JSON-RPC requires a null id if there is none; since 2025-11-25 MCP omits it.
        let message = error.into_message(id, revision < Revision::V2025_11_25);
        let mut outgoing = self.outgoing(message, Some(""));
        outgoing.well_formed = false;
        self.emit(outgoing);
    }

    /// Sends a response, or delays it if a fault confuses concurrent requests.
    pub(super) fn respond(&mut self, mut message: Value, method: &str, revision: Revision) {
        self.interceptor.change_message(&mut message);
        if let Some(delay) = self.interceptor.take_delay() {
            self.output.push(Output::Delay(delay));
        }
        let opens = self.opens(method);
        let outgoing = Outgoing { revision, opens, ..self.outgoing(message, Some(method)) };
        let calls = method == "tools/call";
        let swaps = if calls { Fault::CallsSwapped } else { Fault::SwappedIds };
        let exchanges = self.is_enabled(swaps) || calls && self.interceptor.swaps_responses();
        let confuses = exchanges || self.is_enabled(Fault::IdKindsConfused);
        if !confuses || opens || self.batch.is_some() {
            self.emit(outgoing);
            return;
        }
        let Some(mut earlier) = self.delayed_response.take() else {
            self.delayed_response = Some(outgoing);
            return;
        };
        let mut later = outgoing;
        let alike = (earlier.response_to.as_deref() == Some("tools/call")) == calls;
        // Ids of different types are another fault.
        let same_kind = earlier.message["id"].is_string() == later.message["id"].is_string();
        if exchanges && alike && same_kind {
            self.interceptor.end_swap();
            let id = earlier.message["id"].take();
            earlier.message["id"] = later.message["id"].take();
            later.message["id"] = id;
        } else if self.is_enabled(Fault::IdKindsConfused)
            && let Some(integer) = common_integer(&earlier.message["id"], &later.message["id"])
        {
            earlier.message["id"] = integer.clone();
            later.message["id"] = integer;
        }
        self.emit(earlier);
        self.emit(later);
    }

    /// Sends a notification or a request.
    pub(super) fn send(&mut self, message: Value, revision: Revision) {
        let outgoing = Outgoing { revision, ..self.outgoing(message, None) };
        self.emit(outgoing);
    }

    /// Sends a request to the client under a new id, and returns the id.
    pub(super) fn send_request(&mut self, method: &str, params: Option<Value>, revision: Revision) -> String {
        if self.client_requests_sent == 0 || !self.is_enabled(Fault::ServerRequestIdReused) {
            self.client_requests_sent += 1;
        }
        let id = format!("question-{}", self.client_requests_sent);
        let mut message = object(json!({"jsonrpc": "2.0", "id": id, "method": method}));
        if let Some(params) = params {
            message.insert("params".to_owned(), params);
        }
        self.send(Value::Object(message), revision);
        id
    }

    pub(super) fn outgoing(&self, message: Value, response_to: Option<&str>) -> Outgoing {
        Outgoing {
            message,
            revision: self.revision(),
            response_to: response_to.map(str::to_owned),
            well_formed: true,
            opens: false,
        }
    }

    pub(super) fn emit(&mut self, outgoing: Outgoing) {
        match &mut self.batch {
            Some(batch) if outgoing.response_to.is_some() => {
                let mut outgoing = outgoing;
                envelope::inject(&mut outgoing, self.faults);
                batch.push(outgoing.message);
            }
            _ => self.write(&outgoing),
        }
    }

    /// Sends the response that is delayed, if there is one.
    pub(super) fn flush_delayed_response(&mut self) {
        if let Some(delayed) = self.delayed_response.take() {
            self.interceptor.end_swap();
            self.write(&delayed);
        }
    }

    fn write(&mut self, outgoing: &Outgoing) {
        let mut outgoing = outgoing.clone();
        envelope::inject(&mut outgoing, self.faults);
        let mut bytes = serialization::line(&outgoing, !self.has_responded, self.faults);
        if outgoing.response_to.is_some() {
            self.interceptor.change_bytes(&mut bytes);
        }
        self.has_responded |= outgoing.response_to.is_some();
        self.output.push(Output::Bytes(bytes));
    }
}

/// The integer that two ids of different types have in common, such as 7 and "7".
fn common_integer(left: &Value, right: &Value) -> Option<Value> {
    let (integer, text) = if left.is_string() { (right, left) } else { (left, right) };
    let number = text.as_str()?.parse::<i64>().ok()?;
    (integer.as_i64() == Some(number)).then(|| integer.clone())
}
