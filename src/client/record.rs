//! The growing record of a connection, with limits that a server cannot exceed.

use std::collections::VecDeque;
use std::fmt;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use tokio::sync::watch;

use super::under_way::{MessagesUnderWay, OwnMessages};
use crate::text::last_bytes;
use crate::transcript::{Entry, Event, HttpEnd};
use crate::wire::{Frame, FramingError, MAX_SENT_BYTES, MessageKind, messages, reports_rate_limit};

/// The limits of one connection's record.
///
/// A server decides how much it writes, so responses to requests are counted separately from unsolicited messages:
/// responses may be large, while a flood of unsolicited messages ends the connection early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordLimits {
    /// Lines that answer no request of the client.
    pub unsolicited: usize,
    /// Memory for these lines, in bytes.
    pub unsolicited_bytes: usize,
    /// The length of an unfinished line, in bytes, at which the server is disconnected.
    pub line: usize,
    /// Bytes of standard error that are kept; the newest ones.
    pub stderr: usize,
    /// Pieces of standard error that keep their own time.
    pub stderr_pieces: usize,
    /// Requests of the server that are answered.
    pub answers: usize,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self {
            unsolicited: 4_000,
            unsolicited_bytes: 6 << 20,
            line: 32 << 20,
            stderr: 64 << 10,
            stderr_pieces: 1_000,
            answers: 1_000,
        }
    }
}

/// A message that takes more memory than this, in bytes, is a large one. A page of 600 tools takes 2 to 3 MiB, and is read
/// some thirty times in each revision.
const LARGE: usize = 4 << 20;

/// A memory budget that several connections share.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    all: AtomicUsize,
    large: AtomicUsize,
    long_strings: AtomicUsize,
    beginnings: AtomicUsize,
}

impl MemoryBudget {
    /// A budget of `all` bytes for messages, of which `large` bytes may go to large ones.
    #[must_use]
    pub(crate) fn new(all: usize, large: usize) -> Self {
        let of_large = |part: usize| AtomicUsize::new(large / part);
        Self { all: AtomicUsize::new(all), large: of_large(1), long_strings: of_large(4), beginnings: of_large(16) }
    }

    /// Takes the memory of a message from the budget; returns what may be kept of it. What is long is mostly the text of
    /// a few strings, and the rest of such a message can be judged without it.
    fn admit(&self, frame: Frame) -> Frame {
        let long = frame.long_string_bytes();
        if long > 0 && take(&self.long_strings, long) {
            let rest = frame.memory_bytes().saturating_sub(long);
            return if self.take(rest) { frame } else { frame.drop_contents() };
        }
        let frame = match frame {
            frame if long == 0 => frame,
            frame => {
                let shortened = frame.shortened();
                // The beginnings of many long strings are too long as well.
                let fits = take(&self.beginnings, shortened.memory_bytes());
                if fits { shortened } else { shortened.shortened_further() }
            }
        };
        if self.take(frame.memory_bytes()) { frame } else { frame.drop_contents() }
    }

    /// Takes memory from the budget; `false` if not enough is left.
    fn take(&self, room: usize) -> bool {
        (room <= LARGE || take(&self.large, room)) && take(&self.all, room)
    }
}

fn take(budget: &AtomicUsize, room: usize) -> bool {
    budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(room)).is_ok()
}

impl Default for MemoryBudget {
    /// Enough for a few hundred processes of a server with a few hundred tools.
    fn default() -> Self {
        Self::new(512 << 20, 64 << 20)
    }
}

/// A callback that sees every entry at the moment it is recorded.
pub(crate) type EntryObserver = Arc<dyn Fn(&Entry) + Send + Sync>;

/// How a connection is recorded.
#[derive(Clone, Default)]
pub(crate) struct RecordOptions {
    /// How much is kept.
    pub limits: RecordLimits,
    /// The memory budget that it shares with other connections.
    pub memory_budget: Arc<MemoryBudget>,
    /// The messages that are under way over HTTP, on all connections that share them.
    pub messages_under_way: MessagesUnderWay,
    /// The callback for new entries.
    pub observer: Option<EntryObserver>,
    /// Whether entries are dropped once the callback has seen them: for thousands of calls.
    pub discards_entries: bool,
    /// The name of the connection in the transcript that the run saves, if it saves one.
    pub name: Option<Arc<str>>,
}

