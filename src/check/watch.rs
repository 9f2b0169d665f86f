//! Judges a watching case: finds what it looks at in every connection, and holds its rules against it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::act::shortened;
use super::evidence::evidence_of;
use super::seen::Breach;
use super::{Connected, Judged, add, asked, connection, value, verdict_of};
use crate::case::{Case, ConnectionCheck, Methods, Passive, Pattern, Rule, ValueRule, Watch, WatchKind, WatchedValues};
use crate::spec::{Era, Revision};
use crate::transcript::{Event, Exchange, HttpExchange, Transcript, input_requests, messages};
use crate::verdict::{Finding, Verdict};
use crate::wire::Kind;

/// Connections made ready to be watched: who answers whom is worked out once for all cases.
#[derive(Debug)]
pub struct Watched<'a> {
    pub(super) connections: Vec<Index<'a>>,
}

impl<'a> Watched<'a> {
    /// Makes the connections of one revision ready.
    ///
    /// What a server answers outside of the revision (to a request without the stateless `_meta`, or on a
    /// connection that agreed on another revision) is left to the cases that asked for it.
    #[must_use]
    pub fn new(connections: &'a [Connected], revision: Revision) -> Self {
        let mut connections: Vec<Index<'_>> =
            connections.iter().map(|connected| Index::new(connected, revision)).collect();
        let mut known = HashSet::new();
        for index in &mut connections {
            for (at, exchange) in index.exchanges.iter().enumerate() {
                let label = label_of(exchange.request);
                for (number, (_, response)) in exchange.responses.iter().enumerate() {
                    if known.insert((label.clone(), response.get("result"), response.get("error"))) {
                        index.fresh.push((at, number));
                    }
                }
            }
        }
        Self { connections }
    }
}

/// A connection with its requests, their answers and its tools.
#[derive(Debug)]
pub(super) struct Index<'a> {
    pub(super) label: &'a str,
    pub(super) record: &'a Transcript,
    /// The requests of ours that are of the revision, with their answers.
    pub(super) exchanges: Vec<Exchange<'a>>,
    /// The answers that say something new, each by its exchange and its number there: the same list is
    /// read many times, and each is worth one look.
    fresh: Vec<(usize, usize)>,
    /// Every request of ours.
    pub(super) all: Vec<Exchange<'a>>,
    /// The responses that belong to none of them.
    pub(super) strays: Vec<(usize, &'a Value)>,
    /// Every line of standard output, once a case asks for them and they are few.
    lines: OnceCell<Vec<(usize, Value)>>,
    /// What went over HTTP for the connection itself.
    pub(super) http: Vec<HttpExchange>,
    pub(super) tools: BTreeMap<&'a str, &'a Value>,
    /// Whether the connection agreed on another revision than the one that is judged.
    foreign: bool,
}

impl<'a> Index<'a> {
    fn new(connected: &'a Connected, revision: Revision) -> Self {
        let record = &connected.transcript;
        let all = record.exchanges();
        let strays = record.strays_beside(&all);
        let agreed = record.terms.opening.as_ref().and_then(|opening| opening.get("protocolVersion"));
        let foreign = revision.era() == Era::Handshake && agreed.is_none_or(|version| version != revision.as_str());
        let is_own =
            |exchange: &&Exchange<'_>| !foreign && (revision.era() == Era::Handshake || is_stateless(exchange.request));
        let exchanges: Vec<Exchange<'_>> = all.iter().filter(is_own).cloned().collect();
        let mut tools = BTreeMap::new();
        for exchange in exchanges.iter().filter(|exchange| method_of(exchange.request) == "tools/list") {
            for (_, response) in &exchange.responses {
                for tool in response.pointer("/result/tools").and_then(Value::as_array).into_iter().flatten() {
                    if let Some(name) = tool.get("name").and_then(Value::as_str) {
                        tools.insert(name, tool);
                    }
                }
            }
        }
        let http = record.http_exchanges().into_iter().filter(|exchange| exchange.mark.is_none()).collect();
        Self {
            label: &connected.label,
            record,
            exchanges,
            fresh: Vec::new(),
            all,
            strays,
            lines: OnceCell::new(),
            http,
            tools,
            foreign,
        }
    }

