//! Turns entries of a transcript into the evidence of a finding.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::text::{first_bytes, last_bytes};
use crate::transcript::{Entry, Event, HttpEnd, HttpHead, HttpRequest, SetAside};
use crate::verdict::{Direction, Evidence, MessageSummary};
use crate::wire::MessageKind;

/// The greatest length of a line in a finding, and of the summary of its message, in bytes.
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
        Event::Abandoned => (Direction::Event, "the client gave up: the server answers nothing any more".to_owned()),
        Event::Closed => (Direction::Event, "the server closed its output".to_owned()),
        Event::Exited { status } => (Direction::Event, format!("the process exited ({status})")),
        Event::Overflow => {
            (Direction::Event, "the server wrote more than the record can hold, so the rest is missing".to_owned())
        }
        Event::Shutdown { step, duration, left_running } => {
            let left: String = match left_running.as_deref() {
                Some([]) | None => String::new(),
                Some(names) => format!("; still running: {}", names.join(", ")),
            };
            (Direction::Event, format!("shut down: {} after {duration:.1?}{left}", step.as_str()))
        }
    };
    let message = match &entry.event {
        Event::Sent { frame, .. } | Event::Received(frame) => frame.value.as_ref().ok().and_then(message_summary),
        _ => None,
    };
    let omitted = match &entry.event {
        Event::Sent { frame, .. } | Event::Received(frame) => frame.left_out(),
        _ => 0,
    };
    let mut evidence = Evidence { direction, at_ms: milliseconds(entry.at), text, omitted, message };
    if evidence.text.len() > MAX_LINE_BYTES {
        let end = first_bytes(&evidence.text, MAX_LINE_BYTES).len();
        evidence.omitted += evidence.text.len() - end;
        evidence.text.truncate(end);
    }
    evidence
}

/// The JSON-RPC message that a value is; `None` if it is no object or array, or if an id or a name in it is very long.
#[must_use]
pub(super) fn message_summary(value: &Value) -> Option<MessageSummary> {
    let summary = match MessageKind::of(value) {
        MessageKind::Request { id, method } => {
            let tool = value.pointer("/params/name").and_then(Value::as_str).filter(|_| method == "tools/call");
            MessageSummary::Request { id: id.clone(), method: method.to_owned(), tool: tool.map(str::to_owned) }
        }
        MessageKind::Notification { method } => MessageSummary::Notification { method: method.to_owned() },
        MessageKind::Response { id } => match value.get("error") {
            Some(error) => MessageSummary::Error { id: id.cloned(), code: error.get("code").cloned() },
            None => MessageSummary::Result { id: id.cloned() },
        },
        MessageKind::Batch(_) => MessageSummary::Batch {},
        MessageKind::Unknown => MessageSummary::Other { id: value.as_object()?.get("id").cloned() },
    };
    let bytes = serde_json::to_string(&summary).ok()?.len();
    (bytes <= MAX_LINE_BYTES).then_some(summary)
}

fn http_request(request: &HttpRequest) -> String {
    let mut text = format!("HTTP {} {}", request.method, request.target);
    for (name, value) in request.headers.iter() {
        let _infallible = write!(text, "\n{name}: {value}");
    }
    if let Some(body) = &request.body {
        let body = body.value();
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let _infallible = write!(text, "\n\n{body}");
    }
    text
}

fn http_head(head: &HttpHead) -> String {
    let mut text = format!("HTTP {}", head.status);
    for (name, value) in head.headers.iter() {
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
    match end.events.len() {
        0 => {}
        1 => text.push_str(", 1 event"),
        count => {
            let _infallible = write!(text, ", {count} events");
        }
    }
    match end.set_aside {
        Some(SetAside::SessionEnded) => {
            text.push_str("; the session had ended, so the request is repeated in a new one");
        }
        Some(SetAside::SessionRenewal) => text.push_str("; the client opened a new session"),
        Some(SetAside::ConnectionClosed) => text.push_str("; the request is repeated on a new connection"),
        Some(SetAside::BodyUnread) => text.push_str("; the body was not read, so nothing is known of an answer"),
        None => {}
    }
    let body = end.text();
    if !body.is_empty() {
        let _infallible = write!(text, "\n{body}");
    }
    text
}

/// A time in milliseconds, to the hundredth.
#[must_use]
pub(crate) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 100_000.0).round() / 100.0
}

