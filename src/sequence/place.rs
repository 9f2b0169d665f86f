//! Where the values of results are: in structured content, in the JSON of a text, or among the words of a text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_pointer;

/// The maximum size of a text that is read.
const MAX_TEXT: usize = 64 << 10;
/// The maximum number of values to visit in one result.
const MAX_VISITED: usize = 2_000;
/// Longer strings are not identifiers.
const MAX_IDENTIFIER: usize = 200;
/// The maximum number of content items that are read.
const MAX_ITEMS: usize = 16;

/// The place of a value in the result of a call, by which it is found again in another result of the same tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Place {
    /// A JSON pointer into the result.
    Member(String),
    /// A JSON pointer into the JSON that the text of a content item is.
    Text {
        /// The index of the content item.
        item: usize,
        /// The pointer.
        pointer: String,
    },
    /// A word that looks like an identifier in the text of a content item.
    Word {
        /// The index of the content item.
        item: usize,
        /// How many such words precede it, without those that the arguments of the call contain.
        number: usize,
    },
}

/// A value that a result contains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundValue {
    /// The name of the member that holds it; empty for a word of a text.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) value: Value,
}

impl Place {
    /// The value here in a result, and in the same place of a result of another call with the arguments `sent`.
    pub(crate) fn find(&self, result: &Value, sent: &Value) -> Option<Value> {
        match self {
            Self::Member(pointer) => result.pointer(pointer).cloned(),
            Self::Text { item, pointer } => json_text(result, *item)?.pointer(pointer).cloned(),
            Self::Word { item, number } => {
                identifiers(text(result, *item)?, sent).nth(*number).map(|word| Value::String(word.to_owned()))
            }
        }
    }

    /// How a report names it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Member(pointer) => pointer.strip_prefix("/structuredContent").unwrap_or(pointer).to_owned(),
            Self::Text { pointer, .. } => format!("{pointer} in the JSON of its text"),
            Self::Word { .. } => "in its text".to_owned(),
        }
    }
}

/// The text of a content item, if it is not too long.
fn text(result: &Value, item: usize) -> Option<&str> {
    let text = result.get("content")?.get(item)?.get("text")?.as_str()?;
    (text.len() <= MAX_TEXT).then_some(text)
}

/// The JSON that the text of a content item is.
fn json_text(result: &Value, item: usize) -> Option<Value> {
    let text = text(result, item)?.trim();
    text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok())?
}

/// The words of a text that look like identifiers and are not in the arguments of the call.
fn identifiers<'a>(text: &'a str, sent: &Value) -> impl Iterator<Item = &'a str> + use<'a> {
    let sent = sent.to_string();
    let separates = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;=|*".contains(c);
    text.split(separates)
        .map(|word| word.trim_matches(|c: char| ".:!?#".contains(c)))
        .filter(move |word| is_identifier(word) && !sent.contains(word))
}

fn is_identifier(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= MAX_IDENTIFIER
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_alphanumeric())
}

/// The strings and numbers of a result that may be identifiers, in their order.
pub(crate) fn values(result: &Value, sent: &Value) -> Vec<FoundValue> {
    let mut found = Vec::new();
    if let Some(structured) = result.get("structuredContent") {
        collect(structured, "/structuredContent", &mut found, &Place::Member);
    }
    let items = result.get("content").and_then(Value::as_array).map_or(0, Vec::len).min(MAX_ITEMS);
    for item in 0..items {
        for pointer in ["uri", "resource/uri"].map(|end| format!("/content/{item}/{end}")) {
            if let Some(value) = result.pointer(&pointer) {
                found.push(FoundValue { name: "uri".to_owned(), place: Place::Member(pointer), value: value.clone() });
            }
        }
        if let Some(json) = json_text(result, item) {
            collect(&json, "", &mut found, &|pointer| Place::Text { item, pointer });
        } else if let Some(text) = text(result, item) {
            found.extend(identifiers(text, sent).take(8).enumerate().map(|(number, word)| FoundValue {
                name: String::new(),
                place: Place::Word { item, number },
                value: Value::String(word.to_owned()),
            }));
        }
    }
    found
}

