//! A parsed case: a value in which nothing contradictory can be written.
//!
//! A case is one JSONC file. It does one of three things:
//!
//! - a **passive** case names values in the traffic of a run (`watch`) and the rules that each of them keeps
//!   (`rules`). It sends nothing;
//! - an **active** case sends messages (`steps`) and says which responses are right;
//! - a **fuzz** case names a property of the responses to generated calls (`fuzz`).
//!
//! The types of the file itself are in `file`, and `parse` turns the one into the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::checks::{Comparison, ConnectionCheck, ConnectionRule, Oracle, Unique, ValueCheck};
use super::client_response::ClientResponse;
use super::http_step::{HttpCall, HttpKind, StatusPattern};
use super::lazy_schema::LazySchema;
use super::path_pattern::PathPattern;
use super::placeholder::{Placeholder, find};
#[cfg(test)]
use super::schema_types as types;
use crate::spec::{Catalogue, Requirement, Revision, RevisionSet, Transport};
use crate::verdict::Verdict;

/// The longest delay between two steps, in milliseconds.
pub(crate) const MAX_WAIT_MS: u64 = 5_000;

/// Where a case comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It is built in.
    Embedded,
    /// It is the user's own, in this file.
    File(PathBuf),
}

/// A case, ready to run.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its path below the directory of cases, without the extension: `tools/call/unknown-tool`.
    pub id: String,
    /// Where it comes from.
    pub source: Source,
    /// What a conforming server does.
    pub title: String,
    /// The requirements that it checks, the main one of each revision first.
    pub requirements: Vec<&'static Requirement>,
    /// The revisions that it runs in: never empty.
    pub revisions: RevisionSet,
    /// Names to select it by, in addition to its id and area.
    pub tags: Vec<String>,
    /// Why the rule matters and how fair readings of it differ.
    pub why: Option<String>,
    /// How to fix a server that violates the rule.
    pub fix: String,
    /// The fault of the reference server that makes it fail.
    pub fault: Option<String>,
    /// What the server has to support for it to apply.
    pub needs: Needs,
    /// What it does.
    pub body: Body,
}

/// What a case does.
#[derive(Debug, Clone)]
pub enum Body {
    /// It checks what other cases and the discovery of the server provoke, and sends nothing.
    Passive(Passive),
    /// It sends messages and checks the responses.
    Active(Active),
    /// It checks the responses to generated calls.
    Fuzz(Oracle),
}

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
            Self::Check(check) => *check == ConnectionCheck::MessagesOnOneStream,
            Self::Rule(rule) => matches!(rule, ConnectionRule::Unique(Unique::Streams { .. })),
        }
    }
}

/// What an active case does.
#[derive(Debug, Clone)]
pub struct Active {
    /// Its steps: never none.
    pub steps: Vec<Step>,
    /// What it repeats its steps for.
    pub for_each: Option<ForEach>,
    /// The process that its steps run in.
    pub process: Process,
    /// The capabilities that the client declares in a process of its own.
    pub client_capabilities: Option<Value>,
    /// The client's responses to requests of the server, by method; to other methods it responds as usual.
    pub client_responses: BTreeMap<String, Vec<ClientResponse>>,
    /// The checks that compare the responses to several steps.
    pub across_steps: Vec<AcrossSteps>,
}

/// A step of an active case.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name, for other steps to refer to.
    pub name: Option<String>,
    /// The revisions that it is carried out in; by default all of the case's.
    pub revisions: Option<RevisionSet>,
    /// What it does.
    pub action: Action,
}

