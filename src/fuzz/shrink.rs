//! From an instance that fails to a simpler one that fails, without leaving its class.
//!
//! First the value itself is edited: what is not needed goes, numbers and lengths are found by bisection.
//! Then the tape of choices is shortened and lowered, which moves coupled things together (a length with
//! its elements, a branch with its content). Every candidate is simpler than the best one so far by a
//! strict measure, so shrinking ends, and lies in the generator's class, so a counterexample never turns
//! into one for something else. A candidate that fails may cost its driver a process, one that does not
//! costs little, hence large steps first and no candidate twice.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;

use super::{generator::Generator, source::Tape};

/// Values of more parts than this are made smaller by their choices first: a list of all edits would be long.
const LARGE: usize = 64;
/// How many edits of a large value are tried before its choices: those near the root, which take most away.
const COARSE: usize = 96;
/// How far below its place what a lift puts there may lie, and how many lifts of one place are tried.
const LIFTED: (usize, usize) = (4, 24);
/// How many candidates in a row may be skipped because they are not simpler or not in the class.
const SKIPPED: usize = 50_000;

/// Shrinks one instance; drive it by saying whether the current candidate still fails.
///
/// [`current`](Self::current) starts as the instance itself. Call
/// [`simplify`](Self::simplify) when the current candidate fails and
/// [`complicate`](Self::complicate) when it does not; each puts up the next candidate and says
/// whether there is one. At the end the current candidate is the simplest that failed.
#[derive(Debug, Clone)]
pub struct Shrinker {
    generator: Generator,
    tape: Vec<u64>,
    best: Value,
    candidate: Value,
    candidate_tape: Option<Vec<u64>>,
    stage: Stage,
    /// Candidates that did not fail, as text.
    fine: HashSet<String>,
    /// Whether the choices are still to be worked on.
    has_tape: bool,
    /// Whether only the edits near the root are tried.
    coarse: bool,
}

#[derive(Debug, Clone)]
enum Stage {
    /// Working on the choices; the position counts back from the end of the tape.
    Tape {
        edit: usize,
        back: usize,
        progress: bool,
    },
    /// Working on the value, through a list of edits made for the best one so far.
    Value {
        edits: Vec<Edit>,
        next: usize,
        search: Option<Search>,
    },
    Done,
}

impl Stage {
    /// The edits of a value, beginning with those at `path`, where something was just found; at most so many.
    fn value(best: &Value, path: &[usize], most: usize) -> Self {
        let mut edits = edits(best, most);
        let start = edits.iter().position(|edit| edit.path == path).unwrap_or(0);
        edits.rotate_left(start);
        Self::Value { edits, next: 0, search: None }
    }
}

/// A bisection: the least size of one thing that still fails lies above `low` and is at most `high`.
#[derive(Debug, Clone)]
struct Search {
    path: Vec<usize>,
    low: u64,
    high: u64,
    /// Sizes that are tried before the middle, the least last.
    first: Vec<u64>,
    asked: Option<u64>,
    found: bool,
}

/// Sizes at which programs change their ways, so that one of them is often the least that fails.
const LANDMARKS: [u64; 10] = [1, 2, 10, 100, 1 << 8, 1 << 16, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1];

impl Search {
    fn new(path: Vec<usize>, high: u64) -> Self {
        let first = LANDMARKS.into_iter().rev().filter(|size| *size < high).collect();
        Self { path, low: 0, high, first, asked: None, found: false }
    }

    /// The next size to try, if the least is not known yet.
    fn next(&mut self) -> Option<u64> {
        if let Some(fine) = self.asked.take() {
            self.low = self.low.max(fine);
        }
        while let Some(size) = self.first.pop() {
            if self.low < size && size < self.high {
                self.asked = Some(size);
                return self.asked;
            }
        }
        if self.high - self.low <= 1 {
            return None;
        }
        self.asked = Some(self.low + (self.high - self.low) / 2);
        self.asked
    }

    /// The size that was asked for still fails.
    fn fails(&mut self) {
        if let Some(size) = self.asked.take() {
            self.high = size;
            self.found = true;
            self.first.clear();
        }
    }
}