impl fmt::Debug for RecordOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordOptions")
            .field("limits", &self.limits)
            .field("observer", &self.observer.is_some())
            .finish_non_exhaustive()
    }
}

/// What a client had to put up with on a connection, and what its transcript does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ConnectionCosts {
    /// How often the server asked the client to slow down, and the request was made again after a pause.
    pub(crate) pauses: usize,
    /// How long the pauses were, all together. Requests pause side by side.
    pub(crate) waited: Duration,
    /// Whether no stream was open for the server's own messages, because the server answers no request meanwhile.
    pub(crate) without_get_stream: bool,
}

/// What has been recorded of a connection.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) entries: Vec<Arc<Entry>>,
    /// Whether nothing more can arrive.
    pub(super) closed: bool,
    pub(super) first_line: Option<Duration>,
    /// When the first HTTP request was made.
    first_request: Option<Duration>,
    pub(super) exited: bool,
    /// How many requests wait because of the server's rate limit.
    paused_requests: usize,
    /// How many requests the server rejected because of its rate limit.
    limited: usize,
    costs: ConnectionCosts,
    /// The number of sessions that the server ended before the client did.
    renewals: usize,
    overflowed: bool,
    under_way: OwnMessages,
    /// Requests that were sent and not answered yet.
    open: usize,
    unsolicited: usize,
    unsolicited_bytes: usize,
    answers: usize,
    /// The positions of standard error text, oldest first.
    stderr_at: VecDeque<usize>,
    stderr: usize,
    stderr_pieces: usize,
}

/// The record of a connection.
pub(super) struct Record {
    pub(super) changed: watch::Sender<()>,
    pub(super) limits: RecordLimits,
    started: Instant,
    state: Mutex<State>,
    memory_budget: Arc<MemoryBudget>,
    observer: Option<EntryObserver>,
    discards_entries: bool,
    pub(super) name: Option<Arc<str>>,
}

