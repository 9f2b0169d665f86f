//! Carries out the steps of one execution of an active case.

mod settling;

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

use serde_json::Value;

use super::bindings::Bindings;
use super::filled_message::{filled_frame, filled_up, with_nested_parts};
use super::http_steps::{OpenResponses, StepContext, end_other_sessions};
use super::retry_step::retry_request;
use super::tool_arguments::MissingValue;
use crate::case::{
    Action, Active, ClientResponse, Comparison, Delivery, Expected, LineTransfer, Meta, Moment, OpenRequest, Outcome,
    Poll, RawLine, Retry, SavedPointers, Shutdown, Step, find,
};
use crate::client::{FirstSignal, WaitOutcome};
use crate::context::{RequestKind, shutdown_grace_for};
use crate::limits::{MAX_INPUT_ROUNDS, MAX_POLL_INTERVAL, MIN_POLL_INTERVAL, MIN_POLLS};
use crate::plan::Plan;
use crate::run::input_retry::{self, AnsweredRequest};
use crate::run::pagination::read_pages;
use crate::session::Session;
use crate::transcript::{StepId, messages};
use crate::wire::{Frame, Id};

/// What became of the requests that were sent and waited for after a message to which there may be no response.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Since {
    Nothing,
    Unanswered,
    Answered,
}

/// Carries out the steps of a case once.
pub(super) struct StepRunner<'r, 'b, 'c> {
    body: &'c Active,
    session: &'r mut Session,
    bindings: &'r mut Bindings<'b>,
    plan: &'r Plan,
    /// How long a response is waited for.
    timeout: Duration,
    /// How many polls of the case ended without what they waited for; each of them halves the time of the next ones.
    vain_polls: &'r mut u32,
    /// Requests that were pipelined.
    pipelined: Vec<Pipelined>,
    /// Messages to which there may be no response, each with its position and, if it has one, its id.
    unsure: Vec<(usize, Option<Id>)>,
    /// What became of the requests after the last of these.
    since: Since,
    /// Whether a lack of response is checked without being expected.
    silence_is_checked: bool,
    /// Whether no response but silence is expected of a message, so that a late one is a finding.
    silence_is_expected: bool,
    /// The longest response time once the server had started.
    slowest: Duration,
    /// The position of the last request that was waited for and answered.
    last_answered: usize,
    /// When the last pipelined request was sent, or a later one answered.
    heard_at: Instant,
    /// The requests that were pipelined by steps with a name: the position, the id and the time of each.
    named: BTreeMap<&'c str, (usize, Id, Instant)>,
    /// The shortest response time.
    fastest: Option<Duration>,
    /// The requests that were answered, by the name of their step.
    served: BTreeMap<&'c str, AnsweredRequest>,
    /// The results of the pages of a list, by the name of the step that read them.
    pages: BTreeMap<&'c str, Vec<Value>>,
    /// The HTTP responses that are still read.
    open: OpenResponses,
}

/// A request that was pipelined.
struct Pipelined {
    from: usize,
    id: Id,
    kind: RequestKind,
    /// Whether it is one of which the server knows without any work that it need not serve it: its `params` are no object.
    is_malformed: bool,
}

/// A request of a step.
struct Outgoing<'s> {
    message: Value,
    meta: &'s Meta,
    pipelined: bool,
    save: &'s SavedPointers,
}

impl<'r, 'b, 'c> StepRunner<'r, 'b, 'c> {
    pub(super) fn new(
        body: &'c Active,
        session: &'r mut Session,
        bindings: &'r mut Bindings<'b>,
        plan: &'r Plan,
        timeout: Duration,
        vain_polls: &'r mut u32,
    ) -> Self {
        Self {
            body,
            session,
            bindings,
            plan,
            timeout,
            vain_polls,
            pipelined: Vec::new(),
            unsure: Vec::new(),
            since: Since::Nothing,
            silence_is_checked: false,
            silence_is_expected: false,
            slowest: Duration::ZERO,
            last_answered: 0,
            heard_at: Instant::now(),
            named: BTreeMap::new(),
            fastest: None,
            served: BTreeMap::new(),
            pages: BTreeMap::new(),
            open: OpenResponses::default(),
        }
    }

    /// Carries out the steps of an execution, and waits for the responses that are still missing after the last.
    pub(super) async fn carry_out(mut self, execution: usize) -> Result<(), MissingValue> {
        let from = self.session.connection.len();
        let outcome = self.carry_out_steps(execution).await;
        if self.session.is_only {
            end_other_sessions(self.session, from, self.timeout).await;
        }
        outcome
    }

