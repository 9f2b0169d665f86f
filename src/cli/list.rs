//! `--list`: the cases that would run, one line each.

use std::io::{self, Write};
use std::sync::Arc;

use mcp_conformance::internals::case::Case;
use mcp_conformance::report::layout::{display_width, padded};
use mcp_conformance::report::visible::visible;
use mcp_conformance::spec::{Level, Revision, RevisionSet};

/// Lists the cases with the revisions in which they would run, and their number.
pub(super) fn list(cases: &[Arc<Case>], possible: RevisionSet, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<[String; 4]> = cases
        .iter()
        .map(|case| {
            [
                visible(&case.id).into_owned(),
                span(case.revisions.intersection(possible)),
                level(case).map_or_else(String::new, |level| level.to_string()),
                visible(&case.title).into_owned(),
            ]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for [id, revisions, level, title] in &rows {
        let [id, revisions, level] = [(id, 0), (revisions, 1), (level, 2)].map(|(cell, at)| padded(cell, widths[at]));
        writeln!(out, "{id}  {revisions}  {level}  {title}")?;
    }
    writeln!(out, "{}", if cases.len() == 1 { "1 case".to_owned() } else { format!("{} cases", cases.len()) })
}

/// The strongest level among the requirements of a case.
fn level(case: &Case) -> Option<Level> {
    case.requirements.iter().map(|requirement| requirement.level).min()
}

/// A set of revisions in its shortest form, as case files write it:
/// `2025-03-26..2025-11-25`, `2025-06-18..`, several joined by commas.
pub(super) fn span(set: RevisionSet) -> String {
    let mut spans: Vec<(Revision, Revision)> = Vec::new();
    let mut previous = None;
    for revision in Revision::ALL {
        if set.contains(revision) {
            match spans.last_mut() {
                Some((_, last)) if previous == Some(*last) => *last = revision,
                _ => spans.push((revision, revision)),
            }
        }
        previous = Some(revision);
    }
    let newest = Revision::ALL[Revision::ALL.len() - 1];
    let words: Vec<String> = spans
        .into_iter()
        .map(|(first, last)| match () {
            () if first == last => first.to_string(),
            () if last == newest => format!("{first}.."),
            () => format!("{first}..{last}"),
        })
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_parses_to_the_set_that_it_was_made_of() {
        for bits in 1_u8..64 {
            let set: RevisionSet =
                Revision::ALL.into_iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0).map(|(_, r)| r).collect();
            let text = span(set);
            assert_eq!(text.parse(), Ok(set), "{text}");
        }
        assert_eq!(span("2025-03-26..2025-11-25".parse().expect("a set")), "2025-03-26..2025-11-25");
        assert_eq!(span(RevisionSet::ALL), "2024-10-07..");
        assert_eq!(span("2024-11-05,2025-11-25..".parse().expect("a set")), "2024-11-05,2025-11-25..");
    }
}
