//! Variations of strings: lengths, patterns, formats, and what handlers stumble over.

use serde_json::{Map, Value};

use super::super::pattern::{Misreading, Pattern};
use super::edit::{Edits, edit};

/// Longer strings are not made.
const MAX_LENGTH: usize = 70_000;

/// Strings of formats that strict validators reject: the format, the mutant and the string.
const FORMATS: [(&str, &str, &str); 24] = [
    ("date-time", "date-time-without-fraction", "2024-02-29T12:34:56.1Z"),
    ("date-time", "date-time-without-fraction", "2024-02-29T12:34:56.123456789Z"),
    ("date-time", "date-time-without-offset", "2024-02-29T12:34:56+05:30"),
    ("date-time", "date-time-without-offset", "2024-02-29T12:34:56-23:59"),
    ("date-time", "date-time-in-upper-case", "2024-02-29t12:34:56z"),
    ("date-time", "date-time-of-this-century", "0001-01-01T00:00:00Z"),
    ("date", "date-without-leap-day", "2024-02-29"),
    ("date", "date-time-of-this-century", "9999-12-31"),
    ("time", "time-without-offset", "12:34:56+05:30"),
    ("time", "time-without-fraction", "12:34:56.1Z"),
    ("email", "email-of-words-only", "a+b@example.com"),
    ("email", "email-of-words-only", "o'neil@sub.example.museum"),
    ("uri", "uri-with-authority", "urn:a:b"),
    ("uri", "uri-with-authority", "mailto:a@example.com"),
    ("uri", "uri-of-http-only", "ftp://127.0.0.1/%7Ea?b=c#d"),
    ("uri", "uri-with-name-only", "http://[::1]:80/"),
    ("uuid", "uuid-in-lower-case", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"),
    ("uuid", "uuid-of-version-4", "2eb8aa08-aa98-11ea-b4aa-73b441d16380"),
    ("uuid", "uuid-nil-rejected", "00000000-0000-0000-0000-000000000000"),
    ("ipv4", "ipv4-without-zero", "0.0.0.0"),
    ("ipv4", "ipv4-highest-rejected", "255.255.255.255"),
    ("ipv6", "ipv6-without-compression", "::1"),
    ("ipv6", "ipv6-with-ipv4-rejected", "::ffff:192.0.2.1"),
    ("hostname", "hostname-with-dot-only", "localhost"),
];

/// Strings that are ordinary for a schema and that handlers stumble over.
const PLAUSIBLE: [(&str, &str); 9] = [
    ("empty-text-rejected", ""),
    ("non-ascii-rejected", "é日本"),
    ("astral-rejected", "😀"),
    ("white-space-rejected", "   "),
    ("digits-are-a-number", "0123"),
    ("word-is-a-constant", "null"),
    ("word-is-a-constant", "true"),
    ("combining-rejected", "e\u{301}"),
    ("control-character-rejected", "a\u{0}\u{7f}"),
];

/// The edits of a string, by keyword.
pub(super) fn edits(keywords: &Map<String, Value>, current: &str) -> Vec<Edits> {
    let length =
        |keyword: &str| keywords.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let mut edits = Vec::new();
    edits.extend(length("minLength").filter(|size| *size < MAX_LENGTH).map(|size| shortest(size, current)));
    edits.extend(length("maxLength").filter(|size| *size < MAX_LENGTH).map(|size| longest(size, current)));
    if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str) {
        edits.push(patterns(pattern, current));
        edits.extend(misread(pattern));
    }
    if let Some(format) = keywords.get("format").and_then(Value::as_str) {
        let own = FORMATS.iter().filter(|(name, ..)| *name == format);
        edits.push(own.map(|(_, mutant, text)| edit(mutant, *text)).collect());
    }
    if ["enum", "const", "format"].iter().all(|keyword| !keywords.contains_key(*keyword)) {
        edits.push(PLAUSIBLE.iter().map(|(mutant, text)| edit(mutant, *text)).collect());
        edits.push(vec![edit("double-dot-rejected", with_two_dots(current))]);
    }
    edits
}

/// A string of so many characters that resembles another one.
pub(super) fn of_length(length: usize, like: &str) -> String {
    if like.is_empty() { "a".repeat(length) } else { like.chars().cycle().take(length).collect() }
}

/// A string with two dots inside, as a name may have them that leads out of no folder.
fn with_two_dots(current: &str) -> String {
    let at = current.rfind('.').unwrap_or(current.len());
    let (before, after) = current.split_at(at);
    let before = if before.is_empty() { "a" } else { before };
    let after = after.strip_prefix('.').filter(|rest| !rest.is_empty()).unwrap_or("a");
    format!("{before}..{after}")
}

