//! Discovers hints: sends candidate requests and records which of the server's tools, resources and prompts let
//! passive cases observe something.
//!
//! A response is worth a hint if it lets a passive case observe something that neither the lists nor a plain text
//! response do. The same rules as in a run decide which tools may be called.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

use serde_json::{Map, Value, json};

use super::discovery::{list_only, send_hint_request};
use super::pagination::list_tools;
use super::problem::{host_problem, opening_problem};
use super::revision_probe::probe;
use crate::case::{Body, Case, Hint, HintRequest, Watch, WatchKind};
use crate::check::{self, IndexedConnections, RecordedConnection};
use crate::client::WaitOutcome;
use crate::context::{Context, Stop};
use crate::event::{Event, Problem, ProblemKind, Sink};
use crate::inventory::{HintOutcome, Inventory, Primitives};
use crate::limits::{
    HINT_TIME_PER_REVISION, MAX_HINT_PRIMITIVES, MAX_HINT_REQUESTS, MAX_HINTS, MAX_SLOW_HINT_RESPONSES, QUIET_TIME,
    SLOW_HINT_RESPONSE,
};
use crate::plan::{HttpTarget, Launcher, Plan};
use crate::run::cases::needs::declares_needed_capabilities;
use crate::run::discovery::example_arguments;
use crate::session::Session;
use crate::spec::{Revision, RevisionSet};
use crate::transcript::{self, Entry, Transcript, is_input_required, messages};
use crate::wire::Frame;

/// The name of a fictitious tool that returns one line of text.
const PLAIN_TOOL: &str = "conformance-plain";

/// A hint, and what its response contained.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredHint {
    /// The hint.
    pub hint: Hint,
    /// What the response contained, such as `image` or `progress`.
    pub contents: Vec<&'static str>,
}

/// The result of hint discovery.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiscoveredHints {
    /// The hints, in the order of the server's lists.
    pub found: Vec<DiscoveredHint>,
    /// The revisions that were tried.
    pub revisions: RevisionSet,
    /// The tools that were not called, with the reason.
    pub not_called: BTreeMap<String, String>,
}

/// Discovers hints in each revision of the plan that the server supports.
///
/// # Errors
/// When the server cannot be started, supports none of the revisions, or the run was interrupted.
pub async fn discover_hints(plan: Plan, stop: Stop) -> Result<DiscoveredHints, Problem> {
    let context = Context::new(plan.with_applicable_cases(), Arc::new(Mutex::new(NullSink)), stop);
    let attempt = async {
        if let Err(absent) = context.ready().await {
            return Err(host_problem(&context, absent).await);
        }
        let probe_result = probe(&context).await;
        if probe_result.sessions.is_empty() {
            return Err(opening_problem(&context, probe_result.rejected).await);
        }
        for (_, rejected) in probe_result.rejected {
            if let Some(connection) = rejected.connection {
                context.close_in_background(connection, "probe");
            }
        }
        let mut attempts: Vec<Attempt> = Vec::new();
        let mut out = DiscoveredHints::default();
        for mut session in probe_result.sessions {
            out.revisions = out.revisions.with(session.revision);
            let cases: Vec<Arc<Case>> =
                context.plan.cases.iter().filter(|case| case.runs_in(session.revision)).cloned().collect();
            try_revision(&mut session, &context.plan, &cases, &mut attempts, &mut out.not_called).await;
            context.close_in_background(session.connection, "try-out");
        }
        out.found = select_hints(&attempts, out.revisions);
        Ok(out)
    };
    let attempt = tokio::select! {
        attempt = attempt => attempt,
        () = context.stopped() => Err(Problem {
            kind: ProblemKind::Interrupted,
            message: "hint discovery was interrupted".to_owned(),
            hint: "run it again; nothing was written".to_owned(),
            stderr: String::new(),
            evidence: Vec::new(),
        }),
    };
    context.finish_closing(attempt.is_err()).await;
    context.stop_host().await;
    attempt
}

/// A sink that discards events.
struct NullSink;

impl Sink for NullSink {
    fn on(&mut self, _: &Event) -> std::io::Result<()> {
        Ok(())
    }
}

/// A request that was tried, with its results in each revision.
#[derive(Debug)]
struct Attempt {
    request: HintRequest,
    /// Whether it is the simplest call of its tool, which every run makes.
    plain: bool,
    /// The revisions in which it succeeded.
    served: RevisionSet,
    /// The requirements that its responses let cases observe, with the revisions.
    shown: BTreeMap<&'static str, RevisionSet>,
    contents: BTreeSet<&'static str>,
}

