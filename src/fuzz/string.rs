//! Generates strings: by length, pattern and format, and strings that programs often handle wrongly.

use std::sync::Arc;

use jsonschema::{Validator, canonical::StringView};
use serde_json::{Number, Value};

use super::{
    format::{Format, INVALID_SAMPLES},
    pattern::Pattern,
    source::{EnumeratedChoices, Source},
};

/// Longer strings are not generated unless a bound requires them.
const MAX_CHOSEN_LENGTH: usize = 4096;
/// Longer than the usual buffer of a program for a line or a name.
const BEYOND_BUFFERS_LENGTH: usize = 1_100;
/// How often a string that fails its own check is generated again.
const MAX_ATTEMPTS: u64 = 24;

/// Strings that programs often handle wrongly, all of them harmless as data.
const TRICKY_STRINGS: [&str; 40] = [
    "",
    " ",
    "\u{0}",
    "a\u{0}b",
    "\n",
    "\r\n",
    "\t",
    "\"",
    "'",
    "\\",
    "/",
    "..",
    "../../../../etc/passwd",
    "C:\\..\\..\\boot.ini",
    "file:///dev/null",
    "%s%n%x",
    "%00",
    "{{7*7}}",
    "${7*7}",
    "#{7*7}",
    "' OR '1'='1",
    "; true",
    "$(true)",
    "`true`",
    "<script>alert(1)</script>",
    "__proto__",
    "constructor",
    "null",
    "undefined",
    "NaN",
    "true",
    "-1",
    "1e400",
    "0x10",
    "\u{feff}",
    "\u{2028}",
    "\u{202e}abc",
    "e\u{301}",
    "\u{130}\u{df}\u{fb01}",
    "\u{1f300}\u{200d}\u{1f469}",
];

/// Strings that combine many special characters, so that few calls test them all; shrinking finds the part
/// that matters. Each is of one kind, since rejecting one kind would hide the others.
const COMPOSITE_STRINGS: [&str; 7] = [
    "a\u{0}b\r\n\tc\u{7f}\u{1b}",
    "'\"\\/`|;&<>()[]{}",
    "%s%n%x ${7*7} {{7*7}} #{7*7} $(true)",
    "../../../../etc/passwd",
    "e\u{301}\u{202e}abc\u{2028}\u{feff}\u{1f300}\u{200d}\u{1f469}\u{130}\u{df}\u{fb01}",
    " A b ",
    "__proto__",
];

const SPECIALS: [char; 24] = [
    '\u{0}', '"', '\'', '\\', '/', '%', '$', '{', '}', '<', '>', '&', ';', '|', '`', '\n', '\r', '\t', '\u{7f}',
    '\u{2028}', '\u{feff}', '\u{202e}', '\u{301}', '\u{fffd}',
];

/// The strings that one node accepts.
#[derive(Debug, Clone)]
pub(super) struct StringSpec {
    min: usize,
    max: usize,
    shapes: Vec<Shape>,
    /// Set if construction alone does not guarantee a valid string.
    check: Option<Arc<Validator>>,
}

#[derive(Debug, Clone)]
enum Shape {
    Free,
    Pattern(Box<Pattern>),
    Format(Format),
    /// Strings that fail most formats, of which the check selects the valid ones.
    Misfit,
    Json,
    Base64,
}

