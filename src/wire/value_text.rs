//! The text of values that may be long.

use std::io;

use serde_json::Value;

/// The text of a value, in no more memory than it takes, and with room for a line feed: it may be long.
pub(super) fn text_of(value: &Value) -> Vec<u8> {
    /// The number of bytes that were written.
    struct Length(usize);
    impl io::Write for Length {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0 += text.len();
            Ok(text.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(1);
    // What is a value has a text, and memory takes all of it.
    let _counted = serde_json::to_writer(&mut length, value);
    let mut text = Vec::with_capacity(length.0);
    let _written = serde_json::to_writer(&mut text, value);
    text
}

/// Whether a line is the shortest text of a value. The text is never made as a whole, as it may be long.
pub(super) fn is_text_of(line: &[u8], value: &Value) -> bool {
    /// What is still to be compared.
    struct Rest<'l>(&'l [u8]);
    impl io::Write for Rest<'_> {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0 = self.0.strip_prefix(text).ok_or(io::ErrorKind::InvalidData)?;
            Ok(text.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut rest = Rest(line);
    serde_json::to_writer(&mut rest, value).is_ok() && rest.0.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_of_a_value_is_known_as_such() {
        let value = json!({"b": [1, null, "é"], "a": {}});
        let text = text_of(&value);
        assert_eq!(text, value.to_string().as_bytes());
        assert!(is_text_of(&text, &value));
        for other in [&b"{ }"[..], b"", &text[..text.len() - 1], &[&text[..], b" "].concat()] {
            assert!(!is_text_of(other, &value));
        }
    }
}
