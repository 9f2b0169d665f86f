//! What a passive case does: the values that it watches, and the rules for them.

use super::checks::{ConnectionCheck, ConnectionRule, Unique, ValueCheck};
use super::lazy_schema::LazySchema;
use super::path_pattern::PathPattern;
use crate::spec::RevisionSet;
use crate::verdict::Verdict;

/// What a passive case does.
#[derive(Debug, Clone)]
pub struct Passive {
    /// The cases and areas that make the server send what is watched; none where its discovery does.
    pub provoked_by: Vec<String>,
    /// What it checks.
    pub watch: Watch,
}

/// What a passive case checks.
#[derive(Debug, Clone)]
pub enum Watch {
    /// Values in the traffic, each by itself.
    Values(WatchedValues),
    /// Each connection as a whole: the rules, never none.
    Connections(Vec<Rule<ConnectionAssertion>>),
}

/// The values that a passive case checks, and the rules for each of them.
#[derive(Debug, Clone)]
pub struct WatchedValues {
    /// The kind of value.
    pub kind: WatchKind,
    /// The places in it; the whole value where there are none.
    pub path: Option<PathPattern>,
    /// A JSON Schema that a value has to be valid against to be checked.
    pub matching: Option<LazySchema>,
    /// The rules: never none.
    pub rules: Vec<Rule<ValueRule>>,
}

/// The kinds of value that a passive case can watch, each with what selects among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchKind {
    /// Lines on standard output, as `{"text", "bytes", "framing-error", "json"}`; `framing-error` is null or a keyword.
    Line,
    /// JSON values that the server wrote as one line.
    Message,
    /// Responses to requests of these methods.
    Response(Methods),
    /// The `result` of such responses.
    Result(Methods),
    /// The `error` of such responses.
    Error(Methods),
    /// Requests of the server.
    Request(Methods),
    /// What the server requests of the client: by a request, or inside an `input_required` result.
    ClientRequest(Methods),
    /// Notifications of the server.
    Notification(Methods),
    /// HTTP requests of the client with their responses, as `{"request": {"method", "target", "headers",
    /// "message"}, "status", "headers", "body"}`, except those that cases make by `http`.
    Exchange(Methods),
}

/// The methods that a passive case is limited to; none means every method.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Methods(Vec<String>);

impl Methods {
    /// Limits to these methods, or to none.
    #[must_use]
    pub fn new(methods: Vec<String>) -> Self {
        Self(methods)
    }

    /// Whether messages of any method count, also those without one.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether messages of this method count.
    #[must_use]
    pub fn include(&self, method: &str) -> bool {
        self.is_any() || self.0.iter().any(|one| one == method)
    }

    /// The methods.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl WatchKind {
    /// The methods that it is limited to.
    #[must_use]
    pub fn methods(&self) -> &Methods {
        static ANY: Methods = Methods(Vec::new());
        match self {
            Self::Line | Self::Message => &ANY,
            Self::Response(methods)
            | Self::Result(methods)
            | Self::Error(methods)
            | Self::Request(methods)
            | Self::ClientRequest(methods)
            | Self::Notification(methods)
            | Self::Exchange(methods) => methods,
        }
    }
}

/// A rule of a passive case.
#[derive(Debug, Clone)]
pub struct Rule<T> {
    /// What is checked.
    pub check: T,
    /// The revisions that it applies in; by default those of the case.
    pub revisions: Option<RevisionSet>,
    /// The requirement that a violation is reported under; by default the main one of the case.
    pub requirement: Option<String>,
    /// The verdict on a violation; by default the level of the requirement decides.
    pub verdict: Option<Verdict>,
    /// What is wrong when it is violated, in one sentence.
    pub message: Option<String>,
}

/// What is checked in a value.
#[derive(Debug, Clone)]
pub enum ValueRule {
    /// It is valid against a JSON Schema (2020-12, formats asserted).
    Schema(LazySchema),
    /// It passes a named check.
    Check(ValueCheck),
}

/// What is checked in a connection.
#[derive(Debug, Clone)]
pub enum ConnectionAssertion {
    /// It passes a named check.
    Check(ConnectionCheck),
    /// It keeps a rule with parameters.
    Rule(ConnectionRule),
}

impl ConnectionAssertion {
    /// Whether it checks streams of HTTP, which other transports do not have.
    #[must_use]
    pub fn is_of_http(&self) -> bool {
        match self {
            Self::Check(check) => {
                matches!(check, ConnectionCheck::MessagesOnOneStream | ConnectionCheck::StreamsCarryResponses)
            }
            Self::Rule(rule) => matches!(rule, ConnectionRule::Unique(Unique::Streams { .. })),
        }
    }
}
