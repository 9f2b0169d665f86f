//! Shrinking: from a failing instance to a simpler one that still fails, without leaving its class.
//!
//! First the value itself is edited: parts are removed, numbers and lengths are found by bisection. Then the
//! choice sequence is shortened and lowered, which changes dependent things together (a length with its
//! elements, a branch with its content). Every candidate is simpler than the best one so far by a strict
//! measure, so shrinking ends, and belongs to the generator's class, so a counterexample never becomes one
//! for something else. A failing candidate may cost its driver a process, any other one little; hence large
//! steps come first, and no candidate is proposed twice.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::edit::{Change, Edit, Measure, at_path, edits, resize, size};
use super::{generator::Generator, source::ChoiceSequence};

/// Values with more parts than this are shrunk by their choices first: the list of all edits would be long.
const LARGE_VALUE_PARTS: usize = 64;
/// How many edits of a large value are tried before its choices: those near the root, which remove most.
const MAX_COARSE_EDITS: usize = 96;
/// How many edits of any other value are tried before its choices: enough for every value that a failure leaves.
const MAX_EDITS: usize = 20_000;
/// How many candidates in a row may be skipped because they are not simpler or not in the class.
const MAX_SKIPPED: usize = 50_000;
/// How many values and letters they may have together: no call is made meanwhile, and no time limit is looked at.
const MAX_SKIPPED_SIZE: usize = 32 << 20;
/// How many values the choices of one edit may generate. A schema that contains itself makes retries inside retries.
const MAX_VALUES_OF_EDIT: u32 = 50_000;
/// How many values the choices of all edits may generate.
const MAX_GENERATIONS: u32 = 2_000_000;

/// Shrinks one instance; the driver reports whether the current candidate still fails.
///
/// [`current`](Self::current) starts as the instance itself. Call
/// [`simplify`](Self::simplify) if the current candidate fails and
/// [`complicate`](Self::complicate) if it does not; each proposes the next candidate and returns
/// whether there is one. At the end the current candidate is the simplest that failed.
///
/// # Examples
///
/// ```
/// use mcp_conformance::fuzz::{Dialect, Shrinker, ToolSchema};
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1}},
///     "required": ["text", "times"]
/// });
/// let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
/// let failing = json!({"text": "as long as you like", "times": 4711});
/// let mut shrinker = Shrinker::of_value(schema.valid().clone(), failing).expect("it is valid");
/// // The tool cannot be called more than a hundred times.
/// loop {
///     let fails = shrinker.current()["times"].as_u64().is_some_and(|times| times > 100);
///     if !(if fails { shrinker.simplify() } else { shrinker.complicate() }) {
///         break;
///     }
/// }
/// assert_eq!(*shrinker.best(), json!({"text": "", "times": 101}));
/// ```
#[derive(Debug, Clone)]
pub struct Shrinker {
    generator: Generator,
    choices: Vec<u64>,
    best: Value,
    best_measure: Measure,
    candidate: Value,
    candidate_choices: Option<Vec<u64>>,
    stage: Stage,
    /// The hashes of candidates that did not fail.
    passed: HashSet<u64>,
    /// Whether the choices are still to be shrunk.
    has_pending_choices: bool,
    /// Whether only the edits near the root are tried.
    coarse: bool,
    /// How many more values may be generated from edited choices, parts and rejected ones included.
    generations_left: u32,
}

#[derive(Debug, Clone)]
enum Stage {
    /// Editing the choices; the position counts back from the end of the sequence.
    Choices {
        edit: usize,
        back: usize,
        progress: bool,
    },
    /// Editing the value, through a list of edits computed for the best one so far.
    Value {
        edits: Vec<Edit>,
        next: usize,
        search: Option<Search>,
    },
    Done,
}

impl Stage {
    /// The edits of a value, beginning with those at `path`, where the last one succeeded; at most `most`.
    fn value(best: &Value, path: &[usize], most: usize) -> Self {
        let mut edits = edits(best, most);
        let start = edits.iter().position(|edit| edit.path == path).unwrap_or(0);
        edits.rotate_left(start);
        Self::Value { edits, next: 0, search: None }
    }
}

/// A bisection: the smallest size that still fails is above `low` and at most `high`.
#[derive(Debug, Clone)]
struct Search {
    path: Vec<usize>,
    low: u64,
    high: u64,
    /// Sizes that are tried before the middle, the smallest last.
    first: Vec<u64>,
    requested: Option<u64>,
    found: bool,
}