fn shortest(size: usize, current: &str) -> Edits {
    let mut edits = vec![edit("min-length-exclusive", of_length(size, current))];
    if let Some(less) = size.checked_sub(1) {
        edits.push(edit("min-length-one-too-low", of_length(less, current)));
        edits.push(edit("length-in-utf16", "😀".repeat(less)));
        edits.push(edit("length-in-bytes", "é".repeat(less)));
        edits.push(edit("length-trimmed", format!("{} ", of_length(less, ""))));
        edits.push(edit("empty-text-unchecked", ""));
        edits.push(edit("length-without-combining", format!("{}\u{301}", of_length(less, "e"))));
        edits.push(edit("white-space-rejected", " ".repeat(size)));
    }
    edits
}

fn longest(size: usize, current: &str) -> Edits {
    let mut edits = vec![
        edit("max-length-exclusive", of_length(size, current)),
        edit("max-length-one-too-high", of_length(size + 1, current)),
        edit("length-in-utf16", "😀".repeat(size)),
        edit("length-in-bytes", "é".repeat(size)),
        edit("length-trimmed", format!("{} ", of_length(size, ""))),
        edit("max-length-ignored", of_length(size * 2 + 300, current)),
    ];
    if size > 0 {
        edits.push(edit("length-without-combining", format!("{}\u{301}", of_length(size, "e"))));
    }
    edits
}

/// Strings that tell a pattern from one of which a part is different, by part.
pub(super) fn misread(pattern: &str) -> Vec<Edits> {
    let variations = Pattern::parse(pattern).map(|pattern| pattern.variations()).unwrap_or_default();
    let mut lists: Vec<Edits> = Vec::new();
    for kind in [
        Misreading::Count,
        Misreading::AnyCharacter,
        Misreading::Branch,
        Misreading::WiderClass,
        Misreading::NarrowerClass,
    ] {
        let own = variations.iter().filter(|(own, _)| *own == kind);
        lists.push(own.map(|(_, text)| edit(name_of(kind), text.as_str())).collect());
    }
    lists.retain(|list| !list.is_empty());
    lists
}

fn name_of(misreading: Misreading) -> &'static str {
    match misreading {
        Misreading::Count => "pattern-count-off-by-one",
        Misreading::AnyCharacter => "pattern-dot-is-any",
        Misreading::Branch => "pattern-branch-ignored",
        Misreading::WiderClass => "pattern-class-too-wide",
        Misreading::NarrowerClass => "pattern-class-too-narrow",
    }
}

fn patterns(pattern: &str, current: &str) -> Edits {
    let upper_or_lower = |text: &str| {
        let upper = text.to_uppercase();
        if upper == text { text.to_lowercase() } else { upper }
    };
    let other_digits = |text: &str| -> String {
        let digit = |c: char| c.to_digit(10).and_then(|digit| char::from_u32(0x660 + digit)).unwrap_or(c);
        text.chars().map(digit).collect()
    };
    let other_letters = |text: &str| -> String {
        let letter = |c: char| if c.is_ascii_alphabetic() { if c.is_lowercase() { 'é' } else { 'É' } } else { c };
        text.chars().map(letter).collect()
    };
    let mut without_last = current.to_owned();
    without_last.pop();
    let lower_half: String =
        current.chars().enumerate().map(|(at, c)| if at % 2 == 0 { c.to_ascii_lowercase() } else { c }).collect();
    let mut edits = vec![
        edit("pattern-ignores-case", upper_or_lower(current)),
        edit("pattern-without-start", format!("x{current}")),
        edit("pattern-without-end", format!("{current}x")),
        edit("pattern-before-final-newline", format!("{current}\n")),
        edit("pattern-on-trimmed-text", format!(" {current}")),
        edit("pattern-on-trimmed-text", format!("{current} ")),
        edit("pattern-by-lines", format!("{current}\n!")),
        edit("pattern-by-lines", format!("!\n{current}")),
        edit("pattern-unicode-digits", other_digits(current)),
        edit("pattern-unicode-letters", other_letters(current)),
        edit("pattern-of-whole-text", format!("!{current}!")),
        edit("pattern-from-start", format!("-{current}")),
        edit("pattern-to-end", format!("{current}-")),
        edit("pattern-ignores-case", lower_half),
        edit("pattern-count-off-by-one", without_last),
        edit("pattern-count-off-by-one", current.chars().skip(1).collect::<String>()),
        edit("pattern-ignored", "!"),
        edit("pattern-skips-empty-text", ""),
    ];
    if pattern.contains('.') {
        edits.push(edit("pattern-dot-is-any", current.replace(['.', '-', '_'], "x")));
    }
    edits
}
