//! What a case is: the case language as Rust types.
//!
//! A case is one JSONC file (JSON with comments and trailing commas, so that a message can be pasted
//! from the specification and explained). It does one of three things:
//!
//! - it **watches**: `watch` names messages, or places in them, wherever they turn up in the run, and
//!   `must` says what holds of each. A watching case sends nothing;
//! - it **acts**: `steps` sends messages and says, step by step, which answers are right;
//! - it **fuzzes**: `fuzz` names what is looked at in the answers to generated calls.
//!
//! `cases/schema.json` is the closed schema of the format; the types here mirror it, and a test holds
//! the one against the other. What a name or a text stands for (a check, a place, a JSON Schema) is
//! read while the file is, so that nothing later has to ask whether it is one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::asking::{Reply, Retry};
use super::checks::{Check, Comparison, Oracle};
use super::http::{HttpCall, HttpKind, Status};
use super::pattern::Pattern;
use super::place::Place;
use crate::spec::RevisionSet;
use crate::verdict::Verdict;

/// One case, as it stands in its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CaseFile {
    /// The schema that editors complete the file from.
    #[serde(rename = "$schema", default)]
    pub schema: Option<String>,
    /// What a conforming server does, in the present tense, at most 70 characters.
    pub title: String,
    /// The requirements that it checks, the chief one of each revision first.
    pub requirements: Vec<String>,
    /// The revisions that it runs in; by default every revision that states one of its requirements.
    #[serde(default)]
    pub revisions: Option<RevisionSet>,
    /// Words to select it by, beside its id and area.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Why the rule matters and how fair readings of it differ.
    #[serde(default)]
    pub why: Option<String>,
    /// How to mend a server that breaks it.
    pub fix: String,
    /// The named fault of the built-in server that turns it red. Ours each have one.
    #[serde(default)]
    pub fault: Option<String>,
    /// What the server has to offer before the case applies.
    #[serde(default)]
    pub needs: Needs,
    /// What it watches.
    #[serde(default)]
    pub watch: Option<Watch>,
    /// What holds of everything that it watches.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// The cases, by id or area, that provoke what it watches; by default discovery alone provokes it.
    #[serde(default)]
    pub provoked_by: Vec<String>,
    /// What it looks at in the answers to generated calls.
    #[serde(default)]
    pub fuzz: Option<Oracle>,
    /// What it sends.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What it repeats its steps for.
    #[serde(default)]
    pub for_each: Option<Each>,
    /// The process that its steps run in.
    #[serde(default)]
    pub process: Process,
    /// The capabilities that the client declares, where the case wants a connection of its own terms.
    #[serde(default)]
    pub client_capabilities: Option<Value>,
    /// What the client answers to requests of the server, by method: one after the other, the last again
    /// and again up to two dozen times. By default it answers as a willing client does.
    #[serde(default)]
    pub client_responses: BTreeMap<String, Vec<Reply>>,
    /// What holds of several steps together.
    #[serde(default)]
    pub across_steps: Vec<Together>,
}

/// What the server has to offer before a case applies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Needs {
    /// Capabilities, dotted, that the server declared; a leading `!` asks that it did not.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// A JSON Schema that a tool's definition has to fit before the case uses the tool.
    #[serde(default)]
    pub tool: Option<Pattern>,
    /// A JSON Schema that a request has to fit which a call of the tool led the server to make.
    #[serde(default)]
    pub client_request: Option<Pattern>,
    /// The transport over HTTP, for a case that speaks of HTTP; by default Streamable HTTP.
    #[serde(default)]
    pub http: Option<HttpKind>,
    /// Whether the server has to run on this machine.
    #[serde(default)]
    pub local: bool,
}

/// What a case repeats its steps for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Each {
    /// Every listed tool that may be called.
    Tool,
}

/// The process that a case's steps run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// The session that most cases share: the case leaves the server as it found it.
    #[default]
    Shared,
    /// A session that declares no client capabilities and is replaced when a case has ended it: for
    /// what may harm the server.
    Disposable,
    /// A process of its own, opened as usual.
    Fresh,
    /// A process of its own in which nothing has been sent: the first step is the first message.
    Uninitialized,
}

