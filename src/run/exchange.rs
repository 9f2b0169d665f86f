//! Carries out the steps of an active case on a session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bindings::{Bindings, Item, MissingValue, candidates};
use super::discovery::MAX_PAGES;
use super::http_steps::OpenResponses;
use super::inventory::Inventory;
use super::plan::Plan;
use super::retry::{self, AnsweredRequest};
use super::session::{Session, shutdown_grace_for};
use crate::case::{
    Action, Active, Case, Delivery, Expected, ForEach, Meta, Outcome, Placeholder, Poll, RawLine, Retry, SavedPointers,
    Step, fill, fill_text,
};
use crate::check::Execution;
use crate::client::WaitOutcome;
use crate::transcript::{Entry, Event, StepId, Transcript, without_rate_limited};
use crate::wire::{Frame, Id};

/// How long a response is waited for that may not come, once later requests are answered.
const SETTLE: Duration = Duration::from_millis(25);

/// The same where nothing was sent afterwards that could have been answered.
const SETTLE_ALONE: Duration = Duration::from_millis(250);

/// The longest time that it is waited for, however slow the server is.
const SETTLE_LONGEST: Duration = Duration::from_secs(1);

/// The interval between the requests of a poll, at first and at most. The interval that a server suggests is meant for
/// longer work than the second that a case waits.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How many requests in a row go unanswered before a session is given up.
pub(super) const GIVEN_UP: usize = 2;

/// Carries out a case: the transcript of each pass, or why the case does not apply.
pub(super) async fn carry_out(
    case: &Case,
    body: &Active,
    session: &mut Session,
    inventory: &Inventory,
    plan: &Plan,
    new_execution: &mut (impl FnMut() -> usize + Send),
) -> Result<Vec<Execution>, MissingValue> {
    let items = match &body.for_each {
        Some(ForEach::Page(method)) => pages(session, method, plan).await?,
        _ => candidates(case, body, inventory, session)?,
    };
    let opener = opener(body);
    let mut executions = Vec::new();
    for item in items {
        let attempt = opener.as_ref().zip(item.tool_name()).map(|(opener, tool)| (opener.clone(), tool.to_owned()));
        if attempt.as_ref().is_some_and(|attempt| session.fruitless_requests.contains(attempt)) {
            continue;
        }
        let number = new_execution();
        let label = item.label();
        let mut bindings = Bindings::new(case, inventory, item, plan.seed);
        let from = session.connection.len();
        let discovered_lists = inventory.listed_names();
        let mut execution = Execution {
            label,
            number,
            transcript: Transcript::default(),
            discovered_lists,
            not_carried_out: None,
            not_applicable: None,
        };
        session.replies.begin(&body.client_responses);
        let outcome = StepRunner::new(body, session, &mut bindings, plan).carry_out(number).await;
        let answered = session.replies.end();
        execution.transcript = session.transcript_from(from);
        // A request that was rejected by a rate limit and sent again is judged by its last response.
        execution.transcript.entries = without_rate_limited(&execution.transcript.entries);
        execution.not_applicable = reason_not_applicable(case, body, &execution.transcript, answered);
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
        executions.push(execution);
        if session.connection.is_closed() || session.unanswered >= GIVEN_UP {
            break;
        }
    }
    if executions.is_empty() {
        return Err(MissingValue("no tool answers with what the case needs".to_owned()));
    }
    Ok(executions)
}

/// The pages of a list after the first, which a case is repeated for.
async fn pages<'a>(session: &mut Session, method: &str, plan: &Plan) -> Result<Vec<Item<'a>>, MissingValue> {
    let cursors = read_pages(session, method, None, plan).await;
    let pages = cursors.into_iter().enumerate();
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

/// Why a pass proves nothing: the server did not make the request that the case is about, or one that cannot be answered
/// as the case says.
fn reason_not_applicable(case: &Case, body: &Active, record: &Transcript, answered: bool) -> Option<String> {
    let needed = case.needs.client_request.as_ref().filter(|_| !body.client_responses.is_empty())?;
    if !record.requests_to_client().iter().any(|request| needed.fits(request)) {
        return Some("this time the server did not make such a request of the client".to_owned());
    }
    (!answered).then(|| "the request of the server cannot be answered as the case says".to_owned())
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

/// Carries out the steps of a case once.
struct StepRunner<'r, 'b, 'c> {
    body: &'c Active,
    session: &'r mut Session,
    bindings: &'r mut Bindings<'b>,
    plan: &'r Plan,
    /// Requests that were pipelined, each with its position and id.
    pipelined: Vec<(usize, Id)>,
    /// Messages to which there may be no response, each with its position and, if it has one, its id.
    unsure: Vec<(usize, Option<Id>)>,
    /// Whether anything was answered after the last of these.
    answered_after: bool,
    /// Whether a lack of response is checked without being expected.
    silence_is_checked: bool,
    /// The longest response time.
    slowest: Duration,
    /// The requests that were answered, by the name of their step.
    served: BTreeMap<&'c str, AnsweredRequest>,
    /// The HTTP responses that are still read.
    open: OpenResponses,
}

/// A request of a step.
struct Outgoing<'s> {
    message: Value,
    meta: &'s Meta,
    pipelined: bool,
    save: &'s SavedPointers,
}