    async fn carry_out_steps(&mut self, execution: usize) -> Result<(), MissingValue> {
        for (index, step) in self.body.steps.iter().enumerate() {
            if !step.runs_in(self.session.revision) {
                continue;
            }
            self.carry_out_step(step, StepId { execution, step: index }).await?;
            // The step after a wait shows whether the server is still there, so it is carried out if it is not.
            let is_wait = matches!(step.action, Action::Wait(_));
            if self.session.connection.is_closed() && !is_wait || self.session.is_unresponsive() {
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
                self.note_since(matches!(waited, WaitOutcome::Ready(_)));
                if let WaitOutcome::Ready(response) = &waited {
                    self.save(save, response);
                }
            }
            Action::Request { message, meta, delivery: Delivery::WithInput, save, .. } => {
                let message = self.filled(message)?;
                self.send_with_input(step, Outgoing { message, meta, pipelined: false, save }, step_id).await?;
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
            Action::Notification { message, while_open, .. } => {
                if let Some(open) = while_open {
                    self.wait_while_open(open).await?;
                }
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
            Action::Raw { line, transfer, .. } => {
                let (line, readable) = match line {
                    RawLine::Text(text) => {
                        let (line, readable) =
                            with_nested_parts(text, |text| self.bindings.fill_text(text, self.session))?;
                        (line.into_bytes(), readable.into_bytes())
                    }
                    RawLine::Bytes(bytes) => (bytes.clone(), bytes.clone()),
                };
                // The frame keeps only the beginning of an invalid line, which is meant for what servers write.
                let frame = Frame::parse(&readable).with_raw(line);
                let from = self.session.connection.len();
                let id = frame.json().and_then(|value| value.get("id")).cloned();
                if *transfer == LineTransfer::InPieces {
                    self.session.send_in_pieces(frame, Some(step_id)).await;
                } else {
                    self.session.send_frame(frame, Some(step_id)).await;
                }
                self.note_unsure(&step.action, [(from, id)]);
            }
            Action::Paginate { method, .. } => self.read_list(step, method, step_id).await,
            Action::Http { .. } => self.make_http_request(&step.action, step_id).await?,
            Action::Close { step: name } => self.close_response(name).await,
            Action::Shutdown { how, .. } => {
                let grace = shutdown_grace_for(self.plan.shutdown_grace, &self.session.connection);
                let first_signal =
                    if *how == Shutdown::SigtermFirst { FirstSignal::Sigterm } else { FirstSignal::EndOfInput };
                self.session.connection.end(grace, first_signal).await;
            }
            Action::Wait(duration) => self.wait(*duration).await,
        }
        Ok(())
    }

    /// Reads the pages of a list, unless nothing depends on them any more.
    async fn read_list(&mut self, step: &'c Step, method: &str, step_id: StepId) {
        if self.is_decided(step) {
            return;
        }
        let timeout = self.timeout;
        let pages = read_pages(self.session, method, Some(step_id), |session| session.response_timeout(timeout)).await;
        self.pages.extend(step.name.as_deref().map(|name| (name, pages.results)));
        self.note_since(true);
    }

    /// Whether a step that reads a list once more is there only for a comparison that nothing can change any more: the earlier
    /// steps have read the same pages.
    fn is_decided(&self, step: &Step) -> bool {
        let Some(name) = &step.name else { return false };
        let mut comparisons = self.body.across_steps.iter().filter(|together| together.steps.contains(name)).peekable();
        comparisons.peek().is_some()
            && comparisons.all(|together| {
                let Some((last, others)) = together.steps.split_last() else { return false };
                let pages: Option<Vec<_>> = others.iter().map(|name| self.pages.get(name.as_str())).collect();
                together.check == Comparison::SameSetBetween
                    && last == name
                    && pages.is_some_and(|pages| {
                        pages.len() > 1 && !pages[0].is_empty() && pages.windows(2).all(|pair| pair[0] == pair[1])
                    })
            })
    }

    /// Makes the HTTP request of a step, and waits for its response unless the next step is to follow at once.
    async fn make_http_request(&mut self, action: &Action, step_id: StepId) -> Result<(), MissingValue> {
        let Action::Http { call, meta, pipelined, save, .. } = action else { return Ok(()) };
        let timeout = self.session.response_timeout(self.timeout);
        let meta = meta_value(meta);
        let mut context =
            StepContext { meta: meta.as_ref(), session: &mut *self.session, bindings: self.bindings, step_id, timeout };
        if *pipelined {
            return self.open.send_pipelined(call, &mut context);
        }
        let exchange = self.open.send(call, &mut context).await?;
        self.save(save, &exchange);
        Ok(())
    }

    /// Waits, and where the case leaves a request of the server unanswered, until the server has made it, as a slow one does
    /// later; no longer than for the response to the call that it belongs to.
    async fn wait(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        let responses = &self.body.client_responses;
        if responses.is_empty() || responses.values().flatten().any(|response| *response != ClientResponse::NoResponse)
        {
            return;
        }
        let ends = |message: &Value| match message.get("method").and_then(Value::as_str) {
            Some(method) => message.get("id").is_some() && responses.contains_key(method),
            None => self.unsure.iter().any(|(_, id)| id.is_some() && id.as_ref() == message.get("id")),
        };
        let limit = self.session.response_timeout(self.timeout);
        let connection = &self.session.connection;
        connection
            .wait(0, limit, |entries| {
                let mut received = entries.iter().filter_map(|entry| entry.received());
                received.any(|value| messages(value).any(ends)).then_some(())
            })
            .await;
    }

    /// Waits until the request of a step has been open for longer than the server needs for others, so that it is certainly
    /// processed, or until shortly before its response is expected; an error if it is answered by then.
    async fn wait_while_open(&mut self, open: &OpenRequest) -> Result<(), MissingValue> {
        let Some((from, id, since)) = self.named.get(open.step.as_str()) else {
            return Err(MissingValue("the request of an earlier step was not sent".to_owned()));
        };
        let needed = match open.moment {
            Moment::Processed => self.fastest.unwrap_or_default() * 2,
            Moment::ShortlyBeforeResponse => {
                let unknown = || MissingValue("it is not known how long a call takes".to_owned());
                self.bindings.lasting_call_duration().ok_or_else(unknown)? / 10 * 9
            }
        };
        let left = needed.saturating_sub(since.elapsed());
        match self.session.wait_for_first_response(*from, std::slice::from_ref(id), left).await {
            WaitOutcome::TimedOut => Ok(()),
            WaitOutcome::Ready(_) => {
                Err(MissingValue("no call of a tool that may be called takes long enough".to_owned()))
            }
            WaitOutcome::Closed => Err(MissingValue("the connection was closed before the step".to_owned())),
        }
    }

    /// Closes the response to the `http` step of this name, or waits for it if the step is pipelined.
    async fn close_response(&mut self, name: &str) {
        let named = |step: &Step| step.name.as_deref() == Some(name);
        if let Some(at) = self.body.steps.iter().position(named) {
            self.open.close(at).await;
        }
    }

    /// Notes whether a request was answered that was waited for.
    fn note_since(&mut self, answered: bool) {
        self.since = self.since.max(if answered { Since::Answered } else { Since::Unanswered });
    }

    /// Notes messages whose responses are not waited for before the next step.
    fn note_unsure(&mut self, action: &Action, sent: impl IntoIterator<Item = (usize, Option<Id>)>) {
        let before = self.unsure.len();
        self.unsure.extend(sent);
        if !self.unsure.is_empty() {
            self.since = Since::Nothing;
        }
        // Where the lack of a response is a violation, it is waited for longer, also when later requests are answered.
        let expected = action.expected();
        let is_checked = !expected.responses().is_empty() || expected.otherwise().is_some();
        let is_sent = self.unsure.len() > before;
        self.silence_is_checked |= is_sent && is_checked && !may_be_silent(expected);
        self.silence_is_expected |= is_sent && is_checked && !expected.allows_response();
    }

    /// Sends a request, and waits for its response unless the next step is to follow at once. Returns the request with
    /// its response, if it came.
    async fn send_request(
        &mut self,
        step: &'c Step,
        outgoing: Outgoing<'_>,
        step_id: StepId,
    ) -> Result<Option<AnsweredRequest>, MissingValue> {
        let Outgoing { message, meta, pipelined, save } = outgoing;
        let meta = self.filled_meta(meta)?;
        let kind = request_kind(&step.action, &message, self.session);
        let message = self.session.complete(&message, true, meta.as_ref());
        let from = self.session.connection.len();
        self.session.send_frame(filled_frame(&message), Some(step_id)).await;
        let id = message.get("id").cloned().unwrap_or(Value::Null);
        if let Some(name) = step.name.as_deref().filter(|_| pipelined) {
            self.named.insert(name, (from, id.clone(), Instant::now()));
        }
        if pipelined && may_be_silent(step.action.expected()) {
            self.since = Since::Nothing;
            self.unsure.push((from, Some(id)));
        } else if pipelined {
            let is_malformed = message.get("params").is_some_and(|params| !params.is_object());
            self.pipelined.push(Pipelined { from, id, kind, is_malformed });
            self.heard_at = Instant::now();
        } else {
            let (sent, has_started) = (Instant::now(), self.session.connection.first_line().is_some());
            let waited = if self.timeout > self.plan.timeout {
                // A call that others do not wait for as long: that they went unanswered does not shorten it.
                self.session.wait_for_response(from, &id, self.timeout).await
            } else {
                self.session.wait_for_response_of_kind(&kind, from, &id, self.timeout).await
            };
            self.note_since(matches!(waited, WaitOutcome::Ready(_)));
            if let WaitOutcome::Ready(response) = waited {
                self.last_answered = from;
                self.heard_at = Instant::now();
                if has_started {
                    self.slowest = self.slowest.max(sent.elapsed());
                }
                self.fastest = Some(self.fastest.map_or(sent.elapsed(), |fastest| fastest.min(sent.elapsed())));
                self.save(save, &response);
                let answered = AnsweredRequest { request: message, response };
                if let Some(name) = &step.name {
                    self.served.insert(name, answered.clone());
                }
                return Ok(Some(answered));
            }
        }
        Ok(None)
    }

    /// Sends a request, and again with the input that its results request.
    async fn send_with_input(
        &mut self,
        step: &'c Step,
        outgoing: Outgoing<'_>,
        step_id: StepId,
    ) -> Result<(), MissingValue> {
        let Outgoing { message, meta, pipelined, save } = outgoing;
        let mut next = Some(message);
        for _ in 0..MAX_INPUT_ROUNDS {
            let Some(message) = next else { break };
            let answered = self.send_request(step, Outgoing { message, meta, pipelined, save }, step_id).await?;
            next = answered.and_then(|answered| input_retry::plain(&answered, &self.session.replies));
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
        let until = Instant::now() + Duration::from_millis(poll.timeout_ms >> (*self.vain_polls).min(u64::BITS - 1));
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
            let limit = self.session.response_timeout(self.timeout);
            let waited = self.session.wait_for_response(from, &id, limit).await;
            let WaitOutcome::Ready(response) = &waited else { return Ok(waited) };
            if poll.until.fits(response) || response.get("result").is_none() {
                return Ok(waited);
            }
            // A slow server gets some attempts as well.
            let over = sent >= poll.max_attempts || sent >= MIN_POLLS && Instant::now() + interval > until;
            *self.vain_polls += u32::from(over);
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
            let again = retry_request(&last, retry, replaced.as_ref(), &self.session.replies)?;
            let request = self.session.complete(&again, true, meta.as_ref());
            let from = self.session.connection.len();
            self.session.send(&filled_up(request.clone()), None).await;
            let limit = self.session.response_timeout(self.timeout);
            let WaitOutcome::Ready(response) = self.session.wait_for_response(from, &request["id"], limit).await else {
                return Ok(None);
            };
            last = AnsweredRequest { request, response };
            if !last.requests_input() {
                return Ok(None);
            }
        }
        retry_request(&last, retry, replaced.as_ref(), &self.session.replies).map(Some)
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
        self.bindings.fill(value, self.session)
    }

    fn filled_meta(&mut self, meta: &Meta) -> Result<Option<Value>, MissingValue> {
        meta_value(meta).map(|meta| self.filled(&meta)).transpose()
    }
}

/// The kind of a request, for what is known about unanswered ones: all calls with invalid arguments are of one kind;
/// other requests are of the same kind if they differ in their id only. A server may ignore what it answers once it is open.
fn request_kind(action: &Action, message: &Value, session: &Session) -> RequestKind {
    let prefix = if session.parameters.opening.is_some() { "" } else { "unopened " };
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let template = match action {
        Action::Request { message, .. } => message.to_string(),
        _ => String::new(),
    };
    if find(&template).iter().any(|(_, placeholder)| placeholder.is_of_invalid_arguments()) {
        return RequestKind { method, common: format!("{prefix}with invalid arguments") };
    }
    let mut message = message.clone();
    if let Some(members) = message.as_object_mut() {
        members.shift_remove("id");
    }
    RequestKind { method, common: format!("{prefix}{message}") }
}

/// Whether having no response is among what is expected of a step that is not waited for: then the answers to later
/// requests show that the server had time to respond. Silence that is a finding is waited for.
fn may_be_silent(expected: &Expected) -> bool {
    let mut responses = expected.responses().iter();
    responses.any(|response| response.outcome.contains(&Outcome::NoResponse) && !response.blames_silence())
}

/// What the session takes as the `_meta` of a request, before placeholders are filled in.
fn meta_value(meta: &Meta) -> Option<Value> {
    match meta {
        Meta::AsRequired => None,
        Meta::Omitted => Some(Value::Bool(false)),
        Meta::Replaced(value) => Some(value.clone()),
    }
}
