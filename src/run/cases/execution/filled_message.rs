//! Messages that are filled up to a length.

use serde_json::Value;

/// Stands before and after the length in a text that is filled: a character that no case has.
const MARK: char = '\u{f8ff}';

/// The text that stands for the letters, until the rest of the message is known.
pub(super) fn fill_mark(length: usize) -> String {
    format!("{MARK}{length}{MARK}")
}

/// The message with as many letters in place of a mark as it needs to have the length, in bytes; with none if it is longer
/// already.
pub(super) fn filled_up(mut message: Value) -> Value {
    let text = message.to_string();
    let mut parts = text.split(MARK);
    let (Some(before), Some(length), Some(after)) = (parts.next(), parts.next(), parts.next()) else { return message };
    let Ok(length) = length.parse::<usize>() else { return message };
    let letters = "x".repeat(length.saturating_sub(before.len() + after.len()));
    replace(&mut message, &fill_mark(length), &letters);
    message
}

fn replace(value: &mut Value, mark: &str, letters: &str) {
    match value {
        Value::String(text) if text.contains(mark) => *text = text.replace(mark, letters),
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
