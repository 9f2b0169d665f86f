//! Tries a server out and says which of its tools, resources and prompts show what, as hints for later runs.
//!
//! What something shows is asked of the watching cases: what one of them sees in an answer, and does not see in an
//! answer that holds a line of text and no more, is worth a hint. Tools are called by the same rules as in a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::conduct::{Context, Stop, fitting, missing, unjudged};
use super::exchange::GIVEN_UP;
use super::guess;
use super::hinted::{Came, came_of, request};
use super::offer::Offer;
use super::others;
use super::plan::{HttpServer, Launcher, Plan};
use super::probe::probe;
use super::session::Session;
use super::survey::list;
use super::target::meets;
use crate::case::{Ask, Body, Case, Hint, Watch, WatchKind};
use crate::check::{self, Connected, Watched};
use crate::client::Waited;
use crate::event::{Event, Problem, ProblemKind, Sink};
use crate::spec::{Revision, RevisionSet};
use crate::transcript::{self, Entry, Transcript, asks_for_input, messages};
use crate::wire::Frame;

/// How many requests are tried in one revision.
const MOST_TRIED: usize = 400;

/// How long trying out one revision may take.
const BUDGET: Duration = Duration::from_secs(60);

/// From when on an answer counts as slow.
const QUICK: Duration = Duration::from_secs(1);

/// How many slow answers of a tool are waited for.
const MOST_SLOW: usize = 3;

/// The name of a tool that answers with a line of text and no more.
const PLAIN: &str = "conformance-plain";

/// How many hints a file may have.
const MOST_FOUND: usize = 200;

/// How long a server is left to itself before anything is tried.
const SETTLE: Duration = Duration::from_millis(300);

/// How many resources are read, and how many prompts got.
const MOST_OTHERS: usize = 16;

/// A hint, and in words what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The hint.
    pub hint: Hint,
    /// What the answer held, such as `image` or `progress`.
    pub held: Vec<&'static str>,
}

/// What trying a server out came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TriedOut {
    /// The hints, in the order of the server's lists.
    pub found: Vec<Found>,
    /// The revisions that it was tried in.
    pub revisions: RevisionSet,
    /// The tools that were not called, with the reason.
    pub not_called: BTreeMap<String, String>,
}