impl StringSpec {
    /// The strings that `view` accepts; `check` is called for a validator if one is needed.
    ///
    /// Returns `None` if a string would need more than `limit` characters.
    pub(super) fn new(view: &StringView, limit: usize, check: impl FnOnce() -> Option<Arc<Validator>>) -> Option<Self> {
        let length = |number: &Number| {
            number.as_u64().map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX))
        };
        let min = view.min_length.as_ref().map_or(0, length);
        let max = view.max_length.as_ref().map_or(usize::MAX, length);
        if min > limit {
            return None;
        }
        let mut shapes = Vec::new();
        let mut proven =
            view.excluded.is_empty() && view.excluded_patterns.is_empty() && view.excluded_formats.is_empty();
        for expression in &view.patterns {
            match Pattern::parse(expression) {
                Some(pattern) => {
                    proven &= !pattern.is_approximate();
                    if pattern.shortest() <= max.min(limit) {
                        shapes.push(Shape::Pattern(Box::new(pattern)));
                    }
                }
                None => proven = false,
            }
        }
        for name in &view.formats {
            shapes.extend(Format::from_name(name).map(Shape::Format));
        }
        let json = view.content_media_types.iter().any(|kind| kind.ends_with("json"));
        let base64 = view.content_encodings.iter().any(|name| name == "base64");
        if base64 {
            shapes.push(Shape::Base64);
        } else if json {
            shapes.push(Shape::Json);
        }
        let facets =
            view.patterns.len() + view.formats.len() + view.content_media_types.len() + view.content_encodings.len();
        let bounded = min > 0 || max < usize::MAX;
        proven &= facets <= 1 && !(bounded && facets > 0);
        if !view.excluded_patterns.is_empty() || !view.excluded_formats.is_empty() {
            shapes.push(Shape::Misfit);
        }
        if shapes.is_empty() || !proven {
            shapes.push(Shape::Free);
        }
        Some(Self { min, max, shapes, check: if proven { None } else { check() } })
    }

    /// Any string.
    pub(super) fn any() -> Self {
        Self { min: 0, max: usize::MAX, shapes: vec![Shape::Free], check: None }
    }

    /// The minimum length.
    pub(super) fn min(&self) -> usize {
        self.min
    }

    pub(super) fn is_free(&self) -> bool {
        matches!(self.shapes[..], [Shape::Free]) && self.check.is_none()
    }

    /// The lengths at and next to the bounds that are short enough to be tested.
    pub(super) fn edge_lengths(&self) -> Vec<usize> {
        let mut lengths = vec![self.min, self.min.saturating_add(1)];
        if self.max <= MAX_CHOSEN_LENGTH {
            lengths.extend([self.max.saturating_sub(1), self.max]);
        }
        if self.is_free() && self.max > MAX_CHOSEN_LENGTH {
            // No bound is declared, so that an undeclared one can be found.
            lengths.push(BEYOND_BUFFERS_LENGTH);
        }
        lengths.retain(|length| (self.min..=self.max).contains(length));
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// The number of composite strings for this node.
    pub(super) fn composite_count(&self) -> usize {
        if self.max >= 2 && self.is_free() { COMPOSITE_STRINGS.len() } else { 0 }
    }

    /// One of the composite strings, truncated or extended to the bounds.
    pub(super) fn composite(&self, chosen: usize) -> Option<String> {
        COMPOSITE_STRINGS.get(chosen).map(|text| fit(text, self.min, self.max))
    }

    pub(super) fn draw(&self, source: &mut impl Source) -> Option<String> {
        self.draw_within(source, self.min, self.max)
    }

    /// A string of `min` to `max` characters, within the node's own bounds.
    pub(super) fn draw_within(&self, source: &mut impl Source, min: usize, max: usize) -> Option<String> {
        let Some(check) = &self.check else {
            return Some(self.shape(source, 0, min, max));
        };
        let passes = |text: String| {
            let text = Value::String(text);
            match (check.is_valid(&text), text) {
                (true, Value::String(text)) => Some(text),
                _ => None,
            }
        };
        for attempt in 0..MAX_ATTEMPTS {
            let shape = if attempt < 4 { 0 } else { source.index(self.shapes.len()) };
            if let Some(text) = passes(self.shape(source, shape, min, max)) {
                return Some(text);
            }
        }
        // The simplest strings in order come last, for sources that repeat their choices.
        (0..MAX_ATTEMPTS * self.shapes.len() as u64).find_map(|attempt| {
            let mut choices = EnumeratedChoices::new(attempt);
            let shape = choices.index(self.shapes.len());
            passes(self.shape(&mut choices, shape, min, max))
        })
    }

    fn shape(&self, source: &mut impl Source, shape: usize, min: usize, max: usize) -> String {
        match &self.shapes[shape] {
            Shape::Free => free(source, min, max),
            Shape::Pattern(pattern) => pattern.draw(source, min, max),
            Shape::Format(format) => format.draw(source, min),
            Shape::Misfit => fit(INVALID_SAMPLES[source.index(INVALID_SAMPLES.len())], min, max),
            Shape::Json => {
                let documents = ["0", "{}", "[]", "null", "\"a\"", "{\"a\":[1,true]}"];
                let document = documents[source.index(documents.len())];
                let missing = min.saturating_sub(document.len());
                format!("{document}{}", " ".repeat(missing))
            }
            Shape::Base64 => {
                let encoded = ["MA==", "e30=", "W10=", "bnVsbA==", ""];
                let encoded = encoded[source.index(encoded.len())];
                let missing = min.saturating_sub(encoded.len()).div_ceil(4);
                format!("{}{encoded}", "ICAg".repeat(missing))
            }
        }
    }
}