/// The messages that a watching case looks at.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Watch {
    /// The kind of thing.
    pub kind: WatchKind,
    /// The methods that count: of the request that was answered, or of the message itself. Empty: all.
    #[serde(default)]
    pub methods: Vec<String>,
    /// A JSON pointer into it, where `*` stands for each member or item and a leading `**` for any depth.
    #[serde(default)]
    pub path: Option<Place>,
    /// A JSON Schema that it has to fit to count.
    #[serde(default)]
    pub matching: Option<Pattern>,
}

/// The kinds of thing that a case can watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchKind {
    /// A line on standard output, as `{"text", "bytes", "damage", "json"}`; `damage` is null or a word.
    Line,
    /// A JSON value that the server wrote as one line.
    Message,
    /// A response to a request of ours.
    Response,
    /// The `result` of a response.
    Result,
    /// The `error` of a response.
    Error,
    /// A request that the server sent.
    Request,
    /// What the server asks of the client: a request that it sends, or one inside an `input_required` result.
    ClientRequest,
    /// A notification that the server sent.
    Notification,
    /// An HTTP request of ours with its answer, as `{"request": {"method", "target", "headers", "message"},
    /// "status", "headers", "body"}`; what cases try out by `http` is left to them.
    Exchange,
    /// A connection as a whole; its rules are all of the named kind (`check`).
    Connection,
}

/// Something that holds: a JSON Schema, or a check by name where a schema cannot say it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// A JSON Schema (2020-12, formats asserted) that the value fits.
    #[serde(default)]
    pub schema: Option<Pattern>,
    /// A check by name.
    #[serde(default)]
    pub check: Option<Check>,
    /// The revisions in which it holds; by default those of the case.
    #[serde(default)]
    pub revisions: Option<RevisionSet>,
    /// The requirement that it speaks for; by default the first of the case's that binds.
    #[serde(default)]
    pub requirement: Option<String>,
    /// The verdict when it does not hold; by default as the requirement's level says.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// What is wrong when it does not hold, in one sentence.
    #[serde(default)]
    pub message: Option<String>,
}

/// One step of an acting case: something to send, and what may come back.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Step {
    /// A name for other steps to refer to.
    #[serde(default)]
    pub name: Option<String>,
    /// A request; `jsonrpc`, `id` and, in the stateless era, `_meta` are filled in where missing.
    #[serde(default)]
    pub send: Option<Value>,
    /// A notification; filled in likewise.
    #[serde(default)]
    pub notify: Option<Value>,
    /// A batch of messages, filled in one by one.
    #[serde(default)]
    pub batch: Option<Vec<Value>>,
    /// A line that is sent as it stands, with a newline after it.
    #[serde(default)]
    pub raw: Option<String>,
    /// A list method whose pages are read to the end.
    #[serde(default)]
    pub paginate: Option<String>,
    /// An earlier request again, with answers to what its result asked for.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// An HTTP request of the case's own.
    #[serde(default)]
    pub http: Option<HttpCall>,
    /// Closes the answer to an earlier `http` step, by name, that is still open.
    #[serde(default)]
    pub close: Option<String>,
    /// Closes the server's input and sees how it ends: `stdin-closed`, or `sigterm` after it.
    #[serde(default)]
    pub shutdown: Option<Shutdown>,
    /// Repeats a request until its answer is the one that is waited for.
    #[serde(default)]
    pub poll: Option<Poll>,
    /// `false` sends a stateless request without `_meta`; an object replaces it.
    #[serde(default)]
    pub meta: Option<Value>,
    /// Whether the next step is sent before this one is answered.
    #[serde(default)]
    pub pipelined: bool,
    /// Whether it is the control: a request that has to be served for the case to prove anything.
    #[serde(default)]
    pub control: bool,
    /// The revisions in which it is sent; by default all of the case's.
    #[serde(default)]
    pub revisions: Option<RevisionSet>,
    /// Values to keep for later steps: name to JSON pointer into the response, or into the exchange of `http`.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The answers that may come, the first that fits decides.
    #[serde(default)]
    pub expect: Vec<Row>,
    /// What an answer is that no row fits; by default a breach of the case's requirement.
    #[serde(default)]
    pub otherwise: Option<Otherwise>,
}

