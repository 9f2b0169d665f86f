//! The evidence of a finding as a timeline with two columns, client and server. A response is in the same row as its
//! request if nothing is between them.
//!
//! JSON is indented token by token instead of being parsed and serialized again, because the spelling of a number or a
//! duplicate member name may be what the finding is about.

use std::collections::BTreeMap;

use serde_json::Value;

use super::display::display;
use crate::report::layout::format_ms;
use crate::report::visible::visible;
use crate::verdict::{Direction, Evidence};

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
    let mut pending: Vec<(String, String, f64, usize)> = Vec::new();
    for item in evidence {
        let info = match item.direction {
            Direction::Sent | Direction::Received => MessageInfo::of(&item.text),
            Direction::Stderr | Direction::Event => MessageInfo::default(),
        };
        let mut message = Message::of(item, &info);
        match item.direction {
            Direction::Sent => {
                if let (Some(id), Some(method)) = (&info.id, &info.method) {
                    pending.push((id.clone(), method.clone(), item.at_ms, rows.len()));
                }
                rows.push(Row { sent: Some(message), ..Row::default() });
            }
            Direction::Received => {
                let request = info
                    .outcome
                    .as_ref()
                    .and(info.id.as_ref())
                    .and_then(|id| pending.iter().position(|(known, ..)| known == id))
                    .map(|at| pending.remove(at));
                let mut same_row = None;
                if let Some((id, method, sent, row)) = request {
                    let duration = format_ms((item.at_ms - sent).max(0.0));
                    message.request = Some(format!("answers {} {} after {duration}", display(&method), display(&id)));
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
    fn of(item: &Evidence, info: &MessageInfo) -> Self {
        let (kind, label) = match item.direction {
            Direction::Sent => ("sent", info.label()),
            Direction::Received => ("received", info.label()),
            Direction::Stderr => ("stderr", "stderr".to_owned()),
            Direction::Event => ("event", "event".to_owned()),
        };
        let text = if info.json { indent(&item.text) } else { display(&item.text) };
        let long = text.lines().count() > MAX_LINES || text.chars().count() > MAX_CHARS;
        let head = long.then(|| {
            let head: String = item.text.chars().take(HEAD_CHARS).collect();
            format!("{}…", visible(&head))
        });
        Self { kind, at: format_ms(item.at_ms), label, request: None, head, text, omitted: item.omitted }
    }
}

/// The JSON-RPC members of a line, as far as it can be parsed.
#[derive(Debug, Default, PartialEq)]
struct MessageInfo {
    json: bool,
    id: Option<String>,
    method: Option<String>,
    outcome: Option<String>,
}

impl MessageInfo {
    fn of(text: &str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(members)) => {
                let error = members.get("error").map(|error| match error.get("code") {
                    Some(code) => format!("error {code}"),
                    None => "error".to_owned(),
                });
                Self {
                    json: true,
                    id: members.get("id").map(Value::to_string),
                    method: members.get("method").and_then(Value::as_str).map(str::to_owned),
                    outcome: error.or_else(|| members.contains_key("result").then(|| "result".to_owned())),
                }
            }
            Ok(Value::Array(_)) => Self { json: true, ..Self::default() },
            Ok(_) => Self::default(),
            // The first members of a truncated or malformed line may still be complete.
            Err(_) => Self::of_truncated(text),
        }
    }

    fn of_truncated(text: &str) -> Self {
        let mut info = Self { json: text.starts_with('{'), ..Self::default() };
        if !info.json {
            return info;
        }
        for (name, value) in members(text) {
            let parsed = || serde_json::from_str::<Value>(value.trim_end_matches(['}', ' ']).trim()).ok();
            match name {
                "\"id\"" => info.id = parsed().filter(|id| id.is_string() || id.is_number()).map(|id| id.to_string()),
                "\"method\"" => info.method = parsed().and_then(|method| method.as_str().map(str::to_owned)),
                "\"result\"" => info.outcome = Some("result".to_owned()),
                "\"error\"" => info.outcome = Some("error".to_owned()),
                _ => {}
            }
        }
        info
    }

    fn label(&self) -> String {
        let what = match (&self.method, &self.outcome) {
            (Some(method), _) => display(method),
            (None, Some(outcome)) => display(outcome),
            (None, None) if self.json => "message".to_owned(),
            (None, None) => "line".to_owned(),
        };
        match &self.id {
            Some(id) => format!("{what} {}", display(id)),
            None => what,
        }
    }
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

/// The members of the outermost object: the name as written, and the text of the value.
fn members(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let (mut name, mut value) = (None, None);
    for (token, begin, end) in tokens(text) {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Scalar if depth == 1 && value.is_none() => name = Some(&text[begin..end]),
            Token::Colon if depth == 1 => value = Some(end),
            Token::Comma if depth == 1 => {
                if let (Some(name), Some(from)) = (name.take(), value.take()) {
                    found.push((name, &text[from..begin]));
                }
            }
            Token::Scalar | Token::Colon | Token::Comma => {}
        }
    }
    if let (Some(name), Some(from)) = (name, value) {
        found.push((name, &text[from..]));
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
    use super::*;

    fn item(direction: Direction, at_ms: f64, text: &str) -> Evidence {
        Evidence { direction, at_ms, text: text.to_owned(), omitted: 0 }
    }

    #[test]
    fn a_response_is_next_to_its_request_unless_something_came_between() {
        let rows = timeline(&[
            item(Direction::Sent, 1.0, r#"{"id":1,"method":"a"}"#),
            item(Direction::Received, 2.5, r#"{"id":1,"result":{}}"#),
            item(Direction::Sent, 3.0, r#"{"id":"x","method":"b"}"#),
            item(Direction::Stderr, 4.0, "oops"),
            item(Direction::Received, 5.0, r#"{"id":"x","error":{"code":-32601}}"#),
            item(Direction::Event, 6.0, "exited"),
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
    fn a_truncated_line_is_still_paired() {
        let info = MessageInfo::of(r#"{"jsonrpc":"2.0","id":15,"result":{"content":[{"data":"aaaa"#);
        assert_eq!((info.id.as_deref(), info.outcome.as_deref()), (Some("15"), Some("result")));
        let info = MessageInfo::of(r#"{"id":"a,b","method":"tools/call","params":{"x":{"id":9},"y":"#);
        assert_eq!((info.id.as_deref(), info.method.as_deref()), (Some("\"a,b\""), Some("tools/call")));
        assert_eq!(MessageInfo::of("plain text"), MessageInfo::default());
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
            MessageInfo::of(text);
        }
        let deep = "[".repeat(5000);
        assert!(indent(&deep).len() < 5000 * 40);
    }
}
