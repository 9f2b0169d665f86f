//! One connection: each message becomes a request, and what comes back becomes messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::header::{Mirrored, media_type as media_type_of, mirrored, stateless};
use super::site::{Mode, Site};
use super::trouble::{self, words};
use crate::client::record::Record;
use crate::client::responder::Responder;
use crate::transcript::{Entry, Event, HttpEnd, HttpHead, HttpRequest, Mark, SseNote, messages, outline};
use crate::wire::{Frame, Id, Kind, MAX_MESSAGE_BYTES, SseDecoder, SseEvent, same_id};

/// What a client accepts as an answer to a message.
pub(super) const BOTH: &str = "application/json, text/event-stream";
pub(super) const STREAM: &str = "text/event-stream";

/// How much of a body that is no message is kept, in bytes.
pub(super) const KEPT: usize = 4_096;

/// How many events of a stream are noted, and how many characters of one that is no JSON.
pub(super) const NOTED: usize = 1_000;
pub(super) const SHOWN: usize = 500;

/// How often a stream that broke off is taken up again, and the longest that we wait before.
const RESUMED: usize = 5;
const LONGEST_RETRY: Duration = Duration::from_secs(2);

/// How often a request is sent again to a server that asks us to slow down, and the longest that we wait for it.
const REPEATED: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long we wait the first time where it is not said how long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// How long the first event of a subscription is waited for before it is cancelled.
const FIRST_WORD: Duration = Duration::from_millis(500);

/// How long a request is given to reach the server before it is cancelled.
const HEARD: Duration = Duration::from_millis(50);

/// How long ending a session may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// The revision that a client speaks where nothing was agreed on yet and a header is due.
const STATELESS: &str = "2026-07-28";

/// A connection over HTTP.
pub(in crate::client) struct Exchanger {
    pub(super) site: Arc<Site>,
    pub(super) record: Arc<Record>,
    responder: Responder,
    /// Whether the connection is of the stateless era.
    stateless: bool,
    state: Mutex<State>,
    /// The endpoint for messages of the older transport, once its stream has named one; `None` within once
    /// the stream has ended.
    endpoint: watch::Sender<Endpoint>,
}

/// The endpoint for messages that a stream of the older transport names.
#[derive(Debug, Clone, PartialEq, Default)]
enum Endpoint {
    #[default]
    Unasked,
    Awaited,
    Named(Url),
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) next: usize,
    pub(super) session: Option<String>,
    /// The version that was agreed on, where requests have to name it.
    version: Option<String>,
    mirrored: Mirrored,
    listening: bool,
    ended: bool,
    /// The answers that are being read.
    open: BTreeMap<usize, HttpEnd>,
    tasks: Vec<AbortHandle>,
    /// The requests whose answers are still read.
    asked: Vec<(Id, AbortHandle)>,
}

/// What to send.
struct Order {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    /// The entry of the message that it carries.
    carries: Option<Arc<Entry>>,
    /// The requests that the answer is to answer.
    awaited: Vec<Id>,
    /// How often it was sent before to a server that asks us to slow down.
    attempt: usize,
}

/// What came of it.
#[derive(Debug, Default)]
struct Outcome {
    status: Option<u16>,
    /// The requests that were not answered.
    unanswered: Vec<Id>,
    /// Whether any message came.
    spoke: bool,
    last_event_id: Option<String>,
    retry: Option<Duration>,
    pause: Option<Duration>,
    /// The end of the answer, where it is for the caller to record.
    held: Option<HttpEnd>,
}