/// How a request is repeated: until a result fits, anything but a result comes, or the bounds are met.
///
/// The rows of the step judge the answer that ended it. Where a bound ended it, nothing is proved unless
/// the poll says otherwise: the server is only slow, and the case is skipped.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Poll {
    /// A JSON Schema that the response fits that is waited for.
    pub until: Pattern,
    /// How often it is sent at most.
    #[serde(default = "Poll::default_times")]
    pub max_attempts: u32,
    /// After how many milliseconds it is not sent again.
    #[serde(default = "Poll::default_within_ms")]
    pub timeout_ms: u64,
    /// What it means that a bound ended it; by default that the case is skipped.
    #[serde(default)]
    pub otherwise: Option<Otherwise>,
}

impl Poll {
    const fn default_times() -> u32 {
        40
    }

    const fn default_within_ms() -> u64 {
        1_000
    }
}

/// How far shutting down may have to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shutdown {
    /// The server has to end when its input is closed.
    StdinClosed,
    /// The server has to end when its input is closed, or on SIGTERM after it.
    Sigterm,
}

/// One answer that may come, and what it means.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Row {
    /// The kinds of outcome that it speaks of; any of them.
    #[serde(default)]
    pub outcome: Vec<Outcome>,
    /// The error codes that it speaks of; any of them.
    #[serde(default)]
    pub code: Vec<i64>,
    /// A JSON Schema that the response fits.
    #[serde(default)]
    pub schema: Option<Pattern>,
    /// The HTTP statuses that it speaks of; any of them.
    #[serde(default)]
    pub status: Vec<Status>,
    /// A JSON Schema that the HTTP exchange fits, as in `watch`.
    #[serde(default)]
    pub exchange: Option<Pattern>,
    /// The revisions that it speaks of.
    #[serde(default)]
    pub revisions: Option<RevisionSet>,
    /// What it means; by default `pass`.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The requirement that it speaks for, where it does not pass.
    #[serde(default)]
    pub requirement: Option<String>,
    /// What is wrong (or worth knowing), in one sentence.
    #[serde(default)]
    pub message: Option<String>,
}

/// What an answer is that no row fits.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Otherwise {
    /// The verdict; by default as the requirement's level says.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The requirement.
    #[serde(default)]
    pub requirement: Option<String>,
    /// What is wrong, in one sentence.
    #[serde(default)]
    pub message: Option<String>,
}

/// What may come back for something that we sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A response with a result, whatever it says.
    Result,
    /// A result that does not say `isError: true`.
    Success,
    /// A result that says `isError: true`.
    ToolError,
    /// A result that asks for input; it counts as `success` too.
    InputRequired,
    /// A response with an error.
    Error,
    /// A response with neither result nor error object, or with both.
    Malformed,
    /// No answer, though the server was there to give one.
    NoResponse,
    /// An HTTP status of 400 or more, without a JSON-RPC message. A row that takes an error takes it as well.
    HttpError,
    /// The server closed the connection or ended before it answered.
    Closed,
    /// The process ended when its input was closed.
    StdinClosed,
    /// The process ended on SIGTERM.
    Sigterm,
    /// The process had to be killed.
    Sigkill,
}

/// Something that holds of several steps together.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Together {
    /// The comparison by name.
    pub check: Comparison,
    /// The steps, by name.
    pub steps: Vec<String>,
    /// A pointer into each response, with `*` as in `watch`.
    #[serde(default)]
    pub path: Option<Place>,
    /// The verdict when it does not hold.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// The requirement.
    #[serde(default)]
    pub requirement: Option<String>,
    /// What is wrong, in one sentence.
    #[serde(default)]
    pub message: Option<String>,
}
