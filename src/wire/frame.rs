//! One line of a stream, with its raw bytes kept beside the parsed value.
//!
//! Parsing hides what a judge must see (number spelling, stray bytes), so the raw bytes stay. A line
//! is bounded in bytes, in depth and in the number of its values *before* it is parsed: what lies
//! beyond is damage that is named, never memory that is spent.

use serde::Serialize;
use serde_json::Value;

/// The longest message that is kept, in bytes (8 MiB). What is longer is counted and let go.
pub const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// The deepest nesting that is parsed.
pub const MAX_DEPTH: usize = 120;

/// The greatest number of values in one message that is parsed; an array or an object counts as 6.
pub const MAX_VALUES: usize = 200_000;

/// How many plain values take the room of an array or an object with one thing in it.
const NESTED: usize = 6;

/// What a plain value takes in memory at most, its text left aside.
const ROOM: usize = 80;

/// How much of a damaged line is kept as evidence, in bytes.
const KEPT_OF_DAMAGED: usize = 4096;

/// Why a line is no JSON message that we can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Damage {
    /// The line is empty or white space only.
    Blank,
    /// The line is not UTF-8.
    NotUtf8 {
        /// The offset of the first bad byte.
        at: usize,
    },
    /// The line is not JSON.
    NotJson {
        /// What the parser says.
        reason: String,
    },
    /// The line is longer than we keep.
    TooLong {
        /// Its length in bytes, as far as it was read.
        bytes: usize,
    },
    /// The value nests deeper than we parse.
    TooDeep,
    /// The message holds more values than we parse.
    TooManyValues,
    /// So many large messages came before it that its contents are not kept.
    LetGo {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The stream ended within the line.
    Unfinished,
}

impl Damage {
    /// Whether the damage is our own bound rather than a fault of the message.
    #[must_use]
    pub fn is_our_bound(&self) -> bool {
        matches!(self, Self::TooLong { .. } | Self::TooDeep | Self::TooManyValues | Self::LetGo { .. })
    }

    /// The damage in one word, as cases name it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::NotUtf8 { .. } => "not-utf8",
            Self::NotJson { .. } => "not-json",
            Self::TooLong { .. } => "too-long",
            Self::TooDeep => "too-deep",
            Self::TooManyValues => "too-many-values",
            Self::LetGo { .. } => "let-go",
            Self::Unfinished => "unfinished",
        }
    }

    /// The damage in words, as the end of the sentence "the line ...".
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Blank => "is blank".to_owned(),
            Self::NotUtf8 { at } => format!("is not UTF-8 (first bad byte at offset {at})"),
            Self::NotJson { reason } => format!("is not JSON ({reason})"),
            Self::TooLong { bytes } => {
                format!("is longer than the {} MiB that we keep ({bytes} bytes and more)", MAX_MESSAGE_BYTES >> 20)
            }
            Self::TooDeep => format!("nests deeper than the {MAX_DEPTH} levels that we read"),
            Self::TooManyValues => format!("holds more than the {MAX_VALUES} values that we read"),
            Self::LetGo { bytes } => format!("is one of more large messages than a run keeps ({bytes} bytes)"),
            Self::Unfinished => "ends without a newline, with the stream".to_owned(),
        }
    }
}

/// One line, without its newline.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The bytes as they came; of a damaged line the first few kilobytes.
    pub raw: Vec<u8>,
    /// The length of the line in bytes, also where fewer are kept.
    pub bytes: usize,
    /// The value, or why there is none.
    pub value: Result<Value, Damage>,
    /// How many values there are, as [`MAX_VALUES`] counts them.
    values: usize,
}

impl Frame {
    /// Reads one line (without its newline; a carriage return before it is tolerated).
    #[must_use]
    pub fn parse(line: &[u8]) -> Self {
        let bytes = line.len();
        let (value, values) = match read(line) {
            Ok((value, values)) => (Ok(value), values),
            Err(damage) => (Err(damage), 0),
        };
        let kept = if value.is_ok() { bytes } else { bytes.min(KEPT_OF_DAMAGED) };
        Self { raw: line[..kept].to_vec(), bytes, value, values }
    }

