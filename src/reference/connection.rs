//! One connection: its state, and what it writes in response to each line from the client.
//!
//! It does no I/O of its own. [`super::incoming`] classifies messages, [`super::request`] processes requests,
//! and [`super::outgoing`] writes messages.

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

/// An action for the transport.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Output {
    Bytes(Vec<u8>),
    /// A message of 100 MiB between a prefix and a suffix.
    Huge {
        begin: Vec<u8>,
        end: Vec<u8>,
    },
    /// The same notification, repeated without end.
    Flood(Vec<u8>),
    /// A pause.
    Delay(Duration),
    /// Stop responding, but keep the connection open.
    Freeze,
    /// Exit the process without any further output.
    Crash,
    /// Close the connection.
    Close,
}

/// The result of the handshake, and what changed since.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) client: Object,
    /// The least severe level that is logged, as an index of the log levels.
    pub(super) min_log_severity: usize,
    pub(super) grown: bool,
    /// Whether the client has sent `notifications/initialized`.
    pub(super) initialized: bool,
}

/// The most recent list of tools, and what it depends on.
#[derive(Debug)]
pub(super) struct ToolListCache {
    pub(super) revision: Revision,
    pub(super) grown: bool,
    pub(super) tools: Arc<[Object]>,
}

/// A call that waits for a response from the client.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) id: Value,
    pub(super) revision: Revision,
    pub(super) client_request: ClientRequest,
    /// The number of the elicitation.
    pub(super) number: u64,
    /// The messages of a sampling request, and the number of rounds so far.
    pub(super) messages: Vec<Value>,
    pub(super) rounds: usize,
}

/// Why a request has no result yet, or never will.
#[derive(Debug, PartialEq)]
pub(super) enum NoResult {
    Error(RpcError),
    /// The response follows after one from the client.
    Deferred,
    /// A fault closes the connection.
    Closed,
    /// A fault stops responding, but keeps the connection open.
    Frozen,
    /// A fault exits the process.
    Crashed,
}

impl From<RpcError> for NoResult {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

/// Past events on the connection that faults depend on.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Whether the client has called `server/discover`.
    pub(super) discover_called: bool,
    /// Whether the server has rejected a call.
    pub(super) call_rejected: bool,
    /// Whether the server has answered any request.
    pub(super) has_responded: bool,
    pub(super) used_ids: Vec<Value>,
    pub(super) answered_ids: Vec<Value>,
}

/// A request and the revision that applies to it.
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
    /// Messages to send after the response to the current request.
    pub(super) after_response: Vec<Value>,
    /// The number of requests sent to the client.
    pub(super) client_requests_sent: u64,
    /// The open subscriptions (2026-07-28).
    pub(super) subscriptions: Vec<Subscription>,
    /// Whether the lists have an extra item for subscribers.
    pub(super) grown: bool,
    /// Whether a result has requested input that the client has not sent yet.
    pub(super) input_requested: bool,
    pub(super) drafts: Drafts,
    pub(super) evaluation: evaluation::State,
    /// A response that is delayed because a fault confuses concurrent requests.
    pub(super) delayed_response: Option<Outgoing>,
    /// The responses to the current batch.
    pub(super) batch: Option<Vec<Value>>,
    /// Whether a fault has closed the connection.
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
            delayed_response: None,
            batch: None,
            closed: false,
            output: Vec::new(),
        }
    }

    /// Processes one line (without its line ending).
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

    /// Applies evaluation faults to the unparsed line; true if nothing else is to be done with it.
    fn intercept_line(&mut self, line: &[u8]) -> bool {
        let revision = self.revision();
        match self.evaluation.intercept_line(line, revision) {
            Interception::Crashed => self.output.push(Output::Crash),
            Interception::Frozen => self.output.push(Output::Freeze),
            _ => return false,
        }
        true
    }

    /// How long a response is delayed until a concurrent request arrives.
    pub(super) fn hold_timeout(&self) -> Duration {
        // Faults that depend on arguments delay many calls, few of which have a concurrent one.
        Duration::from_millis(if self.evaluation.swaps_responses() { 5 } else { 60 })
    }

    /// Whether a response is delayed, for a concurrent request or for the end of a task.
    pub(super) fn has_delayed_responses(&self) -> bool {
        self.delayed_response.is_some() || self.tasks.is_awaited()
    }

    /// Sends the delayed responses.
    pub(super) fn flush_delayed(&mut self) -> Vec<Output> {
        self.finish_awaited_tasks();
        if let Some(delayed) = self.delayed_response.take() {
            self.evaluation.clear_swap();
            self.write(&delayed);
        }
        std::mem::take(&mut self.output)
    }

    /// The revision for messages that do not name one.
    pub(super) fn revision(&self) -> Revision {
        self.session.as_ref().map_or(Revision::V2026_07_28, |session| session.revision)
    }

    /// Whether the fault is enabled, in any revision.
    pub(super) fn is_enabled(&self, fault: Fault) -> bool {
        self.faults.contains(fault)
    }

    /// Whether the fault is enabled and shows in the current revision.
    pub(super) fn is_active(&self, fault: Fault) -> bool {
        self.faults.is_active(fault, self.revision())
    }
}
