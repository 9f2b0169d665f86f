//! Messages that are filled up to a length.

use std::iter;

use serde_json::Value;

use crate::raw_text::RawText;
use crate::wire::{Frame, MAX_SENT_BYTES};

/// Stands before and after the length in a text that is filled: a character that no case has.
const MARK: char = '\u{f8ff}';

/// How many letters the record of a long message has.
const MAX_SHOWN_LETTERS: usize = 4 << 10;

/// The text that stands for the letters, until the rest of the message is known.
pub(super) fn fill_mark(length: usize) -> String {
    format!("{MARK}{length}{MARK}")
}

/// The message to be sent for one that may have a mark. A long one is not made as a value or as a line, which would take its memory.
pub(super) fn filled_frame(message: &Value) -> Frame {
    let text = message.to_string();
    let Some(Marked { before, length, after }) = marked(&text) else { return Frame::of_case(message) };
    if length <= MAX_SENT_BYTES {
        return Frame::of_case(&filled_up(message.clone()));
    }
    let letters = length.saturating_sub(before.len() + after.len());
    let line = RawText::with_repeated(before.to_owned(), b'x', letters, after.to_owned());
    let mut shown = message.clone();
    replace(&mut shown, &fill_mark(length), letters.min(MAX_SHOWN_LETTERS));
    Frame::of_long_line(line, shown)
}

/// A text with a mark in it.
struct Marked<'t> {
    before: &'t str,
    /// The length that it is filled up to.
    length: usize,
    after: &'t str,
}

fn marked(text: &str) -> Option<Marked<'_>> {
    let mut parts = text.splitn(3, MARK);
    let (before, length, after) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Marked { before, length: length.parse().ok()?, after })
}

/// The message with as many letters in place of a mark as it needs to have the length, in bytes; with none if it is longer
/// already.
pub(super) fn filled_up(mut message: Value) -> Value {
    let text = message.to_string();
    let Some(Marked { before, length, after }) = marked(&text) else { return message };
    let letters = length.saturating_sub(before.len() + after.len());
    replace(&mut message, &fill_mark(length), letters);
    message
}

/// Puts letters in the place of a mark. There may be millions of them, so they are written once.
fn replace(value: &mut Value, mark: &str, letters: usize) {
    match value {
        Value::String(text) => {
            let Some((before, after)) = text.split_once(mark) else { return };
            let mut filled = String::with_capacity(before.len() + letters + after.len());
            filled.push_str(before);
            filled.extend(iter::repeat_n('x', letters));
            filled.push_str(after);
            *text = filled;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, mark, letters)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, mark, letters)),
        _ => {}
    }
}

/// A line with nested arrays in the place of `${nested.N}`, and the same line with an empty array there: no client reads a line
/// that is nested too deeply, so that the id of its request would not be known.
pub(super) fn with_nested_parts<E>(
    template: &str,
    fill: impl FnOnce(&str) -> Result<String, E>,
) -> Result<(String, String), E> {
    const BEGIN: &str = "${nested.";
    let mut depths: Vec<usize> = Vec::new();
    let mut marked = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let Some((depth, after)) = after.split_once('}') else { break };
        depths.push(depth.parse().unwrap_or_default());
        marked.push_str(before);
        marked.push(MARK);
        rest = after;
    }
    marked.push_str(rest);
    let filled = fill(&marked)?;
    let with = |part: &dyn Fn(usize) -> String| {
        let mut texts = filled.split(MARK);
        let first = texts.next().unwrap_or_default().to_owned();
        texts.zip(&depths).fold(first, |line, (text, depth)| line + &part(*depth) + text)
    };
    Ok((with(&|depth| "[".repeat(depth) + &"]".repeat(depth)), with(&|_| "[]".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_is_as_long_as_it_says() {
        for length in [100, 101, 4_096, 65_537] {
            let message = json!({"id": 1, "params": {"a": "é", "filled": [format!("a{}", fill_mark(length))]}});
            let filled = filled_up(message);
            assert_eq!(filled.to_string().len(), length);
            assert!(filled["params"]["filled"][0].as_str().is_some_and(|text| text.starts_with("ax")));
        }
    }

    #[test]
    fn a_frame_is_filled_as_its_message_is() {
        for length in [100, 65_537, MAX_SENT_BYTES, MAX_SENT_BYTES + 1, 1 << 20] {
            let message = json!({"id": 1, "params": {"a": "é", "filled": fill_mark(length)}, "z": []});
            let mut frame = filled_frame(&message);
            assert_eq!(frame.is_shortened(), length > MAX_SENT_BYTES);
            let filled = filled_up(message);
            let whole = filled.to_string();
            assert_eq!(
                (frame.bytes, whole.len(), frame.take_text().into_bytes() == whole.as_bytes()),
                (length, length, true)
            );
            let letters = |value: &Value| value["params"]["filled"].as_str().map(str::len);
            let kept =
                letters(&filled).map(|letters| if length > MAX_SENT_BYTES { MAX_SHOWN_LETTERS } else { letters });
            assert_eq!(frame.json().and_then(letters), kept);
        }
        let plain = json!({"id": 1, "method": "ping"});
        assert_eq!(filled_frame(&plain), Frame::of_case(&plain));
    }

    #[test]
    fn a_nested_line_can_be_read_without_its_arrays() {
        let template = r#"{"id":"${random}","a":${nested.3},"b":${nested.2}}"#;
        let fill = |text: &str| Ok::<_, ()>(text.replace("${random}", "7"));
        let (line, readable) = with_nested_parts(template, fill).expect("it is filled");
        assert_eq!(line, r#"{"id":"7","a":[[[]]],"b":[[]]}"#);
        assert_eq!(readable, r#"{"id":"7","a":[],"b":[]}"#);
    }

    #[test]
    fn a_message_without_a_mark_stays_as_it_is() {
        let message = json!({"id": 1, "method": "ping"});
        assert_eq!(filled_up(message.clone()), message);
    }

    #[test]
    fn a_message_that_is_longer_gets_no_letters() {
        let filled = filled_up(json!({"text": "abcdefgh", "filled": fill_mark(10)}));
        assert_eq!(filled["filled"], "");
    }
}