/// What a step does, with what applies to that.
#[derive(Debug, Clone)]
pub enum Action {
    /// Sends a request.
    Request {
        /// The request; `jsonrpc`, `id` and, in stateless revisions, `_meta` are added where missing.
        message: Value,
        /// What its `_meta` is.
        meta: Meta,
        /// When the next step begins.
        delivery: Delivery,
        /// Values of the response to save.
        save: SavedPointers,
        /// The responses that are right.
        expected: Expected,
    },
    /// Sends a notification.
    Notification {
        /// The notification, completed as a request is.
        message: Value,
        /// The responses that are right.
        expected: Expected,
    },
    /// Sends a batch.
    Batch {
        /// The messages, completed one by one.
        messages: Vec<Value>,
        /// What the `_meta` of its requests is.
        meta: Meta,
        /// The responses that are right, to each request.
        expected: Expected,
    },
    /// Writes a line as it is.
    Raw {
        /// The line, without its newline.
        line: RawLine,
        /// The responses that are right.
        expected: Expected,
    },
    /// Reads all pages of a list.
    Paginate {
        /// The method of the list.
        method: String,
        /// The responses that are right, for each page.
        expected: Expected,
    },
    /// Sends an earlier request again, with responses to what its result requested.
    Retry {
        /// The request and what changes in it.
        retry: Retry,
        /// What its `_meta` is.
        meta: Meta,
        /// Whether the next step begins before it is answered.
        pipelined: bool,
        /// Values of the response to save.
        save: SavedPointers,
        /// The responses that are right.
        expected: Expected,
    },
    /// Makes an HTTP request of its own.
    Http {
        /// The request.
        call: HttpCall,
        /// What the `_meta` of the requests in its body is.
        meta: Meta,
        /// Values of the exchange to save.
        save: SavedPointers,
        /// The responses that are right.
        expected: Expected,
    },
    /// Closes the response to an earlier `http` step that is still open.
    Close {
        /// The name of that step.
        step: String,
    },
    /// Closes the server's standard input and waits for the process to exit.
    Shutdown {
        /// How the process may have to be ended.
        how: Shutdown,
        /// The ways to end that are right.
        expected: Expected,
    },
    /// Waits before the next step.
    Wait(Duration),
}

/// Values to save: a JSON pointer into the response, or into the exchange of `http`, by name.
pub type SavedPointers = BTreeMap<String, String>;

/// What the `_meta` of a request is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Meta {
    /// What the revision requires.
    #[default]
    AsRequired,
    /// It is left out.
    Omitted,
    /// This object.
    Replaced(Value),
}

/// When the step after a request begins.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// Once the request is answered.
    Awaited,
    /// At once.
    Pipelined,
    /// Once the request, which is repeated, has the response that is waited for.
    Polled(Poll),
}

/// A line that is written as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawLine {
    /// A string, with its placeholders filled in.
    Text(String),
    /// Bytes, which need not be UTF-8.
    Bytes(Vec<u8>),
}

/// The responses to a step that are right.
#[derive(Debug, Clone, Default)]
pub enum Expected {
    /// Any response, or none.
    #[default]
    Anything,
    /// A result, as the step is the control: without it nothing is proved.
    Served,
    /// Those of the first entry that matches.
    Listed {
        /// The entries: never none.
        responses: Vec<ExpectedResponse>,
        /// What a response means that matches no entry; by default a violation of the case's requirement.
        otherwise: Option<Otherwise>,
        /// Whether the step is the control in revisions that no entry is for.
        control: bool,
    },
}

impl Expected {
    /// The entries.
    #[must_use]
    pub fn responses(&self) -> &[ExpectedResponse] {
        match self {
            Self::Anything | Self::Served => &[],
            Self::Listed { responses, .. } => responses,
        }
    }

    /// What a response means that matches no entry.
    #[must_use]
    pub fn otherwise(&self) -> Option<&Otherwise> {
        match self {
            Self::Anything | Self::Served => None,
            Self::Listed { otherwise, .. } => otherwise.as_ref(),
        }
    }

    /// Whether the step is the control.
    #[must_use]
    pub fn is_control(&self) -> bool {
        match self {
            Self::Anything => false,
            Self::Served => true,
            Self::Listed { control, .. } => *control,
        }
    }
}

impl Action {
    /// The responses to it that are right.
    #[must_use]
    pub fn expected(&self) -> &Expected {
        match self {
            Self::Request { expected, .. }
            | Self::Notification { expected, .. }
            | Self::Batch { expected, .. }
            | Self::Raw { expected, .. }
            | Self::Paginate { expected, .. }
            | Self::Retry { expected, .. }
            | Self::Http { expected, .. }
            | Self::Shutdown { expected, .. } => expected,
            Self::Close { .. } | Self::Wait(_) => &Expected::Anything,
        }
    }

