//! One connection: what each line from the client leads to, without any input or output of its own.
//!
//! It sorts messages, keeps what a session consists of, and sends every answer through the deviations.
//! How a request is served is in [`super::method`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::ask::{self, Question, Read};
use super::call::Reply;
use super::deviation::envelope::{self, Outgoing, answer_to_notification};
use super::deviation::writing;
use super::fault::{Fault, FaultSet};
use super::listing;
use super::message::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Object, PARSE_ERROR, Refusal,
    notification, object, response,
};
use super::revision::Revision;
use super::subscription::Subscription;
use super::task_method::Tasks;

/// What the connection wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Output {
    Bytes(Vec<u8>),
    /// A message of 100 MiB between a beginning and an end.
    Huge {
        begin: Vec<u8>,
        end: Vec<u8>,
    },
    /// The same notification again and again from now on.
    Flood(Vec<u8>),
    /// The end of the connection.
    End,
}

/// What `initialize` agreed to, and what was changed since.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) client: Object,
    /// The least severity that is logged.
    pub(super) log_from: usize,
    pub(super) grown: bool,
    /// Whether the client has said that it is ready.
    pub(super) initialized: bool,
}

/// The tools that were offered last, and in what circumstances.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) revision: Revision,
    pub(super) grown: bool,
    pub(super) tools: Arc<[Object]>,
}

/// A call that waits for the client to answer a question.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: Value,
    pub(super) revision: Revision,
    pub(super) question: Question,
    /// The number of an elicitation.
    pub(super) number: u64,
    /// The messages that a model is to complete, and how often it was asked before.
    pub(super) messages: Vec<Value>,
    pub(super) rounds: usize,
}

/// Why a request gets no result now.
#[derive(Debug, PartialEq)]
pub(super) enum Stop {
    Refused(Refusal),
    /// The answer follows when the client has answered a question.
    Later,
    /// A fault ends the connection.
    Ended,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What happened on the connection before, as far as faults depend on it.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Whether `server/discover` was called.
    pub(super) discovered: bool,
    /// Whether a call was refused.
    pub(super) refused: bool,
    /// Whether a result has asked for input that has not come yet.
    pub(super) asked: bool,
    /// Whether any request was answered.
    answered: bool,
    used_ids: Vec<Value>,
    answered_ids: Vec<Value>,
}

/// A request and the revision whose rules it is served by.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Option<Value>,
    pub(super) revision: Revision,
}

#[derive(Debug)]
pub(super) struct Connection<'a> {
    pub(super) faults: &'a FaultSet,
    pub(super) session: Option<Session>,
    pub(super) offered: Option<Offered>,
    pub(super) paging: listing::Memory,
    pub(super) waiting: BTreeMap<String, Waiting>,
    pub(super) past: Past,
    pub(super) tasks: Tasks,
    /// Messages that belong after the response to the request in hand.
    pub(super) afterwards: Vec<Value>,
    /// How many questions were put to the client.
    pub(super) questions: u64,
    /// The subscriptions of the stateless era that are open.
    pub(super) subscriptions: Vec<Subscription>,
    /// Whether what is offered there has grown for those who listen.
    pub(super) grown: bool,
    held: Option<Outgoing>,
    batch: Option<Vec<Value>>,
    ended: bool,
    output: Vec<Output>,
}

impl<'a> Connection<'a> {
    pub(super) fn new(faults: &'a FaultSet) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let salt = (u64::from(std::process::id()) << 32) | number;
        Self {
            faults,
            session: None,
            offered: None,
            paging: listing::Memory::new(salt),
            waiting: BTreeMap::new(),
            past: Past::default(),
            tasks: Tasks::default(),
            afterwards: Vec::new(),
            questions: 0,
            subscriptions: Vec::new(),
            grown: false,
            held: None,
            batch: None,
            ended: false,
            output: Vec::new(),
        }
    }