impl Exchanger {
    pub(in crate::client) fn new(site: Arc<Site>, record: Arc<Record>, responder: Responder, stateless: bool) -> Self {
        let endpoint = watch::Sender::new(Endpoint::default());
        Self { site, record, responder, stateless, state: Mutex::default(), endpoint }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what a message draws comes as the answer to its POST.
    pub(in crate::client) fn answers_in_place(&self) -> bool {
        self.stateless || self.site.mode() != Some(Mode::Sse)
    }

    /// Where messages go.
    pub(super) fn message_url(&self) -> Url {
        match &*self.endpoint.borrow() {
            Endpoint::Named(url) if !self.stateless => url.clone(),
            _ => self.site.url.clone(),
        }
    }

    /// The session that the server opened, if it did.
    pub(in crate::client) fn session(&self) -> Option<String> {
        self.state().session.clone()
    }

    /// Runs something aside until the connection ends.
    pub(super) fn aside(&self, work: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
        let task = tokio::spawn(work);
        let mut state = self.state();
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(task.abort_handle());
        if state.ended {
            task.abort();
        }
        task
    }

    /// Sends a message and records it. A request is answered later; for anything else the answer to the POST
    /// is waited for, at most `limit`, since it has to arrive before what follows it.
    pub(in crate::client) async fn send(self: &Arc<Self>, frame: Frame, mark: Option<Mark>, limit: Duration) {
        if self.stateless
            && let Some(id) = frame.json().and_then(cancelled)
        {
            // Here the end of the stream is the cancellation, and no notification says so.
            let _silent = tokio::time::timeout(FIRST_WORD, self.first_word(id)).await;
            self.close(id);
            return;
        }
        if let Some(id) = frame.json().and_then(cancelled) {
            // Requests overtake each other: what is cancelled before it came would be served all the same.
            let _unheard = tokio::time::timeout(HEARD, self.heard(id)).await;
        }
        let asks = frame.json().is_none_or(|value| messages(value).any(|message| !is_unanswered(message)));
        let asked = frame.json().map(ids).unwrap_or_default();
        let sent = self.record.add(Event::Sent { frame, mark });
        let this = Arc::clone(self);
        let task = self.aside(async move { this.deliver(sent).await });
        self.note_asked(asked, &task.abort_handle());
        if !asks {
            let _slow = tokio::time::timeout(limit, task).await;
        }
    }

    /// Takes note of the requests that a task reads the answer to.
    fn note_asked(&self, asked: Vec<Id>, task: &AbortHandle) {
        let mut state = self.state();
        state.asked.retain(|(_, asking)| !asking.is_finished());
        state.asked.extend(asked.into_iter().map(|id| (id, task.clone())));
    }

    /// Waits until the server has begun to answer a request.
    async fn heard(&self, id: &Id) {
        let carries = |entry: &Arc<Entry>| {
            let Event::HttpRequest(request) = &entry.event else { return None };
            let own = request.carries.as_ref()?.sent()?.get("id")?;
            same_id(own, id).then_some(request.number)
        };
        let mut changed = self.record.changed.subscribe();
        loop {
            let begun = {
                let state = self.record.state();
                let number = state.entries.iter().rev().find_map(carries);
                let is_head = |entry: &Arc<Entry>| match &entry.event {
                    Event::HttpHead(head) => Some(head.number) == number,
                    _ => false,
                };
                number.is_some() && state.entries.iter().rev().any(is_head)
            };
            if begun || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits for the first event of a subscription: closed before it, the stream would tell nothing.
    async fn first_word(&self, id: &Id) {
        let listens = |entry: &Arc<Entry>| {
            let Event::HttpRequest(request) = &entry.event else { return None };
            let message = request.carries.as_ref()?.sent()?;
            let wanted = message.get("method").is_some_and(|method| method == "subscriptions/listen")
                && message.get("id").is_some_and(|own| same_id(own, id));
            wanted.then_some(request.number)
        };
        let mut changed = self.record.changed.subscribe();
        loop {
            let number = self.record.state().entries.iter().rev().find_map(listens);
            let Some(number) = number else { return };
            // What is open has said nothing as long as it has no event; what is not has ended.
            let silent = self.state().open.get(&number).is_some_and(|end| end.events.is_empty());
            if !silent || changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Closes the answer to a request.
    fn close(&self, id: &Id) {
        let state = self.state();
        for (_, asking) in state.asked.iter().filter(|(own, _)| same_id(own, id)) {
            asking.abort();
        }
    }

    async fn deliver(self: Arc<Self>, sent: Arc<Entry>) {
        if self.site.mode() == Some(Mode::Sse) && !self.stateless {
            self.deliver_by_sse(sent).await;
            return;
        }
        let Event::Sent { frame, .. } = &sent.event else { return };
        let message = frame.json();
        let opens = message.is_some_and(|message| message.get("method").is_some_and(|method| method == "initialize"));
        let initialized =
            message.is_some_and(|message| message.get("method").is_some_and(|m| m == "notifications/initialized"));
        let mut outcome = Outcome::default();
        for attempt in 0..=REPEATED {
            let order = Order {
                method: Method::POST,
                url: self.site.url.clone(),
                headers: self.headers(message, BOTH),
                body: Some(frame.raw.clone()),
                carries: Some(Arc::clone(&sent)),
                awaited: message.map(ids).unwrap_or_default(),
                attempt,
            };
            let hold = opens && !self.stateless && self.site.mode().is_none();
            outcome = self.exchange(order, !self.stateless, hold).await;
            let Some(pause) = outcome.pause else { break };
            let _pausing = Pausing::begin(&self.record);
            tokio::time::sleep(pause).await;
        }
        if let Some(200..=299) = outcome.status {
            self.site.settle(Mode::Streamable);
        }
        if let Some(mut end) = outcome.held.take() {
            // What the page on backwards compatibility has a client do next.
            if self.opens_a_stream().await {
                end.unanswered = None;
                self.finish(end, None);
                self.site.settle(Mode::Sse);
                self.deliver_by_sse(sent).await;
                return;
            }
            let unanswered = end.unanswered.take();
            self.finish(end, unanswered);
        }
        if initialized && !self.stateless && matches!(outcome.status, Some(200..=299)) {
            self.listen();
        }
    }

    /// The headers that go with a message.
    pub(super) fn headers(&self, message: Option<&Value>, accept: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let state = self.state();
        let mut own: Vec<(String, String)> = Vec::new();
        if self.stateless {
            own = stateless(message.unwrap_or(&Value::Null), STATELESS, &state.mirrored);
        } else {
            own.extend(state.version.clone().map(|version| ("mcp-protocol-version".to_owned(), version)));
            own.extend(state.session.clone().map(|session| ("mcp-session-id".to_owned(), session)));
        }
        drop(state);
        for (name, value) in own {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(&value)) {
                headers.insert(name, value);
            }
        }
        // A user's header goes before ours.
        for name in self.site.headers.keys() {
            headers.remove(name);
        }
        headers.extend(self.site.headers.clone());
        headers
    }

    /// Makes a request and reads its answer to the end, streams that break off included.
    ///
    /// `hold` leaves it to the caller to record the end of a refusal, as something else may be tried.
    async fn exchange(self: &Arc<Self>, order: Order, resume: bool, hold: bool) -> Outcome {
        let initializes = order.carries.as_ref().is_some_and(|entry| {
            entry.sent().and_then(|message| message.get("method")).is_some_and(|method| method == "initialize")
        });
        // What is broken asks as well: an answer tells so.
        let asks = order.carries.as_ref().is_some_and(|entry| {
            entry.sent().is_none_or(|value| {
                messages(value).next().is_none() || messages(value).any(|message| !is_unanswered(message))
            })
        });
        let mut awaited = order.awaited.clone();
        let mut outcome = Outcome::default();
        let mut next = Some(order);
        let mut rounds = 0;
        while let Some(order) = next.take() {
            let number = self.begin(&order);
            let (url, attempt, carries) = (order.url.clone(), order.attempt, order.carries.is_some());
            let mut end = match self.respond(number, order, initializes).await {
                Ok(response) => {
                    outcome.status = Some(response.status().as_u16());
                    outcome.pause = self.pause(&response, attempt);
                    if carries && outcome.status == Some(429) && outcome.pause.is_none() {
                        self.record.limit();
                    }
                    self.read(number, response, asks, &mut awaited, &mut outcome).await
                }
                Err(error) => {
                    let end = HttpEnd { number, trouble: Some(self.site.masked(&words(&error))), ..HttpEnd::default() };
                    if error.is_connect() {
                        self.finish(end, awaited.first().cloned());
                        self.record.add(Event::Closed);
                        outcome.unanswered = awaited;
                        return outcome;
                    }
                    end
                }
            };
            rounds += 1;
            let streamed = !end.events.is_empty() && outcome.status == Some(200);
            match &outcome.last_event_id {
                Some(last) if resume && streamed && !awaited.is_empty() && rounds <= RESUMED && !last.is_empty() => {
                    tokio::time::sleep(outcome.retry.unwrap_or(Duration::from_millis(100)).min(LONGEST_RETRY)).await;
                    next = Some(self.resumption(url, last));
                    end.unanswered = None;
                    self.finish(end, None);
                }
                _ => {
                    let unanswered = awaited.first().cloned().filter(|_| outcome.pause.is_none());
                    if hold && !outcome.spoke && matches!(outcome.status, Some(400 | 404 | 405)) {
                        end.unanswered = unanswered;
                        outcome.held = Some(end);
                    } else {
                        self.finish(end, unanswered);
                    }
                }
            }
        }
        outcome.unanswered = awaited;
        outcome
    }

    /// The request that takes a stream up again after an event.
    fn resumption(&self, url: Url, last: &str) -> Order {
        let mut order = self.empty(Method::GET, url, STREAM);
        if let Ok(value) = HeaderValue::from_str(last) {
            order.headers.insert("last-event-id", value);
        }
        order
    }

    /// A request without a body.
    fn empty(&self, method: Method, url: Url, accept: &'static str) -> Order {
        let mut headers = self.headers(None, accept);
        headers.remove(CONTENT_TYPE);
        Order { method, url, headers, body: None, carries: None, awaited: Vec::new(), attempt: REPEATED }
    }

    /// Records a request and gives it its number.
    fn begin(&self, order: &Order) -> usize {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.open.insert(number, HttpEnd { number, ..HttpEnd::default() });
        drop(state);
        let headers = order.headers.iter().map(|(name, value)| (name.as_str().to_owned(), self.shown(value))).collect();
        let target = match order.url.query() {
            Some(query) => format!("{}?{query}", order.url.path()),
            None => order.url.path().to_owned(),
        };
        self.record.add(Event::HttpRequest(HttpRequest {
            number,
            method: order.method.to_string(),
            target: self.site.masked(&target),
            headers,
            carries: order.carries.clone(),
            ..HttpRequest::default()
        }));
        number
    }

    /// A header's value as it may be recorded.
    pub(super) fn shown(&self, value: &HeaderValue) -> String {
        if value.is_sensitive() {
            return "[secret]".to_owned();
        }
        self.site.masked(&String::from_utf8_lossy(value.as_bytes()))
    }

    /// How long to wait before a request is sent again to a server that is asked too much, where that is bearable:
    /// as long as the server says, or each time longer where it says nothing.
    pub(super) fn pause(&self, response: &Response, attempt: usize) -> Option<Duration> {
        let status = response.status().as_u16();
        if !matches!(status, 429 | 503) {
            return None;
        }
        let pause = match response.headers().get("retry-after") {
            None => (status == 429).then(|| FIRST_PAUSE * (1 << attempt.min(REPEATED))),
            Some(value) => {
                let seconds = value.to_str().ok().and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                seconds.filter(|pause| *pause <= LONGEST_PAUSE)
            }
        };
        let pause = pause.filter(|_| attempt < REPEATED && !self.site.is_exhausted());
        if pause.is_none() && status == 429 {
            self.site.exhaust();
        }
        pause
    }

    /// Waits until a request may go, where so many a second are made at most.
    pub(super) async fn keep_pace(&self) {
        if let Some(wait) = self.site.turn() {
            let _pausing = Pausing::begin(&self.record);
            tokio::time::sleep(wait).await;
        }
    }

    async fn respond(&self, number: usize, order: Order, initializes: bool) -> Result<Response, reqwest::Error> {
        self.keep_pace().await;
        let mut request = self.site.client.request(order.method, order.url).headers(order.headers);
        if let Some(body) = order.body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let headers = response.headers().iter();
        let headers: Vec<(String, String)> =
            headers.map(|(name, value)| (name.as_str().to_owned(), self.shown(value))).collect();
        if initializes
            && !self.stateless
            && response.status().is_success()
            && let Some(session) = response.headers().get("mcp-session-id")
        {
            self.state().session = Some(String::from_utf8_lossy(session.as_bytes()).into_owned());
        }
        self.record.add(Event::HttpHead(HttpHead { number, status: response.status().as_u16(), headers }));
        Ok(response)
    }

    /// Records the end of an answer.
    fn finish(&self, mut end: HttpEnd, unanswered: Option<Id>) {
        self.state().open.remove(&end.number);
        end.unanswered = unanswered;
        self.record.add(Event::HttpEnd(Box::new(end)));
    }

    /// Reads the body of an answer; what it answers is taken off `awaited`.
    async fn read(
        self: &Arc<Self>,
        number: usize,
        response: Response,
        asks: bool,
        awaited: &mut Vec<Id>,
        outcome: &mut Outcome,
    ) -> HttpEnd {
        let kind = media_type(&response);
        if kind == "text/event-stream" && response.status().is_success() {
            return self.read_stream(number, response, awaited, outcome).await;
        }
        let mut end = HttpEnd { number, ..HttpEnd::default() };
        let body = read_body(response, &mut end, self.record.limits.line).await;
        let body = self.site.masked_bytes(body);
        if body.is_empty() {
            return end;
        }
        if outcome.status == Some(429) {
            // Whatever it says, it is about how often we ask, and answers nothing.
            end.text = String::from_utf8_lossy(&body[..body.len().min(KEPT)]).into_owned();
            return end;
        }
        if end.bytes > MAX_MESSAGE_BYTES {
            outcome.spoke = true;
            self.record.receive(Frame::too_long(&body, end.bytes));
            return end;
        }
        let frame = Frame::parse(&body);
        let speaks = frame.json().is_some_and(|value| {
            messages(value).any(|message| !matches!(Kind::of(message), Kind::Unknown | Kind::Batch(_)))
        });
        // JSON that was promised is a message also where it is none that we know.
        // A refusal of what nothing answers may say why by an error without an id, which answers nothing either.
        let explains = !asks
            && outcome.status.is_some_and(|status| status >= 400)
            && frame.json().is_some_and(|value| {
                messages(value)
                    .all(|message| message.get("error").is_some() && message.get("id").is_none_or(Value::is_null))
            });
        if explains {
            end.message = frame.json().map(outline);
        } else if speaks || is_json(&kind) && outcome.status == Some(200) {
            outcome.spoke = true;
            end.message = frame.json().map(outline);
            self.take(frame, awaited);
        } else {
            let end_at = body.len().min(KEPT);
            end.text = String::from_utf8_lossy(&body[..end_at]).into_owned();
        }
        end
    }

    async fn read_stream(
        self: &Arc<Self>,
        number: usize,
        mut response: Response,
        awaited: &mut Vec<Id>,
        outcome: &mut Outcome,
    ) -> HttpEnd {
        let mut decoder = SseDecoder::default();
        let mut end = HttpEnd { number, ..HttpEnd::default() };
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    end.bytes += bytes.len();
                    let mut events = Vec::new();
                    decoder.push(&bytes, |event| events.push(event));
                    end.comments = decoder.comments;
                    for event in events {
                        self.take_event(event, &mut end, awaited, outcome);
                    }
                }
                Ok(None) => {
                    end.complete = true;
                    break;
                }
                Err(error) => {
                    end.trouble = Some(self.site.masked(&words(&error)));
                    break;
                }
            }
            // What is no event in the end is not waited for either: its end may never come.
            let beyond = decoder.pending() > self.record.limits.line;
            if beyond {
                self.record.add(Event::Overflow);
            }
            if beyond || end.trouble.is_some() || self.record.state().closed {
                break;
            }
            self.note_open(number, &mut end);
            tokio::task::yield_now().await;
        }
        end
    }

    /// Keeps what is known of a stream that goes on, in case it never ends. Only what is new is added: on a stream
    /// that brings every answer, each would take longer than the one before.
    fn note_open(&self, number: usize, end: &mut HttpEnd) {
        let all = std::mem::take(&mut end.events);
        let mut state = self.state();
        let mut events = state.open.remove(&number).map(|noted| noted.events).unwrap_or_default();
        events.extend(all.iter().skip(events.len()).cloned());
        state.open.insert(number, HttpEnd { number, events, ..end.clone() });
        end.events = all;
    }

    fn take_event(self: &Arc<Self>, event: SseEvent, end: &mut HttpEnd, awaited: &mut Vec<Id>, outcome: &mut Outcome) {
        if let Some(id) = &event.id {
            outcome.last_event_id = Some(id.clone());
        }
        if let Some(retry) = event.retry.as_deref().and_then(|retry| retry.parse().ok()) {
            outcome.retry = Some(Duration::from_millis(retry));
        }
        let names_endpoint = event.event.as_deref() == Some("endpoint");
        let shown = |text: Option<String>| text.map(|text| self.site.masked(&text));
        let mut note = SseNote {
            event: shown(event.event),
            id: shown(event.id),
            retry: shown(event.retry),
            data: "none",
            ..SseNote::default()
        };
        match event.data {
            None => {}
            Some(data) if data.is_empty() => note.data = "empty",
            Some(data) if names_endpoint && *self.endpoint.borrow() == Endpoint::Awaited => {
                note.data = "other";
                let text = String::from_utf8_lossy(&data);
                note.text = Some(self.site.masked(&text).chars().take(SHOWN).collect());
                // Elsewhere is where nothing is sent to; a check sees that nothing came of it.
                let url = self.site.url.join(text.trim()).ok().filter(|url| self.site.is_same_origin(url));
                if url.is_none() {
                    end.trouble = Some(self.site.masked(&format!("{} ({})", trouble::ELSEWHERE, text.trim())));
                }
                self.endpoint.send_replace(url.map_or(Endpoint::Failed, Endpoint::Named));
            }
            Some(data) => {
                let data = self.site.masked_bytes(data);
                let frame =
                    if event.cut == 0 { Frame::parse(&data) } else { Frame::too_long(&data, data.len() + event.cut) };
                note.data = if frame.json().is_some() { "message" } else { "other" };
                note.message = frame.json().map(outline);
                outcome.spoke = true;
                self.take(frame, awaited);
            }
        }
        if end.events.len() < NOTED {
            end.events.push(note);
        }
    }

    /// Takes note of a message of the server and answers it where it asks.
    fn take(self: &Arc<Self>, frame: Frame, awaited: &mut Vec<Id>) {
        let mut replies = Vec::new();
        if let Some(value) = frame.json() {
            for message in messages(value) {
                match Kind::of(message) {
                    Kind::Response { id } => {
                        let known = id.and_then(|id| awaited.iter().position(|own| same_id(own, id)));
                        // An error without an id, or with a damaged one, is still what came of the request.
                        if let Some(at) = known.or((!awaited.is_empty()).then_some(0)) {
                            awaited.remove(at);
                        }
                        self.learn(message);
                    }
                    Kind::Request { id, method } => {
                        replies.push(self.responder.answer(id, method, message.get("params")));
                    }
                    _ => {}
                }
            }
        }
        if !self.record.receive(frame) {
            return;
        }
        for reply in replies {
            if !self.record.may_answer() {
                return;
            }
            let sent = self.record.add(Event::Sent { frame: Frame::of(&reply), mark: None });
            let this = Arc::clone(self);
            drop(self.aside(async move { this.deliver(sent).await }));
        }
    }

    /// Learns from a response what later requests have to say.
    fn learn(&self, response: &Value) {
        let Some(result) = response.get("result") else { return };
        if !self.stateless
            && let Some(version) = result.get("protocolVersion").and_then(Value::as_str)
            && result.get("capabilities").is_some()
        {
            // The header came with 2025-06-18; versions are dates, so they compare as texts.
            self.state().version = (version >= "2025-06-18").then(|| version.to_owned());
        }
        if self.stateless && result.get("tools").is_some() {
            self.state().mirrored.extend(mirrored(result));
        }
    }

    /// Takes in which parameters of tools are mirrored into headers.
    pub(super) fn mirror(&self, mirrored: Mirrored) {
        self.state().mirrored = mirrored;
    }

    /// Opens the stream on which a server speaks unasked, once.
    fn listen(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state().listening, true) {
            return;
        }
        let this = Arc::clone(self);
        drop(self.aside(async move {
            let order = this.empty(Method::GET, this.site.url.clone(), STREAM);
            this.exchange(order, false, false).await;
        }));
    }

