//! A case file as it is written: the members that JSON admits, before they are parsed into a [`super::Case`].
//!
//! `cases/schema.json` is generated from these types; their doc comments are what an editor shows.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::active::{ForEach, LineTransfer, Moment, Poll, Process, Retry, Shutdown, Start};
use super::checks::{Check, Oracle};
use super::client_response::ClientResponse;
use super::expected::{AcrossSteps, ExpectedResponse, Otherwise};
use super::http_step::HttpCall;
use super::lazy_schema::LazySchema;
use super::model::Needs;
use super::path_pattern::PathPattern;
#[cfg(test)]
use super::schema_types as types;
use crate::spec::RevisionSet;
use crate::verdict::Verdict;

/// The members that name the action of a step.
pub(super) const ACTIONS: [&str; 10] =
    ["send", "notify", "batch", "raw", "paginate", "retry", "http", "close", "shutdown", "wait-ms"];

/// One rule for a Model Context Protocol server. A case is passive (`watch` and `rules`: it checks what other
/// cases and the discovery of the server provoke), active (`steps`: it sends messages and checks the
/// responses) or a fuzz case (`fuzz`: it checks the responses to generated calls). The file is JSON with
/// comments and trailing commas; its path below the directory of cases is the id of the case.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "A case of mcp-conformance"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CaseFile {
    /// The path from the file to this schema, for completion in editors.
    #[serde(rename = "$schema", default)]
    #[expect(dead_code, reason = "only editors read it")]
    pub(super) schema: Option<String>,
    /// What a conforming server does, in the present tense, in at most 70 characters, without `should`.
    #[cfg_attr(test, schemars(with = "types::Title"))]
    pub(super) title: String,
    /// The ids of the requirements that the case checks, the main one of each revision first.
    #[cfg_attr(test, schemars(with = "types::Distinct<types::RequirementId>"))]
    pub(super) requirements: Vec<String>,
    /// The revisions that the case runs in; by default every revision that states one of its requirements.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Revisions>"))]
    pub(super) revisions: Option<RevisionSet>,
    /// Names to select the case by, in addition to its id and area.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::DistinctOrNone<types::Tag>>"))]
    pub(super) tags: Vec<String>,
    /// Why the rule matters, and how fair readings of it differ.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(super) why: Option<String>,
    /// What the author of a server that violates the rule changes, as an imperative sentence.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(super) fix: String,
    /// The fault of the reference server that makes the case fail.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::FaultName>"))]
    pub(super) fault: Option<String>,
    /// What the server has to support for the case to apply.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Needs>"))]
    pub(super) needs: Needs,
    /// What a passive case checks, wherever it appears in a run.
    #[serde(default)]
    pub(super) watch: Option<WatchFile>,
    /// The rules that every watched value keeps.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::NonEmpty<RuleFile>>"))]
    pub(super) rules: Vec<RuleFile>,
    /// The active cases that make the server send what a passive case watches: ids of cases, or areas. By
    /// default the discovery of the server alone does.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::CaseOrArea>>"))]
    pub(super) provoked_by: Vec<String>,
    /// What a fuzz case checks in the responses to generated calls of every tool.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::OracleName>"))]
    pub(super) fuzz: Option<Oracle>,
    /// What an active case sends, in order, and which responses are right.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::NonEmpty<StepFile>>"))]
    pub(super) steps: Vec<StepFile>,
    /// What an active case repeats its steps for, with the placeholders of the item bound to it.
    #[serde(default)]
    pub(super) for_each: Option<ForEach>,
    /// The process that the steps run in.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "shared")))]
    pub(super) process: Process,
    /// How a process of the case's own is started, where that differs from other processes. The case then applies to
    /// servers that are started over stdio.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Start>"))]
    pub(super) start: Start,
    /// Whether the case runs once for all revisions with a handshake, each of which judges what it showed: for what does not
    /// depend on the revision, with a process of the case's own. One that calls a tool runs once for the revisions in which it
    /// makes the same call. By default each revision runs it.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(super) once: bool,
    /// The capabilities that the client declares in a process of the case's own.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Object>"))]
    pub(super) client_capabilities: Option<Value>,
    /// The client's responses to requests of the server, by method: one after the other, then the last one
    /// again, up to 24 times. By default the client grants what is requested.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::ClientResponses>"))]
    pub(super) client_responses: BTreeMap<String, Vec<ClientResponse>>,
    /// The checks that compare the responses to several steps.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::NonEmpty<AcrossSteps>>"))]
    pub(super) across_steps: Vec<AcrossSteps>,
}