/// Edits of the tape, tried at every position before the next one.
const TAPE_EDITS: [TapeEdit; 14] = [
    TapeEdit::Delete(32),
    TapeEdit::Delete(16),
    TapeEdit::Delete(8),
    TapeEdit::Delete(4),
    TapeEdit::Delete(2),
    TapeEdit::Delete(1),
    TapeEdit::Zero(16),
    TapeEdit::Zero(4),
    TapeEdit::Zero(1),
    TapeEdit::Halve,
    TapeEdit::Decrement,
    TapeEdit::DecrementAndDelete(1),
    TapeEdit::DecrementAndDelete(2),
    TapeEdit::DecrementAndDelete(4),
];

#[derive(Debug, Clone, Copy)]
enum TapeEdit {
    Delete(usize),
    Zero(usize),
    Halve,
    Decrement,
    /// One choice less, and what it chose gone: a length and its last element.
    DecrementAndDelete(usize),
}

impl TapeEdit {
    fn apply(self, tape: &[u64], at: usize) -> Option<Vec<u64>> {
        let mut edited = tape.to_vec();
        match self {
            Self::Delete(count) => {
                let end = at + count;
                if end > edited.len() {
                    return None;
                }
                edited.drain(at..end);
            }
            Self::Zero(count) => {
                let zeroed = edited.get_mut(at..at + count)?;
                if zeroed.iter().all(|choice| *choice == 0) {
                    return None;
                }
                zeroed.fill(0);
            }
            Self::Halve => *edited.get_mut(at)? /= 2,
            Self::Decrement => {
                let choice = edited.get_mut(at)?;
                *choice = choice.checked_sub(1)?;
            }
            Self::DecrementAndDelete(count) => {
                let choice = edited.get_mut(at)?;
                *choice = choice.checked_sub(1)?;
                let end = at + 1 + count;
                if end > edited.len() {
                    return None;
                }
                edited.drain(at + 1..end);
            }
        }
        (edited != tape).then_some(edited)
    }
}

impl Shrinker {
    /// Shrinks the instance that `generator` makes of `tape`, or `None` if it makes none.
    #[must_use]
    pub fn new(generator: Generator, tape: Tape) -> Option<Self> {
        let mut tape = tape;
        let value = generator.generate(&mut tape).ok()?;
        let is_large = Measure::of(&value).values > LARGE;
        Some(Self {
            generator,
            tape: tape.into_used(),
            candidate: value.clone(),
            stage: Stage::value(&value, &[], if is_large { COARSE } else { usize::MAX }),
            best: value,
            candidate_tape: None,
            fine: HashSet::new(),
            has_tape: true,
            coarse: is_large,
        })
    }

    /// Shrinks a value whose choices are not known, such as one that was written to a file. It
    /// must lie in the generator's class.
    #[must_use]
    pub fn of_value(generator: Generator, value: Value) -> Option<Self> {
        generator.holds(&value).then(|| Self {
            generator,
            tape: Vec::new(),
            stage: Stage::value(&value, &[], usize::MAX),
            candidate: value.clone(),
            best: value,
            candidate_tape: None,
            fine: HashSet::new(),
            has_tape: false,
            coarse: false,
        })
    }

    /// The candidate to try, or at the end the simplest instance that failed.
    #[must_use]
    pub fn current(&self) -> &Value {
        &self.candidate
    }

    /// The simplest instance that is known to fail.
    #[must_use]
    pub fn best(&self) -> &Value {
        &self.best
    }

    /// How many edits of the best value are tried.
    fn most(&self) -> usize {
        if self.coarse { COARSE } else { usize::MAX }
    }

    /// Takes the current candidate as the best, for it fails, and puts up a simpler one.
    pub fn simplify(&mut self) -> bool {
        if self.candidate != self.best {
            self.best = self.candidate.clone();
            let most = self.most();
            match (&mut self.stage, self.candidate_tape.take()) {
                (Stage::Tape { progress, .. }, Some(tape)) => {
                    *progress = true;
                    self.tape = tape;
                }
                (Stage::Value { search: Some(search), .. }, _) => search.fails(),
                (Stage::Value { edits, next, .. }, _) => {
                    let path = next.checked_sub(1).and_then(|last| edits.get(last)).map(|edit| edit.path.clone());
                    self.stage = Stage::value(&self.best, &path.unwrap_or_default(), most);
                }
                (Stage::Tape { .. } | Stage::Done, _) => {}
            }
        }
        self.advance()
    }

