//! Side-by-side diffs, with changes within a line marked.

use similar::{DiffOp, DiffTag};

use super::display::display;
use crate::line_diff::{line_ops, word_ops};

/// The number of tokens of a line above which changes within it are not marked.
const MAX_TOKENS: usize = 1500;
/// The number of lines above which two texts are shown side by side without a diff.
const MAX_LINES: usize = 3000;

/// A row of a side-by-side diff; `None` is an empty cell.
#[derive(Debug, PartialEq)]
pub(super) struct DiffRow {
    /// The expected or original line.
    pub(super) left: Option<DiffCell>,
    /// The actual or new line.
    pub(super) right: Option<DiffCell>,
}

/// One cell of a row.
#[derive(Debug, PartialEq)]
pub(super) struct DiffCell {
    /// Whether the line differs from the one on the other side.
    pub(super) differs: bool,
    /// The line in parts, each with a flag for changed text.
    pub(super) parts: Vec<(bool, String)>,
}

impl DiffCell {
    fn unchanged(line: &str) -> Self {
        Self { differs: false, parts: vec![(false, display(line))] }
    }

    fn changed(line: &str) -> Self {
        Self { differs: true, parts: vec![(false, display(line))] }
    }
}

/// Compares two texts.
pub(super) fn diff_texts(left: &str, right: &str) -> Vec<DiffRow> {
    let (old, new): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    if old.len().max(new.len()) > MAX_LINES {
        return zip_lines(&old, &new);
    }
    line_ops(&old, &new).iter().flat_map(|op| rows_of(op, &old, &new)).collect()
}

fn rows_of(op: &DiffOp, old: &[&str], new: &[&str]) -> Vec<DiffRow> {
    let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
    match op.tag() {
        DiffTag::Equal => old
            .iter()
            .zip(new)
            .map(|(left, right)| DiffRow {
                left: Some(DiffCell::unchanged(left)),
                right: Some(DiffCell::unchanged(right)),
            })
            .collect(),
        DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => zip_lines(old, new),
    }
}

/// Splits a unified diff into two sides: lines with `-` on the left, lines with `+` on the right.
pub(super) fn split_unified(diff: &str) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in diff.lines() {
        if line.starts_with("--- ") || line.starts_with("+++ ") || line.starts_with("\\ ") {
            continue;
        }
        match line.as_bytes().first() {
            Some(b'-') => old.push(&line[1..]),
            Some(b'+') => new.push(&line[1..]),
            first => {
                rows.extend(zip_lines(&old, &new));
                old.clear();
                new.clear();
                let line = if first == Some(&b' ') { &line[1..] } else { line };
                rows.push(DiffRow { left: Some(DiffCell::unchanged(line)), right: Some(DiffCell::unchanged(line)) });
            }
        }
    }
    rows.extend(zip_lines(&old, &new));
    rows
}

/// Pairs changed lines by position.
fn zip_lines(old: &[&str], new: &[&str]) -> Vec<DiffRow> {
    (0..old.len().max(new.len()))
        .map(|at| match (old.get(at), new.get(at)) {
            (Some(left), Some(right)) => {
                let (left, right) = mark_changes(left, right);
                DiffRow { left: Some(left), right: Some(right) }
            }
            (left, right) => DiffRow {
                left: left.map(|line| DiffCell::changed(line)),
                right: right.map(|line| DiffCell::changed(line)),
            },
        })
        .collect()
}

/// Marks the changes between two lines, unless almost everything changed.
fn mark_changes(left: &str, right: &str) -> (DiffCell, DiffCell) {
    let (old, new) = (tokenize(left), tokenize(right));
    if old.len().max(new.len()) > MAX_TOKENS {
        return (DiffCell::changed(left), DiffCell::changed(right));
    }
    let ops = word_ops(&old, &new);
    let same: usize = ops.iter().filter(|op| op.tag() == DiffTag::Equal).map(|op| op.old_range().len()).sum();
    if same * 3 < old.len().max(new.len()) {
        return (DiffCell::changed(left), DiffCell::changed(right));
    }
    let mut sides = (Vec::new(), Vec::new());
    for op in &ops {
        let differs = op.tag() != DiffTag::Equal;
        for (parts, text) in
            [(&mut sides.0, old[op.old_range()].concat()), (&mut sides.1, new[op.new_range()].concat())]
        {
            if !text.is_empty() {
                parts.push((differs, display(&text)));
            }
        }
    }
    (DiffCell { differs: true, parts: sides.0 }, DiffCell { differs: true, parts: sides.1 })
}

/// Splits a line into words and single other characters.
fn tokenize(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, c) in line.char_indices() {
        if !(c.is_alphanumeric() || c == '_') {
            if begin < at {
                found.push(&line[begin..at]);
            }
            begin = at + c.len_utf8();
            found.push(&line[at..begin]);
        }
    }
    if begin < line.len() {
        found.push(&line[begin..]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cell: Option<&DiffCell>) -> String {
        let parts = cell.map(|cell| cell.parts.as_slice()).unwrap_or_default();
        parts.iter().map(|(differs, text)| if *differs { format!("[{text}]") } else { text.clone() }).collect()
    }

    fn cells(rows: &[DiffRow]) -> Vec<(String, String)> {
        rows.iter().map(|row| (text(row.left.as_ref()), text(row.right.as_ref()))).collect()
    }

    #[test]
    fn changes_within_a_line_are_marked() {
        let rows = diff_texts("{\n  \"limit\": 40\n}", "{\n  \"limit\": 1\n}\n");
        assert_eq!(
            cells(&rows),
            [("{", "{"), ("  \"limit\": [40]", "  \"limit\": [1]"), ("}", "}")]
                .map(|(left, right)| (left.to_owned(), right.to_owned()))
        );
    }

    #[test]
    fn a_unified_diff_is_split_into_two_sides() {
        let rows = split_unified("--- first\n+++ other\n@@ -1,2 +1,3 @@\n a\n-b c d\n+b x d\n+new\n");
        let expected = [("@@ -1,2 +1,3 @@", "@@ -1,2 +1,3 @@"), ("a", "a"), ("b [c] d", "b [x] d"), ("", "new")];
        assert_eq!(cells(&rows), expected.map(|(left, right)| (left.to_owned(), right.to_owned())));
        assert!(rows[3].left.is_none() && rows[3].right.as_ref().is_some_and(|cell| cell.differs));
    }

    #[test]
    fn entirely_different_lines_are_not_marked() {
        let rows = diff_texts("alpha beta gamma", "1,2,3,4,5,6,7");
        assert_eq!(cells(&rows), [("alpha beta gamma".to_owned(), "1,2,3,4,5,6,7".to_owned())]);
    }
}
