//! What an error tells that is nobody's business.

use serde_json::Value;

use super::words::{excerpt, texts};
use super::{Arguments, Breach, Exchange, Subject};
use crate::case::Oracle;
use crate::verdict::Verdict;

/// Marks of a stack trace.
const TRACES: [&str; 9] = [
    "Traceback (most recent call last)",
    "stack backtrace:",
    "RUST_BACKTRACE",
    "panicked at ",
    "goroutine 1 [",
    "    at Object.",
    "    at async ",
    "node:internal/",
    "Caused by: java.",
];

/// Words that only the inside of a program uses.
const INTERNALS: [&str; 15] = [
    "Cannot read properties of undefined",
    "Cannot read properties of null",
    "Cannot read property '",
    "undefined is not",
    "is not a function",
    "[object Object]",
    "'NoneType' object",
    "object has no attribute",
    "object is not subscriptable",
    "NullPointerException",
    "called `Option::unwrap()`",
    "called `Result::unwrap()`",
    "index out of bounds: the len",
    "segmentation fault",
    "runtime error: invalid memory address",
];

/// Beginnings of secrets.
const SECRETS: [&str; 9] = ["sk-", "ghp_", "gho_", "AKIA", "xoxb-", "-----BEGIN ", "Bearer ", "password=", "api_key="];

/// Beginnings of paths that are no business of a client.
const PATHS: [&str; 10] = ["/home/", "/root/", "/Users/", "/usr/", "/var/", "/opt/", "/etc/", "/srv/", "/app/", "C:\\"];

/// The characters of a text below 128, one bit for each: what lacks a character of a mark does not hold the mark, and
/// most texts lack one of each.
struct Letters(u128);

impl Letters {
    fn of(text: &str) -> Self {
        Self(text.bytes().filter(u8::is_ascii).fold(0, |letters, byte| letters | 1 << byte))
    }

    fn may_hold(&self, mark: &str) -> bool {
        let needed = Self::of(mark).0;
        self.0 & needed == needed
    }
}

/// An error that tells what it ought to keep.
pub(super) fn leak(subject: &Subject, exchange: &Exchange, error: &Value) -> Option<Breach> {
    let mut told = Vec::new();
    texts(error, &mut told);
    told.iter().find_map(|text| {
        let text = text.get(..16 << 10).unwrap_or(text);
        let (what, at) = find(text, |found| is_known(subject, exchange, found))?;
        let message = format!("an error tells {what}");
        let around: String = text[at..].chars().take(160).collect();
        Some(Breach::new(Oracle::Leak, Verdict::Warn, message).actual(excerpt(&around, 160)).signed(what))
    })
}

/// The first thing in a text that ought not to be there, and where.
fn find(text: &str, known: impl Fn(&str) -> bool) -> Option<(&'static str, usize)> {
    let letters = Letters::of(text);
    let marks = |marks: &[&'static str]| {
        let mut possible = marks.iter().filter(|mark| letters.may_hold(mark));
        possible.find_map(|mark| text.find(mark).filter(|_| !known(mark)))
    };
    if let Some(at) = marks(&TRACES).or_else(|| source_line(text)) {
        return Some(("a stack trace", at));
    }
    if let Some(at) = SECRETS.iter().filter(|mark| letters.may_hold(mark)).find_map(|mark| secret(text, mark, &known)) {
        return Some(("a secret", at));
    }
    if let Some(at) = marks(&INTERNALS) {
        return Some(("internals of its language", at));
    }
    let mut paths = PATHS.iter().filter(|mark| letters.may_hold(mark));
    paths.find_map(|mark| path(text, mark, &known)).map(|at| ("a path of its machine", at))
}

/// A place in a source file as traces name it: `File "x.py", line 3`.
fn source_line(text: &str) -> Option<usize> {
    let at = text.find("File \"")?;
    text[at..].find("\", line ").map(|_| at)
}

/// A word that begins like a secret and goes on like one.
fn secret(text: &str, mark: &str, known: &impl Fn(&str) -> bool) -> Option<usize> {
    const LEAST: usize = 12;
    text.match_indices(mark).map(|(at, _)| at).find(|&at| {
        let begins = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let rest = &text[at + mark.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.+/=".contains(c))).unwrap_or(rest.len());
        let long = if mark.ends_with('=') { 4 } else { LEAST };
        let is_key = mark.starts_with("-----") && rest.starts_with(|c: char| c.is_ascii_uppercase());
        begins && (end >= long || is_key) && !known(&text[at..at + mark.len() + end])
    })
}

/// A path of some depth.
fn path(text: &str, mark: &str, known: &impl Fn(&str) -> bool) -> Option<usize> {
    text.match_indices(mark).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        // Within an address it is a part of that.
        let begins = before.is_none_or(|c| c.is_whitespace() || "\"'`(=:[<>,".contains(c));
        let rest = &text[at..];
        let end = rest.find(|c: char| c.is_whitespace() || "\"'`)>]".contains(c)).unwrap_or(rest.len());
        let deep = rest[..end].matches(['/', '\\']).count() >= 2 && end > mark.len() + 2;
        begins && deep && !known(&rest[..end])
    })
}

/// Whether we sent it, or the command line of the server names it.
fn is_known(subject: &Subject, exchange: &Exchange, found: &str) -> bool {
    let named = |text: &str| text.len() > 2 && (found.contains(text) || text.contains(found));
    if subject.known.iter().any(|known| named(known)) {
        return true;
    }
    match &exchange.call.arguments {
        Arguments::Json(value) => {
            let mut ours = Vec::new();
            texts(value, &mut ours);
            names(value, &mut ours);
            ours.into_iter().any(named)
        }
        Arguments::Raw(bytes) => String::from_utf8_lossy(bytes).contains(found),
    }
}

/// Every name of a member in a value.
fn names<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    const MOST: usize = 256;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        if found.len() >= MOST {
            return;
        }
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                found.extend(members.keys().map(String::as_str));
                pending.extend(members.values());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_secrets_internals_and_paths_are_told_apart_from_plain_words() {
        let told = |text| find(text, |_| false).map(|(what, _)| what);
        assert_eq!(told("Traceback (most recent call last):\n"), Some("a stack trace"));
        assert_eq!(told("  File \"a.py\", line 3, in f"), Some("a stack trace"));
        assert_eq!(
            told("TypeError: Cannot read properties of undefined (reading 'x')"),
            Some("internals of its language")
        );
        assert_eq!(told("open '/home/anna/app/db.sqlite' failed"), Some("a path of its machine"));
        assert_eq!(told("key sk-abcdefghijklmnop is wrong"), Some("a secret"));
        assert_eq!(told("no such city: Ulm"), None);
        assert_eq!(told("see https://example.com/home/help/x"), None);
        assert_eq!(told("the task-list is empty"), None);
    }
}
