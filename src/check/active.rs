//! Judges an active case: compares the response to each of its steps with what the step expects.

use std::sync::Arc;

use serde_json::Value;

use super::across_steps::judge_comparisons;
use super::ended_session::SESSION_ENDED;
use super::evidence::evidence_of;
use super::execution::Execution;
use super::judgement::{Judgement, SHORTENED, add_finding, requirement_and_verdict, shown_value};
use super::step_exchange::{StepExchange, describe, expectation};
use crate::case::{Action, Active, Case, Comparison, Delivery, Expected, ExpectedResponse, Outcome, Poll};
use crate::spec::Revision;
use crate::transcript::{Event, Exchange, HttpExchange, ShutdownStep, StepId, Transcript, is_input_required, messages};
use crate::verdict::{Finding, Verdict};
use crate::wire::{Frame, MessageKind, is_lost_id, same_id};

/// Judges an active case by the records of all its executions.
#[must_use]
pub fn judge_active(case: &Case, body: &Active, revision: Revision, executions: &[Execution]) -> Judgement {
    let mut judged = Judgement::skip("nothing was sent");
    // A second execution of a case that compares lists with those of discovery only shows whether they changed since.
    let is_repeated = body.across_steps.iter().any(|together| together.check == Comparison::SameSetAsShared);
    let (executions, repetition) = match executions {
        [first, second, ..] if is_repeated => (std::slice::from_ref(first), Some(second)),
        _ => (executions, None),
    };
    for execution in executions {
        let one = judge_execution(case, body, revision, (execution, repetition));
        judged.verdict = if judged.verdict == Verdict::Skip && judged.judged_count == 0 {
            one.verdict
        } else {
            judged.verdict.join(one.verdict)
        };
        judged.judged_count += one.judged_count;
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
            add_finding(&mut judged.findings, finding);
        }
    }
    judged
}

/// Leaves the last of the exchanges of a step that provides input: the results before it request that input. Returns
/// whether the last one still does.
fn keeps_requesting_input(action: &Action, exchanges_of_step: &mut Vec<StepExchange<'_>>) -> bool {
    let Action::Request { delivery: Delivery::WithInput, .. } = action else { return false };
    exchanges_of_step.drain(..exchanges_of_step.len().saturating_sub(1));
    exchanges_of_step.last().is_some_and(|last| last.outcome == Outcome::InputRequired)
}

/// Judges an execution, which may have a repetition on another connection.
fn judge_execution(
    case: &Case,
    body: &Active,
    revision: Revision,
    (execution, repetition): (&Execution, Option<&Execution>),
) -> Judgement {
    let record = &execution.transcript;
    if let Some(reason) = &execution.not_applicable {
        return Judgement::skip(reason.clone());
    }
    if let Some(reason) = exceeded_limit(record) {
        return Judgement::error(reason);
    }
    let exchanges = record.exchanges();
    let strays = record.unmatched_responses_among(&exchanges);
    let http = record.http_exchanges();
    let mut judged = Judgement { verdict: Verdict::Pass, ..Judgement::skip("") };
    judged.reason = None;
    let mut has_response = false;
    let mut silent_method = None;
    let session_end = execution.end_of_session();
    for (index, step) in body.steps.iter().enumerate() {
        if step.revisions.is_some_and(|revisions| !revisions.contains(revision)) {
            continue;
        }
        let step_id = StepId { execution: execution.number, step: index };
        let mut exchanges_of_step = if step.is_http() {
            http_step_exchanges(record, &http, step_id)
        } else {
            step_exchanges(record, &exchanges, &strays, &http, &step.action, step_id)
        };
        if let Action::Request { delivery: Delivery::Polled(poll), .. } = &step.action {
            // Only the last response is judged; the others are those that were polled before it.
            exchanges_of_step.drain(..exchanges_of_step.len().saturating_sub(1));
            let last = exchanges_of_step.last().and_then(|step_exchange| step_exchange.response);
            if last.is_some_and(|response| response.get("result").is_some() && !poll.until.fits(response)) {
                if !judge_unfinished(case, poll, revision, execution, exchanges_of_step.last(), &mut judged) {
                    return judged;
                }
                has_response = true;
                continue;
            }
        }
        if keeps_requesting_input(&step.action, &mut exchanges_of_step) {
            judged.withdraw_pass(Verdict::Skip, "the server keeps requesting input");
            return judged;
        }
        // Nothing is known of an answer that came in the next session, or not at all.
        let is_before = |end: usize| exchanges_of_step.iter().all(|one| one.position.is_some_and(|at| at < end));
        if session_end.is_some_and(|end| !is_before(end)) {
            return Judgement::error(SESSION_ENDED);
        }
        for step_exchange in exchanges_of_step {
            has_response |= step_exchange.is_response();
            silent_method = silent_method.or_else(|| step_exchange.silent_method(execution).map(str::to_owned));
            judged.judged_count += usize::from(step_exchange.is_response());
            judge_step(case, step.action.expected(), revision, execution, &step_exchange, &mut judged);
            // A case that does not apply, or proves nothing, is not judged further.
            if matches!(judged.verdict, Verdict::Skip | Verdict::Error) && judged.findings.is_empty() {
                return judged;
            }
        }
    }
    if session_end.is_some() {
        return Judgement::error(SESSION_ENDED);
    }
    match (&execution.not_carried_out, silent_method.filter(|_| !body.across_steps.is_empty())) {
        // Steps that were not carried out, or are never answered, cannot be compared.
        (Some(reason), _) => judged.withdraw_pass(Verdict::Skip, reason.clone()),
        (None, Some(method)) => judged.withdraw_pass(Verdict::Skip, answers_no(&method)),
        (None, None) => judge_comparisons(case, body, revision, (execution, repetition), &mut judged),
    }
    if !has_response && judged.verdict == Verdict::Pass {
        return Judgement::error("the server did not respond, so nothing is proved");
    }
    judged
}