/// Tries requests in the revision of a session.
async fn try_revision(
    session: &mut Session,
    plan: &Plan,
    cases: &[Arc<Case>],
    known: &mut Vec<Attempt>,
    not_called: &mut BTreeMap<String, String>,
) {
    let until = Instant::now() + HINT_TIME_PER_REVISION;
    let pages = list_tools(session, plan.timeout).await;
    let inventory = Inventory::from_pages(&pages, plan.calls);
    let primitives = list_only(session, plan.timeout).await;
    // Messages that the server sends on its own after opening are not caused by a request.
    let quiet = session.answer_times().at_least(QUIET_TIME);
    session.connection.wait(session.connection.len(), quiet, |_| None::<()>).await;
    let lists = session.transcript_from(0);
    let passive_cases = PassiveCases::new(cases, session, lists);
    let mut slow: BTreeMap<&str, usize> = BTreeMap::new();
    for (request, plain) in
        candidate_requests(plan, &inventory, &primitives, not_called).into_iter().take(MAX_HINT_REQUESTS)
    {
        if session.connection.is_closed() || session.is_unresponsive() || Instant::now() > until {
            return;
        }
        let tool = match &request {
            HintRequest::Call { tool, .. } => inventory.tools.iter().find(|listed| listed.name == *tool),
            HintRequest::Read { .. } | HintRequest::Get { .. } => None,
        };
        if tool.is_some_and(|tool| slow.get(tool.name.as_str()).is_some_and(|times| *times >= MAX_SLOW_HINT_RESPONSES))
        {
            continue;
        }
        let from = session.connection.len();
        let began = Instant::now();
        let waited = send_hint_request(session, &request, &format!("try-{from}"), plan.timeout).await;
        if let Some(tool) = tool.filter(|_| began.elapsed() > SLOW_HINT_RESPONSE) {
            *slow.entry(&tool.name).or_default() += 1;
        }
        let WaitOutcome::Ready(response) = waited else { continue };
        let answered = session.transcript_from(from);
        let index = known.iter().position(|one| one.request == request).unwrap_or_else(|| {
            let (served, shown, contents) = (RevisionSet::default(), BTreeMap::new(), BTreeSet::new());
            known.push(Attempt { request, plain, served, shown, contents });
            known.len() - 1
        });
        let attempt = &mut known[index];
        if HintOutcome::of_response(&response) == HintOutcome::Served {
            attempt.served = attempt.served.with(session.revision);
        }
        attempt.contents.extend(contents(&answered, &response));
        for requirement in passive_cases.shown(attempt.request.method_and_params().0, &answered) {
            let revisions = attempt.shown.entry(requirement).or_default();
            *revisions = revisions.with(session.revision);
        }
    }
}

/// All requests to try, and whether each is the simplest call of its tool.
fn candidate_requests(
    plan: &Plan,
    inventory: &Inventory,
    primitives: &Primitives,
    not_called: &mut BTreeMap<String, String>,
) -> Vec<(HintRequest, bool)> {
    let places = match &plan.launcher {
        Launcher::Command(server) | Launcher::Http(HttpTarget { command: Some(server), .. }) => {
            let words: Vec<_> = server.words_of_places().collect();
            example_arguments::known_paths(&words, server.directory.as_deref())
        }
        Launcher::Http(HttpTarget { command: None, .. }) | Launcher::Reference(_) | Launcher::InProcess(_) => {
            Vec::new()
        }
    };
    let mut candidate_requests = Vec::new();
    for tool in &inventory.tools {
        if let Some(reason) = tool.exclusion.as_ref().filter(|_| !tool.permitted) {
            not_called.insert(tool.name.clone(), reason.clone());
            continue;
        }
        let made = match &tool.schema {
            Some(schema) => example_arguments::arguments(schema, &places),
            None => vec![Map::new()],
        };
        for (number, arguments) in made.into_iter().enumerate() {
            candidate_requests
                .push((HintRequest::Call { tool: tool.name.clone(), arguments }, number == 0 && tool.schema.is_some()));
        }
    }
    let reads = primitives.resources.iter().take(MAX_HINT_PRIMITIVES).map(|uri| HintRequest::Read { uri: uri.clone() });
    let gets = primitives.prompts().iter().take(MAX_HINT_PRIMITIVES);
    let gets = gets.map(|prompt| HintRequest::Get { prompt: prompt.name.clone(), arguments: prompt.arguments.clone() });
    candidate_requests.extend(reads.chain(gets).map(|request| (request, true)));
    candidate_requests
}

