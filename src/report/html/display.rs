//! Text for the page: escaped strings, inline code, URL fragments, ids and counts.

use crate::percent;
use crate::report::visible::visible;
use crate::spec::Revision;
use crate::verdict::{Totals, Verdict};

/// Escapes control and invisible characters, so that the text is one line.
pub(super) fn display(text: &str) -> String {
    visible(text).into_owned()
}

/// Escapes control and invisible characters in each line of a text.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// A sentence in parts, each with a flag for code.
pub(super) type InlineText = Vec<(bool, String)>;

/// Splits a sentence at its backticks into text and code.
pub(super) fn inline_code(text: &str) -> InlineText {
    // An unpaired backtick does not mark code.
    if !text.matches('`').count().is_multiple_of(2) {
        return vec![(false, display(text))];
    }
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(index, part)| (index % 2 == 1, display(part))).collect()
}

/// A URL fragment that sets filters, such as `#area=tools&verdict=fail`.
pub(super) fn fragment(filters: &[(&str, &str)]) -> String {
    let mut fragment = String::from("#");
    for (index, (name, value)) in filters.iter().enumerate() {
        if index > 0 {
            fragment.push('&');
        }
        fragment.push_str(name);
        fragment.push('=');
        fragment.push_str(&percent::encode_path(value));
    }
    fragment
}

/// An id made from a name: lower-case letters, digits and hyphens.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().take(80) {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => slug.push(c),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The target of a link if it is an `https` URL; anything else is shown without a link.
pub(super) fn https_link(link: &str) -> Option<String> {
    link.starts_with("https://").then(|| display(link))
}

/// The verdicts with a count above zero, in the order of the page.
pub(super) fn counts(totals: Totals) -> Vec<(&'static str, usize)> {
    Verdict::ALL
        .into_iter()
        .map(|verdict| (verdict.as_str(), totals.of(verdict)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// `2 fail, 1 warn, 40 pass`.
pub(super) fn describe_counts(totals: Totals) -> String {
    let counts = counts(totals);
    if counts.is_empty() {
        return "nothing".to_owned();
    }
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// The parts of a bar: name, start and length, in thousandths of the total.
pub(super) fn shares(counts: &[(&'static str, usize)]) -> Vec<(&'static str, usize, usize)> {
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let mut before = 0;
    counts
        .iter()
        .filter(|_| total > 0)
        .map(|(name, count)| {
            let begin = before * 1000 / total;
            before += count;
            (*name, begin, before * 1000 / total - begin)
        })
        .collect()
}

/// Joins revisions with commas.
pub(super) fn revisions(list: &[Revision]) -> String {
    list.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
}

/// `2026-08-01T09:30:00Z` unchanged and as `2026-08-01 09:30 UTC`.
pub(super) fn format_start(started: &str) -> (String, String) {
    let reading = match started.split_once('T') {
        Some((day, time)) if time.ends_with('Z') && time.is_char_boundary(5) && time.len() > 5 => {
            display(&format!("{day} {} UTC", &time[..5]))
        }
        _ => display(started),
    };
    (display(started), reading)
}

/// The area of a case: the first part of its id.
pub(super) fn area(case: &str) -> &str {
    case.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_in_a_fragment_are_percent_encoded() {
        assert_eq!(fragment(&[("area", "tools"), ("q", "a&b=\"é")]), "#area=tools&q=a%26b%3D%22%C3%A9");
    }

    #[test]
    fn text_between_backticks_is_code() {
        assert_eq!(
            inline_code("say `a: b`."),
            [(false, "say ".to_owned()), (true, "a: b".to_owned()), (false, ".".to_owned())]
        );
        assert_eq!(inline_code("a ` b"), [(false, "a ` b".to_owned())]);
        assert!(inline_code("").is_empty());
    }

    #[test]
    fn only_an_https_url_is_a_link() {
        assert_eq!(https_link("https://example.org/a"), Some("https://example.org/a".to_owned()));
        for bad in ["javascript:alert(1)", "http://example.org", "data:text/html,x", " https://example.org", ""] {
            assert_eq!(https_link(bad), None);
        }
    }

    #[test]
    fn an_id_contains_only_letters_digits_and_hyphens() {
        assert_eq!(slug("Tools/call \u{202e}<x>"), "tools-call-x");
    }

    #[test]
    fn the_parts_of_a_bar_add_up_to_its_length() {
        let parts = shares(&[("fail", 1), ("warn", 1), ("pass", 1)]);
        assert_eq!(parts, [("fail", 0, 333), ("warn", 333, 333), ("pass", 666, 334)]);
        assert!(shares(&[]).is_empty());
    }
}