/// Adds the strings and numbers below a value; an item of a list has the name of the list.
fn collect(value: &Value, pointer: &str, found: &mut Vec<FoundValue>, place: &dyn Fn(String) -> Place) {
    let mut pending = vec![(String::new(), pointer.to_owned(), value)];
    for _ in 0..MAX_VISITED {
        let Some((name, pointer, value)) = pending.pop() else { return };
        match value {
            Value::Object(members) => {
                let below = |(name, member)| (String::clone(name), json_pointer::join(&pointer, name), member);
                pending.extend(members.iter().rev().map(below));
            }
            Value::Array(items) => {
                let below = |(at, item)| (name.clone(), format!("{pointer}/{at}"), item);
                pending.extend(items.iter().enumerate().rev().map(below));
            }
            Value::String(text) if text.is_empty() || text.len() > MAX_IDENTIFIER => {}
            Value::String(_) | Value::Number(_) => {
                found.push(FoundValue { name, place: place(pointer), value: value.clone() });
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// The members of all objects in a result, each with its pointer, its name and its value: those of the structured content
/// or, without it, of the JSON of its texts.
pub(crate) fn members(result: &Value) -> Vec<(String, String, Value)> {
    let mut roots: Vec<(String, Value)> = Vec::new();
    if let Some(structured) = result.get("structuredContent") {
        roots.push((String::new(), structured.clone()));
    } else {
        roots.extend((0..MAX_ITEMS).filter_map(|item| Some((format!("/{item}"), json_text(result, item)?))));
    }
    let mut found = Vec::new();
    for (root, value) in &roots {
        let mut pending = vec![(root.clone(), value)];
        for _ in 0..MAX_VISITED {
            let Some((pointer, value)) = pending.pop() else { break };
            match value {
                Value::Object(members) => {
                    for (name, member) in members.iter().rev() {
                        let pointer = json_pointer::join(&pointer, name);
                        found.push((pointer.clone(), name.clone(), member.clone()));
                        pending.push((pointer, member));
                    }
                }
                Value::Array(items) => {
                    pending.extend(items.iter().enumerate().rev().map(|(at, item)| (format!("{pointer}/{at}"), item)));
                }
                _ => {}
            }
        }
    }
    found
}

/// How often a result shows a value: as a string or number of its own, or as a word of a text.
pub(crate) fn occurrences(result: &Value, value: &Value) -> usize {
    let wanted = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if wanted.is_empty() {
        return 0;
    }
    let in_structured = result.get("structuredContent").map_or(0, |structured| of_value(structured, &wanted));
    let items = result.get("content").and_then(Value::as_array).into_iter().flatten().take(MAX_ITEMS);
    let in_content: usize = items.map(|item| of_value(item, &wanted)).sum();
    // The text repeats the structured content.
    if result.get("structuredContent").is_some() { in_structured } else { in_content }
}

fn of_value(value: &Value, wanted: &str) -> usize {
    let mut pending = vec![value];
    let mut count = 0;
    for _ in 0..MAX_VISITED {
        let Some(value) = pending.pop() else { break };
        match value {
            Value::Object(members) => pending.extend(members.values()),
            Value::Array(items) => pending.extend(items),
            Value::String(text) => count += in_text(text, wanted),
            Value::Number(number) => count += usize::from(number.to_string().as_str() == wanted),
            Value::Null | Value::Bool(_) => {}
        }
    }
    count
}

/// How often a text contains a word, not as a part of a longer one.
fn in_text(text: &str, wanted: &str) -> usize {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(wanted)
        .filter(|(at, found)| {
            !is_part(text[..*at].chars().next_back()) && !is_part(text[at + found.len()..].chars().next())
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_found_in_structured_content_json_texts_and_prose() {
        let result = json!({"structuredContent": {"project": {"id": "p-1", "size": 3}}});
        let found = values(&result, &json!({}));
        assert_eq!(found[0].name, "id");
        assert_eq!(found[0].place.find(&result, &json!({})), Some(json!("p-1")));
        let result = json!({"content": [{"type": "text", "text": "{\"items\": [{\"id\": 7}]}"}]});
        let found = values(&result, &json!({}));
        assert_eq!((found[0].name.as_str(), &found[0].value), ("id", &json!(7)));
        assert_eq!(found[0].place, Place::Text { item: 0, pointer: "/items/0/id".to_owned() });
        let sent = json!({"name": "plan9"});
        let result = json!({"content": [{"type": "text", "text": "Created plan9 with the id f-12, in task t-3."}]});
        let found: Vec<Value> = values(&result, &sent).into_iter().map(|found| found.value).collect();
        assert_eq!(found, [json!("f-12"), json!("t-3")]);
        let other = json!({"content": [{"type": "text", "text": "Created x1 with the id f-13, in task t-3."}]});
        assert_eq!(Place::Word { item: 0, number: 0 }.find(&other, &json!({"name": "x1"})), Some(json!("f-13")));
    }

    #[test]
    fn occurrences_are_whole_words_and_are_counted_once_for_repeated_content() {
        let result = json!({"content": [{"type": "text", "text": "p-1 p-12 p-1."}]});
        assert_eq!(occurrences(&result, &json!("p-1")), 2);
        let result = json!({"structuredContent": {"id": 7}, "content": [{"type": "text", "text": "{\"id\":7}"}]});
        assert_eq!(occurrences(&result, &json!(7)), 1);
        assert_eq!(occurrences(&result, &json!(70)), 0);
    }

    #[test]
    fn a_hostile_result_is_read_to_a_limit() {
        let deep = (0..100).fold(json!(1), |below, _| json!([below]));
        let wide = json!({"structuredContent": vec![deep; 1_000]});
        assert!(values(&wide, &json!({})).len() < MAX_VISITED);
        assert_eq!(values(&json!({"content": "no list"}), &json!({})), Vec::new());
    }
}