/// Sizes at which programs often change their behaviour, so that one of them is often the smallest that fails.
const LANDMARKS: [u64; 10] = [1, 2, 10, 100, 1 << 8, 1 << 16, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1];

impl Search {
    fn new(path: Vec<usize>, high: u64) -> Self {
        let first = LANDMARKS.into_iter().rev().filter(|size| *size < high).collect();
        Self { path, low: 0, high, first, requested: None, found: false }
    }

    /// The next size to try, unless the smallest is known.
    fn next(&mut self) -> Option<u64> {
        if let Some(fine) = self.requested.take() {
            self.low = self.low.max(fine);
        }
        while let Some(size) = self.first.pop() {
            if self.low < size && size < self.high {
                self.requested = Some(size);
                return self.requested;
            }
        }
        if self.high - self.low <= 1 {
            return None;
        }
        self.requested = Some(self.low + (self.high - self.low) / 2);
        self.requested
    }

    /// Records that the requested size still fails.
    fn fails(&mut self) {
        if let Some(size) = self.requested.take() {
            self.high = size;
            self.found = true;
            self.first.clear();
        }
    }
}

/// Edits of the choice sequence; each is tried at every position before the next one.
const SEQUENCE_EDITS: [SequenceEdit; 14] = [
    SequenceEdit::Delete(32),
    SequenceEdit::Delete(16),
    SequenceEdit::Delete(8),
    SequenceEdit::Delete(4),
    SequenceEdit::Delete(2),
    SequenceEdit::Delete(1),
    SequenceEdit::Zero(16),
    SequenceEdit::Zero(4),
    SequenceEdit::Zero(1),
    SequenceEdit::Halve,
    SequenceEdit::Decrement,
    SequenceEdit::DecrementAndDelete(1),
    SequenceEdit::DecrementAndDelete(2),
    SequenceEdit::DecrementAndDelete(4),
];

#[derive(Debug, Clone, Copy)]
enum SequenceEdit {
    Delete(usize),
    Zero(usize),
    Halve,
    Decrement,
    /// Decrement one choice and delete the following ones: a length and its last element.
    DecrementAndDelete(usize),
}

impl SequenceEdit {
    fn apply(self, choices: &[u64], at: usize) -> Option<Vec<u64>> {
        let mut edited = choices.to_vec();
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
        (edited != choices).then_some(edited)
    }
}

impl Shrinker {
    /// Shrinks the instance that `generator` makes from `choices`, or `None` if it makes none.
    #[must_use]
    pub fn new(generator: Generator, choices: ChoiceSequence) -> Option<Self> {
        let mut choices = choices;
        let value = generator.generate(&mut choices).ok()?;
        let measure = Measure::of(&value);
        let is_large = measure.values > LARGE_VALUE_PARTS;
        Some(Self {
            generator,
            choices: choices.into_choices(),
            candidate: value.clone(),
            stage: Stage::value(&value, &[], if is_large { MAX_COARSE_EDITS } else { MAX_EDITS }),
            best: value,
            best_measure: measure,
            candidate_choices: None,
            passed: HashSet::new(),
            has_pending_choices: true,
            coarse: is_large,
            generations_left: MAX_GENERATIONS,
        })
    }

