//! What comes in: which kind of message it is, alone or in a batch, and what each kind leads to.
//!
//! A request is only recognised here; how it is taken is in [`super::request`].

use serde_json::{Value, json};

use super::ask::{self, Question, Read};
use super::call::Reply;
use super::connection::{Connection, Output, Request, Waiting};
use super::deviation::envelope::answer_to_notification;
use super::fault::Fault;
use super::message::{
    INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Object, PARSE_ERROR, Refusal, notification, response,
};
use super::revision::Revision;

impl Connection<'_> {
    /// Takes a line that is no JSON.
    pub(super) fn broken_line(&mut self) {
        if self.shows(Fault::ParseErrorExits) {
            self.ended = true;
        } else if !self.shows(Fault::ParseErrorSilent) {
            self.refuse(None, Refusal::new(PARSE_ERROR, "Parse error"));
        }
    }

    /// Takes a line that is.
    pub(super) fn value(&mut self, value: Value) {
        match value {
            Value::Array(messages) => self.array(messages),
            value => self.message(value),
        }
    }

    fn array(&mut self, messages: Vec<Value>) {
        let served = match self.revision() {
            Revision::V2025_03_26 => !messages.is_empty() && !self.shows(Fault::BatchRefused),
            _ => self.shows(Fault::BatchServedLate),
        };
        if !served {
            if !(messages.is_empty() && self.shows(Fault::BatchAllOrNothing)) {
                self.refuse(None, Refusal::new(INVALID_REQUEST, "Invalid request"));
            }
            return;
        }
        if self.revision() != Revision::V2025_03_26 {
            for message in messages {
                self.message(message);
            }
            return;
        }
        let is_invalid = |message: &Value| matches!(Incoming::read(message.clone()), Incoming::Invalid { .. });
        if self.shows(Fault::BatchAllOrNothing) && messages.iter().any(is_invalid) {
            self.refuse(None, Refusal::new(INVALID_REQUEST, "Invalid request"));
            return;
        }
        self.batch = Some(Vec::new());
        for message in messages {
            self.message(message);
        }
        let answers = self.batch.take().unwrap_or_default();
        if !answers.is_empty() || self.shows(Fault::EmptyBatchAnswer) {
            let mut line = json!(answers).to_string().into_bytes();
            line.push(b'\n');
            self.output.push(Output::Bytes(line));
        }
    }

    fn message(&mut self, value: Value) {
        if self.ended {
            return;
        }
        match Incoming::read(value) {
            Incoming::Request { id, method, params, versioned } => {
                let revision = self.revision_of(&method, params.as_ref());
                let request = Request { id, method, params, revision };
                if versioned || self.faults.shows(Fault::JsonrpcMemberUnchecked, revision) {
                    self.request(&request);
                } else {
                    let refusal = Refusal::new(INVALID_REQUEST, "jsonrpc must be \"2.0\"");
                    self.refuse(Some(&request.id), refusal);
                }
            }
            Incoming::Notification { method, params } => self.notification(&method, &params),
            Incoming::Response { id, body } => self.answer(&id, &body),
            Incoming::Invalid { id, members } => self.invalid(id, members.unwrap_or_default()),
        }
    }

    fn invalid(&mut self, id: Option<Value>, mut members: Object) {
        match members.get("method") {
            Some(Value::Number(_)) if self.shows(Fault::MethodNumberExits) => self.ended = true,
            Some(Value::String(method))
                if self.shows(Fault::ObjectIdServed) && members.get("id").is_some_and(Value::is_object) =>
            {
                let method = method.clone();
                let id = members.get("id").cloned().unwrap_or_default();
                let params = members.remove("params");
                let revision = self.revision_of(&method, params.as_ref());
                self.request(&Request { id, method, params, revision });
            }
            None if self.shows(Fault::NoMethodSucceeds) && id.is_some() => {
                let id = id.unwrap_or_default();
                let mut result = Object::new();
                if self.revision().is_modern() {
                    self.mark_modern(&mut result);
                }
                self.respond(response(&id, result), "", self.revision());
            }
            _ => {
                let refusal = Refusal::new(INVALID_REQUEST, "Invalid request");
                self.refuse(id.as_ref(), refusal);
            }
        }
    }

    fn notification(&mut self, method: &str, params: &Value) {
        if method == "notifications/cancelled" {
            // Only a call that waits for an answer can still be cancelled.
            self.waiting.retain(|_, waiting| params.get("requestId") != Some(&waiting.id));
            if let Some(id) = params.get("requestId") {
                self.cancel_waiting(id);
                self.cancel_listen(id);
            }
        }
        if method == "notifications/initialized"
            && let Some(session) = &mut self.session
        {
            session.initialized = true;
        }
        if method == "notifications/roots/list_changed" && self.shows(Fault::RootsChangeCrash) {
            self.ended = true;
            return;
        }
        let of_answered = params.get("requestId").is_some_and(|id| self.past.answered_ids.contains(id));
        if method == "notifications/cancelled" && of_answered && self.shows(Fault::LateCancelCrash) {
            self.ended = true;
            return;
        }
        let answered = match method {
            "notifications/cancelled" => self.shows(Fault::CancelledAnswered),
            "notifications/initialized" => self.shows(Fault::InitializedAnswered),
            "notifications/progress" | "notifications/roots/list_changed" => false,
            _ => self.shows(Fault::NotificationAnswered),
        };
        let in_batch = self.batch.is_some() && self.shows(Fault::BatchNotificationAnswered);
        if answered || in_batch {
            let message = answer_to_notification(METHOD_NOT_FOUND, "Method not found");
            let mut outgoing = self.outgoing(message, Some(""));
            outgoing.well_formed = false;
            self.emit(outgoing);
        }
    }

    /// Takes the answer to a question of ours, and gives the result of the call that waited for it.
    fn answer(&mut self, id: &Value, body: &Object) {
        if id.as_str().is_some_and(|id| self.answer_task(id)) {
            return;
        }
        let Some(waiting) = id.as_str().and_then(|id| self.waiting.remove(id)) else {
            return;
        };
        let Waiting { question, revision, rounds, .. } = waiting;
        let read = match (body.get("result"), body.get("error")) {
            (Some(result), None) => question.read(result, &waiting.messages, rounds, revision, self.faults),
            _ if question.hangs_on_error(revision, self.faults) => Read::Never,
            _ => Read::Done(Reply::failure("The client cannot answer.")),
        };
        let reply = match read {
            Read::Done(reply) => reply,
            Read::Malformed(reason) => Reply::failure(format!("The answer is of no use: {reason}.")),
            Read::Never => return,
            Read::Again(messages) => {
                let params = question.params(&messages, waiting.number, revision, self.faults);
                let asked = self.ask(question.method(), params, revision);
                self.waiting.insert(asked, Waiting { messages, rounds: rounds + 1, ..waiting });
                return;
            }
        };
        let visits = body.get("result").is_some_and(|result| result["action"] == "accept");
        if question == Question::Page && visits {
            let stranger = self.faults.shows(Fault::ElicitCompleteUnknownId, revision);
            let number = if stranger { waiting.number + 1000 } else { waiting.number };
            let params = json!({"elicitationId": ask::elicitation_id(number)});
            self.tell(notification("notifications/elicitation/complete", &params), revision);
        }
        let result = reply.into_result(revision);
        self.respond(response(&waiting.id, result), "tools/call", waiting.revision);
    }
}