/// The passive cases that decide what a response shows.
struct PassiveCases<'a> {
    revision: Revision,
    lists: Transcript,
    /// Those that observe nothing in the lists or in a plain text response.
    cases: Vec<&'a Case>,
}

impl<'a> PassiveCases<'a> {
    fn new(cases: &'a [Arc<Case>], session: &Session, lists: Transcript) -> Self {
        let mut plain = lists.clone();
        // A tool that is in no real list, so that it counts as known and declares nothing.
        let tool = json!({ "name": PLAIN_TOOL, "inputSchema": { "type": "object" } });
        let listed = json!({ "resultType": "complete", "tools": [tool] });
        let text = json!({ "resultType": "complete", "content": [{ "type": "text", "text": "x" }], "isError": false });
        let params = json!({ "name": PLAIN_TOOL, "arguments": {} });
        let error = json!({ "code": -32602, "message": "Invalid params" });
        let exchanges = [
            ("tools/list", json!({}), "result", listed),
            ("tools/call", params.clone(), "result", text),
            ("tools/call", params, "error", error),
        ];
        for (number, (method, params, kind, value)) in exchanges.into_iter().enumerate() {
            let id = json!(format!("{PLAIN_TOOL}-{number}"));
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            let request = Frame::from_value(&session.with_meta(request));
            let response = Frame::from_value(&json!({ "jsonrpc": "2.0", "id": id, kind: value }));
            let events =
                [transcript::Event::Sent { frame: request, step_id: None }, transcript::Event::Received(response)];
            plain.entries.extend(events.map(|event| Arc::new(Entry { at: Duration::ZERO, event })));
        }
        let mut passive_cases = Self { revision: session.revision, lists, cases: Vec::new() };
        let connected = [RecordedConnection { label: String::new(), transcript: plain }];
        let watched = IndexedConnections::new(&connected, session.revision);
        let fits = |case: &&Case| {
            declares_needed_capabilities(case, &session.parameters) && !passive_cases.observes(case, &watched)
        };
        let unobserved: Vec<&Case> = cases.iter().map(Arc::as_ref).filter(fits).collect();
        passive_cases.cases = unobserved;
        passive_cases
    }

    fn observes(&self, case: &Case, watched: &IndexedConnections<'_>) -> bool {
        match &case.body {
            Body::Passive(passive) => check::judge_passive(case, passive, self.revision, watched).judged_count > 0,
            // Active cases send their own requests, so they count as satisfied.
            Body::Active(_) | Body::Fuzz(_) => true,
        }
    }

    /// The requirements that a response and the messages before it let cases observe.
    fn shown(&self, method: &str, answered: &Transcript) -> BTreeSet<&'static str> {
        let received: Vec<&Value> =
            answered.entries.iter().filter_map(|entry| entry.received()).flat_map(messages).collect();
        let methods: Vec<&str> = received.iter().filter_map(|message| message.get("method")?.as_str()).collect();
        let concerns = |case: &&&Case| match &case.body {
            Body::Passive(passive) => match &passive.watch {
                Watch::Values(values) => match &values.kind {
                    WatchKind::Result(of)
                    | WatchKind::Response(of)
                    | WatchKind::Error(of)
                    | WatchKind::Exchange(of) => of.include(method),
                    WatchKind::Notification(of) | WatchKind::Request(of) => {
                        methods.iter().any(|method| of.include(method))
                    }
                    WatchKind::Line | WatchKind::Message | WatchKind::ClientRequest(_) => true,
                },
                Watch::Connections(_) => true,
            },
            Body::Active(_) | Body::Fuzz(_) => false,
        };
        let mut whole = self.lists.clone();
        whole.entries.extend(answered.entries.iter().cloned());
        let connected = [RecordedConnection { label: String::new(), transcript: whole }];
        let watched = IndexedConnections::new(&connected, self.revision);
        let seeing = self.cases.iter().filter(concerns).filter(|case| self.observes(case, &watched));
        seeing
            .flat_map(|case| &case.requirements)
            .filter(|requirement| requirement.revisions().contains(self.revision))
            .map(|requirement| requirement.id.as_str())
            .collect()
    }
}

