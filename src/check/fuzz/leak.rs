//! Whether an error contains internals of the server: stack traces, secrets, paths.

use serde_json::Value;

use super::call::Arguments;
use super::exchange::{FuzzExchange, FuzzedTool};
use super::message_text::{excerpt, strings};
use super::violation::OracleViolation;
use crate::case::Oracle;
use crate::text::{first_bytes, first_chars};
use crate::verdict::Verdict;

/// Phrases of stack traces.
static STACK_TRACE_PHRASES: [Mark; 9] = marks([
    "Traceback (most recent call last)",
    "stack backtrace:",
    "RUST_BACKTRACE",
    "panicked at ",
    "goroutine 1 [",
    "    at Object.",
    "    at async ",
    "node:internal/",
    "Caused by: java.",
]);

/// Error messages of language runtimes.
static RUNTIME_PHRASES: [Mark; 15] = marks([
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
]);

/// How much of a text is searched.
const MAX_SEARCHED_BYTES: usize = 16 << 10;

/// Prefixes of secrets.
static SECRET_PREFIXES: [Mark; 9] =
    marks(["sk-", "ghp_", "gho_", "AKIA", "xoxb-", "-----BEGIN ", "Bearer ", "password=", "api_key="]);

/// Prefixes of paths on the server's machine.
static PATH_PREFIXES: [Mark; 10] =
    marks(["/home/", "/root/", "/Users/", "/usr/", "/var/", "/opt/", "/etc/", "/srv/", "/app/", "C:\\"]);

/// The set of ASCII characters in a string, one bit for each: a quick test that rules out most phrases.
#[derive(Clone, Copy)]
struct AsciiSet(u128);

impl AsciiSet {
    const fn of(text: &str) -> Self {
        let (bytes, mut chars, mut at) = (text.as_bytes(), 0, 0);
        while at < bytes.len() {
            if bytes[at].is_ascii() {
                chars |= 1 << bytes[at];
            }
            at += 1;
        }
        Self(chars)
    }

    fn may_contain(self, mark: &Mark) -> bool {
        self.0 & mark.chars.0 == mark.chars.0
    }
}

/// A text to search for.
#[derive(Clone, Copy)]
struct Mark {
    text: &'static str,
    chars: AsciiSet,
}

const fn marks<const COUNT: usize>(texts: [&'static str; COUNT]) -> [Mark; COUNT] {
    let mut marks = [Mark { text: "", chars: AsciiSet(0) }; COUNT];
    let mut at = 0;
    while at < COUNT {
        marks[at] = Mark { text: texts[at], chars: AsciiSet::of(texts[at]) };
        at += 1;
    }
    marks
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
        let text = first_bytes(text, MAX_SEARCHED_BYTES);
        let (what, at) = find(text, |part| is_known(fuzzed_tool, exchange, part))?;
        let message = format!("an error contains {what}");
        let around = first_chars(&text[at..], 160);
        Some(OracleViolation::new(Oracle::Leak, Verdict::Warn, message).actual(excerpt(around, 160)).signature(what))
    })
}

/// The first part of a text that an error should not contain, and its offset.
fn find(text: &str, known: impl Fn(&str) -> bool) -> Option<(&'static str, usize)> {
    let chars = AsciiSet::of(text);
    let possible = |marks: &'static [Mark]| marks.iter().filter(|mark| chars.may_contain(mark)).map(|mark| mark.text);
    let phrase = |marks| possible(marks).find_map(|mark| text.find(mark).filter(|_| !known(mark)));
    if let Some(at) = phrase(&STACK_TRACE_PHRASES).or_else(|| source_line(text, &known)) {
        return Some(("a stack trace", at));
    }
    if let Some(at) = possible(&SECRET_PREFIXES).find_map(|mark| secret(text, mark, &known)) {
        return Some(("a secret", at));
    }
    if let Some(at) = phrase(&RUNTIME_PHRASES) {
        return Some(("an error of its runtime", at));
    }
    possible(&PATH_PREFIXES).find_map(|mark| path(text, mark, &known)).map(|at| ("a path of its machine", at))
}

/// A place in a source file as traces name it: `File "x.py", line 3`.
fn source_line(text: &str, known: &impl Fn(&str) -> bool) -> Option<usize> {
    const LINE: &str = "\", line ";
    let at = text.find("File \"")?;
    let length = text[at..].find(LINE)? + LINE.len();
    (!known(&text[at..at + length])).then_some(at)
}

