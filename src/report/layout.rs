//! Text layout for terminals: wrapping lines and formatting durations.

/// Wraps text between words into lines of at most `width` characters; a longer word gets its own line.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = word.chars().count();
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
        let characters: Vec<char> = line.chars().collect();
        // An empty line is a line as well.
        lines.extend(characters.chunks(width.max(1)).map(|chunk| chunk.iter().collect::<String>()));
        if characters.is_empty() {
            lines.push(line);
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

    #[test]
    fn durations_have_a_suitable_unit() {
        assert_eq!([0.04, 9.5, 43.2, 1934.5].map(format_ms), ["0.0 ms", "9.5 ms", "43 ms", "1.93 s"]);
    }
}