    /// A frame of our own making.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let raw = value.to_string().into_bytes();
        let values = count(&raw);
        Self { bytes: raw.len(), raw, value: Ok(value.clone()), values }
    }

    /// A message of which only the beginning was read, as it is longer than we keep.
    #[must_use]
    pub fn too_long(beginning: &[u8], bytes: usize) -> Self {
        let kept = beginning.len().min(KEPT_OF_DAMAGED);
        Self { raw: beginning[..kept].to_vec(), bytes, value: Err(Damage::TooLong { bytes }), values: 0 }
    }

    /// What it takes in memory, in bytes: an upper bound that is of the right order.
    #[must_use]
    pub fn room(&self) -> usize {
        const FIXED: usize = 300;
        // The text is kept twice, as it came and in its values.
        FIXED + 2 * self.raw.len() + ROOM * self.values
    }

    /// The same line without its contents, of which the first few kilobytes stay.
    #[must_use]
    pub fn let_go(mut self) -> Self {
        self.raw.truncate(KEPT_OF_DAMAGED);
        self.raw.shrink_to_fit();
        Self { value: Err(Damage::LetGo { bytes: self.bytes }), values: 0, ..self }
    }

    /// The value, if the line holds one.
    #[must_use]
    pub fn json(&self) -> Option<&Value> {
        self.value.as_ref().ok()
    }

    /// The line as text, with what is not UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

fn read(line: &[u8]) -> Result<(Value, usize), Damage> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Err(Damage::Blank);
    }
    let text = std::str::from_utf8(line).map_err(|error| Damage::NotUtf8 { at: error.valid_up_to() })?;
    let values = measure(line)?;
    let value = serde_json::from_str(text).map_err(|error| Damage::NotJson { reason: error.to_string() })?;
    Ok((value, values))
}

/// The number of values of a line of our own, which may break the bounds.
fn count(line: &[u8]) -> usize {
    measure(line).unwrap_or(MAX_VALUES)
}

/// Bounds the depth and the number of values before anything is allocated for them; returns the number.
fn measure(line: &[u8]) -> Result<usize, Damage> {
    let (mut depth, mut values, mut quoted, mut escaped) = (0_usize, 1_usize, false, false);
    for byte in line {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'[' | b'{' => {
                depth += 1;
                values += NESTED;
                if depth > MAX_DEPTH {
                    return Err(Damage::TooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if values > MAX_VALUES {
            return Err(Damage::TooManyValues);
        }
    }
    Ok(values)
}

/// A line as it came, not yet read.
#[derive(Debug, Clone, Copy)]
pub enum Line<'b> {
    /// All of it, without its line ending.
    Whole(&'b [u8]),
    /// The beginning of one that is longer than we keep, and its length.
    TooLong(&'b [u8], usize),
}

impl Line<'_> {
    /// Reads it.
    #[must_use]
    pub fn read(self) -> Frame {
        match self {
            Self::Whole(line) => Frame::parse(line),
            Self::TooLong(beginning, bytes) => Frame::too_long(beginning, bytes),
        }
    }
}

/// Splits a stream of bytes into frames at each line feed.
///
/// Holds at most [`MAX_MESSAGE_BYTES`] of an unfinished line; of a longer one it holds the beginning
/// and counts the rest until its line feed comes.
#[derive(Debug, Default)]
pub struct Splitter {
    line: Vec<u8>,
    dropped: usize,
    /// The line that came in pieces and was given out last.
    given: Vec<u8>,
}

impl Splitter {
    /// Takes bytes as they came and calls `sink` with each line that they complete.
    pub fn push(&mut self, mut bytes: &[u8], mut sink: impl FnMut(Frame)) {
        while let Some((line, used)) = self.pull(bytes) {
            sink(line.read());
            bytes = &bytes[used..];
        }
    }

    /// Takes the first line out of bytes as they came; gives it with the number of bytes up to its end. Where no
    /// line ends in them, they are kept for the one that goes on.
    pub fn pull<'b>(&'b mut self, bytes: &'b [u8]) -> Option<(Line<'b>, usize)> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.keep(bytes);
            return None;
        };
        let head = &bytes[..end];
        if self.line.is_empty() && self.dropped == 0 && end <= MAX_MESSAGE_BYTES {
            return Some((Line::Whole(strip_carriage_return(head)), end + 1));
        }
        self.keep(head);
        Some((self.take(), end + 1))
    }

    /// The bytes of the unfinished line so far, dropped ones included.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.line.len() + self.dropped
    }

    /// The unfinished line that the stream ended in, if there is one.
    pub fn finish(&mut self) -> Option<Frame> {
        if self.pending() == 0 {
            return None;
        }
        let mut frame = self.take().read();
        if frame.value.is_ok() {
            frame.value = Err(Damage::Unfinished);
        }
        Some(frame)
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.dropped == 0 && self.line.len() + bytes.len() <= MAX_MESSAGE_BYTES {
            self.line.extend_from_slice(bytes);
            return;
        }
        let length = self.pending() + bytes.len();
        let room = KEPT_OF_DAMAGED.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.line.truncate(KEPT_OF_DAMAGED);
        self.line.shrink_to_fit();
        self.dropped = length - self.line.len();
    }

    fn take(&mut self) -> Line<'_> {
        /// So much room is kept for the next line.
        const ROOM: usize = 64 << 10;
        std::mem::swap(&mut self.line, &mut self.given);
        self.line.clear();
        self.line.shrink_to(ROOM);
        match std::mem::take(&mut self.dropped) {
            0 => Line::Whole(strip_carriage_return(&self.given)),
            dropped => Line::TooLong(&self.given, self.given.len() + dropped),
        }
    }
}

