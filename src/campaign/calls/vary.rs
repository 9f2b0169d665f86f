//! Which parts of the arguments of a failing call matter: what to put in place of each part, and what the outcomes say.
//!
//! It makes no calls. A part is a value without parts of its own; the others stay as they are, and so does the class of
//! the arguments: valid ones stay valid, and invalid ones violate the same constraint and no other.

use std::cmp::Ordering;
use std::mem::discriminant;

use serde_json::{Number, Value, json};

use crate::fuzz::{Generator, Random};
use crate::json_pointer;
use crate::verdict::{ArgumentPart, FailingValues};

/// The maximum number of parts that are varied.
const MAX_PARTS: usize = 5;
/// The maximum number of values that are tried in place of a part.
const MAX_VALUES: usize = 6;
/// The least number of values of which each has to fail before any value is said to.
const MIN_VALUES: usize = 2;
/// How many arguments are generated in search of values.
const MAX_GENERATED: u64 = 16;
/// The least length of a text of which the length may be what matters, in characters.
const MIN_LONG_TEXT: usize = 16;

/// A part of the arguments of a failing call.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::campaign) struct Part {
    pub(in crate::campaign) pointer: String,
    original: Value,
    /// The arguments with other values in its place.
    pub(in crate::campaign) variants: Vec<Value>,
}

/// The parts of arguments for which there are other values of the same class.
pub(in crate::campaign) fn parts(arguments: &Value, generator: &Generator) -> Vec<Part> {
    let mut leaves = Vec::new();
    collect_leaves(arguments, String::new(), &mut leaves);
    let generated: Vec<Value> =
        (0..MAX_GENERATED).filter_map(|seed| generator.generate(&mut Random::new(seed)).ok()).collect();
    let parts = leaves.into_iter().take(MAX_PARTS).map(|(pointer, original)| {
        let others = generated.iter().filter_map(|arguments| arguments.pointer(&pointer).cloned());
        let mut variants: Vec<Value> = Vec::new();
        // A server may well treat another type in another way, which is another failure.
        let is_like = |value: &Value| *value != original && discriminant(value) == discriminant(&original);
        for value in near_values(&original).into_iter().chain(others).filter(is_like) {
            let Some(variant) = with_value(arguments, &pointer, value) else { continue };
            if variants.len() < MAX_VALUES && !variants.contains(&variant) && generator.holds(&variant) {
                variants.push(variant);
            }
        }
        Part { pointer, original, variants }
    });
    parts.filter(|part| !part.variants.is_empty()).collect()
}

fn collect_leaves(value: &Value, pointer: String, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                collect_leaves(member, json_pointer::join(&pointer, name), leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                collect_leaves(item, format!("{pointer}/{at}"), leaves);
            }
        }
        // Arguments without members have no part.
        _ if pointer.is_empty() => {}
        _ => leaves.push((pointer, value.clone())),
    }
}

fn with_value(arguments: &Value, pointer: &str, value: Value) -> Option<Value> {
    let mut variant = arguments.clone();
    *variant.pointer_mut(pointer)? = value;
    Some(variant)
}