/// Tries a server out in each revision of the plan that it speaks.
///
/// # Errors
/// When the server cannot be started, speaks none of the revisions, or the run was interrupted.
pub async fn try_out(plan: Plan, mut stop: Stop) -> Result<TriedOut, Problem> {
    let context = Context::new(fitting(plan), Arc::new(Mutex::new(Nobody)));
    let tried = async {
        if let Err(absent) = context.ready().await {
            return Err(missing(&context, absent).await);
        }
        let probed = probe(&context).await;
        if probed.sessions.is_empty() {
            return Err(unjudged(&context, probed.refused).await);
        }
        for (_, refused) in probed.refused {
            if let Some(connection) = refused.connection {
                context.dismiss(connection, "probe");
            }
        }
        let mut tries: Vec<Try> = Vec::new();
        let mut out = TriedOut::default();
        for mut session in probed.sessions {
            out.revisions = out.revisions.with(session.revision);
            let cases: Vec<Arc<Case>> =
                context.plan.cases.iter().filter(|case| case.runs_in(session.revision)).cloned().collect();
            try_in(&mut session, &context.plan, &cases, &mut tries, &mut out.not_called).await;
            context.dismiss(session.connection, "try-out");
        }
        out.found = worth(&tries, out.revisions);
        Ok(out)
    };
    let stopped = async {
        // A sender that is gone will never ask us to stop.
        if stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let tried = tokio::select! {
        tried = tried => tried,
        () = stopped => Err(Problem {
            kind: ProblemKind::Interrupted,
            message: "trying the server out was interrupted".to_owned(),
            hint: "run it again; nothing was written".to_owned(),
            stderr: String::new(),
            evidence: Vec::new(),
        }),
    };
    context.take_leave(tried.is_err()).await;
    context.end_host().await;
    tried
}

/// A listener who does not listen.
struct Nobody;

impl Sink for Nobody {
    fn on(&mut self, _: &Event) -> std::io::Result<()> {
        Ok(())
    }
}

/// Something that was asked, with what it came to in each revision.
#[derive(Debug)]
struct Try {
    ask: Ask,
    /// Whether it is the simplest call of its tool, which every run makes.
    plain: bool,
    /// The revisions in which it was served.
    served: RevisionSet,
    /// The requirements that its answers showed, each with the revisions.
    shown: BTreeMap<&'static str, RevisionSet>,
    held: BTreeSet<&'static str>,
}

/// Tries a server out in the revision of a session.
async fn try_in(
    session: &mut Session,
    plan: &Plan,
    cases: &[Arc<Case>],
    known: &mut Vec<Try>,
    not_called: &mut BTreeMap<String, String>,
) {
    let until = Instant::now() + BUDGET;
    let pages = list(session, plan).await;
    let offer = Offer::read(&pages, plan.calls);
    let others = others::list_all(session, plan.timeout).await;
    // What a server sends by itself once it was opened is no call's doing.
    session.connection.wait(session.connection.len(), SETTLE, |_| None::<()>).await;
    let lists = session.transcript_from(0);
    let watching = Watching::new(cases, session, lists);
    let mut slow: BTreeMap<&str, usize> = BTreeMap::new();
    for (ask, plain) in asks(plan, &offer, &others, not_called).into_iter().take(MOST_TRIED) {
        if session.connection.is_closed() || session.unanswered >= GIVEN_UP || Instant::now() > until {
            return;
        }
        let tool = match &ask {
            Ask::Call { tool, .. } => offer.tools.iter().find(|listed| listed.name == *tool),
            Ask::Read { .. } | Ask::Get { .. } => None,
        };
        if tool.is_some_and(|tool| slow.get(tool.name.as_str()).is_some_and(|times| *times >= MOST_SLOW)) {
            continue;
        }
        let from = session.connection.len();
        let began = Instant::now();
        let waited = request(session, &ask, &format!("try-{from}"), plan.timeout).await;
        if let Some(tool) = tool.filter(|_| began.elapsed() > QUICK) {
            *slow.entry(&tool.name).or_default() += 1;
        }
        let Waited::Came(response) = waited else { continue };
        let answered = session.transcript_from(from);
        let index = known.iter().position(|one| one.ask == ask).unwrap_or_else(|| {
            let (served, shown, held) = (RevisionSet::default(), BTreeMap::new(), BTreeSet::new());
            known.push(Try { ask, plain, served, shown, held });
            known.len() - 1
        });
        let tried = &mut known[index];
        if came_of(&response) == Came::Served {
            tried.served = tried.served.with(session.revision);
        }
        tried.held.extend(held(&answered, &response));
        for requirement in watching.shown(tried.ask.request().0, &answered) {
            let revisions = tried.shown.entry(requirement).or_default();
            *revisions = revisions.with(session.revision);
        }
    }
}

/// Everything that is to be tried, and whether it is the simplest call of its tool.
fn asks(
    plan: &Plan,
    offer: &Offer,
    others: &others::Others,
    not_called: &mut BTreeMap<String, String>,
) -> Vec<(Ask, bool)> {
    let places = match &plan.launcher {
        Launcher::Command(server) | Launcher::Http(HttpServer { command: Some(server), .. }) => {
            guess::places(&server.command, server.directory.as_deref())
        }
        Launcher::Http(HttpServer { command: None, .. }) | Launcher::BuiltIn(_) | Launcher::Within(_) => Vec::new(),
    };
    let mut asks = Vec::new();
    for tool in &offer.tools {
        if let Some(reason) = tool.barred.as_ref().filter(|_| !tool.permitted) {
            not_called.insert(tool.name.clone(), reason.clone());
            continue;
        }
        let made = match &tool.schema {
            Some(schema) => guess::arguments(schema, &places),
            None => vec![Map::new()],
        };
        for (number, arguments) in made.into_iter().enumerate() {
            asks.push((Ask::Call { tool: tool.name.clone(), arguments }, number == 0 && tool.schema.is_some()));
        }
    }
    let reads = others.resources.iter().take(MOST_OTHERS).map(|uri| Ask::Read { uri: uri.clone() });
    let gets = others.prompts().iter().take(MOST_OTHERS);
    let gets = gets.map(|prompt| Ask::Get { prompt: prompt.name.clone(), arguments: prompt.arguments.clone() });
    asks.extend(reads.chain(gets).map(|ask| (ask, true)));
    asks
}

/// The watching cases that tell what an answer shows.
struct Watching<'a> {
    revision: Revision,
    lists: Transcript,
    /// Those that see nothing in the lists, nor in an answer of one line of text.
    cases: Vec<&'a Case>,
}