    /// The name of the action's member in a case file.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Request { .. } => "send",
            Self::Notification { .. } => "notify",
            Self::Batch { .. } => "batch",
            Self::Raw { .. } => "raw",
            Self::Paginate { .. } => "paginate",
            Self::Retry { .. } => "retry",
            Self::Http { .. } => "http",
            Self::Close { .. } => "close",
            Self::Shutdown { .. } => "shutdown",
            Self::Wait(_) => "wait-ms",
        }
    }

    /// Every placeholder in what it sends.
    #[must_use]
    pub fn placeholders(&self) -> BTreeSet<Placeholder> {
        let mut found = BTreeSet::new();
        let meta = match self {
            Self::Request { message, meta, .. } => {
                collect(message, &mut found);
                Some(meta)
            }
            Self::Notification { message, .. } => {
                collect(message, &mut found);
                None
            }
            Self::Batch { messages, meta, .. } => {
                for message in messages {
                    collect(message, &mut found);
                }
                Some(meta)
            }
            Self::Retry { retry, meta, .. } => {
                retry.params.iter().for_each(|params| collect(params, &mut found));
                Some(meta)
            }
            Self::Http { call, meta, .. } => {
                call.strings().for_each(|text| collect_in_text(text, &mut found));
                call.body.iter().for_each(|body| collect(body, &mut found));
                Some(meta)
            }
            Self::Raw { line: RawLine::Text(line), .. } => {
                collect_in_text(line, &mut found);
                None
            }
            Self::Raw { line: RawLine::Bytes(_), .. }
            | Self::Paginate { .. }
            | Self::Close { .. }
            | Self::Shutdown { .. }
            | Self::Wait(_) => None,
        };
        if let Some(Meta::Replaced(meta)) = meta {
            collect(meta, &mut found);
        }
        found
    }
}

fn collect(value: &Value, found: &mut BTreeSet<Placeholder>) {
    match value {
        Value::String(text) => collect_in_text(text, found),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => {
            members.keys().for_each(|name| collect_in_text(name, found));
            members.values().for_each(|member| collect(member, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn collect_in_text(text: &str, found: &mut BTreeSet<Placeholder>) {
    found.extend(find(text).into_iter().map(|(_, placeholder)| placeholder));
}

impl Case {
    /// The first segment of the id: the part of the protocol that the case belongs to.
    #[must_use]
    pub fn area(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The cases, by id or area, that provoke what the case watches; none for a case that is not passive.
    #[must_use]
    pub fn provoked_by(&self) -> &[String] {
        match &self.body {
            Body::Passive(passive) => &passive.provoked_by,
            Body::Active(_) | Body::Fuzz(_) => &[],
        }
    }

    /// Whether the case runs in `revision`.
    #[must_use]
    pub fn runs_in(&self, revision: Revision) -> bool {
        self.revisions.contains(revision)
    }

    /// Whether the case runs over a transport: one of its requirements is observable there, and its steps are
    /// possible.
    #[must_use]
    pub fn runs_over(&self, transport: Transport) -> bool {
        let is_observable =
            |requirement: &&Requirement| requirement.transport == Transport::Any || requirement.transport == transport;
        let is_possible = match &self.body {
            Body::Active(act) => transport == Transport::Stdio || !act.steps.iter().any(Step::is_shutdown),
            Body::Passive(_) => true,
            // Anything else than messages is written to standard output only.
            Body::Fuzz(oracle) => transport == Transport::Stdio || *oracle != Oracle::StdoutNoise,
        };
        self.requirements.iter().copied().any(|requirement| is_observable(&requirement))
            && is_possible
            && (transport == Transport::Http || !self.speaks_of_http())
    }

    /// Whether the case is about HTTP requests and responses, which other transports do not have.
    #[must_use]
    pub fn speaks_of_http(&self) -> bool {
        match &self.body {
            Body::Active(act) => act.steps.iter().any(|step| {
                let mut responses = step.action.expected().responses().iter();
                matches!(step.action, Action::Http { .. } | Action::Close { .. })
                    || responses.any(|response| !response.status.is_empty() || response.exchange.is_some())
            }),
            Body::Passive(Passive { watch: Watch::Values(values), .. }) => {
                matches!(values.kind, WatchKind::Exchange(_))
            }
            Body::Passive(Passive { watch: Watch::Connections(rules), .. }) => {
                rules.iter().any(|rule| rule.check.is_of_http())
            }
            Body::Fuzz(_) => false,
        }
    }

    /// The transport over HTTP that the case is for; none where it is for every transport.
    #[must_use]
    pub fn http_kind(&self) -> Option<HttpKind> {
        self.needs.http.or_else(|| self.speaks_of_http().then(HttpKind::default))
    }

    /// The main requirement in `revision`: the first of the case's that the revision states.
    #[must_use]
    pub fn requirement_in(&self, revision: Revision) -> Option<&'static Requirement> {
        self.requirements.iter().copied().find(|requirement| requirement.revisions().contains(revision))
    }

    /// The requirement that a violation is reported under: the one that is named, else the main one in `revision`.
    #[must_use]
    pub fn requirement_for(&self, named: Option<&str>, revision: Revision) -> Option<&'static Requirement> {
        match named {
            Some(id) => Catalogue::embedded().get(id),
            None => self.requirement_in(revision),
        }
    }

    /// Every placeholder that its steps fill in; none in a passive case.
    #[must_use]
    pub fn placeholders(&self) -> BTreeSet<Placeholder> {
        let Body::Active(act) = &self.body else { return BTreeSet::new() };
        act.steps.iter().flat_map(|step| step.action.placeholders()).collect()
    }
}

impl Step {
    /// Whether it is carried out in `revision`.
    #[must_use]
    pub fn runs_in(&self, revision: Revision) -> bool {
        self.revisions.is_none_or(|revisions| revisions.contains(revision))
    }

    /// Whether it makes an HTTP request of its own.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self.action, Action::Http { .. })
    }

    /// Whether it ends the process.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        matches!(self.action, Action::Shutdown { .. })
    }
}

/// What the server has to support for a case to apply.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "needs", extend("minProperties" = 1)))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Needs {
    /// Capabilities that the server declared, with dots between the names of nested members (`tools.listChanged`);
    /// with a leading `!`, capabilities that it did not declare.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::CapabilityPath>>"))]
    pub capabilities: Vec<String>,
    /// A JSON Schema; the case uses only tools whose definition is valid against it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub tool: Option<LazySchema>,
    /// A JSON Schema; the case uses only tools during whose plain call the server made a request of the client that
    /// is valid against it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub client_request: Option<LazySchema>,
    /// The transport over HTTP, for a case about HTTP; by default Streamable HTTP.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "streamable")))]
    pub http: Option<HttpKind>,
    /// Whether the server has to run on this machine.
    #[serde(default)]
    pub local: bool,
}

/// What an active case repeats its steps for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForEach {
    /// Every listed tool that may be called: `${tool}` and its kin are of that tool.
    Tool,
    /// Every listed resource: `${resource}` is its URI.
    Resource,
    /// Every listed prompt: `${prompt}` and its kin are of that prompt.
    Prompt,
    /// Every page of a list but the first, by the method of the list: `${page.cursor}` is its cursor.
    Page(String),
}

