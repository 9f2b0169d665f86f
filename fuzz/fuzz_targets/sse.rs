//! A stream of server-sent events.
//!
//! Properties: the events do not depend on how the bytes are split into pieces, and their data equals that of a
//! simple decoder that follows the standard line by line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::wire::{SseDecoder, SseEvent};

fn decoded<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<SseEvent>, usize, usize, bool) {
    let mut decoder = SseDecoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, |event| events.push(event));
    }
    (events, decoder.comments, decoder.unknown_fields, decoder.has_unfinished_event())
}

/// The complete lines of a stream, with any of the three line endings.
fn lines(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = stream.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        lines.push(&stream[..end]);
        let ending = if stream[end..].starts_with(b"\r\n") { 2 } else { 1 };
        stream = &stream[end + ending..];
    }
    lines
}

/// The data of each event that has some.
fn data_by_the_standard(stream: &[u8]) -> Vec<Vec<u8>> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let (mut events, mut data) = (Vec::new(), None::<Vec<u8>>);
    for line in lines(stream) {
        if line.is_empty() {
            events.extend(data.take());
        } else {
            let mut parts = line.splitn(2, |byte| *byte == b':');
            let (field, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            if field == b"data" {
                let value = value.strip_prefix(b" ").unwrap_or(value);
                match &mut data {
                    Some(data) => data.extend([b"\n", value].concat()),
                    None => data = Some(value.to_vec()),
                }
            }
        }
    }
    events
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, stream)) = bytes.split_first() else { return };
    let whole = decoded(std::iter::once(stream));
    assert_eq!(whole, decoded(stream.chunks(usize::from(size).max(1))), "the events depend on the pieces");
    let data: Vec<Vec<u8>> = whole.0.into_iter().filter_map(|event| event.data).collect();
    assert_eq!(data, data_by_the_standard(stream));
});
