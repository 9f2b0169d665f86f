//! Cutting text to a number of bytes without cutting a character.

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
}
