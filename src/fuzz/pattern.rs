//! Generates strings that match a regular expression.
//!
//! `proptest` and `rand_regex` generate from expressions too, but reject anchors, ignore length
//! bounds, and cannot be driven by a [`Source`]; hence this generator.

mod variations;

use regex_syntax::hir::{Class, Hir, HirKind, Look};

pub(super) use self::variations::Misreading;
use super::source::Source;

/// How often an unbounded repetition repeats beyond its minimum, unless a length requires more.
const MAX_EXTRA_REPEATS: usize = 8;
/// The maximum number of nodes of an expression.
const MAX_NODES: usize = 4096;

/// A parsed expression.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    root: PatternNode,
    /// Whether other characters may precede and follow the match.
    open: (bool, bool),
    /// Something was left out, so a generated string may fail to match.
    approximate: bool,
}

#[derive(Debug, Clone)]
enum PatternNode {
    Text(String, usize),
    Class(CharSet),
    Repeat { part: Box<PatternNode>, min: usize, max: Option<usize> },
    Sequence(Vec<PatternNode>, usize),
    Either(Vec<PatternNode>, usize),
}

/// The characters of a class, the plainest first.
#[derive(Debug, Clone)]
struct CharSet {
    ascii: Vec<char>,
    ranges: Vec<(u32, u32)>,
    total: u64,
}

/// How many characters must and may be added to the shortest match.
struct LengthBudget {
    need: usize,
    slack: usize,
}

impl Pattern {
    /// Parses an expression of the ECMAScript dialect; `None` if no string can be generated from it.
    pub(super) fn parse(expression: &str) -> Option<Self> {
        let (plain, mut approximate) = simplify(expression);
        let hir = regex_syntax::ParserBuilder::new().nest_limit(64).build().parse(&plain).ok()?;
        let looks = hir.properties().look_set();
        approximate |= looks.iter().any(|look| !matches!(look, Look::Start | Look::End))
            || looks.contains(Look::Start) && !hir.properties().look_set_prefix().contains(Look::Start)
            || looks.contains(Look::End) && !hir.properties().look_set_suffix().contains(Look::End);
        let mut nodes = MAX_NODES;
        Some(Self {
            root: PatternNode::from_hir(&hir, &mut nodes)?,
            open: (!looks.contains(Look::Start), !looks.contains(Look::End)),
            approximate,
        })
    }

    /// Whether a generated string must be checked against the expression.
    pub(super) fn is_approximate(&self) -> bool {
        self.approximate
    }

    /// The length of the shortest match.
    pub(super) fn shortest(&self) -> usize {
        self.root.shortest()
    }

    /// A match of `min` to `max` characters, if the expression allows it.
    pub(super) fn draw(&self, source: &mut impl Source, min: usize, max: usize) -> String {
        let shortest = self.root.shortest();
        let mut budget = LengthBudget { need: min.saturating_sub(shortest), slack: max.saturating_sub(shortest) };
        let mut text = String::new();
        if self.open.0 && budget.slack > budget.need && source.one_in(16) {
            let extra = 1 + source.index(4.min(budget.slack - budget.need));
            budget.slack -= extra;
            budget.need = budget.need.saturating_sub(extra);
            text.extend(std::iter::repeat_n('x', extra));
        }
        self.root.write(source, &mut budget, &mut text);
        if budget.need > 0 && (self.open.1 || self.open.0) {
            if self.open.1 {
                text.extend(std::iter::repeat_n('a', budget.need));
            } else {
                text.insert_str(0, &"a".repeat(budget.need));
            }
        } else if self.open.1 && budget.slack > 0 && source.one_in(16) {
            let extra = 1 + source.index(4.min(budget.slack));
            text.extend(std::iter::repeat_n('x', extra));
        }
        text
    }
}

