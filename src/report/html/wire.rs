//! The evidence of a finding as a timeline with two columns, client and server. A response is in the same row as its
//! request if nothing is between them.
//!
//! What a message is comes from the evidence; its text is never parsed. JSON is indented token by token, because the
//! spelling of a number or a duplicate member name may be what the finding is about.

use std::collections::BTreeMap;

use serde_json::Value;

use super::display::display;
use crate::report::layout::format_ms;
use crate::report::visible::visible;
use crate::text::first_chars;
use crate::verdict::{Direction, Evidence, MessageSummary};

/// The number of lines from which a message is collapsed.
const MAX_LINES: usize = 24;
/// The number of characters from which a message is collapsed.
const MAX_CHARS: usize = 1600;
/// The length of the summary of a collapsed message, in characters.
const HEAD_CHARS: usize = 160;
/// The length up to which an object or array stays on one line, in bytes.
const MAX_INLINE_BYTES: usize = 64;
/// The maximum indentation level, which bounds the output for deeply nested input.
const MAX_INDENT: usize = 16;

/// One row of the timeline.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// A message that the client sent.
    pub(super) sent: Option<Message>,
    /// What the server wrote to stdout or stderr.
    pub(super) received: Option<Message>,
    /// An event, such as an exit.
    pub(super) event: Option<Message>,
}

/// One entry of the timeline.
#[derive(Debug)]
pub(super) struct Message {
    /// `sent`, `received`, `stderr` or `event`.
    pub(super) kind: &'static str,
    /// The time.
    pub(super) at: String,
    /// A short description: a method, `result`, `error -32602`.
    pub(super) label: String,
    /// The request that it answers, and the response time.
    pub(super) request: Option<String>,
    /// The summary of a collapsed message.
    pub(super) head: Option<String>,
    /// The text.
    pub(super) text: String,
    /// The number of bytes that are omitted at its end.
    pub(super) omitted: usize,
}

/// Arranges the evidence in rows.
pub(super) fn timeline(evidence: &[Evidence]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    // Unanswered requests: id, method, time and row.
    let mut pending: Vec<(&Value, &str, f64, usize)> = Vec::new();
    for item in evidence {
        let mut message = Message::of(item);
        match item.direction {
            Direction::Sent => {
                if let Some(MessageSummary::Request { id, method, .. }) = &item.message {
                    pending.push((id, method, item.at_ms, rows.len()));
                }
                rows.push(Row { sent: Some(message), ..Row::default() });
            }
            Direction::Received => {
                let request = match &item.message {
                    Some(MessageSummary::Result { id: Some(id) } | MessageSummary::Error { id: Some(id), .. }) => {
                        pending.iter().position(|(known, ..)| *known == id).map(|at| pending.remove(at))
                    }
                    _ => None,
                };
                let mut same_row = None;
                if let Some((id, method, sent, row)) = request {
                    let duration = format_ms((item.at_ms - sent).max(0.0));
                    let id = display(&id.to_string());
                    message.request = Some(format!("answers {} {id} after {duration}", display(method)));
                    same_row = (row + 1 == rows.len()).then_some(row);
                }
                match same_row {
                    Some(row) => rows[row].received = Some(message),
                    None => rows.push(Row { received: Some(message), ..Row::default() }),
                }
            }
            Direction::Stderr => rows.push(Row { received: Some(message), ..Row::default() }),
            Direction::Event => rows.push(Row { event: Some(message), ..Row::default() }),
        }
    }
    rows
}

impl Message {
    fn of(item: &Evidence) -> Self {
        let (kind, label) = match item.direction {
            Direction::Sent => ("sent", label(item)),
            Direction::Received => ("received", label(item)),
            Direction::Stderr => ("stderr", "stderr".to_owned()),
            Direction::Event => ("event", "event".to_owned()),
        };
        let is_message = matches!(item.direction, Direction::Sent | Direction::Received);
        let text = if is_message && looks_like_json(item) { indent(&item.text) } else { display(&item.text) };
        let long = text.lines().count() > MAX_LINES || text.chars().count() > MAX_CHARS;
        let head = long.then(|| format!("{}…", visible(first_chars(&item.text, HEAD_CHARS))));
        Self { kind, at: format_ms(item.at_ms), label, request: None, head, text, omitted: item.omitted }
    }
}

