//! Text layout for terminals: the columns that a text takes, wrapping lines and formatting durations.

/// The columns that a text takes in a terminal: two for a Chinese character, none for an accent on another one. Without
/// the feature `cli` each character counts as one.
#[must_use]
pub fn display_width(text: &str) -> usize {
    #[cfg(feature = "cli")]
    {
        unicode_width::UnicodeWidthStr::width(text)
    }
    #[cfg(not(feature = "cli"))]
    {
        text.chars().count()
    }
}

/// The columns of a character by itself; in a text it may take fewer.
#[cfg(feature = "cli")]
fn char_width(c: char) -> usize {
    unicode_width::UnicodeWidthChar::width(c).unwrap_or(1)
}

#[cfg(not(feature = "cli"))]
fn char_width(_: char) -> usize {
    1
}

/// The beginning of a text that takes at most this many columns.
#[must_use]
pub fn first_columns(text: &str, limit: usize) -> &str {
    let mut width = 0;
    let mut beyond = text.char_indices().skip_while(|(_, c)| {
        width += char_width(*c);
        width <= limit
    });
    beyond.next().map_or(text, |(end, _)| &text[..end])
}

/// A text with spaces after it up to this number of columns.
#[must_use]
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(display_width(text)))
}

/// Wraps text between words into lines of at most `width` columns; a longer word gets its own line.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = display_width(word);
        if length > 0 && length + 1 + word_length > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
    }
    lines.push(line);
    lines
}

/// Wraps text like [`wrap`], and also breaks words that are longer than a line. Not for what a reader copies.
#[must_use]
pub fn wrap_and_break(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in wrap(text, width) {
        let mut rest = line.as_str();
        // An empty line is a line as well.
        loop {
            // Even where a single character is wider than the line.
            let least = rest.chars().next().map_or(0, char::len_utf8);
            let (part, after) = rest.split_at(first_columns(rest, width).len().max(least));
            lines.push(part.to_owned());
            if after.is_empty() {
                break;
            }
            rest = after;
        }
    }
    lines
}

/// Formats milliseconds with a suitable unit and few digits.
#[must_use]
pub fn format_ms(ms: f64) -> String {
    if ms >= 1000.0 {
        format!("{:.2} s", ms / 1000.0)
    } else if ms >= 10.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{ms:.1} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words_and_long_words_are_kept() {
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("https://long.example x", 5), ["https://long.example", "x"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn long_words_are_broken_on_request() {
        assert_eq!(wrap_and_break("a bbbbbbbbbb c", 4), ["a", "bbbb", "bbbb", "bb", "c"]);
        assert_eq!(wrap_and_break("äöüß€", 3), ["äöü", "ß€"]);
        assert_eq!(wrap_and_break("", 5), [""]);
    }

    #[cfg(feature = "cli")]
    #[test]
    fn wide_and_combining_characters_take_the_columns_that_a_terminal_gives_them() {
        for (text, width) in [("查询天气", 8), ("cafe\u{301}", 4), ("한글", 4), ("🙂", 2), ("naïve", 5), ("", 0)]
        {
            assert_eq!(display_width(text), width, "{text}");
        }
        assert_eq!(padded("查询", 6), "查询  ");
        assert_eq!(padded("e\u{301}", 3), "e\u{301}  ");
        assert_eq!(padded("查询", 3), "查询");
        assert_eq!(first_columns("查询天气", 5), "查询");
        assert_eq!(first_columns("e\u{301}e\u{301}", 1), "e\u{301}");
        assert_eq!(wrap("查询 天气 ab", 9), ["查询 天气", "ab"]);
        assert_eq!(wrap_and_break("查询天气", 5), ["查询", "天气"]);
        assert_eq!(wrap_and_break("e\u{301}e\u{301}e", 2), ["e\u{301}e\u{301}", "e"]);
        assert_eq!(wrap_and_break("查询", 1), ["查", "询"]);
    }

    #[test]
    fn durations_have_a_suitable_unit() {
        assert_eq!([0.04, 9.5, 43.2, 1934.5].map(format_ms), ["0.0 ms", "9.5 ms", "43 ms", "1.93 s"]);
    }
}
