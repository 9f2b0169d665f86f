//! One line of a stream: its raw bytes and its parsed value.
//!
//! Parsing hides details that a judge needs (number spelling, stray bytes), so the raw bytes are kept. The
//! size, the depth and the number of values of a line are checked *before* it is parsed: a line beyond a
//! limit is reported as an error and takes no memory.

use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

use super::exact::without_room;
use super::long_strings::{MAX_SHORTENED_STRING_BYTES, long_string_bytes, shorten_strings, with_short_strings};
use super::surrogate::without_lone_surrogates;
use super::value_text::{is_text_of, text_of};
use crate::raw_text::RawText;

/// The longest message that is kept, in bytes (8 MiB). A longer one is counted and dropped.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// The deepest nesting that is parsed.
pub(crate) const MAX_DEPTH: usize = 120;

/// The maximum number of values in a message that is parsed; an array or an object counts as 6.
pub(crate) const MAX_VALUES: usize = 200_000;

/// The number of plain values that take as much memory as an array or object with one value in it.
const VALUES_PER_CONTAINER: usize = 6;

/// The maximum memory of a plain value, without its text.
const BYTES_PER_VALUE: usize = 80;

/// The bytes by which some programs mark a text as UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line of a stream that is assembled from pieces and longer than this, in bytes, leaves no memory for the next one.
const RETAINED_BYTES: usize = 64 << 10;

/// How much of an invalid line is kept as evidence, in bytes.
const MAX_EVIDENCE_BYTES: usize = 4096;

/// Of longer messages of a case, in bytes, only the beginning of long strings is kept once they are sent.
pub(crate) const MAX_SENT_BYTES: usize = 256 << 10;

/// How a transcript file names a message whose long strings were shortened.
pub(crate) const SHORTENED: &str = "shortened";

/// Why a line is not a JSON message that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FramingError {
    /// The line is empty or white space only.
    Blank,
    /// The line is not UTF-8.
    NotUtf8 {
        /// The offset of the first bad byte.
        at: usize,
    },
    /// The line is not JSON.
    NotJson {
        /// The parser's error.
        reason: String,
    },
    /// The line is longer than `MAX_MESSAGE_BYTES`.
    TooLong {
        /// The number of bytes that were read.
        bytes: usize,
    },
    /// The value nests deeper than `MAX_DEPTH`.
    TooDeep,
    /// The message contains more than `MAX_VALUES` values.
    TooManyValues,
    /// The memory budget for messages was used up, so its contents were dropped.
    #[serde(rename = "dropped")]
    Dropped {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The stream ended within the line.
    Unfinished,
    /// A byte order mark precedes the message, which is read nevertheless.
    ByteOrderMark,
    /// The message has no line feed, and nothing follows it. It is read nevertheless.
    Unterminated,
}

impl FramingError {
    /// Whether this is a limit of the reader rather than a fault of the message.
    #[must_use]
    pub fn is_own_limit(&self) -> bool {
        matches!(self, Self::TooLong { .. } | Self::TooDeep | Self::TooManyValues | Self::Dropped { .. })
    }

    /// The name of the error in case files.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::NotUtf8 { .. } => "not-utf8",
            Self::NotJson { .. } => "not-json",
            Self::TooLong { .. } => "too-long",
            Self::TooDeep => "too-deep",
            Self::TooManyValues => "too-many-values",
            Self::Dropped { .. } => "dropped",
            Self::Unfinished => "unfinished",
            Self::ByteOrderMark => "byte-order-mark",
            Self::Unterminated => "unterminated",
        }
    }

    /// The error as the end of the sentence "the line ...".
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Blank => "is blank".to_owned(),
            Self::NotUtf8 { at } => format!("is not UTF-8 (first bad byte at offset {at})"),
            Self::NotJson { reason } => format!("is not JSON ({reason})"),
            Self::TooLong { bytes } => {
                format!("exceeds the limit of {} MiB ({bytes} bytes or more)", MAX_MESSAGE_BYTES >> 20)
            }
            Self::TooDeep => format!("exceeds the limit of {MAX_DEPTH} nesting levels"),
            Self::TooManyValues => format!("exceeds the limit of {MAX_VALUES} values"),
            Self::Dropped { bytes } => {
                format!("was dropped because too many large messages were received before ({bytes} bytes)")
            }
            Self::Unfinished => "has no newline before the end of the stream".to_owned(),
            Self::ByteOrderMark => "begins with a byte order mark".to_owned(),
            Self::Unterminated => "has no newline after its message".to_owned(),
        }
    }
}

