//! Escaped lone surrogates in JSON strings.
//!
//! `"\\ud800"` without its other half is valid JSON syntax, but no Unicode character, so that the parser rejects it. A
//! server that repeats such a string is not to blame for that. Each lone surrogate is read as a character that nobody
//! uses: the one with the same last digits in the last private plane.

/// The first character that a lone surrogate is read as, less the first surrogate.
const OFFSET: u32 = 0x10_0000;

/// The characters that lone surrogates are read as.
const SUBSTITUTES: std::ops::RangeInclusive<char> = '\u{10D800}'..='\u{10DFFF}';

/// The text with a character for each escaped lone surrogate; `None` if it has none.
pub(super) fn without_lone_surrogates(text: &str) -> Option<String> {
    let mut replaced = String::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some(at) = text[from..].find('\\').map(|offset| from + offset) {
        match unit_at(text, at) {
            Some(0xD800..=0xDBFF) if matches!(unit_at(text, at + 6), Some(0xDC00..=0xDFFF)) => from = at + 12,
            Some(unit @ 0xD800..=0xDFFF) => {
                replaced.push_str(&text[copied..at]);
                replaced.push(char::from_u32(OFFSET + unit)?);
                from = at + 6;
                copied = from;
            }
            Some(_) => from = at + 6,
            // The escaped character may be a backslash itself; it may also have several bytes, in invalid JSON.
            None => from = at + 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    // A text without them may have megabytes, and is not copied.
    (copied > 0).then(|| replaced + &text[copied..])
}

/// The UTF-16 code unit of the escape `\\uXXXX` at this place.
fn unit_at(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Whether a string that was read had an escaped lone surrogate; the part before it.
pub(crate) fn before_lone_surrogate(text: &str) -> Option<&str> {
    text.find(|character| SUBSTITUTES.contains(&character)).map(|at| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let rows = [
            (r#"{"id":"a\ud800b"}"#, Some("{\"id\":\"a\u{10D800}b\"}")),
            (r#"["\uDFFF\uD83D\uDE00\ud83d"]"#, Some("[\"\u{10DFFF}\\uD83D\\uDE00\u{10D83D}\"]")),
            (r#"["\\ud800","\ud83d\ude00","\u0041","é\n"]"#, None),
            (r#"["\ud80"]"#, None),
            ("\\é", None),
            ("\\", None),
        ];
        for (text, expected) in rows {
            assert_eq!(without_lone_surrogates(text).as_deref(), expected, "{text}");
        }
        assert_eq!(before_lone_surrogate("a\u{10D800}b"), Some("a"));
        assert_eq!(before_lone_surrogate("a\u{FFFD}"), None);
    }
}
