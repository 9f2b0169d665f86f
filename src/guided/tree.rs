//! The choices of one input as a tree of the values that they generate, so that one value can change on its own.
//!
//! In a fuzzer's bytes the meaning of a choice depends on its position: changing a byte that decides how many choices
//! follow gives every later byte another meaning. In the tree each choice belongs to the value that it helps to
//! generate. New parts of a changed tree are drawn at random, all others are replayed.

use std::ops::Range;

use crate::fuzz::{Bytes, Random, Source};

/// The label of a value that is drawn anew.
const NEW_LABEL: u64 = u64::MAX;

/// How many values a tree keeps; the choices of further values are stored with the last one kept.
const MAX_PARTS: usize = 1 << 14;

/// How far the recorded value of a kind is searched among its siblings.
const MAX_LOOKAHEAD: usize = 64;

/// One choice, with the number of alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    below: u64,
    chosen: u64,
    /// Whether only the last alternative differs in meaning from the others (a yes-or-no choice).
    is_flag: bool,
}

/// One value: its own choices, and the values inside it.
#[derive(Debug, Clone, Default)]
struct Part {
    label: u64,
    choices: Vec<Choice>,
    parts: Vec<usize>,
}

/// The choices of one input.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// The first is the root. A value may occur in several places.
    parts: Vec<Part>,
}

impl Tree {
    /// The tree of the choices that `make` reads from these bytes.
    pub(super) fn read<Made>(bytes: &[u8], make: impl FnOnce(&mut Recorder<'_, Bytes<'_>>) -> Made) -> Self {
        let mut recorder = Recorder::new(None, Bytes::new(bytes));
        let _made = make(&mut recorder);
        recorder.made
    }

    /// The result of `make` when it chooses as this tree says, and at random where the tree has no choice; and the
    /// bytes that make it choose the same again.
    pub(super) fn write<Made>(
        &self,
        random: &mut Random,
        make: impl FnOnce(&mut Recorder<'_, &mut Random>) -> Made,
    ) -> (Made, Vec<u8>) {
        let mut recorder = Recorder::new(Some(self), random);
        let value = make(&mut recorder);
        (value, recorder.bytes)
    }

    /// Makes one random change.
    pub(super) fn change(&mut self, random: &mut Random) {
        match random.below(16) {
            0..=9 => self.choose_again(random),
            10..=12 => self.draw_again(random),
            13 => self.repeat(random),
            _ => self.rearrange(random),
        }
    }

    /// Replaces a value by one of the same kind from another tree, if both have one.
    pub(super) fn take_over(&mut self, other: Self, random: &mut Random) {
        let first = self.parts.len();
        let own = 0..first;
        self.parts.extend(other.parts.into_iter().map(|mut part| {
            part.parts.iter_mut().for_each(|inner| *inner += first);
            part
        }));
        let all = self.parts.len();
        self.replace(random, own, |part, _| (first..all).contains(&part));
    }

    /// Changes one choice.
    fn choose_again(&mut self, random: &mut Random) {
        let chosen = if random.one_in(2) { self.any_part(random) } else { self.part_from_above(random) };
        let Some(part) = self.parts.get_mut(chosen) else { return };
        let count = part.choices.len();
        if let Some(choice) = part.choices.get_mut(random.index(count)) {
            choice.change(random);
        }
    }

    /// A random value that has choices, weighted by their number.
    fn any_part(&self, random: &mut Random) -> usize {
        let count = self.parts.iter().map(|part| part.choices.len()).sum();
        let mut at = random.index(count);
        for (index, part) in self.parts.iter().enumerate() {
            if at < part.choices.len() {
                return index;
            }
            at -= part.choices.len();
        }
        0
    }

    /// A random value that has choices, found by descending from the root, so that large siblings are no likelier.
    fn part_from_above(&self, random: &mut Random) -> usize {
        let mut at = 0;
        while let Some(part) = self.parts.get(at) {
            let stay = part.parts.is_empty() || (!part.choices.is_empty() && random.one_in(8));
            match part.parts.get(random.index(part.parts.len())) {
                Some(inner) if !stay => at = *inner,
                _ => break,
            }
        }
        at
    }

    /// Marks a value to be drawn anew.
    fn draw_again(&mut self, random: &mut Random) {
        let new = self.parts.len();
        if let Some(position) = self.position(random, 0..new) {
            self.parts.push(Part { label: NEW_LABEL, ..Part::default() });
            *position.within(self) = new;
        }
    }

    /// Replaces a value by another one of the same kind.
    fn repeat(&mut self, random: &mut Random) {
        let all = 0..self.parts.len();
        self.replace(random, all, |part, old| part != old);
    }

    fn replace(&mut self, random: &mut Random, own: Range<usize>, admits: impl Fn(usize, usize) -> bool) {
        let Some(position) = self.position(random, own) else { return };
        let old = *position.within(self);
        let label = self.parts[old].label;
        let alike = |(index, part): (usize, &Part)| (part.label == label && admits(index, old)).then_some(index);
        let alike: Vec<usize> = self.parts.iter().enumerate().filter_map(alike).collect();
        if let Some(&new) = alike.get(random.index(alike.len())) {
            // No value can be inside itself.
            if !self.is_within(old, new) {
                *position.within(self) = new;
            }
        }
    }

    fn is_within(&self, inner: usize, outer: usize) -> bool {
        let mut pending = vec![outer];
        while let Some(part) = pending.pop() {
            if part == inner {
                return true;
            }
            pending.extend(&self.parts[part].parts);
        }
        false
    }

    /// Removes, duplicates or swaps one of several sibling values.
    fn rearrange(&mut self, random: &mut Random) {
        let Some(position) = self.position(random, 0..self.parts.len()) else { return };
        let siblings = &mut self.parts[position.part].parts;
        match random.below(3) {
            0 => {
                siblings.remove(position.at);
            }
            1 => siblings.insert(position.at, siblings[position.at]),
            _ => {
                let other = random.index(siblings.len());
                siblings.swap(position.at, other);
            }
        }
    }

    /// A random position of a value within one of these parts.
    fn position(&self, random: &mut Random, within: Range<usize>) -> Option<Position> {
        let count = self.parts[within.clone()].iter().map(|part| part.parts.len()).sum();
        let mut at = random.index(count);
        for part in within {
            let inner = self.parts[part].parts.len();
            if at < inner {
                return Some(Position { part, at });
            }
            at -= inner;
        }
        None
    }
}

/// The position of a value within another.
#[derive(Clone, Copy)]
struct Position {
    part: usize,
    at: usize,
}

impl Position {
    fn within(self, tree: &mut Tree) -> &mut usize {
        &mut tree.parts[self.part].parts[self.at]
    }
}

impl Choice {
    fn change(&mut self, random: &mut Random) {
        let old = self.chosen;
        if self.is_flag {
            self.chosen = if old == self.below - 1 { 0 } else { self.below - 1 };
            return;
        }
        self.chosen = match random.below(4) {
            // Get closer to a compared number, bit by bit or by a small step.
            0 => (old ^ (1 << random.below(u64::from(u64::BITS - (self.below - 1).leading_zeros())))) % self.below,
            1 => {
                let step = 1 + random.below((self.below - 1).min(8));
                let step = if random.one_in(2) { step } else { self.below - step };
                // After the last alternative comes the first; the sum might overflow.
                if old < self.below - step { old + step } else { old - (self.below - step) }
            }
            _ => old,
        };
        if self.chosen == old {
            let other = random.below(self.below - 1);
            self.chosen = other + u64::from(other >= old);
        }
    }
}

/// Makes choices, as a tree says or from another source, and records which value they belong to.
#[derive(Debug)]
pub(super) struct Recorder<'t, S> {
    replayed: Option<&'t Tree>,
    fallback: S,
    open: Vec<Open>,
    made: Tree,
    bytes: Vec<u8>,
    /// How many values were not kept and have not ended.
    dropped: usize,
}