/// Judges a step whose last response is not the one that was polled for; `false` if that says nothing.
fn judge_unfinished(
    case: &Case,
    poll: &Poll,
    revision: Revision,
    execution: &Execution,
    last: Option<&StepExchange<'_>>,
    judged: &mut Judgement,
) -> bool {
    let (Some(otherwise), Some(step_exchange)) = (&poll.otherwise, last) else {
        let slow = || "the result that was polled for did not arrive".to_owned();
        judged.withdraw_pass(Verdict::Skip, execution.not_carried_out.clone().unwrap_or_else(slow));
        return false;
    };
    // Judged like a step whose response matches no expectation.
    let otherwise = Some(otherwise.clone());
    let unexpected = Expected::Listed { responses: Vec::new(), otherwise, control: false };
    judge_step(case, &unexpected, revision, execution, step_exchange, judged);
    judged.judged_count += 1;
    true
}

/// The limit of the recorder that the server exceeded, so that its responses are unknown.
fn exceeded_limit(record: &Transcript) -> Option<String> {
    record.entries.iter().find_map(|entry| match &entry.event {
        Event::Received(Frame { value: Err(damage), .. }) if damage.is_own_limit() => {
            Some(format!("a line of the server {}, so its responses are unknown", damage.describe()))
        }
        Event::Overflow => {
            Some("the server wrote more than the record can hold, so its responses are unknown".to_owned())
        }
        _ => None,
    })
}

fn judge_step(
    case: &Case,
    expected: &Expected,
    revision: Revision,
    execution: &Execution,
    step_exchange: &StepExchange<'_>,
    judged: &mut Judgement,
) {
    let applies = |row: &&ExpectedResponse| row.revisions.is_none_or(|revisions| revisions.contains(revision));
    let rows: Vec<&ExpectedResponse> = expected.responses().iter().filter(applies).collect();
    let row = rows.iter().find(|row| matches_row(row, step_exchange));
    let is_judged = !rows.is_empty() || expected.otherwise().is_some() || expected.is_control();
    if is_judged
        && row.is_none_or(|row| !row.outcome.contains(&Outcome::NoResponse))
        && let Some(method) = step_exchange.silent_method(execution)
    {
        judged.withdraw_pass(Verdict::Skip, answers_no(method));
        return;
    }
    let (requirement, verdict, message, subject) = match row {
        Some(row) => {
            let verdict = row.verdict.unwrap_or(Verdict::Pass);
            match verdict {
                Verdict::Pass => judged.notes.extend(row.message.clone()),
                Verdict::Skip | Verdict::Error => {
                    judged.withdraw_pass(verdict, row.message.clone().unwrap_or_else(|| describe(step_exchange)));
                }
                Verdict::Fail | Verdict::Warn => {}
            }
            if matches!(verdict, Verdict::Pass | Verdict::Skip | Verdict::Error) {
                return;
            }
            (row.requirement.as_deref(), Some(verdict), row.message.clone(), None)
        }
        None if rows.is_empty() && expected.otherwise().is_none() => {
            if expected.is_control() {
                judge_control(step_exchange, judged);
            }
            return;
        }
        None => {
            let o = expected.otherwise();
            let subject = o.and_then(|o| o.subject.clone());
            let requirement = o.and_then(|o| o.requirement.as_deref());
            (requirement, o.and_then(|o| o.verdict), o.and_then(|o| o.message.clone()), subject)
        }
    };
    let Some((requirement, verdict)) = requirement_and_verdict(case, revision, requirement, verdict) else { return };
    if may_relay_client_error(execution, step_exchange) {
        judged.withdraw_pass(Verdict::Skip, CLIENT_ERROR_RELAYED);
        return;
    }
    if !matches!(verdict, Verdict::Fail | Verdict::Warn) {
        judged.withdraw_pass(verdict, message.unwrap_or_else(|| describe(step_exchange)));
        return;
    }
    let answer = step_exchange.position.and_then(|position| execution.transcript.entries.get(position));
    if answer.is_some_and(|entry| entry.is_shortened()) {
        judged.withdraw_pass(Verdict::Error, SHORTENED);
        return;
    }
    judged.verdict = judged.verdict.join(verdict);
    let expected = expected_of(case, &rows, step_exchange);
    let positions = shown_positions(case, execution);
    add_finding(
        &mut judged.findings,
        Finding {
            message: message.unwrap_or_else(|| format!("expected {expected}, got {}", describe(step_exchange))),
            expected,
            actual: describe(step_exchange),
            value: step_exchange.response.and_then(shown_value),
            subjects: execution.subjects().into_iter().chain(subject).collect(),
            evidence: evidence_of(&execution.transcript.entries, &positions_near(&positions, step_exchange)),
            fix: case.fix.clone(),
            ..Finding::new(requirement, revision, verdict)
        },
    );
}

