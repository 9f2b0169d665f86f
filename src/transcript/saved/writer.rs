//! Writes the entries of a connection as lines of a transcript file.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::line::{Direction, SECRET, SavedEnd, SavedEvent, SavedHttp, SavedLine, is_secret_header, masked};
use crate::transcript::SessionParameters;
use crate::transcript::entry::{Entry, Event, HttpRequest, StepId};
use crate::wire::{Frame, FramingError, SHORTENED};

/// Masks the secrets in a text.
pub(crate) type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The line that begins a connection; passive cases leave the connection out unless it is `watched`.
pub(crate) fn opened_line(connection: &str, purpose: &str, watched: bool) -> String {
    event_line(connection, SavedEvent::Opened { purpose: purpose.to_owned(), watched })
}

/// The line that says in which revision, and with which parameters, a run judges a connection.
pub(crate) fn judged_line(connection: &str, revision: &str, parameters: &SessionParameters, mask: &Mask) -> String {
    let event = SavedEvent::Judged {
        revision: revision.to_owned(),
        client_capabilities: masked(&**mask, &parameters.client_capabilities),
        opening: parameters.opening.as_ref().map(|opening| masked(&**mask, opening)),
        ended_alone: parameters.ended_alone,
    };
    event_line(connection, event)
}

fn event_line(connection: &str, event: SavedEvent) -> String {
    text_of(&SavedLine { connection: Some(connection.to_owned()), event: Some(event), ..SavedLine::default() })
}

/// Writes the lines of one connection.
pub(crate) struct ConnectionWriter {
    connection: String,
    mask: Mask,
    /// The number of messages that the client sent so far.
    sent: usize,
    /// The numbers of these messages by the address of their entry; the request that carries one keeps it there.
    numbers: HashMap<usize, usize>,
}

impl ConnectionWriter {
    pub(crate) fn new(connection: String, mask: Mask) -> Self {
        Self { connection, mask, sent: 0, numbers: HashMap::new() }
    }

    /// The next line. `case_of` names the case of an execution.
    pub(crate) fn line(&mut self, entry: &Entry, case_of: impl Fn(usize) -> Option<String>) -> String {
        let mut line = SavedLine {
            connection: Some(self.connection.clone()),
            at_ms: Some(milliseconds(entry.at)),
            ..SavedLine::default()
        };
        let step_id = match &entry.event {
            Event::Sent { frame, step_id } => {
                line.direction = Some(Direction::ClientToServer);
                self.numbers.insert(address(entry), self.sent);
                self.sent += 1;
                self.add_frame(&mut line, frame);
                *step_id
            }
            Event::Received(frame) => {
                line.direction = Some(Direction::ServerToClient);
                self.add_frame(&mut line, frame);
                None
            }
            Event::HttpRequest(request) => {
                line.direction = Some(Direction::ClientToServer);
                line.http = Some(self.request(request));
                request.step_id
            }
            Event::HttpHead(head) => {
                line.direction = Some(Direction::ServerToClient);
                line.http = Some(SavedHttp {
                    exchange: Some(head.number),
                    status: Some(head.status),
                    headers: Some(self.headers(&head.headers)),
                    ..SavedHttp::default()
                });
                None
            }
            Event::HttpEnd(end) => {
                line.direction = Some(Direction::ServerToClient);
                let (exchange, end) = (Some(end.number), Some(SavedEnd::of(end, &*self.mask)));
                line.http = Some(SavedHttp { exchange, end, ..SavedHttp::default() });
                None
            }
            event => {
                line.event = self.event(event);
                None
            }
        };
        if let Some(StepId { execution, step }) = step_id {
            line.case = Some(case_of(execution).unwrap_or_default());
            line.step = Some(step);
        }
        text_of(&line)
    }

    /// An event that is no message.
    fn event(&self, event: &Event) -> Option<SavedEvent> {
        Some(match event {
            Event::Stderr(text) => SavedEvent::Stderr { text: (self.mask)(text) },
            Event::TimedOut { waited } => SavedEvent::TimedOut { waited_ms: milliseconds(*waited) },
            Event::Abandoned => SavedEvent::Abandoned,
            Event::Closed => SavedEvent::Closed,
            Event::Exited { status } => SavedEvent::Exited { status: status.clone() },
            Event::Overflow => SavedEvent::Overflow,
            Event::Shutdown { step, duration, left_running } => SavedEvent::Shutdown {
                step: step.as_str().to_owned(),
                duration_ms: milliseconds(*duration),
                left_running: left_running.clone(),
            },
            Event::Sent { .. }
            | Event::Received(_)
            | Event::HttpRequest(_)
            | Event::HttpHead(_)
            | Event::HttpEnd(_) => return None,
        })
    }

    /// Adds a line of a stream: its message, and the line itself unless the message is written in the shortest way.
    fn add_frame(&self, line: &mut SavedLine, frame: &Frame) {
        let value = frame.json().filter(|value| value.is_object() || value.is_array());
        line.message = value.map(|value| masked(&*self.mask, value));
        let raw = frame.raw();
        let is_shortest = |value: &Value| serde_json::to_vec(value).is_ok_and(|shortest| shortest == *raw);
        if !value.is_some_and(is_shortest) {
            if let Ok(text) = std::str::from_utf8(&raw) {
                line.text = Some((self.mask)(text));
            } else {
                let text = String::from_utf8_lossy(&raw);
                let masked = (self.mask)(&text);
                line.base64 = Some(if masked == text { STANDARD.encode(&raw) } else { STANDARD.encode(masked) });
            }
        }
        line.bytes = (raw.len() < frame.bytes).then_some(frame.bytes);
        let error = frame.value.as_ref().err().or(frame.defect.as_ref());
        let word = error.map(FramingError::word).or(frame.is_shortened().then_some(SHORTENED));
        line.framing_error = word.map(str::to_owned);
    }

    fn request(&self, request: &HttpRequest) -> SavedHttp {
        let carried = request.carries.as_ref().map(|entry| address(entry));
        SavedHttp {
            exchange: Some(request.number),
            method: Some(request.method.clone()),
            target: Some(request.target.clone()),
            headers: Some(self.headers(&request.headers)),
            carries: carried.and_then(|address| self.numbers.get(&address).copied()),
            body: request.body.as_ref().map(|body| masked(&*self.mask, &body.value())),
            ..SavedHttp::default()
        }
    }

    fn headers(&self, headers: &[(String, String)]) -> Map<String, Value> {
        let mut grouped = Map::new();
        for (name, value) in headers {
            let value = if is_secret_header(name) { SECRET.to_owned() } else { (self.mask)(value) };
            let value = Value::String(value);
            match grouped.get_mut(name) {
                None => {
                    grouped.insert(name.clone(), value);
                }
                Some(Value::Array(values)) => values.push(value),
                Some(first) => *first = Value::Array(vec![first.take(), value]),
            }
        }
        grouped
    }
}

fn address(entry: &Entry) -> usize {
    std::ptr::from_ref(entry).addr()
}

/// A duration in milliseconds, to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

fn text_of(line: &SavedLine) -> String {
    serde_json::to_string(line).expect("names are strings, and numbers are finite")
}
