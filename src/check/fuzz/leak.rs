//! Whether an error contains internals of the server: stack traces, secrets, paths.

use serde_json::Value;

use super::call::Arguments;
use super::exchange::{FuzzExchange, FuzzedTool};
use super::message_text::{excerpt, strings};
use super::violation::OracleViolation;
use crate::case::Oracle;
use crate::verdict::Verdict;

/// Phrases of stack traces.
const STACK_TRACE_PHRASES: [&str; 9] = [
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

/// Error messages of language runtimes.
const RUNTIME_PHRASES: [&str; 15] = [
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

/// Prefixes of secrets.
const SECRET_PREFIXES: [&str; 9] =
    ["sk-", "ghp_", "gho_", "AKIA", "xoxb-", "-----BEGIN ", "Bearer ", "password=", "api_key="];

/// Prefixes of paths on the server's machine.
const PATH_PREFIXES: [&str; 10] =
    ["/home/", "/root/", "/Users/", "/usr/", "/var/", "/opt/", "/etc/", "/srv/", "/app/", "C:\\"];

/// The set of ASCII characters in a string, one bit for each: a quick test that rules out most phrases.
struct AsciiSet(u128);

impl AsciiSet {
    fn of(text: &str) -> Self {
        Self(text.bytes().filter(u8::is_ascii).fold(0, |chars, byte| chars | 1 << byte))
    }

    fn may_contain(&self, step_id: &str) -> bool {
        let needed = Self::of(step_id).0;
        self.0 & needed == needed
    }
}

/// An error that contains internals of the server.
pub(super) fn information_leak(
    fuzzed_tool: &FuzzedTool,
    exchange: &FuzzExchange,
    error: &Value,
) -> Option<OracleViolation> {
    let mut found = Vec::new();
    strings(error, &mut found);
    found.iter().find_map(|text| {
        let text = text.get(..16 << 10).unwrap_or(text);
        let (what, at) = find(text, |part| is_known(fuzzed_tool, exchange, part))?;
        let message = format!("an error contains {what}");
        let around: String = text[at..].chars().take(160).collect();
        Some(OracleViolation::new(Oracle::Leak, Verdict::Warn, message).actual(excerpt(&around, 160)).signature(what))
    })
}

/// The first part of a text that an error should not contain, and its offset.
fn find(text: &str, known: impl Fn(&str) -> bool) -> Option<(&'static str, usize)> {
    let chars = AsciiSet::of(text);
    let marks = |marks: &[&'static str]| {
        let mut possible = marks.iter().filter(|step_id| chars.may_contain(step_id));
        possible.find_map(|step_id| text.find(step_id).filter(|_| !known(step_id)))
    };
    if let Some(at) = marks(&STACK_TRACE_PHRASES).or_else(|| source_line(text)) {
        return Some(("a stack trace", at));
    }
    if let Some(at) = SECRET_PREFIXES
        .iter()
        .filter(|step_id| chars.may_contain(step_id))
        .find_map(|step_id| secret(text, step_id, &known))
    {
        return Some(("a secret", at));
    }
    if let Some(at) = marks(&RUNTIME_PHRASES) {
        return Some(("an error of its runtime", at));
    }
    let mut paths = PATH_PREFIXES.iter().filter(|step_id| chars.may_contain(step_id));
    paths.find_map(|step_id| path(text, step_id, &known)).map(|at| ("a path of its machine", at))
}

/// A place in a source file as traces name it: `File "x.py", line 3`.
fn source_line(text: &str) -> Option<usize> {
    let at = text.find("File \"")?;
    text[at..].find("\", line ").map(|_| at)
}

/// A word that looks like a secret.
fn secret(text: &str, step_id: &str, known: &impl Fn(&str) -> bool) -> Option<usize> {
    const MIN_LENGTH: usize = 12;
    text.match_indices(step_id).map(|(at, _)| at).find(|&at| {
        let begins = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let rest = &text[at + step_id.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.+/=".contains(c))).unwrap_or(rest.len());
        let long = if step_id.ends_with('=') { 4 } else { MIN_LENGTH };
        let is_key = step_id.starts_with("-----") && rest.starts_with(|c: char| c.is_ascii_uppercase());
        begins && (end >= long || is_key) && !known(&text[at..at + step_id.len() + end])
    })
}

/// A path of at least two segments.
fn path(text: &str, step_id: &str, known: &impl Fn(&str) -> bool) -> Option<usize> {
    text.match_indices(step_id).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        // A part of a URL is not a path of the machine.
        let begins = before.is_none_or(|c| c.is_whitespace() || "\"'`(=:[<>,".contains(c));
        let rest = &text[at..];
        let end = rest.find(|c: char| c.is_whitespace() || "\"'`)>]".contains(c)).unwrap_or(rest.len());
        let deep = rest[..end].matches(['/', '\\']).count() >= 2 && end > step_id.len() + 2;
        begins && deep && !known(&rest[..end])
    })
}

/// Whether the client sent it, or the command line of the server contains it.
fn is_known(fuzzed_tool: &FuzzedTool, exchange: &FuzzExchange, found: &str) -> bool {
    let named = |text: &str| text.len() > 2 && (found.contains(text) || text.contains(found));
    if fuzzed_tool.known.iter().any(|known| named(known)) {
        return true;
    }
    match &exchange.call.arguments {
        Arguments::Json(value) => {
            let mut sent = Vec::new();
            strings(value, &mut sent);
            names(value, &mut sent);
            sent.into_iter().any(named)
        }
        Arguments::Raw(bytes) => String::from_utf8_lossy(bytes).contains(found),
    }
}

/// Every name of a member in a value.
fn names<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    const MAX_NAMES: usize = 256;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        if found.len() >= MAX_NAMES {
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
    fn traces_secrets_runtime_errors_and_paths_are_distinguished_from_plain_text() {
        let leaked = |text| find(text, |_| false).map(|(what, _)| what);
        assert_eq!(leaked("Traceback (most recent call last):\n"), Some("a stack trace"));
        assert_eq!(leaked("  File \"a.py\", line 3, in f"), Some("a stack trace"));
        assert_eq!(
            leaked("TypeError: Cannot read properties of undefined (reading 'x')"),
            Some("an error of its runtime")
        );
        assert_eq!(leaked("open '/home/anna/app/db.sqlite' failed"), Some("a path of its machine"));
        assert_eq!(leaked("key sk-abcdefghijklmnop is wrong"), Some("a secret"));
        assert_eq!(leaked("no such city: Ulm"), None);
        assert_eq!(leaked("see https://example.com/home/help/x"), None);
        assert_eq!(leaked("the task-list is empty"), None);
    }
}