/// A value that is being generated, and how much of its recorded choices has been used.
#[derive(Debug)]
struct Open {
    part: usize,
    replayed: Option<usize>,
    choices: usize,
    parts: usize,
}

impl<'t, S: Source> Recorder<'t, S> {
    fn new(replayed: Option<&'t Tree>, fallback: S) -> Self {
        let open = Open { part: 0, replayed: replayed.map(|_| 0), choices: 0, parts: 0 };
        let made = Tree { parts: vec![Part::default()] };
        Self { replayed, fallback, open: vec![open], made, bytes: Vec::new(), dropped: 0 }
    }
}

impl<S: Source> Recorder<'_, S> {
    fn choose(&mut self, n: u64, is_flag: bool) -> u64 {
        if n <= 1 {
            return 0;
        }
        let replayed = self.replayed;
        let open = self.open.last_mut().expect("the root never ends");
        let part = open.replayed.filter(|_| self.dropped == 0).and_then(|part| replayed?.parts.get(part));
        let choice = part.and_then(|part| part.choices.get(open.choices));
        open.choices += 1;
        let chosen = match choice {
            Some(choice) if choice.below == n => choice.chosen,
            // The choice is about something else.
            _ => self.fallback.below(n),
        };
        Bytes::write(n, chosen, &mut self.bytes);
        self.made.parts[open.part].choices.push(Choice { below: n, chosen, is_flag });
        chosen
    }
}

impl<S: Source> Source for Recorder<'_, S> {
    fn below(&mut self, n: u64) -> u64 {
        self.choose(n, false)
    }

    fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.choose(n, true) == n - 1
    }

    fn begin(&mut self, label: u64) {
        if self.dropped > 0 || self.made.parts.len() >= MAX_PARTS {
            self.dropped += 1;
            return;
        }
        let part = self.made.parts.len();
        self.made.parts.push(Part { label, ..Part::default() });
        let replayed = self.replayed;
        let open = self.open.last_mut().expect("the root never ends");
        self.made.parts[open.part].parts.push(part);
        // If one value was left out, its siblings are still found.
        let inner = open.replayed.and_then(|part| replayed?.parts.get(part)).map_or(&[][..], |part| &part.parts);
        let mut ahead = inner.iter().enumerate().skip(open.parts).take(MAX_LOOKAHEAD);
        let found = ahead.find(|(_, inner)| replayed.is_some_and(|tree| tree.parts[**inner].label == label));
        if let Some((at, _)) = found {
            open.parts = at + 1;
        }
        let replayed = found.map(|(_, inner)| *inner);
        self.open.push(Open { part, replayed, choices: 0, parts: 0 });
    }

    fn end(&mut self) {
        if self.dropped > 0 {
            self.dropped -= 1;
        } else if self.open.len() > 1 {
            self.open.pop();
        }
    }
}