/// One line, without its newline.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The bytes as received, see [`Frame::raw`]; none if they are the text of the value.
    raw: Option<Vec<u8>>,
    /// What a long line that is to be sent has in place of its bytes.
    long: Option<Box<RawText>>,
    /// The length of the line in bytes, even if fewer are kept.
    pub bytes: usize,
    /// The value, or why the line has none.
    pub value: Result<Value, FramingError>,
    /// What is wrong with the line although its value can be read.
    pub defect: Option<FramingError>,
    /// The number of values, counted as for [`MAX_VALUES`].
    values: usize,
    /// How many bytes of long strings were left out of the value.
    left_out: usize,
}

impl Frame {
    /// Parses one line (without its newline; a carriage return before it is tolerated).
    #[must_use]
    pub fn parse(line: &[u8]) -> Self {
        Self::parse_from(Cow::Borrowed(line))
    }

    /// The same for a line that nobody else needs, so that a long one is never in memory twice.
    #[must_use]
    #[cfg(feature = "http")]
    pub(crate) fn parse_taken(line: Vec<u8>) -> Self {
        Self::parse_from(Cow::Owned(line))
    }

    fn parse_from(line: Cow<'_, [u8]>) -> Self {
        let bytes = line.len();
        let (value, values) = match read(&line) {
            Ok((value, values)) => (Ok(value), values),
            Err(damage) => (Err(damage), 0),
        };
        let raw = match &value {
            // Of a long line no copy is made that is not needed.
            Ok(value) if bytes > MAX_SHORTENED_STRING_BYTES && is_text_of(&line, value) => None,
            Ok(_) => Some(line.into_owned()),
            Err(_) => Some(line[..bytes.min(MAX_EVIDENCE_BYTES)].to_vec()),
        };
        Self { raw, long: None, bytes, value, defect: None, values, left_out: 0 }
    }

