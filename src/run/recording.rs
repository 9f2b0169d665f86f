//! Judges a recording: the passive cases, by the connections of a transcript file. It sends nothing.
//!
//! A file that a run saved says in which revisions the run judged each connection. In a recording of another client, the
//! messages show the revision, and the transport.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::target_state::case_result;
use crate::case::{Body, Case, HttpKind};
use crate::check::{RecordedConnection, milliseconds, stderr_of};
use crate::event::{Event, Launch, RunSummary, Sink, TargetSummary, Timing, ToolNote};
use crate::limits::{MAX_PROCESS_STDERR, MAX_SUMMARY_STDERR};
use crate::run::cases::passive_cases::judge_connections;
use crate::session::full_capabilities;
use crate::shell::quote_shell_words;
use crate::spec::{Era, Revision, Transport};
use crate::text::{first_chars, last_bytes};
use crate::transcript::{
    self, SavedConnection, SavedTranscript, SessionParameters, Transcript, messages, without_repeated,
};
use crate::verdict::{Totals, Verdict};

/// The member of a stateless request that names its revision, and the one with the capabilities of the client.
const META_VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
const META_CAPABILITIES: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";

/// What to judge a recording by.
#[derive(Debug, Clone)]
pub struct RecordingPlan {
    /// The name of the file.
    pub file: String,
    /// The cases, sorted by id; only the passive ones among them are judged.
    pub cases: Vec<Arc<Case>>,
    /// The revision of connections that do not show theirs.
    pub revision: Option<Revision>,
    /// The folder of the user's cases.
    pub cases_folder: Option<PathBuf>,
}

impl RecordingPlan {
    /// The command that judges the file by one case.
    fn reproduce_command(&self, case: &str) -> String {
        let mut words = format!("mcp-conformance judge {}", quote_shell_words([&self.file]));
        if let Some(folder) = &self.cases_folder {
            words = format!("{words} --cases {}", quote_shell_words([folder]));
        }
        if let Some(revision) = self.revision {
            words = format!("{words} --revision {revision}");
        }
        format!("{words} --select {case}")
    }
}

/// Why a recording cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It has no connection.
    #[error("it has no message: expected one JSON object a line, with `direction` and `message`")]
    Empty,
    /// No connection shows its revision.
    #[error(
        "no connection shows its revision, neither by an `initialize`, nor by `_meta` of a request, nor by the header `mcp-protocol-version`: record from the first message on, or name the revision with --revision"
    )]
    NoRevision,
    /// A connection is of a revision that does not exist.
    #[error("client and server agree on the version {0}, which is none of {known}", known = known_revisions())]
    UnknownRevision(String),
    /// The result cannot be shown.
    #[error("failed to show the result: {0}")]
    Sink(#[from] io::Error),
}

fn known_revisions() -> String {
    Revision::ALL.iter().map(Revision::to_string).collect::<Vec<_>>().join(", ")
}

/// A connection with what a revision is judged by.
struct JudgedConnection<'a> {
    /// Its position among those of its revision.
    position: usize,
    connection: &'a SavedConnection,
    transport: RecordedTransport,
    parameters: SessionParameters,
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordedTransport {
    Stdio,
    Http(HttpKind),
}

impl RecordedTransport {
    fn of(connection: &SavedConnection) -> Self {
        use transcript::Event;
        let is_http = |event: &Event| matches!(event, Event::HttpRequest(_) | Event::HttpHead(_) | Event::HttpEnd(_));
        if !connection.entries.iter().any(|entry| is_http(&entry.event)) {
            return Self::Stdio;
        }
        // The older transport names the address for messages in an event of its own.
        let is_endpoint = |event: &Event| matches!(event, Event::HttpEnd(end) if end.events.iter().any(|one| one.event.as_deref() == Some("endpoint")));
        let is_older = connection.entries.iter().any(|entry| is_endpoint(&entry.event));
        Self::Http(if is_older { HttpKind::Sse } else { HttpKind::Streamable })
    }