impl<'a> Watching<'a> {
    fn new(cases: &'a [Arc<Case>], session: &Session, lists: Transcript) -> Self {
        let mut plain = lists.clone();
        // A tool that nobody lists, so that it counts as known and promises nothing.
        let tool = json!({ "name": PLAIN, "inputSchema": { "type": "object" } });
        let listed = json!({ "resultType": "complete", "tools": [tool] });
        let text = json!({ "resultType": "complete", "content": [{ "type": "text", "text": "x" }], "isError": false });
        let params = json!({ "name": PLAIN, "arguments": {} });
        let error = json!({ "code": -32602, "message": "Invalid params" });
        let exchanges = [
            ("tools/list", json!({}), "result", listed),
            ("tools/call", params.clone(), "result", text),
            ("tools/call", params, "error", error),
        ];
        for (number, (method, params, kind, value)) in exchanges.into_iter().enumerate() {
            let id = json!(format!("{PLAIN}-{number}"));
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            let request = Frame::of(&session.with_meta(request));
            let response = Frame::of(&json!({ "jsonrpc": "2.0", "id": id, kind: value }));
            let events =
                [transcript::Event::Sent { frame: request, mark: None }, transcript::Event::Received(response)];
            plain.entries.extend(events.map(|event| Arc::new(Entry { at: Duration::ZERO, event })));
        }
        let mut watching = Self { revision: session.revision, lists, cases: Vec::new() };
        let connected = [Connected { label: String::new(), transcript: plain }];
        let watched = Watched::new(&connected, session.revision);
        let fits = |case: &&Case| meets(case, &session.terms) && !watching.sees(case, &watched);
        let fitting: Vec<&Case> = cases.iter().map(Arc::as_ref).filter(fits).collect();
        watching.cases = fitting;
        watching
    }

    fn sees(&self, case: &Case, watched: &Watched<'_>) -> bool {
        match &case.body {
            Body::Watch(passive) => check::watch(case, passive, self.revision, watched).seen > 0,
            // What acts has its own means, and counts as satisfied.
            Body::Act(_) | Body::Fuzz(_) => true,
        }
    }

    /// The requirements that an answer shows, with everything that came before it.
    fn shown(&self, method: &str, answered: &Transcript) -> BTreeSet<&'static str> {
        let came: Vec<&Value> =
            answered.entries.iter().filter_map(|entry| entry.received()).flat_map(messages).collect();
        let methods: Vec<&str> = came.iter().filter_map(|message| message.get("method")?.as_str()).collect();
        let concerns = |case: &&&Case| match &case.body {
            Body::Watch(passive) => match &passive.watch {
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
            Body::Act(_) | Body::Fuzz(_) => false,
        };
        let mut whole = self.lists.clone();
        whole.entries.extend(answered.entries.iter().cloned());
        let connected = [Connected { label: String::new(), transcript: whole }];
        let watched = Watched::new(&connected, self.revision);
        let seeing = self.cases.iter().filter(concerns).filter(|case| self.sees(case, &watched));
        seeing
            .flat_map(|case| &case.requirements)
            .filter(|requirement| requirement.revisions().contains(self.revision))
            .map(|requirement| requirement.id.as_str())
            .collect()
    }
}