/// A string without a particular shape.
pub(super) fn free(source: &mut impl Source, min: usize, max: usize) -> String {
    let room = max.saturating_sub(min);
    let mode = source.below(16);
    let length = match mode {
        0..=9 => min + source.index(room.min(12) + 1),
        10 | 11 => {
            let ends = [min, min + room.min(1), max.saturating_sub(1).max(min), max];
            let length = ends[source.index(4)];
            if length <= MAX_CHOSEN_LENGTH.max(min) { length } else { min }
        }
        12 => return fit(TRICKY_STRINGS[source.index(TRICKY_STRINGS.len())], min, max),
        13 => return fit(COMPOSITE_STRINGS[source.index(COMPOSITE_STRINGS.len())], min, max),
        14 => min + source.index(room.min(64) + 1),
        _ => {
            let longest = if source.one_in(8) { 1024 } else { 160 };
            min + source.index(room.min(longest) + 1)
        }
    };
    let mut text = String::with_capacity(length);
    match source.below(8) {
        0..=3 => text.extend((0..length).map(|_| letter(source, b'a', 26))),
        4 | 5 => text.extend((0..length).map(|_| letter(source, b' ', 95))),
        6 => text.extend((0..length).map(|_| SPECIALS[source.index(SPECIALS.len())])),
        _ => text.extend((0..length).map(|_| any_char(source))),
    }
    text
}

fn letter(source: &mut impl Source, first: u8, count: u8) -> char {
    let offset = u8::try_from(source.below(count.into())).unwrap_or(0);
    char::from(first + offset)
}

fn any_char(source: &mut impl Source) -> char {
    let code = match source.below(4) {
        0 => 0x61 + source.below(26),
        1 => 0x80 + source.below(0x800),
        2 => 0x1_f300 + source.below(0x300),
        _ => source.below(0x11_0000),
    };
    let code = u32::try_from(code).unwrap_or(0x61);
    char::from_u32(code).unwrap_or('\u{fffd}')
}

/// `text` truncated or extended to `min..=max` characters.
fn fit(text: &str, min: usize, max: usize) -> String {
    let length = text.chars().count();
    if length > max {
        return text.chars().take(max).collect();
    }
    let mut fitted = text.to_owned();
    fitted.extend(std::iter::repeat_n('a', min.saturating_sub(length)));
    fitted
}

/// One of the unusual entry names.
pub(super) fn unusual_name(chosen: usize) -> Option<&'static str> {
    UNUSUAL_NAMES.get(chosen).copied()
}

/// Names for undeclared entries; the first is the plainest.
const UNUSUAL_NAMES: [&str; 10] = ["extra", "__proto__", "", "x", "a", "constructor", "id", "\u{e9}", "a.b", "$ref"];

/// How many of the names are tested one by one.
pub(super) const UNUSUAL_NAMES_TRIED: usize = 3;

/// A name for an undeclared entry.
pub(super) fn key(source: &mut impl Source, min: usize) -> String {
    fit(UNUSUAL_NAMES[source.index(UNUSUAL_NAMES.len())], min, usize::MAX)
}
