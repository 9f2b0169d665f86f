//! Texts as Markdown.

use mcp_conformance::report::visible::visible;

/// A text in which only what is between backticks is more than text.
pub(super) fn prose(text: &str) -> String {
    // The lines of a text stay lines.
    let text = text.split('\n').map(|line| visible(line).into_owned()).collect::<Vec<_>>().join("\n");
    // A backtick without a partner is a text as well.
    let is_paired = text.matches('`').count() % 2 == 0;
    let mut escaped = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at > 0 {
            escaped.push_str(if is_paired { "`" } else { "\\`" });
        }
        if is_paired && at % 2 == 1 {
            escaped.push_str(part);
            continue;
        }
        for c in part.chars() {
            match c {
                '<' => escaped.push_str("&lt;"),
                '*' | '_' | '[' | ']' | '\\' | '|' | '#' => escaped.extend(['\\', c]),
                c => escaped.push(c),
            }
        }
    }
    escaped
}

/// A block of text as it is.
pub(super) fn block(language: &str, text: &str) -> String {
    // A fence is longer than any in the text.
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_outside_of_code() {
        assert_eq!(prose("a <b> and `_meta <x>` or _y_"), "a &lt;b> and `_meta <x>` or \\_y\\_");
        assert_eq!(prose("one ` and <b>"), "one \\` and &lt;b>");
        assert_eq!(prose("a\n\nb"), "a\n\nb");
    }

    #[test]
    fn a_block_cannot_be_ended_by_its_text() {
        assert_eq!(block("text", "a\n```\nb"), "````text\na\n```\nb\n````\n");
    }
}
