//! The transcript of a finding as a time-line: two lanes, what we sent and what the server wrote, in order of
//! time, each answer beside its request where nothing came between them.
//!
//! Text is indented for reading, token by token and without being parsed and written again: a number keeps its
//! spelling and an object its duplicate names, since those may be what the finding is about.

use std::collections::BTreeMap;

use serde_json::Value;

use super::shown::shown;
use crate::report::prose::time;
use crate::report::visible::visible;
use crate::verdict::{Direction, Evidence};

/// How many lines of a message are shown before the rest has to be opened.
const LINES: usize = 24;
/// How many characters of a message are shown before the rest has to be opened.
const LONG: usize = 1600;
/// How many characters stand in for a message that has to be opened.
const HEAD: usize = 160;
/// Up to how many bytes an object or array stays on one line.
const SHORT: usize = 64;
/// How many levels are indented; deeper ones stay at this one, so that nesting costs no more than it has bytes.
const DEEP: usize = 16;

/// One row: what is side by side belongs together.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// What we sent.
    pub(super) sent: Option<Message>,
    /// What the server wrote, to either stream.
    pub(super) got: Option<Message>,
    /// What happened.
    pub(super) event: Option<Message>,
}

/// One entry of the time-line.
#[derive(Debug)]
pub(super) struct Message {
    /// `sent`, `received`, `stderr` or `event`.
    pub(super) kind: &'static str,
    /// When.
    pub(super) at: String,
    /// What it is: a method, `result`, `error -32602`.
    pub(super) label: String,
    /// The request that it answers and how long that took.
    pub(super) answers: Option<String>,
    /// What stands in for it until it is opened, where it is long.
    pub(super) head: Option<String>,
    /// The text.
    pub(super) text: String,
    /// How many bytes are missing from its end.
    pub(super) cut: usize,
}

/// Lays the evidence out.
pub(super) fn time_line(evidence: &[Evidence]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    // Requests that are not answered yet: their id, method, time, and row.
    let mut open: Vec<(String, String, f64, usize)> = Vec::new();
    for item in evidence {
        let facts = match item.direction {
            Direction::Sent | Direction::Received => Facts::of(&item.text),
            Direction::Stderr | Direction::Event => Facts::default(),
        };
        let mut message = Message::of(item, &facts);
        match item.direction {
            Direction::Sent => {
                if let (Some(id), Some(method)) = (&facts.id, &facts.method) {
                    open.push((id.clone(), method.clone(), item.at_ms, rows.len()));
                }
                rows.push(Row { sent: Some(message), ..Row::default() });
            }
            Direction::Received => {
                let request = facts
                    .outcome
                    .as_ref()
                    .and(facts.id.as_ref())
                    .and_then(|id| open.iter().position(|(known, ..)| known == id))
                    .map(|at| open.remove(at));
                let mut beside = None;
                if let Some((id, method, sent, row)) = request {
                    let took = time((item.at_ms - sent).max(0.0));
                    message.answers = Some(format!("answers {} {} after {took}", shown(&method), shown(&id)));
                    beside = (row + 1 == rows.len()).then_some(row);
                }
                match beside {
                    Some(row) => rows[row].got = Some(message),
                    None => rows.push(Row { got: Some(message), ..Row::default() }),
                }
            }
            Direction::Stderr => rows.push(Row { got: Some(message), ..Row::default() }),
            Direction::Event => rows.push(Row { event: Some(message), ..Row::default() }),
        }
    }
    rows
}

impl Message {
    fn of(item: &Evidence, facts: &Facts) -> Self {
        let (kind, label) = match item.direction {
            Direction::Sent => ("sent", facts.label()),
            Direction::Received => ("received", facts.label()),
            Direction::Stderr => ("stderr", "error stream".to_owned()),
            Direction::Event => ("event", "event".to_owned()),
        };
        let text = if facts.json { indent(&item.text) } else { shown(&item.text) };
        let long = text.lines().count() > LINES || text.chars().count() > LONG;
        let head = long.then(|| {
            let head: String = item.text.chars().take(HEAD).collect();
            format!("{}…", visible(&head))
        });
        Self { kind, at: time(item.at_ms), label, answers: None, head, text, cut: item.omitted }
    }
}

/// What a line says of itself, as far as it can be read.
#[derive(Debug, Default, PartialEq)]
struct Facts {
    json: bool,
    id: Option<String>,
    method: Option<String>,
    outcome: Option<String>,
}

