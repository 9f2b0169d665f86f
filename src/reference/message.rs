//! JSON-RPC messages as the reference server reads and writes them.
//!
//! Parsing only classifies a value as a request, notification, response or invalid message; the connection
//! decides what follows.

use serde_json::{Map, Value, json};

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// The input is not JSON.
pub(super) const PARSE_ERROR: i64 = -32_700;
/// The input is not a valid request.
pub(super) const INVALID_REQUEST: i64 = -32_600;
/// The method does not exist.
pub(super) const METHOD_NOT_FOUND: i64 = -32_601;
/// The params are invalid.
pub(super) const INVALID_PARAMS: i64 = -32_602;
/// An internal error.
pub(super) const INTERNAL_ERROR: i64 = -32_603;
/// The resource does not exist (until 2025-11-25).
pub(super) const RESOURCE_NOT_FOUND: i64 = -32_002;
/// The request needs a client capability that was not declared (since 2026-07-28).
pub(super) const MISSING_CAPABILITY: i64 = -32_021;
/// The user has to visit a URL first (2025-11-25).
pub(super) const ELICITATION_REQUIRED: i64 = -32_042;
/// The protocol version of the request is not supported (since 2026-07-28).
pub(super) const UNSUPPORTED_VERSION: i64 = -32_022;

/// A classified JSON value from the client.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Option<Value>,
        versioned: bool,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        body: Object,
    },
    /// Not a valid message; with its id if that is valid, and its members if it is an object.
    Invalid {
        id: Option<Value>,
        members: Option<Object>,
    },
}

impl Incoming {
    /// Classifies a value; `versioned` says whether a request has `"jsonrpc": "2.0"`.
    pub(super) fn read(value: Value) -> Self {
        let Value::Object(mut members) = value else {
            return Self::Invalid { id: None, members: None };
        };
        let legible = members.get("id").filter(|id| is_legal_id(id)).cloned();
        let has_id = members.contains_key("id");
        let is_response = members.contains_key("result") || members.contains_key("error");
        match (members.get("method"), legible) {
            (Some(Value::String(method)), Some(id)) => Self::Request {
                method: method.clone(),
                versioned: members.get("jsonrpc").and_then(Value::as_str) == Some("2.0"),
                params: members.remove("params"),
                id,
            },
            (Some(Value::String(method)), None) if !has_id => {
                Self::Notification { method: method.clone(), params: members.remove("params").unwrap_or_default() }
            }
            (None, Some(id)) if is_response => Self::Response { id, body: members },
            (_, id) => Self::Invalid { id, members: Some(members) },
        }
    }
}

/// Whether a value is a valid request id: a string or an integer.
fn is_legal_id(id: &Value) -> bool {
    match id {
        Value::String(_) => true,
        Value::Number(number) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The error response. Without an id, the member is null or absent, depending on the revision.
    pub(super) fn into_message(self, id: Option<&Value>, null_id: bool) -> Value {
        let mut message = json!({"jsonrpc": "2.0"});
        if let Some(id) = id {
            message["id"] = id.clone();
        } else if null_id {
            message["id"] = Value::Null;
        }
        message["error"] = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            message["error"]["data"] = data;
        }
        message
    }
}

/// A success response.
pub(super) fn response(id: &Value, result: Object) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": id});
    message["result"] = Value::Object(result);
    message
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The members of an object; empty for any other value.
pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}

/// At most 60 characters of a string from the client, without control characters, for error messages.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    if text.chars().count() > 60 {
        short.push('…');
    }
    short
}

/// The error for invalid params.
pub(super) fn invalid_params(text: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_PARAMS, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_every_valid_type_make_a_request() {
        for id in [json!(""), json!("é"), json!(0), json!(-1), json!(9_007_199_254_740_991_u64)] {
            let value = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            assert!(matches!(Incoming::read(value), Incoming::Request { .. }), "{id}");
        }
    }

    #[test]
    fn ids_of_other_types_make_an_invalid_request() {
        for id in [json!(null), json!(true), json!({}), json!([]), json!(1.5)] {
            let value = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            assert!(matches!(Incoming::read(value), Incoming::Invalid { id: None, .. }), "{id}");
        }
    }

    #[test]
    fn a_valid_id_of_an_invalid_request_is_kept() {
        let read = Incoming::read(json!({"jsonrpc": "2.0", "id": 7}));
        assert!(matches!(read, Incoming::Invalid { id: Some(id), .. } if id == json!(7)));
    }

    #[test]
    fn quoted_text_is_short_and_free_of_control_characters() {
        assert_eq!(quoted("a\u{1b}[31m\nb"), "a[31mb");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 61);
    }
}
