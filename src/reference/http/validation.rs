//! Validation of requests before their messages are processed.
//!
//! Sources: `basic/transports#security-warning` and `#protocol-version-header` of 2025-11-25,
//! `basic/transports/streamable-http#server-validation` of 2026-07-28.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, StatusCode};
use serde_json::Value;

use super::response::{HttpResponse, full, rpc_error, text_error};
use crate::reference::message::{INVALID_PARAMS, INVALID_REQUEST, RpcError};
use crate::reference::revision::Revision;
use crate::reference::tool;

/// The headers do not match the message (since 2026-07-28).
const HEADER_MISMATCH: i64 = -32_020;

pub(super) const VERSION: &str = "mcp-protocol-version";

/// Rejects a foreign Origin or Host.
pub(super) fn origin(host: Option<&HeaderValue>, origin: Option<&HeaderValue>) -> Option<HttpResponse> {
    let is_local = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
        let name = if authority.starts_with('[') {
            authority.split_inclusive(']').next().unwrap_or_default()
        } else {
            authority.split(':').next().unwrap_or_default()
        };
        ["localhost", "127.0.0.1", "[::1]"].contains(&name)
    };
    let is_foreign = |value: Option<&HeaderValue>| value.is_some_and(|value| !is_local(value));
    (is_foreign(host) || is_foreign(origin)).then(|| rpc_error(StatusCode::FORBIDDEN, INVALID_REQUEST, "Forbidden"))
}

/// Rejects a POST whose body is not JSON or whose client does not accept both kinds of response.
pub(super) fn media_types(request: &Request<Incoming>) -> Option<HttpResponse> {
    let text = |value: Option<&HeaderValue>| value.and_then(|v| v.to_str().ok()).unwrap_or_default().to_lowercase();
    let sent = text(request.headers().get(CONTENT_TYPE));
    if sent.split(';').next().unwrap_or_default().trim() != "application/json" {
        return Some(text_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json"));
    }
    let accepted = text(request.headers().get(ACCEPT));
    let takes = |kind: &str| accepted.contains(kind) || accepted.contains("*/*");
    (!takes("application/json") || !takes("text/event-stream")).then(|| {
        text_error(StatusCode::NOT_ACCEPTABLE, "the client must accept application/json and text/event-stream")
    })
}

/// Rejects an unknown version. Without the header, the negotiated version applies.
pub(super) fn version(headers: &HeaderMap) -> Option<HttpResponse> {
    let named = headers.get(VERSION)?;
    let known = named.to_str().is_ok_and(|named| Revision::ALL.iter().any(|revision| revision.name() == named));
    (!known).then(|| rpc_error(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the protocol version is unknown"))
}

pub(super) fn meta<'a>(message: &'a Value, name: &str) -> Option<&'a Value> {
    message.get("params")?.get("_meta")?.get(format!("io.modelcontextprotocol/{name}"))
}

/// Whether a stateless request lacks required metadata.
pub(super) fn lacks_meta(message: &Value) -> bool {
    ["protocolVersion", "clientCapabilities"].iter().any(|name| meta(message, name).is_none())
}

/// Whether a message is stateless, by its header or its metadata.
pub(super) fn is_stateless(headers: &HeaderMap, message: &Value) -> bool {
    let named = headers.get(VERSION).and_then(|value| value.to_str().ok());
    meta(message, "protocolVersion").is_some()
        || meta(message, "clientCapabilities").is_some()
        || named.is_some_and(|named| named >= "2026" && named.starts_with(|digit: char| digit.is_ascii_digit()))
}

/// Compares the headers of a stateless request with its message.
pub(super) fn stateless(headers: &HeaderMap, message: &Value) -> Option<HttpResponse> {
    message.get("id")?;
    let mismatch = |message_text: String| Some(self::mismatch(message, &message_text));
    let method = message.get("method").and_then(Value::as_str)?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(version) = text(VERSION) else {
        return mismatch("the MCP-Protocol-Version header is missing".to_owned());
    };
    if method == "initialize" {
        // `initialize` is not stateless; its error lists the supported versions.
        return None;
    }
    let Some(in_message) = meta(message, "protocolVersion").and_then(Value::as_str) else {
        // The header alone is not enough: the parameter is missing.
        let message_text = "params._meta lacks io.modelcontextprotocol/protocolVersion";
        let error = RpcError::new(INVALID_PARAMS, message_text).into_message(message.get("id"), false);
        return Some(full(StatusCode::BAD_REQUEST, "application/json", error.to_string()));
    };
    if version != in_message {
        return mismatch(format!("the MCP-Protocol-Version header says {version}, the message {in_message}"));
    }
    if text("mcp-method") != Some(method) {
        return mismatch(format!("the Mcp-Method header is not {method}"));
    }
    if let Some(name) = name_of(message) {
        match text("mcp-name").and_then(decode_header) {
            Some(in_header) if in_header == name => {}
            Some(in_header) => {
                return mismatch(format!("the Mcp-Name header says {in_header:?}, the message {name:?}"));
            }
            None => return mismatch("the Mcp-Name header is missing or malformed".to_owned()),
        }
    }
    for (header, value) in mirrored_arguments(message) {
        let in_header = text(&header).and_then(decode_header);
        let agrees = match (&value, &in_header) {
            // Integers are compared as numbers.
            (Some(Value::Number(number)), Some(in_header)) => in_header.trim().parse::<f64>().ok() == number.as_f64(),
            (Some(value), Some(in_header)) => header_text(value).as_ref() == Some(in_header),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if !agrees {
            return mismatch(format!("the header {header} does not match the argument"));
        }
    }
    None
}

/// The error for headers that do not match the message.
pub(super) fn mismatch(message: &Value, message_text: &str) -> HttpResponse {
    let error = RpcError::new(HEADER_MISMATCH, message_text).into_message(message.get("id"), false);
    full(StatusCode::BAD_REQUEST, "application/json", error.to_string())
}

/// The value that Mcp-Name must have for a message.
pub(super) fn name_of(message: &Value) -> Option<&str> {
    let name = match message.get("method").and_then(Value::as_str)? {
        "tools/call" | "prompts/get" => message.pointer("/params/name"),
        "resources/read" => message.pointer("/params/uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => message.pointer("/params/taskId"),
        _ => None,
    };
    name.and_then(Value::as_str)
}

/// The headers for arguments of a call, each with its argument if there is one.
pub(super) fn mirrored_arguments(message: &Value) -> Vec<(String, Option<Value>)> {
    if message.get("method").is_none_or(|method| method != "tools/call") {
        return Vec::new();
    }
    let name = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
    let tools = tool::available(Revision::V2026_07_28, &tool::ToolAvailability::default());
    let Some(tool) = tools.iter().find(|tool| tool["name"] == name) else { return Vec::new() };
    let properties = tool["inputSchema"]["properties"].as_object();
    let annotated = properties.into_iter().flatten().filter_map(|(property, schema)| {
        let header = schema.get("x-mcp-header")?.as_str()?;
        let value = message.pointer("/params/arguments").and_then(|arguments| arguments.get(property));
        Some((format!("mcp-param-{}", header.to_ascii_lowercase()), value.filter(|value| !value.is_null()).cloned()))
    });
    annotated.collect()
}

/// The header text of a value before encoding; nothing for types that have none.
pub(super) fn header_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Encodes a value for a header.
pub(super) fn encode_header(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// Decodes a header value; nothing if its Base64 is invalid.
fn decode_header(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
