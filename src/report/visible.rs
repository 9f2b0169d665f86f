//! Makes text from a server safe to print: control characters and invisible characters are escaped.
//!
//! Every name, message, line of evidence and line of stderr passes [`visible`] before it is printed. Ordinary text
//! of any script stays unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::text::first_chars;

/// Whether a character controls the terminal or is invisible: control characters, characters that change the text
/// direction, and characters without a glyph.
#[must_use]
pub fn is_control_or_invisible(c: char) -> bool {
    // The fast path for printable ASCII.
    !matches!(c, ' '..='~')
        && matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Without a glyph: soft hyphen, joiners, fillers, zero-width spaces, the empty braille cell.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Direction marks, embeddings, overrides and isolates.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Line and paragraph separators.
        | '\u{2028}' | '\u{2029}'
        // Variation selectors and tags can carry hidden text.
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes control and invisible characters, as `\n` or `\u{1b}`, so that the text stays on one line and cannot
/// control a terminal.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control_or_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if is_control_or_invisible(c) => {
                write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("a string takes all that is written");
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The text made [`visible`] and, if it is longer than `limit` characters, shortened in the middle, with the number
/// of omitted bytes; `truncated` is the number of bytes that are already missing at its end.
#[must_use]
pub fn excerpt(text: &str, limit: usize, truncated: usize) -> String {
    const TAIL_CHARS: usize = 60;
    // Shortening has to save more than the note about it takes.
    const MIN_SAVED_CHARS: usize = 60;
    let length = text.chars().count();
    let mut shown = if length <= limit + MIN_SAVED_CHARS {
        visible(text).into_owned()
    } else {
        let tail = TAIL_CHARS.min(limit / 4);
        let head_end = first_chars(text, limit - tail).len();
        let tail_start = first_chars(text, length - tail).len();
        let omitted = tail_start - head_end;
        format!("{} [... {omitted} bytes ...] {}", visible(&text[..head_end]), visible(&text[tail_start..]))
    };
    if truncated > 0 {
        write!(shown, " [... {truncated} more bytes]").expect("a string takes all that is written");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_is_unchanged() {
        for text in ["plain", "naïve \u{e9}", "日本語", "عربى", "a \\u{1b} b", "🙂"] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(visible("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(visible("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(visible("a\r\nb\tc\u{8}\u{7f}\0"), "a\\r\\nb\\tc\\u{8}\\u{7f}\\u{0}");
    }

    #[test]
    fn bidirectional_and_invisible_characters_are_escaped() {
        assert_eq!(visible("a\u{202e}b\u{2066}c\u{200b}d\u{feff}"), "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}");
        assert_eq!(visible("\u{e0041}\u{fe0f}\u{2028}"), "\\u{e0041}\\u{fe0f}\\u{2028}");
    }

    #[test]
    fn a_long_line_keeps_its_start_and_its_end() {
        let text = format!("{}{}", "é".repeat(400), "z".repeat(100));
        let shown = excerpt(&text, 300, 0);
        assert!(shown.starts_with(&"é".repeat(240)) && shown.ends_with(&"z".repeat(60)), "{shown}");
        assert!(shown.contains("[... 360 bytes ...]"), "{shown}");
        assert_eq!(excerpt("short", 300, 7), "short [... 7 more bytes]");
        assert_eq!(excerpt("", 300, 0), "");
    }
}
