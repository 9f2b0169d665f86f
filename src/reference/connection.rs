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

use super::ask::Question;
use super::deviation::envelope::Outgoing;
use super::evaluation::{self, Early};
use super::fault::{Fault, FaultSet};
use super::listing;
use super::message::{Object, Refusal};
use super::revision::Revision;
use super::rich::Drafts;
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
    /// A fault stops the connection, but does not end it.
    Frozen,
    /// A fault ends the process.
    Crashed,
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
    /// Whether any request was answered.
    pub(super) answered: bool,
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
    /// Whether a result has asked for input that has not come yet.
    pub(super) asked: bool,
    pub(super) drafts: Drafts,
    pub(super) hidden: evaluation::State,
    /// An answer that is held back where a fault confuses requests in flight.
    pub(super) held: Option<Outgoing>,
    /// The answers to the batch in hand.
    pub(super) batch: Option<Vec<Value>>,
    /// Whether a fault has ended the connection.
    pub(super) ended: bool,
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
            offered: None,
            paging: listing::Memory::new(salt),
            waiting: BTreeMap::new(),
            past: Past::default(),
            tasks: Tasks::default(),
            afterwards: Vec::new(),
            questions: 0,
            subscriptions: Vec::new(),
            grown: false,
            asked: false,
            drafts: Drafts::default(),
            hidden: evaluation::State::new(faults),
            held: None,
            batch: None,
            ended: false,
            output: Vec::new(),
        }
    }

    /// Takes one line without its ending, and says what follows from it.
    pub(super) fn receive(&mut self, line: &[u8]) -> Vec<Output> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let struck = !self.hidden.is_idle() && self.strike_line(line);
        if !self.ended && !struck && !line.trim_ascii().is_empty() && !self.has(Fault::NeverAnswers) {
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

    /// Lets the faults at a line that show before it is parsed; true if that is the end of it.
    fn strike_line(&mut self, line: &[u8]) -> bool {
        let revision = self.revision();
        match self.hidden.line(line, revision) {
            Early::Crashed => self.output.push(Output::Crash),
            Early::Frozen => self.output.push(Output::Freeze),
            _ => return false,
        }
        true
    }

    /// How long an answer is held back in the hope of another request in flight.
    pub(super) fn patience(&self) -> Duration {
        // Where it depends on the arguments, many calls are held back and few of them in vain.
        Duration::from_millis(if self.hidden.swaps() { 5 } else { 60 })
    }

    /// Whether an answer is held back: in the hope of another request in flight, or for a task to end.
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some() || self.tasks.is_awaited()
    }

    /// Lets go of what was held back.
    pub(super) fn release(&mut self) -> Vec<Output> {
        self.end_awaited();
        if let Some(held) = self.held.take() {
            self.hidden.has_swapped();
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

    /// Whether a fault is switched on and shows in the revision in force.
    pub(super) fn shows(&self, fault: Fault) -> bool {
        self.faults.shows(fault, self.revision())
    }
}
