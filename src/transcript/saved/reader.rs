//! Reads a transcript file into connections.
//!
//! What other clients record has fewer lines than what a run saves: the reader adds the ends of HTTP responses, and
//! takes the message of an HTTP request or response from the same line.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::line::{Direction, SECRET, SavedEvent, SavedHttp, SavedLine, SavedSse, is_secret_header};
use crate::transcript::SessionParameters;
use crate::transcript::entry::{Entry, Event, HttpEnd, HttpHead, HttpRequest, ShutdownStep, SseEventSummary, StepId};
use crate::transcript::message_summary::summarize;
use crate::wire::{Frame, JsonText, MessageKind, exceeds_limits};

/// How much memory the messages of a file may take, in bytes (1 GiB).
const MAX_MEMORY_BYTES: usize = 1 << 30;

/// The longest line, in bytes: a message of the greatest length, escaped, and its raw text.
pub const MAX_LINE_BYTES: usize = 96 << 20;

/// What a line looks like.
const EXAMPLE: &str = r#"{"direction": "client-to-server", "message": {...}}"#;

/// The memory that an entry takes without its message, in bytes; an upper bound.
const BYTES_PER_ENTRY: usize = 300;

/// The connections of a file.
#[derive(Debug, Clone, Default)]
pub struct SavedTranscript {
    /// The connections, in the order of their first lines.
    pub connections: Vec<SavedConnection>,
    /// The case of each execution; empty for a malformed message of another client.
    pub cases: Vec<String>,
}

/// A connection of a file.
#[derive(Debug, Clone, Default)]
pub struct SavedConnection {
    /// Its name, for findings.
    pub label: String,
    /// What happened on it.
    pub entries: Vec<Arc<Entry>>,
    /// The revisions in which the run that saved it judged it.
    pub judged: Vec<SavedJudgement>,
}

/// A revision in which a run judged a connection.
#[derive(Debug, Clone)]
pub struct SavedJudgement {
    /// Its position among all of the file: a run judges connections in this order.
    pub position: usize,
    /// The revision.
    pub revision: String,
    /// The parameters of the session.
    pub parameters: SessionParameters,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it, and what to write instead.
    pub reason: String,
}

/// Reads lines.
#[derive(Debug, Default)]
pub struct TranscriptReader {
    lines: usize,
    memory_bytes: usize,
    /// The names of connections with their positions; `None` for one that passive cases leave out.
    names: HashMap<String, Option<usize>>,
    connections: Vec<ConnectionReader>,
    cases: Vec<String>,
}

impl TranscriptReader {
    /// Reads the next line; blank lines are allowed.
    ///
    /// # Errors
    /// When the line has another form, or the file takes more memory than is allowed.
    pub fn read_line(&mut self, line: &[u8]) -> Result<(), LineError> {
        self.lines += 1;
        let number = self.lines;
        self.read(line).map_err(|reason| LineError { line: number, reason })
    }

    /// The connections.
    #[must_use]
    pub fn finish(self) -> SavedTranscript {
        let connections = self.connections.into_iter().map(ConnectionReader::finish).collect();
        SavedTranscript { connections, cases: self.cases }
    }

    fn read(&mut self, line: &[u8]) -> Result<(), String> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if line.len() > MAX_LINE_BYTES {
            return Err(format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20));
        }
        if let Some(limit) = exceeds_limits(line) {
            return Err(format!("it {}", limit.describe()));
        }
        if line.trim_ascii_start().first() == Some(&b'[') {
            return Err(format!("it is an array; expected a JSON object such as {EXAMPLE}"));
        }
        let line: SavedLine = serde_json::from_slice(line).map_err(|error| {
            let end = if error.is_eof() { "it ends too early" } else { "it is no line of a transcript" };
            // The number of the line is said by the caller.
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or_default();
            format!("{end}, at column {}: {reason}; expected a JSON object such as {EXAMPLE}", error.column())
        })?;
        self.memory_bytes += BYTES_PER_ENTRY;
        let name = line.connection.clone().unwrap_or_default();
        let watched = !matches!(line.event, Some(SavedEvent::Opened { watched: false, .. }));
        let connections = &mut self.connections;
        let position = *self.names.entry(name).or_insert_with_key(|name| {
            watched.then(|| {
                connections.push(ConnectionReader { label: name.clone(), ..ConnectionReader::default() });
                connections.len() - 1
            })
        });
        let Some(position) = position else { return Ok(()) };
        let case = line.case.as_deref().or_else(|| is_malformed_message(&line).then_some(""));
        let step_id = case.map(|case| self.step_id(case, line.step.unwrap_or_default()));
        self.memory_bytes += self.connections[position].read(line, self.lines, step_id)?;
        if self.memory_bytes > MAX_MEMORY_BYTES {
            let limit = MAX_MEMORY_BYTES >> 20;
            return Err(format!("the messages up to here take more than {limit} MiB: judge fewer connections at once"));
        }
        Ok(())
    }

    fn step_id(&mut self, case: &str, step: usize) -> StepId {
        let known = self.cases.iter().rposition(|known| known == case);
        let execution = known.unwrap_or_else(|| {
            self.cases.push(case.to_owned());
            self.cases.len() - 1
        });
        StepId { execution, step }
    }
}

