//! What an active case does: its steps, and what each of them sends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::client_response::ClientResponse;
use super::expected::{AcrossSteps, Expected, Otherwise};
use super::http_step::HttpCall;
use super::lazy_schema::LazySchema;
use super::placeholder::{Placeholder, find};
#[cfg(test)]
use super::schema_types as types;
use crate::spec::{Revision, RevisionSet};

/// The longest delay between two steps, in milliseconds.
pub(crate) const MAX_WAIT_MS: u64 = 5_000;
/// About how many pages a list has, to compare the length of cases.
const USUAL_PAGES: usize = 8;
/// A case with this many requests, or with waits that take this long, takes long.
const MANY_REQUESTS: usize = 20;
const LONG_WAIT: Duration = Duration::from_secs(1);

/// What an active case does.
#[derive(Debug, Clone)]
pub struct Active {
    /// Its steps: never none.
    pub steps: Vec<Step>,
    /// What it repeats its steps for.
    pub for_each: Option<ForEach>,
    /// The process that its steps run in.
    pub process: Process,
    /// How the process of the case's own is started.
    pub start: Start,
    /// Whether it runs once for all revisions with a handshake.
    pub once: bool,
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
        /// The request that has to be unanswered by then.
        while_open: Option<OpenRequest>,
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
        /// How it is written.
        transfer: LineTransfer,
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
        /// Whether the next step begins before it is answered.
        pipelined: bool,
        /// Values of the exchange to save.
        save: SavedPointers,
        /// The responses that are right.
        expected: Expected,
    },
    /// Ends an earlier `http` step: closes a response that is still open, and waits for one that is pipelined.
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

/// A request during which a notification is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenRequest {
    /// The name of its step.
    pub step: String,
    /// When the notification is sent.
    pub moment: Moment,
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
    /// Once the request, which is repeated with the input that its results request, has a final response.
    WithInput,
}

/// A line that is written as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawLine {
    /// A string, with its placeholders filled in.
    Text(String),
    /// Bytes, which need not be UTF-8.
    Bytes(Vec<u8>),
}

/// When a notification is sent while a request is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// once the request has been open twice as long as the fastest response took
    #[default]
    Processed,
    /// after nine tenths of the time that a call with `${tool.arguments.lasting}` presumably takes
    ShortlyBeforeResponse,
}

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum LineTransfer {
    /// at once
    #[default]
    Whole,
    /// byte by byte; the case then applies to stdio only
    InPieces,
}

impl Active {
    /// Whether it needs standard streams: it ends the process, starts it in a way of its own, or writes a line in pieces.
    #[must_use]
    pub fn is_of_stdio(&self) -> bool {
        let is_of_streams = |step: &Step| {
            matches!(step.action, Action::Shutdown { .. } | Action::Raw { transfer: LineTransfer::InPieces, .. })
        };
        self.start != Start::default() || self.steps.iter().any(is_of_streams)
    }

    /// Whether the steps of a revision may leave the session in another state than they found it: they write what is
    /// no request, a notification, a batch, a request without the `_meta` that the revision requires, or the same one many
    /// times.
    #[must_use]
    pub fn may_damage_session(&self, revision: Revision) -> bool {
        let may_damage = |step: &&Step| match &step.action {
            Action::Notification { .. } | Action::Batch { .. } | Action::Raw { .. } => true,
            Action::Request { meta, .. } | Action::Retry { meta, .. } => *meta != Meta::AsRequired,
            // What a server keeps of so many requests, it may keep to the end.
            Action::Http { call, .. } => call.times > 1,
            Action::Paginate { .. } | Action::Close { .. } | Action::Shutdown { .. } | Action::Wait(_) => false,
        };
        self.steps.iter().filter(|step| step.runs_in(revision)).any(|step| may_damage(&step))
    }

    /// How many requests its steps make one after the other, in any revision, to compare how long cases take.
    #[must_use]
    pub fn usual_requests(&self) -> usize {
        let requests = |step: &Step| if matches!(step.action, Action::Paginate { .. }) { USUAL_PAGES } else { 1 };
        self.steps.iter().map(requests).sum()
    }

    /// Whether it takes long by its steps alone: they wait, or make many requests.
    #[must_use]
    pub fn takes_long(&self) -> bool {
        self.steps.iter().map(Step::wait).sum::<Duration>() >= LONG_WAIT || self.usual_requests() >= MANY_REQUESTS
    }

    /// How long a call has to run, so that a step still finds it open; `None` if no step needs that.
    #[must_use]
    pub fn wait_while_open(&self) -> Option<Duration> {
        let needs = |step: &Step| matches!(&step.action, Action::Notification { while_open: Some(_), .. });
        let first = self.steps.iter().position(needs)?;
        Some(self.steps.iter().take(first).map(Step::wait).sum())
    }

    /// Whether a step makes the same HTTP request many times.
    #[must_use]
    pub fn repeats_requests(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.action, Action::Http { call, .. } if call.times > 1))
    }

    /// Whether an HTTP request of a step opens a session next to that of the case.
    #[must_use]
    pub fn opens_another_session(&self) -> bool {
        let opens = |call: &HttpCall| {
            call.body.as_ref().and_then(|body| body.get("method")).is_some_and(|method| method == "initialize")
        };
        self.steps.iter().any(|step| matches!(&step.action, Action::Http { call, .. } if opens(call)))
    }
}

impl Step {
    /// Whether it is carried out in `revision`.
    #[must_use]
    pub fn runs_in(&self, revision: Revision) -> bool {
        self.revisions.is_none_or(|revisions| revisions.contains(revision))
    }

    /// How long it waits before the next step.
    fn wait(&self) -> Duration {
        if let Action::Wait(wait) = self.action { wait } else { Duration::ZERO }
    }

    /// Whether it makes an HTTP request of its own.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self.action, Action::Http { .. })
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
    /// a process that is opened as usual, and on which at most cases of this kind ran before that passed
    Fresh,
    /// a process of the case's own in which the first step is the first message
    Uninitialized,
}

/// How a process of the case's own is started, where that differs from other processes. The case then applies to servers
/// that are started over stdio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "start", extend("minProperties" = 1)))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Start {
    /// The locale that the environment names.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "inherited")))]
    pub locale: Locale,
    /// Who reads what the server writes to standard error.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "read")))]
    pub standard_error: StandardError,
}

/// The locale that the environment of a server names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Locale {
    /// that of the run
    #[default]
    Inherited,
    /// none: `LANG`, `LANGUAGE` and the variables that begin with `LC_` are left out, unless the user set them for the
    /// server
    None,
}

/// Who reads the standard error of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum StandardError {
    /// the run
    #[default]
    Read,
    /// nobody: the reading end is closed, so that each write fails
    Closed,
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
    /// the process exits on SIGTERM while its input is open; if not, its input is closed
    SigtermFirst,
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
