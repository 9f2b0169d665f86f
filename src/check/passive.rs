//! Judges a passive case: selects the watched values in every connection, and checks its rules.

use std::collections::HashSet;
use std::slice;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::evidence::evidence_of;
use super::index::{ConnectionIndex, IndexedConnections, label_of, method_of};
use super::judgement::{Judgement, SHORTENED, add_finding, requirement_and_verdict, shown_value};
use super::member_diff::member_diff;
use super::sampled::Sampled;
use super::text::shortened;
use super::value::Selected;
use super::violation::{ValueResult, Violation};
use super::{client_request, connection, value};
use crate::case::{
    Case, ConnectionAssertion, LazySchema, Methods, Passive, Rule, ValueRule, Watch, WatchKind, WatchedValues,
};
use crate::spec::{Era, Revision};
use crate::transcript::{Event, Exchange, HttpExchange, input_requests};
use crate::verdict::{Finding, Verdict};
use crate::wire::MessageKind;

/// Judges a passive case by everything that was recorded in one revision.
#[must_use]
pub fn judge_passive(
    case: &Case,
    passive: &Passive,
    revision: Revision,
    watched: &IndexedConnections<'_>,
) -> Judgement {
    let mut watching = Watching::new(case, passive, revision, watched);
    watch_exchanges(slice::from_mut(&mut watching), revision, watched);
    watching.finish()
}

/// Judges several passive cases as [`judge_passive`] does.
#[must_use]
pub(crate) fn judge_passive_cases(
    cases: &[(&Case, &Passive)],
    revision: Revision,
    watched: &IndexedConnections<'_>,
) -> Vec<Judgement> {
    let watching = cases.iter().map(|(case, passive)| Watching::new(case, passive, revision, watched));
    let mut watching: Vec<_> = watching.collect();
    watch_exchanges(&mut watching, revision, watched);
    watching.into_iter().map(Watching::finish).collect()
}

/// A case, and what was found so far.
struct Watching<'c> {
    case: &'c Case,
    passive: &'c Passive,
    /// Whether a rule applies in the revision.
    applies: bool,
    judged: Judgement,
}

impl<'c> Watching<'c> {
    /// Judges all but HTTP exchanges.
    fn new(case: &'c Case, passive: &'c Passive, revision: Revision, watched: &IndexedConnections<'_>) -> Self {
        let mut judged = Judgement::skip(nothing_selected(&passive.watch));
        let applies = match &passive.watch {
            Watch::Values(values) => watch_values(case, values, revision, watched, &mut judged),
            Watch::Connections(rules) => watch_connections(case, rules, revision, watched, &mut judged),
        };
        Self { case, passive, applies, judged }
    }

    fn finish(self) -> Judgement {
        let mut judged = self.judged;
        if !self.applies {
            return Judgement::inapplicable("no rule of the case applies in this revision");
        }
        if judged.judged_count > 0 {
            judged.verdict = judged.findings.iter().map(|finding| finding.verdict).fold(Verdict::Pass, Verdict::join);
            judged.reason = judged.reason.filter(|reason| reason == SHORTENED && judged.verdict == Verdict::Pass);
            if judged.reason.is_some() {
                judged.verdict = Verdict::Error;
            }
        }
        judged
    }
}