impl<'r, 'b, 'c> StepRunner<'r, 'b, 'c> {
    fn new(body: &'c Active, session: &'r mut Session, bindings: &'r mut Bindings<'b>, plan: &'r Plan) -> Self {
        Self {
            body,
            session,
            bindings,
            plan,
            pipelined: Vec::new(),
            unsure: Vec::new(),
            answered_after: false,
            silence_is_checked: false,
            slowest: Duration::ZERO,
            served: BTreeMap::new(),
            open: OpenResponses::default(),
        }
    }

    /// Carries out the steps of a pass, and waits for the responses that are still missing after the last.
    async fn carry_out(mut self, execution: usize) -> Result<(), MissingValue> {
        for (index, step) in self.body.steps.iter().enumerate() {
            if !step.runs_in(self.session.revision) {
                continue;
            }
            self.carry_out_step(step, StepId { execution, step: index }).await?;
            if self.session.connection.is_closed() || self.session.unanswered >= GIVEN_UP {
                return Ok(());
            }
        }
        self.settle().await;
        Ok(())
    }

    async fn carry_out_step(&mut self, step: &'c Step, step_id: StepId) -> Result<(), MissingValue> {
        match &step.action {
            Action::Request { message, meta, delivery: Delivery::Polled(poll), save, .. } => {
                let waited = self.poll(message, poll, meta, step_id).await?;
                self.answered_after |= matches!(waited, WaitOutcome::Ready(_));
                if let WaitOutcome::Ready(response) = &waited {
                    self.save(save, response);
                }
            }
            Action::Request { message, meta, delivery, save, .. } => {
                let message = self.filled(message)?;
                let pipelined = matches!(delivery, Delivery::Pipelined);
                self.send_request(step, Outgoing { message, meta, pipelined, save }, step_id).await?;
            }
            Action::Retry { retry, meta, pipelined, save, .. } => {
                let Some(message) = self.retried(retry, meta).await? else { return Ok(()) };
                self.send_request(step, Outgoing { message, meta, pipelined: *pipelined, save }, step_id).await?;
            }
            Action::Notification { message, .. } => {
                let message = self.filled(message)?;
                let message = self.session.complete(&message, false, None);
                let from = self.session.connection.len();
                self.session.send(&message, Some(step_id)).await;
                self.note_unsure(&step.action, [(from, None)]);
            }
            Action::Batch { messages, meta, .. } => {
                let from = self.session.connection.len();
                let meta = meta_value(meta);
                let mut batch = Vec::new();
                for message in messages {
                    let message = self.filled(message)?;
                    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
                    let is_request = !method.starts_with("notifications/");
                    batch.push(self.session.complete(&message, is_request, meta.as_ref()));
                }
                let sent: Vec<_> = batch.iter().map(|message| (from, message.get("id").cloned())).collect();
                self.session.send(&Value::Array(batch), Some(step_id)).await;
                self.note_unsure(&step.action, sent);
            }
            Action::Raw { line, .. } => {
                let line = match line {
                    RawLine::Text(text) => self.filled_text(text)?.into_bytes(),
                    RawLine::Bytes(bytes) => bytes.clone(),
                };
                // The frame keeps only the beginning of an invalid line, which is meant for what servers write.
                let mut frame = Frame::parse(&line);
                frame.raw = line;
                let from = self.session.connection.len();
                let id = frame.json().and_then(|value| value.get("id")).cloned();
                self.session.send_frame(frame, Some(step_id)).await;
                self.note_unsure(&step.action, [(from, id)]);
            }
            Action::Paginate { method, .. } => {
                read_pages(self.session, method, Some(step_id), self.plan).await;
                self.answered_after = true;
            }
            Action::Http { call, meta, save, .. } => {
                let limit = response_timeout(self.session, self.plan);
                let meta = meta_value(meta);
                let exchange = self.open.send(call, meta.as_ref(), self.session, self.bindings, step_id, limit).await?;
                self.save(save, &exchange);
            }
            Action::Close { step: name } => {
                let named = |step: &Step| step.name.as_ref() == Some(name);
                if let Some(at) = self.body.steps.iter().position(named) {
                    self.open.close(at);
                }
            }
            Action::Shutdown { .. } => {
                let grace = shutdown_grace_for(self.plan.shutdown_grace, &self.session.connection);
                self.session.connection.end(grace).await;
            }
            Action::Wait(duration) => tokio::time::sleep(*duration).await,
        }
        Ok(())
    }