/// Other values, those that show where a limit is.
fn near_values(original: &Value) -> Vec<Value> {
    match original {
        Value::Number(number) => near_numbers(number),
        Value::String(text) => near_texts(text),
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

fn near_numbers(number: &Number) -> Vec<Value> {
    match number.as_i64() {
        Some(n) => {
            let far = n.unsigned_abs().saturating_mul(2).saturating_add(1_000).min(1 << 52);
            let far = i64::try_from(far).unwrap_or(1 << 52);
            [n.checked_sub(1), n.checked_add(1), n.checked_sub(far), n.checked_add(far), Some(-n.saturating_abs())]
                .into_iter()
                .flatten()
                .map(Value::from)
                .collect()
        }
        None => number.as_f64().map_or_else(Vec::new, |n| [n - 1.0, n + 1.0, -n, n / 2.0].map(Value::from).into()),
    }
}

fn near_texts(text: &str) -> Vec<Value> {
    let length = text.chars().count();
    let mut values = Vec::new();
    if length >= MIN_LONG_TEXT {
        let shorter: String = text.chars().take(length - 1).collect();
        values.extend([shorter, "b".repeat(length), "b".repeat(length + 1), "b".repeat(length * 2)]);
    }
    values.extend(["", "b", "some words", "42"].map(str::to_owned));
    values.into_iter().map(Value::from).collect()
}

/// What the outcomes say about a part: for each of its variants that was tried whether it failed, too.
pub(in crate::campaign) fn conclude(part: &Part, failed: &[bool]) -> ArgumentPart {
    let tried: Vec<(&Value, bool)> =
        part.variants.iter().filter_map(|variant| variant.pointer(&part.pointer)).zip(failed.iter().copied()).collect();
    let fails_for = if tried.iter().all(|(_, failed)| !failed) {
        FailingValues::This
    } else if tried.iter().all(|(_, failed)| *failed) && tried.len() >= MIN_VALUES.min(part.variants.len()) {
        FailingValues::Any
    } else {
        limit(&part.original, &tried).unwrap_or(FailingValues::Some)
    };
    let length = part.original.as_str().map(|text| text.chars().count());
    let characters = length.filter(|_| fails_for == FailingValues::AtLeastAsLong);
    ArgumentPart { pointer: part.pointer.clone(), fails_for, characters, tried: tried.len() }
}

/// On which side of the original value all others fail, and on which none.
fn limit(original: &Value, tried: &[(&Value, bool)]) -> Option<FailingValues> {
    let compared = |sizes: &[(Ordering, bool)]| {
        let all = |side, wanted| sizes.iter().filter(|(other, _)| *other == side).all(|(_, failed)| *failed == wanted);
        let has = |side| sizes.iter().any(|(other, _)| *other == side);
        let both = has(Ordering::Less) && has(Ordering::Greater);
        (
            both,
            all(Ordering::Less, true) && all(Ordering::Greater, false),
            all(Ordering::Less, false) && all(Ordering::Greater, true),
        )
    };
    if let Some(number) = original.as_f64() {
        let sizes = |(value, failed): &(&Value, bool)| Some((value.as_f64()?.partial_cmp(&number)?, *failed));
        return match compared(&tried.iter().filter_map(sizes).collect::<Vec<_>>()) {
            (true, true, _) => Some(FailingValues::AtMost),
            (true, _, true) => Some(FailingValues::AtLeast),
            _ => None,
        };
    }
    let length = original.as_str().filter(|text| text.chars().count() >= MIN_LONG_TEXT)?.chars().count();
    let sizes: Vec<(Ordering, bool)> = tried
        .iter()
        .filter_map(|(value, failed)| Some((value.as_str()?.chars().count().cmp(&length), *failed)))
        .collect();
    let (both, _, longer) = compared(&sizes);
    let same = sizes.iter().filter(|(other, _)| *other == Ordering::Equal).all(|(_, failed)| *failed);
    (both && longer && same).then_some(FailingValues::AtLeastAsLong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Dialect, ToolSchema};

    fn schema() -> ToolSchema {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer"},
                "mode": {"enum": ["fast", "slow"]},
                "filter": {"type": "object", "properties": {"tag": {"type": "string", "maxLength": 3}}}
            },
            "required": ["query"]
        });
        ToolSchema::compile(&schema, Dialect::Draft202012).expect("a usable schema")
    }

    /// What is concluded of each part if these arguments fail.
    fn concluded(arguments: &Value, fails: impl Fn(&Value) -> bool) -> Vec<(String, FailingValues)> {
        assert!(fails(arguments));
        let parts = parts(arguments, schema().valid());
        let conclude = |part: &Part| conclude(part, &part.variants.iter().map(&fails).collect::<Vec<_>>());
        parts.iter().map(conclude).map(|part| (part.pointer, part.fails_for)).collect()
    }

    #[test]
    fn a_limit_is_found_and_what_can_be_anything() {
        let query = || ("/query".to_owned(), FailingValues::Any);
        let limit = |values| vec![query(), ("/limit".to_owned(), values)];
        let arguments = |limit: i64| json!({"query": "", "limit": limit});
        let number = |arguments: &Value| arguments["limit"].as_i64().unwrap_or(1);
        assert_eq!(concluded(&arguments(0), |a| number(a) <= 0), limit(FailingValues::AtMost));
        assert_eq!(concluded(&arguments(101), |a| number(a) > 100), limit(FailingValues::AtLeast));
        assert_eq!(concluded(&arguments(7), |a| number(a) == 7), limit(FailingValues::This));
        assert_eq!(concluded(&arguments(8), |a| number(a) % 2 == 0), limit(FailingValues::Some));
        // The limit is elsewhere.
        assert_eq!(concluded(&arguments(5), |a| number(a) <= 6), limit(FailingValues::Some));
    }

    #[test]
    fn the_length_of_a_text_can_matter() {
        let long = json!({"query": "a".repeat(40)});
        let length = |arguments: &Value| arguments["query"].as_str().map_or(0, |text| text.chars().count());
        assert_eq!(concluded(&long, |a| length(a) >= 40), [("/query".to_owned(), FailingValues::AtLeastAsLong)]);
        let query = &parts(&long, schema().valid())[0];
        let characters = |fails: &dyn Fn(usize) -> bool| {
            conclude(query, &query.variants.iter().map(|variant| fails(length(variant))).collect::<Vec<_>>()).characters
        };
        assert_eq!((characters(&|length| length >= 40), characters(&|_| false)), (Some(40), None));
        assert_eq!(concluded(&long, |a| a["query"] == long["query"]), [("/query".to_owned(), FailingValues::This)]);
    }

    #[test]
    fn parts_stay_in_the_class_of_the_arguments() {
        let schema = schema();
        let arguments = json!({"query": "", "mode": "fast", "filter": {"tag": "abc"}});
        let parts = parts(&arguments, schema.valid());
        let pointers: Vec<&str> = parts.iter().map(|part| part.pointer.as_str()).collect();
        assert_eq!(pointers, ["/query", "/mode", "/filter/tag"]);
        assert_eq!(parts[1].variants, [json!({"query": "", "mode": "slow", "filter": {"tag": "abc"}})]);
        assert!(parts.iter().flat_map(|part| &part.variants).all(|variant| schema.is_valid(variant)));
        assert!(super::parts(&json!({}), schema.valid()).is_empty());
    }
}