/// An HTTP exchange whose response is not complete.
#[derive(Debug, Default)]
struct OpenExchange {
    is_stream: bool,
    end: HttpEnd,
}

/// The lines of one connection so far.
#[derive(Debug, Default)]
struct ConnectionReader {
    label: String,
    entries: Vec<Arc<Entry>>,
    judged: Vec<SavedJudgement>,
    at: Duration,
    /// The entries of the client's messages.
    sent: Vec<Arc<Entry>>,
    /// The number of the last HTTP request.
    last_exchange: Option<usize>,
    /// The exchanges that have a head and no end, by number.
    open: HashMap<usize, OpenExchange>,
}

impl ConnectionReader {
    /// Adds a line with this number; returns the memory that its message takes.
    fn read(&mut self, line: SavedLine, number: usize, step_id: Option<StepId>) -> Result<usize, String> {
        if let Some(at_ms) = line.at_ms {
            self.at = duration(at_ms)?;
        }
        if let Some(event) = line.event {
            self.read_event(event, number)?;
            return Ok(0);
        }
        let direction = line
            .direction
            .ok_or("it has no `direction`: write `client-to-server` or `server-to-client`, or an `event`")?;
        let frame = frame_of(&line, direction)?;
        let memory_bytes = frame.as_ref().map_or(0, Frame::memory_bytes);
        match (direction, line.http, frame) {
            (Direction::ClientToServer, Some(http), frame) => self.read_request(http, frame, step_id)?,
            (Direction::ServerToClient, Some(http), frame) => self.read_response(http, frame)?,
            (Direction::ClientToServer, None, Some(frame)) => {
                self.send(frame, step_id);
            }
            (Direction::ServerToClient, None, Some(frame)) => self.add(Event::Received(frame)),
            (_, None, None) => return Err("it has neither `message` nor `text` nor `http`".to_owned()),
        }
        Ok(memory_bytes)
    }

    fn add(&mut self, event: Event) {
        self.entries.push(Arc::new(Entry { at: self.at, event }));
    }

    fn send(&mut self, frame: Frame, step_id: Option<StepId>) -> Arc<Entry> {
        let entry = Arc::new(Entry { at: self.at, event: Event::Sent { frame, step_id } });
        self.entries.push(Arc::clone(&entry));
        self.sent.push(Arc::clone(&entry));
        entry
    }

    /// Adds an event; `line` is the number of its line.
    fn read_event(&mut self, event: SavedEvent, line: usize) -> Result<(), String> {
        let event = match event {
            SavedEvent::Opened { purpose, .. } => {
                self.label = purpose;
                return Ok(());
            }
            SavedEvent::Judged { revision, client_capabilities, opening, ended_alone } => {
                let parameters = SessionParameters { client_capabilities, opening, ended_alone };
                self.judged.push(SavedJudgement { position: line, revision, parameters });
                return Ok(());
            }
            SavedEvent::Stderr { text } => Event::Stderr(text),
            SavedEvent::TimedOut { waited_ms } => Event::TimedOut { waited: duration(waited_ms)? },
            SavedEvent::Abandoned => Event::Abandoned,
            SavedEvent::Closed => Event::Closed,
            SavedEvent::Exited { status } => Event::Exited { status },
            SavedEvent::Overflow => Event::Overflow,
            SavedEvent::Shutdown { step, duration_ms, left_running } => {
                Event::Shutdown { step: shutdown_step(&step)?, duration: duration(duration_ms)?, left_running }
            }
        };
        self.add(event);
        Ok(())
    }

    fn read_request(&mut self, http: SavedHttp, frame: Option<Frame>, step_id: Option<StepId>) -> Result<(), String> {
        let method = http.method.ok_or("the HTTP request has no `method`")?;
        let number = http.exchange.unwrap_or_else(|| self.last_exchange.map_or(0, |last| last + 1));
        let carries = match (http.carries, frame) {
            (Some(at), _) => {
                let sent = self.sent.get(at).ok_or(format!("`carries` is {at}, but there is no such message"))?;
                Some(Arc::clone(sent))
            }
            (None, Some(frame)) => Some(self.send(frame, step_id)),
            (None, None) => None,
        };
        self.last_exchange = Some(number);
        let step_id = step_id.filter(|_| carries.is_none());
        self.add(Event::HttpRequest(HttpRequest {
            number,
            method,
            target: http.target.unwrap_or_default(),
            headers: headers_of(http.headers)?.into(),
            carries,
            step_id,
            body: http.body.map(JsonText::from),
        }));
        Ok(())
    }