    /// Shrinks a value without its choices, such as one from a file. It must belong to the
    /// generator's class.
    #[must_use]
    pub fn of_value(generator: Generator, value: Value) -> Option<Self> {
        generator.holds(&value).then(|| Self {
            generator,
            choices: Vec::new(),
            stage: Stage::value(&value, &[], MAX_EDITS),
            candidate: value.clone(),
            best_measure: Measure::of(&value),
            best: value,
            candidate_choices: None,
            passed: HashSet::new(),
            has_pending_choices: false,
            coarse: false,
            generations_left: MAX_GENERATIONS,
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
    fn max_edits(&self) -> usize {
        if self.coarse { MAX_COARSE_EDITS } else { MAX_EDITS }
    }

    /// Accepts the current candidate as the best, because it fails, and proposes a simpler one.
    pub fn simplify(&mut self) -> bool {
        if self.candidate != self.best {
            self.best = self.candidate.clone();
            self.best_measure = Measure::of(&self.best);
            let most = self.max_edits();
            match (&mut self.stage, self.candidate_choices.take()) {
                (Stage::Choices { progress, .. }, Some(choices)) => {
                    *progress = true;
                    self.choices = choices;
                }
                (Stage::Value { search: Some(search), .. }, _) => search.fails(),
                (Stage::Value { edits, next, .. }, _) => {
                    let path = next.checked_sub(1).and_then(|last| edits.get(last)).map(|edit| edit.path.clone());
                    self.stage = Stage::value(&self.best, &path.unwrap_or_default(), most);
                }
                (Stage::Choices { .. } | Stage::Done, _) => {}
            }
        }
        self.advance()
    }

    /// Rejects the current candidate, because it does not fail, and proposes another one.
    pub fn complicate(&mut self) -> bool {
        self.passed.insert(hash_of(&self.candidate));
        self.advance()
    }

    fn advance(&mut self) -> bool {
        /// Copying the best value takes this part of the time that it takes to look at a candidate.
        const COPIES_PER_LOOK: usize = 16;
        let mut skipped = 0;
        for _ in 0..MAX_SKIPPED {
            let Some((value, choices)) = self.propose() else {
                if matches!(self.stage, Stage::Done) {
                    break;
                }
                continue;
            };
            let measure = Measure::of(&value);
            if measure.compare(&self.best_measure) == Ordering::Less
                && !self.passed.contains(&hash_of(&value))
                && self.generator.holds(&value)
            {
                self.candidate = value;
                self.candidate_choices = choices;
                return true;
            }
            skipped += measure.size() + self.best_measure.size() / COPIES_PER_LOOK;
            if skipped > MAX_SKIPPED_SIZE {
                break;
            }
        }
        self.stage = Stage::Done;
        self.candidate = self.best.clone();
        false
    }

    /// The result of the next edit; `None` if the edit does not apply or the stage has changed.
    fn propose(&mut self) -> Option<(Value, Option<Vec<u64>>)> {
        let most = self.max_edits();
        match &mut self.stage {
            Stage::Done => None,
            Stage::Choices { edit, back, progress } => {
                if *back > self.choices.len() {
                    *back = 1;
                    *edit += 1;
                    if *edit == SEQUENCE_EDITS.len() {
                        // The result may be edited further; another round of choices is only worth it while rounds make
                        // progress.
                        self.stage =
                            if *progress && !self.choices.is_empty() && self.best_measure.values > LARGE_VALUE_PARTS {
                                Stage::Choices { edit: 0, back: 1, progress: false }
                            } else {
                                self.has_pending_choices = *progress && !self.choices.is_empty();
                                Stage::value(&self.best, &[], most)
                            };
                    }
                    return None;
                }
                let at = self.choices.len() - *back;
                *back += 1;
                let edited = SEQUENCE_EDITS[*edit].apply(&self.choices, at)?;
                if self.generations_left == 0 {
                    self.has_pending_choices = false;
                    self.stage = Stage::value(&self.best, &[], most);
                    return None;
                }
                let mut choices = ChoiceSequence::replay(edited);
                let (value, generated) = self.generator.generate_within(&mut choices, MAX_VALUES_OF_EDIT);
                self.generations_left = self.generations_left.saturating_sub(generated);
                Some((value?, Some(choices.into_choices())))
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
                    if std::mem::take(&mut self.coarse) && self.best_measure.values <= LARGE_VALUE_PARTS {
                        self.stage = Stage::value(&self.best, &[], MAX_EDITS);
                        return None;
                    }
                    let to_choices = std::mem::take(&mut self.has_pending_choices);
                    self.stage =
                        if to_choices { Stage::Choices { edit: 0, back: 1, progress: false } } else { Stage::Done };
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

/// The hash of a value's text: the texts of thousands of long candidates would take gigabytes.
fn hash_of(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Dialect, Domain, ToolSchema};
    use serde_json::json;

    /// Finds an instance that `fails` and shrinks it; also returns the number of instances tried.
    fn shrink(schema: &Value, fails: impl Fn(&Value) -> bool) -> (Value, usize) {
        let schema = ToolSchema::compile_for(schema, Dialect::Draft202012, Domain::Any).expect("a usable schema");
        let generator = schema.valid().clone();
        let mut shrinker = (0..100_000)
            .filter_map(|seed| Shrinker::new(generator.clone(), ChoiceSequence::record(seed)))
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
    fn edited_choices_generate_a_bounded_number_of_values() {
        const LIMIT: u32 = 500;
        let filter = json!({"oneOf": [
            {"type": "object", "properties": {"and": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/filter"}}},
             "required": ["and"], "additionalProperties": false},
            {"type": "object", "properties": {"not": {"$ref": "#/$defs/filter"}}, "required": ["not"],
             "additionalProperties": false},
            {"type": "object", "properties": {"op": {"enum": ["in", "none"]}, "value": {}}, "required": ["op"],
             "additionalProperties": false, "allOf": [
                {"if": {"properties": {"op": {"const": "in"}}}, "then": {"required": ["value"]}},
                {"if": {"properties": {"op": {"const": "none"}}}, "then": {"not": {"required": ["value"]}}}]}
        ]});
        let schema = json!({"type": "object", "properties": {"filter": {"$ref": "#/$defs/filter"}},
            "required": ["filter"], "$defs": {"filter": filter}});
        let schema = ToolSchema::compile_for(&schema, Dialect::Draft202012, Domain::Any).expect("a usable schema");
        let most = (0..40).map(|seed| {
            let mut choices = ChoiceSequence::record(seed);
            schema.valid().generate_within(&mut choices, LIMIT).1
        });
        // An attempt that begins below the limit ends when it has generated as many.
        assert!(most.clone().max() > Some(LIMIT), "no generation reaches the limit");
        assert!(most.max() <= Some(2 * LIMIT + 1));
        let shrinker = Shrinker::new(schema.valid().clone(), ChoiceSequence::record(1)).expect("it is possible");
        let mut shrinker = Shrinker { generations_left: 1, ..shrinker };
        while shrinker.complicate() {}
        assert!(shrinker.generations_left == 0 && matches!(shrinker.stage, Stage::Done));
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

    #[test]
    fn fractions_shrink_to_few_characters_in_few_steps() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
        let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
        let smallest = |from: f64, fails: fn(f64) -> bool| {
            let mut shrinker = Shrinker::of_value(schema.valid().clone(), json!({ "n": from })).expect("it is valid");
            let (mut tried, mut goes_on) = (0, shrinker.simplify());
            while goes_on {
                tried += 1;
                let is_failing = shrinker.current()["n"].as_f64().is_some_and(fails);
                goes_on = if is_failing { shrinker.simplify() } else { shrinker.complicate() };
            }
            assert!(tried < 40, "{tried} tries from {from}");
            shrinker.best()["n"].to_string()
        };
        assert_eq!(smallest(5e-324, |n| n.fract() != 0.0), "0.1");
        assert_eq!(smallest(-73.283_645_1, |n| n.fract() != 0.0), "0.1");
        assert_eq!(smallest(-73.283_645_1, |n| n < 0.0 && n.fract() != 0.0), "-0.1");
        assert_eq!(smallest(0.123_456_789, |n| n > 0.1 && n < 0.2), "0.12");
        assert_eq!(smallest(1.797_693_134e308, |n| n > 1e20), "1e+38");
        assert_eq!(smallest(2.225e-308, |n| n != 0.0 && n < 1e-6), "1e-9");
    }

    /// A text that the fuzzer sends is up to 8 MiB long, and a list of edits must not hold as many copies of it.
    #[test]
    fn a_long_text_is_shrunk_without_copies_of_it() {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let schema = ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema");
        let text = format!("{}%{}", "a".repeat(60_000), "b".repeat(20_000));
        let failing = json!({ "text": text });
        let mut shrinker = Shrinker::of_value(schema.valid().clone(), failing).expect("it is valid");
        let Stage::Value { edits, .. } = &shrinker.stage else { panic!("it begins with the value") };
        assert!(edits.len() < MAX_EDITS, "{} edits", edits.len());
        let is_long = |edit: &&Edit| match &edit.change {
            Change::ReplaceWith(value) => Measure::of(value).size() > 16,
            _ => false,
        };
        assert_eq!(edits.iter().find(is_long).map(|edit| &edit.path), None);
        let fails = |value: &Value| value["text"].as_str().is_some_and(|text| text.contains('%') && text.len() > 1_000);
        let mut tried = 0;
        while if fails(shrinker.current()) { shrinker.simplify() } else { shrinker.complicate() } {
            tried += 1;
        }
        let least = shrinker.best()["text"].as_str().expect("it is a text");
        assert_eq!(least.len(), 1_001, "after {tried} tries");
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
        for constraint in schema.constraints() {
            let generator = schema.violating(&constraint).expect("every keyword has an effect");
            let mut shrinker = Shrinker::new(generator.clone(), ChoiceSequence::record(5)).expect("an instance");
            while shrinker.simplify() {
                assert!(generator.holds(shrinker.current()));
            }
            shrunk.push((constraint.to_string(), shrinker.current().clone()));
        }
        let least = |constraint: &str| {
            let found = shrunk.iter().find(|(name, _)| name == constraint);
            found.map(|(_, value)| value.clone()).expect("a constraint")
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