/// What a passive case watches.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "watch"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct WatchFile {
    /// The kind of value.
    pub(super) kind: WatchKindName,
    /// The methods of the messages, or of the requests that were answered; by default all.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::MethodName>>"))]
    pub(super) methods: Vec<String>,
    /// The places in the value to check; a missing place is not checked.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::PathText>"))]
    pub(super) path: Option<PathPattern>,
    /// A JSON Schema; only values that are valid against it are checked.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub(super) matching: Option<LazySchema>,
}

/// The kinds of value that a passive case can watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub(super) enum WatchKindName {
    /// each line on standard output, as an object of `text`, `bytes`, `framing-error` and `json`
    Line,
    /// each JSON value that the server writes as a line
    Message,
    /// each response to a request of the client
    Response,
    /// the `result` of each response
    Result,
    /// the `error` of each response
    Error,
    /// each request of the server
    Request,
    /// what the server requests of the client, by a request or inside an `input_required` result
    ClientRequest,
    /// each notification of the server
    Notification,
    /// each HTTP request of the client with its response, except those that cases make by `http`: an object of
    /// `request` (`method`, `target`, `headers`, `message`, and `cancelled` where the client cancelled it), `status`,
    /// `headers` and `body` (`bytes`, `complete`, `comments`, `events`, `message`, `text`, `failure`,
    /// `unanswered-id`), and, where `WWW-Authenticate` was sent,
    /// `challenges` (the parameters by scheme). In a step's `exchange` it also has `url-relation`, which classifies the
    /// addresses that the response names (`metadata`: `here`, `elsewhere` or `unreadable`, with the path;
    /// `resource`: `same`, `within`, `other`, `elsewhere` or `unreadable`), and, where the system shows it, `listens-at`:
    /// `loopback`, or `every-address` for a server on this machine that other machines reach. Of a request that is
    /// read until `closed` it has `half-closed`, where the system shows it: how many connections that clients have closed
    /// the server has not
    Exchange,
    /// the transcript of each connection, for checks by name
    Connection,
}

/// A rule: a JSON Schema, or a named check.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "rule", extend("oneOf" = [{"required": ["schema"]}, {"required": ["check"]}]))
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RuleFile {
    /// A JSON Schema that the value is valid against.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SchemaValue>"))]
    pub(super) schema: Option<LazySchema>,
    /// A named check, for what a schema cannot express. A check of a connection needs `watch.kind` `connection`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::CheckName>"))]
    pub(super) check: Option<Check>,
    /// The revisions that the rule applies in; by default those of the case.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Revisions>"))]
    pub(super) revisions: Option<RevisionSet>,
    /// The requirement that a violation is reported under; by default the first of the case's that the revision
    /// states.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::RequirementId>"))]
    pub(super) requirement: Option<String>,
    /// The verdict on a violation; by default the level of the requirement decides.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::VerdictName>"))]
    pub(super) verdict: Option<Verdict>,
    /// What is wrong when the rule is violated, in one sentence.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(super) message: Option<String>,
}

