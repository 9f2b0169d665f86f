//! Single edits that simplify a value, and the order of values by simplicity.
//!
//! Knows neither classes nor failures: [`Shrinker`](super::Shrinker) finds out whether an edit helps.

use std::cmp::Ordering;

use serde_json::Value;

/// How deep a lifted value may be below its new place, and how many lifts of one place are tried.
const LIFT_LIMITS: (usize, usize) = (4, 24);

/// Into how many pieces a string, an array or an object is cut at most. A long one is cut further once it is shorter.
const MAX_PIECES: usize = 2_048;

/// The value at a path of positions.
pub(super) fn at_path<'v>(value: &'v mut Value, path: &[usize]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |place, &position| child_mut(place, position))
}

/// The size for bisection: the magnitude of an integer, the length of a string or array.
pub(super) fn size(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => magnitude(number),
        Value::String(text) => Some(text.chars().count() as u64),
        Value::Array(items) => Some(items.len() as u64),
        _ => None,
    }
}

/// Changes the size of a value; keeps the sign of a number and the beginning of anything else.
pub(super) fn resize(value: &mut Value, size: u64) -> Option<()> {
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

/// One change of the value at a path of positions.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) path: Vec<usize>,
    pub(super) change: Change,
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Remove the child at this position and the following ones, this many in all.
    Remove(usize, usize),
    ReplaceWith(Value),
    /// Replace the parent by the child at this position.
    Promote(usize),
    /// Replace the value by a deeper one of the same kind: one level of recursion less.
    Lift(Vec<usize>),
    /// Find the smallest size by bisection.
    Search,
    /// Remove the letters of a string from this position to that one.
    Cut(usize, usize),
    /// Replace the letter at this position.
    SetLetter(usize, char),
    /// Replace each letter of a string.
    SetEveryLetter(char),
    /// Replace all integers of this magnitude below the path by another one, each keeping its sign.
    ReplaceMagnitude(f64, u64),
}

impl Edit {
    pub(super) fn apply(&self, value: &mut Value) -> Option<()> {
        let place = at_path(value, &self.path)?;
        match &self.change {
            Change::Search => return None,
            Change::ReplaceMagnitude(from, to) => replace_all(place, *from, *to),
            Change::ReplaceWith(simpler) => *place = simpler.clone(),
            Change::Cut(from, to) => edit_letters(place, |at, letter| (at < *from || at >= *to).then_some(letter))?,
            Change::SetLetter(position, new) => {
                edit_letters(place, |at, letter| Some(if at == *position { *new } else { letter }))?;
            }
            Change::SetEveryLetter(new) => edit_letters(place, |_, _| Some(*new))?,
            Change::Promote(position) => *place = child_mut(place, *position)?.take(),
            Change::Lift(path) => *place = at_path(place, path)?.take(),
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

/// Replaces or removes letters of a string by their positions.
fn edit_letters(place: &mut Value, edit: impl Fn(usize, char) -> Option<char>) -> Option<()> {
    let text: String = place.as_str()?.chars().enumerate().filter_map(|(at, letter)| edit(at, letter)).collect();
    *place = Value::String(text);
    Some(())
}

fn child_mut(value: &mut Value, position: usize) -> Option<&mut Value> {
    match value {
        Value::Array(items) => items.get_mut(position),
        Value::Object(entries) => entries.values_mut().nth(position),
        _ => None,
    }
}

/// The children of a value, in order.
fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => Vec::new(),
    }
}

/// The paths to values of the same kind below the children of a value, the nearest first.
fn lifts(value: &Value) -> Vec<Vec<usize>> {
    let (deepest, most) = LIFT_LIMITS;
    let mut paths = Vec::new();
    let mut pending = vec![(Vec::new(), value)];
    let mut at = 0;
    while at < pending.len().min(most * 4) && paths.len() < most {
        let (path, place): (Vec<usize>, &Value) = pending[at].clone();
        at += 1;
        if path.len() > 1 && place.is_object() == value.is_object() && place.is_array() == value.is_array() {
            paths.push(path.clone());
        }
        if path.len() < deepest && pending.len() < most * 4 {
            pending.extend(children(place).into_iter().enumerate().map(|(position, child)| {
                let mut path = path.clone();
                path.push(position);
                (path, child)
            }));
        }
    }
    paths
}

/// Every single edit that may simplify a value, those that remove most first; at most `most` and those of the last place.
/// An edit is small however large the value is: a list of edited copies of a long text would take gigabytes.
pub(super) fn edits(value: &Value, most: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut pending = vec![(Vec::new(), value)];
    let mut at = 0;
    // Breadth first: parts that are removed near the root need not be simplified below.
    while at < pending.len() && edits.len() < most {
        let (path, value) = pending[at].clone();
        at += 1;
        let mut push = |change| {
            edits.push(Edit { path: path.clone(), change });
        };
        if !value.is_null() {
            push(Change::ReplaceWith(Value::Null));
        }
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => push(Change::ReplaceWith(Value::Bool(false))),
            Value::Number(number) => simpler_numbers(number, &mut push),
            Value::String(text) => simpler_texts(text, &mut push),
            Value::Array(items) => {
                removals(items.len(), &mut push);
                push(Change::Search);
                distinct_texts(items, &mut push);
                (0..items.len().min(MAX_PIECES)).for_each(|position| push(Change::Promote(position)));
                for path in lifts(value) {
                    push(Change::Lift(path));
                }
            }
            Value::Object(entries) => {
                removals(entries.len(), &mut push);
                if path.is_empty() {
                    pairs_of_numbers(value, &mut push);
                }
                (0..entries.len().min(MAX_PIECES)).for_each(|position| push(Change::Promote(position)));
                for path in lifts(value) {
                    push(Change::Lift(path));
                }
            }
        }
        let rest = most.saturating_sub(edits.len());
        for (position, child) in children(value).into_iter().enumerate().take(rest) {
            let mut path = path.clone();
            path.push(position);
            pending.push((path, child));
        }
    }
    edits
}

