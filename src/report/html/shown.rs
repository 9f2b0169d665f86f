//! Words as the page shows them: spelled out where they would act or hide, and fit for a fragment or an id.

use std::fmt::Write as _;

use crate::report::visible::visible;
use crate::spec::Revision;
use crate::verdict::{Totals, Verdict};

/// Text that somebody else wrote, on one line.
pub(super) fn shown(text: &str) -> String {
    visible(text).into_owned()
}

/// Text that somebody else wrote, line by line.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// A sentence in parts, each with whether it is code.
pub(super) type Prose = Vec<(bool, String)>;

/// A sentence of ours, in which code stands between backticks.
pub(super) fn prose(text: &str) -> Prose {
    // One without its partner is no sign of code.
    if !text.matches('`').count().is_multiple_of(2) {
        return vec![(false, shown(text))];
    }
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(index, part)| (index % 2 == 1, shown(part))).collect()
}

/// A fragment that sets filters, `#area=tools&verdict=fail`.
pub(super) fn fragment(filters: &[(&str, &str)]) -> String {
    let mut fragment = String::from("#");
    for (index, (name, value)) in filters.iter().enumerate() {
        if index > 0 {
            fragment.push('&');
        }
        fragment.push_str(name);
        fragment.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
                fragment.push(char::from(byte));
            } else {
                write!(fragment, "%{byte:02X}").expect("a string takes all that is written");
            }
        }
    }
    fragment
}

/// An id made of a name: lower-case letters, digits and hyphens, as much of it as there is.
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

/// A link that may be followed: what is no `https` address is shown, but leads nowhere.
pub(super) fn address(link: &str) -> Option<String> {
    link.starts_with("https://").then(|| shown(link))
}

/// The verdicts in the order of the page, each with its number, where there is any.
pub(super) fn counts(totals: Totals) -> Vec<(&'static str, usize)> {
    Verdict::ALL
        .into_iter()
        .map(|verdict| (verdict.as_str(), totals.of(verdict)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// `2 fail, 1 warn, 40 pass`.
pub(super) fn counted(totals: Totals) -> String {
    let counts = counts(totals);
    if counts.is_empty() {
        return "nothing".to_owned();
    }
    counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Parts of a bar: the word, where it begins and how long it is, in thousandths of the whole.
pub(super) fn shares(counts: &[(&'static str, usize)]) -> Vec<(&'static str, usize, usize)> {
    let whole: usize = counts.iter().map(|(_, count)| count).sum();
    let mut before = 0;
    counts
        .iter()
        .filter(|_| whole > 0)
        .map(|(word, count)| {
            let begin = before * 1000 / whole;
            before += count;
            (*word, begin, before * 1000 / whole - begin)
        })
        .collect()
}

/// Revisions, joined.
pub(super) fn revisions(of: &[Revision]) -> String {
    of.iter().map(|revision| revision.as_str()).collect::<Vec<_>>().join(", ")
}

/// The area of a case: the first part of its id.
pub(super) fn area(case: &str) -> &str {
    case.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_keeps_nothing_that_a_fragment_gives_a_meaning() {
        assert_eq!(fragment(&[("area", "tools"), ("q", "a&b=\"é")]), "#area=tools&q=a%26b%3D%22%C3%A9");
    }

    #[test]
    fn code_stands_between_backticks() {
        assert_eq!(
            prose("say `a: b`."),
            [(false, "say ".to_owned()), (true, "a: b".to_owned()), (false, ".".to_owned())]
        );
        assert_eq!(prose("a ` b"), [(false, "a ` b".to_owned())]);
        assert!(prose("").is_empty());
    }

    #[test]
    fn only_a_secure_address_is_a_link() {
        assert_eq!(address("https://example.org/a"), Some("https://example.org/a".to_owned()));
        for bad in ["javascript:alert(1)", "http://example.org", "data:text/html,x", " https://example.org", ""] {
            assert_eq!(address(bad), None);
        }
    }

    #[test]
    fn an_id_has_letters_digits_and_hyphens_alone() {
        assert_eq!(slug("Tools/call \u{202e}<x>"), "tools-call-x");
    }

    #[test]
    fn the_parts_of_a_bar_fill_it() {
        let parts = shares(&[("fail", 1), ("warn", 1), ("pass", 1)]);
        assert_eq!(parts, [("fail", 0, 333), ("warn", 333, 333), ("pass", 666, 334)]);
        assert!(shares(&[]).is_empty());
    }
}