    /// Notes messages whose responses are not waited for before the next step.
    fn note_unsure(&mut self, action: &Action, sent: impl IntoIterator<Item = (usize, Option<Id>)>) {
        let before = self.unsure.len();
        self.unsure.extend(sent);
        if !self.unsure.is_empty() {
            self.answered_after = false;
        }
        // Where the lack of a response is a violation, it is waited for longer, also when later requests are answered.
        let expected = action.expected();
        let is_checked = !expected.responses().is_empty() || expected.otherwise().is_some();
        self.silence_is_checked |= self.unsure.len() > before && is_checked && !may_be_silent(expected);
    }

    /// Sends a request, and waits for its response unless the next step is to follow at once.
    async fn send_request(
        &mut self,
        step: &'c Step,
        outgoing: Outgoing<'_>,
        step_id: StepId,
    ) -> Result<(), MissingValue> {
        let Outgoing { message, meta, pipelined, save } = outgoing;
        let meta = self.filled_meta(meta)?;
        let message = self.session.complete(&message, true, meta.as_ref());
        let from = self.session.connection.len();
        self.session.send(&message, Some(step_id)).await;
        let id = message.get("id").cloned().unwrap_or(Value::Null);
        if pipelined && may_be_silent(step.action.expected()) {
            self.answered_after = false;
            self.unsure.push((from, Some(id)));
        } else if pipelined {
            self.pipelined.push((from, id));
        } else {
            let sent = Instant::now();
            let limit = response_timeout(self.session, self.plan);
            if let WaitOutcome::Ready(response) = self.session.wait_for_response(from, &id, limit).await {
                self.answered_after = true;
                self.slowest = self.slowest.max(sent.elapsed());
                self.save(save, &response);
                if let Some(name) = &step.name {
                    self.served.insert(name, AnsweredRequest { request: message, response });
                }
            }
        }
        Ok(())
    }

    /// Repeats a request until its result is valid against a schema, anything but a result comes, or a limit is
    /// reached.
    async fn poll(
        &mut self,
        message: &Value,
        poll: &Poll,
        meta: &Meta,
        step_id: StepId,
    ) -> Result<WaitOutcome<Value>, MissingValue> {
        let until = Instant::now() + Duration::from_millis(poll.timeout_ms);
        let mut interval = MIN_POLL_INTERVAL;
        let mut sent = 0;
        loop {
            let message = self.filled(message)?;
            let meta = self.filled_meta(meta)?;
            let request = self.session.complete(&message, true, meta.as_ref());
            let from = self.session.connection.len();
            self.session.send(&request, Some(step_id)).await;
            sent += 1;
            let id = request.get("id").cloned().unwrap_or(Value::Null);
            let limit = response_timeout(self.session, self.plan);
            let waited = self.session.wait_for_response(from, &id, limit).await;
            let WaitOutcome::Ready(response) = &waited else { return Ok(waited) };
            if poll.until.fits(response) || response.get("result").is_none() {
                return Ok(waited);
            }
            let over = sent >= poll.max_attempts || Instant::now() + interval > until;
            if over && poll.otherwise.is_some() {
                return Ok(waited);
            }
            if over {
                let reason = "the response that was polled for did not come within the limits of the case";
                return Err(MissingValue(reason.to_owned()));
            }
            tokio::time::sleep(interval).await;
            interval = MAX_POLL_INTERVAL.min(interval * 2);
        }
    }

    /// The retry of an earlier request; nothing if the server does not request input as often as the step retries.
    async fn retried(&mut self, retry: &Retry, meta: &Meta) -> Result<Option<Value>, MissingValue> {
        let Some(mut last) = self.served.get(retry.step.as_str()).cloned() else {
            return Err(MissingValue("the request to retry was not answered".to_owned()));
        };
        let meta = meta_value(meta);
        let replaced = retry.params.as_ref().map(|params| self.filled(params)).transpose()?;
        for _ in 1..retry.rounds.unwrap_or(1) {
            let again = retry::of_case(&last, retry, replaced.as_ref(), &self.session.replies)?;
            let request = self.session.complete(&again, true, meta.as_ref());
            let from = self.session.connection.len();
            self.session.send(&request, None).await;
            let limit = response_timeout(self.session, self.plan);
            let WaitOutcome::Ready(response) = self.session.wait_for_response(from, &request["id"], limit).await else {
                return Ok(None);
            };
            last = AnsweredRequest { request, response };
            if !last.requests_input() {
                return Ok(None);
            }
        }
        retry::of_case(&last, retry, replaced.as_ref(), &self.session.replies).map(Some)
    }

