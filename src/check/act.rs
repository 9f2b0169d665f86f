//! Judges an acting case: what came back for each of its steps, against the rows of the step.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::evidence::evidence_of;
use super::{Judged, Pass, add, compare, verdict_of};
use crate::case::{Act, Action, Case, Delivery, Expected, ExpectedResponse as Row, Outcome};
use crate::spec::Revision;
use crate::transcript::{Event, Exchange, HttpExchange, Mark, ShutdownStep, Transcript, asks_for_input, messages};
use crate::verdict::{Finding, Verdict};
use crate::wire::{Frame, Id, Kind, same_id};

/// One thing that was sent for a step, and what came of it.
struct Answer<'a> {
    sent: usize,
    outcome: Outcome,
    position: Option<usize>,
    response: Option<&'a Value>,
    /// The HTTP exchange that it came in.
    http: Option<&'a HttpExchange>,
    /// Whether the step made the HTTP request itself, so that nothing of the answer is left to be read leniently.
    own: bool,
}

impl Answer<'_> {
    /// The HTTP status.
    fn status(&self) -> Option<u16> {
        self.http?.value.get("status")?.as_u64().and_then(|status| u16::try_from(status).ok())
    }

    /// Whether anything came back.
    fn came(&self) -> bool {
        self.outcome != Outcome::NoResponse || self.own && self.status().is_some()
    }
}

/// Judges an acting case by everything that its passes recorded.
#[must_use]
pub fn act(case: &Case, body: &Act, revision: Revision, passes: &[Pass]) -> Judged {
    let mut judged = Judged::skip("nothing was sent");
    for pass in passes {
        let one = judge_pass(case, body, revision, pass);
        judged.verdict = if judged.verdict == Verdict::Skip && judged.seen == 0 {
            one.verdict
        } else {
            judged.verdict.join(one.verdict)
        };
        judged.seen += one.seen;
        if matches!(judged.verdict, Verdict::Skip | Verdict::Error) {
            judged.reason = one.reason.or(judged.reason.take());
        } else {
            judged.reason = None;
        }
        for note in one.notes {
            if !judged.notes.contains(&note) {
                judged.notes.push(note);
            }
        }
        for finding in one.findings {
            add(&mut judged.findings, finding);
        }
    }
    judged
}

fn judge_pass(case: &Case, body: &Act, revision: Revision, pass: &Pass) -> Judged {
    let record = &pass.transcript;
    if let Some(void) = &pass.void {
        return Judged::skip(void.clone());
    }
    if let Some(bound) = crossed_bound(record) {
        return Judged::error(bound);
    }
    let exchanges = record.exchanges();
    let strays = record.strays_beside(&exchanges);
    let http = record.http_exchanges();
    let mut judged = Judged { verdict: Verdict::Pass, ..Judged::skip("") };
    judged.reason = None;
    let mut answered = false;
    for (index, step) in body.steps.iter().enumerate() {
        if step.revisions.is_some_and(|revisions| !revisions.contains(revision)) {
            continue;
        }
        let mark = Mark { pass: pass.number, step: index };
        let mut answers = if step.is_http() {
            own_answers(record, &http, mark)
        } else {
            answers(record, &exchanges, &strays, &http, &step.action, mark)
        };
        if let Action::Request { delivery: Delivery::Polled(poll), .. } = &step.action {
            // The answers before the last are on the way to it.
            answers.drain(..answers.len().saturating_sub(1));
            let last = answers.last().and_then(|answer| answer.response);
            if last.is_some_and(|response| response.get("result").is_some() && !poll.until.fits(response)) {
                if let (Some(otherwise), Some(answer)) = (&poll.otherwise, answers.last()) {
                    // As a step that no row speaks for.
                    let otherwise = Some(otherwise.clone());
                    let vain = Expected::Listed { responses: Vec::new(), otherwise, control: false };
                    judge_step(case, &vain, revision, pass, answer, &mut judged);
                    judged.seen += 1;
                    answered = true;
                    continue;
                }
                let slow = pass.trouble.clone().unwrap_or_else(|| "what was polled for did not come".to_owned());
                set_aside(&mut judged, Verdict::Skip, slow);
                return judged;
            }
        }
        for answer in answers {
            answered |= answer.came();
            judged.seen += usize::from(answer.came());
            judge_step(case, step.action.expected(), revision, pass, &answer, &mut judged);
            // What does not apply, or proves nothing, is not judged further.
            if matches!(judged.verdict, Verdict::Skip | Verdict::Error) && judged.findings.is_empty() {
                return judged;
            }
        }
    }
    match &pass.trouble {
        // What was not carried out cannot be compared.
        Some(trouble) => set_aside(&mut judged, Verdict::Skip, trouble.clone()),
        None => {
            for together in &body.across_steps {
                compare::together(case, body, together, revision, pass, &mut judged);
            }
        }
    }
    if !answered && judged.verdict == Verdict::Pass {
        return Judged::error("nothing came back, so nothing is proved");
    }
    judged
}

