//! The words of an answer with what varies taken out, so that two answers of one cause look the same.

use std::borrow::Cow;

use serde_json::Value;

use super::Arguments;

/// How long a skeleton may be, in bytes.
const LONGEST: usize = 160;
/// Shorter texts of ours are not looked for.
const SHORTEST: usize = 3;

/// A message without what varies from call to call: our own words, what is quoted, and numbers.
#[must_use]
pub fn skeleton(message: &str, arguments: &Arguments) -> String {
    const MOST: usize = 2_000;
    let end = message.char_indices().nth(MOST).filter(|_| message.len() > MOST).map_or(message.len(), |(at, _)| at);
    let mut text = Cow::Borrowed(&message[..end]);
    if let Arguments::Json(value) = arguments {
        let mut ours = Vec::new();
        texts(value, &mut ours);
        ours.retain(|own| own.len() <= text.len());
        ours.sort_by_key(|own| std::cmp::Reverse(own.len()));
        for own in ours {
            if text.contains(own) {
                text = Cow::Owned(text.replace(own, "*"));
            }
        }
    }
    let mut skeleton = String::with_capacity(text.len().min(LONGEST) + 4);
    let mut quote: Option<char> = None;
    for c in text.chars() {
        if skeleton.len() >= LONGEST {
            break;
        }
        match quote {
            Some(end) if c == end => {
                quote = None;
                skeleton.push('…');
                skeleton.push(c);
            }
            Some(_) => {}
            None if matches!(c, '"' | '`') => {
                quote = Some(c);
                skeleton.push(c);
            }
            None if c.is_ascii_digit() => {
                if !skeleton.ends_with('#') {
                    skeleton.push('#');
                }
            }
            None if c.is_whitespace() || c.is_control() => {
                if !skeleton.ends_with(' ') {
                    skeleton.push(' ');
                }
            }
            None if !c.is_ascii() || c == '*' => {
                if !skeleton.ends_with('*') {
                    skeleton.push('*');
                }
            }
            None => skeleton.push(c),
        }
    }
    skeleton.trim().to_owned()
}

/// Whether a message holds words of ours, which its skeleton is without.
#[must_use]
pub fn echoes(message: &str, arguments: &Arguments) -> bool {
    fn within(message: &str, value: &Value) -> bool {
        match value {
            Value::String(text) => (SHORTEST..=message.len()).contains(&text.len()) && message.contains(text.as_str()),
            Value::Array(items) => items.iter().any(|item| within(message, item)),
            Value::Object(members) => members.values().any(|member| within(message, member)),
            _ => false,
        }
    }
    match arguments {
        Arguments::Json(value) => within(message, value),
        Arguments::Raw(_) => false,
    }
}

/// Every text in a value, and every name.
pub(super) fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    const MOST: usize = 64;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        if found.len() >= MOST {
            return;
        }
        match value {
            Value::String(text) if text.len() >= SHORTEST => found.push(text),
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values()),
            _ => {}
        }
    }
}

/// The beginning of a text, as one line.
#[must_use]
pub fn excerpt(text: &str, longest: usize) -> String {
    let mut short: String = text.chars().take(longest).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(longest).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_varies_is_taken_out() {
        let first = skeleton("no city \"Ulm\" in row 17: Ulm-Mitte", &Arguments::Json(json!({"city": "Ulm-Mitte"})));
        let second = skeleton("no city \"Bern\" in row 4: Bern-Ost", &Arguments::Json(json!({"city": "Bern-Ost"})));
        assert_eq!(first, second);
        assert_eq!(first, "no city \"…\" in row #: *");
    }
}
