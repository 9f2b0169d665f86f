//! What a server writes to its standard error as text: bytes that are not UTF-8 stay visible.

use std::fmt::Write as _;

/// What stands before the value of a byte that is not UTF-8.
const MARK: char = char::REPLACEMENT_CHARACTER;

/// The text of some bytes. One that is not UTF-8 becomes the replacement character with its value, such as `�<E9>`.
pub(crate) fn stderr_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // A string takes everything.
            let _written = write!(text, "{MARK}<{byte:02X}>");
        }
    }
    text
}

/// The value of the first byte in such a text that was not UTF-8, such as `E9`. The character alone may be what the server
/// wrote.
pub(crate) fn first_invalid_byte(text: &str) -> Option<&str> {
    let values = text.match_indices(MARK).filter_map(|(at, mark)| text[at + mark.len()..].strip_prefix('<')?.get(..3));
    let is_hex = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte));
    values.filter_map(|value| value.strip_suffix('>')).find(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_not_utf_8_is_seen_and_a_replacement_character_is_text() {
        let text = stderr_text(b"caf\xe9 \xff, caf\xc3\xa9");
        assert_eq!(text, "caf\u{fffd}<E9> \u{fffd}<FF>, caf\u{e9}");
        assert_eq!(first_invalid_byte(&text), Some("E9"));
        for valid in ["", "caf\u{e9}", "\u{fffd}", "\u{fffd}<", "\u{fffd}<é>", "\u{fffd}<br>", "<E9>"] {
            assert_eq!(first_invalid_byte(&stderr_text(valid.as_bytes())), None, "{valid}");
        }
    }
}