    /// Gives up the current candidate, for it does not fail, and puts up another one.
    pub fn complicate(&mut self) -> bool {
        self.fine.insert(self.candidate.to_string());
        self.advance()
    }

    fn advance(&mut self) -> bool {
        for _ in 0..SKIPPED {
            let Some((value, tape)) = self.propose() else {
                if matches!(self.stage, Stage::Done) {
                    break;
                }
                continue;
            };
            if compare(&value, &self.best) == Ordering::Less
                && !self.fine.contains(&value.to_string())
                && self.generator.holds(&value)
            {
                self.candidate = value;
                self.candidate_tape = tape;
                return true;
            }
        }
        self.stage = Stage::Done;
        self.candidate = self.best.clone();
        false
    }

    /// The next edit's outcome; `None` if the edit does not apply or the stage has changed.
    fn propose(&mut self) -> Option<(Value, Option<Vec<u64>>)> {
        let most = self.most();
        match &mut self.stage {
            Stage::Done => None,
            Stage::Tape { edit, back, progress } => {
                if *back > self.tape.len() {
                    *back = 1;
                    *edit += 1;
                    if *edit == TAPE_EDITS.len() {
                        // What the choices brought may be edited further; another round is worth it only
                        // while rounds bring something.
                        self.stage = if *progress && !self.tape.is_empty() && Measure::of(&self.best).values > LARGE {
                            Stage::Tape { edit: 0, back: 1, progress: false }
                        } else {
                            self.has_tape = *progress && !self.tape.is_empty();
                            Stage::value(&self.best, &[], most)
                        };
                    }
                    return None;
                }
                let at = self.tape.len() - *back;
                *back += 1;
                let edited = TAPE_EDITS[*edit].apply(&self.tape, at)?;
                let mut tape = Tape::replay(edited);
                let value = self.generator.generate(&mut tape).ok()?;
                Some((value, Some(tape.into_used())))
            }
            Stage::Value { edits, next, search } => {
                if let Some(running) = search {
                    if let Some(size) = running.next() {
                        let mut value = self.best.clone();
                        resize(at_path(&mut value, &running.path)?, size)?;
                        return Some((value, None));
                    }
                    if running.found {
                        let path = running.path.clone();
                        self.stage = Stage::value(&self.best, &path, most);
                    } else {
                        *search = None;
                    }
                    return None;
                }
                let Some(edit) = edits.get(*next) else {
                    if std::mem::take(&mut self.coarse) && Measure::of(&self.best).values <= LARGE {
                        self.stage = Stage::value(&self.best, &[], usize::MAX);
                        return None;
                    }
                    let to_tape = std::mem::take(&mut self.has_tape);
                    self.stage = if to_tape { Stage::Tape { edit: 0, back: 1, progress: false } } else { Stage::Done };
                    return None;
                };
                *next += 1;
                let mut value = self.best.clone();
                if let Change::Search = edit.change {
                    let size = size(at_path(&mut value, &edit.path)?)?;
                    *search = Some(Search::new(edit.path.clone(), size));
                    return None;
                }
                edit.apply(&mut value)?;
                Some((value, None))
            }
        }
    }
}

/// The place in a value that a path of positions leads to.
fn at_path<'v>(value: &'v mut Value, path: &[usize]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |place, &position| child_mut(place, position))
}

/// What is bisected: the magnitude of an integer, the length of a text or array.
fn size(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => magnitude(number),
        Value::String(text) => Some(text.chars().count() as u64),
        Value::Array(items) => Some(items.len() as u64),
        _ => None,
    }
}