fn removals(length: usize, push: &mut impl FnMut(Change)) {
    let mut count = length;
    while count > 0 && length / count <= MAX_PIECES {
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

/// The magnitude of an integer.
fn magnitude(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs))
}

/// The magnitude as a double: programs that calculate in doubles treat close numbers as equal.
fn size_of(number: &serde_json::Number) -> f64 {
    number.as_f64().map_or(f64::MAX, f64::abs)
}

/// Replaces all integers of a magnitude by another one.
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

/// Numbers that must be equal except for their sign can only be simplified together.
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
    let mut repeated: Vec<f64> = found.windows(2).filter(is_equal).map(|pair| pair[0]).collect();
    repeated.dedup();
    for size in repeated.into_iter().rev().take(4) {
        for simpler in [0_u32, 1, 2, 10, 100].into_iter().filter(|simpler| f64::from(*simpler) < size) {
            push(Change::ReplaceMagnitude(size, simpler.into()));
        }
    }
}

fn simpler_numbers(number: &serde_json::Number, push: &mut impl FnMut(Change)) {
    push(Change::ReplaceWith(Value::from(0)));
    if number.is_i64() || number.is_u64() {
        push(Change::ReplaceWith(Value::from(1)));
        if let Some(whole) = number.as_i64() {
            push(Change::ReplaceWith(Value::from(whole.saturating_neg())));
        }
        push(Change::Search);
        if let Some(whole) = number.as_i64() {
            // If only some integers are valid, the bisection may miss them.
            let mut distance = whole;
            while distance != 0 {
                push(Change::ReplaceWith(Value::from(whole - distance)));
                distance /= 2;
            }
        }
    } else if let Some(real) = number.as_f64() {
        for value in simpler_reals(real) {
            if value.fract() == 0.0 && value.abs() < 9e15 {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 is exact")]
                push(Change::ReplaceWith(Value::from(value as i64)));
            } else if let Some(number) = serde_json::Number::from_f64(value) {
                push(Change::ReplaceWith(Value::Number(number)));
            }
        }
        if real < 0.0
            && let Some(positive) = serde_json::Number::from_f64(-real)
        {
            push(Change::ReplaceWith(Value::Number(positive)));
        }
    }
}