    /// Opens the stream of the older transport; whether it names an endpoint for messages.
    async fn opens_a_stream(self: &Arc<Self>) -> bool {
        let mut named = self.endpoint.subscribe();
        let mut first = false;
        self.endpoint.send_if_modified(|endpoint| {
            first = *endpoint == Endpoint::Unasked;
            if first {
                *endpoint = Endpoint::Awaited;
            }
            first
        });
        if first {
            let this = Arc::clone(self);
            drop(self.aside(async move {
                let order = this.empty(Method::GET, this.site.url.clone(), STREAM);
                this.exchange(order, false, false).await;
                let lost = *this.endpoint.borrow() != Endpoint::Awaited;
                this.endpoint.send_replace(Endpoint::Failed);
                // The stream is the connection: with it nothing more can come.
                if lost {
                    this.record.add(Event::Closed);
                }
            }));
        }
        let settled = named.wait_for(|endpoint| matches!(endpoint, Endpoint::Named(_) | Endpoint::Failed)).await;
        settled.is_ok_and(|endpoint| matches!(*endpoint, Endpoint::Named(_)))
    }

    /// Sends a message by the older transport.
    async fn deliver_by_sse(self: &Arc<Self>, sent: Arc<Entry>) {
        if !self.opens_a_stream().await {
            self.record.add(Event::Closed);
            return;
        }
        let Endpoint::Named(url) = self.endpoint.borrow().clone() else { return };
        let Event::Sent { frame, .. } = &sent.event else { return };
        let body = Some(frame.raw.clone());
        let headers = self.headers(frame.json(), BOTH);
        // The answer comes on the stream; what the POST says is whether the message was taken.
        for attempt in 0..=REPEATED {
            let order = Order {
                method: Method::POST,
                url: url.clone(),
                headers: headers.clone(),
                body: body.clone(),
                carries: Some(Arc::clone(&sent)),
                awaited: Vec::new(),
                attempt,
            };
            let Some(pause) = self.exchange(order, false, false).await.pause else { return };
            let _pausing = Pausing::begin(&self.record);
            tokio::time::sleep(pause).await;
        }
    }

