//! The checks of what the server requests from the client: by a request, or in an `input_required` result.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::index::{ConnectionIndex, method_of};
use super::text::shortened;
use super::violation::ValueResult;
use super::violation::{CheckResult, Violation};
use crate::transcript::{Event, is_input_required};

/// The client capability that a server request of this method needs.
fn needed_capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

/// The capability that a server request needs and that the client did not declare.
pub(super) fn undeclared(request: &Value, capabilities: &Value) -> Option<String> {
    let needed = needed_capability(method_of(request))?;
    let Some(declared) = capabilities.get(needed) else { return Some(needed.to_owned()) };
    let has = |name: &str| request.pointer(&format!("/params/{name}")).is_some();
    match needed {
        "elicitation" => {
            let is_url_mode = request.pointer("/params/mode").is_some_and(|mode| mode == "url");
            // An empty object declares the form mode alone.
            let is_form_declared = declared.get("form").is_some() || declared.get("url").is_none();
            match (is_url_mode, is_form_declared) {
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

/// The capabilities that the client declared, in the request that caused the server's request or when the connection
/// was opened.
pub(super) fn capabilities<'a>(cause: Option<&'a Value>, index: &ConnectionIndex<'a>) -> &'a Value {
    const MEMBER: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
    cause.and_then(|request| request.pointer(MEMBER)).unwrap_or(&index.record.session_parameters.client_capabilities)
}

/// Checks that the client declared what the server requests.
pub(super) fn declared<'a>(
    request: &Value,
    cause: Option<&'a Value>,
    index: &ConnectionIndex<'a>,
) -> Option<ValueResult> {
    needed_capability(method_of(request))?;
    Some(ValueResult::from(undeclared(request, capabilities(cause, index)).map(|missing| {
        format!("{}, although the client did not declare {missing}", shortened(method_of(request), 60))
    })))
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    let content = message.get("content").unwrap_or(&Value::Null);
    content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice).iter()
}

fn ids<'a>(message: &'a Value, kind: &str, member: &str) -> BTreeSet<&'a str> {
    let of_kind = blocks(message).filter(|block| block.get("type").is_some_and(|name| name == kind));
    of_kind.filter_map(|block| block.get(member)?.as_str()).collect()
}

/// Checks that each tool use in the messages of a sampling request is followed by its result.
pub(super) fn tool_uses_have_results(messages: &Value) -> Option<ValueResult> {
    let messages = messages.as_array()?;
    let mut has_tool_use = false;
    for (at, message) in messages.iter().enumerate() {
        let used = ids(message, "tool_use", "id");
        if used.is_empty() || message.get("role").is_none_or(|role| role != "assistant") {
            continue;
        }
        has_tool_use = true;
        let Some(next) = messages.get(at + 1) else {
            return Some(ValueResult::Violates("no message follows a tool use".to_owned()));
        };
        let answered = ids(next, "tool_result", "toolUseId");
        if next.get("role").is_none_or(|role| role != "user") || answered.is_empty() {
            return Some(ValueResult::Violates("the message after a tool use has no tool_result".to_owned()));
        }
        if let Some(id) = used.iter().find(|id| !answered.contains(*id)) {
            return Some(ValueResult::Violates(format!("the tool use {} has no tool_result", shortened(id, 60))));
        }
    }
    has_tool_use.then_some(ValueResult::Conforms)
}

/// Checks that each elicitation which the server reports as complete was requested before on the same connection.
pub(super) fn completed_elicitations_known(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (position, message) in index.received() {
        let of_request = message.pointer("/params/elicitationId").and_then(Value::as_str);
        if method_of(message) == "notifications/elicitation/complete" {
            let problem = match of_request {
                None => Some("no elicitationId".to_owned()),
                Some(id) if !known.contains(id) => Some(format!("the unknown id {}", shortened(id, 60))),
                Some(_) => None,
            };
            checked.record(problem.map(|problem| Violation::new(problem, method_of(message), &[position])));
        } else if method_of(message) == "elicitation/create" {
            known.extend(of_request);
        }
        let required = message.pointer("/error/data/elicitations").and_then(Value::as_array);
        known.extend(required.into_iter().flatten().filter_map(|one| one.get("elicitationId")?.as_str()));
    }
    checked
}