    /// Whether a case can judge connections over this transport.
    fn carries(self, case: &Case) -> bool {
        match self {
            Self::Stdio => case.runs_over(Transport::Stdio),
            // The file does not show where the server runs.
            Self::Http(_) if case.needs.local => false,
            Self::Http(kind) => {
                case.runs_over(Transport::Http)
                    && case.http_kind().is_none_or(|own| own == HttpKind::Any || own == kind)
            }
        }
    }
}

/// Judges a recording, and reports to a sink as a run does.
///
/// # Errors
/// When the recording does not show what to judge it by, or the sink fails.
pub fn judge_recording(
    recording: &SavedTranscript,
    plan: &RecordingPlan,
    sink: &mut dyn Sink,
) -> Result<(), RecordingError> {
    let began = Instant::now();
    let by_revision = connections_by_revision(recording, plan.revision)?;
    sink.on(&Event::RunStarted { server: format!("recording {}", plan.file) })?;
    let counted = |revision: &Revision| passive_cases(plan, *revision).count();
    let (revisions, cases) = (by_revision.keys().copied().collect(), by_revision.keys().map(counted).sum());
    sink.on(&Event::Probed { revisions, cases })?;
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (revision, connections) in &by_revision {
        let of_revision = judge_revision(plan, *revision, connections, sink)?;
        let totals = of_revision.iter().copied().collect();
        sink.on(&Event::TargetFinished(Box::new(summary(*revision, connections, totals))))?;
        verdicts.extend(of_revision);
    }
    let totals = verdicts.into_iter().collect();
    let took = milliseconds(began.elapsed());
    let timing = Timing { wall_ms: took, judging_ms: took, ..Timing::default() };
    sink.on(&Event::RunFinished(Box::new(RunSummary { totals, timing, problem: None })))?;
    Ok(())
}

fn passive_cases(plan: &RecordingPlan, revision: Revision) -> impl Iterator<Item = &Arc<Case>> {
    let is_passive = move |case: &&Arc<Case>| matches!(case.body, Body::Passive(_)) && case.runs_in(revision);
    plan.cases.iter().filter(is_passive)
}

/// Judges the passive cases of a revision, each by the connections over its transports.
fn judge_revision(
    plan: &RecordingPlan,
    revision: Revision,
    connections: &[JudgedConnection<'_>],
    sink: &mut dyn Sink,
) -> Result<Vec<Verdict>, RecordingError> {
    let mut by_connections: BTreeMap<Vec<usize>, Vec<Arc<Case>>> = BTreeMap::new();
    for case in passive_cases(plan, revision) {
        let carried = |at: &usize| connections[*at].transport.carries(case);
        let own: Vec<usize> = (0..connections.len()).filter(carried).collect();
        by_connections.entry(own).or_default().push(Arc::clone(case));
    }
    let mut verdicts = Vec::new();
    for (own, cases) in by_connections.into_iter().filter(|(own, _)| !own.is_empty()) {
        let connected: Vec<RecordedConnection> = own.iter().map(|at| recorded(&connections[*at])).collect();
        for (case, mut judged) in judge_connections(&cases, revision, &connected) {
            for finding in &mut judged.findings {
                finding.reproduce = plan.reproduce_command(&case.id);
            }
            verdicts.push(judged.verdict);
            sink.on(&Event::CaseFinished(Box::new(case_result(&case, revision, judged, None))))?;
        }
    }
    Ok(verdicts)
}

fn recorded(judged: &JudgedConnection<'_>) -> RecordedConnection {
    RecordedConnection {
        label: judged.connection.label.clone(),
        transcript: Transcript {
            entries: without_repeated(&judged.connection.entries),
            session_parameters: judged.parameters.clone(),
        },
    }
}

/// The connections of each revision.
fn connections_by_revision(
    recording: &SavedTranscript,
    named: Option<Revision>,
) -> Result<BTreeMap<Revision, Vec<JudgedConnection<'_>>>, RecordingError> {
    if recording.connections.iter().all(|connection| connection.entries.is_empty()) {
        return Err(RecordingError::Empty);
    }
    // A run says which connections it judged; what it did on others, such as confirmations, has no result.
    let is_judged = recording.connections.iter().any(|connection| !connection.judged.is_empty());
    let mut by_revision: BTreeMap<Revision, Vec<JudgedConnection<'_>>> = BTreeMap::new();
    for (number, connection) in recording.connections.iter().enumerate() {
        let transport = RecordedTransport::of(connection);
        let mut add = |position: usize, revision: Revision, parameters: SessionParameters| {
            let own = JudgedConnection { position, connection, transport, parameters };
            by_revision.entry(revision).or_default().push(own);
        };
        if is_judged {
            for judged in &connection.judged {
                add(judged.position, revision_named(&judged.revision)?, judged.parameters.clone());
            }
        } else {
            shown_revisions(connection, named)?.into_iter().for_each(|(revision, own)| add(number, revision, own));
        }
    }
    for connections in by_revision.values_mut() {
        connections.sort_by_key(|connection| connection.position);
        if is_judged {
            share_transport(connections);
        }
    }
    if by_revision.is_empty() { Err(RecordingError::NoRevision) } else { Ok(by_revision) }
}