    fn read_response(&mut self, http: SavedHttp, frame: Option<Frame>) -> Result<(), String> {
        let number = http.exchange.or(self.last_exchange).ok_or("no HTTP request comes before the response")?;
        if let Some(status) = http.status {
            let headers: Arc<[_]> = headers_of(http.headers)?.into();
            let kind = headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.as_str());
            let is_stream = kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"));
            self.add(Event::HttpHead(HttpHead { number, status, headers }));
            let end = HttpEnd { number, complete: !is_stream, ..HttpEnd::default() };
            self.open.insert(number, OpenExchange { is_stream, end });
        }
        if let Some(end) = http.end {
            self.open.remove(&number);
            self.add(Event::HttpEnd(Box::new(end.restored(number)?)));
            return Ok(());
        }
        if frame.is_none() && http.sse.is_none() {
            return Ok(());
        }
        let open = self.open.get_mut(&number).ok_or("the response has no `status` before its body")?;
        if open.is_stream || http.sse.is_some() {
            open.end.events.push(event_summary(http.sse.unwrap_or_default(), frame.as_ref()));
            if let Some(frame) = frame {
                self.add(Event::Received(frame));
            }
            return Ok(());
        }
        // A body that is no stream is complete.
        let mut end = std::mem::take(&mut open.end);
        self.open.remove(&number);
        if let Some(frame) = frame {
            end.bytes = frame.bytes;
            end.message = frame.json().map(|message| summarize(message).into());
            if end.message.is_some() {
                self.add(Event::Received(frame));
            } else {
                end.text = frame.text().as_str().into();
            }
        }
        self.add(Event::HttpEnd(Box::new(end)));
        Ok(())
    }

    fn finish(mut self) -> SavedConnection {
        let mut open: Vec<OpenExchange> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|exchange| exchange.end.number);
        for exchange in open {
            self.add(Event::HttpEnd(Box::new(exchange.end)));
        }
        SavedConnection { label: self.label, entries: self.entries, judged: self.judged }
    }
}

/// Whether a line is a message of the client that is no single valid message. What a server answers to one is judged as
/// the answer to a case, as a server may reject it in ways in which it must not reject others.
fn is_malformed_message(line: &SavedLine) -> bool {
    if line.direction != Some(Direction::ClientToServer) || (line.message.is_none() && line.text.is_none()) {
        return line.base64.is_some();
    }
    let Some(message) = &line.message else { return true };
    let is_valid = match MessageKind::of(message) {
        MessageKind::Request { id, .. } => id.is_string() || id.is_i64() || id.is_u64(),
        MessageKind::Notification { .. } | MessageKind::Response { .. } => true,
        MessageKind::Batch(_) | MessageKind::Unknown => false,
    };
    !is_valid || message.get("jsonrpc").is_none_or(|version| version != "2.0")
}

/// The line of a stream, if the saved line has one.
fn frame_of(line: &SavedLine, direction: Direction) -> Result<Option<Frame>, String> {
    let bytes = match (&line.text, &line.base64, &line.message) {
        (Some(text), _, _) => text.clone().into_bytes(),
        (None, Some(base64), _) => STANDARD.decode(base64).map_err(|error| format!("`base64` is invalid: {error}"))?,
        (None, None, Some(message)) => message.to_string().into_bytes(),
        (None, None, None) => return Ok(None),
    };
    if direction == Direction::ClientToServer {
        return Ok(Some(Frame::parse(&bytes)));
    }
    let length = line.bytes.unwrap_or(bytes.len());
    let restored = Frame::restored(&bytes, length, line.framing_error.as_deref());
    restored.map(Some).ok_or_else(|| {
        let word = line.framing_error.clone().unwrap_or_default();
        format!("`framing-error` is `{word}`, which is unknown")
    })
}

/// The summary of an event of a stream.
fn event_summary(sse: SavedSse, frame: Option<&Frame>) -> SseEventSummary {
    let message = frame.and_then(Frame::json).map(|message| JsonText::from(summarize(message)));
    let text = sse.data.or_else(|| frame.filter(|_| message.is_none()).map(Frame::text));
    let data = match (&message, &text) {
        (Some(_), _) => "message",
        (None, Some(text)) if text.is_empty() => "empty",
        (None, Some(_)) => "other",
        (None, None) => "none",
    };
    SseEventSummary { event: sse.event, id: sse.id, retry: sse.retry, data, message, text }
}

/// Headers with names in lower case, and without the values that are secret.
fn headers_of(headers: Option<Map<String, Value>>) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    for (name, value) in headers.unwrap_or_default() {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        let name = name.to_ascii_lowercase();
        for value in values {
            let Value::String(value) = value else {
                return Err(format!("the header `{name}` is neither a string nor a list of strings"));
            };
            all.push((name.clone(), if is_secret_header(&name) { SECRET.to_owned() } else { value }));
        }
    }
    Ok(all)
}

fn duration(milliseconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(milliseconds / 1_000.0).map_err(|_| format!("`{milliseconds}` is no time"))
}

fn shutdown_step(name: &str) -> Result<ShutdownStep, String> {
    use ShutdownStep::{AlreadyExited, Disconnected, Sigkill, Sigterm, StdinClosed};
    let all = [AlreadyExited, StdinClosed, Sigterm, Sigkill, Disconnected];
    all.into_iter().find(|step| step.as_str() == name).ok_or_else(|| format!("`{name}` is no step of a shutdown"))
}
