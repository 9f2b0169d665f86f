//! Server-sent events: a stream of bytes to events, with everything that a judge may want to see.
//!
//! Reads as the [WHATWG standard](https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream)
//! says, with two differences: events without data are told as well (some of them are what a server
//! primes a client with), and comments are counted. A well-kept decoder would hide both. Holds at most
//! [`MAX_MESSAGE_BYTES`] of one event; of a longer one the beginning is kept and the rest is counted.

use super::frame::MAX_MESSAGE_BYTES;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The type, where the event names one.
    pub event: Option<String>,
    /// The id that the event sets, where it does; it may be empty.
    pub id: Option<String>,
    /// The reconnection time as it was written, where the event sets one.
    pub retry: Option<String>,
    /// The data, its lines joined by line feeds; none where no `data` field came.
    pub data: Option<Vec<u8>>,
    /// Bytes of data that were not kept.
    pub cut: usize,
}

impl SseEvent {
    /// Whether nothing was set.
    fn is_empty(&self) -> bool {
        self.event.is_none() && self.id.is_none() && self.retry.is_none() && self.data.is_none()
    }

    fn room(&self) -> usize {
        self.data.as_ref().map_or(0, Vec::len)
    }
}

/// Splits a stream of bytes into events.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    /// Bytes of the line in hand that were not kept.
    dropped: usize,
    pending: SseEvent,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    returned: bool,
    /// Whether the first line is behind us, which may begin with a byte order mark.
    begun: bool,
    /// Bytes of the event in hand in lines that have ended, comments aside.
    behind: usize,
    /// How many comment lines there were.
    pub comments: usize,
    /// How many lines had a field that the standard does not know.
    pub unknown: usize,
}

impl SseDecoder {
    /// Takes bytes as they came and calls `sink` with each event that they complete.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(SseEvent)) {
        for &byte in bytes {
            let follows_return = std::mem::take(&mut self.returned);
            match byte {
                b'\n' if follows_return => {}
                b'\n' => self.end_line(&mut sink),
                b'\r' => {
                    self.returned = true;
                    self.end_line(&mut sink);
                }
                _ if self.line.len() < MAX_MESSAGE_BYTES => self.line.push(byte),
                _ => self.dropped += 1,
            }
        }
    }

    /// Whether the stream stands within an event: one that ends here is lost, as the standard says.
    #[must_use]
    pub fn is_within(&self) -> bool {
        !self.line.is_empty() || !self.pending.is_empty()
    }

    /// How many bytes of an event have come whose end has not, whether they were kept or not.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.behind + self.line.len() + self.dropped
    }

    fn end_line(&mut self, sink: &mut impl FnMut(SseEvent)) {
        let mut line = std::mem::take(&mut self.line);
        let dropped = std::mem::take(&mut self.dropped);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() && dropped == 0 {
            self.behind = 0;
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
        self.behind += line.len() + dropped + 1;
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"event" => self.pending.event = Some(text()),
            // An id with a zero byte is to be ignored.
            b"id" if !value.contains(&0) => self.pending.id = Some(text()),
            b"retry" => self.pending.retry = Some(text()),
            b"data" => self.add_data(value, dropped),
            b"id" => {}
            _ => self.unknown += 1,
        }
    }

    fn add_data(&mut self, value: &[u8], dropped: usize) {
        let room = MAX_MESSAGE_BYTES.saturating_sub(self.pending.room());
        let kept = value.len().min(room);
        self.pending.cut += value.len() - kept + dropped;
        match &mut self.pending.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(&value[..kept]);
            }
            None => self.pending.data = Some(value[..kept].to_vec()),
        }
    }
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
    fn an_event_without_end_is_counted_and_kept_in_part() {
        let mut decoder = SseDecoder::default();
        decoder.push(b": a comment counts for nothing\n", |_| {});
        assert_eq!(decoder.pending(), 0);
        decoder.push(b"data: one\ndata: t", |_| {});
        assert_eq!(decoder.pending(), 17);
        decoder.push(b"wo\n\n", |_| {});
        assert_eq!(decoder.pending(), 0);
    }

    #[test]
    fn every_line_ending_counts_and_pieces_are_joined() {
        for text in
            ["event: message\ndata: {}\n\n", "event: message\rdata: {}\r\r", "event: message\r\ndata: {}\r\n\r\n"]
        {
            for at in 0..text.len() {
                let events = decode(&[&text[..at], &text[at..]]);
                assert_eq!(events.len(), 1, "{text:?} cut at {at}");
                assert_eq!(events[0].event.as_deref(), Some("message"));
                assert_eq!(events[0].data.as_deref(), Some(&b"{}"[..]));
            }
        }
    }

    #[test]
    fn an_event_without_data_is_told() {
        let events = decode(&["id: 7\ndata:\n\n", "id: 8\nretry: 50\n\n", "\n\n"]);
        assert_eq!(events[0], SseEvent { id: Some("7".into()), data: Some(Vec::new()), ..SseEvent::default() });
        assert_eq!((events[1].retry.as_deref(), &events[1].data), (Some("50"), &None));
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn data_lines_are_joined_and_one_blank_is_taken_off() {
        let events = decode(&["\u{feff}data: a\ndata:  b\ndata\n\n"]);
        assert_eq!(events[0].data.as_deref(), Some(&b"a\n b\n"[..]));
    }

    #[test]
    fn comments_and_strange_fields_are_counted_and_an_unfinished_event_is_lost() {
        let mut decoder = SseDecoder::default();
        let mut events = 0;
        decoder.push(b": alive\nfoo: bar\nid: a\0b\n\ndata: x\n", |_| events += 1);
        assert_eq!((events, decoder.comments, decoder.unknown), (0, 1, 1));
        assert!(decoder.is_within());
    }

    #[test]
    fn memory_is_bounded() {
        let mut decoder = SseDecoder::default();
        let mut cut = 0;
        decoder.push(b"data: ", |_| ());
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            decoder.push(&chunk, |_| ());
        }
        decoder.push(b"\n\n", |event| cut = event.cut);
        assert!(cut >= 12 << 20, "{cut}");
    }
}
