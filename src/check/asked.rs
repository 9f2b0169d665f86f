//! The checks of what the server asks the client for: by a request, or inside an `input_required` result.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::act::shortened;
use super::declared::needed_capability;
use super::seen::{Seen, breach};
use super::value::Look;
use super::watch::{Index, method_of};
use crate::transcript::{Event, asks_for_input};

/// The capability that a request of the server needs and the client did not declare.
pub(super) fn undeclared(request: &Value, capabilities: &Value) -> Option<String> {
    let needed = needed_capability(method_of(request))?;
    let Some(declared) = capabilities.get(needed) else { return Some(needed.to_owned()) };
    let has = |name: &str| request.pointer(&format!("/params/{name}")).is_some();
    match needed {
        "elicitation" => {
            let url = request.pointer("/params/mode").is_some_and(|mode| mode == "url");
            // An empty object stands for the form alone.
            let form_declared = declared.get("form").is_some() || declared.get("url").is_none();
            match (url, form_declared) {
                (true, _) if declared.get("url").is_none() => Some("elicitation.url".to_owned()),
                (false, false) => Some("elicitation.form".to_owned()),
                _ => None,
            }
        }
        "sampling" if (has("tools") || has("toolChoice")) && declared.get("tools").is_none() => {
            Some("sampling.tools".to_owned())
        }
        _ => None,
    }
}

/// The capabilities that the client declared, be it with the request that led to the question or when the
/// connection was opened.
pub(super) fn capabilities<'a>(within: Option<&'a Value>, index: &Index<'a>) -> &'a Value {
    const MEMBER: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
    within.and_then(|request| request.pointer(MEMBER)).unwrap_or(&index.record.terms.client_capabilities)
}

/// Whether what the server asks for was declared by the client that it asks.
pub(super) fn declared<'a>(request: &Value, within: Option<&'a Value>, index: &Index<'a>) -> Option<Look> {
    needed_capability(method_of(request))?;
    Some(Look::from(
        undeclared(request, capabilities(within, index)).map(|missing| {
            format!("{}, though the client did not declare {missing}", shortened(method_of(request), 60))
        }),
    ))
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    let content = message.get("content").unwrap_or(&Value::Null);
    content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice).iter()
}

fn ids<'a>(message: &'a Value, kind: &str, member: &str) -> BTreeSet<&'a str> {
    let of_kind = blocks(message).filter(|block| block.get("type").is_some_and(|word| word == kind));
    of_kind.filter_map(|block| block.get(member)?.as_str()).collect()
}

/// Whether each use of a tool in the messages of a completion is followed by its result.
pub(super) fn tool_uses_balanced(messages: &Value) -> Option<Look> {
    let messages = messages.as_array()?;
    let mut seen = false;
    for (at, message) in messages.iter().enumerate() {
        let used = ids(message, "tool_use", "id");
        if used.is_empty() || message.get("role").is_none_or(|role| role != "assistant") {
            continue;
        }
        seen = true;
        let Some(next) = messages.get(at + 1) else {
            return Some(Look::Breach("no message follows one that uses a tool".to_owned()));
        };
        let answered = ids(next, "tool_result", "toolUseId");
        if next.get("role").is_none_or(|role| role != "user") || answered.is_empty() {
            return Some(Look::Breach("the message after one that uses a tool has no tool_result".to_owned()));
        }
        if let Some(id) = used.iter().find(|id| !answered.contains(*id)) {
            return Some(Look::Breach(format!("the use {} of a tool has no tool_result", shortened(id, 60))));
        }
    }
    seen.then_some(Look::Holds)
}

/// Whether each elicitation that is told to be complete was asked for on the same connection.
pub(super) fn elicitations_known(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (position, message) in index.received() {
        let of_request = message.pointer("/params/elicitationId").and_then(Value::as_str);
        if method_of(message) == "notifications/elicitation/complete" {
            let problem = match of_request {
                None => Some("no elicitationId".to_owned()),
                Some(id) if !known.contains(id) => Some(format!("the unknown id {}", shortened(id, 60))),
                Some(_) => None,
            };
            seen.look(problem.map(|problem| breach(problem, method_of(message), &[position])));
        } else if method_of(message) == "elicitation/create" {
            known.extend(of_request);
        }
        let required = message.pointer("/error/data/elicitations").and_then(Value::as_array);
        known.extend(required.into_iter().flatten().filter_map(|one| one.get("elicitationId")?.as_str()));
    }
    seen
}

