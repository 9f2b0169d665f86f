//! Diffs of lines and words.
//!
//! Everything is compared as slices of `&str`, by two algorithms that are named here: choosing one of the library's six
//! at run time, or comparing further types, would compile each of them into the program.

use std::convert::Infallible;
use std::fmt::Write as _;

#[cfg(feature = "reports")]
use similar::algorithms::patience;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag, group_diff_ops};

const STRING_WRITE: &str = "a string takes all that is written";

/// The operations that turn some lines into others; lines that both have once stay together.
#[cfg(feature = "reports")]
pub(crate) fn line_ops(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()): Result<(), Infallible> = patience::diff(&mut ops, old, 0..old.len(), new, 0..new.len());
    ops.into_inner().into_inner().into_ops()
}

/// The fewest operations that turn some words into others.
pub(crate) fn word_ops(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()): Result<(), Infallible> = myers::diff(&mut ops, old, 0..old.len(), new, 0..new.len());
    ops.into_inner().into_inner().into_ops()
}

/// A unified diff with two lines of context, headed by the names of both sides; empty if the lines are equal.
pub(crate) fn unified(old: &[&str], new: &[&str], names: (&str, &str)) -> String {
    let ops = word_ops(old, new);
    if ops.iter().all(|op| op.tag() == DiffTag::Equal) {
        return String::new();
    }
    let mut text = format!("--- {}\n+++ {}\n", names.0, names.1);
    for hunk in group_diff_ops(ops, 2) {
        writeln!(text, "{}", UnifiedHunkHeader::new(&hunk)).expect(STRING_WRITE);
        for op in &hunk {
            let (removed, added) = (&old[op.old_range()], &new[op.new_range()]);
            if op.tag() == DiffTag::Equal {
                push(&mut text, ' ', removed);
            } else {
                push(&mut text, '-', removed);
                push(&mut text, '+', added);
            }
        }
    }
    text
}

/// Appends lines, each after a sign.
fn push(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        writeln!(text, "{sign}{line}").expect(STRING_WRITE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unified_diff_has_hunks_with_context() {
        let old: Vec<&str> = "a b c d e f g h i j".split(' ').collect();
        let new: Vec<&str> = "a B c d e f g h j k".split(' ').collect();
        let expected = "--- old\n+++ new\n@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d\n@@ -7,4 +7,4 @@\n g\n h\n-i\n j\n+k\n";
        assert_eq!(unified(&old, &new, ("old", "new")), expected);
        assert_eq!(unified(&old, &old, ("old", "new")), "");
    }

    #[cfg(feature = "reports")]
    #[test]
    fn operations_cover_both_sides() {
        let (old, new) = (["x", "y", "z"], ["y", "z", "w"]);
        for ops in [line_ops(&old, &new), word_ops(&old, &new)] {
            let kept: Vec<&str> = ops
                .iter()
                .filter(|op| op.tag() == DiffTag::Equal)
                .flat_map(|op| old[op.old_range()].iter().copied())
                .collect();
            assert_eq!(kept, ["y", "z"]);
        }
    }
}
