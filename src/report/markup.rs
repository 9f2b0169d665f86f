//! Escaping text for HTML and XML that is written without a template.

/// A text as the content of an element. Of the quotation marks only these are escaped: those that would end the value of
/// the attribute in which the text is.
pub(super) fn escape(text: &str, quotation_marks: &[char]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' if quotation_marks.contains(&c) => escaped.push_str("&quot;"),
            '\'' if quotation_marks.contains(&c) => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_markup_remains() {
        let text = "<a title=\"x\" lang='&amp;'>";
        assert_eq!(escape(text, &[]), "&lt;a title=\"x\" lang='&amp;amp;'&gt;");
        assert_eq!(escape(text, &['"', '\'']), "&lt;a title=&quot;x&quot; lang=&#39;&amp;amp;&#39;&gt;");
    }
}