/// What an answer held, and what came with it, in words.
fn held(answered: &Transcript, response: &Value) -> BTreeSet<&'static str> {
    const TYPES: [(&str, &str); 4] =
        [("image", "image"), ("audio", "audio"), ("resource_link", "resource link"), ("resource", "embedded resource")];
    const METHODS: [(&str, &str); 6] = [
        ("notifications/progress", "progress"),
        ("notifications/message", "log message"),
        ("sampling/createMessage", "asks for sampling"),
        ("elicitation/create", "asks for elicitation"),
        ("roots/list", "asks for roots"),
        ("notifications/tools/list_changed", "changes the list of tools"),
    ];
    let result = response.get("result").unwrap_or(&Value::Null);
    let items = |place: &str| result.pointer(place).and_then(Value::as_array).into_iter().flatten();
    let contents = items("/messages").filter_map(|message| message.get("content")).chain(items("/content"));
    let kinds: BTreeSet<&str> = contents.clone().filter_map(|item| item.get("type")?.as_str()).collect();
    let came = answered.entries.iter().filter_map(|entry| entry.received()).flat_map(messages);
    let methods: BTreeSet<&str> = came.filter_map(|message| message.get("method")?.as_str()).collect();
    let typed = TYPES.into_iter().filter(|(name, _)| kinds.contains(name)).map(|(_, word)| word);
    let sent = METHODS.into_iter().filter(|(name, _)| methods.contains(name)).map(|(_, word)| word);
    let mut held: BTreeSet<&str> = typed.chain(sent).collect();
    let mut note = |holds: bool, word| {
        if holds {
            held.insert(word);
        }
    };
    note(result.get("structuredContent").is_some(), "structured content");
    note(result.get("isError") == Some(&Value::Bool(true)), "error of the tool");
    note(response.get("error").is_some(), "error");
    let mut came = answered.entries.iter().filter_map(|entry| entry.received()).flat_map(messages);
    note(came.any(|message| message.get("result").is_some_and(asks_for_input)), "asks for input");
    note(result.get("task").is_some(), "task");
    note(contents.clone().any(|item| item.get("annotations").is_some()), "annotations");
    note(items("/contents").any(|one| one.get("text").is_some()), "text");
    note(items("/contents").any(|one| one.get("blob").is_some()), "blob");
    held
}

/// The hints that are worth their line: each requirement is left to the request that shows it in most revisions,
/// the simplest first, and each tool whose simplest call is refused gets arguments that are served.
fn worth(tries: &[Try], revisions: RevisionSet) -> Vec<Found> {
    let mut purposes: BTreeMap<(usize, RevisionSet), Vec<String>> = BTreeMap::new();
    let requirements: BTreeSet<&str> = tries.iter().flat_map(|tried| tried.shown.keys().copied()).collect();
    for id in requirements {
        let showing = tries.iter().enumerate().filter_map(|(at, tried)| Some((at, *tried.shown.get(id)?, tried.plain)));
        let best = showing.min_by_key(|(at, shown, plain)| (std::cmp::Reverse(shown.iter().count()), !plain, *at));
        let Some((at, shown, _)) = best else { continue };
        let stated = crate::spec::Catalogue::embedded().get(id).map(crate::spec::Requirement::revisions);
        let open = stated.unwrap_or_default().intersection(revisions);
        let within = if shown.intersection(open) == open { served_in(&tries[at], revisions) } else { shown };
        purposes.entry((at, within)).or_default().push(id.to_owned());
    }
    for (at, tried) in tries.iter().enumerate() {
        let Ask::Call { tool, .. } = &tried.ask else { continue };
        let same_tool = |other: &Try| matches!(&other.ask, Ask::Call { tool: name, .. } if name == tool);
        let first = !tries[..at].iter().any(|other| same_tool(other) && !other.served.is_empty());
        let named = purposes.keys().any(|(known, _)| same_tool(&tries[*known]) && !tries[*known].served.is_empty());
        if !tried.plain && !tried.served.is_empty() && first && !named {
            purposes.entry((at, served_in(tried, revisions))).or_default();
        }
    }
    let mut purposes: Vec<_> = purposes.into_iter().collect();
    // Tools first, and each kind in the order in which it was tried.
    purposes.sort_by_key(|((at, _), _)| match tries[*at].ask {
        Ask::Call { .. } => 0,
        Ask::Read { .. } => 1,
        Ask::Get { .. } => 2,
    });
    let found = purposes.into_iter().map(|((at, within), purposes)| {
        let revisions = if within == revisions { RevisionSet::ALL } else { within };
        Found {
            hint: Hint { purposes, revisions, ask: tries[at].ask.clone() },
            held: tries[at].held.iter().copied().collect(),
        }
    });
    found.take(MOST_FOUND).collect()
}