    /// Every line of standard output.
    fn lines(&self) -> Cow<'_, [(usize, Value)]> {
        // Those of a server that floods are made anew for each case, as they are half as large as the record.
        const KEPT: usize = 2_000;
        if self.record.entries.len() > KEPT {
            Cow::Owned(lines(self))
        } else {
            Cow::Borrowed(self.lines.get_or_init(|| lines(self)))
        }
    }

    /// The messages that the server wrote, element by element, with their positions.
    pub(super) fn received(&self) -> impl Iterator<Item = (usize, &'a Value)> {
        self.record.entries.iter().enumerate().flat_map(|(position, entry)| {
            entry.received().into_iter().flat_map(messages).map(move |one| (position, one))
        })
    }
}

/// One thing that is looked at.
pub(super) struct Subject<'a> {
    pub(super) value: &'a Value,
    pub(super) label: String,
    pub(super) positions: Vec<usize>,
    pub(super) request: Option<&'a Value>,
}

/// Whether a request names its revision itself, as the stateless era asks.
fn is_stateless(request: &Value) -> bool {
    request.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some()
}

pub(super) fn method_of(request: &Value) -> &str {
    request.get("method").and_then(Value::as_str).unwrap_or_default()
}

/// What an answer to a request is called: the tool, or the method.
fn label_of(request: &Value) -> String {
    let method = method_of(request);
    match request.pointer("/params/name").and_then(Value::as_str) {
        Some(name) if method == "tools/call" => format!("tool {name}"),
        _ => method.to_owned(),
    }
}

/// Judges a watching case by everything that was seen in one revision.
#[must_use]
pub fn watch(case: &Case, passive: &Passive, revision: Revision, watched: &Watched<'_>) -> Judged {
    let mut judged = Judged::skip(nothing_seen(&passive.watch));
    let applies = match &passive.watch {
        Watch::Values(values) => watch_values(case, values, revision, watched, &mut judged),
        Watch::Connections(rules) => watch_connections(case, rules, revision, watched, &mut judged),
    };
    if !applies {
        return Judged::inapplicable("no rule of the case holds in this revision");
    }
    if judged.seen > 0 {
        judged.reason = None;
        judged.verdict = judged.findings.iter().map(|finding| finding.verdict).fold(Verdict::Pass, Verdict::join);
    }
    judged
}

/// The rules that apply in a revision.
fn rules_in<T>(rules: &[Rule<T>], revision: Revision) -> Vec<&Rule<T>> {
    rules.iter().filter(|rule| rule.revisions.is_none_or(|revisions| revisions.contains(revision))).collect()
}

/// Checks connections as a whole; whether a rule applies in the revision.
fn watch_connections(
    case: &Case,
    rules: &[Rule<ConnectionCheck>],
    revision: Revision,
    watched: &Watched<'_>,
    judged: &mut Judged,
) -> bool {
    let rules = rules_in(rules, revision);
    for index in &watched.connections {
        for rule in &rules {
            judge_connection(case, rule, revision, index, judged);
        }
    }
    !rules.is_empty()
}