/// The bound of ours that a server crossed: what it answered cannot be told.
fn crossed_bound(record: &Transcript) -> Option<String> {
    record.entries.iter().find_map(|entry| match &entry.event {
        Event::Received(Frame { value: Err(damage), .. }) if damage.is_our_bound() => {
            Some(format!("a line of the server {}, so what it answered cannot be told", damage.describe()))
        }
        Event::Overflow => Some("the server wrote more than is kept and was cut off".to_owned()),
        _ => None,
    })
}

fn judge_step(
    case: &Case,
    expected: &Expected,
    revision: Revision,
    pass: &Pass,
    answer: &Answer<'_>,
    judged: &mut Judged,
) {
    let in_force = |row: &&Row| row.revisions.is_none_or(|revisions| revisions.contains(revision));
    let rows: Vec<&Row> = expected.responses().iter().filter(in_force).collect();
    let row = rows.iter().find(|row| fits(row, answer));
    let (requirement, verdict, say) = match row {
        Some(row) => {
            let verdict = row.verdict.unwrap_or(Verdict::Pass);
            match verdict {
                Verdict::Pass => judged.notes.extend(row.message.clone()),
                Verdict::Skip | Verdict::Error => {
                    set_aside(judged, verdict, row.message.clone().unwrap_or_else(|| describe(answer)));
                }
                Verdict::Fail | Verdict::Warn => {}
            }
            if matches!(verdict, Verdict::Pass | Verdict::Skip | Verdict::Error) {
                return;
            }
            (row.requirement.as_deref(), Some(verdict), row.message.clone())
        }
        None if rows.is_empty() && expected.otherwise().is_none() => {
            if expected.is_control()
                && !matches!(
                    answer.outcome,
                    Outcome::Result | Outcome::Success | Outcome::ToolError | Outcome::InputRequired
                )
            {
                let reason = format!("the control request was not served ({}), so nothing is proved", describe(answer));
                set_aside(judged, Verdict::Error, reason);
            }
            return;
        }
        None => {
            let otherwise = expected.otherwise();
            (
                otherwise.and_then(|o| o.requirement.as_deref()),
                otherwise.and_then(|o| o.verdict),
                otherwise.and_then(|o| o.message.clone()),
            )
        }
    };
    let Some((requirement, verdict)) = verdict_of(case, revision, requirement, verdict) else { return };
    if !matches!(verdict, Verdict::Fail | Verdict::Warn) {
        set_aside(judged, verdict, say.unwrap_or_else(|| describe(answer)));
        return;
    }
    judged.verdict = judged.verdict.join(verdict);
    let expected = expectation(&rows, &case.title);
    let shown = |at: usize| {
        // Each message stands there by itself as well, so its HTTP request is left out where it does not matter.
        let event = &pass.transcript.entries[at].event;
        !matches!(event, Event::HttpRequest(_) | Event::HttpHead(_) | Event::HttpEnd(_)) || case.speaks_of_http()
    };
    let positions: Vec<usize> = (0..pass.transcript.entries.len())
        .filter(|at| !matches!(pass.transcript.entries[*at].event, Event::Stderr(_)) && shown(*at))
        .collect();
    add(
        &mut judged.findings,
        Finding {
            message: say.unwrap_or_else(|| format!("expected {expected}, got {}", describe(answer))),
            expected,
            actual: describe(answer),
            value: answer.response.cloned(),
            subjects: pass.subjects(),
            evidence: evidence_of(&pass.transcript.entries, &around(&positions, answer)),
            fix: case.fix.clone(),
            ..Finding::new(requirement, revision, verdict)
        },
    );
}