/// A word that looks like a secret.
fn secret(text: &str, mark: &str, known: &impl Fn(&str) -> bool) -> Option<usize> {
    const MIN_LENGTH: usize = 12;
    text.match_indices(mark).map(|(at, _)| at).find(|&at| {
        let begins = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let rest = &text[at + mark.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.+/=".contains(c))).unwrap_or(rest.len());
        let long = if mark.ends_with('=') { 4 } else { MIN_LENGTH };
        let is_key = mark.starts_with("-----") && rest.starts_with(|c: char| c.is_ascii_uppercase());
        begins && (end >= long || is_key) && !known(&text[at..at + mark.len() + end])
    })
}

/// A path of at least two segments.
fn path(text: &str, mark: &str, known: &impl Fn(&str) -> bool) -> Option<usize> {
    text.match_indices(mark).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        // A part of a URL is not a path of the machine.
        let begins = before.is_none_or(|c| c.is_whitespace() || "\"'`(=:[<>,".contains(c));
        let rest = &text[at..];
        let end = rest.find(|c: char| c.is_whitespace() || "\"'`)>]".contains(c)).unwrap_or(rest.len());
        let deep = rest[..end].matches(['/', '\\']).count() >= 2 && end > mark.len() + 2;
        begins && deep && !is_example(&text[..at], &rest[..end]) && !known(&rest[..end])
    })
}

/// Whether a path is in a text that helps the caller, as an example or as what is allowed: the words before it say so, or
/// it has a placeholder.
fn is_example(before: &str, path: &str) -> bool {
    const INTRODUCTIONS: [&str; 9] = [
        "e.g.",
        "eg.",
        "example",
        "such as",
        "for instance",
        "allowed director",
        "allowed folder",
        "allowed path",
        "allowed root",
    ];
    const PLACEHOLDERS: [&str; 8] = ["path", "to", "username", "yourname", "your-name", "your_name", "you", "..."];
    const MAX_DISTANCE: usize = 40;
    let nearby: String = before.chars().rev().take(MAX_DISTANCE).collect();
    let nearby: String = nearby.chars().rev().collect::<String>().to_lowercase();
    let is_placeholder = |segment: &str| PLACEHOLDERS.contains(&segment) || segment.starts_with(['<', '{', '$']);
    INTRODUCTIONS.iter().any(|words| nearby.contains(words)) || path.split(['/', '\\']).any(is_placeholder)
}

/// Whether the client sent it, or the command line of the server contains it.
fn is_known(fuzzed_tool: &FuzzedTool, exchange: &FuzzExchange, found: &str) -> bool {
    let plain = found.replace("\\\\", "\\");
    let ending = plain.trim_end_matches(['.', ',', ';', ':']);
    if fuzzed_tool.texts.iter().any(|text| text.contains(ending)) {
        return true;
    }
    let shown = skeletons(found);
    let named = |text: &str| {
        let sent = skeletons(text);
        let mut pairs = shown.iter().flat_map(|shown| sent.iter().map(move |sent| (shown, sent)));
        // A part of it that the client sent makes it known, unless that part is too short to say anything.
        pairs.any(|(shown, sent)| sent.contains(shown.as_str()) || (sent.len() > 2 && shown.contains(sent.as_str())))
    };
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
        Arguments::Raw(text) => {
            let sent = skeletons(&String::from_utf8_lossy(&text.bytes()));
            shown.iter().any(|shown| sent.iter().any(|sent| sent.contains(shown.as_str())))
        }
    }
}

/// What remains of a text in whatever way it is escaped: its ASCII letters and digits, as it is and without the escapes
/// of several notations around each other. A server may show what it was sent as code, in a URL or as markup, quoted
/// more than once, and with an ellipsis where it is cut off.
fn skeletons(text: &str) -> Vec<String> {
    const MAX_NOTATIONS: usize = 5;
    let mut notations = vec![text.to_owned()];
    while notations.len() < MAX_NOTATIONS {
        let plain = unescaped(&notations[notations.len() - 1]);
        if notations.contains(&plain) {
            break;
        }
        notations.push(plain);
    }
    let skeleton = |text: &String| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let mut skeletons: Vec<String> = notations.iter().map(skeleton).filter(|text| !text.is_empty()).collect();
    skeletons.dedup();
    skeletons
}