/// A short description of the message, in the words of the protocol.
fn label(item: &Evidence) -> String {
    let what = match &item.message {
        Some(MessageSummary::Request { method, .. } | MessageSummary::Notification { method }) => display(method),
        Some(MessageSummary::Result { .. }) => "result".to_owned(),
        Some(MessageSummary::Error { code: Some(code), .. }) => display(&format!("error {code}")),
        Some(MessageSummary::Error { code: None, .. }) => "error".to_owned(),
        None if !looks_like_json(item) => "line".to_owned(),
        // A kind that a later version adds is a message, too.
        _ => "message".to_owned(),
    };
    match item.message.as_ref().and_then(MessageSummary::id) {
        Some(id) => format!("{what} {}", display(&id.to_string())),
        None => what,
    }
}

/// Whether a line is JSON, or so similar to it that it is indented like JSON.
fn looks_like_json(item: &Evidence) -> bool {
    item.message.is_some() || item.text.starts_with('{')
}

/// A kind of JSON token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Comma,
    Colon,
    /// A string, number or keyword; also anything invalid.
    Scalar,
}

/// Splits JSON text into tokens, even if it is malformed; whitespace is dropped.
fn tokens(text: &str) -> Vec<(Token, usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        at += 1;
        let token = match bytes[begin] {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'{' | b'[' => Token::Open,
            b'}' | b']' => Token::Close,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                Token::Scalar
            }
            _ => {
                while at < bytes.len() && !b" \t\r\n{}[],:\"".contains(&bytes[at]) {
                    at += 1;
                }
                Token::Scalar
            }
        };
        // A backslash before a multi-byte character ends within that character.
        while !text.is_char_boundary(at) {
            at += 1;
        }
        found.push((token, begin, at));
    }
    found
}

/// Indents JSON text and escapes control characters; short objects and arrays stay on one line.
pub(super) fn indent(text: &str) -> String {
    break_into_lines(text, MAX_INLINE_BYTES)
}

/// Indents JSON text with every member and element on its own line, for line-by-line comparison.
pub(super) fn indent_fully(text: &str) -> String {
    break_into_lines(text, 2)
}