impl PatternNode {
    fn from_hir(hir: &Hir, nodes: &mut usize) -> Option<Self> {
        *nodes = nodes.checked_sub(1)?;
        Some(match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::Text(String::new(), 0),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                Self::Text(text.to_owned(), text.chars().count())
            }
            HirKind::Class(class) => Self::Class(CharSet::new(class)?),
            HirKind::Repetition(repetition) => Self::Repeat {
                part: Box::new(Self::from_hir(&repetition.sub, nodes)?),
                min: usize::try_from(repetition.min).ok()?,
                max: match repetition.max {
                    Some(max) => Some(usize::try_from(max).ok()?),
                    None => None,
                },
            },
            HirKind::Capture(capture) => Self::from_hir(&capture.sub, nodes)?,
            HirKind::Concat(parts) => {
                let parts: Option<Vec<Self>> = parts.iter().map(|part| Self::from_hir(part, nodes)).collect();
                let parts = parts?;
                let shortest = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.shortest()));
                Self::Sequence(parts, shortest)
            }
            HirKind::Alternation(parts) => {
                // If one branch cannot be generated, the others still can.
                let parts: Vec<Self> = parts.iter().filter_map(|part| Self::from_hir(part, nodes)).collect();
                let shortest = parts.iter().map(Self::shortest).min()?;
                Self::Either(parts, shortest)
            }
        })
    }

    fn shortest(&self) -> usize {
        match self {
            Self::Text(_, length) => *length,
            Self::Class(_) => 1,
            Self::Repeat { part, min, .. } => part.shortest().saturating_mul(*min),
            Self::Sequence(_, shortest) | Self::Either(_, shortest) => *shortest,
        }
    }

    fn write(&self, source: &mut impl Source, budget: &mut LengthBudget, text: &mut String) {
        match self {
            Self::Text(literal, _) => text.push_str(literal),
            Self::Class(letters) => text.push(letters.draw(source)),
            Self::Sequence(parts, _) => {
                for part in parts {
                    part.write(source, budget, text);
                }
            }
            Self::Either(parts, shortest) => {
                let fits = |part: &&Self| part.shortest() - shortest <= budget.slack;
                let count = parts.iter().filter(fits).count();
                let chosen = source.index(count.max(1));
                if let Some(part) = parts.iter().filter(fits).nth(chosen) {
                    budget.take(part.shortest() - shortest);
                    part.write(source, budget, text);
                }
            }
            Self::Repeat { part, min, max } => {
                let unit = part.shortest();
                let cap = max.unwrap_or(usize::MAX) - min;
                // A repetition of a part that may be empty grows inside, not by repeating.
                let (forced, free) = match unit {
                    0 => (usize::from(budget.need > 0).min(cap), 1),
                    _ => (budget.need.div_ceil(unit).min(cap).min(budget.slack / unit), budget.slack / unit),
                };
                let spare = free.saturating_sub(forced).min(cap - forced).min(MAX_EXTRA_REPEATS);
                let count = min + forced + source.index(spare + 1);
                budget.take(unit.saturating_mul(count - min));
                for _ in 0..count {
                    part.write(source, budget, text);
                }
            }
        }
    }
}

impl LengthBudget {
    fn take(&mut self, length: usize) {
        self.need = self.need.saturating_sub(length);
        self.slack = self.slack.saturating_sub(length);
    }
}

impl CharSet {
    fn new(class: &Class) -> Option<Self> {
        let ranges: Vec<(u32, u32)> = match class {
            Class::Unicode(class) => {
                class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
            }
            Class::Bytes(class) => {
                class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
            }
        };
        let within = |code: u32| ranges.iter().any(|&(low, high)| (low..=high).contains(&code));
        let mut ascii: Vec<char> = ('\u{0}'..='\u{7f}').filter(|letter| within(u32::from(*letter))).collect();
        // Letters, digits, punctuation, then control characters.
        ascii.sort_by_key(|letter| match letter {
            'a'..='z' => 0,
            '0'..='9' => 1,
            'A'..='Z' => 2,
            ' '..='~' => 3,
            _ => 4,
        });
        let total = ranges.iter().map(|&(low, high)| u64::from(high - low) + 1).sum();
        (total > 0).then_some(Self { ascii, ranges, total })
    }