impl Facts {
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
            // A line that was cut, or that is damaged: its first members may still be whole.
            Err(_) => Self::of_a_part(text),
        }
    }

    fn of_a_part(text: &str) -> Self {
        let mut facts = Self { json: text.starts_with('{'), ..Self::default() };
        if !facts.json {
            return facts;
        }
        for (name, value) in members(text) {
            let whole = || serde_json::from_str::<Value>(value.trim_end_matches(['}', ' ']).trim()).ok();
            match name {
                "\"id\"" => facts.id = whole().filter(|id| id.is_string() || id.is_number()).map(|id| id.to_string()),
                "\"method\"" => facts.method = whole().and_then(|method| method.as_str().map(str::to_owned)),
                "\"result\"" => facts.outcome = Some("result".to_owned()),
                "\"error\"" => facts.outcome = Some("error".to_owned()),
                _ => {}
            }
        }
        facts
    }

    fn label(&self) -> String {
        let what = match (&self.method, &self.outcome) {
            (Some(method), _) => shown(method),
            (None, Some(outcome)) => shown(outcome),
            (None, None) if self.json => "message".to_owned(),
            (None, None) => "line".to_owned(),
        };
        match &self.id {
            Some(id) => format!("{what} {}", shown(id)),
            None => what,
        }
    }
}

/// A piece of JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Comma,
    Colon,
    /// A string, a number or a word; also what is none of these.
    Scalar,
}

/// Splits JSON text, however damaged it is; blanks between the pieces are left out.
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
        // A backslash before a character of several bytes leads into its middle.
        while !text.is_char_boundary(at) {
            at += 1;
        }
        found.push((token, begin, at));
    }
    found
}

/// The members of the outermost object: the name as it is written, and the text of the value.
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

/// Breaks JSON text into lines and makes it visible; what fits on a line stays on it.
pub(super) fn indent(text: &str) -> String {
    broken(text, SHORT)
}

/// Breaks JSON text into lines at every member and element, so that it can be compared line by line.
pub(super) fn indent_fully(text: &str) -> String {
    broken(text, 2)
}

fn broken(text: &str, short: usize) -> String {
    let tokens = tokens(text);
    // Where each object and array that is closed ends, by the index of its token.
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
    // The last token that stays on the line of the object or array that it is in.
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
                // Two of these in a row are no JSON; they are kept apart.
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
    out.extend(std::iter::repeat_n("  ", depth.min(DEEP)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(direction: Direction, at_ms: f64, text: &str) -> Evidence {
        Evidence { direction, at_ms, text: text.to_owned(), omitted: 0 }
    }

    #[test]
    fn an_answer_stands_beside_its_request_unless_something_came_between() {
        let rows = time_line(&[
            item(Direction::Sent, 1.0, r#"{"id":1,"method":"a"}"#),
            item(Direction::Received, 2.5, r#"{"id":1,"result":{}}"#),
            item(Direction::Sent, 3.0, r#"{"id":"x","method":"b"}"#),
            item(Direction::Stderr, 4.0, "oops"),
            item(Direction::Received, 5.0, r#"{"id":"x","error":{"code":-32601}}"#),
            item(Direction::Event, 6.0, "exited"),
        ]);
        assert_eq!(rows.len(), 5);
        let got = rows[0].got.as_ref().expect("side by side");
        assert_eq!((got.label.as_str(), got.answers.as_deref()), ("result 1", Some("answers a 1 after 1.5 ms")));
        assert!(rows[1].got.is_none());
        let late = rows[3].got.as_ref().expect("in its own row");
        assert_eq!(late.label, "error -32601 \"x\"");
        assert_eq!(late.answers.as_deref(), Some("answers b \"x\" after 2.0 ms"));
        assert_eq!(rows[4].event.as_ref().map(|event| event.kind), Some("event"));
    }

    #[test]
    fn a_line_that_was_cut_is_still_paired() {
        let facts = Facts::of(r#"{"jsonrpc":"2.0","id":15,"result":{"content":[{"data":"aaaa"#);
        assert_eq!((facts.id.as_deref(), facts.outcome.as_deref()), (Some("15"), Some("result")));
        let facts = Facts::of(r#"{"id":"a,b","method":"tools/call","params":{"x":{"id":9},"y":"#);
        assert_eq!((facts.id.as_deref(), facts.method.as_deref()), (Some("\"a,b\""), Some("tools/call")));
        assert_eq!(Facts::of("plain text"), Facts::default());
    }

    #[test]
    fn json_is_broken_into_lines_and_keeps_its_spelling() {
        let text = r#"{"a":1.0e3,"a":2,"long":"a text that is long enough to need a line of its own","list":[1,2]}"#;
        let lines = "{\n  \"a\": 1.0e3,\n  \"a\": 2,\n  \"long\": \"a text that is long enough to need a line of its own\",\n  \"list\": [1, 2]\n}";
        assert_eq!(indent(text), lines);
        assert_eq!(indent("{}"), "{}");
        assert_eq!(indent("{\"a\":\"\u{202e}\u{1b}\"}"), "{\"a\": \"\\u{202e}\\u{1b}\"}");
    }

    #[test]
    fn damaged_and_bottomless_text_is_borne() {
        for text in ["{\"a\\é", "}}]]", "[", "\"", "{\"a\" 1 2", "[1,,]", "\\\u{1f600}", "{é:ü}"] {
            indent(text);
            Facts::of(text);
        }
        let deep = "[".repeat(5000);
        assert!(indent(&deep).len() < 5000 * 40);
    }
}
