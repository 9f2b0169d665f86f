//! Bytes of a message that are sent as they are.

use std::borrow::Cow;
use std::iter;

/// Bytes of which one may be repeated very often, which takes no memory.
///
/// A message of megabytes is sent from it, and kept as long as a server may fail because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawText {
    before: Vec<u8>,
    repeated: u8,
    times: usize,
    after: Vec<u8>,
}

impl RawText {
    /// Text in the middle of which an ASCII character is repeated.
    #[must_use]
    pub(crate) fn with_repeated(before: String, repeated: u8, times: usize, after: String) -> Self {
        Self { before: before.into_bytes(), repeated, times, after: after.into_bytes() }
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before.len() + self.times + self.after.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.times == 0 && self.after.is_empty() {
            return Cow::Borrowed(&self.before);
        }
        let mut bytes = Vec::with_capacity(self.len());
        self.write(&mut bytes);
        Cow::Owned(bytes)
    }

    /// The bytes, without a copy if none is repeated.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        if self.times == 0 && self.after.is_empty() { self.before } else { self.bytes().into_owned() }
    }

    /// The bytes before those that are repeated, the repeated one and how often it is, and the bytes after them.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn into_parts(self) -> (Vec<u8>, (u8, usize), Vec<u8>) {
        (self.before, (self.repeated, self.times), self.after)
    }

    /// The first bytes, at most `count`.
    #[must_use]
    pub(crate) fn beginning(&self, count: usize) -> Vec<u8> {
        let repeated = iter::repeat_n(self.repeated, self.times);
        self.before.iter().copied().chain(repeated).chain(self.after.iter().copied()).take(count).collect()
    }

    /// Writes the bytes after others.
    pub fn write(&self, line: &mut Vec<u8>) {
        /// What may follow in a message. A vector that has to grow for it would take twice as much.
        const ROOM: usize = 64;
        line.reserve_exact(self.len() + ROOM);
        line.extend_from_slice(&self.before);
        line.resize(line.len() + self.times, self.repeated);
        line.extend_from_slice(&self.after);
    }
}

impl From<Vec<u8>> for RawText {
    fn from(bytes: Vec<u8>) -> Self {
        Self { before: bytes, repeated: 0, times: 0, after: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_written_between_the_rest() {
        let text = RawText::with_repeated("{\"".to_owned(), b'k', 3, "\":0}".to_owned());
        assert_eq!(text.bytes().as_ref(), b"{\"kkk\":0}");
        assert_eq!(text.len(), text.bytes().len());
        for count in 0..12 {
            assert_eq!(text.beginning(count), text.bytes()[..count.min(9)]);
        }
        let mut line = b"1,".to_vec();
        text.write(&mut line);
        assert_eq!(line, b"1,{\"kkk\":0}");
    }

    #[test]
    fn without_repetition_it_is_the_bytes() {
        for bytes in [&b""[..], b"\xff\x00"] {
            let text = RawText::from(bytes.to_vec());
            assert_eq!((text.bytes().as_ref(), text.len(), text.is_empty()), (bytes, bytes.len(), bytes.is_empty()));
        }
    }
}