fn break_into_lines(text: &str, short: usize) -> String {
    let tokens = tokens(text);
    // The closing token of each object and array, by the index of its opening token.
    let mut ends = BTreeMap::new();
    let mut open = Vec::new();
    for (index, (token, ..)) in tokens.iter().enumerate() {
        match token {
            Token::Open => open.push(index),
            Token::Close => {
                if let Some(begin) = open.pop() {
                    ends.insert(begin, index);
                }
            }
            Token::Comma | Token::Colon | Token::Scalar => {}
        }
    }
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut depth = 0_usize;
    // The last token of an object or array that stays on one line.
    let mut flat_until = None;
    for (index, (token, begin, end)) in tokens.iter().enumerate() {
        let flat = flat_until.is_some_and(|until| index <= until);
        let piece = visible(&text[*begin..*end]);
        match token {
            _ if flat => {
                out.push_str(&piece);
                match token {
                    Token::Comma | Token::Colon => out.push(' '),
                    Token::Open | Token::Close | Token::Scalar => {}
                }
            }
            Token::Open => {
                out.push_str(&piece);
                match ends.get(&index) {
                    Some(close) if tokens[*close].2 - begin <= short => flat_until = Some(*close),
                    _ => {
                        depth += 1;
                        break_line(&mut out, depth);
                    }
                }
            }
            Token::Close => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push_str(&piece);
            }
            Token::Comma => {
                out.push(',');
                break_line(&mut out, depth);
            }
            Token::Colon => out.push_str(": "),
            Token::Scalar => {
                // Two scalars in a row are not JSON; keep them separate.
                if out.ends_with(|c: char| !c.is_whitespace()) {
                    out.push(' ');
                }
                out.push_str(&piece);
            }
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(MAX_INDENT)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(direction: Direction, at_ms: f64, text: &str, message: Option<MessageSummary>) -> Evidence {
        Evidence { message, ..Evidence::new(direction, at_ms, text.to_owned()) }
    }

    fn request(id: Value, method: &str) -> MessageSummary {
        MessageSummary::Request { id, method: method.to_owned(), tool: None }
    }

    #[test]
    fn a_response_is_next_to_its_request_unless_something_came_between() {
        let error = MessageSummary::Error { id: Some(json!("x")), code: Some(json!(-32601)) };
        let rows = timeline(&[
            item(Direction::Sent, 1.0, r#"{"id":1,"method":"a"}"#, Some(request(json!(1), "a"))),
            item(
                Direction::Received,
                2.5,
                r#"{"id":1,"result":{"#,
                Some(MessageSummary::Result { id: Some(json!(1)) }),
            ),
            item(Direction::Sent, 3.0, r#"{"id":"x","method":"b"}"#, Some(request(json!("x"), "b"))),
            item(Direction::Stderr, 4.0, "oops", None),
            item(Direction::Received, 5.0, r#"{"id":"x","error":{"code":-32601}}"#, Some(error)),
            item(Direction::Event, 6.0, "exited", None),
        ]);
        assert_eq!(rows.len(), 5);
        let received = rows[0].received.as_ref().expect("side by side");
        assert_eq!(
            (received.label.as_str(), received.request.as_deref()),
            ("result 1", Some("answers a 1 after 1.5 ms"))
        );
        assert!(rows[1].received.is_none());
        let late = rows[3].received.as_ref().expect("in its own row");
        assert_eq!(late.label, "error -32601 \"x\"");
        assert_eq!(late.request.as_deref(), Some("answers b \"x\" after 2.0 ms"));
        assert_eq!(rows[4].event.as_ref().map(|event| event.kind), Some("event"));
    }

    #[test]
    fn a_line_is_labelled_by_its_summary_alone() {
        let label = |text: &str, message| label(&item(Direction::Received, 0.0, text, message));
        let error = MessageSummary::Error { id: None, code: None };
        assert_eq!(label("{}", Some(error)), "error");
        assert_eq!(label("[]", Some(MessageSummary::Batch {})), "message");
        assert_eq!(label(r#"{"id":3}"#, Some(MessageSummary::Other { id: Some(json!(3)) })), "message 3");
        // Reports of earlier versions have no summaries.
        assert_eq!(label(r#"{"id":1,"result":{}}"#, None), "message");
        assert_eq!(label("plain text", None), "line");
    }

    #[test]
    fn indented_json_keeps_its_spelling() {
        let text = r#"{"a":1.0e3,"a":2,"long":"a text that is long enough to need a line of its own","list":[1,2]}"#;
        let lines = "{\n  \"a\": 1.0e3,\n  \"a\": 2,\n  \"long\": \"a text that is long enough to need a line of its own\",\n  \"list\": [1, 2]\n}";
        assert_eq!(indent(text), lines);
        assert_eq!(indent("{}"), "{}");
        assert_eq!(indent("{\"a\":\"\u{202e}\u{1b}\"}"), "{\"a\": \"\\u{202e}\\u{1b}\"}");
    }

    #[test]
    fn malformed_and_deeply_nested_text_is_accepted() {
        for text in ["{\"a\\é", "}}]]", "[", "\"", "{\"a\" 1 2", "[1,,]", "\\\u{1f600}", "{é:ü}"] {
            indent(text);
        }
        let deep = "[".repeat(5000);
        assert!(indent(&deep).len() < 5000 * 40);
    }
}