/// What was expected in place of a response: the responses that are right, or, where one of that kind is right with other
/// content, the title of the case.
fn expected_of(case: &Case, rows: &[&ExpectedResponse], step_exchange: &StepExchange<'_>) -> String {
    let is_right = |row: &&&ExpectedResponse| row.verdict.is_none_or(|verdict| verdict == Verdict::Pass);
    let has_content = |row: &&ExpectedResponse| row.schema.is_some() && outcome_fits(row, step_exchange);
    let decides = rows.iter().filter(is_right).any(has_content);
    expectation(if decides { &[] } else { rows }, &case.title)
}

/// Withdraws a pass if the control request has no result.
fn judge_control(step_exchange: &StepExchange<'_>, judged: &mut Judgement) {
    let served = [Outcome::Result, Outcome::Success, Outcome::ToolError, Outcome::InputRequired];
    if !served.contains(&step_exchange.outcome) {
        let reason = format!(
            "the server did not answer the control request with a result ({}), so nothing is proved",
            describe(step_exchange)
        );
        judged.withdraw_pass(Verdict::Error, reason);
    }
}

/// The reason not to judge what the server does with a request whose method it never answers.
fn answers_no(method: &str) -> String {
    format!("not judged: the server answers no `{method}` at all, which another case judges")
}

/// The reason not to judge an error that may be that of the client.
const CLIENT_ERROR_RELAYED: &str =
    "the client refused a request that the server made for this one, and the error may be that refusal";

/// Whether the server may answer with the error by which the client refused one of its requests.
fn may_relay_client_error(execution: &Execution, step_exchange: &StepExchange<'_>) -> bool {
    step_exchange.outcome == Outcome::Error
        && step_exchange.position.is_some_and(|to| execution.transcript.has_client_error(step_exchange.sent, to))
}

/// The positions of what a finding can show. Each message is an entry of its own, so its HTTP request is shown only if
/// the case is about HTTP.
fn shown_positions(case: &Case, execution: &Execution) -> Vec<usize> {
    let entries = execution.transcript.entries.iter().enumerate();
    let shown = entries.filter(|(_, entry)| match &entry.event {
        Event::Stderr(_) => false,
        Event::HttpRequest(_) | Event::HttpHead(_) | Event::HttpEnd(_) => case.speaks_of_http(),
        _ => true,
    });
    shown.map(|(at, _)| at).collect()
}

/// The positions that prove a response: all messages of the execution, or those after the request if there are many.
fn positions_near(positions: &[usize], step_exchange: &StepExchange<'_>) -> Vec<usize> {
    if positions.len() <= 12 {
        return positions.to_vec();
    }
    if let Some(exchange) = step_exchange.http.filter(|_| step_exchange.is_http_step) {
        return exchange.positions.clone();
    }
    let from = positions.iter().position(|at| *at == step_exchange.sent).unwrap_or(0);
    let mut near: Vec<usize> = positions.iter().skip(from).take(10).copied().collect();
    near.extend(step_exchange.position);
    near
}