    /// Takes one line without its ending, and says what follows from it.
    pub(super) fn receive(&mut self, line: &[u8]) -> Vec<Output> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !self.ended && !line.trim_ascii().is_empty() && !self.has(Fault::NeverAnswers) {
            match serde_json::from_slice(line) {
                Ok(value) => self.value(value),
                Err(_) => self.broken_line(),
            }
        }
        if self.ended {
            self.output.push(Output::End);
        }
        std::mem::take(&mut self.output)
    }

    /// Whether an answer is held back: in the hope of another request in flight, or for a task to end.
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some() || self.tasks.is_awaited()
    }

    /// Lets go of what was held back.
    pub(super) fn release(&mut self) -> Vec<Output> {
        self.end_awaited();
        if let Some(held) = self.held.take() {
            self.write(&held);
        }
        std::mem::take(&mut self.output)
    }

    /// The revision in force for messages that do not name one.
    pub(super) fn revision(&self) -> Revision {
        self.session.as_ref().map_or(Revision::V2026_07_28, |session| session.revision)
    }

    /// Whether a fault is switched on, in whatever revision.
    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(fault)
    }

    fn shows(&self, fault: Fault) -> bool {
        self.faults.shows(fault, self.revision())
    }

    fn broken_line(&mut self) {
        if self.shows(Fault::ParseErrorExits) {
            self.ended = true;
        } else if !self.shows(Fault::ParseErrorSilent) {
            self.refuse(None, Refusal::new(PARSE_ERROR, "Parse error"));
        }
    }

    fn value(&mut self, value: Value) {
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
            let stranger = self.faults.shows(Fault::ElicitCompleteStranger, revision);
            let number = if stranger { waiting.number + 1000 } else { waiting.number };
            let params = json!({"elicitationId": ask::elicitation_id(number)});
            self.tell(notification("notifications/elicitation/complete", &params), revision);
        }
        let result = reply.into_result(revision);
        self.respond(response(&waiting.id, result), "tools/call", waiting.revision);
    }

    fn request(&mut self, request: &Request) {
        if self.is_beyond_answering(request) {
            return;
        }
        let used = self.past.used_ids.contains(&request.id);
        if self.faults.shows(Fault::ReusedIdRefused, request.revision) && !used {
            self.past.used_ids.push(request.id.clone());
        }
        let refused_id = request.id.is_string()
            && self.faults.shows(Fault::StringIdRefused, request.revision)
            && !self.opens(&request.method)
            || used;
        let outcome = if refused_id || self.batch.is_some() && request.method == "initialize" {
            Err(Refusal::new(INVALID_REQUEST, "Invalid request").into())
        } else {
            self.serve(request)
        };
        let message = match outcome {
            Ok(_) if self.answers_by_array(request) => {
                json!({"jsonrpc": "2.0", "id": request.id, "result": []})
            }
            Ok(result) => response(&request.id, result),
            Err(Stop::Refused(refusal)) => refusal.into_message(Some(&request.id), false),
            Err(Stop::Later) => return,
            Err(Stop::Ended) => {
                self.ended = true;
                return;
            }
        };
        self.respond(message, &request.method, request.revision);
        if self.has(Fault::LateCancelCrash) {
            self.past.answered_ids.push(request.id.clone());
        }
        for message in std::mem::take(&mut self.afterwards) {
            self.tell(message, request.revision);
        }
        if self.has(Fault::Floods) {
            let params = json!({"level": "info", "data": "There is more where this came from."});
            let mut line = notification("notifications/message", &params).to_string().into_bytes();
            line.push(b'\n');
            self.output.push(Output::Flood(line));
        }
    }

    /// Whether a fault puts an array in the place of the result. There is no ping in the stateless era,
    /// hence a list that is asked for in an unusual way there.
    fn answers_by_array(&self, request: &Request) -> bool {
        let unusual = || {
            let params = request.params.as_ref().and_then(Value::as_object);
            params.is_some_and(|params| params.keys().any(|key| key != "cursor" && key != "_meta"))
        };
        self.faults.shows(Fault::ResultArray, request.revision)
            && match request.method.as_str() {
                "ping" => true,
                "tools/list" => request.revision.is_modern() && unusual(),
                _ => false,
            }
    }

    /// Deals with requests in the way of servers that are broken altogether; false if it is not one.
    fn is_beyond_answering(&mut self, request: &Request) -> bool {
        let (id, lists) = (&request.id, request.method == "tools/list");
        let ignored = [(Fault::EmptyIdIgnored, id == &json!("")), (Fault::ZeroIdIgnored, id == &json!(0))];
        if ignored.into_iter().any(|(fault, applies)| applies && self.has(fault)) {
            return !self.opens(&request.method);
        }
        let retries = request.params.as_ref().is_some_and(|params| params.get("requestState").is_some());
        if self.past.asked && !retries && self.has(Fault::MrtrWaits) {
            return true;
        }
        let bytes = |text: Value| Output::Bytes(format!("{text}\n").into_bytes());
        let output = if self.has(Fault::AnswersGarbage) {
            Output::Bytes(b"{]\xff\x00 not a message >>\n".to_vec())
        } else if self.has(Fault::AnswersEmptyObject) {
            bytes(response(id, Object::new()))
        } else if self.has(Fault::AnswersSameError) {
            bytes(Refusal::new(INTERNAL_ERROR, "Internal error").into_message(Some(id), false))
        } else if self.has(Fault::HugeLine) && lists {
            let (begin, end) = writing::huge(id);
            Output::Huge { begin, end }
        } else if self.has(Fault::DeepNesting) && lists {
            Output::Bytes(writing::nested(id))
        } else if self.has(Fault::DiesOnCall) && request.method == "tools/call" {
            self.ended = true;
            return true;
        } else {
            return false;
        };
        self.output.push(output);
        true
    }

    /// Answers with an error that concerns no request that could be served.
    fn refuse(&mut self, id: Option<&Value>, refusal: Refusal) {
        let revision = self.revision();
        // Without a readable id it is null by JSON-RPC, until MCP says that it is left out.
        let message = refusal.into_message(id, revision < Revision::V2025_11_25);
        let mut outgoing = self.outgoing(message, Some(""));
        outgoing.well_formed = false;
        self.emit(outgoing);
    }

    fn outgoing(&self, message: Value, answers: Option<&str>) -> Outgoing {
        Outgoing {
            message,
            revision: self.revision(),
            answers: answers.map(str::to_owned),
            well_formed: true,
            opens: false,
        }
    }

    /// Whether a request opens the connection: `initialize`, or `server/discover` as its first request.
    fn opens(&self, method: &str) -> bool {
        method == "initialize" || method == "server/discover" && !self.past.answered
    }

    /// Writes the answer to a request, or holds it back where a fault confuses requests in flight.
    pub(super) fn respond(&mut self, message: Value, method: &str, revision: Revision) {
        let opens = self.opens(method);
        let outgoing = Outgoing { revision, opens, ..self.outgoing(message, Some(method)) };
        let calls = method == "tools/call";
        let swaps = if calls { Fault::CallsSwapped } else { Fault::SwappedIds };
        let confuses = [swaps, Fault::IdKindsConfused].into_iter().any(|fault| self.has(fault));
        if !confuses || opens || self.batch.is_some() {
            self.emit(outgoing);
            return;
        }
        let Some(mut earlier) = self.held.take() else {
            self.held = Some(outgoing);
            return;
        };
        let mut later = outgoing;
        let alike = (earlier.answers.as_deref() == Some("tools/call")) == calls;
        // Ids of different kinds are the matter of another fault.
        let same_kind = earlier.message["id"].is_string() == later.message["id"].is_string();
        if self.has(swaps) && alike && same_kind {
            let id = earlier.message["id"].take();
            earlier.message["id"] = later.message["id"].take();
            later.message["id"] = id;
        } else if self.has(Fault::IdKindsConfused)
            && let Some(integer) = common_integer(&earlier.message["id"], &later.message["id"])
        {
            earlier.message["id"] = integer.clone();
            later.message["id"] = integer;
        }
        self.emit(earlier);
        self.emit(later);
    }

    /// Writes a notification or a request of ours.
    pub(super) fn tell(&mut self, message: Value, revision: Revision) {
        let outgoing = Outgoing { revision, ..self.outgoing(message, None) };
        self.emit(outgoing);
    }

    fn emit(&mut self, outgoing: Outgoing) {
        match &mut self.batch {
            Some(batch) if outgoing.answers.is_some() => {
                let mut outgoing = outgoing;
                envelope::deviate(&mut outgoing, self.faults);
                batch.push(outgoing.message);
            }
            _ => self.write(&outgoing),
        }
    }

    fn write(&mut self, outgoing: &Outgoing) {
        let mut outgoing = outgoing.clone();
        envelope::deviate(&mut outgoing, self.faults);
        let bytes = writing::line(&outgoing, !self.past.answered, self.faults);
        self.past.answered |= outgoing.answers.is_some();
        self.output.push(Output::Bytes(bytes));
    }

    /// Puts a question to the client, under an id that it sees nowhere else.
    pub(super) fn ask(&mut self, method: &str, params: Option<Value>, revision: Revision) -> String {
        if self.questions == 0 || !self.has(Fault::ServerRequestIdReused) {
            self.questions += 1;
        }
        let id = format!("question-{}", self.questions);
        let mut message = object(json!({"jsonrpc": "2.0", "id": id, "method": method}));
        if let Some(params) = params {
            message.insert("params".to_owned(), params);
        }
        self.tell(Value::Object(message), revision);
        id
    }

    /// The revision by whose rules a request is served: that of its own metadata if it is modern,
    /// that of the session otherwise.
    fn revision_of(&self, method: &str, params: Option<&Value>) -> Revision {
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
                if !known && self.has(Fault::FallbackOldest) {
                    return Revision::V2024_11_05;
                }
                let declares_nothing = params.and_then(|params| params.get("capabilities")) == Some(&json!({}));
                if declares_nothing && self.has(Fault::VersionForgotten) {
                    let asked = Revision::by_handshake(version);
                    let other = [Revision::V2024_11_05, Revision::V2025_03_26];
                    return if asked == other[0] { other[1] } else { other[0] };
                }
                Revision::by_handshake(version)
            }
            // A client may ping before the handshake, in no revision in particular.
            ("initialize", None) => Revision::V2025_11_25,
            ("ping", _) if self.session.is_none() => Revision::V2025_11_25,
            _ => self.revision(),
        }
    }
}

/// The integer of two ids that differ in their kind only, such as 7 and "7".
fn common_integer(left: &Value, right: &Value) -> Option<Value> {
    let (integer, text) = if left.is_string() { (right, left) } else { (left, right) };
    let number = text.as_str()?.parse::<i64>().ok()?;
    (integer.as_i64() == Some(number)).then(|| integer.clone())
}

/// The refusal of parameters that do not have the shape that the method wants.
pub(super) fn invalid_params(text: impl Into<String>) -> Refusal {
    Refusal::new(INVALID_PARAMS, text)
}