impl Record {
    pub(super) fn new(keeping: RecordOptions) -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::new(State { under_way: OwnMessages::among(keeping.messages_under_way), ..State::default() }),
            changed: watch::channel(()).0,
            limits: keeping.limits,
            memory_budget: keeping.memory_budget,
            observer: keeping.observer,
            discards_entries: keeping.discards_entries,
            name: keeping.name,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, event: Event) -> Arc<Entry> {
        let event = match event {
            Event::Sent { frame, step_id } if !self.discards_entries => {
                let frame = frame.compacted();
                // An answer to the server is delivered from its entry.
                let is_long = frame.bytes > MAX_SENT_BYTES && !frame.is_shortened() && step_id.is_some();
                Event::Sent { frame: if is_long { frame.shortened() } else { frame }, step_id }
            }
            other => other,
        };
        let entry = Arc::new(Entry { at: self.started.elapsed(), event });
        if let Some(observer) = &self.observer {
            observer(&entry);
        }
        entry
    }

    pub(super) fn add(&self, event: Event) -> Arc<Entry> {
        let entry = self.entry(event);
        self.append(&mut self.state(), &entry);
        self.changed.send_replace(());
        entry
    }

    fn append(&self, state: &mut State, entry: &Arc<Entry>) {
        state.under_way.count(&entry.event);
        match &entry.event {
            Event::Closed => state.closed = true,
            Event::Overflow => (state.closed, state.overflowed) = (true, true),
            Event::Exited { .. } => (state.closed, state.exited) = (true, true),
            Event::Received(_) | Event::HttpHead(_) if state.first_line.is_none() => state.first_line = Some(entry.at),
            Event::HttpRequest(_) if state.first_request.is_none() => state.first_request = Some(entry.at),
            Event::Sent { frame, .. } => state.open += frame.json().map_or(1, requests),
            _ => {}
        }
        if !self.discards_entries {
            state.entries.push(Arc::clone(entry));
        }
    }

    /// Records a line of the server; `false` once it has written more than is kept.
    pub(super) fn receive(&self, frame: Frame) -> bool {
        self.receive_before(frame, None)
    }

    /// Records the body of an HTTP response and its end, one directly after the other, as the end says to which request a
    /// body without an id belongs; `false` once the server has written more than is kept.
    pub(super) fn receive_body(&self, frame: Frame, end: HttpEnd) -> bool {
        self.receive_before(frame, Some(Event::HttpEnd(Box::new(end))))
    }

    fn receive_before(&self, frame: Frame, next: Option<Event>) -> bool {
        let mut state = self.state();
        if state.overflowed {
            drop(state);
            if let Some(next) = next {
                self.add(next);
            }
            return false;
        }
        let room = frame.memory_bytes();
        let answers = frame.json().map_or(0, responses);
        if frame.json().is_some_and(|value| messages(value).any(reports_rate_limit)) {
            state.limited += 1;
        }
        if answers > 0 && answers <= state.open {
            state.open -= answers;
            if self.discards_entries {
                // Dropped entries take no memory; only a flood between two responses counts.
                (state.unsolicited, state.unsolicited_bytes) = (0, 0);
            }
        } else {
            state.unsolicited += 1;
            state.unsolicited_bytes += room;
        }
        let limits = &self.limits;
        let flood = state.unsolicited > limits.unsolicited || state.unsolicited_bytes > limits.unsolicited_bytes;
        drop(state);
        let frame = if flood || self.discards_entries { frame } else { self.memory_budget.admit(frame.compacted()) };
        let fits = !flood && (!is_dropped(&frame) || self.memory_budget.take(frame.memory_bytes()));
        let received = if fits { Event::Received(frame) } else { Event::Overflow };
        let entries: Vec<Arc<Entry>> = iter::once(received).chain(next).map(|event| self.entry(event)).collect();
        let mut state = self.state();
        for entry in &entries {
            self.append(&mut state, entry);
        }
        drop(state);
        self.changed.send_replace(());
        fits
    }

    /// Records text of standard error. Does not wake tasks that wait for a message.
    pub(super) fn stderr(&self, text: String) {
        let entry = self.entry(Event::Stderr(text));
        let mut state = self.state();
        let State { entries, stderr_at, stderr, stderr_pieces, .. } = &mut *state;
        let length = |entry: &Entry| if let Event::Stderr(text) = &entry.event { text.len() } else { 0 };
        *stderr += length(&entry);
        // Further pieces are joined, so that their number is limited as well as their length.
        let joined =
            *stderr_pieces >= self.limits.stderr_pieces && stderr_at.back() == entries.len().checked_sub(1).as_ref();
        match entries.last_mut() {
            Some(last) if joined => append(Arc::make_mut(last), &entry, self.limits.stderr, stderr),
            _ => {
                *stderr_pieces += 1;
                stderr_at.push_back(entries.len());
                entries.push(entry);
            }
        }
        // The oldest text is dropped, since the newest explains why a server exited. Entries stay at their positions,
        // because others refer to them by position.
        while *stderr > self.limits.stderr && stderr_at.len() > 1 {
            let Some(oldest) = stderr_at.pop_front() else { break };
            *stderr -= length(&entries[oldest]);
            entries[oldest] = Arc::new(Entry { at: entries[oldest].at, event: Event::Stderr(String::new()) });
        }
    }

    /// How long the server took until it first answered: from its start, or from the first HTTP request on, which may have
    /// had to wait for something else.
    pub(super) fn opening_time(&self) -> Option<Duration> {
        let state = self.state();
        state.first_line.map(|at| at.saturating_sub(state.first_request.unwrap_or_default()))
    }

    /// How long to wait at least for what the server does by itself, where `usual` is enough for others: as long as its opening
    /// took.
    pub(super) fn at_least_opening(&self, usual: Duration) -> Duration {
        usual.max(self.opening_time().unwrap_or_default())
    }

    /// Records that a request begins or ends a pause.
    pub(super) fn set_paused(&self, begins: bool) {
        let mut state = self.state();
        state.paused_requests =
            if begins { state.paused_requests + 1 } else { state.paused_requests.saturating_sub(1) };
    }

    /// Whether a request waits because of the server's rate limit.
    pub(super) fn is_paused(&self) -> bool {
        self.state().paused_requests > 0
    }

    /// Counts a request that the server rejected because of its rate limit.
    pub(super) fn count_rate_limited(&self) {
        self.state().limited += 1;
    }

    /// Counts a pause that the server asked for.
    pub(super) fn count_pause(&self, pause: Duration) {
        let costs = &mut self.state().costs;
        costs.pauses += 1;
        costs.waited += pause;
    }

    /// Records that no stream is open for the server's own messages.
    pub(super) fn go_without_get_stream(&self) {
        self.state().costs.without_get_stream = true;
    }

    /// What the client had to put up with so far.
    pub(super) fn costs(&self) -> ConnectionCosts {
        self.state().costs
    }

    /// Counts a session that the client opened because the server had ended the one before.
    pub(super) fn count_renewal(&self) {
        self.state().renewals += 1;
    }

    /// How many sessions the server ended.
    pub(super) fn renewals(&self) -> usize {
        self.state().renewals
    }

    /// How many requests the server rejected because of its rate limit.
    pub(super) fn limited(&self) -> usize {
        self.state().limited
    }

    /// The time since the start.
    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts a request of the server; returns whether it may be answered.
    pub(super) fn may_answer(&self) -> bool {
        let mut state = self.state();
        state.answers += 1;
        state.answers <= self.limits.answers
    }
}

