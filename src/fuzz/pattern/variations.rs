//! Strings that tell an expression from one that differs from it in one part.

use super::super::source::Simplest;
use super::{CharSet, LengthBudget, Pattern, PatternNode};

/// The maximum number of variations of one kind.
const MAX_OF_A_KIND: usize = 10;
/// Longer strings are not made.
const MAX_LENGTH: usize = 512;
/// Letters that a wider class contains by mistake: `\w` instead of letters, `A-z`, `\s`, a dash that means itself.
const STRANGERS: [char; 7] = ['_', '-', ' ', '^', '.', 'A', 'a'];

/// How a part is read by mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::fuzz) enum Misreading {
    /// It is repeated once too seldom or too often, or may be absent.
    Count,
    /// A dot stands for any character.
    AnyCharacter,
    /// A branch is not read.
    Branch,
    /// A class has characters too many.
    WiderClass,
    /// A class lacks characters.
    NarrowerClass,
}

impl Pattern {
    /// Strings that an expression with such a part decides in another way than this one, or at least may.
    pub(in crate::fuzz) fn variations(&self) -> Vec<(Misreading, String)> {
        let mut found: Vec<(Misreading, String)> = Vec::new();
        for (misreading, node) in self.root.variations() {
            let text = node.simplest();
            let same_kind = found.iter().filter(|(kind, _)| *kind == misreading).count();
            if same_kind < MAX_OF_A_KIND && text.len() <= MAX_LENGTH && !found.contains(&(misreading, text.clone())) {
                found.push((misreading, text));
            }
        }
        found
    }
}

impl PatternNode {
    /// The simplest match.
    fn simplest(&self) -> String {
        let mut text = String::new();
        self.write(&mut Simplest, &mut LengthBudget { need: 0, slack: MAX_LENGTH }, &mut text);
        text
    }

    fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let length = text.chars().count();
        Self::Text(text, length)
    }

    fn sequence(parts: Vec<Self>) -> Self {
        let shortest = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.shortest()));
        Self::Sequence(parts, shortest)
    }

    /// The expression with one part changed, for each part.
    fn variations(&self) -> Vec<(Misreading, Self)> {
        match self {
            Self::Text(text, _) => literal(text),
            Self::Class(class) => class.variations(),
            Self::Repeat { part, min, max } => repetitions(part, *min, *max),
            Self::Sequence(parts, _) => {
                let with = |at: usize, other: Self| {
                    let mut parts = parts.clone();
                    parts[at] = other;
                    Self::sequence(parts)
                };
                let varied = |(at, part): (usize, &Self)| {
                    part.variations().into_iter().map(move |(kind, other)| (kind, at, other)).collect::<Vec<_>>()
                };
                let varied = parts.iter().enumerate().flat_map(varied);
                varied.map(|(kind, at, other)| (kind, with(at, other))).collect()
            }
            Self::Either(parts, _) => {
                let chosen = parts.iter().skip(1).map(|part| (Misreading::Branch, part.clone()));
                chosen.chain(parts.iter().flat_map(Self::variations)).collect()
            }
        }
    }
}

/// A literal without one of its characters, and with a dot read as any character.
fn literal(text: &str) -> Vec<(Misreading, PatternNode)> {
    let mut found = Vec::new();
    for (at, letter) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + letter.len_utf8()..]);
        if letter == '.' {
            found.push((Misreading::AnyCharacter, PatternNode::text(format!("{before}x{after}"))));
            found.push((Misreading::AnyCharacter, PatternNode::text(format!("{before}/{after}"))));
        }
        found.push((Misreading::Count, PatternNode::text(format!("{before}{after}"))));
    }
    found
}

