//! Incoming messages and batches: classification, and the handling of notifications.
//!
//! [`super::request`] handles requests.

use serde_json::{Value, json};

use super::connection::Connection;
use super::connection_state::{Output, Request};
use super::fault::Fault;
use super::identity;
use super::injection::envelope::response_to_notification;
use super::message::{INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Object, PARSE_ERROR, RpcError, response};
use super::revision::Revision;

impl Connection<'_> {
    /// Handles a line that is not JSON.
    pub(super) fn receive_invalid_json(&mut self) {
        if self.state.is_active(Fault::ParseErrorWedges) {
            self.wedged = true;
        } else if self.state.is_active(Fault::ParseErrorExits) {
            self.closed = true;
        } else if !self.state.is_active(Fault::ParseErrorSilent) {
            self.state.reject(None, RpcError::new(PARSE_ERROR, "Parse error"));
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
        let served = match self.state.revision() {
            Revision::V2025_03_26 => !messages.is_empty() && !self.state.is_active(Fault::BatchRefused),
            _ => self.state.is_active(Fault::BatchServedLate),
        };
        if !served {
            if !(messages.is_empty() && self.state.is_active(Fault::BatchAllOrNothing)) {
                self.state.reject(None, RpcError::new(INVALID_REQUEST, "Invalid request"));
            }
            return;
        }
        if self.state.revision() != Revision::V2025_03_26 {
            for message in messages {
                self.receive_message(message);
            }
            return;
        }
        let is_invalid = |message: &Value| matches!(Incoming::read(message.clone()), Incoming::Invalid { .. });
        if self.state.is_active(Fault::BatchAllOrNothing) && messages.iter().any(is_invalid) {
            self.state.reject(None, RpcError::new(INVALID_REQUEST, "Invalid request"));
            return;
        }
        self.state.batch = Some(Vec::new());
        for message in messages {
            self.receive_message(message);
        }
        let responses = self.state.batch.take().unwrap_or_default();
        if !responses.is_empty() || self.state.is_active(Fault::EmptyBatchAnswer) {
            let mut line = json!(responses).to_string().into_bytes();
            line.push(b'\n');
            self.state.output.push(Output::Bytes(line));
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
                if versioned || self.state.faults.is_active(Fault::JsonrpcMemberUnchecked, revision) {
                    self.request(&request);
                } else {
                    let error = RpcError::new(INVALID_REQUEST, "jsonrpc must be \"2.0\"");
                    self.state.reject(Some(&request.id), error);
                }
            }
            Incoming::Notification { method, params } => self.receive_notification(&method, &params),
            Incoming::Response { id, body } => self.methods.receive_response(&mut self.state, &id, &body),
            Incoming::Invalid { id, members } => self.receive_invalid(id, members.unwrap_or_default()),
        }
    }

    fn receive_invalid(&mut self, id: Option<Value>, mut members: Object) {
        match members.get("method") {
            Some(Value::Number(_)) if self.state.is_active(Fault::MethodNumberExits) => self.closed = true,
            Some(Value::String(method))
                if self.state.is_active(Fault::ObjectIdServed) && members.get("id").is_some_and(Value::is_object)
                    || self.state.is_active(Fault::NullIdServed) && members.get("id").is_some_and(Value::is_null) =>
            {
                let method = method.clone();
                let id = members.get("id").cloned().unwrap_or_default();
                let params = members.remove("params");
                let revision = self.revision_of(&method, params.as_ref());
                self.request(&Request { id, method, params, revision });
            }
            None if self.state.is_active(Fault::NoMethodSucceeds) && id.is_some() => {
                let id = id.unwrap_or_default();
                let mut result = Object::new();
                if self.state.revision().is_modern() {
                    identity::mark_modern(&mut result, self.state.faults);
                }
                self.state.respond(response(&id, result), "", self.state.revision());
            }
            _ => {
                let error = RpcError::new(INVALID_REQUEST, "Invalid request");
                self.state.reject(id.as_ref(), error);
            }
        }
    }

    fn receive_notification(&mut self, method: &str, params: &Value) {
        if params.get("_meta").is_none() && self.state.is_active(Fault::NotificationPinsEra) {
            self.state.pinned_to_handshake = true;
        }
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
        {
            self.methods.cancel(&mut self.state, id);
        }
        if method == "notifications/initialized"
            && let Some(session) = &mut self.state.session
        {
            session.initialized = true;
        }
        if method == "notifications/roots/list_changed" && self.state.is_active(Fault::RootsChangeCrash) {
            self.closed = true;
            return;
        }
        let of_requested = |id: &Value| self.used_ids.contains(id);
        self.wedged |= match method {
            "notifications/cancelled" => {
                self.state.is_active(Fault::CancellationWedges) && !params.get("requestId").is_some_and(of_requested)
            }
            "notifications/initialized" | "notifications/progress" | "notifications/roots/list_changed" => false,
            _ => self.state.is_active(Fault::NotificationWedges),
        };
        let of_answered = params.get("requestId").is_some_and(|id| self.answered_ids.contains(id));
        let ends = self.state.is_active(Fault::LateCancelCrash) || self.state.is_active(Fault::CancelledCallExits);
        if method == "notifications/cancelled" && of_answered && ends {
            self.closed = true;
            return;
        }
        let answered = match method {
            "notifications/cancelled" => self.state.is_active(Fault::CancelledAnswered),
            "notifications/initialized" => self.state.is_active(Fault::InitializedAnswered),
            "notifications/progress" | "notifications/roots/list_changed" => false,
            _ => {
                self.state.is_active(Fault::NotificationAnswered)
                    || self.state.is_active(Fault::NotificationAnsweredLate)
            }
        };
        let in_batch = self.state.batch.is_some() && self.state.is_active(Fault::BatchNotificationAnswered);
        if answered || in_batch {
            let message = response_to_notification(METHOD_NOT_FOUND, "Method not found");
            let mut outgoing = self.state.outgoing(message, Some(""));
            outgoing.well_formed = false;
            self.state.emit(outgoing);
        }
    }
}