/// Takes a pass back that an answer leaves without proof; a breach that was seen stands.
fn set_aside(judged: &mut Judged, verdict: Verdict, reason: String) {
    if judged.verdict == Verdict::Pass {
        judged.verdict = verdict;
        judged.reason = Some(reason);
    }
}

/// The positions that prove an answer: the messages of its pass, nearest to it first where there are many.
fn around(positions: &[usize], answer: &Answer<'_>) -> Vec<usize> {
    if positions.len() <= 12 {
        return positions.to_vec();
    }
    if let Some(exchange) = answer.http.filter(|_| answer.own) {
        return exchange.positions.clone();
    }
    let from = positions.iter().position(|at| *at == answer.sent).unwrap_or(0);
    let mut near: Vec<usize> = positions.iter().skip(from).take(10).copied().collect();
    near.extend(answer.position);
    near
}

fn answers<'a>(
    record: &'a Transcript,
    exchanges: &[Exchange<'a>],
    strays: &[(usize, &'a Value)],
    http: &'a [HttpExchange],
    action: &Action,
    mark: Mark,
) -> Vec<Answer<'a>> {
    let mut answers = Vec::new();
    let mut claimed = Vec::new();
    for (position, entry) in record.entries.iter().enumerate() {
        let Event::Sent { mark: Some(marked), .. } = &entry.event else { continue };
        if *marked != mark {
            continue;
        }
        // A batch in a raw line is there for what comes without an id; its answers have ids of their own.
        let raw_batch = matches!(action, Action::Raw { .. }) && entry.sent().is_some_and(Value::is_array);
        let mine = |exchange: &&Exchange<'_>| exchange.sent == position && !raw_batch;
        let own: Vec<&Exchange<'_>> = exchanges.iter().filter(mine).collect();
        for exchange in &own {
            answers.push(match exchange.responses.first() {
                Some((at, response)) => answered(position, *at, response),
                None => unanswered(record, position),
            });
        }
        if own.is_empty() || own.iter().all(|exchange| exchange.responses.is_empty()) {
            // What carries no usable id is answered by a response without one, if at all.
            let stray = strays.iter().find(|(at, response)| {
                *at > position && !claimed.contains(at) && response.get("id").is_none_or(Id::is_null)
            });
            if let Some((at, response)) = stray {
                claimed.push(*at);
                answers.truncate(answers.len() - own.len());
                answers.push(answered(position, *at, response));
            } else if own.is_empty() {
                let empty = (position..record.entries.len()).find_map(|at| {
                    let value = record.entries[at].received()?;
                    (value.is_null() || value.as_array().is_some_and(Vec::is_empty)).then_some((at, value))
                });
                answers.push(match empty {
                    Some((at, value)) => Answer {
                        sent: position,
                        outcome: Outcome::Malformed,
                        position: Some(at),
                        response: Some(value),
                        http: None,
                        own: false,
                    },
                    None => unanswered(record, position),
                });
            }
        }
    }
    if let Some(step) = record.entries.iter().enumerate().find_map(|(at, entry)| match entry.event {
        Event::Shutdown { step, .. } => Some((at, step)),
        _ => None,
    }) && answers.is_empty()
    {
        let outcome = match step.1 {
            ShutdownStep::AlreadyExited | ShutdownStep::Disconnected => Outcome::Closed,
            ShutdownStep::StdinClosed => Outcome::StdinClosed,
            ShutdownStep::Sigterm => Outcome::Sigterm,
            ShutdownStep::Sigkill => Outcome::Sigkill,
        };
        answers.push(Answer { sent: step.0, outcome, position: Some(step.0), response: None, http: None, own: false });
    }
    for answer in &mut answers {
        answer.http = http.iter().rev().find(|exchange| exchange.sent == answer.sent);
    }
    answers
}

/// What came of the HTTP requests that a step made itself.
fn own_answers<'a>(record: &Transcript, http: &'a [HttpExchange], mark: Mark) -> Vec<Answer<'a>> {
    http.iter().filter(|exchange| exchange.mark == Some(mark)).map(|exchange| own_answer(record, exchange)).collect()
}

