//! One connection: what each line from the client leads to, without any input or output of its own.
//!
//! Owns what a connection remembers, and the order of what follows from a line. How messages are told apart is in
//! [`super::intake`], how a request is taken in [`super::request`], and how an answer is written in
//! [`super::outgoing`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::client_request::ClientRequest;
use super::complex_tool::Drafts;
use super::evaluation::{self, Interception};
use super::fault::{Fault, FaultSet};
use super::injection::envelope::Outgoing;
use super::message::{Object, RpcError};
use super::pagination;
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
    /// Nothing for a while.
    Delay(Duration),
    /// Nothing any more, though the connection stays.
    Freeze,
    /// The end of the process, without a word.
    Crash,
    /// The end of the connection.
    Close,
}

/// What `initialize` agreed to, and what was changed since.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) client: Object,
    /// The least severity that is logged.
    pub(super) min_log_severity: usize,
    pub(super) grown: bool,
    /// Whether the client has said that it is ready.
    pub(super) initialized: bool,
}

/// The tools that were offered last, and in what circumstances.
#[derive(Debug)]
pub(super) struct ToolListCache {
    pub(super) revision: Revision,
    pub(super) grown: bool,
    pub(super) tools: Arc<[Object]>,
}

/// A call that waits for the client to answer a question.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) id: Value,
    pub(super) revision: Revision,
    pub(super) client_request: ClientRequest,
    /// The number of an elicitation.
    pub(super) number: u64,
    /// The messages that a model is to complete, and how often it was asked before.
    pub(super) messages: Vec<Value>,
    pub(super) rounds: usize,
}

/// Why a request gets no result now.
#[derive(Debug, PartialEq)]
pub(super) enum NoResult {
    Error(RpcError),
    /// The answer follows when the client has answered a question.
    Deferred,
    /// A fault ends the connection.
    Closed,
    /// A fault stops the connection, but does not end it.
    Frozen,
    /// A fault ends the process.
    Crashed,
}

impl From<RpcError> for NoResult {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

/// What happened on the connection before, as far as faults depend on it.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Whether `server/discover` was called.
    pub(super) discover_called: bool,
    /// Whether a call was refused.
    pub(super) call_rejected: bool,
    /// Whether any request was answered.
    pub(super) has_responded: bool,
    pub(super) used_ids: Vec<Value>,
    pub(super) answered_ids: Vec<Value>,
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
    pub(super) tool_cache: Option<ToolListCache>,
    pub(super) pagination: pagination::PaginationState,
    pub(super) pending_calls: BTreeMap<String, PendingCall>,
    pub(super) history: History,
    pub(super) tasks: Tasks,
    /// Messages that belong after the response to the request in hand.
    pub(super) after_response: Vec<Value>,
    /// How many questions were put to the client.
    pub(super) client_requests_sent: u64,
    /// The subscriptions of the stateless era that are open.
    pub(super) subscriptions: Vec<Subscription>,
    /// Whether what is offered there has grown for those who listen.
    pub(super) grown: bool,
    /// Whether a result has asked for input that has not come yet.
    pub(super) input_requested: bool,
    pub(super) drafts: Drafts,
    pub(super) evaluation: evaluation::State,
    /// An answer that is held back where a fault confuses requests in flight.
    pub(super) held_response: Option<Outgoing>,
    /// The answers to the batch in hand.
    pub(super) batch: Option<Vec<Value>>,
    /// Whether a fault has ended the connection.
    pub(super) closed: bool,
    pub(super) output: Vec<Output>,
}

impl<'a> Connection<'a> {
    pub(super) fn new(faults: &'a FaultSet) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let salt = (u64::from(std::process::id()) << 32) | number;
        Self {
            faults,
            session: None,
            tool_cache: None,
            pagination: pagination::PaginationState::new(salt),
            pending_calls: BTreeMap::new(),
            history: History::default(),
            tasks: Tasks::default(),
            after_response: Vec::new(),
            client_requests_sent: 0,
            subscriptions: Vec::new(),
            grown: false,
            input_requested: false,
            drafts: Drafts::default(),
            evaluation: evaluation::State::new(faults),
            held_response: None,
            batch: None,
            closed: false,
            output: Vec::new(),
        }
    }

    /// Takes one line without its ending, and says what follows from it.
    pub(super) fn receive(&mut self, line: &[u8]) -> Vec<Output> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let intercepted = !self.evaluation.is_empty() && self.intercept_line(line);
        if !self.closed && !intercepted && !line.trim_ascii().is_empty() && !self.is_enabled(Fault::NeverAnswers) {
            match serde_json::from_slice(line) {
                Ok(value) => self.receive_value(value),
                Err(_) => self.receive_invalid_json(),
            }
        }
        if self.closed {
            self.output.push(Output::Close);
        }
        std::mem::take(&mut self.output)
    }

    /// Lets the faults at a line that show before it is parsed; true if that is the end of it.
    fn intercept_line(&mut self, line: &[u8]) -> bool {
        let revision = self.revision();
        match self.evaluation.intercept_line(line, revision) {
            Interception::Crashed => self.output.push(Output::Crash),
            Interception::Frozen => self.output.push(Output::Freeze),
            _ => return false,
        }
        true
    }

    /// How long an answer is held back in the hope of another request in flight.
    pub(super) fn hold_timeout(&self) -> Duration {
        // Where it depends on the arguments, many calls are held back and few of them in vain.
        Duration::from_millis(if self.evaluation.swaps_responses() { 5 } else { 60 })
    }

    /// Whether an answer is held back: in the hope of another request in flight, or for a task to end.
    pub(super) fn has_delayed_responses(&self) -> bool {
        self.held_response.is_some() || self.tasks.is_awaited()
    }

    /// Lets go of what was held back.
    pub(super) fn flush_delayed(&mut self) -> Vec<Output> {
        self.finish_awaited_tasks();
        if let Some(held) = self.held_response.take() {
            self.evaluation.clear_swap();
            self.write(&held);
        }
        std::mem::take(&mut self.output)
    }

    /// The revision in force for messages that do not name one.
    pub(super) fn revision(&self) -> Revision {
        self.session.as_ref().map_or(Revision::V2026_07_28, |session| session.revision)
    }

    /// Whether a fault is switched on, in whatever revision.
    pub(super) fn is_enabled(&self, fault: Fault) -> bool {
        self.faults.contains(fault)
    }

    /// Whether a fault is switched on and shows in the revision in force.
    pub(super) fn is_active(&self, fault: Fault) -> bool {
        self.faults.is_active(fault, self.revision())
    }
}