fn repetitions(part: &PatternNode, min: usize, max: Option<usize>) -> Vec<(Misreading, PatternNode)> {
    let times = |count: usize| PatternNode::Repeat { part: Box::new(part.clone()), min: count, max: Some(count) };
    let counts = [min.checked_sub(1), Some(min), max.and_then(|max| max.checked_add(1)), max];
    let is_short = |count: &usize| count.saturating_mul(part.shortest().max(1)) <= MAX_LENGTH;
    let mut found: Vec<(Misreading, PatternNode)> =
        counts.into_iter().flatten().filter(is_short).map(|count| (Misreading::Count, times(count))).collect();
    if max.is_none() {
        found.push((Misreading::Count, times(min + 2)));
    }
    // The changed part comes after as many others as the repetition needs.
    let others = min.max(1) - 1;
    if is_short(&others) {
        let after = |other| PatternNode::sequence(vec![times(others), other]);
        found.extend(part.variations().into_iter().map(|(kind, other)| (kind, after(other))));
    }
    found
}

impl CharSet {
    fn contains(&self, letter: char) -> bool {
        self.ranges.iter().any(|&(low, high)| (low..=high).contains(&u32::from(letter)))
    }

    /// The characters just outside of its ranges and just inside.
    fn variations(&self) -> Vec<(Misreading, PatternNode)> {
        let next_to = |code: Option<u32>| code.and_then(char::from_u32).filter(char::is_ascii_graphic);
        let outside = self.ranges.iter().flat_map(|&(low, high)| [low.checked_sub(1), high.checked_add(1)]);
        let outside = outside.filter_map(next_to).chain(STRANGERS).filter(|letter| !self.contains(*letter));
        let inside = self.ranges.iter().flat_map(|&(low, high)| [Some(low), Some(high)]).filter_map(next_to);
        // A class that excludes characters is left to its strangers.
        let inside = inside.filter(|_| self.total < 128);
        let inside = inside.chain(STRANGERS.into_iter().filter(|letter| self.contains(*letter)));
        let wider = outside.map(|letter| (Misreading::WiderClass, PatternNode::text(letter)));
        wider.chain(inside.map(|letter| (Misreading::NarrowerClass, PatternNode::text(letter)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(expression: &str, kind: Misreading) -> Vec<String> {
        let variations = Pattern::parse(expression).expect("an expression").variations();
        variations.into_iter().filter(|(own, _)| *own == kind).map(|(_, text)| text).collect()
    }

    #[test]
    fn each_part_is_repeated_once_less_and_once_more() {
        let dates = texts("^\\d{4}-\\d{2}$", Misreading::Count);
        for text in ["000-00", "00000-00", "0000-0", "0000-000", "000000"] {
            assert!(dates.contains(&text.to_owned()), "{text} in {dates:?}");
        }
        assert!(texts("^([a-z]+)(-[a-z]+)*$", Misreading::Count).contains(&"a-".to_owned()));
    }

    #[test]
    fn an_escaped_dot_is_any_character() {
        assert_eq!(texts("^a(\\.[0-9]+)?$", Misreading::AnyCharacter), ["ax0", "a/0"]);
    }

    #[test]
    fn classes_are_wider_and_narrower() {
        let wider = texts("^[A-Za-z]$", Misreading::WiderClass);
        for text in ["@", "[", "`", "{", "_"] {
            assert!(wider.contains(&text.to_owned()), "{text} in {wider:?}");
        }
        let narrower = texts("^[A-Z_]$", Misreading::NarrowerClass);
        for text in ["A", "Z", "_"] {
            assert!(narrower.contains(&text.to_owned()), "{text} in {narrower:?}");
        }
        assert_eq!(texts("^[^/]+$", Misreading::WiderClass), ["/"], "everything else belongs to it");
    }

    #[test]
    fn every_branch_is_read() {
        assert_eq!(texts("^(usd|eur|chf)$", Misreading::Branch), ["eur", "chf"]);
    }

    #[test]
    fn large_repetitions_are_left_out() {
        assert!(texts("^[a-z]{3,100000}$", Misreading::Count).iter().all(|text| text.len() <= MAX_LENGTH));
    }
}
