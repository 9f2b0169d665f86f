//! A hostile stream, split into lines and parsed as JSON.
//!
//! Properties: the frames do not depend on how the bytes are split into pieces; together they are the stream; a
//! frame has a value exactly if its line is JSON within the size limits, where half of a surrogate pair in a string is
//! read although parsers reject it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_conformance::internals::wire::{Frame, FramingError, Splitter};

fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Frame> {
    let mut splitter = Splitter::default();
    let mut frames = Vec::new();
    for piece in pieces {
        splitter.push(piece, |frame| frames.push(frame));
    }
    frames.extend(splitter.finish());
    frames
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, stream)) = data.split_first() else { return };
    let whole = frames(std::iter::once(stream));
    let pieces = frames(stream.chunks(usize::from(size).max(1)));
    assert_eq!(whole, pieces, "the frames depend on the pieces");

    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let unfinished = lines.pop().unwrap_or_default();
    assert_eq!(whole.len(), lines.len() + usize::from(!unfinished.is_empty()));
    for (frame, line) in whole.iter().zip(&lines) {
        let line = &line.strip_suffix(b"\r").unwrap_or(line);
        assert_eq!(frame.bytes, line.len());
        assert!(line.starts_with(&frame.raw()), "the kept bytes differ from those received");
        let read = serde_json::from_slice::<serde_json::Value>(line);
        match &frame.value {
            Ok(value) => {
                match read {
                    Ok(read) => assert_eq!(value, &read),
                    Err(error) => assert!(frame.has_lone_surrogate(), "a frame with a value is JSON: {error}"),
                }
                assert_eq!(*frame.raw(), **line);
                assert!(Frame::parse(&Frame::from_value(value).raw()).json().is_some(), "a written value is read back");
            }
            Err(error) if error.is_own_limit() => {}
            Err(FramingError::Blank) => assert!(line.iter().all(u8::is_ascii_whitespace)),
            Err(FramingError::NotUtf8 { at }) => assert!(std::str::from_utf8(&line[..*at]).is_ok()),
            Err(_) => assert!(read.is_err(), "{} is reported as invalid", String::from_utf8_lossy(line)),
        }
    }
});