/// Appends text of standard error to an entry, which keeps the newest `longest` bytes.
fn append(last: &mut Entry, new: &Entry, longest: usize, total: &mut usize) {
    let (Event::Stderr(text), Event::Stderr(more)) = (&mut last.event, &new.event) else { return };
    text.push_str(more);
    let excess = text.len() - last_bytes(text, longest).len();
    text.drain(..excess);
    *total -= excess;
    last.at = new.at;
}

fn is_dropped(frame: &Frame) -> bool {
    matches!(frame.value, Err(FramingError::Dropped { .. }))
}

/// How many responses a line of the client may have: a malformed message may have one too.
fn requests(value: &serde_json::Value) -> usize {
    let silent = |message: &&serde_json::Value| {
        matches!(MessageKind::of(message), MessageKind::Notification { .. } | MessageKind::Response { .. })
    };
    messages(value).filter(|message| !silent(message)).count()
}

/// The number of responses in a line.
fn responses(value: &serde_json::Value) -> usize {
    messages(value).filter(|message| matches!(MessageKind::of(message), MessageKind::Response { .. })).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::StepId;
    use serde_json::json;

    fn record(limits: RecordLimits) -> Record {
        Record::new(RecordOptions { limits, ..RecordOptions::default() })
    }

    fn received(record: &Record) -> usize {
        record.state().entries.iter().filter(|entry| matches!(entry.event, Event::Received(_))).count()
    }

    #[test]
    fn a_flood_ends_the_connection_and_responses_do_not() {
        let record = record(RecordLimits { unsolicited: 10, ..RecordLimits::default() });
        for id in 0..50 {
            record.add(Event::Sent { frame: Frame::from_value(&json!({"id": id, "method": "ping"})), step_id: None });
            assert!(record.receive(Frame::from_value(&json!({"id": id, "result": {}}))));
        }
        for _ in 0..10 {
            assert!(record.receive(Frame::from_value(&json!({"method": "notifications/message"}))));
        }
        assert!(!record.receive(Frame::from_value(&json!({"method": "notifications/message"}))));
        assert!(!record.receive(Frame::from_value(&json!({"id": 50, "result": {}}))));
        assert_eq!(received(&record), 60);
        assert!(record.state().closed);
    }

    #[test]
    fn the_end_of_an_http_response_directly_follows_its_body() {
        const RESPONSES: usize = 200;
        let record = record(RecordLimits { unsolicited: usize::MAX, ..RecordLimits::default() });
        std::thread::scope(|scope| {
            for first in [0, RESPONSES] {
                let record = &record;
                scope.spawn(move || {
                    for number in first..first + RESPONSES {
                        let body = Frame::from_value(&json!({"error": {"code": -32700, "message": number}}));
                        assert!(record.receive_body(body, HttpEnd { number, ..HttpEnd::default() }));
                    }
                });
            }
        });
        let entries = &record.state().entries;
        assert_eq!(entries.len(), 4 * RESPONSES);
        for pair in entries.chunks(2) {
            let number = pair[0].received().and_then(|body| body["error"]["message"].as_u64());
            let Event::HttpEnd(end) = &pair[1].event else {
                panic!("{:?} is not the end of a response", pair[1].event)
            };
            assert_eq!(number, u64::try_from(end.number).ok());
        }
    }

    #[test]
    fn a_response_to_no_open_request_is_unsolicited() {
        let record = record(RecordLimits { unsolicited: 3, ..RecordLimits::default() });
        record.add(Event::Sent { frame: Frame::from_value(&json!({"id": 1, "method": "ping"})), step_id: None });
        let kept = (0..9).filter(|_| record.receive(Frame::from_value(&json!({"id": 1, "result": {}})))).count();
        assert_eq!(kept, 4);
    }

    #[test]
    fn connections_share_a_memory_budget_and_keep_less_of_a_response_once_it_is_used_up() {
        let keeping =
            RecordOptions { memory_budget: Arc::new(MemoryBudget::new(10_000, 0)), ..RecordOptions::default() };
        let records = [Record::new(keeping.clone()), Record::new(keeping)];
        let answer = Frame::from_value(&json!({"id": 1, "result": "x".repeat(6_000)}));
        for record in &records {
            record.add(Event::Sent { frame: Frame::from_value(&json!({"id": 1, "method": "ping"})), step_id: None });
        }
        assert!(records[0].receive(answer.clone()));
        assert!(!records[1].receive(answer), "the rest of the budget is too small even for the beginning");
        assert!(records[1].state().closed);
        let large =
            RecordOptions { memory_budget: Arc::new(MemoryBudget::new(64 << 20, 0)), ..RecordOptions::default() };
        let record = Record::new(large);
        for id in [1, 2] {
            record.add(Event::Sent { frame: Frame::from_value(&json!({"id": id, "method": "ping"})), step_id: None });
        }
        assert!(record.receive(Frame::from_value(&json!({"id": 1, "result": vec![1; 60_000]}))));
        assert!(record.receive(Frame::from_value(&json!({"id": 2, "result": "x".repeat(8 << 20)}))));
        let state = record.state();
        let [dropped, shortened] = [2, 3].map(|position| match &state.entries[position].event {
            Event::Received(frame) => frame,
            other => panic!("{other:?} is no received line"),
        });
        assert!(is_dropped(dropped) && dropped.raw().len() < 5_000 && dropped.bytes > 60_000);
        assert!(shortened.is_shortened() && shortened.raw().len() < 70_000 && shortened.bytes > 8 << 20);
        assert_eq!(shortened.json().map(|message| &message["id"]), Some(&json!(2)));
    }

    #[test]
    fn a_long_message_of_a_case_is_kept_in_part_and_an_answer_as_a_whole() {
        let record = record(RecordLimits::default());
        let long = json!({"id": 1, "result": "x".repeat(2 << 20)});
        for step_id in [Some(StepId { execution: 0, step: 0 }), None] {
            let entry = record.add(Event::Sent { frame: Frame::from_value(&long), step_id });
            assert_eq!(entry.sent() == Some(&long), step_id.is_none());
        }
    }

    #[test]
    fn standard_error_is_limited_and_positions_stay_valid() {
        let record = record(RecordLimits { stderr: 100, stderr_pieces: 5, ..RecordLimits::default() });
        record.stderr("old ".repeat(20));
        let position = record.state().entries.len();
        record.receive(Frame::from_value(&json!({"id": 1, "result": {}})));
        for number in 0..1_000 {
            record.stderr(format!("line {number}\n"));
        }
        let state = record.state();
        assert!(state.entries[position].received().is_some());
        assert!(state.entries.len() < 20, "{} entries", state.entries.len());
        let kept: String = crate::check::stderr_of(&state.entries, usize::MAX);
        assert!(kept.ends_with("line 999\n") && kept.len() <= 100, "{kept}");
    }
}