fn own_answer<'a>(record: &Transcript, exchange: &'a HttpExchange) -> Answer<'a> {
    let value = &exchange.value;
    let asked = value.pointer("/request/message/id");
    let events = value.pointer("/body/events").and_then(Value::as_array).into_iter().flatten();
    let carried = value.pointer("/body/message").into_iter().chain(events.filter_map(|event| event.get("message")));
    let mut responses = carried
        .flat_map(messages)
        .filter(|message| matches!(Kind::of(message), Kind::Response { .. }))
        .collect::<Vec<_>>();
    let same = |response: &&Value| match (asked, response.get("id")) {
        (Some(asked), Some(id)) => same_id(asked, id),
        _ => false,
    };
    // Of several, the one under the id of the request is its answer.
    if let Some(at) = responses.iter().position(same) {
        responses.swap(0, at);
    }
    let response = responses.first().copied();
    let status = value.get("status").and_then(Value::as_u64);
    let timed_out =
        || value.pointer("/body/trouble").and_then(Value::as_str).is_some_and(|t| t.starts_with("no answer"));
    let outcome = match (response, status) {
        (Some(response), _) => classify(response),
        (None, Some(400..)) => Outcome::HttpError,
        (None, Some(_)) => Outcome::NoResponse,
        (None, None) if timed_out() => Outcome::NoResponse,
        (None, None) => Outcome::Closed,
    };
    let position = exchange.positions.iter().copied().filter(|at| *at < record.entries.len()).max();
    Answer { sent: exchange.sent, outcome, position, response, http: Some(exchange), own: true }
}

fn answered(sent: usize, position: usize, response: &Value) -> Answer<'_> {
    Answer {
        sent,
        outcome: classify(response),
        position: Some(position),
        response: Some(response),
        http: None,
        own: false,
    }
}

fn unanswered(record: &Transcript, sent: usize) -> Answer<'_> {
    if let Some((at, status)) = http_status(record, sent)
        && status >= 400
    {
        return Answer {
            sent,
            outcome: Outcome::HttpError,
            position: Some(at),
            response: None,
            http: None,
            own: false,
        };
    }
    let closed = (sent..record.entries.len())
        .find(|at| matches!(record.entries[*at].event, Event::Closed | Event::Exited { .. } | Event::Overflow));
    let outcome = if closed.is_some() { Outcome::Closed } else { Outcome::NoResponse };
    Answer { sent, outcome, position: closed, response: None, http: None, own: false }
}

/// The status that answered the HTTP request of a message, with its position.
fn http_status(record: &Transcript, sent: usize) -> Option<(usize, u16)> {
    let message = &record.entries[sent];
    let number = record.entries[sent..].iter().find_map(|entry| match &entry.event {
        Event::HttpRequest(request) if request.carries.as_ref().is_some_and(|own| Arc::ptr_eq(own, message)) => {
            Some(request.number)
        }
        _ => None,
    })?;
    let heads = record.entries.iter().enumerate().skip(sent);
    heads.rev().find_map(|(at, entry)| match &entry.event {
        Event::HttpHead(head) if head.number == number => Some((at, head.status)),
        _ => None,
    })
}

/// What kind of outcome a response is.
pub(super) fn classify(response: &Value) -> Outcome {
    debug_assert!(matches!(Kind::of(response), Kind::Response { .. }));
    match (response.get("result"), response.get("error")) {
        (Some(result @ Value::Object(_)), None) => {
            if asks_for_input(result) {
                Outcome::InputRequired
            } else if result.get("isError") == Some(&Value::Bool(true)) {
                Outcome::ToolError
            } else {
                Outcome::Success
            }
        }
        (None, Some(Value::Object(_))) => Outcome::Error,
        _ => Outcome::Malformed,
    }
}