    /// Parses one line of a stream, as [`Frame::parse`]. A byte order mark before it is a defect.
    fn parse_marked(line: Cow<'_, [u8]>) -> Self {
        let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK) else { return Self::parse_from(line) };
        let frame = Self::parse(rest);
        let defect = frame.value.is_ok().then_some(FramingError::ByteOrderMark);
        let raw = Some(line[..BYTE_ORDER_MARK.len() + frame.raw().len()].to_vec());
        Self { raw, bytes: line.len(), defect, ..frame }
    }

    /// A frame for a value that is to be sent.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let raw = value.to_string().into_bytes();
        let (bytes, values) = (raw.len(), count(&raw));
        let raw = (bytes <= MAX_SHORTENED_STRING_BYTES).then_some(raw);
        Self { bytes, raw, long: None, value: Ok(value.clone()), defect: None, values, left_out: 0 }
    }

    /// A frame for a message of a case that is to be sent: with all its bytes, but of a long one only with the beginning
    /// of long strings in its value, which are not needed twice.
    #[must_use]
    pub(crate) fn of_case(message: &Value) -> Self {
        let raw = text_of(message);
        let (bytes, values) = (raw.len(), count(&raw));
        let (value, left_out) = if bytes > MAX_SENT_BYTES { with_short_strings(message) } else { (message.clone(), 0) };
        Self { raw: Some(raw), long: None, bytes, value: Ok(value), defect: None, values, left_out }
    }

    /// A frame for a long line that is to be sent, with a value that has only the beginning of its long strings.
    #[must_use]
    pub(crate) fn of_long_line(line: RawText, value: Value) -> Self {
        let (bytes, text) = (line.len(), text_of(&value));
        let (values, left_out) = (count(&text), bytes.saturating_sub(text.len()));
        Self { raw: None, long: Some(Box::new(line)), bytes, value: Ok(value), defect: None, values, left_out }
    }

    /// A message that exceeds [`MAX_MESSAGE_BYTES`], of which only the beginning was read.
    #[must_use]
    pub fn too_long(beginning: &[u8], bytes: usize) -> Self {
        let kept = beginning.len().min(MAX_EVIDENCE_BYTES);
        let value = Err(FramingError::TooLong { bytes });
        Self { raw: Some(beginning[..kept].to_vec()), long: None, bytes, value, defect: None, values: 0, left_out: 0 }
    }

    /// A line of a server as a transcript file has it: its first bytes, its length, and the framing error that these
    /// bytes may not show. `None` if there is no error of that name.
    #[must_use]
    pub(crate) fn restored(raw: &[u8], bytes: usize, error: Option<&str>) -> Option<Self> {
        let read = Self::parse_marked(Cow::Borrowed(raw));
        let value = match error {
            // The bytes show these errors, unless their end is missing.
            None | Some("blank" | "byte-order-mark") => return Some(read),
            Some(SHORTENED) if read.value.is_ok() => {
                return Some(Self { bytes, left_out: bytes.saturating_sub(raw.len()).max(1), ..read });
            }
            Some("unterminated") => return Some(Self { defect: Some(FramingError::Unterminated), ..read }),
            Some("not-json" | "not-utf8") if raw.len() == bytes => return Some(read),
            Some("not-json") => FramingError::NotJson { reason: "only its beginning is recorded".to_owned() },
            Some("not-utf8") => FramingError::NotUtf8 { at: read.raw().len() },
            Some("too-long") => FramingError::TooLong { bytes },
            Some("dropped") => FramingError::Dropped { bytes },
            Some("too-deep") => FramingError::TooDeep,
            Some("too-many-values") => FramingError::TooManyValues,
            Some("unfinished") => FramingError::Unfinished,
            Some(_) => return None,
        };
        Some(Self {
            raw: Some(raw.to_vec()),
            long: None,
            bytes,
            value: Err(value),
            defect: None,
            values: 0,
            left_out: 0,
        })
    }

    /// The approximate memory that it takes, in bytes; an upper bound.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        const FIXED: usize = 300;
        // The text is kept twice, raw and in its values, unless one follows from the other.
        let text = self.raw.as_ref().map_or(self.bytes.saturating_sub(self.left_out), |raw| 2 * raw.len());
        FIXED + text + BYTES_PER_VALUE * self.values
    }

    /// The same line without its contents, except the first few kilobytes.
    #[must_use]
    pub fn drop_contents(mut self) -> Self {
        let raw = self.raw();
        self.raw = Some(raw[..raw.len().min(MAX_EVIDENCE_BYTES)].to_vec());
        Self { value: Err(FramingError::Dropped { bytes: self.bytes }), values: 0, ..self }
    }

    /// The bytes as received; of an invalid line the first few kilobytes.
    #[must_use]
    pub fn raw(&self) -> Cow<'_, [u8]> {
        match (&self.raw, &self.value) {
            (Some(raw), _) => Cow::Borrowed(raw),
            (None, Ok(value)) => {
                let mut text = Vec::with_capacity(self.bytes.saturating_sub(self.left_out));
                // What is a value has a text, and memory takes all of it.
                let _written = serde_json::to_writer(&mut text, value);
                Cow::Owned(text)
            }
            (None, Err(_)) => Cow::default(),
        }
    }

    /// The bytes to be sent. A shortened message does not keep them.
    #[must_use]
    pub(crate) fn take_text(&mut self) -> RawText {
        if let Some(long) = self.long.take() {
            return *long;
        }
        let whole = if self.is_shortened() { self.raw.take() } else { None };
        whole.unwrap_or_else(|| self.raw().into_owned()).into()
    }

    /// The same line with other bytes than those that are kept of it.
    #[must_use]
    pub(crate) fn with_raw(self, raw: Vec<u8>) -> Self {
        Self { raw: Some(raw), ..self }
    }

    /// The same line in less memory: without its bytes if they are the text of its value, as most are.
    #[must_use]
    pub(crate) fn compacted(self) -> Self {
        let is_text = |raw: &Vec<u8>| self.value.as_ref().is_ok_and(|value| is_text_of(raw, value));
        let raw = if self.raw.as_ref().is_some_and(is_text) { None } else { self.raw };
        Self { raw, value: self.value.map(without_room), ..self }
    }

    /// How much memory [`Frame::shortened`] would save, in bytes.
    #[must_use]
    pub(crate) fn long_string_bytes(&self) -> usize {
        if self.bytes <= MAX_SHORTENED_STRING_BYTES {
            return 0;
        }
        let copies = if self.raw.is_some() { 2 } else { 1 };
        copies * self.json().map_or(0, long_string_bytes)
    }

    /// The same message with the first 64 KiB of each string, so that all else can be judged. Its bytes are not kept.
    #[must_use]
    pub(crate) fn shortened(self) -> Self {
        self.shortened_to(MAX_SHORTENED_STRING_BYTES)
    }

    /// The same message with the first 4 KiB of each string.
    #[must_use]
    pub(crate) fn shortened_further(self) -> Self {
        self.shortened_to(MAX_EVIDENCE_BYTES)
    }

    fn shortened_to(mut self, most: usize) -> Self {
        if let Ok(value) = &mut self.value {
            self.left_out += shorten_strings(value, most);
            self.raw = None;
        }
        self
    }

    /// How many bytes of long strings were left out of it.
    #[must_use]
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether the rest of long strings was left out of it.
    #[must_use]
    pub(crate) fn is_shortened(&self) -> bool {
        self.left_out > 0
    }

    /// The value, if the line has one.
    #[must_use]
    pub fn json(&self) -> Option<&Value> {
        self.value.as_ref().ok()
    }

    /// Whether a string in it has an escaped lone surrogate, which many parsers reject.
    #[must_use]
    pub fn has_lone_surrogate(&self) -> bool {
        std::str::from_utf8(&self.raw()).is_ok_and(|text| without_lone_surrogates(text).is_some())
    }

    /// Whether a parser may refuse the line, though it is JSON, before it knows the id of the request: it has an escaped
    /// lone surrogate, is nested, or is long.
    #[must_use]
    pub(crate) fn may_be_unreadable(&self) -> bool {
        /// The depth and the length that every parser is expected to read: what some of them allow by default.
        const READABLE: (usize, usize) = (64, 64 << 10);
        let is_nested = |raw: &Vec<u8>| measure_within(raw, READABLE.0, usize::MAX).is_err();
        self.bytes > READABLE.1 || self.raw.as_ref().is_some_and(is_nested) || self.has_lone_surrogate()
    }

    /// The line as text, with invalid UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        match self.raw() {
            Cow::Borrowed(raw) => String::from_utf8_lossy(raw).into_owned(),
            Cow::Owned(raw) => {
                String::from_utf8(raw).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
            }
        }
    }
}