/// Gives a value another size; the sign of a number, and the beginning of the others, is kept.
fn resize(value: &mut Value, size: u64) -> Option<()> {
    match value {
        Value::Number(number) => {
            *value = if number.as_i64().is_some_and(i64::is_negative) {
                Value::from(i64::try_from(size).ok()?.checked_neg()?)
            } else {
                Value::from(size)
            };
        }
        Value::String(text) => *text = text.chars().take(usize::try_from(size).ok()?).collect(),
        Value::Array(items) => items.truncate(usize::try_from(size).ok()?),
        _ => return None,
    }
    Some(())
}

/// One change of a value, at the place that a path of positions leads to.
#[derive(Debug, Clone)]
struct Edit {
    path: Vec<usize>,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    /// Remove the child at this position, and as many after it.
    Remove(usize, usize),
    Become(Value),
    /// Put the child at this position in place of its parent.
    Promote(usize),
    /// Put what lies further down, of the same kind, in the place: a level of a recursion less.
    Lift(Vec<usize>),
    /// Find the least size by bisection.
    Search,
    /// Give all integers of this magnitude below the place another one, each keeping its sign.
    Together(f64, u64),
}

impl Edit {
    fn apply(&self, value: &mut Value) -> Option<()> {
        let place = at_path(value, &self.path)?;
        match &self.change {
            Change::Search => return None,
            Change::Together(from, to) => replace_all(place, *from, *to),
            Change::Become(simpler) => *place = simpler.clone(),
            Change::Promote(position) => *place = child_mut(place, *position)?.take(),
            Change::Lift(way) => *place = at_path(place, way)?.take(),
            Change::Remove(position, count) => match place {
                Value::Array(items) => {
                    let end = position + count;
                    if end > items.len() {
                        return None;
                    }
                    items.drain(*position..end);
                }
                Value::Object(entries) => {
                    for _ in 0..*count {
                        let key = entries.keys().nth(*position)?.clone();
                        entries.shift_remove(&key);
                    }
                }
                _ => return None,
            },
        }
        Some(())
    }
}

fn child_mut(value: &mut Value, position: usize) -> Option<&mut Value> {
    match value {
        Value::Array(items) => items.get_mut(position),
        Value::Object(entries) => entries.values_mut().nth(position),
        _ => None,
    }
}

/// What a value holds, in order.
fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => Vec::new(),
    }
}

/// The ways from a value to those of its kind that lie below its children, the nearest first.
fn lifts(value: &Value) -> Vec<Vec<usize>> {
    let (deepest, most) = LIFTED;
    let mut ways = Vec::new();
    let mut pending = vec![(Vec::new(), value)];
    let mut at = 0;
    while at < pending.len().min(most * 4) && ways.len() < most {
        let (way, place): (Vec<usize>, &Value) = pending[at].clone();
        at += 1;
        if way.len() > 1 && place.is_object() == value.is_object() && place.is_array() == value.is_array() {
            ways.push(way.clone());
        }
        if way.len() < deepest && pending.len() < most * 4 {
            pending.extend(children(place).into_iter().enumerate().map(|(position, child)| {
                let mut way = way.clone();
                way.push(position);
                (way, child)
            }));
        }
    }
    ways
}

/// Every single edit that may simplify a value, those that save most first; at most so many.
fn edits(value: &Value, most: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut pending = vec![(Vec::new(), value)];
    let mut at = 0;
    // Breadth first: what is removed near the root need not be simplified below.
    while at < pending.len() && edits.len() < most {
        let (path, value) = pending[at].clone();
        at += 1;
        let mut push = |change| {
            edits.push(Edit { path: path.clone(), change });
        };
        if !value.is_null() {
            push(Change::Become(Value::Null));
        }
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => push(Change::Become(Value::Bool(false))),
            Value::Number(number) => simpler_numbers(number, &mut push),
            Value::String(text) => simpler_texts(text, &mut push),
            Value::Array(items) => {
                removals(items.len(), &mut push);
                push(Change::Search);
                distinct_texts(items, &mut push);
                (0..items.len()).for_each(|position| push(Change::Promote(position)));
                lifts(value).into_iter().for_each(|way| push(Change::Lift(way)));
            }
            Value::Object(entries) => {
                removals(entries.len(), &mut push);
                if path.is_empty() {
                    pairs_of_numbers(value, &mut push);
                }
                (0..entries.len()).for_each(|position| push(Change::Promote(position)));
                lifts(value).into_iter().for_each(|way| push(Change::Lift(way)));
            }
        }
        for (position, child) in children(value).into_iter().enumerate() {
            let mut path = path.clone();
            path.push(position);
            pending.push((path, child));
        }
    }
    edits
}