fn fits(row: &Row, answer: &Answer<'_>) -> bool {
    let of_kind = row.outcome.is_empty()
        || row.outcome.contains(&answer.outcome)
        || (row.outcome.contains(&Outcome::Result)
            && matches!(answer.outcome, Outcome::Success | Outcome::ToolError | Outcome::InputRequired))
        || (row.outcome.contains(&Outcome::Success) && answer.outcome == Outcome::InputRequired);
    let of_status = row.status.is_empty()
        || answer.status().is_some_and(|status| row.status.iter().any(|wanted| wanted.fits(status)));
    let of_exchange =
        row.exchange.as_ref().is_none_or(|schema| answer.http.is_some_and(|http| schema.fits(&http.value)));
    if !of_status || !of_exchange {
        return false;
    }
    // A server that refuses by the status alone need not say in JSON-RPC what it says in HTTP.
    if answer.outcome == Outcome::HttpError && !answer.own {
        return row.outcome.contains(&Outcome::HttpError)
            || row.outcome.contains(&Outcome::Error)
            || !row.code.is_empty();
    }
    let of_code = row.code.is_empty()
        || answer
            .response
            .and_then(|response| response.pointer("/error/code"))
            .and_then(Value::as_i64)
            .is_some_and(|code| row.code.contains(&code));
    let of_shape =
        row.schema.as_ref().is_none_or(|schema| answer.response.is_some_and(|response| schema.fits(response)));
    of_kind && of_code && of_shape
}

/// The answers that pass, in words.
fn expectation(rows: &[&Row], title: &str) -> String {
    let mut words = Vec::new();
    for row in rows.iter().filter(|row| row.verdict.is_none_or(|verdict| verdict == Verdict::Pass)) {
        let mut text = row.outcome.iter().map(|outcome| name(*outcome)).collect::<Vec<_>>().join(" or ");
        if !row.code.is_empty() {
            let codes: Vec<String> = row.code.iter().map(i64::to_string).collect();
            if text.is_empty() {
                text.push_str("an error");
            }
            let _infallible = write!(text, " with code {}", codes.join(" or "));
        }
        if !row.status.is_empty() {
            let wanted: Vec<String> = row.status.iter().map(ToString::to_string).collect();
            let before = if text.is_empty() { "" } else { " with " };
            let _infallible = write!(text, "{before}HTTP status {}", wanted.join(" or "));
        }
        if !text.is_empty() && !words.contains(&text) {
            words.push(text);
        }
    }
    if words.is_empty() { title.to_owned() } else { words.join(", or ") }
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Result => "a result",
        Outcome::Success => "a result without isError",
        Outcome::ToolError => "a result with isError true",
        Outcome::InputRequired => "a result that asks for input",
        Outcome::Error => "an error",
        Outcome::Malformed => "a malformed response",
        Outcome::NoResponse => "no answer",
        Outcome::HttpError => "an HTTP error status without a message",
        Outcome::Closed => "a closed connection",
        Outcome::StdinClosed => "an end of the process when its input is closed",
        Outcome::Sigterm => "an end of the process on SIGTERM",
        Outcome::Sigkill => "a process that has to be killed",
    }
}

/// What came, in words, with the code and the message of an error.
fn describe(answer: &Answer<'_>) -> String {
    let words = described(answer);
    match answer.http.filter(|_| answer.own) {
        None => words,
        Some(http) => match (answer.status(), answer.outcome) {
            (Some(status), Outcome::NoResponse | Outcome::HttpError) => {
                let text = http.value.pointer("/body/text").and_then(Value::as_str).unwrap_or_default();
                let kind =
                    http.value.pointer("/headers/content-type").and_then(Value::as_str).unwrap_or("no content type");
                format!("HTTP status {status} ({kind}): {}", shortened(text.trim(), 160))
            }
            (Some(status), _) => format!("HTTP status {status} with {words}"),
            (None, _) => {
                let trouble = http.value.pointer("/body/trouble").and_then(Value::as_str);
                trouble.map_or(words, |trouble| shortened(trouble, 160))
            }
        },
    }
}

fn described(answer: &Answer<'_>) -> String {
    let error = answer.response.and_then(|response| response.get("error"));
    match (answer.outcome, error) {
        (Outcome::Error, Some(error)) => {
            let code = error.get("code").map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            format!("an error with {code}: {}", shortened(message, 160))
        }
        (outcome, _) => name(outcome).to_owned(),
    }
}

/// The beginning of a text, in one line.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    let mut short: String = text.chars().take(longest).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.replace('\n', " ")
}