/// A text without escapes: of strings in code (`\\n`, `\\x41`, `\\101`, `\\u0041`, `\\U00000041`, `\\u{41}`), of URLs
/// (`%41`, `+`) and of markup (`&lt;`, `&#60;`, `&#x3c;`).
fn unescaped(text: &str) -> String {
    // The bytes of a character may be escaped one by one.
    let mut plain: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let escape = match c {
            '\\' => code_escape(rest),
            '%' => hex(rest.get(..2)).map(|value| (value, 2)),
            '&' => markup_escape(rest),
            '+' => Some((u32::from(b' '), 0)),
            _ => None,
        };
        let (value, length) = escape.unwrap_or((u32::from(c), 0));
        match (u8::try_from(value), char::from_u32(value)) {
            (Ok(byte), _) if escape.is_some() => plain.push(byte),
            (_, Some(c)) => plain.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            // A half of a surrogate pair is no letter.
            (_, None) => {}
        }
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn hex(digits: Option<&str>) -> Option<u32> {
    digits
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
}

/// The character of an escape in code after its backslash, and the length of the escape.
fn code_escape(rest: &str) -> Option<(u32, usize)> {
    let octal = rest.get(..3).filter(|digits| digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')));
    if let Some(value) = octal.and_then(|digits| u32::from_str_radix(digits, 8).ok()) {
        return Some((value, 3));
    }
    match rest.bytes().next()? {
        b'u' if rest[1..].starts_with('{') => {
            let end = rest.find('}')?;
            hex(rest.get(2..end)).map(|value| (value, end + 1))
        }
        b'u' => hex(rest.get(1..5)).map(|value| (value, 5)),
        b'U' => hex(rest.get(1..9)).map(|value| (value, 9)),
        b'x' => hex(rest.get(1..3)).map(|value| (value, 3)),
        b'n' | b't' | b'r' | b'f' | b'b' | b'a' | b'v' | b'0' => Some((u32::from(b' '), 1)),
        other if other.is_ascii() => Some((u32::from(other), 1)),
        _ => None,
    }
}

/// The character of an entity of markup after its ampersand, and the length of the entity.
fn markup_escape(rest: &str) -> Option<(u32, usize)> {
    const NAMED: [(&str, u8); 8] = [
        ("lt;", b'<'),
        ("gt;", b'>'),
        ("amp;", b'&'),
        ("quot;", b'"'),
        ("apos;", b'\''),
        ("sol;", b'/'),
        ("bsol;", b'\\'),
        ("nbsp;", b' '),
    ];
    if let Some(number) = rest.strip_prefix('#') {
        let end = number.find(';').filter(|end| (1..=8).contains(end))?;
        let value = match number[..end].strip_prefix(['x', 'X']) {
            Some(digits) => hex(Some(digits))?,
            None => number[..end].parse().ok()?,
        };
        return Some((value, end + 2));
    }
    NAMED.iter().find(|(name, _)| rest.starts_with(name)).map(|(name, byte)| (u32::from(*byte), name.len()))
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
    use serde_json::json;

    use super::*;
    use crate::spec::Revision;

    fn exchange(arguments: Value) -> FuzzExchange {
        FuzzExchange::answered(arguments, Vec::new())
    }

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

    #[test]
    fn a_path_in_an_example_is_no_leak() {
        let leaked = |text| find(text, |_| false).map(|(what, _)| what);
        assert_eq!(leaked("the path must be absolute, e.g. /home/anna/book.xlsx"), None);
        assert_eq!(leaked("Access denied, allowed directories: /srv/documents"), None);
        assert_eq!(leaked("Access to /srv/documents is not allowed"), Some("a path of its machine"));
        assert_eq!(leaked("give a file, for example 'C:\\Data\\book.xlsx'"), None);
        assert_eq!(leaked("use /Users/<name>/book.xlsx"), None);
        assert_eq!(leaked("cannot open /home/anna/book.xlsx"), Some("a path of its machine"));
    }

    #[test]
    fn no_text_is_searched_beyond_the_limit_even_if_a_character_crosses_it() {
        let fuzzed_tool = FuzzedTool::new(&json!({"name": "t"}), Revision::V2025_11_25, Vec::new());
        let found = |before: &str| {
            let error = json!({"message": format!("{before} panicked at src/main.rs")});
            information_leak(&fuzzed_tool, &exchange(json!({})), &error).is_some()
        };
        // Each character has three bytes, and no multiple of three is the limit.
        assert!(!found(&"€".repeat(MAX_SEARCHED_BYTES / 3 + 1)));
        assert!(!found(&"x".repeat(MAX_SEARCHED_BYTES)));
        assert!(found(&"€".repeat(MAX_SEARCHED_BYTES / 3 - 10)));
    }

    #[test]
    fn a_path_that_the_client_sent_is_known_in_any_notation() {
        let definition = json!({"name": "t", "description": "Reads below /srv/data/public."});
        let fuzzed_tool = FuzzedTool::new(&definition, Revision::V2025_11_25, Vec::new());
        let exchange = exchange(json!({"path": "C:\\Windows\\x.txt"}));
        for known in [
            "C:\\Windows\\x.txt",
            "C:\\\\Windows\\\\x.txt",
            "C:\\\\\\\\Windows\\\\\\\\x.txt",
            "C:%5CWindows%5Cx.txt",
            "C:\\u005cWindows\\x5cx.txt",
            "C:\\\\Wind",
            "C:\\Windo...",
            "c:\\windows\\x.txt",
            "C:&#92;Windows&#x5c;x&#46;txt",
            "C:\\134Windows\\134x.txt",
            "C:%255CWindows%255Cx.txt",
            "C:\\u{5c}Windows\\U0000005cx.txt",
            "C:&amp;#92;Windows&amp;bsol;x.txt",
            "/srv/data/public",
        ] {
            assert!(is_known(&fuzzed_tool, &exchange, known), "{known}");
        }
        assert!(!is_known(&fuzzed_tool, &exchange, "/srv/data/private"));
    }
}