/// Judges the HTTP exchanges that cases watch. Together they take as much memory as the record, so that each is made once, for
/// all cases, and not kept.
fn watch_exchanges(watching: &mut [Watching<'_>], revision: Revision, watched: &IndexedConnections<'_>) {
    let mut of_exchanges: Vec<_> = watching
        .iter_mut()
        .filter_map(|one| {
            let Watch::Values(watch) = &one.passive.watch else { return None };
            let WatchKind::Exchange(methods) = &watch.kind else { return None };
            Some((one.case, watch, methods, rules_in(&watch.rules, revision), &mut one.judged))
        })
        .collect();
    if of_exchanges.is_empty() {
        return;
    }
    for index in watched.connections.iter().filter(|index| !index.is_of_other_revision) {
        for exchange in index.http_exchanges() {
            for (case, watch, methods, rules, judged) in &mut of_exchanges {
                for selected in select_http(watch, methods, &exchange) {
                    judge_value(case, watch, rules, revision, index, &selected, judged);
                }
            }
        }
    }
}

/// The rules that apply in a revision.
fn rules_in<T>(rules: &[Rule<T>], revision: Revision) -> Vec<&Rule<T>> {
    rules.iter().filter(|rule| rule.revisions.is_none_or(|revisions| revisions.contains(revision))).collect()
}

/// Checks connections as a whole; whether a rule applies in the revision.
fn watch_connections(
    case: &Case,
    rules: &[Rule<ConnectionAssertion>],
    revision: Revision,
    watched: &IndexedConnections<'_>,
    judged: &mut Judgement,
) -> bool {
    let rules = rules_in(rules, revision);
    for index in &watched.connections {
        for rule in &rules {
            judge_connection(case, rule, revision, index, judged);
        }
    }
    !rules.is_empty()
}

/// Checks values one by one, but no HTTP exchanges; whether a rule applies in the revision.
fn watch_values(
    case: &Case,
    watch: &WatchedValues,
    revision: Revision,
    watched: &IndexedConnections<'_>,
    judged: &mut Judgement,
) -> bool {
    let rules = rules_in(&watch.rules, revision);
    if rules.is_empty() {
        return false;
    }
    let mut known = HashSet::new();
    for index in &watched.connections {
        if watch.kind == WatchKind::Line {
            for (position, line) in index.lines() {
                let selected =
                    Selected { value: &line, label: String::new(), positions: vec![position], request: None };
                judge_value(case, watch, &rules, revision, index, &selected, judged);
            }
            continue;
        }
        if index.is_of_other_revision {
            continue;
        }
        for selected in select(watch, revision.era(), index) {
            // The same list is read many times; each of its tools counts once. A server request counts once for
            // each set of capabilities that the client declared.
            let client = matches!(watch.kind, WatchKind::ClientRequest(_))
                .then(|| client_request::capabilities(selected.request, index));
            if known.insert((selected.label.clone(), Sampled(selected.value), client)) {
                judge_value(case, watch, &rules, revision, index, &selected, judged);
            }
        }
    }
    true
}

/// The reason why a case without anything to judge is skipped.
fn nothing_selected(watch: &Watch) -> String {
    let Watch::Values(values) = watch else {
        return "the server sent no message that the case is about".to_owned();
    };
    let what = match &values.kind {
        WatchKind::Line => "line",
        WatchKind::Message => "message",
        WatchKind::Response(_) => "response",
        WatchKind::Result(_) => "result",
        WatchKind::Error(_) => "error",
        WatchKind::Request(_) => "request of the server",
        WatchKind::ClientRequest(_) => "request of the server to the client",
        WatchKind::Notification(_) => "notification",
        WatchKind::Exchange(_) => "HTTP exchange",
    };
    let methods = values.kind.methods();
    let of = if methods.is_any() { String::new() } else { format!(" of {}", methods.as_slice().join(" or ")) };
    let at = values.path.as_ref().map(|at| format!(" with a value at `{}`", at.as_str())).unwrap_or_default();
    let matching = if values.matching.is_some() { " that the case is about" } else { "" };
    format!("the server sent no {what}{of}{at}{matching}")
}

fn judge_value(
    case: &Case,
    watch: &WatchedValues,
    rules: &[&Rule<ValueRule>],
    revision: Revision,
    index: &ConnectionIndex<'_>,
    selected: &Selected<'_>,
    judged: &mut Judgement,
) {
    if watch.matching.as_ref().is_some_and(|filter| !filter.constrains(selected.value) || !filter.fits(selected.value))
    {
        return;
    }
    for rule in rules {
        let mut diff = None;
        let result = match &rule.check {
            ValueRule::Schema(schema) if watch.kind == WatchKind::Line => {
                Some(ValueResult::from(line_violation(schema, selected.value)))
            }
            // A rule about the members of objects says nothing about what is no object.
            ValueRule::Schema(schema) if !schema.constrains(selected.value) => None,
            ValueRule::Schema(schema) => schema_result(schema, selected, &mut diff),
            ValueRule::Check(check) => value::check(*check, selected, index, revision),
        };
        let Some(result) = result else { continue };
        judged.judged_count += 1;
        if let ValueResult::Violates(actual) = result {
            let violation = Violation {
                actual,
                diff,
                subject: selected.label.clone(),
                positions: selected.positions.clone(),
                value: Some(selected.value.clone()),
            };
            report(case, rule, revision, index, violation, judged);
        }
    }
}

fn judge_connection(
    case: &Case,
    rule: &Rule<ConnectionAssertion>,
    revision: Revision,
    index: &ConnectionIndex<'_>,
    judged: &mut Judgement,
) {
    let checked = match &rule.check {
        ConnectionAssertion::Check(check)
            if !index.is_of_other_revision || connection::is_independent_of_revision(*check) =>
        {
            connection::check_named(*check, index, revision)
        }
        ConnectionAssertion::Rule(rule) if !index.is_of_other_revision => connection::check_rule(rule, index),
        ConnectionAssertion::Check(_) | ConnectionAssertion::Rule(_) => return,
    };
    judged.judged_count += checked.count;
    for violation in checked.violations {
        report(case, rule, revision, index, violation, judged);
    }
}

fn report<T>(
    case: &Case,
    rule: &Rule<T>,
    revision: Revision,
    index: &ConnectionIndex<'_>,
    violation: Violation,
    judged: &mut Judgement,
) {
    let Some((requirement, verdict)) =
        requirement_and_verdict(case, revision, rule.requirement.as_deref(), rule.verdict)
    else {
        return;
    };
    if !matches!(verdict, Verdict::Fail | Verdict::Warn) {
        judged.notes.extend(rule.message.clone());
        return;
    }
    let entries = &index.record.entries;
    if violation.positions.iter().any(|position| entries.get(*position).is_some_and(|entry| entry.is_shortened())) {
        judged.reason = Some(SHORTENED.to_owned());
        return;
    }
    add_finding(
        &mut judged.findings,
        Finding {
            message: rule.message.clone().unwrap_or_else(|| format!("not the case: {}", case.title)),
            expected: case.title.clone(),
            actual: violation.actual,
            value: violation.value.as_ref().and_then(shown_value),
            diff: violation.diff,
            subjects: if violation.subject.is_empty() { vec![index.label.to_owned()] } else { vec![violation.subject] },
            evidence: evidence_of(&index.record.entries, &violation.positions),
            fix: case.fix.clone(),
            origin: origin(index, &violation.positions),
            ..Finding::new(requirement, revision, verdict)
        },
    );
}

/// The line itself, if it does not conform to a schema.
fn line_violation(schema: &LazySchema, line: &Value) -> Option<String> {
    let text = line.get("text").and_then(Value::as_str).unwrap_or_default();
    let damage =
        line.get("framing-error").and_then(Value::as_str).map(|damage| format!(" ({damage})")).unwrap_or_default();
    (!schema.fits(line)).then(|| format!("the line `{}`{damage}", shortened(text, 160)))
}

/// Whether a value conforms to a schema; `None` if all that violates it are strings that the client sent.
/// Sets the difference between what the schema wants of a member and what is there.
fn schema_result(schema: &LazySchema, selected: &Selected<'_>, diff: &mut Option<String>) -> Option<ValueResult> {
    let mut errors = schema.validator().iter_errors(selected.value).peekable();
    if errors.peek().is_none() {
        return Some(ValueResult::Conforms);
    }
    let error = errors.find(|error| !is_echo_of_argument(error, selected.request))?;
    let at = error.instance_path().to_string();
    let text = shortened(&error.to_string(), 240);
    let actual = if at.is_empty() { text } else { format!("at `{at}`: {text}") };
    *diff = member_diff(&error);
    Some(ValueResult::Violates(actual))
}

/// Whether a string has the wrong form because the server repeats a made-up argument of the request.
fn is_echo_of_argument(error: &ValidationError<'_>, request: Option<&Value>) -> bool {
    let is_about_form = matches!(
        error.kind(),
        ValidationErrorKind::Pattern { .. } | ValidationErrorKind::Format { .. } | ValidationErrorKind::AnyOf { .. }
    );
    let arguments = request.and_then(|request| request.pointer("/params/arguments")).and_then(Value::as_object);
    is_about_form
        && arguments.is_some_and(|arguments| {
            arguments.values().any(|sent| sent.is_string() && sent == error.instance().as_ref())
        })
}

/// Whether a path leads to what a result of this type has: an interim result has other members than the final one.
fn is_path_into(path: &str, result: &Value) -> bool {
    const OF_INPUT_REQUIRED: [&str; 5] = ["_meta", "inputRequests", "requestState", "resultType", "**"];
    const OF_CALL_RESULT: [&str; 3] = ["content", "structuredContent", "isError"];
    let first = path.split('/').nth(1).unwrap_or_default();
    match result.get("resultType").and_then(Value::as_str) {
        Some("input_required") => OF_INPUT_REQUIRED.contains(&first),
        Some("task") => !OF_CALL_RESULT.contains(&first),
        _ => true,
    }
}

/// The execution whose message caused what is at these positions: the one sent there, or the last one before.
fn origin(index: &ConnectionIndex<'_>, positions: &[usize]) -> Option<usize> {
    let first = *positions.iter().min()?;
    let mark_at = |at: usize| match index.record.entries.get(at)?.event {
        Event::Sent { step_id, .. } => Some(step_id.map(|step_id| step_id.execution)),
        _ => None,
    };
    let own = positions.iter().find_map(|at| mark_at(*at));
    own.or_else(|| (0..first).rev().find_map(mark_at)).flatten()
}

/// The HTTP exchange, or the values in it, if a case watches it.
fn select_http<'e>(watch: &WatchedValues, methods: &Methods, exchange: &'e HttpExchange) -> Vec<Selected<'e>> {
    let value = &exchange.value;
    let method = value.pointer("/request/message/method").and_then(Value::as_str);
    if !methods.is_any() && !method.is_some_and(|method| methods.include(method)) {
        return Vec::new();
    }
    let label = method.or_else(|| value["request"]["method"].as_str()).unwrap_or_default();
    let places = watch.path.as_ref().map_or_else(|| vec![(String::new(), value)], |at| at.find(value));
    let selected =
        |(_, value)| Selected { value, label: label.to_owned(), positions: exchange.positions.clone(), request: None };
    places.into_iter().map(selected).collect()
}