    fn draw(&self, source: &mut impl Source) -> char {
        let ascii_only = self.ascii.len() as u64 == self.total;
        if ascii_only || (!self.ascii.is_empty() && !source.one_in(16)) {
            return self.ascii[source.index(self.ascii.len())];
        }
        let mut rank = source.below(self.total);
        for &(low, high) in &self.ranges {
            let size = u64::from(high - low) + 1;
            if rank < size {
                let code = low + u32::try_from(rank).unwrap_or(0);
                // The surrogate gap contains no characters.
                return char::from_u32(code).unwrap_or('\u{e000}');
            }
            rank -= size;
        }
        self.ascii.first().copied().unwrap_or('a')
    }
}

/// Rewrites parts with another meaning in ECMAScript, and removes look-around; returns whether anything was removed.
fn simplify(expression: &str) -> (String, bool) {
    let mut out = String::with_capacity(expression.len());
    let mut dropped = false;
    let mut in_class = false;
    let mut rest = expression.char_indices().peekable();
    while let Some((at, letter)) = rest.next() {
        match letter {
            '\\' => {
                let Some((_, escaped)) = rest.next() else {
                    out.push('\\');
                    break;
                };
                match escaped {
                    'd' => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
                    'w' if in_class => out.push_str("A-Za-z0-9_"),
                    'w' => out.push_str("[A-Za-z0-9_]"),
                    'D' => out.push_str("[^0-9]"),
                    'W' => out.push_str("[^A-Za-z0-9_]"),
                    'c' => {
                        let control = rest.next().map_or(0, |(_, letter)| u32::from(letter) % 32);
                        out.push_str("\\x");
                        for digit in [control / 16, control % 16] {
                            out.extend(char::from_digit(digit, 16));
                        }
                    }
                    '0' => out.push_str("\\x00"),
                    '1'..='9' => dropped = true,
                    'b' if in_class => out.push_str("\\x08"),
                    // Escapes with a meaning; any other one means its character.
                    's' | 'S' | 'b' | 'B' | 'p' | 'P' | 'n' | 'r' | 't' | 'f' | 'v' | 'x' | 'u' | 'k' => {
                        dropped |= escaped == 'k';
                        out.push('\\');
                        out.push(escaped);
                    }
                    other if other.is_ascii_punctuation() => {
                        out.push('\\');
                        out.push(other);
                    }
                    other => out.push(other),
                }
            }
            '[' if in_class => out.push_str("\\["),
            '[' => {
                in_class = true;
                out.push('[');
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '(' if !in_class && looks_around(&expression[at..]) => {
                dropped = true;
                skip_group(&mut rest);
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(letter);
            }
            other => out.push(other),
        }
    }
    (out, dropped)
}

fn looks_around(group: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| group.starts_with(start))
}

/// Skips the group whose opening parenthesis has just been read.
fn skip_group(rest: &mut std::iter::Peekable<std::str::CharIndices<'_>>) {
    let mut depth = 1;
    let mut in_class = false;
    while let Some((_, letter)) = rest.next() {
        match letter {
            '\\' => {
                rest.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::source::{Random, Simplest};

    #[test]
    fn the_simplest_match_is_short_and_plain() {
        for (expression, shortest) in
            [("^[A-Z]{3}-\\d{4}$", "AAA-0000"), ("^a*$", ""), ("^(foo|ba)+$", "foo"), ("\\/", "/"), ("^[^a-z]$", "0")]
        {
            let pattern = Pattern::parse(expression).expect("an expression");
            assert_eq!(pattern.draw(&mut Simplest, 0, 64), shortest, "{expression}");
        }
    }

    #[test]
    fn length_bounds_are_respected() {
        let mut random = Random::new(3);
        for expression in ["^[a-z]{1,3}-[0-9]+$", "[a-z]", "^x", "y$", "^(ab)*c*$"] {
            let pattern = Pattern::parse(expression).expect("an expression");
            for _ in 0..500 {
                let text = pattern.draw(&mut random, 9, 12);
                let length = text.chars().count();
                assert!((9..=12).contains(&length), "{expression}: {text:?}");
            }
        }
    }

    #[test]
    fn look_around_is_removed_and_reported() {
        let pattern = Pattern::parse("^(?!con)(?=.*\\))[a-z)]+$").expect("an expression");
        assert!(pattern.is_approximate());
        assert!(!Pattern::parse("^[a-z]+$").expect("an expression").is_approximate());
    }
}