fn strip_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn split(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut splitter = Splitter::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, |frame| frames.push(frame));
        }
        frames.extend(splitter.finish());
        frames
    }

    #[test]
    fn a_line_may_come_in_pieces() {
        let frames = split(&[b"{\"a\"", b":1}\n[", b"]\r\n"]);
        assert_eq!(frames[0].json(), Some(&json!({"a": 1})));
        assert_eq!(frames[1].json(), Some(&json!([])));
        assert_eq!(frames[1].raw, b"[]");
    }

    #[test]
    fn damage_is_named_and_the_bytes_are_kept() {
        let frames = split(&[b"Server ready\n\n{\"a\":\"\xe9\"}\n{\"a\":1}"]);
        assert!(matches!(frames[0].value, Err(Damage::NotJson { .. })));
        assert_eq!(frames[0].raw, b"Server ready");
        assert_eq!(frames[1].value, Err(Damage::Blank));
        assert_eq!(frames[2].value, Err(Damage::NotUtf8 { at: 6 }));
        assert_eq!(frames[3].value, Err(Damage::Unfinished));
    }

    #[test]
    fn a_line_beyond_the_bound_is_counted_and_let_go() {
        let mut splitter = Splitter::default();
        let mut frames = Vec::new();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            splitter.push(&chunk, |frame| frames.push(frame));
        }
        splitter.push(b"\n{}\n", |frame| frames.push(frame));
        assert_eq!(frames[0].value, Err(Damage::TooLong { bytes: 20 << 20 }));
        assert_eq!(frames[1].json(), Some(&json!({})));
    }

    #[test]
    fn depth_and_number_of_values_are_bounded_before_parsing() {
        let deep = "[".repeat(100_000);
        assert_eq!(Frame::parse(deep.as_bytes()).value, Err(Damage::TooDeep));
        let wide = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(Frame::parse(wide.as_bytes()).value, Err(Damage::TooManyValues));
        let quoted = format!("{{\"a\":\"{}\"}}", "[,{".repeat(MAX_VALUES));
        assert!(Frame::parse(quoted.as_bytes()).value.is_ok());
    }
}