fn step_exchanges<'a>(
    record: &'a Transcript,
    exchanges: &[Exchange<'a>],
    strays: &[(usize, &'a Value)],
    http: &'a [HttpExchange],
    action: &Action,
    step_id: StepId,
) -> Vec<StepExchange<'a>> {
    let mut exchanges_of_step = Vec::new();
    let mut claimed = Vec::new();
    for (position, entry) in record.entries.iter().enumerate() {
        let Event::Sent { step_id: Some(marked), .. } = &entry.event else { continue };
        if *marked != step_id {
            continue;
        }
        // A batch in a raw line is there for what comes without an id; its responses have ids of their own.
        let raw_batch = matches!(action, Action::Raw { .. }) && entry.sent().is_some_and(Value::is_array);
        let mine = |exchange: &&Exchange<'_>| exchange.sent == position && !raw_batch;
        let own: Vec<&Exchange<'_>> = exchanges.iter().filter(mine).collect();
        for exchange in &own {
            exchanges_of_step.push(match exchange.responses.first() {
                Some((at, response)) => with_response(position, *at, response),
                None => without_response(record, position),
            });
        }
        let is_refused = entry.sent().is_some_and(has_notification)
            && own.is_empty()
            && http_status(record, position).is_some_and(|(_, status)| status >= 400);
        if is_refused {
            // The status, and an error without an id if there is one, refuse the message. They are no response to it.
            exchanges_of_step.push(without_response(record, position));
        } else if own.is_empty() || own.iter().all(|exchange| exchange.responses.is_empty()) {
            // A message without a usable id can only get a response without an id, over HTTP in its own response.
            let stray = strays.iter().find(|(at, response)| {
                *at > position
                    && !claimed.contains(at)
                    && response.get("id").is_none_or(is_lost_id)
                    && record.is_body_for(*at, position).unwrap_or(true)
            });
            if let Some((at, response)) = stray {
                claimed.push(*at);
                exchanges_of_step.truncate(exchanges_of_step.len() - own.len());
                exchanges_of_step.push(with_response(position, *at, response));
            } else if own.is_empty() {
                let empty = (position..record.entries.len()).find_map(|at| {
                    let value = record.entries[at].received()?;
                    (value.is_null() || value.as_array().is_some_and(Vec::is_empty)).then_some((at, value))
                });
                exchanges_of_step.push(match empty {
                    Some((at, value)) => StepExchange {
                        sent: position,
                        outcome: Outcome::Malformed,
                        position: Some(at),
                        response: Some(value),
                        http: None,
                        is_http_step: false,
                    },
                    None => without_response(record, position),
                });
            }
        }
    }
    if exchanges_of_step.is_empty() {
        exchanges_of_step.extend(shutdown_exchange(record));
    }
    for step_exchange in &mut exchanges_of_step {
        step_exchange.http = http.iter().rev().find(|exchange| exchange.sent == step_exchange.sent);
    }
    exchanges_of_step
}

/// How the server ended, if it was shut down.
fn shutdown_exchange(record: &Transcript) -> Option<StepExchange<'_>> {
    let (at, step) = record.entries.iter().enumerate().find_map(|(at, entry)| match entry.event {
        Event::Shutdown { step, .. } => Some((at, step)),
        _ => None,
    })?;
    let outcome = match step {
        ShutdownStep::AlreadyExited | ShutdownStep::Disconnected => Outcome::Closed,
        ShutdownStep::StdinClosed => Outcome::StdinClosed,
        ShutdownStep::Sigterm => Outcome::Sigterm,
        ShutdownStep::Sigkill => Outcome::Sigkill,
    };
    Some(StepExchange { sent: at, outcome, position: Some(at), response: None, http: None, is_http_step: false })
}

/// Whether a line of the client is a notification, or a batch with one.
fn has_notification(sent: &Value) -> bool {
    messages(sent).any(|message| matches!(MessageKind::of(message), MessageKind::Notification { .. }))
}

/// The responses to the HTTP requests that a step made itself.
fn http_step_exchanges<'a>(record: &Transcript, http: &'a [HttpExchange], step_id: StepId) -> Vec<StepExchange<'a>> {
    http.iter()
        .filter(|exchange| exchange.step_id == Some(step_id))
        .map(|exchange| http_step_exchange(record, exchange))
        .collect()
}