/// Whether no result asks for two things under one key.
pub(super) fn input_keys_unique(index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for (position, message) in index.received() {
        let asks = message.get("result").is_some_and(asks_for_input);
        if !asks || message.pointer("/result/inputRequests").is_none() {
            continue;
        }
        let Event::Received(frame) = &index.record.entries[position].event else { continue };
        let Ok(Repeated(key)) = serde_json::from_slice(&frame.raw) else { continue };
        seen.look(key.map(|key| breach(format!("the key `{}` twice", shortened(&key, 60)), "", &[position])));
    }
    seen
}

/// The first key that stands twice in a member `inputRequests`, at any depth above it. Values lose it.
struct Repeated(Option<String>);

impl<'de> Deserialize<'de> for Repeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Search)
    }
}

struct Search;

impl<'de> Visitor<'de> for Search {
    type Value = Repeated;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Repeated, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            let inner = match name.as_str() {
                "result" => map.next_value::<Repeated>()?.0,
                "inputRequests" => map.next_value::<Keys>()?.0,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            found = found.or(inner);
        }
        Ok(Repeated(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Repeated, A::Error> {
        let mut found = None;
        while let Some(Repeated(inner)) = seq.next_element()? {
            found = found.or(inner);
        }
        Ok(Repeated(found))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }

    fn visit_unit<E>(self) -> Result<Repeated, E> {
        Ok(Repeated(None))
    }
}

/// The first key of an object that stands in it twice.
struct Keys(Option<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let (mut known, mut twice) = (BTreeSet::new(), None);
                while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
                    if known.contains(&name) {
                        twice.get_or_insert(name);
                    } else {
                        known.insert(name);
                    }
                }
                Ok(Keys(twice))
            }
        }
        deserializer.deserialize_map(OfMap)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_declared_is_told_by_kind_and_mode() {
        let form = json!({"method": "elicitation/create", "params": {"message": "?"}});
        let page = json!({"method": "elicitation/create", "params": {"mode": "url"}});
        let tools = json!({"method": "sampling/createMessage", "params": {"tools": []}});
        let rows = [
            (&form, json!({}), Some("elicitation")),
            (&form, json!({"elicitation": {}}), None),
            (&form, json!({"elicitation": {"url": {}}}), Some("elicitation.form")),
            (&page, json!({"elicitation": {}}), Some("elicitation.url")),
            (&page, json!({"elicitation": {"form": {}, "url": {}}}), None),
            (&tools, json!({"sampling": {}}), Some("sampling.tools")),
            (&tools, json!({"sampling": {"tools": {}}}), None),
        ];
        for (request, capabilities, missing) in rows {
            assert_eq!(undeclared(request, &capabilities).as_deref(), missing, "{request} {capabilities}");
        }
        assert_eq!(undeclared(&json!({"method": "vendor/other"}), &json!({})), None);
    }

    #[test]
    fn each_use_of_a_tool_needs_its_result_in_the_next_message() {
        let used = |ids: &[&str]| {
            let uses: Vec<Value> = ids.iter().map(|id| json!({"type": "tool_use", "id": id})).collect();
            json!({"role": "assistant", "content": uses})
        };
        let result = |id: &str| json!({"role": "user", "content": {"type": "tool_result", "toolUseId": id}});
        let text = json!({"role": "user", "content": {"type": "text", "text": "?"}});
        let holds = |messages: Value| tool_uses_balanced(&messages).map(|look| matches!(look, Look::Holds));
        assert_eq!(holds(json!([text])), None);
        assert_eq!(holds(json!([text, used(&["a"]), result("a")])), Some(true));
        assert_eq!(holds(json!([text, used(&["a", "b"]), result("a")])), Some(false));
        assert_eq!(holds(json!([text, used(&["a"]), text, result("a")])), Some(false));
        assert_eq!(holds(json!([text, used(&["a"])])), Some(false));
    }

    #[test]
    fn a_key_that_stands_twice_is_found_in_the_text() {
        let twice = |text: &str| serde_json::from_str::<Repeated>(text).expect("it is JSON").0;
        let text = r#"{"id": 1, "result": {"a": [null, 1.5], "inputRequests": {"x": {}, "y": {"x": 1, "x": 2}}}}"#;
        assert_eq!(twice(text), None);
        assert_eq!(twice(r#"{"result": {"inputRequests": {"x": {}, "x": 5}}}"#).as_deref(), Some("x"));
        assert_eq!(twice(r#"[true, "s", {"result": {"inputRequests": {"x": {}, "x": 5}}}]"#).as_deref(), Some("x"));
    }
}