fn removals(length: usize, push: &mut impl FnMut(Change)) {
    let mut count = length;
    while count > 0 {
        let mut position = length - count;
        loop {
            push(Change::Remove(position, count));
            if position < count {
                break;
            }
            position -= count;
        }
        count /= 2;
    }
}

/// The magnitude of a number that is whole, also of one that is spelled otherwise.
fn magnitude(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs))
}

/// How far a number is from zero, as a double: programs that add in doubles take what is near for equal.
fn size_of(number: &serde_json::Number) -> f64 {
    number.as_f64().map_or(f64::MAX, f64::abs)
}

/// Gives all integers of a magnitude another one.
fn replace_all(value: &mut Value, from: f64, to: u64) {
    match value {
        Value::Number(number) if magnitude(number).is_some() && size_of(number).total_cmp(&from).is_eq() => {
            let _kept = resize(value, to);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_all(item, from, to)),
        Value::Object(entries) => entries.values_mut().for_each(|entry| replace_all(entry, from, to)),
        _ => {}
    }
}

/// Numbers that have to be equal but for their sign get simpler at once or not at all.
fn pairs_of_numbers(value: &Value, push: &mut impl FnMut(Change)) {
    fn collect(value: &Value, found: &mut Vec<f64>) {
        match value {
            Value::Number(number) if magnitude(number).is_some() => found.push(size_of(number)),
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(entries) => entries.values().for_each(|entry| collect(entry, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(value, &mut found);
    found.sort_unstable_by(f64::total_cmp);
    let is_equal = |pair: &&[f64]| pair[0].total_cmp(&pair[1]).is_eq();
    let mut twins: Vec<f64> = found.windows(2).filter(is_equal).map(|pair| pair[0]).collect();
    twins.dedup();
    for size in twins.into_iter().rev().take(4) {
        for simpler in [0_u32, 1, 2, 10, 100].into_iter().filter(|simpler| f64::from(*simpler) < size) {
            push(Change::Together(size, simpler.into()));
        }
    }
}

fn simpler_numbers(number: &serde_json::Number, push: &mut impl FnMut(Change)) {
    push(Change::Become(Value::from(0)));
    if number.is_i64() || number.is_u64() {
        push(Change::Become(Value::from(1)));
        if let Some(whole) = number.as_i64() {
            push(Change::Become(Value::from(whole.saturating_neg())));
        }
        push(Change::Search);
        if let Some(whole) = number.as_i64() {
            // Where only some integers are admitted the bisection may miss them.
            let mut distance = whole;
            while distance != 0 {
                push(Change::Become(Value::from(whole - distance)));
                distance /= 2;
            }
        }
    } else if let Some(real) = number.as_f64() {
        let rounded = [real.trunc(), real.round(), real / 2.0];
        for value in rounded {
            let near = |value: f64| value.fract() == 0.0 && value.abs() < 9e15;
            if near(value) {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 is exact")]
                push(Change::Become(Value::from(value as i64)));
            } else if let Some(number) = serde_json::Number::from_f64(value) {
                push(Change::Become(Value::Number(number)));
            }
        }
        if real < 0.0
            && let Some(positive) = serde_json::Number::from_f64(-real)
        {
            push(Change::Become(Value::Number(positive)));
        }
    }
}

fn simpler_texts(text: &str, push: &mut impl FnMut(Change)) {
    /// How many odd characters are tried alone.
    const ALONE: usize = 16;
    let letters: Vec<char> = text.chars().collect();
    let become_text = |letters: &[char]| Change::Become(Value::String(letters.iter().collect()));
    push(become_text(&[]));
    if letters.len() > 1 {
        push(become_text(&['a']));
        let mut odd: Vec<char> = letters.iter().copied().filter(|letter| !letter.is_ascii_lowercase()).collect();
        // The oddest are the likeliest to be what it takes.
        odd.sort_unstable_by_key(|letter| std::cmp::Reverse(rank(*letter)));
        odd.dedup();
        odd.iter().take(ALONE).for_each(|letter| push(become_text(&[*letter])));
        push(become_text(&vec!['a'; letters.len()]));
        push(Change::Search);
    }
    let mut count = letters.len() / 2;
    while count > 0 {
        let mut start = 0;
        while start < letters.len() {
            let end = (start + count).min(letters.len());
            let mut rest = letters[..start].to_vec();
            rest.extend_from_slice(&letters[end..]);
            push(become_text(&rest));
            start = end;
        }
        count /= 2;
    }
    // Letter by letter, for texts short enough that it does not take for ever.
    for position in 0..letters.len().min(64) {
        for simpler in ['a', '0', 'A'] {
            if rank(letters[position]) > rank(simpler) {
                let mut edited = letters.clone();
                edited[position] = simpler;
                push(become_text(&edited));
            }
        }
    }
}

/// The texts of an array as the simplest that differ from each other: "", "a", "b" and so on.
fn distinct_texts(items: &[Value], push: &mut impl FnMut(Change)) {
    if items.len() > 1 && items.len() <= 27 && items.iter().all(Value::is_string) {
        let texts = std::iter::once(String::new()).chain(('a'..='z').map(String::from));
        push(Change::Become(texts.take(items.len()).map(Value::String).collect()));
    }
}

/// Orders values by simplicity: fewer values, then less text, then nearer to zero, then plainer.
fn compare(left: &Value, right: &Value) -> Ordering {
    let (left, right) = (Measure::of(left), Measure::of(right));
    (left.values, left.letters)
        .cmp(&(right.values, right.letters))
        .then(left.digits.cmp(&right.digits))
        .then(left.magnitude.total_cmp(&right.magnitude))
        .then(left.oddity.cmp(&right.oddity))
}

#[derive(Debug, Default)]
struct Measure {
    values: usize,
    letters: usize,
    digits: usize,
    magnitude: f64,
    oddity: u64,
}

impl Measure {
    fn of(value: &Value) -> Self {
        let mut measure = Self::default();
        measure.add(value);
        measure
    }

    fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::Null => {}
            Value::Bool(truth) => self.oddity += 1 + u64::from(*truth),
            Value::Number(number) => {
                let real = number.as_f64().unwrap_or(f64::MAX);
                // A fraction is less simple than any integer.
                self.digits += usize::from(number.is_f64());
                self.magnitude += real.abs();
                self.oddity += 1 + u64::from(real.is_sign_negative());
            }
            Value::String(text) => self.add_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(entries) => {
                for (key, entry) in entries {
                    self.add_text(key);
                    self.add(entry);
                }
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        for letter in text.chars() {
            self.letters += 1;
            self.oddity += u64::from(rank(letter));
        }
    }
}

/// How odd a character is; `a` is the plainest.
fn rank(letter: char) -> u32 {
    match letter {
        'a'..='z' => u32::from(letter) - u32::from('a'),
        '0'..='9' => 26 + u32::from(letter) - u32::from('0'),
        'A'..='Z' => 36 + u32::from(letter) - u32::from('A'),
        ' '..='~' => 100 + u32::from(letter),
        _ => 300 + u32::from(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Dialect, Domain, ToolSchema};
    use serde_json::json;

    /// Finds an instance that `fails` and shrinks it; counts the instances tried.
    fn shrink(schema: &Value, fails: impl Fn(&Value) -> bool) -> (Value, usize) {
        let schema = ToolSchema::compile_for(schema, Dialect::Draft202012, Domain::Any).expect("a usable schema");
        let generator = schema.valid().clone();
        let mut shrinker = (0..100_000)
            .filter_map(|seed| Shrinker::new(generator.clone(), Tape::record(seed)))
            .find(|shrinker| fails(shrinker.current()))
            .expect("some instance fails");
        let mut tried = 0;
        let mut more = shrinker.simplify();
        while more {
            assert!(schema.is_valid(shrinker.current()));
            tried += 1;
            more = if fails(shrinker.current()) { shrinker.simplify() } else { shrinker.complicate() };
        }
        (shrinker.current().clone(), tried)
    }

    #[test]
    fn known_failures_shrink_to_their_obvious_minimum() {
        let integers = json!({"type": "array", "items": {"type": "integer", "minimum": 0}});
        let sum = |value: &Value| -> u64 {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Value::as_u64).fold(0, u64::saturating_add)
        };
        let any_object = json!({"type": "object", "properties": {"n": {"type": "integer"}},
            "required": ["n"]});
        let n = |value: &Value| value["n"].as_i64().unwrap_or(0);
        assert_eq!(shrink(&any_object, |value| n(value) >= 57).0, json!({"n": 57}));
        assert_eq!(shrink(&any_object, |value| n(value) < -9).0, json!({"n": -10}));
        assert_eq!(
            shrink(&integers, |value| value.as_array().is_some_and(|items| items.len() > 4)).0,
            json!([0, 0, 0, 0, 0])
        );
        let (least, _) = shrink(&integers, |value| sum(value) > 100);
        assert_eq!(least, json!([101]));
        let text = json!({"type": "string"});
        let astral = |value: &Value| value.as_str().is_some_and(|text| text.chars().any(|c| c > '\u{ffff}'));
        let (least, _) = shrink(&text, astral);
        assert_eq!(least.as_str().map(|text| text.chars().count()), Some(1));
        let pattern = json!({"type": "string", "pattern": "^[A-Z]{3}-\\d{4}$"});
        assert_eq!(shrink(&pattern, |_| true).0, json!("AAA-0000"));
    }

    fn depth(value: &Value) -> usize {
        let children = value["children"].as_array().into_iter().flatten();
        1 + children.map(depth).max().unwrap_or(0)
    }

    #[test]
    fn a_recursive_failure_shrinks_to_the_shallowest() {
        let tree = json!({
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
            "required": ["children"],
            "additionalProperties": false
        });
        let (least, tried) = shrink(&tree, |value| depth(value) >= 4);
        assert_eq!(least, json!({"children": [{"children": [{"children": [{"children": []}]}]}]}));
        assert!(tried < 2_000, "{tried} tries");
    }

    #[test]
    fn a_violation_stays_the_same_violation() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "minLength": 3},
                "n": {"type": "integer", "maximum": 10}
            },
            "required": ["id", "n"],
            "additionalProperties": false
        });
        let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("usable");
        let mut shrunk = Vec::new();
        for site in schema.sites() {
            let generator = schema.violating(&site).expect("every keyword has an effect");
            let mut shrinker = Shrinker::new(generator.clone(), Tape::record(5)).expect("an instance");
            while shrinker.simplify() {
                assert!(generator.holds(shrinker.current()));
            }
            shrunk.push((site.to_string(), shrinker.current().clone()));
        }
        let least = |site: &str| {
            let found = shrunk.iter().find(|(name, _)| name == site);
            found.map(|(_, value)| value.clone()).expect("a site")
        };
        assert_eq!(least("/properties/n maximum"), json!({"id": "aaa", "n": 11}));
        assert_eq!(least("/properties/id minLength"), json!({"id": "", "n": 0}));
        assert_eq!(least(" required \"id\""), json!({"n": 0}));
        assert_eq!(least("/properties/n type"), json!({"id": "aaa", "n": null}));
    }

    #[test]
    fn a_value_without_its_choices_shrinks_as_well() {
        let schema = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
        let schema = ToolSchema::compile_for(&schema, Dialect::Draft202012, Domain::Any).expect("usable");
        let value = json!(["long text", "another"]);
        let mut shrinker = Shrinker::of_value(schema.valid().clone(), value).expect("a valid value");
        while shrinker.simplify() {}
        assert_eq!(shrinker.best(), &json!([""]));
        assert!(Shrinker::of_value(schema.valid().clone(), json!(3)).is_none());
    }
}