fn http_step_exchange<'a>(record: &Transcript, exchange: &'a HttpExchange) -> StepExchange<'a> {
    let value = &exchange.value;
    let requested_id = value.pointer("/request/message/id");
    let events = value.pointer("/body/events").and_then(Value::as_array).into_iter().flatten();
    let carried = value.pointer("/body/message").into_iter().chain(events.filter_map(|event| event.get("message")));
    let mut responses = carried
        .flat_map(messages)
        .filter(|message| matches!(MessageKind::of(message), MessageKind::Response { .. }))
        .collect::<Vec<_>>();
    let same = |response: &&Value| match (requested_id, response.get("id")) {
        (Some(requested), Some(id)) => same_id(requested, id),
        _ => false,
    };
    // Of several, the one with the id of the request is its response.
    if let Some(at) = responses.iter().position(same) {
        responses.swap(0, at);
    }
    let response = responses.first().copied();
    let status = value.get("status").and_then(Value::as_u64);
    let timed_out = || {
        value
            .pointer("/body/failure")
            .and_then(Value::as_str)
            .is_some_and(|t| t.starts_with("no answer") || t.starts_with("no response"))
    };
    let outcome = match (response, status) {
        (Some(response), _) => classify(response),
        (None, Some(400..)) => Outcome::HttpError,
        (None, Some(_)) => Outcome::NoResponse,
        (None, None) if timed_out() => Outcome::NoResponse,
        (None, None) => Outcome::Closed,
    };
    let position = exchange.positions.iter().copied().filter(|at| *at < record.entries.len()).max();
    StepExchange { sent: exchange.sent, outcome, position, response, http: Some(exchange), is_http_step: true }
}

fn with_response(sent: usize, position: usize, response: &Value) -> StepExchange<'_> {
    StepExchange {
        sent,
        outcome: classify(response),
        position: Some(position),
        response: Some(response),
        http: None,
        is_http_step: false,
    }
}

fn without_response(record: &Transcript, sent: usize) -> StepExchange<'_> {
    if let Some((at, status)) = http_status(record, sent)
        && status >= 400
    {
        return StepExchange {
            sent,
            outcome: Outcome::HttpError,
            position: Some(at),
            response: None,
            http: None,
            is_http_step: false,
        };
    }
    let closed = (sent..record.entries.len())
        .find(|at| matches!(record.entries[*at].event, Event::Closed | Event::Exited { .. } | Event::Overflow));
    let outcome = if closed.is_some() { Outcome::Closed } else { Outcome::NoResponse };
    StepExchange { sent, outcome, position: closed, response: None, http: None, is_http_step: false }
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

/// The outcome that a response is.
fn classify(response: &Value) -> Outcome {
    debug_assert!(matches!(MessageKind::of(response), MessageKind::Response { .. }));
    match (response.get("result"), response.get("error")) {
        (Some(result @ Value::Object(_)), None) => {
            if is_input_required(result) {
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

/// Whether a response is one that a row of a step describes.
fn matches_row(row: &ExpectedResponse, step_exchange: &StepExchange<'_>) -> bool {
    let status_fits = row.status.is_empty()
        || step_exchange.status().is_some_and(|status| row.status.iter().any(|wanted| wanted.fits(status)));
    let exchange_fits =
        row.exchange.as_ref().is_none_or(|schema| step_exchange.http.is_some_and(|http| schema.fits(&http.value)));
    if !status_fits || !exchange_fits {
        return false;
    }
    // A server that rejects a message by its HTTP status need not send a JSON-RPC error as well.
    if step_exchange.outcome == Outcome::HttpError && !step_exchange.is_http_step {
        return row.outcome.contains(&Outcome::HttpError)
            || row.outcome.contains(&Outcome::Error)
            || !row.code.is_empty();
    }
    let code_fits = row.code.is_empty()
        || step_exchange
            .response
            .and_then(|response| response.pointer("/error/code"))
            .and_then(Value::as_i64)
            .is_some_and(|code| row.code.contains(&code));
    let schema_fits =
        row.schema.as_ref().is_none_or(|schema| step_exchange.response.is_some_and(|response| schema.fits(response)));
    outcome_fits(row, step_exchange) && code_fits && schema_fits
}

/// Whether an entry lists an outcome, or none.
fn outcome_fits(row: &ExpectedResponse, step_exchange: &StepExchange<'_>) -> bool {
    row.outcome.is_empty()
        || row.outcome.contains(&step_exchange.outcome)
        || (row.outcome.contains(&Outcome::Result)
            && matches!(step_exchange.outcome, Outcome::Success | Outcome::ToolError | Outcome::InputRequired))
        || (row.outcome.contains(&Outcome::Success) && step_exchange.outcome == Outcome::InputRequired)
}
