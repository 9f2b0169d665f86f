//! Finds the values that a text suggests: an error message such as `expected one of 4, 5`, or a description.

use serde_json::Value;

use crate::limits::{MAX_SUGGESTED_LIST_BYTES, MAX_SUGGESTED_VALUE_BYTES, MAX_SUGGESTED_VALUES, MAX_SUGGESTING_CHARS};
use crate::text::{first_bytes, first_chars};

/// The words after which a text lists values, in lower case.
const LIST_WORDS: [&str; 24] = [
    "one of",
    "any of",
    "did you mean",
    "try",
    "such as",
    "e.g.",
    "for example",
    "example:",
    "allowed",
    "available",
    "accepted",
    "supported",
    "possible values",
    "valid",
    "expected",
    "known",
    "choose from",
    "choices",
    "options",
    "must be",
    "at least",
    "between",
    "either",
    "in format",
];

/// The values that a text suggests, the most likely first: what follows words such as `one of` or `try`, then what is in
/// quotation marks, then paths. Addresses on other machines are left out.
pub(in crate::run) fn suggested_values(text: &str) -> Vec<String> {
    let text = first_chars(text, MAX_SUGGESTING_CHARS);
    let mut values: Vec<String> = Vec::new();
    let mut add = |value: &str| {
        let value = value.trim_matches(|c: char| c.is_whitespace() || ".,;:!?()[]{}<>'\"`*".contains(c));
        let is_new =
            !value.is_empty() && value.len() <= MAX_SUGGESTED_VALUE_BYTES && !values.iter().any(|known| known == value);
        if is_new && values.len() < MAX_SUGGESTED_VALUES && !is_remote(value) {
            values.push(value.to_owned());
        }
    };
    for list in lists(text) {
        let in_quotes = quoted(list);
        if !in_quotes.is_empty() {
            in_quotes.into_iter().for_each(&mut add);
            continue;
        }
        for item in items(list) {
            match item.split_whitespace().collect::<Vec<_>>().as_slice() {
                [] => {}
                [one] => add(one),
                // A list item of several words is rarely the value itself.
                [first, .., last] => [*last, *first].into_iter().for_each(&mut add),
            }
        }
    }
    quoted(text).into_iter().for_each(&mut add);
    text.split_whitespace().filter(|word| is_path(word)).for_each(&mut add);
    values
}

/// The values in quotation marks in a text.
pub(super) fn quoted_values(text: &str) -> Vec<String> {
    let text = first_chars(text, MAX_SUGGESTING_CHARS);
    let usable = |value: &&str| !value.is_empty() && value.len() <= MAX_SUGGESTED_VALUE_BYTES && !is_remote(value);
    quoted(text).into_iter().filter(usable).take(MAX_SUGGESTED_VALUES).map(str::to_owned).collect()
}

/// The parts of a text after words that announce values, up to the end of the sentence.
fn lists(text: &str) -> Vec<&str> {
    let lower = text.to_ascii_lowercase();
    let is_letter = |at: Option<char>| at.is_some_and(char::is_alphanumeric);
    let mut found: Vec<(usize, usize)> = Vec::new();
    for word in LIST_WORDS {
        let words = lower.match_indices(word).filter(|(at, _)| {
            !is_letter(lower[..*at].chars().next_back()) && !is_letter(lower[at + word.len()..].chars().next())
        });
        found.extend(words.map(|(at, _)| (at, at + word.len())));
    }
    found.sort_unstable();
    // Of words that follow each other ("expected one of 4, 5") the last announces the values.
    let is_followed = |end: usize| found.iter().any(|(next, _)| *next > end && text[end..*next].trim().is_empty());
    let starts: Vec<usize> = found.iter().map(|(_, end)| *end).filter(|end| !is_followed(*end)).collect();
    let list = |start: usize| {
        let rest = &text[start..];
        let end = [". ", "\n", "; ", ") "].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        let list = first_bytes(&rest[..end], MAX_SUGGESTED_LIST_BYTES);
        // "allowed directories: /srv": the noun is no value.
        list.split_once(": ").map_or(list, |(_, after)| after)
    };
    let mut lists: Vec<&str> = starts.into_iter().map(list).collect();
    lists.sort_by_key(|list| list.len());
    lists
}

