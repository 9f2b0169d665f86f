//! Finds the messages that an example shows: those that a finding is about, and what a conforming server says instead.

use mcp_conformance::internals::text;
use mcp_conformance::verdict::{Direction, Evidence};
use serde_json::{Map, Value};

/// The greatest number of messages of one side.
const MAX_MESSAGES: usize = 3;

/// A message or an event of a connection.
pub(super) type Item = (String, Evidence);

/// The last messages that were sent before a finding was made, and what the server said after them.
pub(super) fn exchange(evidence: &[Evidence]) -> (Vec<&Evidence>, Vec<&Evidence>) {
    let items: Vec<&Evidence> = evidence.iter().filter(|item| item.direction != Direction::Stderr).collect();
    let answers = items.iter().rposition(|item| item.direction == Direction::Sent).map_or(0, |at| at + 1);
    let sent = items[..answers].iter().rposition(|item| item.direction != Direction::Sent).map_or(0, |at| at + 1);
    let last = |items: &[&'_ Evidence]| items.len().saturating_sub(MAX_MESSAGES);
    let (sent, answers) = (&items[sent..answers], &items[answers..]);
    (sent[last(sent)..].to_vec(), answers[last(answers)..].to_vec())
}

/// What a conforming server said after the same messages were sent; nothing if they were not sent.
///
/// `wire` has everything on the connections of a run in order.
pub(super) fn conforming<'w>(wire: &'w [Item], sent: &[&Evidence], answers: &[&Evidence]) -> Vec<&'w Evidence> {
    let Some(key) = sent.iter().rev().find(|item| id(item).is_some()).or(sent.last()) else {
        return unprompted(wire, answers);
    };
    let (wanted, wanted_kind) = (comparable(key), kind(key));
    let is_same = |(_, item): &Item| item.direction == Direction::Sent && comparable(item) == wanted;
    // Where a value of the server, such as the id of a task, is part of the message, one of the same kind is as good.
    let is_alike = |(_, item): &Item| item.direction == Direction::Sent && kind(item) == wanted_kind;
    let Some(at) = wire.iter().rposition(is_same).or_else(|| wire.iter().rposition(is_alike)) else {
        return Vec::new();
    };
    let (connection, request) = &wire[at];
    let after = wire[at + 1..].iter().filter(|(other, _)| other == connection).map(|(_, item)| item);
    let Some(request) = id(request) else {
        // What follows a message without an id, up to the next message, or an HTTP request.
        let until_next = after.skip_while(|item| item.direction == Direction::Sent);
        return until_next.take_while(|item| item.direction != Direction::Sent).take(MAX_MESSAGES).collect();
    };
    let methods: Vec<String> = answers.iter().filter_map(|item| method(item)).collect();
    let mut found: Vec<&Evidence> = Vec::new();
    for item in after {
        if item.direction == Direction::Received && method(item).is_none() && id(item) == Some(request.clone()) {
            found.push(item);
            break;
        }
        if item.direction == Direction::Received && method(item).is_some_and(|method| methods.contains(&method)) {
            found.push(item);
        }
    }
    found[found.len().saturating_sub(MAX_MESSAGES)..].to_vec()
}

/// Messages of the same methods as those that a server sent of its own accord.
fn unprompted<'w>(wire: &'w [Item], answers: &[&Evidence]) -> Vec<&'w Evidence> {
    let of_method = |wanted: String| {
        let mut received = wire.iter().map(|(_, item)| item).filter(|item| item.direction == Direction::Received);
        received.find(|item| method(item).as_ref() == Some(&wanted))
    };
    answers.iter().filter_map(|item| method(item)).filter_map(of_method).take(MAX_MESSAGES).collect()
}

/// The message of an item, if it is complete.
pub(super) fn message(item: &Evidence) -> Option<Value> {
    let value = serde_json::from_str::<Value>(&item.text).ok()?;
    value.is_object().then_some(value)
}

fn id(item: &Evidence) -> Option<Value> {
    item.message.as_ref()?.id().cloned().filter(|id| !id.is_null())
}

fn method(item: &Evidence) -> Option<String> {
    Some(message(item)?.get("method")?.as_str()?.to_owned())
}

/// What a sent message is: its method, or the first line of an HTTP request.
fn kind(item: &Evidence) -> String {
    method(item).unwrap_or_else(|| item.text.lines().next().unwrap_or_default().to_owned())
}