/// The process that a case's steps run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// the session that most cases share; the case leaves the server as it found it
    #[default]
    Shared,
    /// a session that declares no client capabilities and is replaced when a case has ended it, for what may harm
    /// the server
    Disposable,
    /// a process of the case's own, opened as usual
    Fresh,
    /// a process of the case's own in which the first step is the first message
    Uninitialized,
}

/// How a request is repeated: until its response is valid against a schema, anything but a result comes, or a limit is
/// reached.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "poll"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Poll {
    /// A JSON Schema that the response is valid against that is waited for.
    #[cfg_attr(test, schemars(with = "types::SchemaValue"))]
    pub until: LazySchema,
    /// How often the request is sent at most.
    #[serde(default = "Poll::default_max_attempts")]
    #[cfg_attr(test, schemars(range(min = 1, max = 200)))]
    pub max_attempts: u32,
    /// After how many milliseconds it is not sent again.
    #[serde(default = "Poll::default_timeout_ms")]
    #[cfg_attr(test, schemars(range(min = 1, max = 10_000)))]
    pub timeout_ms: u64,
    /// What it means that a limit ended the repetition; by default the case is skipped.
    #[serde(default)]
    pub otherwise: Option<Otherwise>,
}

impl Poll {
    const fn default_max_attempts() -> u32 {
        40
    }

    const fn default_timeout_ms() -> u64 {
        1_000
    }
}

/// How a server may have to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Shutdown {
    /// the process exits by itself
    StdinClosed,
    /// the process exits by itself or on SIGTERM
    Sigterm,
}

