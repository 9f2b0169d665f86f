//! Splits a stream of bytes into server-sent events, with all details that a judge may need.
//!
//! Parses as the [WHATWG standard](https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream)
//! says, with two differences: events without data are reported as well (some servers begin a stream with one),
//! and comments are counted. Keeps at most [`MAX_MESSAGE_BYTES`] of one event; of a longer one it keeps the
//! beginning and counts the rest.

use super::frame::MAX_MESSAGE_BYTES;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The type, if the event names one.
    pub event: Option<String>,
    /// The id, if the event sets one; it may be empty.
    pub id: Option<String>,
    /// The reconnection time as written, if the event sets one.
    pub retry: Option<String>,
    /// The data, its lines joined by line feeds; `None` without a `data` field.
    pub data: Option<Vec<u8>>,
    /// Bytes of data that were not kept.
    pub dropped: usize,
}

impl SseEvent {
    /// Whether no field was set.
    fn is_empty(&self) -> bool {
        self.event.is_none() && self.id.is_none() && self.retry.is_none() && self.data.is_none()
    }

    fn data_bytes(&self) -> usize {
        self.data.as_ref().map_or(0, Vec::len)
    }
}

/// Splits a stream of bytes into events.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    /// Bytes of the current line that were not kept.
    dropped: usize,
    pending: SseEvent,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    after_carriage_return: bool,
    /// Whether the first line, which may begin with a byte order mark, has been read.
    started: bool,
    /// The size of the current event's finished lines in bytes, without comments.
    finished_bytes: usize,
    /// The number of comment lines.
    pub comments: usize,
    /// The number of lines with a field that the standard does not define.
    pub unknown_fields: usize,
    /// Whether one of these lines begins like a message in JSON, whose `data:` is missing.
    has_bare_message: bool,
}

impl SseDecoder {
    /// Accepts the next bytes of the stream and calls `sink` with each event that they complete.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(SseEvent)) {
        let mut rest = bytes;
        while let Some((&first, after_first)) = rest.split_first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                rest = after_first;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.extend_line(rest);
                return;
            };
            self.extend_line(&rest[..end]);
            self.after_carriage_return = rest[end] == b'\r';
            self.end_line(&mut sink);
            rest = &rest[end + 1..];
        }
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(MAX_MESSAGE_BYTES - self.line.len());
        self.line.extend_from_slice(&bytes[..kept]);
        self.dropped += bytes.len() - kept;
    }

    /// Whether an event is unfinished: if the stream ends here, it is dropped, as the standard says.
    #[must_use]
    pub fn has_unfinished_event(&self) -> bool {
        !self.line.is_empty() || !self.pending.is_empty()
    }

    /// Whether a line that is ignored, because no field is named, begins like a message in JSON.
    #[must_use]
    pub fn has_bare_message(&self) -> bool {
        self.has_bare_message || begins_like_json(&self.line)
    }

    /// Whether the unfinished event has data, which is lost if the stream ends here.
    #[must_use]
    pub fn has_unfinished_data(&self) -> bool {
        self.pending.data.is_some() || self.line.starts_with(b"data")
    }

    /// The size of the unfinished event in bytes, including those that were not kept.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.finished_bytes + self.line.len() + self.dropped
    }

    fn end_line(&mut self, sink: &mut impl FnMut(SseEvent)) {
        let mut line = std::mem::take(&mut self.line);
        let dropped = std::mem::take(&mut self.dropped);
        if !std::mem::replace(&mut self.started, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() && dropped == 0 {
            self.finished_bytes = 0;
            if !self.pending.is_empty() {
                sink(std::mem::take(&mut self.pending));
            }
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(0) => {
                self.comments += 1;
                return;
            }
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (&line[..], &b""[..]),
        };
        self.finished_bytes += line.len() + dropped + 1;
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"event" => self.pending.event = Some(text()),
            // The standard ignores an id with a NUL character.
            b"id" if !value.contains(&0) => self.pending.id = Some(text()),
            b"retry" => self.pending.retry = Some(text()),
            b"data" => self.add_data(value, dropped),
            b"id" => {}
            _ => {
                self.unknown_fields += 1;
                self.has_bare_message |= begins_like_json(&line);
            }
        }
    }

    fn add_data(&mut self, value: &[u8], dropped: usize) {
        let free = MAX_MESSAGE_BYTES.saturating_sub(self.pending.data_bytes());
        let kept = value.len().min(free);
        self.pending.dropped += value.len() - kept + dropped;
        match &mut self.pending.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(&value[..kept]);
            }
            None => self.pending.data = Some(value[..kept].to_vec()),
        }
    }
}

