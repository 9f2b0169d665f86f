//! The executions of an active case on a session: its steps for each tool, resource or prompt that it is
//! carried out for.
//!
//! It neither opens nor closes sessions, and judges nothing.

mod bindings;
mod candidates;
mod execution_share;
mod filled_message;
mod gone_tool;
mod http_steps;
mod lasting_call;
mod retry_step;
mod root_folder;
mod step_runner;
mod tool_arguments;

use std::collections::BTreeSet;

use serde_json::Value;

use self::bindings::{Bindings, Item};
use self::candidates::candidates;
pub(super) use self::candidates::{NO_TOOL_SERVED, called_first};
pub(super) use self::execution_share::ExecutionShare;
use self::gone_tool::reason_gone;
pub(super) use self::lasting_call::LastingCall;
use self::step_runner::StepRunner;
pub(super) use self::tool_arguments::MissingValue;
use super::client_replies::CaseReplies;
use crate::case::{Action, Active, Case, ClientResponse, Comparison, ForEach, SavedPointers, Step};
use crate::check::Execution;
use crate::inventory::Inventory;
use crate::limits::TIMEOUTS_OF_UNANSWERED_TOOL;
use crate::plan::Plan;
use crate::run::pagination::read_pages;
use crate::session::Session;
use crate::transcript::{Entry, Event, StepId, Transcript, messages, without_repeated};

/// Carries out the executions of a case that fall to this session: the transcript of each, or why the case does not apply.
pub(super) async fn carry_out(
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
    plan: &Plan,
    share: &ExecutionShare,
    new_execution: &mut (impl FnMut() -> usize + Send),
) -> Result<Vec<Execution>, MissingValue> {
    let folder = root_folder::of_case(case, plan)?;
    let items = match &body.for_each {
        Some(ForEach::Page(method)) => pages(session, method, plan).await?,
        _ => candidates(case, body, inventory, folder.as_ref(), session)?,
    };
    let opener = opener(body);
    let timeout = plan.timeout * if case.needs.unanswered_tool { TIMEOUTS_OF_UNANSWERED_TOOL } else { 1 };
    let (mut executions, mut vain_polls) = (Vec::new(), 0);
    for (at, item) in items.into_iter().enumerate() {
        if !share.take(at, item.depends_on_session()) {
            continue;
        }
        let (label, tool) = (item.label(), item.tool_name().map(str::to_owned));
        let attempt = opener.clone().zip(tool.clone());
        if attempt.as_ref().is_some_and(|attempt| session.fruitless_requests.contains(attempt)) {
            continue;
        }
        let number = new_execution();
        let mut bindings = Bindings::new(case, inventory, item, plan.seed).with_folder(folder.as_ref());
        let (from, ended_sessions) = (session.connection.len(), session.connection.ended_sessions());
        let mut execution = Execution {
            label,
            number,
            transcript: Transcript::default(),
            discovered_lists: inventory.listed_names(),
            silent_methods: BTreeSet::new(),
            not_carried_out: None,
            not_applicable: None,
        };
        let replies = CaseReplies::new(&body.client_responses, root_folder::uri_of_restored(folder.as_ref())?);
        session.replies.begin(replies.choice());
        let runner = StepRunner::new(body, session, &mut bindings, plan, timeout, &mut vain_polls);
        let outcome = runner.carry_out(number).await;
        session.replies.end();
        execution.transcript = session.transcript_from(from);
        // A request that was rejected by a rate limit and sent again is judged by its last response.
        let entries = std::mem::take(&mut execution.transcript.entries);
        execution.transcript.entries = without_repeated(&entries);
        let step_of = |step_id: Option<StepId>| body.steps.get(step_id?.step);
        let is_valid = |step_id| step_of(step_id).is_some_and(|step| step.action.expected().is_of_valid_request());
        session.answer_times().record_exchanges(&execution.transcript, is_valid);
        execution.silent_methods = session.answer_times().silent_methods();
        execution.not_applicable = match reason_without_proof(case, body, &execution, replies.are_filled(), session) {
            None => reason_gone(session, &execution, tool.as_deref(), timeout).await,
            reason => reason,
        };
        let saved =
            body.steps.first().and_then(saved_by).is_some_and(|save| save.keys().all(|name| bindings.has_saved(name)));
        session.fruitless_requests.extend(attempt.filter(|_| !saved));
        match outcome {
            Ok(()) => {}
            // Before anything was sent, the server lacks a value; afterwards, a step did not yield it.
            Err(unfilled) if execution.transcript.entries.iter().all(|entry| !is_of_client(entry)) => {
                return Err(unfilled);
            }
            Err(MissingValue(reason)) => execution.not_carried_out = Some(reason),
        }
        if session.connection.ended_sessions() > ended_sessions {
            // What ended it is judged.
            execution.transcript.entries = entries;
        }
        executions.push(execution);
        if session.connection.is_closed() || session.is_unresponsive() {
            break;
        }
    }
    if executions.is_empty() {
        return Err(MissingValue("no tool answers with what the case needs".to_owned()));
    }
    Ok(executions)
}

