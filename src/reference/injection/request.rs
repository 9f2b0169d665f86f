//! Faults in how the envelope of a request is read.

use serde_json::Value;

use crate::reference::fault::Fault;

/// How a message is read.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::reference) enum Reading {
    /// As this message.
    As(Value),
    /// It is not answered.
    Ignored,
    /// The server exits.
    Exits,
}

/// How a fault reads a message.
pub(in crate::reference) fn read(mut message: Value, is_active: impl Fn(Fault) -> bool) -> Reading {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    let has_id = message.get("id").is_some();
    let params = message.get("params");
    let is_get_or_read = matches!(method, "prompts/get" | "resources/read");
    if has_id && params.is_none() && (is_get_or_read || method == "tools/call") {
        return if is_active(Fault::ParamsMissingIgnored) { Reading::Ignored } else { Reading::As(message) };
    }
    if has_id && is_get_or_read && params.and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
        return if is_active(Fault::EmptyParamsExit) { Reading::Exits } else { Reading::As(message) };
    }
    let is_request_without_id = !has_id && !method.is_empty() && !method.starts_with("notifications/");
    if is_request_without_id && is_active(Fault::RequestWithoutIdExits) {
        return Reading::Exits;
    }
    if is_request_without_id && is_active(Fault::RequestWithoutIdAnswered) {
        message["id"] = Value::Null;
    }
    if has_id
        && is_active(Fault::InnerIdAnswered)
        && let Some(id) = message.pointer("/params/id").cloned()
    {
        message["id"] = id;
    }
    Reading::As(message)
}