/// The revisions in which a request is worth making again.
fn served_in(tried: &Try, revisions: RevisionSet) -> RevisionSet {
    let shown = tried.shown.values().fold(tried.served, |set, shown| set.union(*shown));
    if shown.is_empty() { revisions } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

    fn call(tool: &str, text: &str) -> Ask {
        let arguments = json!({ "text": text }).as_object().expect("an object").clone();
        Ask::Call { tool: tool.to_owned(), arguments }
    }

    fn tried(ask: Ask, plain: bool, served: &[Revision], shown: &[(&'static str, &[Revision])]) -> Try {
        let set = |revisions: &[Revision]| revisions.iter().copied().collect::<RevisionSet>();
        let shown = shown.iter().map(|(id, revisions)| (*id, set(revisions))).collect();
        Try { ask, plain, served: set(served), shown, held: BTreeSet::new() }
    }

    fn found(tries: &[Try]) -> Vec<(String, Vec<String>, String)> {
        let found = worth(tries, BOTH.into_iter().collect()).into_iter();
        found.map(|one| (one.hint.ask.describe(), one.hint.purposes, one.hint.revisions.to_string())).collect()
    }

    fn all() -> String {
        RevisionSet::ALL.to_string()
    }

    #[test]
    fn a_requirement_is_left_to_what_shows_it_in_most_revisions_and_most_simply() {
        let tries = [
            tried(call("a", "1"), true, &BOTH, &[("content-image", &BOTH[..1])]),
            tried(call("a", "2"), false, &BOTH, &[("content-image", &BOTH), ("tool-name-string", &BOTH)]),
            tried(call("b", "1"), true, &BOTH, &[("tool-name-string", &BOTH)]),
        ];
        let wanted = [
            (r#"tools/call a {"text":"2"}"#.to_owned(), vec!["content-image".to_owned()], all()),
            (r#"tools/call b {"text":"1"}"#.to_owned(), vec!["tool-name-string".to_owned()], all()),
        ];
        assert_eq!(found(&tries), wanted);
    }

    #[test]
    fn what_shows_in_some_revisions_only_is_followed_there() {
        let tries = [tried(call("a", "1"), true, &BOTH, &[("tool-name-string", &BOTH[1..])])];
        let hint = (r#"tools/call a {"text":"1"}"#.to_owned(), vec!["tool-name-string".to_owned()]);
        assert_eq!(found(&tries), [(hint.0, hint.1, "2025-11-25".to_owned())]);
    }

    #[test]
    fn a_tool_whose_simplest_call_is_refused_gets_the_first_arguments_that_serve() {
        let tries = [
            tried(call("a", ""), true, &[], &[]),
            tried(call("a", "hello"), false, &BOTH, &[]),
            tried(call("a", "world"), false, &BOTH, &[]),
            tried(call("b", ""), true, &BOTH, &[]),
            tried(call("b", "hello"), false, &BOTH, &[]),
        ];
        assert_eq!(found(&tries), [(r#"tools/call a {"text":"hello"}"#.to_owned(), Vec::new(), all())]);
    }

    #[test]
    fn what_an_answer_held_is_told_in_words() {
        let response = json!({ "result": {
            "content": [{ "type": "image" }, { "type": "text", "annotations": {} }],
            "structuredContent": {},
            "isError": true,
        } });
        let told: Vec<&str> = held(&Transcript::default(), &response).into_iter().collect();
        assert_eq!(told, ["annotations", "error of the tool", "image", "structured content"]);
        let read = json!({ "result": { "contents": [{ "blob": "" }] } });
        assert_eq!(held(&Transcript::default(), &read).into_iter().collect::<Vec<_>>(), ["blob"]);
    }
}