/// The evidence at these positions, with what the server wrote to standard error around the same time.
pub(super) fn evidence_of(entries: &[Arc<Entry>], positions: &[usize]) -> Vec<Evidence> {
    const MAX_ENTRIES: usize = 12;
    const NEARBY: Duration = Duration::from_millis(100);
    let mut positions: Vec<usize> = positions.iter().copied().filter(|at| *at < entries.len()).collect();
    positions.sort_unstable();
    positions.dedup();
    // The first messages show the context, and the last ones the violation.
    if positions.len() > MAX_ENTRIES {
        let tail = positions.split_off(positions.len() - MAX_ENTRIES / 2);
        positions.truncate(MAX_ENTRIES / 2);
        positions.extend(tail);
    }
    let is_near = |at: Duration| positions.iter().any(|position| entries[*position].at.abs_diff(at) < NEARBY);
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
    last_bytes(&text, limit).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript::SseEventSummary;
    use crate::wire::Frame;

    fn received(line: &str) -> Evidence {
        evidence(&Entry { at: Duration::ZERO, event: Event::Received(Frame::parse(line.as_bytes())) })
    }

    #[test]
    fn the_end_of_a_response_counts_its_events() {
        let ended = |count: usize| {
            let events = vec![SseEventSummary::default(); count];
            http_end(&HttpEnd { events, complete: true, ..HttpEnd::default() })
        };
        assert_eq!(ended(0), "the response ended after 0 bytes");
        assert_eq!(ended(1), "the response ended after 0 bytes, 1 event");
        assert_eq!(ended(2), "the response ended after 0 bytes, 2 events");
    }

    #[test]
    fn the_evidence_of_a_line_says_which_message_it_is() {
        let rows = [
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"echo"}}"#,
                MessageSummary::Request {
                    id: json!(1),
                    method: "tools/call".to_owned(),
                    tool: Some("echo".to_owned()),
                },
            ),
            (
                r#"{"id":null,"method":"prompts/get","params":{"name":"echo"}}"#,
                MessageSummary::Request { id: Value::Null, method: "prompts/get".to_owned(), tool: None },
            ),
            (r#"{"method":"x"}"#, MessageSummary::Notification { method: "x".to_owned() }),
            (r#"{"id":"a","result":{}}"#, MessageSummary::Result { id: Some(json!("a")) }),
            (
                r#"{"id":2,"result":{},"error":{"code":-32602}}"#,
                MessageSummary::Error { id: Some(json!(2)), code: Some(json!(-32602)) },
            ),
            (r#"{"error":"text"}"#, MessageSummary::Error { id: None, code: None }),
            (r#"[{"id":1}]"#, MessageSummary::Batch {}),
            (r#"{"id":3}"#, MessageSummary::Other { id: Some(json!(3)) }),
        ];
        for (line, message) in rows {
            assert_eq!(received(line).message, Some(message), "{line}");
        }
        for line in ["42", "a log line", r#"{"id":1,"result":"#, ""] {
            assert_eq!(received(line).message, None, "{line}");
        }
    }

    #[test]
    fn a_truncated_line_keeps_its_message_but_no_endless_id() {
        let long = "a".repeat(MAX_LINE_BYTES);
        let evidence = received(&format!(r#"{{"result":"{long}","id":7}}"#));
        assert!(evidence.omitted > 0);
        assert_eq!(evidence.message, Some(MessageSummary::Result { id: Some(json!(7)) }));
        assert_eq!(received(&format!(r#"{{"id":"{long}","result":0}}"#)).message, None);
    }
}