/// The messages, or the values in them, that a case watches.
fn select<'a>(watch: &WatchedValues, era: Era, index: &ConnectionIndex<'a>) -> Vec<Selected<'a>> {
    let mut selection = ValueSelection { watch, era, found: Vec::new() };
    match &watch.kind {
        WatchKind::Message => {
            for (position, entry) in index.record.entries.iter().enumerate() {
                if let Some(value) = entry.received() {
                    selection.add(value, "", &[position], None);
                }
            }
        }
        WatchKind::Response(_) | WatchKind::Result(_) | WatchKind::Error(_) => selection.add_responses(index),
        WatchKind::ClientRequest(_) => selection.add_client_requests(index),
        WatchKind::Request(_) | WatchKind::Notification(_) => selection.add_requests_and_notifications(index),
        WatchKind::Line | WatchKind::Exchange(_) => {}
    }
    selection.found
}

/// The values that a case watches, as they are found.
struct ValueSelection<'w, 'a> {
    watch: &'w WatchedValues,
    era: Era,
    found: Vec<Selected<'a>>,
}

impl<'a> ValueSelection<'_, 'a> {
    fn is_wanted(&self, method: &str) -> bool {
        self.watch.kind.methods().include(method)
    }

    /// Adds a value, or the places in it that the case watches.
    fn add(&mut self, root: &'a Value, label: &str, positions: &[usize], request: Option<&'a Value>) {
        let whole = || vec![(String::new(), root)];
        for (pointer, value) in self.watch.path.as_ref().map_or_else(whole, |path| path.find(root)) {
            let label = value_label(label, &pointer, root, value);
            self.found.push(Selected { value, label, positions: positions.to_vec(), request });
        }
    }

    fn add_responses(&mut self, index: &ConnectionIndex<'a>) {
        if matches!(self.watch.kind, WatchKind::Response(_)) {
            for exchange in &index.exchanges {
                exchange.responses.iter().for_each(|response| self.add_response(exchange, *response));
            }
        } else {
            for (at, number) in &index.distinct_responses {
                let exchange = &index.exchanges[*at];
                self.add_response(exchange, exchange.responses[*number]);
            }
        }
        // An error without an id belongs to no request, and is an error all the same.
        if self.watch.kind.methods().is_any() && !matches!(self.watch.kind, WatchKind::Result(_)) {
            for &(position, response) in &index.strays {
                if let Some(root) = self.watched_part(response) {
                    self.add(root, "", &[position], None);
                }
            }
        }
    }

    fn add_response(&mut self, exchange: &Exchange<'a>, (position, response): (usize, &'a Value)) {
        if !self.is_wanted(method_of(exchange.request)) {
            return;
        }
        if let Some(root) = self.watched_part(response).filter(|root| self.may_have_path(root)) {
            self.add(root, &label_of(exchange.request), &[exchange.sent, position], Some(exchange.request));
        }
    }

    /// The part of a response that the case is about.
    fn watched_part(&self, response: &'a Value) -> Option<&'a Value> {
        match &self.watch.kind {
            WatchKind::Result(_) => response.get("result"),
            WatchKind::Error(_) => response.get("error"),
            _ => Some(response),
        }
    }

    /// Whether what the case is about in a value is a member that a result of its type has.
    fn may_have_path(&self, root: &Value) -> bool {
        self.era != Era::Stateless
            || !matches!(self.watch.kind, WatchKind::Result(_))
            || self.watch.path.as_ref().is_none_or(|path| is_path_into(path.as_str(), root))
    }

    fn add_client_requests(&mut self, index: &ConnectionIndex<'a>) {
        for (position, message) in index.received() {
            match MessageKind::of(message) {
                MessageKind::Request { method, .. }
                    if self.is_wanted(method) && !method.starts_with("notifications/") =>
                {
                    self.add(message, method, &[position], None);
                }
                _ => {}
            }
        }
        for exchange in &index.exchanges {
            for (position, response) in &exchange.responses {
                for (_, request) in response.get("result").into_iter().flat_map(input_requests) {
                    let method = method_of(request);
                    if self.is_wanted(method) {
                        self.add(request, method, &[exchange.sent, *position], Some(exchange.request));
                    }
                }
            }
        }
    }

    fn add_requests_and_notifications(&mut self, index: &ConnectionIndex<'a>) {
        let kind = &self.watch.kind;
        for (position, message) in index.received() {
            let method = match MessageKind::of(message) {
                MessageKind::Request { method, .. } if matches!(kind, WatchKind::Request(_)) => method,
                MessageKind::Notification { method } if matches!(kind, WatchKind::Notification(_)) => method,
                // A notification that carries an id by mistake is judged as a notification.
                MessageKind::Request { method, .. } if method.starts_with("notifications/") => method,
                _ => continue,
            };
            if self.is_wanted(method) {
                self.add(message, method, &[position], None);
            }
        }
    }
}

/// How a finding names a value: by its tool, if it belongs to one, and by its pointer.
fn value_label(label: &str, pointer: &str, root: &Value, value: &Value) -> String {
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