/// The items of a list in words.
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', '|'])
        .flat_map(|item| item.split(" or "))
        .flat_map(|item| item.split(" and "))
        .map(str::trim)
        .map(|item| item.strip_prefix("or ").or_else(|| item.strip_prefix("and ")).unwrap_or(item))
}

/// The strings in quotation marks.
fn quoted(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(mark) = rest.chars().next() {
        let after = &rest[mark.len_utf8()..];
        let opens = matches!(mark, '\'' | '"' | '`') && !before.is_alphanumeric();
        match opens.then(|| after.split_once(mark)).flatten() {
            Some((inside, beyond)) if !beyond.starts_with(char::is_alphanumeric) && !inside.contains('\n') => {
                found.push(inside);
                (rest, before) = (beyond, mark);
            }
            _ => (rest, before) = (after, mark),
        }
    }
    found
}

fn is_path(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '\'', '"', '`', '[']);
    word.len() > 2 && word.starts_with('/') && !word.starts_with("//")
}

/// Whether a value leads to another machine: a URL with a host, or a mail address.
fn is_remote(value: &str) -> bool {
    is_remote_url(value) || (value.contains('@') && value.contains('.') && !value.contains("://"))
}

/// Whether a value is a URL with the host of another machine.
pub(super) fn is_remote_url(value: &str) -> bool {
    const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
    value.split_once("://").is_some_and(|(scheme, rest)| {
        matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp" | "ssh" | "git")
            && !LOCAL.iter().any(|host| rest.starts_with(host))
    })
}

/// The JSON values that a text can be: a number if it is one, and the string.
pub(super) fn readings(text: &str) -> Vec<Value> {
    let number = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
    number.into_iter().chain([Value::from(text)]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_values_of_error_messages_are_found() {
        let rows: [(&str, &[&str]); 9] = [
            ("level: expected one of 4, 5", &["4", "5"]),
            ("Invalid zone, try Europe/Paris", &["Europe/Paris"]),
            ("Access denied, allowed directories: /srv/data, /srv/more", &["/srv/data", "/srv/more"]),
            ("path outside allowed directories: /a/b not in /srv/data", &["/srv/data", "/a/b"]),
            ("Invalid option: expected one of \"asc\"|\"desc\"", &["asc", "desc"]),
            ("Unknown unit 'x'. Valid units are: metric or imperial.", &["metric", "imperial", "x"]),
            ("mode must be either \"fast\" or \"slow\"", &["fast", "slow"]),
            ("no such index (did you mean `notes`?)", &["notes"]),
            ("the year must be between 1900 and 2100", &["1900", "2100"]),
        ];
        for (text, wanted) in rows {
            let values = suggested_values(text);
            assert!(
                values.starts_with(&wanted.iter().map(ToString::to_string).collect::<Vec<_>>()),
                "{text}: {values:?}"
            );
        }
    }

    #[test]
    fn addresses_on_other_machines_are_left_out() {
        let values = suggested_values("try 'https://mcp.dev/a', 'a@mcp.dev', 'http://localhost:1/' or 'note://1'");
        assert_eq!(values, ["http://localhost:1/", "note://1"]);
    }

    #[test]
    fn long_texts_and_other_alphabets_are_read_safely() {
        let text = format!("expected one of {}", "ü, ".repeat(3_000));
        assert_eq!(suggested_values(&text), ["ü"]);
        assert_eq!(suggested_values(""), Vec::<String>::new());
        assert_eq!(suggested_values("İ try x"), ["x"]);
    }

    #[test]
    fn a_number_is_read_as_a_number_and_as_a_string() {
        assert_eq!(readings("4"), [json!(4), json!("4")]);
        assert_eq!(readings("true"), [json!("true")]);
    }
}
