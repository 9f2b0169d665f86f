//! Makes text from a server harmless to show: what a terminal would obey, or an eye would miss, is
//! spelled out.
//!
//! Every name, message, line of evidence and line of stderr passes [`visible`] before it reaches a
//! terminal. It keeps ordinary text as it is and refuses to interpret anything.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character acts on a terminal or hides from a reader: control characters, characters
/// that change the direction of text, and characters without a shape of their own.
#[must_use]
pub fn is_treacherous(c: char) -> bool {
    // Most text is none of it.
    !matches!(c, ' '..='~')
        && matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Without a shape: soft hyphen, joiners, fillers, zero-width spaces, the empty braille cell.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Direction marks, embeddings, overrides and isolates.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Breaks that some viewers obey.
        | '\u{2028}' | '\u{2029}'
        // Variation selectors and tags carry hidden text.
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with every treacherous character spelled out, as `\n` or `\u{1b}`, so that it stays on
/// one line and cannot act on a terminal.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_treacherous) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if is_treacherous(c) => {
                write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("a string takes all that is written");
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The text made [`visible`] and, where it is longer than `limit` characters, cut in its middle, with
/// the number of bytes that are missing; `cut` bytes are missing from its end already.
#[must_use]
pub fn excerpt(text: &str, limit: usize, cut: usize) -> String {
    const TAIL: usize = 60;
    // What a cut would save has to be more than the words that tell of it.
    const WORTH: usize = 60;
    let length = text.chars().count();
    let mut shown = if length <= limit + WORTH {
        visible(text).into_owned()
    } else {
        let tail = TAIL.min(limit / 4);
        let head_end = byte_of(text, limit - tail);
        let tail_start = byte_of(text, length - tail);
        let missing = tail_start - head_end;
        format!("{} [... {missing} bytes ...] {}", visible(&text[..head_end]), visible(&text[tail_start..]))
    };
    if cut > 0 {
        write!(shown, " [... {cut} bytes more]").expect("a string takes all that is written");
    }
    shown
}

/// Where in the text its character number `index` begins.
fn byte_of(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        for text in ["plain", "naïve \u{e9}", "日本語", "عربى", "a \\u{1b} b", "🙂"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn what_acts_on_a_terminal_is_spelled_out() {
        assert_eq!(visible("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(visible("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(visible("a\r\nb\tc\u{8}\u{7f}\0"), "a\\r\\nb\\tc\\u{8}\\u{7f}\\u{0}");
    }

    #[test]
    fn what_turns_or_hides_text_is_spelled_out() {
        assert_eq!(visible("a\u{202e}b\u{2066}c\u{200b}d\u{feff}"), "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}");
        assert_eq!(visible("\u{e0041}\u{fe0f}\u{2028}"), "\\u{e0041}\\u{fe0f}\\u{2028}");
    }

    #[test]
    fn a_long_line_keeps_its_head_and_its_tail() {
        let text = format!("{}{}", "é".repeat(400), "z".repeat(100));
        let shown = excerpt(&text, 300, 0);
        assert!(shown.starts_with(&"é".repeat(240)) && shown.ends_with(&"z".repeat(60)), "{shown}");
        assert!(shown.contains("[... 360 bytes ...]"), "{shown}");
        assert_eq!(excerpt("short", 300, 7), "short [... 7 bytes more]");
        assert_eq!(excerpt("", 300, 0), "");
    }
}