/// A sent message without what differs from run to run: ids, tokens, sessions and lengths.
fn comparable(item: &Evidence) -> String {
    if let Some(message) = message(item) {
        return without_ids(message).to_string();
    }
    let varies = |line: &str| {
        let line = line.to_ascii_lowercase();
        let headers = ["mcp-session-id:", "content-length:", "host: 127.", "last-event-id:"];
        headers.iter().any(|header| line.starts_with(header))
    };
    let lines = item.text.lines().filter(|line| !varies(line)).map(|line| match serde_json::from_str::<Value>(line) {
        Ok(body) if body.is_object() => without_ids(body).to_string(),
        _ => line.split("?sessionId=").next().unwrap_or(line).to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn without_ids(mut message: Value) -> Value {
    if let Some(members) = message.as_object_mut() {
        members.remove("id");
    }
    if let Some(meta) = message.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
        meta.remove("progressToken");
    }
    message
}

/// The parts in which two messages differ: members and items that are equal are left out.
pub(super) fn difference(a: &Value, b: &Value) -> (Value, Value) {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let (mut only_left, mut only_right) = (Map::new(), Map::new());
            for (name, value) in left {
                match right.get(name) {
                    Some(other) if other == value => {}
                    Some(other) => {
                        let (ours, theirs) = difference(value, other);
                        only_left.insert(name.clone(), ours);
                        only_right.insert(name.clone(), theirs);
                    }
                    None => {
                        only_left.insert(name.clone(), value.clone());
                    }
                }
            }
            for (name, value) in right.iter().filter(|(name, _)| !left.contains_key(*name)) {
                only_right.insert(name.clone(), value.clone());
            }
            (Value::Object(only_left), Value::Object(only_right))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).filter(|(ours, theirs)| ours != theirs);
            let (ours, theirs) = pairs.map(|(ours, theirs)| difference(ours, theirs)).unzip();
            (Value::Array(ours), Value::Array(theirs))
        }
        _ => (a.clone(), b.clone()),
    }
}

/// A message in which long texts are cut.
pub(super) fn shortened(value: Value) -> Value {
    const MAX_TEXT_CHARS: usize = 120;
    match value {
        Value::String(text) => Value::String(text::shortened(&text, MAX_TEXT_CHARS).into_owned()),
        Value::Array(items) => items.into_iter().map(shortened).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, shortened(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_conformance::verdict::MessageSummary;
    use serde_json::json;

    fn item(direction: Direction, text: &str) -> Evidence {
        let evidence = Evidence::new(direction, 0.0, text.to_owned());
        match serde_json::from_str::<Value>(text).ok().and_then(|value| value.get("id").cloned()) {
            Some(id) => evidence.with_message(MessageSummary::Result { id: Some(id) }),
            None => evidence,
        }
    }

    #[test]
    fn the_response_to_the_same_request_is_found() {
        let red = [
            item(Direction::Sent, r#"{"id":1,"method":"ping"}"#),
            item(Direction::Received, r#"{"id":1,"result":{}}"#),
            item(Direction::Sent, r#"{"id":7,"method":"tools/list"}"#),
            item(Direction::Received, r#"{"id":7,"result":{"tools":1}}"#),
        ];
        let (sent, answers) = exchange(&red);
        assert_eq!((sent.len(), answers.len()), (1, 1));
        let wire: Vec<Item> = [
            ("1", item(Direction::Sent, r#"{"id":4,"method":"tools/list"}"#)),
            ("2", item(Direction::Received, r#"{"id":4,"result":"of another connection"}"#)),
            ("1", item(Direction::Received, r#"{"id":3,"result":"of another request"}"#)),
            ("1", item(Direction::Received, r#"{"id":4,"result":{"tools":[]}}"#)),
        ]
        .map(|(connection, item)| (connection.to_owned(), item))
        .to_vec();
        let found = conforming(&wire, &sent, &answers);
        assert_eq!(
            found.iter().map(|item| item.text.as_str()).collect::<Vec<_>>(),
            [r#"{"id":4,"result":{"tools":[]}}"#]
        );
        assert!(conforming(&wire[1..], &sent, &answers).is_empty());
        let other = vec![
            ("1".to_owned(), item(Direction::Sent, r#"{"id":4,"method":"tools/list","params":{}}"#)),
            wire[3].clone(),
        ];
        assert_eq!(conforming(&other, &sent, &answers).len(), 1, "a request of the same method is as good");
    }

    #[test]
    fn long_texts_are_cut() {
        let cut = shortened(json!({"a": ["x".repeat(500), "short"]})).to_string();
        assert!(cut.chars().count() < 150 && cut.contains("x…") && cut.contains("short"), "{cut}");
    }

    #[test]
    fn only_what_differs_is_left() {
        let (a, b) = difference(
            &json!({"same": 1, "deep": {"x": 1, "y": [1, 2, {"z": true}]}, "gone": 0}),
            &json!({"same": 1, "deep": {"x": 1, "y": [1, 3, {"z": true}]}, "new": 0}),
        );
        assert_eq!(a, json!({"deep": {"y": [2]}, "gone": 0}));
        assert_eq!(b, json!({"deep": {"y": [3]}, "new": 0}));
    }
}