/// A step of an active case: one action, and the responses that are right. A step has exactly one of `send`,
/// `notify`, `batch`, `raw`, `paginate`, `retry`, `http`, `close`, `shutdown` and `wait-ms`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "step", extend("oneOf" = types::one_of_required(&ACTIONS)))
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct StepFile {
    /// A name that later steps and `across-steps` refer to.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::StepName>"))]
    pub(super) name: Option<String>,
    /// Methods with each of which the step is made, one after the other; `${method}` inserts it in every string of the
    /// step.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Distinct<types::MethodName>>"))]
    pub(super) methods: Vec<String>,
    /// A request. `jsonrpc`, `id` and, in stateless revisions, `params._meta` are added where missing;
    /// placeholders such as `${tool}` are filled in in every string.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Message>"))]
    pub(super) send: Option<Value>,
    /// A notification, completed as a request is.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Message>"))]
    pub(super) notify: Option<Value>,
    /// For `notify`: the name of an earlier `send` step that is `pipelined`. The notification is sent while that request is
    /// open, at the `moment`; if it is answered by then, the case is skipped.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::StepName>"))]
    pub(super) while_open: Option<String>,
    /// When the notification of `while-open` is sent.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "processed")))]
    pub(super) moment: Moment,
    /// A batch of messages, each completed as for `send` and `notify`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Vec<types::Message>>"))]
    pub(super) batch: Option<Vec<Value>>,
    /// A line that is written as it is, followed by a newline: a string, with its placeholders filled in, or bytes
    /// that need not be UTF-8.
    #[serde(default)]
    pub(super) raw: Option<RawFile>,
    /// How the line of `raw` is written.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("default" = "whole")))]
    pub(super) transfer: LineTransfer,
    /// A list method whose pages are all read.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(min = 1), extend("examples" = ["tools/list"])))]
    pub(super) paginate: Option<String>,
    /// An earlier request again, with responses to what its result requested.
    #[serde(default)]
    pub(super) retry: Option<Retry>,
    /// An HTTP request of the case's own. The case then applies to HTTP only.
    #[serde(default)]
    pub(super) http: Option<HttpCall>,
    /// The name of an earlier `http` step whose response is still open: closes it, or reads it to its end if the step
    /// is `pipelined`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::StepName>"))]
    pub(super) close: Option<String>,
    /// Closes the server's standard input, or sends SIGTERM first, and waits for the process to exit.
    #[serde(default)]
    pub(super) shutdown: Option<Shutdown>,
    /// Waits this many milliseconds before the next step.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 1, max = super::active::MAX_WAIT_MS)))]
    pub(super) wait_ms: Option<u64>,
    /// Repeats a `send` until its response is the expected one, or is not a result. `expect` checks that response;
    /// where a limit ends the repetition first, the case is skipped unless `otherwise` says differently.
    #[serde(default)]
    pub(super) poll: Option<Poll>,
    /// Repeats a `send` with the input that its result requests, until a result requests none. `expect` checks that
    /// response; where the server keeps requesting input, the case is skipped.
    #[serde(default)]
    pub(super) provide_input: bool,
    /// `false` sends a stateless request without `_meta`; an object replaces it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::MetaValue>"))]
    pub(super) meta: Option<Value>,
    /// Whether the next step is sent before this request is answered. The response to an `http` step is then read
    /// after the last step, or when a step has `close`.
    #[serde(default)]
    pub(super) pipelined: bool,
    /// Whether the step is the control: a request that has to be served for the case to prove anything.
    #[serde(default)]
    pub(super) control: bool,
    /// The revisions that the step is carried out in; by default all of the case's.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::Revisions>"))]
    pub(super) revisions: Option<RevisionSet>,
    /// Values to save for later steps, where `${saved.NAME}` inserts them.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::SavedPointers>"))]
    pub(super) save: BTreeMap<String, String>,
    /// The responses that may come; the first entry that matches decides. Without it any response is right, and so
    /// is none.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<types::NonEmpty<ExpectedResponse>>"))]
    pub(super) expect: Vec<ExpectedResponse>,
    /// What a response means that matches no entry of `expect`; by default a violation of the case's requirement.
    #[serde(default)]
    pub(super) otherwise: Option<Otherwise>,
}

/// A raw line: a string, or bytes in hexadecimal or Base64.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum RawFile {
    /// A string, with its placeholders filled in.
    Text(String),
    /// Bytes that are written as they are.
    Bytes(EncodedBytes),
}

/// Bytes, written in the notation that the member names.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum EncodedBytes {
    /// Pairs of hexadecimal digits; spaces between them are ignored.
    Hex(String),
    /// Base64 with padding.
    Base64(String),
}