/// Why an execution proves nothing, as far as its record shows.
fn reason_without_proof(
    case: &Case,
    body: &Active,
    execution: &Execution,
    answered: bool,
    session: &Session,
) -> Option<String> {
    reason_not_applicable(case, body, &execution.transcript, answered)
        .or_else(|| reason_not_cancelled(body, execution, session.connection.is_closed()))
        .or_else(|| reason_not_heard(body, session))
}

/// The pages of a list after the first, which a case is repeated for.
async fn pages<'a>(session: &mut Session, method: &str, plan: &Plan) -> Result<Vec<Item<'a>>, MissingValue> {
    let pages = read_pages(session, method, None, |session| session.response_timeout(plan.timeout)).await;
    let pages = pages.cursors.into_iter().enumerate();
    let pages: Vec<_> =
        pages.map(|(at, cursor)| Item::Page { method: method.to_owned(), number: at + 2, cursor }).collect();
    if pages.is_empty() { Err(MissingValue(format!("{method} has one page only"))) } else { Ok(pages) }
}

/// The values that a step saves.
fn saved_by(step: &Step) -> Option<&SavedPointers> {
    match &step.action {
        Action::Request { save, .. } | Action::Retry { save, .. } | Action::Http { save, .. } => Some(save),
        _ => None,
    }
}

/// Whether an entry is of something that the client sent.
fn is_of_client(entry: &Entry) -> bool {
    entry.sent().is_some() || matches!(&entry.event, Event::HttpRequest(request) if request.step_id.is_some())
}

/// Why an execution proves nothing: the server did not make the request that the case is about, or one that cannot be answered
/// as the case says.
fn reason_not_applicable(case: &Case, body: &Active, record: &Transcript, answered: bool) -> Option<String> {
    if body.client_responses.is_empty() {
        return None;
    }
    let is_needed = |request: &Value| match &case.needs.client_request {
        Some(needed) => needed.fits(request),
        None => request["method"].as_str().is_some_and(|method| body.client_responses.contains_key(method)),
    };
    if !record.requests_to_client().iter().any(is_needed) {
        return Some("this time the server did not make such a request of the client".to_owned());
    }
    let is_answered = body.client_responses.values().flatten().any(|response| *response != ClientResponse::NoResponse);
    let mut received = record.entries.iter().filter_map(|entry| entry.received()).flat_map(messages);
    // A case that leaves the request unanswered is about what the server then does.
    if is_answered
        && received.any(|message| message.get("method").is_some_and(|method| method == "notifications/cancelled"))
    {
        return Some("the server cancelled its request of the client".to_owned());
    }
    (!answered).then(|| "the request of the server cannot be answered as the case says".to_owned())
}

/// Why a connection that was closed proves nothing about a notification that is sent while a request is open: it was closed
/// before.
fn reason_not_cancelled(body: &Active, execution: &Execution, is_closed: bool) -> Option<String> {
    let waits = |step: &Step| matches!(&step.action, Action::Notification { while_open: Some(_), .. });
    let step = body.steps.iter().position(waits)?;
    // Over HTTP the end of a stream is the cancellation in 2026-07-28, which only later steps show.
    let is_sent = execution.transcript.entries.iter().any(|entry| {
        let Event::Sent { step_id: Some(own), .. } = &entry.event else { return false };
        own.execution == execution.number && own.step >= step
    });
    (is_closed && !is_sent).then(|| "the connection was closed before the call could be cancelled".to_owned())
}

/// Why it proves nothing that no notification comes while nothing is asked: over HTTP, a stream is needed for it.
fn reason_not_heard(body: &Active, session: &Session) -> Option<String> {
    let listening = [Comparison::QuietBetween, Comparison::ChangesAnnouncedOnly];
    let listens = body.across_steps.iter().any(|together| listening.contains(&together.check));
    if !listens || !session.connection.is_http() {
        return None;
    }
    let entries = session.transcript_from(0).entries;
    let is_stream = |wanted: usize| {
        entries
            .iter()
            .any(|entry| matches!(&entry.event, Event::HttpHead(head) if head.number == wanted && head.status == 200))
    };
    let has_stream = entries.iter().any(
        |entry| matches!(&entry.event, Event::HttpRequest(request) if request.method == "GET" && is_stream(request.number)),
    );
    (!has_stream).then(|| "the server opens no stream for GET, on which it could send notifications".to_owned())
}

/// The first request of a case that has to obtain a value from each tool: a tool that did not yield it to one case is not
/// called by the next for the same.
fn opener(body: &Active) -> Option<String> {
    match &body.steps.first()?.action {
        Action::Request { message, save, .. } if !save.is_empty() && body.for_each == Some(ForEach::Tool) => {
            Some(format!("{message}{save:?}"))
        }
        _ => None,
    }
}