/// Labels for what a response and its accompanying messages contain.
fn contents(answered: &Transcript, response: &Value) -> BTreeSet<&'static str> {
    const TYPES: [(&str, &str); 4] =
        [("image", "image"), ("audio", "audio"), ("resource_link", "resource link"), ("resource", "embedded resource")];
    const METHODS: [(&str, &str); 6] = [
        ("notifications/progress", "progress"),
        ("notifications/message", "log message"),
        ("sampling/createMessage", "requests sampling"),
        ("elicitation/create", "requests elicitation"),
        ("roots/list", "requests roots"),
        ("notifications/tools/list_changed", "changes the tool list"),
    ];
    let result = response.get("result").unwrap_or(&Value::Null);
    let items = |place: &str| result.pointer(place).and_then(Value::as_array).into_iter().flatten();
    let contents = items("/messages").filter_map(|message| message.get("content")).chain(items("/content"));
    let kinds: BTreeSet<&str> = contents.clone().filter_map(|item| item.get("type")?.as_str()).collect();
    let received = answered.entries.iter().filter_map(|entry| entry.received()).flat_map(messages);
    let methods: BTreeSet<&str> = received.filter_map(|message| message.get("method")?.as_str()).collect();
    let typed = TYPES.into_iter().filter(|(name, _)| kinds.contains(name)).map(|(_, label)| label);
    let sent = METHODS.into_iter().filter(|(name, _)| methods.contains(name)).map(|(_, label)| label);
    let mut labels: BTreeSet<&str> = typed.chain(sent).collect();
    let mut note = |holds: bool, label| {
        if holds {
            labels.insert(label);
        }
    };
    note(result.get("structuredContent").is_some(), "structured content");
    note(result.get("isError") == Some(&Value::Bool(true)), "tool error");
    note(response.get("error").is_some(), "error");
    let mut responses = answered.entries.iter().filter_map(|entry| entry.received()).flat_map(messages);
    note(responses.any(|message| message.get("result").is_some_and(is_input_required)), "requests input");
    note(result.get("task").is_some(), "task");
    note(contents.clone().any(|item| item.get("annotations").is_some()), "annotations");
    note(items("/contents").any(|one| one.get("text").is_some()), "text");
    note(items("/contents").any(|one| one.get("blob").is_some()), "blob");
    labels
}

/// Selects the hints: each requirement is assigned to the request that shows it in the most revisions, simple ones
/// first, and each tool whose simplest call fails gets arguments that succeed.
fn select_hints(attempts: &[Attempt], revisions: RevisionSet) -> Vec<DiscoveredHint> {
    let mut purposes: BTreeMap<(usize, RevisionSet), Vec<String>> = BTreeMap::new();
    let requirements: BTreeSet<&str> = attempts.iter().flat_map(|attempt| attempt.shown.keys().copied()).collect();
    for id in requirements {
        let showing =
            attempts.iter().enumerate().filter_map(|(at, attempt)| Some((at, *attempt.shown.get(id)?, attempt.plain)));
        let best = showing.min_by_key(|(at, shown, plain)| (std::cmp::Reverse(shown.iter().count()), !plain, *at));
        let Some((at, shown, _)) = best else { continue };
        let stated = crate::spec::Catalogue::embedded().get(id).map(crate::spec::Requirement::revisions);
        let open = stated.unwrap_or_default().intersection(revisions);
        let within = if shown.intersection(open) == open { served_in(&attempts[at], revisions) } else { shown };
        purposes.entry((at, within)).or_default().push(id.to_owned());
    }
    for (at, attempt) in attempts.iter().enumerate() {
        let HintRequest::Call { tool, .. } = &attempt.request else { continue };
        let same_tool =
            |other: &Attempt| matches!(&other.request, HintRequest::Call { tool: name, .. } if name == tool);
        let first = !attempts[..at].iter().any(|other| same_tool(other) && !other.served.is_empty());
        let named =
            purposes.keys().any(|(known, _)| same_tool(&attempts[*known]) && !attempts[*known].served.is_empty());
        if !attempt.plain && !attempt.served.is_empty() && first && !named {
            purposes.entry((at, served_in(attempt, revisions))).or_default();
        }
    }
    let mut purposes: Vec<_> = purposes.into_iter().collect();
    // Tools first, and each kind in the order in which it was tried.
    purposes.sort_by_key(|((at, _), _)| match attempts[*at].request {
        HintRequest::Call { .. } => 0,
        HintRequest::Read { .. } => 1,
        HintRequest::Get { .. } => 2,
    });
    let found = purposes.into_iter().map(|((at, within), purposes)| {
        let revisions = if within == revisions { RevisionSet::ALL } else { within };
        DiscoveredHint {
            hint: Hint { purposes, revisions, request: attempts[at].request.clone() },
            contents: attempts[at].contents.iter().copied().collect(),
        }
    });
    found.take(MAX_HINTS).collect()
}

