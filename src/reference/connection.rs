//! One connection: its parts, and what it writes in response to each line from the client.
//!
//! It does no I/O of its own. [`super::incoming`] classifies messages, [`super::request`] processes requests,
//! and [`super::outgoing`] writes messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::connection_state::{ConnectionState, Output};
use super::fault::{Fault, FaultSet};
use super::injection::request::{self, Reading};
use super::injection::size::{self, Treatment};
use super::injection::{crash, surrogate};
use super::interception::{Interception, Interceptor};
use super::message::{INVALID_REQUEST, RpcError};
use super::method::Methods;

#[derive(Debug)]
pub(super) struct Connection<'a> {
    pub(super) state: ConnectionState<'a>,
    pub(super) methods: Methods,
    /// The ids of earlier requests, for a fault that rejects them.
    pub(super) used_ids: Vec<Value>,
    /// The ids of answered requests, for a fault that depends on them.
    pub(super) answered_ids: Vec<Value>,
    /// Whether a fault has stopped the connection from serving anything, although it is open.
    pub(super) wedged: bool,
    /// How many lines came after the one that wedged it.
    lines_since: usize,
    /// The tool that the request before called.
    pub(super) last_call: Option<String>,
    /// Whether a fault has closed the connection.
    pub(super) closed: bool,
    /// Whether output is held back by a fault that makes answers slow: perhaps a request that the client cannot have
    /// answered.
    pub(super) holds_output: bool,
}

impl<'a> Connection<'a> {
    pub(super) fn new(faults: &'a FaultSet, interceptor: Box<dyn Interceptor>) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let salt = (u64::from(std::process::id()) << 32) | number;
        Self {
            state: ConnectionState::new(faults, interceptor),
            methods: Methods::new(salt),
            used_ids: Vec::new(),
            answered_ids: Vec::new(),
            wedged: false,
            lines_since: 0,
            last_call: None,
            closed: false,
            holds_output: false,
        }
    }

    /// Processes one line (without its line ending).
    pub(super) fn receive(&mut self, line: &[u8]) -> Vec<Output> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let intercepted = self.intercept_line(line);
        self.lines_since += usize::from(self.wedged);
        // A parser that takes the next line for the other half of a broken one fails at the line after it.
        self.closed |= self.lines_since > 1 && self.state.is_enabled(Fault::ParseErrorWedges);
        let is_served = !self.closed && !self.wedged && !intercepted && !line.trim_ascii().is_empty();
        if is_served && !self.state.is_enabled(Fault::NeverAnswers) {
            match size::treatment(line, |fault| self.state.is_enabled(fault)) {
                Some(Treatment::Exits) => self.closed = true,
                Some(Treatment::Ignored) => {}
                Some(Treatment::Refused) => self.refuse(),
                None => self.serve_line(line),
            }
        }
        if self.closed {
            self.state.output.push(Output::Close);
        }
        let mut output = std::mem::take(&mut self.state.output);
        if self.state.is_enabled(Fault::SurrogateIdEchoed) {
            surrogate::restore(&mut output);
        }
        output
    }

    fn serve_line(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            _ if crash::exits(line, self.state.session.is_some(), |fault| self.state.is_enabled(fault)) => {
                self.closed = true;
            }
            Ok(value) if self.state.is_enabled(Fault::IdLastRejected) && has_id_last(&value) => {
                self.receive_invalid_json();
            }
            Ok(value) => match request::read(value, |fault| self.state.is_active(fault)) {
                Reading::As(value) => self.receive_value(value),
                Reading::Ignored => {}
                Reading::Exits => self.closed = true,
            },
            Err(_) => match surrogate::served(line, |fault| self.state.is_enabled(fault)) {
                Some(value) => self.receive_value(value),
                None => self.receive_invalid_json(),
            },
        }
    }

    /// Answers a message that is too large with an error, without the id: it is not read that far.
    fn refuse(&mut self) {
        self.state.reject(None, RpcError::new(INVALID_REQUEST, "Message too large"));
    }

    /// Intercepts the unparsed line; true if nothing else is to be done with it.
    fn intercept_line(&mut self, line: &[u8]) -> bool {
        let revision = self.state.revision();
        match self.state.interceptor.intercept_line(line, revision) {
            Interception::Crashed => self.state.output.push(Output::Crash),
            Interception::Frozen => self.state.output.push(Output::Freeze),
            _ => return false,
        }
        true
    }

    /// How long a response is delayed until a concurrent request arrives.
    pub(super) fn hold_timeout(&self) -> Duration {
        // An interceptor delays many calls, few of which have a concurrent one.
        Duration::from_millis(if self.state.interceptor.swaps_responses() { 5 } else { 60 })
    }

    /// Whether a response is delayed, for a concurrent request or for the end of a task.
    pub(super) fn has_delayed_responses(&self) -> bool {
        self.state.delayed_response.is_some() || self.methods.tasks.is_awaited()
    }

    /// What a fault sends while nothing is asked.
    pub(super) fn idle_output(&self) -> Option<Vec<Output>> {
        let is_open = self.state.session.as_ref().is_some_and(|session| session.initialized);
        (is_open && self.state.is_enabled(Fault::IdleNotifications)).then(|| {
            let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            vec![Output::Bytes(format!("{change}\n").into_bytes())]
        })
    }

    /// Sends the delayed responses.
    pub(super) fn flush_delayed(&mut self) -> Vec<Output> {
        self.methods.tasks.finish_awaited(&mut self.state);
        self.state.flush_delayed_response();
        std::mem::take(&mut self.state.output)
    }

    /// The revision for messages that do not name one.
    #[cfg(feature = "http")]
    pub(super) fn revision(&self) -> super::revision::Revision {
        self.state.revision()
    }
}

/// Whether the id of a request comes after its method.
fn has_id_last(message: &Value) -> bool {
    let position = |name: &str| message.as_object().and_then(|members| members.keys().position(|own| own == name));
    position("id").zip(position("method")).is_some_and(|(id, method)| id > method)
}
