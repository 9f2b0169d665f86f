//! Two texts side by side, line by line, with what differs within a line marked.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

use super::shown::shown;

/// From how many pieces of a line on nothing is marked within it.
const PIECES: usize = 1500;
/// From how many lines on two texts are set side by side as they are.
const LINES: usize = 3000;

/// A line on both sides; a side without one is empty.
#[derive(Debug, PartialEq)]
pub(super) struct Pair {
    /// What was expected, or came first.
    pub(super) left: Option<Side>,
    /// What came, or what it became.
    pub(super) right: Option<Side>,
}

/// A line on one side.
#[derive(Debug, PartialEq)]
pub(super) struct Side {
    /// Whether the line differs from the one beside it.
    pub(super) differs: bool,
    /// The line in parts, each with whether it is what differs.
    pub(super) parts: Vec<(bool, String)>,
}

impl Side {
    fn same(line: &str) -> Self {
        Self { differs: false, parts: vec![(false, shown(line))] }
    }

    fn whole(line: &str) -> Self {
        Self { differs: true, parts: vec![(false, shown(line))] }
    }
}

/// Two texts.
pub(super) fn of_texts(left: &str, right: &str) -> Vec<Pair> {
    let (old, new): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    if old.len().max(new.len()) > LINES {
        return paired(&old, &new);
    }
    capture_diff_slices(Algorithm::Patience, &old, &new).iter().flat_map(|op| pairs_of(op, &old, &new)).collect()
}

fn pairs_of(op: &DiffOp, old: &[&str], new: &[&str]) -> Vec<Pair> {
    let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
    match op.tag() {
        DiffTag::Equal => old
            .iter()
            .zip(new)
            .map(|(left, right)| Pair { left: Some(Side::same(left)), right: Some(Side::same(right)) })
            .collect(),
        DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => paired(old, new),
    }
}

/// The lines of a unified difference: what begins with `-` to the left, with `+` to the right.
pub(super) fn of_unified(diff: &str) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let (mut old, mut new): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in diff.lines() {
        if line.starts_with("--- ") || line.starts_with("+++ ") || line.starts_with("\\ ") {
            continue;
        }
        match line.as_bytes().first() {
            Some(b'-') => old.push(&line[1..]),
            Some(b'+') => new.push(&line[1..]),
            first => {
                pairs.extend(paired(&old, &new));
                old.clear();
                new.clear();
                let line = if first == Some(&b' ') { &line[1..] } else { line };
                pairs.push(Pair { left: Some(Side::same(line)), right: Some(Side::same(line)) });
            }
        }
    }
    pairs.extend(paired(&old, &new));
    pairs
}

/// Lines that differ, each beside the one in the same place.
fn paired(old: &[&str], new: &[&str]) -> Vec<Pair> {
    (0..old.len().max(new.len()))
        .map(|at| match (old.get(at), new.get(at)) {
            (Some(left), Some(right)) => {
                let (left, right) = marked(left, right);
                Pair { left: Some(left), right: Some(right) }
            }
            (left, right) => {
                Pair { left: left.map(|line| Side::whole(line)), right: right.map(|line| Side::whole(line)) }
            }
        })
        .collect()
}

/// Two lines with what differs marked; where nearly all of it does, nothing is.
fn marked(left: &str, right: &str) -> (Side, Side) {
    let (old, new) = (pieces(left), pieces(right));
    if old.len().max(new.len()) > PIECES {
        return (Side::whole(left), Side::whole(right));
    }
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let same: usize = ops.iter().filter(|op| op.tag() == DiffTag::Equal).map(|op| op.old_range().len()).sum();
    if same * 3 < old.len().max(new.len()) {
        return (Side::whole(left), Side::whole(right));
    }
    let mut sides = (Vec::new(), Vec::new());
    for op in &ops {
        let differs = op.tag() != DiffTag::Equal;
        for (parts, text) in
            [(&mut sides.0, old[op.old_range()].concat()), (&mut sides.1, new[op.new_range()].concat())]
        {
            if !text.is_empty() {
                parts.push((differs, shown(&text)));
            }
        }
    }
    (Side { differs: true, parts: sides.0 }, Side { differs: true, parts: sides.1 })
}

/// Words, and each character that is in none.
fn pieces(line: &str) -> Vec<&str> {
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

    fn text(side: Option<&Side>) -> String {
        let parts = side.map(|side| side.parts.as_slice()).unwrap_or_default();
        parts.iter().map(|(differs, text)| if *differs { format!("[{text}]") } else { text.clone() }).collect()
    }

    fn told(pairs: &[Pair]) -> Vec<(String, String)> {
        pairs.iter().map(|pair| (text(pair.left.as_ref()), text(pair.right.as_ref()))).collect()
    }

    #[test]
    fn what_differs_within_a_line_is_marked() {
        let pairs = of_texts("{\n  \"limit\": 40\n}", "{\n  \"limit\": 1\n}\n");
        assert_eq!(
            told(&pairs),
            [("{", "{"), ("  \"limit\": [40]", "  \"limit\": [1]"), ("}", "}")]
                .map(|(left, right)| (left.to_owned(), right.to_owned()))
        );
    }

    #[test]
    fn a_unified_difference_is_set_side_by_side() {
        let pairs = of_unified("--- first\n+++ other\n@@ -1,2 +1,3 @@\n a\n-b c d\n+b x d\n+new\n");
        let expected = [("@@ -1,2 +1,3 @@", "@@ -1,2 +1,3 @@"), ("a", "a"), ("b [c] d", "b [x] d"), ("", "new")];
        assert_eq!(told(&pairs), expected.map(|(left, right)| (left.to_owned(), right.to_owned())));
        assert!(pairs[3].left.is_none() && pairs[3].right.as_ref().is_some_and(|side| side.differs));
    }

    #[test]
    fn lines_without_anything_in_common_are_not_marked_piecemeal() {
        let pairs = of_texts("alpha beta gamma", "1,2,3,4,5,6,7");
        assert_eq!(told(&pairs), [("alpha beta gamma".to_owned(), "1,2,3,4,5,6,7".to_owned())]);
    }
}
