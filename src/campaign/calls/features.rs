//! What the arguments of a call are like: the types and sizes of values, and what strings consist of.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use serde_json::Value;

use crate::check::fuzz::{Arguments, Call, Validity};

/// The maximum number of features of one call.
const MAX_FEATURES: usize = 256;
/// The maximum depth of values whose features count.
const MAX_DEPTH: usize = 4;

/// At most so many of these calls, first those that have most features that no call before them has; calls without any go
/// on in the order given.
pub(in crate::campaign) fn most_diverse(calls: Vec<Arc<Call>>, limit: usize) -> Vec<Arc<Call>> {
    let mut left: Vec<(Arc<Call>, HashSet<u64>)> = calls
        .into_iter()
        .map(|call| {
            let features = features(&call);
            (call, features)
        })
        .collect();
    let mut chosen = Vec::new();
    while chosen.len() < limit && !left.is_empty() {
        // Of several, the first one.
        let (best, _) = left.iter().enumerate().fold((0, 0), |(best, most), (at, (_, features))| {
            if features.len() > most { (at, features.len()) } else { (best, most) }
        });
        let (call, covered) = left.remove(best);
        for (_, features) in &mut left {
            features.retain(|feature| !covered.contains(feature));
        }
        chosen.push(call);
    }
    chosen
}

/// The features of a call, as hashes.
pub(in crate::campaign) fn features(call: &Call) -> HashSet<u64> {
    let mut found = HashSet::new();
    match &call.validity {
        Validity::Violates(constraint) => {
            found.insert(hash(&("violates", constraint.to_string())));
        }
        Validity::Malformed(_, name) => {
            found.insert(hash(&("malformed", name)));
        }
        Validity::Valid | Validity::Unknown => {}
    }
    if let Arguments::Json(arguments) = &call.arguments {
        add_features(arguments, "", 0, &mut found);
    }
    found
}

fn hash(feature: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    feature.hash(&mut hasher);
    hasher.finish()
}

/// A kind of characters, with what tells whether one is of it.
type CharacterKind = (&'static str, fn(char) -> bool);

/// Adds the features of the value at a path: its type, its size, and what a string consists of.
fn add_features(value: &Value, path: &str, depth: usize, found: &mut HashSet<u64>) {
    let mut add = |what: &str, size: u32| {
        if found.len() < MAX_FEATURES {
            found.insert(hash(&(path, what, size)));
        }
    };
    match value {
        Value::Null => add("null", 0),
        Value::Bool(flag) => add("boolean", u32::from(*flag)),
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or_default();
            add(if value < 0.0 { "negative" } else { "number" }, magnitude(value.abs()));
            if value.fract() != 0.0 {
                add("fraction", 0);
            }
        }
        Value::String(text) => {
            add("length", size(text.chars().count()));
            let kinds: [CharacterKind; 7] = [
                ("upper", char::is_uppercase),
                ("lower", char::is_lowercase),
                ("digit", char::is_numeric),
                ("space", char::is_whitespace),
                ("control", char::is_control),
                ("punctuation", |c| c.is_ascii_punctuation()),
                ("other", |c| !c.is_ascii()),
            ];
            for (kind, is_kind) in kinds {
                if text.chars().any(is_kind) {
                    add(kind, 0);
                }
            }
        }
        Value::Array(items) => add("items", size(items.len())),
        Value::Object(members) => add("members", size(members.len())),
    }
    if depth == MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter().take(8).for_each(|item| {
            add_features(item, &format!("{path}/*"), depth + 1, found);
        }),
        Value::Object(members) => members.iter().take(32).for_each(|(name, member)| {
            add_features(member, &format!("{path}/{name}"), depth + 1, found);
        }),
        _ => {}
    }
}

/// The order of magnitude of a count, with few classes.
fn size(count: usize) -> u32 {
    match count {
        0..=2 => u32::try_from(count).unwrap_or(0),
        3..=16 => 3,
        17..=256 => 4,
        257..=4_096 => 5,
        _ => 6,
    }
}

/// The order of magnitude of a number, with few classes.
fn magnitude(value: f64) -> u32 {
    const LIMITS: [f64; 7] = [0.0, 1.0, 10.0, 1e3, 2_147_483_648.0, 9_007_199_254_740_992.0, 9.3e18];
    u32::try_from(LIMITS.iter().filter(|limit| value > **limit).count()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::CallKind;
    use serde_json::json;

    #[test]
    fn calls_that_are_like_no_other_come_first() {
        let texts = ["ab", "cd", "", "ef", "A", "g h", "ij"];
        let call = |text: &&str| {
            let arguments = Arguments::Json(json!({ "text": text }));
            Arc::new(Call { kind: CallKind::Valid, validity: Validity::Valid, arguments, choices: None })
        };
        let text = |call: &Arc<Call>| call.arguments.value()["text"].as_str().unwrap_or_default().to_owned();
        let chosen =
            |limit| -> Vec<String> { most_diverse(texts.iter().map(call).collect(), limit).iter().map(text).collect() };
        assert_eq!(chosen(3), ["g h", "A", "ab"]);
        assert_eq!(chosen(9), ["g h", "A", "ab", "", "cd", "ef", "ij"]);
    }
}