/// A request that is made again, with responses to what its result requested. Where the result of that step requested
/// nothing, the case is skipped.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "retry"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Retry {
    /// The name of the step whose request is made again; it may be a retry itself.
    pub step: String,
    /// What `inputResponses` is.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "all")))]
    pub input_responses: InputResponses,
    /// What `requestState` is.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "echoed")))]
    pub request_state: RequestState,
    /// Members of `params` that replace those of the request.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Object>"))]
    pub params: Option<Value>,
    /// How often it is made while the result requests input; only the last response is checked.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 1, max = 100)))]
    pub rounds: Option<usize>,
}

/// What a retry sends as `inputResponses`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum InputResponses {
    /// a response to each request
    #[default]
    All,
    /// nothing: the member is left out
    None,
    /// an object without members
    Empty,
    /// a response to each request, and one to a request that was not made
    Extra,
    /// a number under each key
    Malformed,
    /// a string in the place of the object
    String,
}

/// What a retry sends as `requestState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum RequestState {
    /// what the server sent, if it sent any
    #[default]
    Echoed,
    /// what the server sent; without it the case is skipped
    Required,
    /// what the server sent with one character changed
    Altered,
    /// the first half of what the server sent
    Truncated,
}

/// One response that may come, and what it means.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "expected-response"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExpectedResponse {
    /// The outcomes that match.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<Outcome>>"))]
    pub outcome: Vec<Outcome>,
    /// The error codes that match.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::ErrorCode>>"))]
    pub code: Vec<i64>,
    /// A JSON Schema that the response is valid against.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub schema: Option<LazySchema>,
    /// The HTTP statuses that match: numbers, or classes such as `4xx`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::StatusOrClass>>"))]
    pub status: Vec<StatusPattern>,
    /// A JSON Schema that the HTTP exchange is valid against; `watch` describes its form.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub exchange: Option<LazySchema>,
    /// The revisions that the entry applies in; by default all of the case's.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Revisions>"))]
    pub revisions: Option<RevisionSet>,
    /// What the response means; by default `pass`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::VerdictName>"))]
    pub verdict: Option<Verdict>,
    /// The requirement that it is reported under, where it does not pass.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::RequirementId>"))]
    pub requirement: Option<String>,
    /// What is wrong, or worth knowing, in one sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub message: Option<String>,
}

/// What a response means that matches no entry.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "otherwise", extend("minProperties" = 1)))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Otherwise {
    /// The verdict; by default the level of the requirement decides.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::VerdictName>"))]
    pub verdict: Option<Verdict>,
    /// The requirement that it is reported under; by default the first of the case's that the revision states.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::RequirementId>"))]
    pub requirement: Option<String>,
    /// What is wrong, in one sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub message: Option<String>,
}

/// What may come of something that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// a response with a result of any kind
    Result,
    /// a result without `isError: true`
    Success,
    /// a result with `isError: true`
    ToolError,
    /// a result that requests input; it counts as `success` too
    InputRequired,
    /// a response with an error
    Error,
    /// a response with neither a result nor an error, or with both
    Malformed,
    /// no response, although the server was running
    NoResponse,
    /// an HTTP status of 400 or more without a JSON-RPC message; an entry for `error` matches it too
    HttpError,
    /// the server exited or closed the connection first
    Closed,
    /// the process exited when its standard input was closed
    StdinClosed,
    /// the process exited on SIGTERM
    Sigterm,
    /// the process had to be killed
    Sigkill,
}

/// A check that compares the responses to several steps.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "across-steps", transform = types::two_steps_where_compared)
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AcrossSteps {
    /// The comparison.
    #[cfg_attr(test, schemars(with = "types::ComparisonName"))]
    pub check: Comparison,
    /// The names of the steps.
    #[cfg_attr(test, schemars(with = "types::Distinct<types::StepReference>"))]
    pub steps: Vec<String>,
    /// The places in each response whose values are compared; by default the whole response. The values of all
    /// pages of a `paginate` step are joined.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::PathText>"))]
    pub path: Option<PathPattern>,
    /// The verdict on a violation; by default the level of the requirement decides.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::VerdictName>"))]
    pub verdict: Option<Verdict>,
    /// The requirement that a violation is reported under; by default the first of the case's that the revision
    /// states.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::RequirementId>"))]
    pub requirement: Option<String>,
    /// What is wrong, in one sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub message: Option<String>,
}