/// Checks values one by one; whether a rule applies in the revision.
fn watch_values(
    case: &Case,
    watch: &WatchedValues,
    revision: Revision,
    watched: &Watched<'_>,
    judged: &mut Judged,
) -> bool {
    let rules = rules_in(&watch.rules, revision);
    if rules.is_empty() {
        return false;
    }
    let mut known = HashSet::new();
    for index in &watched.connections {
        if watch.kind == WatchKind::Line {
            for (position, line) in index.lines().iter() {
                let subject = Subject { value: line, label: String::new(), positions: vec![*position], request: None };
                judge_subject(case, watch, &rules, revision, index, &subject, judged);
            }
            continue;
        }
        if index.foreign {
            continue;
        }
        if let WatchKind::Exchange(methods) = &watch.kind {
            for subject in exchanged(watch, methods, index) {
                judge_subject(case, watch, &rules, revision, index, &subject, judged);
            }
            continue;
        }
        for subject in subjects(watch, index) {
            // The same list is read many times; each of its tools counts once. What is asked for counts once
            // for each client that it is asked of.
            let client =
                matches!(watch.kind, WatchKind::ClientRequest(_)).then(|| asked::capabilities(subject.request, index));
            if known.insert((subject.label.clone(), subject.value, client)) {
                judge_subject(case, watch, &rules, revision, index, &subject, judged);
            }
        }
    }
    true
}

fn nothing_seen(watch: &Watch) -> String {
    let Watch::Values(watch) = watch else { return "no such traffic was seen".to_owned() };
    let what = match watch.kind {
        WatchKind::Line => "line",
        WatchKind::Message => "message",
        WatchKind::Response(_) => "response",
        WatchKind::Result(_) => "result",
        WatchKind::Error(_) => "error",
        WatchKind::Request(_) => "request of the server",
        WatchKind::ClientRequest(_) => "question of the server",
        WatchKind::Notification(_) => "notification",
        WatchKind::Exchange(_) => "HTTP exchange",
    };
    let methods = watch.kind.methods();
    let of = if methods.is_any() { String::new() } else { format!(" of {}", methods.as_slice().join(" or ")) };
    let at = watch.path.as_ref().map(|at| format!(" with something at `{}`", at.as_str())).unwrap_or_default();
    let fitting = if watch.matching.is_some() { " that the case looks at" } else { "" };
    format!("no {what}{of}{at}{fitting} was seen")
}

fn judge_subject(
    case: &Case,
    watch: &WatchedValues,
    rules: &[&Rule<ValueRule>],
    revision: Revision,
    index: &Index<'_>,
    subject: &Subject<'_>,
    judged: &mut Judged,
) {
    if watch.matching.as_ref().is_some_and(|filter| !filter.fits(subject.value)) {
        return;
    }
    for rule in rules {
        let breach = match &rule.check {
            ValueRule::Schema(schema) if watch.kind == WatchKind::Line => {
                Some(value::Look::from(quote(schema, subject.value)))
            }
            ValueRule::Schema(schema) => Some(value::Look::from(explain(schema, subject.value))),
            ValueRule::Check(check) => value::check(*check, subject, index, revision),
        };
        let Some(breach) = breach else { continue };
        judged.seen += 1;
        if let value::Look::Breach(actual) = breach {
            let breach = Breach {
                actual,
                subject: subject.label.clone(),
                positions: subject.positions.clone(),
                value: Some(subject.value.clone()),
            };
            report(case, rule, revision, index, breach, judged);
        }
    }
}

fn judge_connection(
    case: &Case,
    rule: &Rule<ConnectionCheck>,
    revision: Revision,
    index: &Index<'_>,
    judged: &mut Judged,
) {
    let check = rule.check;
    if index.foreign && !connection::is_of_opening(check) {
        return;
    }
    let seen = connection::check(check, index, revision);
    judged.seen += seen.seen;
    for breach in seen.breaches {
        report(case, rule, revision, index, breach, judged);
    }
}

