//! JSON values as JSON-RPC messages: request, notification, response or none of them, with id and method.

use serde_json::{Map, Value};

use super::surrogate::before_lone_surrogate;

/// A member of an error that stands for an HTTP status without a message. The server sent no such error.
pub(crate) const HTTP_STATUS_MEMBER: &str = "mcp-conformance/http-status";

/// The identifier of a request, as a JSON value: a string, a number, or whatever a peer sent.
pub(crate) type Id = Value;

/// The kind of JSON-RPC message that a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MessageKind<'a> {
    /// A method with an id.
    Request {
        /// The identifier, of any type.
        id: &'a Id,
        /// The method.
        method: &'a str,
    },
    /// A method without an id.
    Notification {
        /// The method.
        method: &'a str,
    },
    /// A `result` or an `error` (or both, which a check reports).
    Response {
        /// The identifier, if there is one.
        id: Option<&'a Id>,
    },
    /// An array: a batch in revisions that have them.
    Batch(&'a [Value]),
    /// None of them.
    Unknown,
}

impl<'a> MessageKind<'a> {
    /// Classifies a value by its members alone.
    #[must_use]
    pub(crate) fn of(value: &'a Value) -> Self {
        let object = match value {
            Value::Object(object) => object,
            Value::Array(items) => return Self::Batch(items),
            _ => return Self::Unknown,
        };
        let id = member_of(object, "id");
        match member_of(object, "method") {
            Some(Value::String(method)) => match id {
                Some(id) => Self::Request { id, method },
                None => Self::Notification { method },
            },
            None if member_of(object, "result").or_else(|| member_of(object, "error")).is_some() => {
                Self::Response { id }
            }
            _ => Self::Unknown,
        }
    }
}

/// A member of an object. The few members of a message are found sooner one by one than by the hash of a name.
pub(crate) fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.as_object().and_then(|members| member_of(members, name))
}

fn member_of<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    const FEW: usize = 8;
    if members.len() > FEW {
        return members.get(name);
    }
    members.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The messages of a line: the elements of a batch, or the value itself.
pub(crate) fn messages(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(items) => items.iter(),
        other => std::slice::from_ref(other).iter(),
    }
}

/// The id of a message, of any type, if it has one.
#[must_use]
pub(crate) fn id_of(message: &Value) -> Option<&Id> {
    member(message, "id")
}

/// The method of a message, if it has one that is a string.
#[must_use]
pub(crate) fn method_of(message: &Value) -> Option<&str> {
    member(message, "method")?.as_str()
}

/// Whether two ids are the same in value and JSON type; `1` and `1.0` are the same number.
#[must_use]
pub(crate) fn same_id(a: &Id, b: &Id) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y || (x.as_i64().is_none() || y.as_i64().is_none()) && x.as_f64().is_some() && x.as_f64() == y.as_f64()
        }
        _ => a == b,
    }
}

/// Whether an id can be a copy of another in which a parser has replaced what follows the first lone surrogate.
#[must_use]
fn replaces_lone_surrogate(sent: &Id, got: &Id) -> bool {
    let before = sent.as_str().and_then(before_lone_surrogate).filter(|before| !before.is_empty());
    before.zip(got.as_str()).is_some_and(|(before, got)| got.starts_with(before))
}

/// Whether a server that has lost the id of a request writes this one: null, or the empty text that a variable without a
/// value has.
#[must_use]
pub(crate) fn is_lost_id(id: &Id) -> bool {
    id.is_null() || id.as_str() == Some("")
}

/// Whether an id looks like an altered copy of another: the same text in another JSON type, a text without its lone
/// surrogates, or none.
#[must_use]
pub(crate) fn same_id_loosely(sent: &Id, got: &Id) -> bool {
    let text = |id: &Id| match id {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    is_lost_id(got) || text(sent) == text(got) || replaces_lone_surrogate(sent, got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_classified_by_its_members() {
        assert!(matches!(
            MessageKind::of(&json!({"id": 1, "method": "ping"})),
            MessageKind::Request { method: "ping", .. }
        ));
        assert!(matches!(MessageKind::of(&json!({"method": "x"})), MessageKind::Notification { method: "x" }));
        assert!(matches!(MessageKind::of(&json!({"id": 1, "result": {}})), MessageKind::Response { id: Some(_) }));
        assert!(matches!(MessageKind::of(&json!({"error": {}})), MessageKind::Response { id: None }));
        assert!(matches!(MessageKind::of(&json!([1])), MessageKind::Batch(_)));
        assert!(matches!(MessageKind::of(&json!({"id": 1})), MessageKind::Unknown));
    }

    #[test]
    fn ids_are_equal_only_in_the_same_type() {
        assert!(same_id(&json!(1), &json!(1)));
        assert!(same_id(&json!(1), &json!(1.0)));
        assert!(!same_id(&json!(1), &json!("1")));
        assert!(!same_id(&json!(9_007_199_254_740_991_u64), &json!(9_007_199_254_740_992_u64)));
        assert!(same_id_loosely(&json!(1), &json!("1")));
        assert!(same_id_loosely(&json!(1), &Value::Null) && same_id_loosely(&json!(1), &json!("")));
        assert!(same_id_loosely(&json!("a\u{10D800}"), &json!("a\u{FFFD}")));
        assert!(!same_id_loosely(&json!("\u{10D800}"), &json!("b")));
        assert!(!same_id_loosely(&json!(1), &json!(2)));
    }
}