/// Checks that no key of `inputRequests` is duplicated in the JSON text of a result.
pub(super) fn input_request_keys_unique(index: &ConnectionIndex<'_>) -> CheckResult {
    let mut checked = CheckResult::default();
    for (position, message) in index.received() {
        let requests_input = message.get("result").is_some_and(is_input_required);
        if !requests_input || message.pointer("/result/inputRequests").is_none() {
            continue;
        }
        let Event::Received(frame) = &index.record.entries[position].event else { continue };
        let Ok(DuplicateKey(key)) = serde_json::from_slice(&frame.raw()) else { continue };
        checked.record(
            key.map(|key| Violation::new(format!("the key `{}` is used twice", shortened(&key, 60)), "", &[position])),
        );
    }
    checked
}

/// The first key that occurs twice in a member `inputRequests` of a JSON text. A parsed [`Value`] no longer has it.
struct DuplicateKey(Option<String>);

impl<'de> Deserialize<'de> for DuplicateKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DuplicateKeyVisitor)
    }
}

struct DuplicateKeyVisitor;

impl<'de> Visitor<'de> for DuplicateKeyVisitor {
    type Value = DuplicateKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DuplicateKey, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            let inner = match name.as_str() {
                "result" => map.next_value::<DuplicateKey>()?.0,
                "inputRequests" => map.next_value::<ObjectKeys>()?.0,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            found = found.or(inner);
        }
        Ok(DuplicateKey(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<DuplicateKey, A::Error> {
        let mut found = None;
        while let Some(DuplicateKey(inner)) = seq.next_element()? {
            found = found.or(inner);
        }
        Ok(DuplicateKey(found))
    }

    fn visit_bool<E>(self, _: bool) -> Result<DuplicateKey, E> {
        Ok(DuplicateKey(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<DuplicateKey, E> {
        Ok(DuplicateKey(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<DuplicateKey, E> {
        Ok(DuplicateKey(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<DuplicateKey, E> {
        Ok(DuplicateKey(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<DuplicateKey, E> {
        Ok(DuplicateKey(None))
    }

    fn visit_unit<E>(self) -> Result<DuplicateKey, E> {
        Ok(DuplicateKey(None))
    }
}

/// The first key that occurs twice in an object.
struct ObjectKeys(Option<String>);

impl<'de> Deserialize<'de> for ObjectKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = ObjectKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectKeys, A::Error> {
                let (mut known, mut duplicate) = (BTreeSet::new(), None);
                while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
                    if known.contains(&name) {
                        duplicate.get_or_insert(name);
                    } else {
                        known.insert(name);
                    }
                }
                Ok(ObjectKeys(duplicate))
            }
        }
        deserializer.deserialize_map(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_undeclared_request_is_named_by_kind_and_mode() {
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
    fn each_tool_use_needs_its_result_in_the_next_message() {
        let used = |ids: &[&str]| {
            let uses: Vec<Value> = ids.iter().map(|id| json!({"type": "tool_use", "id": id})).collect();
            json!({"role": "assistant", "content": uses})
        };
        let result = |id: &str| json!({"role": "user", "content": {"type": "tool_result", "toolUseId": id}});
        let text = json!({"role": "user", "content": {"type": "text", "text": "?"}});
        let holds =
            |messages: Value| tool_uses_have_results(&messages).map(|result| matches!(result, ValueResult::Conforms));
        assert_eq!(holds(json!([text])), None);
        assert_eq!(holds(json!([text, used(&["a"]), result("a")])), Some(true));
        assert_eq!(holds(json!([text, used(&["a", "b"]), result("a")])), Some(false));
        assert_eq!(holds(json!([text, used(&["a"]), text, result("a")])), Some(false));
        assert_eq!(holds(json!([text, used(&["a"])])), Some(false));
    }

    #[test]
    fn a_duplicate_key_is_found_in_the_json_text() {
        let duplicate = |text: &str| serde_json::from_str::<DuplicateKey>(text).expect("it is JSON").0;
        let text = r#"{"id": 1, "result": {"a": [null, 1.5], "inputRequests": {"x": {}, "y": {"x": 1, "x": 2}}}}"#;
        assert_eq!(duplicate(text), None);
        assert_eq!(duplicate(r#"{"result": {"inputRequests": {"x": {}, "x": 5}}}"#).as_deref(), Some("x"));
        assert_eq!(duplicate(r#"[true, "s", {"result": {"inputRequests": {"x": {}, "x": 5}}}]"#).as_deref(), Some("x"));
    }
}