fn read(line: &[u8]) -> Result<(Value, usize), FramingError> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Err(FramingError::Blank);
    }
    let text = std::str::from_utf8(line).map_err(|error| FramingError::NotUtf8 { at: error.valid_up_to() })?;
    let values = measure(line)?;
    let value = serde_json::from_str(text).or_else(|error| {
        let replaced = without_lone_surrogates(text).and_then(|text| serde_json::from_str(&text).ok());
        replaced.ok_or_else(|| FramingError::NotJson { reason: error.to_string() })
    })?;
    Ok((value, values))
}

/// The number of values of a line to be sent, which may exceed the limits.
fn count(line: &[u8]) -> usize {
    measure(line).unwrap_or(MAX_VALUES)
}

/// The limit that a line of a transcript file exceeds, if any. Such a line has one message, and little in addition.
pub(crate) fn exceeds_limits(line: &[u8]) -> Option<FramingError> {
    /// How much deeper than its message a line may be.
    const MORE_DEPTH: usize = 4;
    /// The ends of HTTP responses repeat the small members of up to a thousand events.
    const MORE_VALUES: usize = 2 * MAX_VALUES;
    measure_within(line, MAX_DEPTH + MORE_DEPTH, MAX_VALUES + MORE_VALUES).err()
}

/// Whether a text can be read as a message, as far as its depth and the number of its values are concerned.
pub(super) fn is_within_limits(text: &[u8]) -> bool {
    measure(text).is_ok()
}