/// Numbers that may be simpler than a fraction, or than a number too large for an integer: whole ones, one half, those with
/// fewer digits, and powers of ten whose exponent is closer to zero.
fn simpler_reals(real: f64) -> Vec<f64> {
    /// To how many digits it is rounded.
    const DIGITS: [usize; 4] = [1, 2, 3, 6];
    let mut simpler = vec![real.trunc(), real.round(), 0.5_f64.copysign(real)];
    let parsed = |text: String| text.parse().ok().filter(|value: &f64| value.is_finite());
    simpler.extend(DIGITS.iter().filter_map(|digits| parsed(format!("{real:.*e}", digits - 1))));
    let exponent = format!("{real:e}").split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let halves = std::iter::successors(exponent, |exponent| Some(exponent / 2)).take_while(|exponent| *exponent != 0);
    simpler.extend(halves.filter_map(|exponent| parsed(format!("1e{exponent}"))).map(|power| power.copysign(real)));
    simpler
}

fn simpler_texts(text: &str, push: &mut impl FnMut(Change)) {
    /// How many unusual characters are tried alone.
    const ALONE: usize = 16;
    let letters: Vec<char> = text.chars().collect();
    push(Change::ReplaceWith(Value::from("")));
    if letters.len() > 1 {
        push(Change::ReplaceWith(Value::from("a")));
        let mut odd: Vec<char> = letters.iter().copied().filter(|letter| !letter.is_ascii_lowercase()).collect();
        // The most unusual ones are the likeliest cause.
        odd.sort_unstable_by_key(|letter| std::cmp::Reverse(rank(*letter)));
        odd.dedup();
        odd.iter().take(ALONE).for_each(|letter| push(Change::ReplaceWith(Value::from(letter.to_string()))));
        push(Change::SetEveryLetter('a'));
        push(Change::Search);
    }
    let mut count = letters.len() / 2;
    while count > 0 && letters.len() / count <= MAX_PIECES {
        for start in (0..letters.len()).step_by(count) {
            push(Change::Cut(start, start + count));
        }
        count /= 2;
    }
    // Character by character, for strings short enough that this ends soon.
    for (position, letter) in letters.iter().enumerate().take(64) {
        for simpler in ['a', '0', 'A'] {
            if rank(*letter) > rank(simpler) {
                push(Change::SetLetter(position, simpler));
            }
        }
    }
}

/// Replaces the strings of an array by the simplest distinct ones: "", "a", "b" and so on.
fn distinct_texts(items: &[Value], push: &mut impl FnMut(Change)) {
    if items.len() > 1 && items.len() <= 27 && items.iter().all(Value::is_string) {
        let texts = std::iter::once(String::new()).chain(('a'..='z').map(String::from));
        push(Change::ReplaceWith(texts.take(items.len()).map(Value::String).collect()));
    }
}

/// How simple a value is.
#[derive(Debug, Clone, Default)]
pub(super) struct Measure {
    /// How many values there are in all.
    pub(super) values: usize,
    letters: usize,
    digits: usize,
    magnitude: f64,
    oddity: u64,
}

impl Measure {
    pub(super) fn of(value: &Value) -> Self {
        let mut measure = Self::default();
        measure.add(value);
        measure
    }

    /// Orders by simplicity: fewer values, then shorter strings, then fractions of fewer characters, then closer to
    /// zero, then plainer characters.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        (self.values, self.letters)
            .cmp(&(other.values, other.letters))
            .then(self.digits.cmp(&other.digits))
            .then(self.magnitude.total_cmp(&other.magnitude))
            .then(self.oddity.cmp(&other.oddity))
    }

    /// How many values and letters there are.
    pub(super) fn size(&self) -> usize {
        self.values + self.letters
    }

    fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::Null => {}
            Value::Bool(truth) => self.oddity += 1 + u64::from(*truth),
            Value::Number(number) => {
                let real = number.as_f64().unwrap_or(f64::MAX);
                // A fraction is less simple than any integer, and `5e-324` less than `0.5`.
                self.digits += if number.is_f64() { number.to_string().len() } else { 0 };
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

/// How unusual a character is; `a` is the plainest.
fn rank(letter: char) -> u32 {
    match letter {
        'a'..='z' => u32::from(letter) - u32::from('a'),
        '0'..='9' => 26 + u32::from(letter) - u32::from('0'),
        'A'..='Z' => 36 + u32::from(letter) - u32::from('A'),
        ' '..='~' => 100 + u32::from(letter),
        _ => 300 + u32::from(letter),
    }
}