fn report<T>(case: &Case, rule: &Rule<T>, revision: Revision, index: &Index<'_>, breach: Breach, judged: &mut Judged) {
    const LARGEST: usize = 4_000;
    let Some((requirement, verdict)) = verdict_of(case, revision, rule.requirement.as_deref(), rule.verdict) else {
        return;
    };
    if !matches!(verdict, Verdict::Fail | Verdict::Warn) {
        judged.notes.extend(rule.message.clone());
        return;
    }
    add(
        &mut judged.findings,
        Finding {
            message: rule.message.clone().unwrap_or_else(|| format!("not so: {}", case.title)),
            expected: case.title.clone(),
            actual: breach.actual,
            value: breach.value.filter(|value| value.to_string().len() <= LARGEST),
            subjects: if breach.subject.is_empty() { vec![index.label.to_owned()] } else { vec![breach.subject] },
            evidence: evidence_of(&index.record.entries, &breach.positions),
            fix: case.fix.clone(),
            origin: origin(index, &breach.positions),
            ..Finding::new(requirement, revision, verdict)
        },
    );
}

/// The line itself, if it does not fit a schema.
fn quote(schema: &Pattern, line: &Value) -> Option<String> {
    let text = line.get("text").and_then(Value::as_str).unwrap_or_default();
    let damage = line.get("damage").and_then(Value::as_str).map(|damage| format!(" ({damage})")).unwrap_or_default();
    (!schema.fits(line)).then(|| format!("the line `{}`{damage}", shortened(text, 160)))
}

/// What in a value does not fit a schema, if anything.
fn explain(schema: &Pattern, value: &Value) -> Option<String> {
    let error = schema.validator().iter_errors(value).next()?;
    let at = error.instance_path().to_string();
    let text = shortened(&error.to_string(), 240);
    Some(if at.is_empty() { text } else { format!("at `{at}`: {text}") })
}

/// The pass whose message drew what stands at these positions: the one that was sent there, or last before.
fn origin(index: &Index<'_>, positions: &[usize]) -> Option<usize> {
    let first = *positions.iter().min()?;
    let marked = |at: usize| match index.record.entries.get(at)?.event {
        Event::Sent { mark, .. } => Some(mark.map(|mark| mark.pass)),
        _ => None,
    };
    let own = positions.iter().find_map(|at| marked(*at));
    own.or_else(|| (0..first).rev().find_map(marked)).flatten()
}

/// Every line of standard output as a value: `{"text", "bytes", "damage", "json"}`.
fn lines(index: &Index<'_>) -> Vec<(usize, Value)> {
    let entries = index.record.entries.iter().enumerate();
    entries
        .filter_map(|(position, entry)| {
            let Event::Received(frame) = &entry.event else { return None };
            let mut line = json!({ "text": frame.text(), "bytes": frame.bytes, "damage": null });
            match &frame.value {
                Ok(value) => line["json"] = value.clone(),
                Err(damage) => line["damage"] = json!(damage.word()),
            }
            Some((position, line))
        })
        .collect()
}

/// The HTTP exchanges, or the places in them, that a case looks at.
fn exchanged<'i>(watch: &WatchedValues, methods: &Methods, index: &'i Index<'_>) -> Vec<Subject<'i>> {
    let method = |exchange: &HttpExchange| exchange.value.pointer("/request/message/method").cloned();
    let wanted = |exchange: &&HttpExchange| {
        methods.is_any()
            || method(exchange).is_some_and(|method| method.as_str().is_some_and(|method| methods.include(method)))
    };
    let mut found = Vec::new();
    for exchange in index.http.iter().filter(wanted) {
        let label = match method(exchange) {
            Some(Value::String(method)) => method,
            _ => exchange.value["request"]["method"].as_str().unwrap_or_default().to_owned(),
        };
        let places =
            watch.path.as_ref().map_or_else(|| vec![(String::new(), &exchange.value)], |at| at.find(&exchange.value));
        for (_, value) in places {
            found.push(Subject { value, label: label.clone(), positions: exchange.positions.clone(), request: None });
        }
    }
    found
}