    /// Saves what later steps need of a response or an exchange.
    fn save(&mut self, save: &SavedPointers, response: &Value) {
        for (name, pointer) in save {
            if let Some(value) = response.pointer(pointer) {
                self.bindings.save(name, value.clone());
            }
        }
    }

    fn filled(&mut self, value: &Value) -> Result<Value, MissingValue> {
        fill(value, &mut |placeholder: &Placeholder| self.bindings.value(placeholder, self.session))
    }

    fn filled_text(&mut self, text: &str) -> Result<String, MissingValue> {
        fill_text(text, &mut |placeholder: &Placeholder| self.bindings.value(placeholder, self.session))
    }

    fn filled_meta(&mut self, meta: &Meta) -> Result<Option<Value>, MissingValue> {
        meta_value(meta).map(|meta| self.filled(&meta)).transpose()
    }

    /// Waits for the responses that are still missing after the last step.
    async fn settle(mut self) {
        for (from, id) in self.pipelined {
            let limit = response_timeout(self.session, self.plan);
            self.session.wait_for_response(from, &id, limit).await;
        }
        // The time follows that of earlier responses: on a busy machine all take longer.
        let limit = if self.answered_after && !self.silence_is_checked { SETTLE } else { SETTLE_ALONE };
        let until = Instant::now() + limit.max(SETTLE_LONGEST.min(self.slowest * 4));
        let connection = &mut self.session.connection;
        for (from, id) in self.unsure {
            let is_response = |message: &Value| {
                message.get("method").is_none()
                    && match message.get("id") {
                        None | Some(Value::Null) => true,
                        Some(other) => id.as_ref() == Some(other),
                    }
            };
            let in_place = connection.responds_inline();
            connection
                .wait(from, until.saturating_duration_since(Instant::now()), |entries| {
                    let mut received = entries.iter().filter_map(|entry| entry.received());
                    let has_arrived = received.any(|value| crate::transcript::messages(value).any(is_response));
                    (has_arrived || in_place && is_over(entries)).then_some(())
                })
                .await;
        }
        self.open.close_all();
    }
}

/// Whether the HTTP response to the first of these messages has ended: then nothing more follows, unless a rate limit
/// makes the client send the message again.
fn is_over(entries: &[Arc<Entry>]) -> bool {
    let Some(message) = entries.first() else { return false };
    let entries = without_rate_limited(entries);
    let carries = |entry: &Arc<Entry>| match &entry.event {
        Event::HttpRequest(request) if request.carries.as_ref().is_some_and(|own| Arc::ptr_eq(own, message)) => {
            Some(request.number)
        }
        _ => None,
    };
    let number = entries.iter().find_map(carries);
    number.is_some()
        && entries.iter().any(|entry| matches!(&entry.event, Event::HttpEnd(end) if Some(end.number) == number))
}

/// Whether having no response is among what is expected of a step that is not waited for: then the answers to later
/// requests show that the server had time to respond.
fn may_be_silent(expected: &Expected) -> bool {
    expected.responses().iter().any(|response| response.outcome.contains(&Outcome::NoResponse))
}

/// How long a response is waited for: longer while the process starts, shorter once a request has gone unanswered.
fn response_timeout(session: &Session, plan: &Plan) -> Duration {
    if session.unanswered > 0 {
        plan.timeout.min(Duration::from_secs(2))
    } else if session.connection.first_line().is_none() {
        plan.timeout + session.startup_allowance
    } else {
        plan.timeout
    }
}

/// What the session takes as the `_meta` of a request, before placeholders are filled in.
fn meta_value(meta: &Meta) -> Option<Value> {
    match meta {
        Meta::AsRequired => None,
        Meta::Omitted => Some(Value::Bool(false)),
        Meta::Replaced(value) => Some(value.clone()),
    }
}

/// Reads the pages of a list to the end; the cursors of all but the first.
pub(super) async fn read_pages(
    session: &mut Session,
    method: &str,
    step_id: Option<StepId>,
    plan: &Plan,
) -> Vec<Value> {
    let mut cursors: Vec<Value> = Vec::new();
    let mut params = serde_json::json!({});
    for _ in 0..MAX_PAGES {
        let message = session.complete(&serde_json::json!({ "method": method, "params": params }), true, None);
        let from = session.connection.len();
        session.send(&message, step_id).await;
        let limit = response_timeout(session, plan);
        let WaitOutcome::Ready(response) = session.wait_for_response(from, &message["id"], limit).await else { break };
        let Some(cursor) = response.pointer("/result/nextCursor").filter(|cursor| cursor.is_string()) else { break };
        if cursors.contains(cursor) {
            break;
        }
        cursors.push(cursor.clone());
        params = serde_json::json!({ "cursor": cursor });
    }
    cursors
}