    /// Ends the session and everything that is still going on.
    pub(in crate::client) async fn end(self: &Arc<Self>) {
        let tasks = {
            let mut state = self.state();
            state.ended = true;
            std::mem::take(&mut state.tasks)
        };
        for task in tasks {
            task.abort();
        }
        let open = std::mem::take(&mut self.state().open);
        for end in open.into_values() {
            self.record.add(Event::HttpEnd(Box::new(end)));
        }
        if self.state().session.is_some() && !self.record.state().closed {
            let order = self.empty(Method::DELETE, self.site.url.clone(), BOTH);
            let _slow = tokio::time::timeout(FAREWELL, self.exchange(order, false, false)).await;
        }
    }

    /// Ends everything at once, for a connection that nobody shuts down.
    pub(in crate::client) fn abandon(&self) {
        let mut state = self.state();
        state.ended = true;
        for task in state.tasks.drain(..) {
            task.abort();
        }
    }
}

/// Whether a message is one that nothing answers.
fn is_unanswered(message: &Value) -> bool {
    matches!(Kind::of(message), Kind::Notification { .. } | Kind::Response { .. })
}

/// The request that a message cancels.
fn cancelled(message: &Value) -> Option<&Id> {
    message.get("method").filter(|method| *method == "notifications/cancelled")?;
    message.pointer("/params/requestId")
}

/// The ids of the requests in a message.
fn ids(message: &Value) -> Vec<Id> {
    let asks = |message: &&Value| message.get("method").is_some() || !is_unanswered(message);
    messages(message).filter(asks).filter_map(|message| message.get("id").cloned()).collect()
}

/// The media type of an answer, without parameters, in lower case.
pub(super) fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type_of(value)
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// Takes note of a request that waits, for as long as it is kept.
pub(super) struct Pausing<'a>(&'a Record);

impl<'a> Pausing<'a> {
    pub(super) fn begin(record: &'a Record) -> Self {
        record.pause(true);
        Self(record)
    }
}

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        self.0.pause(false);
    }
}

/// Reads a body, at most `limit` bytes and no more than a message's worth in memory.
async fn read_body(mut response: Response, end: &mut HttpEnd, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => {
                end.bytes += bytes.len();
                let room = (MAX_MESSAGE_BYTES + 1).saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Ok(None) => {
                end.complete = true;
                return body;
            }
            Err(error) => {
                end.trouble = Some(words(&error));
                return body;
            }
        }
        if end.bytes > limit {
            return body;
        }
    }
}