/// The revisions in which a request is worth repeating.
fn served_in(attempt: &Attempt, revisions: RevisionSet) -> RevisionSet {
    let shown = attempt.shown.values().fold(attempt.served, |set, shown| set.union(*shown));
    if shown.is_empty() { revisions } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

    fn call(tool: &str, text: &str) -> HintRequest {
        let arguments = json!({ "text": text }).as_object().expect("an object").clone();
        HintRequest::Call { tool: tool.to_owned(), arguments }
    }

    fn attempt(
        request: HintRequest,
        plain: bool,
        served: &[Revision],
        shown: &[(&'static str, &[Revision])],
    ) -> Attempt {
        let set = |revisions: &[Revision]| revisions.iter().copied().collect::<RevisionSet>();
        let shown = shown.iter().map(|(id, revisions)| (*id, set(revisions))).collect();
        Attempt { request, plain, served: set(served), shown, contents: BTreeSet::new() }
    }

    fn found(attempts: &[Attempt]) -> Vec<(String, Vec<String>, String)> {
        let found = select_hints(attempts, BOTH.into_iter().collect()).into_iter();
        found.map(|one| (one.hint.request.describe(), one.hint.purposes, one.hint.revisions.to_string())).collect()
    }

    fn all() -> String {
        RevisionSet::ALL.to_string()
    }

    #[test]
    fn a_requirement_is_assigned_to_the_simplest_request_that_shows_it_in_most_revisions() {
        let attempts = [
            attempt(call("a", "1"), true, &BOTH, &[("content-image", &BOTH[..1])]),
            attempt(call("a", "2"), false, &BOTH, &[("content-image", &BOTH), ("tool-name-string", &BOTH)]),
            attempt(call("b", "1"), true, &BOTH, &[("tool-name-string", &BOTH)]),
        ];
        let wanted = [
            (r#"tools/call a {"text":"2"}"#.to_owned(), vec!["content-image".to_owned()], all()),
            (r#"tools/call b {"text":"1"}"#.to_owned(), vec!["tool-name-string".to_owned()], all()),
        ];
        assert_eq!(found(&attempts), wanted);
    }

    #[test]
    fn a_hint_is_limited_to_the_revisions_where_it_helps() {
        let attempts = [attempt(call("a", "1"), true, &BOTH, &[("tool-name-string", &BOTH[1..])])];
        let hint = (r#"tools/call a {"text":"1"}"#.to_owned(), vec!["tool-name-string".to_owned()]);
        assert_eq!(found(&attempts), [(hint.0, hint.1, "2025-11-25".to_owned())]);
    }

    #[test]
    fn a_tool_whose_simplest_call_fails_gets_the_first_arguments_that_succeed() {
        let attempts = [
            attempt(call("a", ""), true, &[], &[]),
            attempt(call("a", "hello"), false, &BOTH, &[]),
            attempt(call("a", "world"), false, &BOTH, &[]),
            attempt(call("b", ""), true, &BOTH, &[]),
            attempt(call("b", "hello"), false, &BOTH, &[]),
        ];
        assert_eq!(found(&attempts), [(r#"tools/call a {"text":"hello"}"#.to_owned(), Vec::new(), all())]);
    }

    #[test]
    fn the_contents_of_a_response_are_labelled() {
        let response = json!({ "result": {
            "content": [{ "type": "image" }, { "type": "text", "annotations": {} }],
            "structuredContent": {},
            "isError": true,
        } });
        let labels: Vec<&str> = contents(&Transcript::default(), &response).into_iter().collect();
        assert_eq!(labels, ["annotations", "image", "structured content", "tool error"]);
        let read = json!({ "result": { "contents": [{ "blob": "" }] } });
        assert_eq!(contents(&Transcript::default(), &read).into_iter().collect::<Vec<_>>(), ["blob"]);
    }
}
