//! Turns entries of a transcript into the evidence of a finding.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::transcript::{Entry, Event, HttpEnd, HttpHead, HttpRequest};
use crate::verdict::{Direction, Evidence};

/// The greatest length of a line in a finding, in bytes.
const MAX_LINE_BYTES: usize = 4_000;

/// An entry as evidence.
#[must_use]
pub(crate) fn evidence(entry: &Entry) -> Evidence {
    let (direction, text) = match &entry.event {
        Event::Sent { frame, .. } => (Direction::Sent, frame.text()),
        Event::Received(frame) => (Direction::Received, frame.text()),
        Event::Stderr(text) => (Direction::Stderr, text.clone()),
        Event::HttpRequest(request) => (Direction::Sent, http_request(request)),
        Event::HttpHead(head) => (Direction::Received, http_head(head)),
        Event::HttpEnd(end) => (Direction::Event, http_end(end)),
        Event::TimedOut { waited } => (Direction::Event, format!("no response within {waited:.1?}")),
        Event::Closed => (Direction::Event, "the server closed its output".to_owned()),
        Event::Exited { status } => (Direction::Event, format!("the process exited ({status})")),
        Event::Overflow => {
            (Direction::Event, "the server wrote more than the record can hold, so the rest is missing".to_owned())
        }
        Event::Shutdown { step, duration } => (
            Direction::Event,
            format!("shut down: {} after {duration:.1?}", crate::event::Launch::shutdown_name(*step)),
        ),
    };
    let mut evidence = Evidence { direction, at_ms: milliseconds(entry.at), text, omitted: 0 };
    if evidence.text.len() > MAX_LINE_BYTES {
        let end = (0..=MAX_LINE_BYTES).rev().find(|at| evidence.text.is_char_boundary(*at)).unwrap_or(0);
        evidence.omitted = evidence.text.len() - end;
        evidence.text.truncate(end);
    }
    evidence
}

fn http_request(request: &HttpRequest) -> String {
    let mut text = format!("HTTP {} {}", request.method, request.target);
    for (name, value) in &request.headers {
        let _infallible = write!(text, "\n{name}: {value}");
    }
    if let Some(body) = &request.body {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let _infallible = write!(text, "\n\n{body}");
    }
    text
}

fn http_head(head: &HttpHead) -> String {
    let mut text = format!("HTTP {}", head.status);
    for (name, value) in &head.headers {
        let _infallible = write!(text, "\n{name}: {value}");
    }
    text
}

fn http_end(end: &HttpEnd) -> String {
    let mut text = match (&end.failure, end.complete) {
        (Some(failure), _) => format!("the response broke off: {failure}"),
        (None, true) => format!("the response ended after {} bytes", end.bytes),
        (None, false) => format!("the client closed the response after {} bytes", end.bytes),
    };
    if !end.events.is_empty() {
        let _infallible = write!(text, ", {} events", end.events.len());
    }
    if !end.text.is_empty() {
        let _infallible = write!(text, "\n{}", end.text);
    }
    text
}

/// A time in milliseconds, to the hundredth.
#[must_use]
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// The evidence at these positions, with what the server wrote to standard error around the same time.
pub(super) fn evidence_of(entries: &[Arc<Entry>], positions: &[usize]) -> Vec<Evidence> {
    const MAX_ENTRIES: usize = 12;
    let mut positions: Vec<usize> = positions.iter().copied().filter(|at| *at < entries.len()).collect();
    positions.sort_unstable();
    positions.dedup();
    // The first messages show the context, and the last ones the violation.
    if positions.len() > MAX_ENTRIES {
        let tail = positions.split_off(positions.len() - MAX_ENTRIES / 2);
        positions.truncate(MAX_ENTRIES / 2);
        positions.extend(tail);
    }
    let is_near =
        |at: Duration| positions.iter().any(|position| entries[*position].at.abs_diff(at) < Duration::from_millis(100));
    let errors = (0..entries.len())
        .rev()
        .filter(|at| matches!(&entries[*at].event, Event::Stderr(text) if !text.is_empty()) && is_near(entries[*at].at))
        .take(3);
    let mut all: Vec<usize> = errors.chain(positions.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|at| evidence(&entries[at])).collect()
}

/// The end of what the server wrote to standard error, at most `limit` bytes.
#[must_use]
pub(crate) fn stderr_of(entries: &[Arc<Entry>], limit: usize) -> String {
    let mut text = String::new();
    for entry in entries {
        if let Event::Stderr(part) = &entry.event {
            text.push_str(part);
        }
    }
    let from = text.len().saturating_sub(limit);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.split_off(from)
}
