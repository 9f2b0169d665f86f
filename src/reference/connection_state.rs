//! The state of a connection that its methods share: the session, what is sent, and what faults depend on.
//!
//! [`super::outgoing`] sends messages; each group of methods owns the rest of its state.

use std::time::Duration;

use serde_json::Value;

use super::fault::{Fault, FaultSet};
use super::injection::envelope::Outgoing;
use super::interception::Interceptor;
use super::message::{Object, RpcError};
use super::revision::Revision;
use super::user::User;

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

/// A request and the revision that applies to it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Option<Value>,
    pub(super) revision: Revision,
}

/// The shared state of a connection.
#[derive(Debug)]
pub(super) struct ConnectionState<'a> {
    pub(super) faults: &'a FaultSet,
    pub(super) interceptor: Box<dyn Interceptor>,
    /// Who the connection belongs to.
    pub(super) user: User,
    pub(super) session: Option<Session>,
    /// Whether the server has answered any request.
    pub(super) has_responded: bool,
    /// Whether a fault serves the rest of the connection by the rules of a revision with a handshake.
    pub(super) pinned_to_handshake: bool,
    /// Whether a result has requested input that the client has not sent yet.
    pub(super) input_requested: bool,
    /// Messages to send after the response to the current request.
    pub(super) after_response: Vec<Value>,
    /// The number of requests sent to the client.
    pub(super) client_requests_sent: u64,
    /// The number of requests received since the opening.
    pub(super) requests_since_opening: u64,
    /// A response that is delayed because a fault confuses concurrent requests.
    pub(super) delayed_response: Option<Outgoing>,
    /// The responses to the current batch.
    pub(super) batch: Option<Vec<Value>>,
    pub(super) output: Vec<Output>,
}

impl<'a> ConnectionState<'a> {
    pub(super) fn new(faults: &'a FaultSet, interceptor: Box<dyn Interceptor>) -> Self {
        Self {
            faults,
            interceptor,
            user: User::default(),
            session: None,
            has_responded: false,
            pinned_to_handshake: false,
            input_requested: false,
            after_response: Vec::new(),
            client_requests_sent: 0,
            requests_since_opening: 0,
            delayed_response: None,
            batch: None,
            output: Vec::new(),
        }
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

    /// Whether the fault is enabled and shows in the revision of a request.
    pub(super) fn is_active_for(&self, request: &Request, fault: Fault) -> bool {
        self.faults.is_active(fault, request.revision)
    }

    /// Whether a request opens the connection: `initialize`, or `server/discover` as the first request.
    pub(super) fn opens(&self, method: &str) -> bool {
        method == "initialize" || method == "server/discover" && !self.has_responded
    }

    /// The `requestId` of a cancellation, after fault injection.
    pub(super) fn cancelled_id(&self, id: &Value) -> Value {
        if self.is_enabled(Fault::CancelsWithObjectId) { serde_json::json!({"id": id}) } else { id.clone() }
    }
}