/// Checks the depth and the number of values before anything is allocated for them; returns the number.
fn measure(line: &[u8]) -> Result<usize, FramingError> {
    measure_within(line, MAX_DEPTH, MAX_VALUES)
}

fn measure_within(line: &[u8], max_depth: usize, max_values: usize) -> Result<usize, FramingError> {
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
                values += VALUES_PER_CONTAINER;
                if depth > max_depth {
                    return Err(FramingError::TooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if values > max_values {
            return Err(FramingError::TooManyValues);
        }
    }
    Ok(values)
}

/// A line that has not been parsed yet.
#[derive(Debug, Clone)]
pub enum Line<'b> {
    /// The whole line, without its line ending.
    Whole(Cow<'b, [u8]>),
    /// The beginning of a line that is too long, and the line's length.
    TooLong(&'b [u8], usize),
}

impl Line<'_> {
    /// Parses the line.
    #[must_use]
    pub fn parse(self) -> Frame {
        match self {
            Self::Whole(line) => Frame::parse_marked(line),
            Self::TooLong(beginning, bytes) => Frame::too_long(beginning, bytes),
        }
    }
}

/// Splits a stream of bytes into frames at each line feed.
///
/// Keeps at most `MAX_MESSAGE_BYTES` of an unfinished line; of a longer one it keeps the beginning
/// and counts the rest up to the line feed.
#[derive(Debug, Default)]
pub struct Splitter {
    line: Vec<u8>,
    dropped: usize,
    /// The last line that was assembled from pieces, unless it was long.
    assembled: Vec<u8>,
    /// Whether the last message was taken without its line feed, which may follow.
    skips_line_feed: bool,
}

impl Splitter {
    /// Accepts the next bytes of the stream and calls `sink` with each line that they complete.
    pub fn push(&mut self, mut bytes: &[u8], mut sink: impl FnMut(Frame)) {
        while let Some((line, used)) = self.pull(bytes) {
            sink(line.parse());
            bytes = &bytes[used..];
        }
    }

    /// Extracts the first line from the next bytes of the stream; returns it with the number of bytes used. If no
    /// line ends in them, they are kept as the beginning of the next one.
    pub fn pull<'b>(&'b mut self, bytes: &'b [u8]) -> Option<(Line<'b>, usize)> {
        let skipped = self.skip_line_feed(bytes);
        let bytes = &bytes[skipped..];
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.keep(bytes);
            return None;
        };
        let head = &bytes[..end];
        if self.line.is_empty() && self.dropped == 0 && end <= MAX_MESSAGE_BYTES {
            return Some((Line::Whole(Cow::Borrowed(strip_carriage_return(head))), skipped + end + 1));
        }
        self.keep(head);
        Some((self.take(), skipped + end + 1))
    }

    /// The number of bytes that belong to the line feed of a message that was taken without it.
    fn skip_line_feed(&mut self, bytes: &[u8]) -> usize {
        if bytes.is_empty() || !std::mem::take(&mut self.skips_line_feed) {
            return 0;
        }
        [&b"\n"[..], b"\r\n"].into_iter().find(|feed| bytes.starts_with(feed)).map_or(0, <[u8]>::len)
    }

    /// Whether the unfinished line may be a whole message.
    #[must_use]
    pub fn may_lack_line_feed(&self) -> bool {
        self.dropped == 0 && matches!(self.line.last(), Some(b'}' | b']'))
    }

    /// The unfinished line, if it is a whole message: for a stream on which nothing follows. Its line feed is skipped if
    /// it arrives later.
    pub fn take_unterminated(&mut self) -> Option<Frame> {
        if !self.may_lack_line_feed() {
            return None;
        }
        let frame = Frame::parse_marked(Cow::Borrowed(&self.line));
        frame.json()?;
        self.line.clear();
        self.skips_line_feed = true;
        Some(Frame { defect: Some(FramingError::Unterminated), ..frame })
    }

    /// The length of the unfinished line so far in bytes, including dropped ones.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.line.len() + self.dropped
    }

    /// The unfinished line at the end of the stream, if there is one.
    pub fn finish(&mut self) -> Option<Frame> {
        if self.pending() == 0 {
            return None;
        }
        let mut frame = self.take().parse();
        if frame.value.is_ok() {
            frame.value = Err(FramingError::Unfinished);
        }
        Some(frame)
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.dropped == 0 && self.line.len() + bytes.len() <= MAX_MESSAGE_BYTES {
            self.line.extend_from_slice(bytes);
            return;
        }
        let length = self.pending() + bytes.len();
        let kept = MAX_EVIDENCE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(kept)]);
        self.line = self.line[..self.line.len().min(MAX_EVIDENCE_BYTES)].to_vec();
        self.dropped = length - self.line.len();
    }

    fn take(&mut self) -> Line<'_> {
        if self.dropped == 0 && self.line.len() > RETAINED_BYTES {
            let mut line = std::mem::take(&mut self.line);
            line.truncate(strip_carriage_return(&line).len());
            return Line::Whole(Cow::Owned(line));
        }
        std::mem::swap(&mut self.line, &mut self.assembled);
        self.line.clear();
        match std::mem::take(&mut self.dropped) {
            0 => Line::Whole(Cow::Borrowed(strip_carriage_return(&self.assembled))),
            dropped => Line::TooLong(&self.assembled, self.assembled.len() + dropped),
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
        assert_eq!(*frames[1].raw(), *b"[]");
    }

    #[test]
    fn framing_errors_are_named_and_the_bytes_are_kept() {
        let frames = split(&[b"Server ready\n\n{\"a\":\"\xe9\"}\n{\"a\":1}"]);
        assert!(matches!(frames[0].value, Err(FramingError::NotJson { .. })));
        assert_eq!(*frames[0].raw(), *b"Server ready");
        assert_eq!(frames[1].value, Err(FramingError::Blank));
        assert_eq!(frames[2].value, Err(FramingError::NotUtf8 { at: 6 }));
        assert_eq!(frames[3].value, Err(FramingError::Unfinished));
    }

    #[test]
    fn a_line_beyond_the_limit_is_counted_and_dropped() {
        let mut splitter = Splitter::default();
        let mut frames = Vec::new();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            splitter.push(&chunk, |frame| frames.push(frame));
        }
        splitter.push(b"\n{}\n", |frame| frames.push(frame));
        assert_eq!(frames[0].value, Err(FramingError::TooLong { bytes: 20 << 20 }));
        assert_eq!(frames[1].json(), Some(&json!({})));
    }

    #[test]
    fn a_shortened_message_keeps_all_but_the_end_of_long_strings() {
        let long = "é".repeat(MAX_SHORTENED_STRING_BYTES);
        let value = json!({"id": 7, "result": {"content": [{"type": "text", "text": long}]}});
        let frame = Frame::parse(value.to_string().as_bytes()).compacted();
        assert_eq!((frame.is_shortened(), frame.long_string_bytes()), (false, MAX_SHORTENED_STRING_BYTES));
        let (bytes, memory) = (frame.bytes, frame.memory_bytes());
        let shortened = frame.shortened();
        assert!(shortened.is_shortened() && shortened.bytes == bytes);
        assert_eq!((shortened.long_string_bytes(), shortened.memory_bytes()), (0, memory - MAX_SHORTENED_STRING_BYTES));
        let kept = "é".repeat(MAX_SHORTENED_STRING_BYTES / 2);
        let expected = json!({"id": 7, "result": {"content": [{"type": "text", "text": kept}]}});
        assert_eq!(shortened.json(), Some(&expected));
        let restored = Frame::restored(&shortened.raw(), bytes, Some(SHORTENED)).expect("it is a message");
        assert!(restored.is_shortened() && restored.json() == Some(&expected) && restored.bytes == bytes);
    }

    #[test]
    fn a_long_message_of_a_case_is_sent_as_a_whole_and_not_kept() {
        let message = json!({"id": 7, "method": "ping", "params": {"a": [1, "é".repeat(MAX_SENT_BYTES)], "b": "c"}});
        let mut frame = Frame::of_case(&message);
        let line = frame.take_text().into_bytes();
        assert_eq!((frame.bytes, &line), (line.len(), &message.to_string().into_bytes()));
        assert_eq!(frame, Frame { bytes: line.len(), ..Frame::from_value(&message).shortened() });
        assert!(frame.is_shortened() && frame.raw().len() < 70_000);
        let mut short = Frame::of_case(&json!({"id": 7}));
        assert_eq!((short.take_text().into_bytes(), short.text()), (br#"{"id":7}"#.to_vec(), r#"{"id":7}"#.to_owned()));
    }

    #[test]
    fn bytes_are_left_out_only_where_they_are_the_text_of_the_value() {
        for (line, is_left_out) in [
            (r#"{"a":[1,"é\n"]}"#, true),
            (r#"{"a": [1,"é\n"]}"#, false),
            (r#"{"a":[1,"\u00e9\n"]}"#, false),
            (r#"{"a":[1,"é\n"]} "#, false),
            (r#"{"a":[1,"é\n"],"a":2}"#, false),
        ] {
            let frame = Frame::parse(line.as_bytes()).compacted();
            assert_eq!((frame.raw.is_none(), frame.text().as_str()), (is_left_out, line));
        }
    }

    #[test]
    fn depth_and_number_of_values_are_limited_before_parsing() {
        let deep = "[".repeat(100_000);
        assert_eq!(Frame::parse(deep.as_bytes()).value, Err(FramingError::TooDeep));
        let wide = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(Frame::parse(wide.as_bytes()).value, Err(FramingError::TooManyValues));
        let quoted = format!("{{\"a\":\"{}\"}}", "[,{".repeat(MAX_VALUES));
        assert!(Frame::parse(quoted.as_bytes()).value.is_ok());
    }

    #[test]
    fn a_message_behind_a_byte_order_mark_is_read_and_marked() {
        let frames = split(&[b"\xef\xbb\xbf{\"a\":1}\n{\"a\":2}\n\xef\xbb\xbfready\n"]);
        assert_eq!(frames[0].json(), Some(&json!({"a": 1})));
        assert_eq!((frames[0].defect.clone(), frames[0].bytes), (Some(FramingError::ByteOrderMark), 10));
        assert_eq!(frames[1].defect, None);
        assert!(matches!(frames[2].value, Err(FramingError::NotJson { .. })));
        assert_eq!(frames[2].text(), "\u{feff}ready");
    }

    #[test]
    fn a_message_without_its_line_feed_is_taken_on_request() {
        let mut splitter = Splitter::default();
        let mut frames = Vec::new();
        splitter.push(b"{\"a\":", |frame| frames.push(frame));
        assert_eq!(splitter.take_unterminated(), None);
        splitter.push(b"{}}", |frame| frames.push(frame));
        let frame = splitter.take_unterminated().expect("it is a message");
        assert_eq!((frame.json(), frame.defect.clone()), (Some(&json!({"a": {}})), Some(FramingError::Unterminated)));
        splitter.push(b"\r\n[]\n", |frame| frames.push(frame));
        splitter.push(b"{}", |frame| frames.push(frame));
        assert!(splitter.take_unterminated().is_some());
        splitter.push(b"[1]\n", |frame| frames.push(frame));
        let values: Vec<_> = frames.iter().map(Frame::json).collect();
        assert_eq!(values, [Some(&json!([])), Some(&json!([1]))]);
    }
}
