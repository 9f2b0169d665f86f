//! Incoming messages and batches: classification, and the handling of notifications and responses.
//!
//! [`super::request`] handles requests.

use serde_json::{Value, json};

use super::call::ToolOutput;
use super::client_request::{self, ClientRequest, ResponseOutcome};
use super::connection::{Connection, Output, PendingCall, Request};
use super::fault::Fault;
use super::injection::envelope::response_to_notification;
use super::message::{
    INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Object, PARSE_ERROR, RpcError, notification, response,
};
use super::revision::Revision;

impl Connection<'_> {
    /// Handles a line that is not JSON.
    pub(super) fn receive_invalid_json(&mut self) {
        if self.is_active(Fault::ParseErrorExits) {
            self.closed = true;
        } else if !self.is_active(Fault::ParseErrorSilent) {
            self.reject(None, RpcError::new(PARSE_ERROR, "Parse error"));
        }
    }

    /// Handles a JSON value.
    pub(super) fn receive_value(&mut self, value: Value) {
        match value {
            Value::Array(messages) => self.receive_array(messages),
            value => self.receive_message(value),
        }
    }

    fn receive_array(&mut self, messages: Vec<Value>) {
        let served = match self.revision() {
            Revision::V2025_03_26 => !messages.is_empty() && !self.is_active(Fault::BatchRefused),
            _ => self.is_active(Fault::BatchServedLate),
        };
        if !served {
            if !(messages.is_empty() && self.is_active(Fault::BatchAllOrNothing)) {
                self.reject(None, RpcError::new(INVALID_REQUEST, "Invalid request"));
            }
            return;
        }
        if self.revision() != Revision::V2025_03_26 {
            for message in messages {
                self.receive_message(message);
            }
            return;
        }
        let is_invalid = |message: &Value| matches!(Incoming::read(message.clone()), Incoming::Invalid { .. });
        if self.is_active(Fault::BatchAllOrNothing) && messages.iter().any(is_invalid) {
            self.reject(None, RpcError::new(INVALID_REQUEST, "Invalid request"));
            return;
        }
        self.batch = Some(Vec::new());
        for message in messages {
            self.receive_message(message);
        }
        let responses = self.batch.take().unwrap_or_default();
        if !responses.is_empty() || self.is_active(Fault::EmptyBatchAnswer) {
            let mut line = json!(responses).to_string().into_bytes();
            line.push(b'\n');
            self.output.push(Output::Bytes(line));
        }
    }

    fn receive_message(&mut self, value: Value) {
        if self.closed {
            return;
        }
        match Incoming::read(value) {
            Incoming::Request { id, method, params, versioned } => {
                let revision = self.revision_of(&method, params.as_ref());
                let request = Request { id, method, params, revision };
                if versioned || self.faults.is_active(Fault::JsonrpcMemberUnchecked, revision) {
                    self.request(&request);
                } else {
                    let error = RpcError::new(INVALID_REQUEST, "jsonrpc must be \"2.0\"");
                    self.reject(Some(&request.id), error);
                }
            }
            Incoming::Notification { method, params } => self.receive_notification(&method, &params),
            Incoming::Response { id, body } => self.receive_response(&id, &body),
            Incoming::Invalid { id, members } => self.receive_invalid(id, members.unwrap_or_default()),
        }
    }

    fn receive_invalid(&mut self, id: Option<Value>, mut members: Object) {
        match members.get("method") {
            Some(Value::Number(_)) if self.is_active(Fault::MethodNumberExits) => self.closed = true,
            Some(Value::String(method))
                if self.is_active(Fault::ObjectIdServed) && members.get("id").is_some_and(Value::is_object) =>
            {
                let method = method.clone();
                let id = members.get("id").cloned().unwrap_or_default();
                let params = members.remove("params");
                let revision = self.revision_of(&method, params.as_ref());
                self.request(&Request { id, method, params, revision });
            }
            None if self.is_active(Fault::NoMethodSucceeds) && id.is_some() => {
                let id = id.unwrap_or_default();
                let mut result = Object::new();
                if self.revision().is_modern() {
                    self.mark_modern(&mut result);
                }
                self.respond(response(&id, result), "", self.revision());
            }
            _ => {
                let error = RpcError::new(INVALID_REQUEST, "Invalid request");
                self.reject(id.as_ref(), error);
            }
        }
    }

    fn receive_notification(&mut self, method: &str, params: &Value) {
        if method == "notifications/cancelled" {
            // Only a call that waits for the client can still be cancelled.
            self.pending_calls.retain(|_, waiting| params.get("requestId") != Some(&waiting.id));
            if let Some(id) = params.get("requestId") {
                self.cancel_pending(id);
                self.cancel_subscription(id);
            }
        }
        if method == "notifications/initialized"
            && let Some(session) = &mut self.session
        {
            session.initialized = true;
        }
        if method == "notifications/roots/list_changed" && self.is_active(Fault::RootsChangeCrash) {
            self.closed = true;
            return;
        }
        let of_answered = params.get("requestId").is_some_and(|id| self.history.answered_ids.contains(id));
        if method == "notifications/cancelled" && of_answered && self.is_active(Fault::LateCancelCrash) {
            self.closed = true;
            return;
        }
        let answered = match method {
            "notifications/cancelled" => self.is_active(Fault::CancelledAnswered),
            "notifications/initialized" => self.is_active(Fault::InitializedAnswered),
            "notifications/progress" | "notifications/roots/list_changed" => false,
            _ => self.is_active(Fault::NotificationAnswered),
        };
        let in_batch = self.batch.is_some() && self.is_active(Fault::BatchNotificationAnswered);
        if answered || in_batch {
            let message = response_to_notification(METHOD_NOT_FOUND, "Method not found");
            let mut outgoing = self.outgoing(message, Some(""));
            outgoing.well_formed = false;
            self.emit(outgoing);
        }
    }

    /// Handles a response to a request of the server, and completes the call that waits for it.
    fn receive_response(&mut self, id: &Value, body: &Object) {
        if id.as_str().is_some_and(|id| self.receive_task_input(id)) {
            return;
        }
        let Some(waiting) = id.as_str().and_then(|id| self.pending_calls.remove(id)) else {
            return;
        };
        let PendingCall { client_request, revision, rounds, .. } = waiting;
        let read = match (body.get("result"), body.get("error")) {
            (Some(result), None) => client_request.read(result, &waiting.messages, rounds, revision, self.faults),
            _ if client_request.hangs_on_error(revision, self.faults) => ResponseOutcome::Hang,
            _ => ResponseOutcome::Done(ToolOutput::failure("The client rejected the request.")),
        };
        let output = match read {
            ResponseOutcome::Done(output) => output,
            ResponseOutcome::Malformed(reason) => ToolOutput::failure(format!("The response is invalid: {reason}.")),
            ResponseOutcome::Hang => return,
            ResponseOutcome::Continue(messages) => {
                let params = client_request.params(&messages, waiting.number, revision, self.faults);
                let request_id = self.send_request(client_request.method(), params, revision);
                self.pending_calls.insert(request_id, PendingCall { messages, rounds: rounds + 1, ..waiting });
                return;
            }
        };
        let accepted = body.get("result").is_some_and(|result| result["action"] == "accept");
        if client_request == ClientRequest::ElicitationUrl && accepted {
            let unknown_id = self.faults.is_active(Fault::ElicitCompleteUnknownId, revision);
            let number = if unknown_id { waiting.number + 1000 } else { waiting.number };
            let params = json!({"elicitationId": client_request::elicitation_id(number)});
            self.send(notification("notifications/elicitation/complete", &params), revision);
        }
        let result = output.into_result(revision);
        self.respond(response(&waiting.id, result), "tools/call", waiting.revision);
    }
}