fn subjects<'a>(watch: &WatchedValues, index: &Index<'a>) -> Vec<Subject<'a>> {
    let mut found = Vec::new();
    let methods = watch.kind.methods();
    let wanted = |method: &str| methods.include(method);
    let mut push = |root: &'a Value, label: &str, positions: &[usize], request: Option<&'a Value>| {
        let places = watch.path.as_ref().map_or_else(|| vec![(String::new(), root)], |at| at.find(root));
        for (pointer, value) in places {
            let label = subject_label(label, &pointer, root, value);
            found.push(Subject { value, label, positions: positions.to_vec(), request });
        }
    };
    match &watch.kind {
        WatchKind::Message => {
            for (position, entry) in index.record.entries.iter().enumerate() {
                if let Some(value) = entry.received() {
                    push(value, "", &[position], None);
                }
            }
        }
        WatchKind::Response(_) | WatchKind::Result(_) | WatchKind::Error(_) => {
            let mut look = |exchange: &Exchange<'a>, (position, response): (usize, &'a Value)| {
                let root = match &watch.kind {
                    WatchKind::Result(_) => response.get("result"),
                    WatchKind::Error(_) => response.get("error"),
                    _ => Some(response),
                };
                if let Some(root) = root.filter(|_| wanted(method_of(exchange.request))) {
                    push(root, &label_of(exchange.request), &[exchange.sent, position], Some(exchange.request));
                }
            };
            if matches!(watch.kind, WatchKind::Response(_)) {
                for exchange in &index.exchanges {
                    exchange.responses.iter().for_each(|response| look(exchange, *response));
                }
            } else {
                for (at, number) in &index.fresh {
                    let exchange = &index.exchanges[*at];
                    look(exchange, exchange.responses[*number]);
                }
            }
            // An error without an id answers nothing that we could name, and is an error all the same.
            if methods.is_any() && !matches!(watch.kind, WatchKind::Result(_)) {
                for &(position, response) in &index.strays {
                    let is_error = matches!(watch.kind, WatchKind::Error(_));
                    let root = if is_error { response.get("error") } else { Some(response) };
                    if let Some(root) = root {
                        push(root, "", &[position], None);
                    }
                }
            }
        }
        WatchKind::ClientRequest(_) => {
            for (position, message) in index.received() {
                match Kind::of(message) {
                    Kind::Request { method, .. } if wanted(method) && !method.starts_with("notifications/") => {
                        push(message, method, &[position], None);
                    }
                    _ => {}
                }
            }
            for exchange in &index.exchanges {
                for (position, response) in &exchange.responses {
                    let asked = response.get("result").into_iter().flat_map(input_requests);
                    for (_, request) in asked.filter(|(_, request)| wanted(method_of(request))) {
                        let label = method_of(request);
                        push(request, label, &[exchange.sent, *position], Some(exchange.request));
                    }
                }
            }
        }
        WatchKind::Request(_) | WatchKind::Notification(_) => {
            for (position, message) in index.received() {
                let method = match Kind::of(message) {
                    Kind::Request { method, .. } if matches!(watch.kind, WatchKind::Request(_)) => method,
                    Kind::Notification { method } if matches!(watch.kind, WatchKind::Notification(_)) => method,
                    // A notification that carries an id is a fault of the notification.
                    Kind::Request { method, .. } if method.starts_with("notifications/") => method,
                    _ => continue,
                };
                if wanted(method) {
                    push(message, method, &[position], None);
                }
            }
        }
        WatchKind::Line | WatchKind::Exchange(_) => {}
    }
    found
}

/// Names a place by the tool that it belongs to where there is one, and by its pointer.
fn subject_label(label: &str, pointer: &str, root: &Value, value: &Value) -> String {
    let named = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    if pointer.is_empty() {
        return label.to_owned();
    }
    let mut parts = pointer.splitn(4, '/').skip(1);
    if let (Some("tools"), Some(at)) = (parts.next(), parts.next()) {
        let tool = root.pointer(&format!("/tools/{at}"));
        let name = tool.and_then(named).or_else(|| named(value)).unwrap_or_else(|| format!("number {at}"));
        let rest = parts.next().map(|rest| format!(" at /{rest}")).unwrap_or_default();
        return format!("tool {name}{rest}");
    }
    format!("{label} at {pointer}")
}
