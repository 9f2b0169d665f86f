//! Cutting text to a number of bytes or characters without cutting a character.

use std::borrow::Cow;

/// The longest beginning of a text that has at most this many bytes.
pub(crate) fn first_bytes(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// The longest end of a text that has at most this many bytes.
pub(crate) fn last_bytes(text: &str, limit: usize) -> &str {
    let begin = text.len().saturating_sub(limit);
    let begin = (begin..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[begin..]
}

/// The beginning of a text that has at most this many characters.
pub(crate) fn first_chars(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

/// A text of at most this many characters, or its beginning; an ellipsis stands for what is cut off.
#[must_use]
pub fn shortened(text: &str, limit: usize) -> Cow<'_, str> {
    let first = first_chars(text, limit);
    if first.len() < text.len() { format!("{first}…").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut() {
        for (limit, first, last) in [(0, "", ""), (1, "a", "b"), (2, "a", "b"), (3, "aé", "éb"), (9, "aéb", "aéb")]
        {
            assert_eq!((first_bytes("aéb", limit), last_bytes("aéb", limit)), (first, last), "{limit}");
        }
    }

    #[test]
    fn an_ellipsis_stands_for_what_is_cut_off() {
        for (limit, expected) in [(0, "…"), (2, "aé…"), (3, "aéb"), (4, "aéb")] {
            assert_eq!(shortened("aéb", limit), expected, "{limit}");
        }
    }
}