/// A run has one transport, also where a connection has no message that shows it.
fn share_transport(connections: &mut [JudgedConnection<'_>]) {
    use RecordedTransport::{Http, Stdio};
    let is_any = |transport| connections.iter().any(|connection| connection.transport == transport);
    let shared = [Http(HttpKind::Sse), Http(HttpKind::Streamable)].into_iter().find(|one| is_any(*one));
    for connection in connections {
        connection.transport = shared.unwrap_or(Stdio);
    }
}

fn revision_named(name: &str) -> Result<Revision, RecordingError> {
    name.parse().map_err(|_| RecordingError::UnknownRevision(first_chars(name, 60).to_owned()))
}

/// The revisions that the messages of a connection show, each with the parameters of the session.
fn shown_revisions(
    connection: &SavedConnection,
    named: Option<Revision>,
) -> Result<Vec<(Revision, SessionParameters)>, RecordingError> {
    let record = Transcript { entries: connection.entries.clone(), session_parameters: SessionParameters::default() };
    let mut shown: Vec<(Revision, SessionParameters)> = Vec::new();
    if let Some(stateless) = stateless_parameters(&record) {
        shown.push(stateless);
    }
    if let Some(agreed) = agreed_parameters(&record)? {
        shown.push(agreed);
    }
    if shown.is_empty() {
        let header = version_header(connection).map(|name| revision_named(&name)).transpose()?;
        // What client and server declared is unknown, so nothing is judged by it.
        shown.extend(header.or(named).map(|revision| {
            (
                revision,
                SessionParameters {
                    client_capabilities: full_capabilities(revision),
                    opening: Some(json!({ "protocolVersion": revision.as_str() })),
                    ..SessionParameters::default()
                },
            )
        }));
    }
    Ok(shown)
}

/// The revision of stateless requests, with the result of `server/discover` if there is one.
fn stateless_parameters(record: &Transcript) -> Option<(Revision, SessionParameters)> {
    let requests = || record.entries.iter().filter_map(|entry| entry.sent()).flat_map(messages);
    let of_request = |request: &Value| {
        let revision: Revision = request.pointer(META_VERSION)?.as_str()?.parse().ok()?;
        let is_stateless = revision.era() == Era::Stateless;
        is_stateless.then(|| (revision, request.pointer(META_CAPABILITIES).cloned().unwrap_or_default()))
    };
    let (revision, client_capabilities) = requests().find_map(of_request)?;
    let opening = record.exchanges().into_iter().find_map(|exchange| {
        let is_discovery = exchange.request.get("method").is_some_and(|method| method == "server/discover");
        exchange.responses.first().filter(|_| is_discovery)?.1.get("result").cloned()
    });
    Some((revision, SessionParameters { client_capabilities, opening, ..SessionParameters::default() }))
}

/// The revision that client and server agree on in a handshake; that of the request if the server did not answer it with
/// a version.
fn agreed_parameters(record: &Transcript) -> Result<Option<(Revision, SessionParameters)>, RecordingError> {
    let mut requested = None;
    for exchange in record.exchanges() {
        if exchange.request.get("method").is_none_or(|method| method != "initialize") {
            continue;
        }
        let client_capabilities = exchange.request.pointer("/params/capabilities").cloned().unwrap_or_default();
        let opening = exchange.responses.first().and_then(|(_, response)| response.get("result")).cloned();
        let agreed = opening.as_ref().and_then(|opening| opening.get("protocolVersion")?.as_str());
        if let Some(agreed) = agreed {
            let revision = revision_named(agreed)?;
            return Ok(Some((
                revision,
                SessionParameters { client_capabilities, opening, ..SessionParameters::default() },
            )));
        }
        let version = exchange.request.pointer("/params/protocolVersion").and_then(Value::as_str);
        let version: Option<Revision> = version.and_then(|version| version.parse().ok());
        requested = requested.or_else(|| {
            version.map(|version| {
                (version, SessionParameters { client_capabilities, opening, ..SessionParameters::default() })
            })
        });
    }
    Ok(requested)
}

/// The revision in the header of an HTTP request.
fn version_header(connection: &SavedConnection) -> Option<String> {
    connection.entries.iter().find_map(|entry| {
        let transcript::Event::HttpRequest(request) = &entry.event else { return None };
        let mut headers = request.headers.iter();
        headers.find(|(name, _)| name == "mcp-protocol-version").map(|(_, value)| value.clone())
    })
}

/// The summary of a revision.
fn summary(revision: Revision, connections: &[JudgedConnection<'_>], totals: Totals) -> TargetSummary {
    let opening = connections.iter().find_map(|judged| judged.parameters.opening.as_ref());
    let member = |pointer: &str| opening.and_then(|opening| opening.pointer(pointer)).cloned();
    let stderr: String =
        connections.iter().map(|judged| stderr_of(&judged.connection.entries, MAX_PROCESS_STDERR)).collect();
    TargetSummary {
        revision,
        server_info: member("/serverInfo").or_else(|| member("/_meta/io.modelcontextprotocol~1serverInfo")),
        capabilities: member("/capabilities"),
        tools: tool_notes(connections),
        hints: Vec::new(),
        launches: connections.iter().map(|judged| launch(judged.connection)).collect(),
        stderr: last_bytes(&stderr, MAX_SUMMARY_STDERR).to_owned(),
        stopped_early: None,
        notes: Vec::new(),
        fuzz: None,
        totals,
    }
}

fn launch(connection: &SavedConnection) -> Launch {
    let count =
        |wanted: fn(&transcript::Event) -> bool| connection.entries.iter().filter(|entry| wanted(&entry.event)).count();
    Launch {
        purpose: connection.label.clone(),
        startup_ms: None,
        shutdown: connection.entries.iter().find_map(|entry| match entry.event {
            transcript::Event::Shutdown { step, .. } => Some(step.as_str().to_owned()),
            _ => None,
        }),
        sent: count(|event| matches!(event, transcript::Event::Sent { .. })),
        received: count(|event| matches!(event, transcript::Event::Received(_))),
    }
}

/// The tools that the server listed, and whether the client called them.
fn tool_notes(connections: &[JudgedConnection<'_>]) -> Vec<ToolNote> {
    let mut called: BTreeMap<&str, bool> = BTreeMap::new();
    let entries = || connections.iter().flat_map(|judged| &judged.connection.entries);
    for message in entries().filter_map(|entry| entry.received()).flat_map(messages) {
        let tools = message.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten();
        for name in tools.filter_map(|tool| tool.get("name")?.as_str()) {
            called.entry(name).or_default();
        }
    }
    for message in entries().filter_map(|entry| entry.sent()).flat_map(messages) {
        let is_call = message.get("method").is_some_and(|method| method == "tools/call");
        let name = message.pointer("/params/name").and_then(Value::as_str).filter(|_| is_call);
        if let Some(called) = name.and_then(|name| called.get_mut(name)) {
            *called = true;
        }
    }
    let note = |called: bool| (!called).then(|| "the client did not call it".to_owned());
    called.into_iter().map(|(name, called)| ToolNote { name: name.to_owned(), called, note: note(called) }).collect()
}