/// Whether a line begins like a JSON object or array.
fn begins_like_json(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&str]) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk.as_bytes(), |event| events.push(event));
        }
        events
    }

    #[test]
    fn the_size_of_an_unfinished_event_is_counted() {
        let mut decoder = SseDecoder::default();
        decoder.push(b": a comment counts for nothing\n", |_| {});
        assert_eq!(decoder.pending(), 0);
        decoder.push(b"data: one\ndata: t", |_| {});
        assert_eq!(decoder.pending(), 17);
        decoder.push(b"wo\n\n", |_| {});
        assert_eq!(decoder.pending(), 0);
    }

    #[test]
    fn every_line_ending_is_recognised_and_pieces_are_joined() {
        for text in
            ["event: message\ndata: {}\n\n", "event: message\rdata: {}\r\r", "event: message\r\ndata: {}\r\n\r\n"]
        {
            for at in 0..text.len() {
                let events = decode(&[&text[..at], &text[at..]]);
                assert_eq!(events.len(), 1, "{text:?} split at {at}");
                assert_eq!(events[0].event.as_deref(), Some("message"));
                assert_eq!(events[0].data.as_deref(), Some(&b"{}"[..]));
            }
        }
    }

    #[test]
    fn an_event_without_data_is_reported() {
        let events = decode(&["id: 7\ndata:\n\n", "id: 8\nretry: 50\n\n", "\n\n"]);
        assert_eq!(events[0], SseEvent { id: Some("7".into()), data: Some(Vec::new()), ..SseEvent::default() });
        assert_eq!((events[1].retry.as_deref(), &events[1].data), (Some("50"), &None));
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn data_lines_are_joined_and_one_leading_space_is_removed() {
        let events = decode(&["\u{feff}data: a\ndata:  b\ndata\n\n"]);
        assert_eq!(events[0].data.as_deref(), Some(&b"a\n b\n"[..]));
    }

    #[test]
    fn comments_and_unknown_fields_are_counted_and_an_unfinished_event_is_dropped() {
        let mut decoder = SseDecoder::default();
        let mut events = 0;
        decoder.push(b": alive\nfoo: bar\nid: a\0b\n\ndata: x\n", |_| events += 1);
        assert_eq!((events, decoder.comments, decoder.unknown_fields), (0, 1, 1));
        assert!(decoder.has_unfinished_event());
    }

    #[test]
    fn a_message_without_data_and_an_unfinished_event_are_noticed() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"note: {\ndata: {}\n\nevent: x\nid: 7\n", |_| ());
        assert!(!decoder.has_bare_message() && !decoder.has_unfinished_data());
        decoder.push(b"dat", |_| ());
        assert!(!decoder.has_unfinished_data());
        decoder.push(b"a: {\"a\"", |_| ());
        assert!(decoder.has_unfinished_data());
        decoder.push(b"}\n\n{\"jsonrpc\":", |_| ());
        assert!(decoder.has_bare_message() && !decoder.has_unfinished_data());
        decoder.push(b"\"2.0\"}\n\n", |_| ());
        assert!(decoder.has_bare_message());
    }

    #[test]
    fn memory_is_limited() {
        let mut decoder = SseDecoder::default();
        let mut dropped = 0;
        decoder.push(b"data: ", |_| ());
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            decoder.push(&chunk, |_| ());
        }
        decoder.push(b"\n\n", |event| dropped = event.dropped);
        assert!(dropped >= 12 << 20, "{dropped}");
    }
}
